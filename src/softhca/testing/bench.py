"""What one test has: cards, the machines they are in, fault rules, and a trace of all that happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from softhca.bus import Clock, Engine, RealClock, VirtualClock
from softhca.bus.local import LocalHost
from softhca.driver import Driver
from softhca.guest.options import Options, Served, Streams
from softhca.guest.progress import silent
from softhca.guest.run import Run
from softhca.hca.device import Hca
from softhca.hca.fabric import Fabric
from softhca.hca.profile import DEFAULT, load_profile
from softhca.points import Probe
from softhca.points.rules import Rule, Rules, parse_file, parse_line, start
from softhca.trace.reader import Trace, TraceError
from softhca.trace.recorder import Recorder
from softhca.trace.story import story

MEMORY = 256 << 20
SHOWN = 60
"""Lines of the trace that a failed test shows."""


@dataclass(frozen=True)
class Machine:
    """A card, and the machine in this process that it sits in.

    Attributes:
        card: the device; what a driver under test talks to.
        host: memory and interrupts.
    """

    card: Hca
    host: LocalHost

    @property
    def engine(self) -> Engine:
        """Runs the card; `engine.wait(condition, nanoseconds)` lets it work, and the time pass."""
        return self.card.engine

    def new_driver(self) -> Driver:
        """The driver of softhca for the card, which has not begun."""
        return Driver(self.card, self.host)


@dataclass(frozen=True)
class GuestResult:
    """What a command in a guest brought.

    Attributes:
        verdict: `ok`, `command` (its exit status), `kernel` (the kernel complained), `timeout` or `lab`.
        status: exit status of the command, or None.
        output, error: what it printed.
        complaints: lines of the guest's kernel that are not as they should be.
        devices: what became of each card, as `softhca guest --json` has it.
    """

    verdict: str
    status: int | None
    output: str
    error: str
    complaints: tuple[str, ...]
    devices: tuple[dict[str, object], ...]

    def check(self) -> GuestResult:
        """Itself, when all went well.

        Raises:
            AssertionError: it did not; the text has output and complaints.
        """
        told = "\n".join((*self.complaints, self.output[-4000:], self.error[-4000:]))
        assert self.verdict == "ok", f"verdict {self.verdict!r}, exit status {self.status}\n{told}"
        return self


class Bench:
    """Of one test.

    Args:
        trace: file that the trace is written to.
        profile: name of the model, or a file.
        seed: of the engine in this process.
        clock: `virtual` or `real`, of cards in this process.
    """

    def __init__(self, trace: Path, profile: str = DEFAULT, seed: int = 0, clock: str = "virtual") -> None:
        if clock not in ("virtual", "real"):
            raise ValueError(f"softhca: clock {clock!r}, allowed are 'virtual' and 'real'")
        self._profile = load_profile(profile)
        self._seed = seed
        self._virtual = clock == "virtual"
        self._cards: list[Hca] = []
        self.path = trace
        self.rules = Rules()
        self._recorder = Recorder(trace, {"clock": clock, "cards": [self._profile.name]})

    def cards(self, count: int, clock: Clock | None = None) -> list[Hca]:
        """Cards of one engine and one fabric, watched and disturbed by what this test has."""
        engine, fabric = Engine(clock or (VirtualClock() if self._virtual else RealClock()), self._seed), Fabric()
        made = [Hca(engine, self._profile.numbered(number), fabric=fabric) for number in range(count)]
        for card in made:
            number = len(self._cards)
            self._cards.append(card)
            card.probe = Probe(engine.clock, number, self._recorder.record, self.rules)
            start(self.rules.rules, number, card.probe, engine.after)
        return made

    def machines(self, count: int) -> list[Machine]:
        """Cards, each in a machine of its own in this process."""
        found = []
        for card in self.cards(count):
            host = LocalHost(MEMORY)
            host.plug(card)
            found.append(Machine(card, host))
        return found

    def fault(self, *given: str | Path) -> list[Rule]:
        """Put rules in force, from lines such as `command=CREATE_CQ status=NO_RESOURCES` or from files.

        Raises:
            RuleError: one is wrong.
        """
        new: list[Rule] = []
        for one in given:
            new += parse_file(one) if isinstance(one, Path) else [parse_line(one, f"fault {one!r}")]
        self.rules.add(new)
        for number, card in enumerate(self._cards):
            card.probe = card.probe  # which points are watched may have changed
            if card.probe is not None:
                start(new, number, card.probe, card.engine.after)
        return new

    def guest(
        self,
        command: str,
        *,
        timeout: float = 300.0,
        copy_in: Sequence[Path] = (),
        packages: Sequence[str] = (),
        allow_kernel: Sequence[str] = (),
        load_modules: bool = True,
        kernel: str = "stable",
    ) -> GuestResult:
        """Run a bash command in a Linux guest with a new card of this test.

        Args:
            command: its working folder has the files of `copy_in`.
            timeout: seconds.
            copy_in: files.
            packages: more packages of the distribution.
            allow_kernel: complaints that are expected: `driver`, `fatal`, or regular expressions.
            load_modules: whether mlx5_core, mlx5_ib and the verbs modules are loaded before.
            kernel: `stable`, `newest` or `VMLINUZ:MODULES_DIR`.
        """
        (card,) = self.cards(1, RealClock())
        options = Options(
            kernel=kernel,
            timeout=timeout,
            copy_in=list(copy_in),
            packages=list(packages),
            allow_kernel=list(allow_kernel),
            load_modules=load_modules,
        )
        nowhere = Streams(lambda data: None, lambda data: None)
        verdict = Run(options, [[Served(card, card.summary)]], [nowhere], silent).carry_out(command)
        (outcome,) = verdict.guests
        return GuestResult(
            outcome.verdict,
            outcome.status,
            outcome.output.decode(errors="replace"),
            outcome.error.decode(errors="replace"),
            tuple(complaint.line for complaint in outcome.complaints),
            tuple(outcome.devices),
        )

    def close(self) -> None:
        """End the recording."""
        for card in self._cards:
            card.probe = None
        self._recorder.close()

    def told(self) -> str:
        """The end of the trace as a story, and where the whole is."""
        self._recorder.flush()
        try:
            trace = Trace(self.path)
            lines = [f"{line.time / 1e6:12.3f} ms  {line.what}" for line in story(trace.events(), lambda event: True)]
            trace.close()
        except TraceError as error:
            return str(error)
        left_out = max(0, len(lines) - SHOWN)
        head = [f"(softhca trace show {self.path} has {left_out} lines more)"] if left_out else [f"({self.path})"]
        return "\n".join([*head, *lines[-SHOWN:]])
