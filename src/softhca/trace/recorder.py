"""Events as lines of JSON.

The first line is a header; each other line is an event: `t` (nanoseconds of the engine's clock), `card`, `function`,
`point`, and the point's fields by name. Numbers that have names stand as names, bytes as hexadecimal digits; of a
command's input and output the fields that are not zero follow under `decoded`. A run on a virtual clock gives the same
bytes each time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from io import BufferedWriter
from pathlib import Path

from softhca import __version__
from softhca.points.catalogue import COMMAND_COMPLETED, COMMAND_RECEIVED, POINTS
from softhca.points.point import Field, Kind, Point
from softhca.points.probe import Value
from softhca.prm import show
from softhca.prm.catalogue import COMMANDS
from softhca.prm.layout import LayoutError
from softhca.prm.opcodes import Opcode

FORMAT = 1
BATCH = 4096
"""Events that are kept before they are written; they are kept no longer than a second before the next one."""
SECOND = 1_000_000_000
MOST_DECODED = 64
"""Decoded fields of a message, at most."""
MOST_TEXT = 4096
"""Bytes of a message or of event data that are written, at most."""

Event = tuple[int, int, int, Point, tuple[Value, ...]]
Writer = Callable[[Value], str]


@lru_cache(maxsize=1024)
def _text(value: Value) -> str:
    return json.dumps(str(value))


def _digits(value: Value) -> str:
    return f'"{value[:MOST_TEXT].hex()}"' if isinstance(value, bytes) else _text(value)


def _flag(value: Value) -> str:
    return "true" if value else "false"


_SPOKEN: dict[Kind, Writer] = {Kind.BYTES: _digits, Kind.TEXT: _text, Kind.FLAG: _flag}


def _named(field: Field) -> Writer:
    names: dict[Value, str] = {} if field.names is None else {int(item): f'"{item.name}"' for item in field.names}
    return lambda value: names.get(value) or str(int(value))


def _writer(field: Field) -> Writer | None:
    """What makes text of a value; None: it is a number as it is."""
    if field.kind is Kind.NAME:
        return _named(field)
    return _SPOKEN.get(field.kind)


def _line(point: Point) -> Callable[[int, int, int, tuple[Value, ...]], str]:
    """What writes the events of a point, all but the brace at the end."""
    writers = [(index, writer) for index, field in enumerate(point.fields) if (writer := _writer(field)) is not None]
    spoken = {index for index, _ in writers}
    fields = "".join(f',"{field.name}":{"%s" if index in spoken else "%d"}' for index, field in enumerate(point.fields))
    template = f'{{"t":%d,"card":%d,"function":%d,"point":"{point.name}"{fields}'

    def line(time: int, card: int, function_id: int, values: tuple[Value, ...]) -> str:
        if writers:
            told = list(values)
            for index, write in writers:
                told[index] = write(told[index])
            values = tuple(told)
        return template % (time, card, function_id, *values)

    return line


_LINES = {point: _line(point) for point in POINTS.values()}


def decoded(opcode: int, message: bytes, *, reply: bool) -> dict[str, int | str]:
    """The fields of a command's message that are not zero, by name; {} when its layout is not known.

    Args:
        opcode: of the command.
        message: its input or output.
        reply: whether it is the output.
    """
    try:
        layout = COMMANDS[Opcode(opcode)][1 if reply else 0]
        view = show.views(layout, message[: max(layout.SIZE, len(message) & ~3)])[0]
    except (ValueError, KeyError, LayoutError):
        return {}
    fields: dict[str, int | str] = {}
    for item in show.decode(view):
        if not item.value or (isinstance(item.value, bytes) and not any(item.value)):
            continue
        if len(fields) >= MOST_DECODED:
            fields["..."] = "more fields are not zero"
            break
        value = item.value.hex() if isinstance(item.value, bytes) else item.value
        fields[item.name] = item.meaning if item.meaning and not item.name.startswith("(") else value
    return fields


class Recorder:
    """Writes events to a file.

    Args:
        path: of the file; what is there is replaced.
        header: what the header says beside the format: cards, clock, seed.

    Raises:
        OSError: the file cannot be written.

    Attributes:
        written: events so far.
        failure: why the recording ended early, or None.
    """

    def __init__(self, path: Path, header: Mapping[str, object]) -> None:
        self._file: BufferedWriter | None = path.open("wb")
        self._events: list[Event] = []
        self._flushed = 0
        self.written = 0
        self.failure: OSError | None = None
        first = {"format": "softhca trace", "version": FORMAT, "softhca": __version__, **header}
        self._file.write(json.dumps(first, separators=(",", ":")).encode() + b"\n")

    def record(self, time: int, card: int, function_id: int, point: Point, values: tuple[Value, ...]) -> None:
        """Take an event; it is written with others later."""
        self._events.append((time, card, function_id, point, values))
        if len(self._events) >= BATCH or time - self._flushed > SECOND:
            self._flushed = time
            self.flush()

    def flush(self) -> None:
        """Write what is kept. When the file cannot take it, the recording ends, and nothing else does."""
        events, self._events = self._events, []
        if self._file is None:
            return
        try:
            self._file.write("".join([_event(event) for event in events]).encode())
            self._file.flush()
            self.written += len(events)
        except OSError as error:
            self._end(error)

    def close(self) -> None:
        """Write what is left and close the file."""
        self.flush()
        self._end(None)

    def _end(self, failure: OSError | None) -> None:
        self.failure = self.failure or failure
        file, self._file = self._file, None
        if file is None:
            return
        try:
            file.close()
        except OSError as error:
            self.failure = self.failure or error


def _event(event: Event) -> str:
    time, card, function_id, point, values = event
    line = _LINES[point](time, card, function_id, values)
    if point is COMMAND_RECEIVED or point is COMMAND_COMPLETED:
        message, opcode = values[-1], values[1]
        if isinstance(message, bytes) and isinstance(opcode, int):
            fields = decoded(opcode, message, reply=point is COMMAND_COMPLETED)
            line += f',"decoded":{json.dumps(fields, separators=(",", ":"))}'
    return f"{line}}}\n"
