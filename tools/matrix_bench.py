"""What the scenarios of guest_matrix.py work with: a guest, its card, its fault rules, and what has to hold."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from softhca.bus import Engine
from softhca.guest.agent import KernelLine
from softhca.guest.options import Options, Served
from softhca.guest.session import Done, Session
from softhca.hca.device import Hca
from softhca.hca.fabric import Fabric
from softhca.hca.profile import load_profile
from softhca.points import Point, Probe
from softhca.points.catalogue import COMMAND_RECEIVED
from softhca.points.probe import Value
from softhca.points.rules import Rules, parse_line

_TOOLS = Path(__file__).resolve().parent
_FILES = ("guest_matrix.sh", "guest_pingpong.sh")
_PREAMBLE = "source ./guest_matrix.sh\n"
TIMEOUT = 2000
"""Milliseconds that the driver waits for a command, and for the firmware, as the card tells it; it adds a second."""
LIMIT = 60.0
"""Seconds that a script may take by default."""
_SETTLE = 0.2
"""Seconds that the card may take to put its books in order."""

Command = tuple[int, int]
"""Opcode and op_mod."""


class Wrong(Exception):
    """A scenario did not go as it should."""


@dataclass
class Recorder:
    """Keeps the commands that a card receives."""

    commands: list[Command] = field(default_factory=list)

    def __call__(self, time: int, card: int, function_id: int, point: Point, values: tuple[Value, ...]) -> None:
        """See :data:`softhca.points.probe.Recorder`."""
        del time, card, function_id
        if point is COMMAND_RECEIVED:
            command, op_mod = values[1], values[2]
            assert isinstance(command, int)
            assert isinstance(op_mod, int)
            self.commands.append((command, op_mod))

    def first(self) -> list[Command]:
        """Each command once, in the order of its first occurrence."""
        return list(dict.fromkeys(self.commands))


class Bench:
    """A guest with a card; a context manager that starts and ends it. The drivers are loaded and not bound.

    Args:
        profile: of the card.

    Attributes:
        card: the card.
        rules: the fault rules of the card.
        recorder: of the card's commands.
        lines: what the guest's kernel has said since :meth:`begin`.
    """

    def __init__(self, profile: str) -> None:
        engine = Engine()
        self.card = Hca(engine, load_profile(profile), fabric=Fabric())
        self.rules = Rules()
        self.recorder = Recorder()
        self.card.segment.use_timeouts(TIMEOUT, TIMEOUT)
        self.card.probe = Probe(engine.clock, record=self.recorder, rules=self.rules)
        self.lines: list[KernelLine] = []
        options = Options(timeout=LIMIT, copy_in=[_TOOLS / name for name in _FILES])
        self.session = Session(options, [[Served(self.card, self.card.summary)]])

    def __enter__(self) -> Bench:
        self.session.__enter__()
        try:
            self.must("load && active && unbind")
        except BaseException:
            self.session.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.session.close()

    def begin(self) -> None:
        """A scenario begins."""
        self.rules.clear()
        self.session.messages()
        self.lines = []

    def fault(self, line: str) -> None:
        """Put a fault rule in, written as for `softhca guest --fault`."""
        self.rules.add([parse_line(line, line)])

    def no_fault(self) -> None:
        """Take the fault rules out.

        Raises:
            Wrong: one of them had no occasion to act.
        """
        idle = [rule.source for rule in self.rules.rules if not rule.fired]
        self.rules.clear()
        if idle:
            raise Wrong(f"nothing happened that the fault {', '.join(idle)} is for")

    def run(self, script: str, timeout: float = LIMIT) -> Done:
        """Run a script with the functions of guest_matrix.sh, and take what the kernel says."""
        try:
            return self.session.run(_PREAMBLE + script, timeout=timeout)
        finally:
            self.lines += self.session.messages()

    def must(self, script: str, timeout: float = LIMIT) -> str:
        """Run a script that has to succeed; its output.

        Raises:
            Wrong: it failed.
        """
        done = self.run(script, timeout)
        if done.status:
            raise Wrong(f"{script.strip()}: {done.output.strip() or f'status {done.status}'}")
        return done.output

    def works(self, script: str = "bind") -> None:
        """Bring the port up, show that it is, and unbind; the card is clean then.

        Raises:
            Wrong: it is not so.
        """
        self.must(f"{script} || {{ echo {script} failed; exit 1; }}; active && unbind")
        self.expect_clean("after the next unbind")

    def expect_clean(self, when: str) -> None:
        """The card has no object and no page of the host.

        Raises:
            Wrong: it has.
        """
        self.session.serve(_SETTLE)
        pages, objects = len(self.card.function.icm.pages), self.card.function.objects()
        if pages or objects:
            raise Wrong(f"{when} the card holds {pages} pages and {objects}")

    def said(self, pattern: str) -> list[str]:
        """The first groups of all lines of the kernel, since the scenario began, that match."""
        return [match[1] for line in self.lines if (match := re.search(pattern, line.text))]
