"""What becomes of a command's output on its way: lines of several guests are told apart, and its end is kept."""

from __future__ import annotations

from softhca.guest.agent import Sink

MAX_KEPT = 1 << 20
"""Bytes of a command's output that a verdict shows: the last ones."""
_LONG_LINE = 64 << 10


class Prefixed:
    """Passes on whole lines with a prefix, so that those of several sources do not mix.

    A line that is longer than 64 KiB is passed on in parts, each with the prefix and an end of line.

    Args:
        sink: takes them.
        prefix: of each line.
    """

    def __init__(self, sink: Sink, prefix: bytes) -> None:
        self._sink = sink
        self._prefix = prefix
        self._rest = b""

    def __call__(self, data: bytes) -> None:
        """Take a piece."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if lines:
            self._sink(b"".join(self._prefix + line + b"\n" for line in lines))
        if len(self._rest) > _LONG_LINE:
            self.flush()

    def flush(self) -> None:
        """Pass on a line that has no end."""
        if self._rest:
            self._sink(self._prefix + self._rest + b"\n")
            self._rest = b""


class Kept:
    """Passes on, and keeps the end.

    Args:
        sink: takes all.
        most: bytes that are kept.
    """

    def __init__(self, sink: Sink, most: int = MAX_KEPT) -> None:
        self._sink = sink
        self._most = most
        self._data = bytearray()

    def __call__(self, data: bytes) -> None:
        """Take a piece."""
        self._sink(data)
        self._data += data
        if len(self._data) > 2 * self._most:
            del self._data[: -self._most]

    @property
    def end(self) -> bytes:
        """The last bytes that came."""
        return bytes(self._data[-self._most :])
