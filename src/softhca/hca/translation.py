"""What is behind a memory key: pages by address, or ranges of other keys (G4)."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import dataclass

from softhca.hca.errors import KeyViolation
from softhca.prm.syndromes.completion import VendorSyndrome

Span = tuple[int, int]
"""IOVA and length (bytes) of memory behind a key."""
Range = tuple[int, int, int]
"""Key, address and length (bytes) of a part of an indirect key."""

PRESENT = 0b11
"""Bits of a translation entry that are no address: [1] write, [0] read are enabled; without both it is not present."""
MTT_FLAGS = 0x7
_WRITE = 0b10


class PageTable:
    """Pages of one size, by address.

    Pages that follow each other are merged: translation keeps runs (offset in the key's pages -> IOVA), in most cases
    a single one. Entries that are loaded bit by bit are kept and merged again when they are next used.

    Args:
        pages: addresses; all are present.
        log_page_size: log2 of a page in bytes.
    """

    __slots__ = ("_count", "_entries", "_log_page", "_offsets", "_rights", "_stale", "_targets")

    def __init__(self, pages: array[int], log_page_size: int) -> None:
        self._log_page = log_page_size
        self._count = len(pages)
        self._entries: array[int] | None = None
        self._rights: bytearray | None = None
        self._stale = False
        self._offsets, self._targets = _merge(pages, log_page_size)

    def resize(self, log_page_size: int) -> None:
        """Take the entries as pages of another size."""
        if log_page_size != self._log_page:
            self._expand()
            self._log_page = log_page_size
            self._stale = True

    def load(self, first: int, entries: array[int], *, keep: bool) -> None:
        """Replace entries (address and :data:`PRESENT` bits) from number `first` on.

        Args:
            first: number of the first one.
            entries: what to put there.
            keep: entries behind them are kept, else forgotten.
        """
        own = self._expand()
        if len(own) < first:
            own.extend([0] * (first - len(own)))
        own[first : first + len(entries) if keep else len(own)] = entries
        self._count = len(own)
        self._stale = True

    def _expand(self) -> array[int]:
        """The entries one by one."""
        if self._entries is None:
            page = 1 << self._log_page
            ends = [*self._offsets[1:], self._count << self._log_page][: len(self._offsets)]
            own = array("Q")
            for start, target, end in zip(self._offsets, self._targets, ends, strict=True):
                own.extend(range(target | PRESENT, (target | PRESENT) + end - start, page))
            self._entries = own
        return self._entries

    def _rebuild(self) -> None:
        page = 1 << self._log_page
        offsets, targets, rights = array("Q"), array("Q"), bytearray()
        following, mark = -1, -1
        for index, entry in enumerate(self._entries or ()):
            address, present = entry & ~MTT_FLAGS, entry & PRESENT
            if address != following or present != mark:
                offsets.append(index << self._log_page)
                targets.append(address)
                rights.append(present)
            following, mark = address + page, present
        self._offsets, self._targets = offsets, targets
        self._rights = None if all(right == PRESENT for right in rights) else rights
        self._stale = False

    def translate(self, offset: int, length: int, *, write: bool) -> list[Span]:
        """Where `length` bytes from byte `offset` of the first page are, in order.

        Raises:
            KeyViolation: some page is missing, not present, or not to be written.
        """
        if self._stale:
            self._rebuild()
        if offset + length > self._count << self._log_page:
            raise KeyViolation(VendorSyndrome.KEY_NOT_PRESENT)
        offsets, targets, rights = self._offsets, self._targets, self._rights
        if rights is None and len(targets) == 1:
            return [(targets[0] + offset, length)]
        at = bisect_right(offsets, offset) - 1
        end_of_all = self._count << self._log_page
        found: list[Span] = []
        while length:
            if rights is not None and (rights[at] & PRESENT if not write else rights[at] & _WRITE) == 0:
                raise KeyViolation(VendorSyndrome.KEY_NOT_PRESENT)
            end = offsets[at + 1] if at + 1 < len(offsets) else end_of_all
            step = min(length, end - offset)
            found.append((targets[at] + offset - offsets[at], step))
            offset += step
            length -= step
            at += 1
        return found


def _merge(pages: array[int], log_page_size: int) -> tuple[array[int], array[int]]:
    """Runs of pages that follow each other: their offsets from the first page, and their addresses."""
    offsets, targets = array("Q"), array("Q")
    page = 1 << log_page_size
    following = -1
    for index, entry in enumerate(pages):
        address = entry & ~MTT_FLAGS
        if address != following:
            offsets.append(index << log_page_size)
            targets.append(address)
        following = address + page
    return offsets, targets


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of an indirect key.

    Attributes:
        length: bytes (KLM); not looked at when all entries have one size (KSM).
        key: the key that it refers to.
        address: where in that key it begins.
    """

    length: int
    key: int
    address: int


class KeyTable:
    """Ranges of other keys, one after the other.

    Args:
        entries: the ranges.
        log_entity_size: log2 of the bytes of each (KSM), or None: each has a length of its own, and an empty one
            takes no part (KLM).
    """

    __slots__ = ("_entity", "_entries", "_starts", "_used")

    def __init__(self, entries: list[Entry], log_entity_size: int | None) -> None:
        self._entries = entries
        self._entity = log_entity_size
        self._used: list[Entry] | None = None
        self._starts = array("Q")

    @property
    def entries(self) -> list[Entry]:
        """The entries, as they were given."""
        return self._entries

    def resize(self, log_entity_size: int) -> None:
        """Give all entries another size (KSM); nothing for KLM."""
        if self._entity is not None:
            self._entity = log_entity_size

    def load(self, first: int, entries: list[Entry], *, keep: bool) -> None:
        """As :meth:`PageTable.load`."""
        own = self._entries
        own.extend([Entry(0, 0, 0)] * (first - len(own)))
        own[first : first + len(entries) if keep else len(own)] = entries
        self._used = None

    def _lengths(self) -> list[Entry]:
        if self._used is None:
            self._used = [entry for entry in self._entries if entry.length]
            starts, start = array("Q"), 0
            for entry in self._used:
                starts.append(start)
                start += entry.length
            starts.append(start)
            self._starts = starts
        return self._used

    def translate(self, offset: int, length: int, most: int) -> list[Range]:
        """The ranges that `length` bytes from byte `offset` on are in, in order.

        Args:
            offset: from the start of the first entry, bytes.
            length: bytes.
            most: with more ranges the access is refused.

        Raises:
            KeyViolation: the entries end before, or it takes too many of them.
        """
        found: list[Range] = []
        entity = self._entity
        used = self._entries if entity is not None else self._lengths()
        at = offset >> entity if entity is not None else bisect_right(self._starts, offset, 0, len(used)) - 1
        while length:
            if not 0 <= at < len(used):
                raise KeyViolation(VendorSyndrome.KEY_NOT_PRESENT)
            if len(found) == most:
                raise KeyViolation(VendorSyndrome.KEY_TOO_SCATTERED)
            entry = used[at]
            start = at << entity if entity is not None else self._starts[at]
            size = 1 << entity if entity is not None else entry.length
            step = min(length, start + size - offset)
            if step <= 0:
                raise KeyViolation(VendorSyndrome.KEY_NOT_PRESENT)
            found.append((entry.key, entry.address + offset - start, step))
            offset += step
            length -= step
            at += 1
        return found
