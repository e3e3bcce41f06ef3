"""A trace as a story: a line for each thing that happened, for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from softhca.trace.commands import COMPLETED, RECEIVED, Command, Pairing
from softhca.trace.reader import Event

SHOWN = 6
"""Decoded fields of a command that its line shows."""
_HEADERS = ("opcode", "op_mod", "status", "syndrome", "uid")


@dataclass(frozen=True)
class Line:
    """A line of the story.

    Attributes:
        time: nanoseconds since the first event.
        where: card, function and slot or queue, as far as there are several.
        what: the text.
        kind: for its colour: stage, command, failed, event, page, data, health.
    """

    time: int
    where: str
    what: str
    kind: str


def story(events: Iterable[Event], wanted: Callable[[Event], bool], *, failed: bool = False) -> Iterator[Line]:
    """The lines of events, in order.

    Args:
        events: of a trace.
        wanted: which of them are told; commands are put together all the same.
        failed: tell of commands that failed, and of nothing else.
    """
    pairing = Pairing()
    first: int | None = None
    for event in events:
        first = event.time if first is None else first
        command = pairing.take(event)
        if not wanted(event) or (failed and (command is None or not command.failed)):
            continue
        what, kind = _told(event, command)
        yield Line(event.time - first, f"{event.card}.{event.function}", what, kind)


def _told(event: Event, command: Command | None) -> tuple[str, str]:
    fields = event.fields
    if command is not None and event.point == RECEIVED:
        return f"slot {command.slot:2} > {command.opcode}{_modifier(command)}{_summary(command.input)}", "command"
    if command is not None and event.point == COMPLETED:
        return _completed(command)
    teller = _TELLERS.get(event.point)
    if teller is None:
        return f"{event.point} {_rest(fields)}", "data"
    text, kind = teller
    try:
        return text.format_map(fields), kind
    except (KeyError, ValueError, IndexError, TypeError, AttributeError):
        return f"{event.point} {_rest(fields)}", kind


def _completed(command: Command) -> tuple[str, str]:
    took = "" if command.took is None else f" in {duration(command.took)}"
    head = f"slot {command.slot:2} < {command.opcode}{took}"
    if not command.failed:
        return f"{head}{_summary(command.output or {})}", "command"
    why = f": {command.why}" if command.why else ""
    return f"{head} FAILED: {command.result}, syndrome {command.syndrome:#010x}{why}", "failed"


def _modifier(command: Command) -> str:
    return f" op_mod {command.op_mod:#x}" if command.op_mod else ""


def _summary(fields: Mapping[str, Any]) -> str:
    items = [(key, value) for key, value in fields.items() if key not in _HEADERS]
    text = ", ".join(f"{key} {_short(value)}" for key, value in items[:SHOWN])
    more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return f"  {text}{more}" if text else ""


def _short(value: object) -> str:
    if isinstance(value, int):
        return str(value) if value < 10 else f"{value:#x}"
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _rest(fields: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {_short(value)}" for key, value in fields.items())


def duration(nanoseconds: int) -> str:
    """With the unit that suits it."""
    for unit, size in (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds} ns"


_TELLERS: dict[str, tuple[str, str]] = {
    "driver.stage": ("== {name}: {note}", "stage"),
    "pages.asked": ("the device asks for {pages} pages", "page"),
    "pages.given": ("{pages} pages are given", "page"),
    "pages.returned": ("{pages} pages are returned", "page"),
    "icm.taken": ("{bytes} bytes of ICM are taken", "page"),
    "eqe": ("EQ {eqn} gets an event {event}.{sub_type}", "event"),
    "interrupt": ("interrupt {vector}", "event"),
    "cqe": (
        "CQ {cqn} gets a completion of QP {qpn}: WQE {wqe_counter}, {byte_count} bytes, syndrome {syndrome}",
        "data",
    ),
    "packet": ("QP {qpn} to QP {remote_qpn}: {operation}, PSN {psn}, {packets} packets, {bytes} bytes", "data"),
    "dma": ("DMA at {iova:#x}, {length} bytes, write {write}", "data"),
    "health": ("HEALTH: {health}, details {extended}", "health"),
    "reset": ("RESET: {reset}", "health"),
    "stage": ("the function is {stage} now", "stage"),
}
