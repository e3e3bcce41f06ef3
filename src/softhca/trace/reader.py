"""Reads a trace again, line by line."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from softhca.trace.recorder import FORMAT

MOST_LINE = 1 << 20
"""Bytes of a line, at most."""
_OWN = ("t", "card", "function", "point")
_LOOK_AGAIN = 0.1


class TraceError(ValueError):
    """A file that is no trace; the text names file and line."""


@dataclass(frozen=True)
class Event:
    """A line of a trace.

    Attributes:
        time: nanoseconds.
        card, function: whose.
        point: name of the point.
        fields: what it carries.
    """

    time: int
    card: int
    function: int
    point: str
    fields: Mapping[str, Any]


class Trace:
    """An open trace.

    Args:
        path: of the file.

    Raises:
        TraceError: it cannot be read, or is none.

    Attributes:
        header: the first line.
        cut: the last line had no end: the recording was cut off.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._line = 1
        self.cut = False
        try:
            self._file: BufferedReader = path.open("rb")
        except OSError as error:
            raise TraceError(f"{path}: {error.strerror or error}") from error
        line = self._next()
        self.header: Mapping[str, Any] = self._parse(line) if line else {}
        if self.header.get("format") != "softhca trace":
            raise TraceError(f"{path}, line 1: not the header of a trace of softhca")
        if self.header.get("version") != FORMAT:
            raise TraceError(f"{path}, line 1: version {self.header.get('version')!r}, this reads {FORMAT}")

    def events(self, *, follow: bool = False) -> Iterator[Event]:
        """Every event in order; with `follow` for ever, waiting for more at the end.

        Raises:
            TraceError: a line is no event.
        """
        while True:
            line = self._next()
            if line:
                self._line += 1
                yield self._event(self._parse(line))
            elif not follow:
                return
            else:
                time.sleep(_LOOK_AGAIN)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _next(self) -> bytes:
        """A whole line; nothing at the end, or while the last line has no end yet."""
        start = self._file.tell()
        line = self._file.readline(MOST_LINE)
        if line.endswith(b"\n"):
            return line
        if len(line) >= MOST_LINE:
            raise TraceError(f"{self._path}, line {self._line}: longer than {MOST_LINE} bytes")
        self.cut = bool(line)
        self._file.seek(start)
        return b""

    def _parse(self, line: bytes) -> Mapping[str, Any]:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise TraceError(f"{self._path}, line {self._line}: {error}") from error
        if not isinstance(found, dict):
            raise TraceError(f"{self._path}, line {self._line}: not an object")
        return found

    def _event(self, found: Mapping[str, Any]) -> Event:
        own = [found.get(key) for key in _OWN]
        when, card, function, point = own
        if not (isinstance(when, int) and isinstance(card, int) and isinstance(function, int)):
            raise TraceError(f"{self._path}, line {self._line}: t, card and function have to be numbers")
        if not isinstance(point, str):
            raise TraceError(f"{self._path}, line {self._line}: point has to be a name")
        return Event(when, card, function, point, {key: value for key, value in found.items() if key not in _OWN})
