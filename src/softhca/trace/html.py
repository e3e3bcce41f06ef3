"""A trace as one HTML page that needs nothing else: a sequence diagram, commands, pages, what failed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from softhca.trace.commands import COMPLETED, RECEIVED, Command, Pairing
from softhca.trace.reader import Event, Trace
from softhca.trace.story import duration

MOST_ARROWS = 400
"""Arrows of the sequence diagram; it is of the beginning of a trace."""
MOST_COMMANDS = 20_000
MOST_STEPS = 2_000
"""Points of the line of pages."""
ROW = 22
"""Pixels between two arrows."""
_TOP = 40
_ARROWS = {
    "eqe": ("device", "memory", "event {event}"),
    "interrupt": ("device", "driver", "interrupt {vector}"),
    "cqe": ("device", "memory", "completion of QP {qpn}"),
    "pages.given": ("driver", "device", "{pages} pages"),
    "pages.returned": ("device", "driver", "{pages} pages"),
    "pages.asked": ("device", "driver", "asks for {pages} pages"),
}
_LANES = {"driver": 130, "device": 470, "memory": 810}


@dataclass(frozen=True)
class Arrow:
    """A row of the sequence diagram: an arrow, or a note across all lanes.

    Attributes:
        y: pixels.
        left, right: where it begins and ends.
        text, kind: what it says, and of what kind it is.
        time: nanoseconds since the beginning.
    """

    y: int
    left: int
    right: int
    text: str
    kind: str
    time: int


@dataclass
class Contents:
    """What the page shows."""

    first: int | None = None
    last: int = 0
    events: int = 0
    arrows: list[Arrow] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    pages: list[tuple[int, int]] = field(default_factory=list)
    notes: list[tuple[int, str, str]] = field(default_factory=list)

    @property
    def failed(self) -> list[Command]:
        """Commands that failed, and those that never completed."""
        return [command for command in self.commands if command.failed or command.end is None]


def report(trace: Trace) -> str:
    """The page.

    Raises:
        TraceError: a line of the trace is no event.
    """
    contents = _gather(trace.events())
    environment = Environment(
        loader=PackageLoader("softhca.trace", "data"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["duration"] = lambda value: "" if value is None else duration(value)
    return environment.get_template("report.html.j2").render(
        header=trace.header,
        contents=contents,
        lanes=_LANES,
        height=_TOP + ROW * (len(contents.arrows) + 1),
        line=_page_line(contents),
        most_pages=max((pages for _, pages in contents.pages), default=0),
    )


def _gather(events: Iterable[Event]) -> Contents:
    contents, pairing = Contents(), Pairing()
    pages: dict[tuple[int, int], int] = {}
    for event in events:
        contents.events += 1
        contents.first = event.time if contents.first is None else contents.first
        contents.last = event.time
        command = pairing.take(event)
        if command is not None and event.point == RECEIVED and len(contents.commands) < MOST_COMMANDS:
            contents.commands.append(command)
        if len(contents.arrows) < MOST_ARROWS:
            arrow = _arrow(event, command, contents)
            if arrow is not None:
                contents.arrows.append(arrow)
        if event.point in ("health", "reset", "driver.stage", "stage") and len(contents.notes) < MOST_STEPS:
            contents.notes.append((event.time - contents.first, event.point, _told(event)))
        _count_pages(event, pages, contents)
    return contents


def _count_pages(event: Event, pages: dict[tuple[int, int], int], contents: Contents) -> None:
    count = event.fields.get("pages")
    if event.point not in ("pages.given", "pages.returned") or not isinstance(count, int):
        return
    key = (event.card, event.function)
    pages[key] = pages.get(key, 0) + (count if event.point == "pages.given" else -count)
    if len(contents.pages) < MOST_STEPS:
        contents.pages.append((event.time - (contents.first or 0), sum(pages.values())))


def _arrow(event: Event, command: Command | None, contents: Contents) -> Arrow | None:
    y, time = _TOP + ROW * (len(contents.arrows) + 1), event.time - (contents.first or 0)
    if command is not None and event.point == RECEIVED:
        return Arrow(y, _LANES["driver"], _LANES["device"], f"{command.opcode} (slot {command.slot})", "command", time)
    if command is not None and event.point == COMPLETED:
        kind = "failed" if command.failed else "answer"
        text = f"{command.opcode}: {command.result}"
        return Arrow(y, _LANES["device"], _LANES["driver"], text, kind, time)
    if event.point in _ARROWS:
        left, right, text = _ARROWS[event.point]
        return Arrow(y, _LANES[left], _LANES[right], _filled(text, event.fields), "event", time)
    if event.point in ("health", "reset", "driver.stage", "stage"):
        return Arrow(y, 0, 0, _told(event), "note", time)
    return None


def _filled(text: str, fields: Any) -> str:
    try:
        return text.format_map(fields)
    except (KeyError, ValueError, IndexError, AttributeError, TypeError):
        return text


def _told(event: Event) -> str:
    return ", ".join(str(value) for key, value in event.fields.items() if key != "took")


def _page_line(contents: Contents) -> str:
    """Points of an SVG line of 880 by 100 pixels: pages over the order of their changes."""
    steps = contents.pages
    most = max((pages for _, pages in steps), default=0)
    if not steps or not most:
        return ""
    width = 880 / len(steps)
    points, level = ["0,100"], 100.0
    for number, (_, pages) in enumerate(steps):
        points.append(f"{number * width:.1f},{level:.1f}")
        level = 100 - 100 * pages / most
        points.append(f"{number * width:.1f},{level:.1f}")
    points.append(f"880,{level:.1f}")
    return " ".join(points)
