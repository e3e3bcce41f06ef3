"""`softhca run`: device and driver in one process, told as a story."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from softhca.cli import DEFAULT_PROFILE
from softhca.cli.signals import terminable
from softhca.cli.watch import Observation, observed, observing

if TYPE_CHECKING:
    from softhca.driver import Driver, Stage
    from softhca.driver.cq import CompletionQueue
    from softhca.driver.driver import RegisteredMemory
    from softhca.driver.qp import QueuePair
    from softhca.hca.device import Hca

MEMORY = 64 << 20
WRITE_BYTES = 64 << 10
SEND_BYTES = 4 << 10
AT_ONCE = 8
"""Commands in flight at a time, to show that they overtake each other."""
SECOND = 1_000_000_000


@dataclass
class Story:
    """What a run did so far.

    Attributes:
        profile: name of the card.
        seed: decides the device's order of work, and the payload.
        told: what is called for each stage as it completes.
    """

    profile: str
    seed: int
    told: Callable[[Stage], None]
    stages: list[Stage] = field(default_factory=list)
    writes: int = 0
    sends: int = 0
    bytes: int = 0
    verified: bool = False
    given: int = 0
    returned: int = 0
    outstanding: int = 0

    @property
    def ok(self) -> bool:
        """Whether all data arrived and every page came back."""
        return self.verified and self.outstanding == 0

    def tell(self, stage: Stage) -> None:
        """Take note of a completed stage."""
        self.stages.append(stage)
        self.told(stage)

    def to_json(self, *, ok: bool) -> dict[str, Any]:
        """The document that `--json` prints."""
        return {
            "profile": self.profile,
            "ok": ok,
            "stages": [
                {"name": stage.name, "commands": len(stage.commands), "ms": round(stage.nanoseconds / 1e6, 3)}
                for stage in self.stages
            ],
            "commands": sum(len(stage.commands) for stage in self.stages),
            "rdma": {"writes": self.writes, "sends": self.sends, "bytes": self.bytes, "verified": self.verified},
            "pages": {"given": self.given, "returned": self.returned, "outstanding": self.outstanding},
        }


@dataclass
class Objects:
    """What moves the data: two connected QPs of one device, a CQ each, and memory on each side."""

    cqs: list[CompletionQueue]
    qps: list[QueuePair]
    source: RegisteredMemory
    target: RegisteredMemory


def build_card(profile: str, seed: int, clock: str) -> Hca:
    """A card with an engine of its own.

    Raises:
        click.ClickException: there is no such profile.
    """
    from softhca.bus import Engine, RealClock, VirtualClock
    from softhca.hca.device import Hca
    from softhca.hca.profile import load_profile

    engine = Engine(VirtualClock() if clock == "virtual" else RealClock(), seed)
    try:
        return Hca(engine, load_profile(profile))
    except (ValueError, FileNotFoundError) as error:
        raise click.ClickException(f"--profile: {error}") from error


def build_driver(card: Hca) -> Driver:
    """A machine with a card in it, and a driver that has not begun."""
    from softhca.bus.local import LocalHost
    from softhca.driver import Driver

    machine = LocalHost(MEMORY)
    machine.plug(card)
    return Driver(card, machine)


def play(driver: Driver, story: Story) -> None:
    """The whole life of a card: bring-up, objects, data, close.

    Raises:
        DriverError, MemoryError: a step failed; what was reached has been undone as far as the device allows.
    """
    from softhca.driver import DriverError, bring_up, roll_back
    from softhca.driver.bringup import measure

    def part(name: str, proves: str, function: Callable[[Driver], str]) -> None:
        story.tell(measure(driver, name, proves, function))

    try:
        bring_up(driver, story.tell)
        objects: list[Objects] = []
        part("objects", "CQs, MKeys and two QPs exist and the QPs are connected", lambda d: _create(d, objects))
        part(
            "rdma write",
            "memory of the peer was written, and nothing else told it",
            lambda d: _write(d, objects[0], story),
        )
        part("send", "a message found the receive that was posted for it", lambda d: _send(d, objects[0], story))
        part(
            "queries",
            "commands that one doorbell submits run and complete in any order",
            lambda d: _query_at_once(d, objects[0]),
        )
        part("close", "the device is closed and every page is accounted for", lambda d: _close(d))
    except (DriverError, MemoryError):
        try:
            roll_back(driver)
        except DriverError as error:
            click.echo(f"Undoing it failed too: {error}", err=True)
        raise
    finally:
        story.given, story.returned, story.outstanding = driver.account


def _create(driver: Driver, objects: list[Objects]) -> str:
    pd = driver.create_pd()
    source, target = driver.register_memory(pd, WRITE_BYTES), driver.register_memory(pd, WRITE_BYTES)
    cqs = [driver.create_cq(), driver.create_cq()]
    qps = [driver.create_qp(pd, cq, cq) for cq in cqs]
    qps[0].connect(qps[1].endpoint)
    qps[1].connect(qps[0].endpoint)
    objects.append(Objects(cqs, qps, source, target))
    return f"QPs {qps[0].number:#x} and {qps[1].number:#x} in RTS, keys {source.key:#x} and {target.key:#x}"


def _write(driver: Driver, objects: Objects, story: Story) -> str:
    source, target, cq = objects.source, objects.target, objects.cqs[0]
    data = random.Random(story.seed).randbytes(WRITE_BYTES)
    source.view[:] = data
    cq.arm()
    objects.qps[0].post_write(source.region, 0, WRITE_BYTES, target.address, target.key)
    driver.engine.wait(lambda: cq.events > 0, SECOND)
    cq.wait(SECOND).check()
    story.writes += 1
    _verify(target.view, data, story)
    return f"{WRITE_BYTES} bytes, checked byte for byte; completion found by event and interrupt"


def _send(driver: Driver, objects: Objects, story: Story) -> str:
    source, target = objects.source, objects.target
    data = random.Random(story.seed + 1).randbytes(SEND_BYTES)
    source.view[:SEND_BYTES] = data
    target.view[:] = bytes(len(target.view))
    objects.qps[1].post_receive(target.region, 0, SEND_BYTES)
    objects.qps[0].post_send(source.region, 0, SEND_BYTES)
    received = objects.cqs[1].wait(SECOND).check()
    objects.cqs[0].wait(SECOND).check()
    story.sends += 1
    _verify(target.view[:SEND_BYTES], data, story)
    return f"{received.byte_count} bytes, checked byte for byte; completions found by polling"


def _query_at_once(driver: Driver, objects: Objects) -> str:
    """Snapshots of both QPs, again and again, with one doorbell."""
    from softhca.prm.opcodes import Opcode
    from softhca.prm.qp import QueryQpIn, QueryQpOut

    channel = driver.channel
    order: list[int] = []

    def completed(turn: int, reply: QueryQpOut) -> None:
        del reply
        order.append(turn)

    qpns = [objects.qps[turn % 2].number for turn in range(AT_ONCE)]
    submissions = [
        channel.prepare(Opcode.QUERY_QP, QueryQpIn.new(qpn=qpn), QueryQpOut, apply=partial(completed, turn))
        for turn, qpn in enumerate(qpns)
    ]
    channel.ring(*submissions)
    for submission in submissions:
        channel.finish(submission)
    return f"{AT_ONCE} QUERY_QP in flight, completed in the order {' '.join(map(str, order))}"


def _verify(view: memoryview, data: bytes, story: Story) -> None:
    from softhca.driver import DriverError

    if bytes(view) != data:
        story.verified = False
        wrong = next(at for at, (is_, was) in enumerate(zip(view, data, strict=True)) if is_ != was)
        raise DriverError(f"data: byte {wrong} of {len(data)} is {view[wrong]:#04x}, {data[wrong]:#04x} was sent")
    story.verified = True
    story.bytes += len(data)


def _close(driver: Driver) -> str:
    from softhca.driver import close

    closed = close(driver)
    return f"{closed.reclaimed} pages came back, {closed.outstanding} outstanding"


@click.command()
@click.option(
    "--profile",
    default=DEFAULT_PROFILE,
    show_default=True,
    metavar="NAME|FILE.toml",
    help="Which card to be (a name that does not exist lists all).",
)
@click.option("--seed", default=0, show_default=True, help="Decides the order of the device's work and the payload.")
@click.option(
    "--clock",
    type=click.Choice(["real", "virtual"]),
    default="real",
    show_default=True,
    help="Virtual: time passes only while the device is idle, so that runs of one seed are alike.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of the story.")
@observed
def run(profile: str, seed: int, clock: str, as_json: bool, observation: Observation) -> None:
    """Bring a card up, move data, close it, in this process.

    Shows each step with the commands that it runs, what its success proves, and the memory pages that it gives to the
    device. The last line says how many pages the device did not give back: 0.

    \b
    softhca run
    softhca run --profile connectx-7-eth --seed 7 --clock virtual --json

    Exit status: 0, or 1 when a step fails, data differ, or a page stays out.
    """  # noqa: D301
    from softhca.driver import DriverError

    card = build_card(profile, seed, clock)
    story = Story(profile, seed, _traced(card, _quiet if as_json else _teller(profile, seed, clock)))
    failure: Exception | None = None
    try:
        with terminable(), observing(observation, [card]):
            play(build_driver(card), story)
    except (DriverError, MemoryError) as error:
        failure = error
    ok = story.ok and failure is None
    if as_json:
        click.echo(json.dumps(story.to_json(ok=ok), indent=2))
    elif failure is None:
        _end(story)
    if failure is not None:
        raise click.ClickException(str(failure)) from failure
    if not ok:
        raise click.ClickException(f"{story.outstanding} pages are still the device's")


def _traced(card: Hca, told: Callable[[Stage], None]) -> Callable[[Stage], None]:
    """Tell of a stage, and let the trace have it too."""
    from softhca.points.catalogue import DRIVER_STAGE

    def tell(stage: Stage) -> None:
        told(stage)
        if card.probe is not None:
            card.probe.hit(DRIVER_STAGE, 0, stage.name, stage.nanoseconds, stage.note)

    return tell


def _quiet(stage: Stage) -> None:
    """Say nothing: the JSON document comes at the end."""


def _teller(profile: str, seed: int, clock: str) -> Callable[[Stage], None]:
    """Print the head line; give what prints a stage."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"[bold]{profile}[/bold] and its driver in one process, seed {seed}, {clock} clock\n")
    number = 0

    def tell(stage: Stage) -> None:
        nonlocal number
        number += 1
        given = f", [yellow]{stage.pages} pages given[/yellow]" if stage.pages else ""
        console.print(
            f"[bold]{number:2}  {stage.name}[/bold]: {stage.note}{given} [dim]{stage.nanoseconds / 1e6:.2f} ms[/dim]"
        )
        if stage.commands:
            console.print(f"    [cyan]{_commands(stage)}[/cyan]")
        console.print(f"    [green]proves:[/green] {stage.proves}")

    return tell


def _commands(stage: Stage) -> str:
    """Names in order, runs of one command counted."""
    runs: list[tuple[str, int]] = []
    for opcode in stage.commands:
        if runs and runs[-1][0] == opcode.name:
            runs[-1] = (opcode.name, runs[-1][1] + 1)
        else:
            runs.append((opcode.name, 1))
    return ", ".join(name if count == 1 else f"{name} x{count}" for name, count in runs)


def _end(story: Story) -> None:
    total = sum(len(stage.commands) for stage in story.stages)
    click.echo(
        f"\n{total} commands, {story.bytes} bytes moved and verified; {story.given} pages given, "
        f"{story.returned} returned, {story.outstanding} pages outstanding"
    )
