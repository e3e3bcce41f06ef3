"""What is behind a memory key: pages by address, or ranges of other keys (G4)."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from softhca.hca.errors import KeyViolation, PageFault
from softhca.prm.codec import codec
from softhca.prm.syndromes.completion import VendorSyndrome
from softhca.prm.wqe import Klm

Span = tuple[int, int]
"""IOVA and length (bytes) of memory behind a key."""
Runs = tuple["array[int]", "array[int]", "array[int] | None", int, int]
"""Runs of pages: where they start in the key's pages, IOVA of each, number of the run that each page is in (None: one
run, or one for each page), log2 of a page, bytes of all."""
Range = tuple[int, int, int]
"""Key, address and length (bytes) of a part of an indirect key."""
Entry = tuple[int, int, int]
"""An entry of an indirect key: length (bytes; not looked at in a KSM), key, address in that key."""

PRESENT = 0b11
"""Bits of a translation entry that are no address: [1] write, [0] read are enabled; without both it is not present."""
MTT_FLAGS = 0x7
_WRITE = 0b10
_PATIENCE = 64
"""Entries are merged when so many times the entries walked over are as many as there are."""
_KLM = codec(Klm, "bcount", "key", "va")


class Changes:
    """Counts what changes any key or what is behind it: what was found out about keys holds while it stays.

    Attributes:
        count: of the whole process.
    """

    def __init__(self) -> None:
        self.count = 0


CHANGES = Changes()


class PageTable:
    """Pages of one size, by address.

    Pages that follow each other are merged: translation keeps runs (offset in the key's pages -> IOVA), in most cases
    a single one. Entries that are loaded bit by bit are kept, and translation walks over them one by one for a while
    before they are merged again: so changing a few of many pages costs little.

    Args:
        pages: addresses.
        log_page_size: log2 of a page in bytes.
        marked: they have :data:`PRESENT` bits; else all are present.
    """

    __slots__ = ("_count", "_entries", "_log_page", "_offsets", "_rights", "_run_of", "_stale", "_targets", "_walked")

    def __init__(self, pages: array[int], log_page_size: int, *, marked: bool = False) -> None:
        self._log_page = log_page_size
        self._count = len(pages)
        self._entries: array[int] | None = None
        self._rights: bytearray | None = None
        self._stale = False
        self._walked = 0
        self._offsets, self._targets = _merge(pages, log_page_size)
        self._run_of = self._index()
        if marked and any(entry & PRESENT != PRESENT for entry in pages):
            self._entries, self._stale = pages[:], True

    @property
    def entries(self) -> array[int]:
        """Address and :data:`PRESENT` bits of each page; for reading."""
        return self._expand()

    def resize(self, log_page_size: int) -> None:
        """Take the entries as pages of another size."""
        CHANGES.count += 1
        if log_page_size != self._log_page:
            self._expand()
            self._log_page = log_page_size
            self._stale, self._walked = True, 0

    def load(self, first: int, entries: array[int], *, keep: bool) -> None:
        """Replace entries (address and :data:`PRESENT` bits) from number `first` on.

        Args:
            first: number of the first one.
            entries: what to put there.
            keep: entries behind them are kept, else forgotten.
        """
        CHANGES.count += 1
        own = self._expand()
        if len(own) < first:
            own.extend([0] * (first - len(own)))
        own[first : first + len(entries) if keep else len(own)] = entries
        self._count = len(own)
        self._stale, self._walked = True, 0

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
        self._run_of = self._index()
        self._rights = None if all(right == PRESENT for right in rights) else rights
        self._stale = False

    def _index(self) -> array[int] | None:
        """The number of the run that each page is in; None when that is plain: one run, or one for each page."""
        runs = len(self._offsets)
        if runs <= 1 or runs == self._count:
            return None
        index = array("I", bytes(4 * self._count))
        bounds = [offset >> self._log_page for offset in self._offsets]
        for run, (first, end) in enumerate(zip(bounds, [*bounds[1:], self._count], strict=True)):
            index[first:end] = array("I", [run]) * (end - first)
        return index

    def _run_at(self, offset: int) -> int:
        """The run that byte `offset` is in; there are pages, and it lies in one."""
        if len(self._offsets) == 1:
            return 0
        page = offset >> self._log_page
        return page if self._run_of is None else self._run_of[page]

    def runs(self) -> Runs | None:
        """The runs, when all pages may be accessed and they are merged; None: :meth:`translate` tells more."""
        if self._stale:
            if self._walked < self._count:
                return None
            self._rebuild()
        if self._rights is not None or not self._count:
            return None
        return self._offsets, self._targets, self._run_of, self._log_page, self._count << self._log_page

    def translate(self, offset: int, length: int, *, write: bool) -> list[Span]:
        """Where `length` bytes from byte `offset` of the first page are, in order.

        Raises:
            KeyViolation: the entries end before.
            PageFault: some page is not present, or not to be written.
        """
        if offset + length > self._count << self._log_page:
            raise KeyViolation(VendorSyndrome.KEY_NOT_PRESENT)
        if self._stale:
            if self._walked * _PATIENCE < self._count:
                return self._walk(offset, length, write=write)
            self._rebuild()
        offsets, targets, rights = self._offsets, self._targets, self._rights
        if rights is None and len(targets) == 1:
            return [(targets[0] + offset, length)]
        at = self._run_at(offset) if length else 0
        end_of_all = self._count << self._log_page
        found: list[Span] = []
        while length:
            if rights is not None and (rights[at] & PRESENT if not write else rights[at] & _WRITE) == 0:
                raise PageFault
            end = offsets[at + 1] if at + 1 < len(offsets) else end_of_all
            step = min(length, end - offset)
            found.append((targets[at] + offset - offsets[at], step))
            offset += step
            length -= step
            at += 1
        return found

    def _walk(self, offset: int, length: int, *, write: bool) -> list[Span]:
        """As :meth:`translate`, entry by entry."""
        entries, needed = self._expand(), _WRITE if write else PRESENT
        page = 1 << self._log_page
        found: list[Span] = []
        while length:
            self._walked += 1
            entry = entries[offset >> self._log_page]
            if not entry & needed:
                raise PageFault
            inside = offset & (page - 1)
            step = min(length, page - inside)
            address = (entry & ~MTT_FLAGS) + inside
            if found and sum(found[-1]) == address:
                found[-1] = (found[-1][0], found[-1][1] + step)
            else:
                found.append((address, step))
            offset += step
            length -= step
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


def klm_entries(raw: bytes | bytearray) -> list[Entry]:
    """The entries of a KLM or KSM list (a multiple of 16 bytes)."""
    return list(_KLM.iter_unpack(raw))


class KeyTable:
    """Ranges of other keys, one after the other.

    The list is kept as it was given: an implicit region has some hundred thousand entries.

    Args:
        entries: the ranges, as a list of KLM (a multiple of 16 bytes).
        log_entity_size: log2 of the bytes of each (KSM), or None: each has a length of its own, and an empty one
            takes no part (KLM).
    """

    __slots__ = ("_entity", "_raw", "_starts", "_used")

    def __init__(self, entries: bytes, log_entity_size: int | None) -> None:
        self._raw = bytearray(entries)
        self._entity = log_entity_size
        self._used: list[Entry] | None = None
        self._starts = array("Q")

    @property
    def raw(self) -> bytes:
        """The list, as it was given."""
        return bytes(self._raw)

    @property
    def equal(self) -> bool:
        """Whether all entries have one size."""
        return self._entity is not None

    def resize(self, log_entity_size: int) -> None:
        """Give all entries another size (KSM); nothing for KLM."""
        if self._entity is not None:
            self._entity = log_entity_size

    def load(self, first: int, entries: bytes, *, keep: bool) -> None:
        """As :meth:`PageTable.load`."""
        own, at = self._raw, first * _KLM.size
        own.extend(bytes(max(0, at - len(own))))
        own[at : at + len(entries) if keep else len(own)] = entries
        self._used = None

    def _lengths(self) -> list[Entry]:
        """The entries that take part, for KLM; where they start goes to `_starts`."""
        if self._used is None:
            self._used = [entry for entry in _KLM.iter_unpack(self._raw) if entry[0]]
            starts, start = array("Q"), 0
            for length, _, _ in self._used:
                starts.append(start)
                start += length
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
        if entity is not None:
            used, count, at = None, len(self._raw) // _KLM.size, offset >> entity
        else:
            used = self._lengths()
            count, at = len(used), bisect_right(self._starts, offset, 0, len(used)) - 1
        while length:
            if not 0 <= at < count:
                raise KeyViolation(VendorSyndrome.KEY_NOT_PRESENT)
            if len(found) == most:
                raise KeyViolation(VendorSyndrome.KEY_TOO_SCATTERED)
            if used is None:
                assert entity is not None
                _, key, address = _KLM.unpack_from(self._raw, at * _KLM.size)
                start, size = at << entity, 1 << entity
            else:
                size, key, address = used[at]
                start = self._starts[at]
            step = min(length, start + size - offset)
            if step <= 0:
                raise KeyViolation(VendorSyndrome.KEY_NOT_PRESENT)
            found.append((key, address + offset - start, step))
            offset += step
            length -= step
            at += 1
        return found
