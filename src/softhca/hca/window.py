"""Windows on memory behind keys: what the fast loop knows of the key that it used last (G4)."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from softhca.bus import DmaFault, Mapping
from softhca.hca.memory import Pointer, views_of
from softhca.hca.translation import CHANGES

if TYPE_CHECKING:
    from softhca.bus import DmaSpace
    from softhca.hca.function import Function
    from softhca.hca.mkey import KeyUser, Right

_NOWHERE = Mapping(0, memoryview(b""), False)
CLOSED = -1
"""No key has this number."""
Pane = tuple[int, int, int, int, Mapping]
"""Key; first HCA virtual address and the one behind the last; what to add to an address to have its place in the
mapping's memory; that mapping."""
SHUT: Pane = (CLOSED, 0, 0, 0, _NOWHERE)


class Window:
    """Finds memory that lies in one piece: behind a key, on the bus and in a mapping.

    What it knows holds until some key changes, or the DMA map.

    Args:
        fn: whose keys and memory.
        right: what is to be done there, a :class:`softhca.hca.mkey.Right`.
        user: on whose behalf.
        write: it is to be written to.
    """

    __slots__ = (
        "_changes",
        "_delta",
        "_dma",
        "_end",
        "_fn",
        "_generation",
        "_key",
        "_length",
        "_log_page",
        "_mapping",
        "_offsets",
        "_right",
        "_run_of",
        "_runs",
        "_start",
        "_targets",
        "_user",
        "_write",
        "pane",
    )

    _delta: int
    _dma: DmaSpace
    _end: int
    _length: int
    _log_page: int
    _offsets: array[int]
    _run_of: array[int] | None
    _runs: int
    _start: int
    _targets: array[int]

    def __init__(self, fn: Function, right: Right, user: KeyUser, *, write: bool) -> None:
        self._fn = fn
        self._right = right
        self._user = user
        self._write = write
        self._generation = self._changes = CLOSED
        self.pane = SHUT
        """What :meth:`find` found last; :meth:`look` tells whether it still holds."""

    def look(self) -> Pane:
        """What was found last, if it still holds; to be called before each drain."""
        dma = self._dma = self._fn.device.dma
        if self._changes != CHANGES.count or self._generation != dma.generation:
            self._changes, self._generation = CHANGES.count, dma.generation
            self._key = CLOSED
            self._mapping = _NOWHERE
            self.pane = SHUT
        return self.pane

    def views(self, key: int, address: int, length: int) -> list[memoryview]:
        """Views of memory that may lie in several pieces.

        Raises:
            KeyViolation: the key does not open it.
        """
        return views_of(self._fn, Pointer(key, address, length), self._right, self._user)

    def _open(self, key: int) -> bool:
        """Look at another key, once: its rights cannot change while the window lives."""
        self._key = CLOSED
        found = self._fn.mkeys.find(key >> 8)
        if found is None or found.key != key & 0xFF:
            return False
        opened = found.opened(self._right, self._user)
        if opened is None:
            return False
        self._start, self._length, shift, runs = opened
        self._offsets, self._targets, self._run_of, self._log_page, self._end = runs
        self._runs = len(self._offsets)
        self._delta = shift - self._start
        self._key = key
        return True

    def find(self, key: int, address: int, length: int) -> Pane | None:
        """The addresses around some, as far as they lie in one piece.

        None when `length` bytes at `address` do not, or the key does not open them: the general path finds out.
        """
        if key != self._key and not self._open(key):
            return None
        start = self._start
        if address < start or length > start + self._length - address:
            return None
        delta, offsets, end = self._delta, self._offsets, self._end
        at = address + delta  # from the start of the key's pages
        if length > end - at:
            return None
        run = 0
        if self._runs > 1:
            run = at >> self._log_page
            if self._run_of is not None:
                run = self._run_of[run]
            if run + 1 < self._runs:
                end = offsets[run + 1]
                if length > end - at:
                    return None
        first = offsets[run]
        lift = self._targets[run] - first  # from there to the IOVA
        mapping = self._mapping
        if at + lift < mapping.start or length > mapping.end - lift - at:
            try:
                mapping = self._mapping = self._dma.mapping(at + lift, length, write=self._write)
            except DmaFault:
                return None
        low, high = mapping.start - lift, mapping.end - lift
        low = (first if first > low else low) - delta
        high = (end if end < high else high) - delta
        last = start + self._length
        self.pane = (
            key,
            low if low > start else start,
            high if high < last else last,
            lift + delta - mapping.start,
            mapping,
        )
        return self.pane
