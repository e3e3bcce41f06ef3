"""Queue buffers in host memory: a byte range over a list of pages, as CREATE_* hands it over (A2, B1, B5)."""

from __future__ import annotations

import sys
from array import array
from mmap import mmap
from struct import Struct
from typing import TYPE_CHECKING

from softhca.bus import DmaFault, Iova, Mapping
from softhca.hca.errors import CommandError
from softhca.prm.syndromes import objects as syndromes

if TYPE_CHECKING:
    from softhca.bus import DmaSpace
    from softhca.prm.layout import Layout

Store = memoryview | mmap
"""Memory for `struct` and single bytes, see :class:`softhca.bus.Mapping`."""
ADAPTER_PAGE = 12
"""log2 of the page that log_page_size of a queue counts from."""
MTT_BYTES = 8
"""Bytes of a translation entry in a command."""
PAS_OFFSET = 0x110
"""Where the page list lies in the input of every create command of a queue or key."""
_OFFSET_UNITS = 6
"""page_offset counts in 1/64 of a page."""
_MAX_LOG_PAGE = 19
_WORD = Struct(">I")
_NOWHERE = Mapping(0, memoryview(b""), False)


def page_list(request: Layout, offset: int = PAS_OFFSET) -> array[int]:
    """The big-endian 64-bit addresses from `offset` (bytes) to the end of a command's input."""
    raw = bytes(request)[offset:]
    pages = array("Q")
    pages.frombytes(raw[: len(raw) & ~7])
    if sys.byteorder == "little":
        pages.byteswap()
    return pages


def queue_base(page_offset: int, log_page_size: int) -> int:
    """Bytes from the start of the first page to the start of a queue.

    Args:
        page_offset: as in a context: in units of 1/64 of a page (measured with 64 KiB pages, not in 64 bytes).
        log_page_size: as in a context: 0 is 4 KiB.

    Raises:
        CommandError: the page size is not one that the device takes.
    """
    if log_page_size > _MAX_LOG_PAGE:
        raise CommandError(syndromes.BAD_PAGE_SIZE, f"log_page_size {log_page_size}, allowed are 0 to {_MAX_LOG_PAGE}")
    return page_offset << (log_page_size + ADAPTER_PAGE - _OFFSET_UNITS)


def fetch(dma: DmaSpace, iova: int, length: int) -> bytes:
    """Copy `length` bytes from `iova`: in most cases they lie in one mapping.

    Raises:
        DmaFault: some byte is not mapped.
    """
    try:
        return bytes(dma.view(iova, length))
    except DmaFault:
        return dma.read(iova, length)


class QueueBuffer:
    """A queue's memory. Bytes are addressed from the start of the queue; each access is bounded by its length.

    Pages that follow each other are kept as one span, so that the common buffer costs an addition.

    Args:
        pages: addresses as in the command (more than needed are allowed).
        log_page_size: 0 is 4 KiB.
        page_offset: where the queue begins in the first page, in 1/64 of a page.
        length: bytes of the queue.

    Raises:
        CommandError: too few pages, a misaligned one, or a page size that the device does not take.
    """

    __slots__ = ("_base", "_log_page", "_offset", "_pages", "length")

    def __init__(self, pages: array[int], log_page_size: int, page_offset: int, length: int) -> None:
        self._offset = queue_base(page_offset, log_page_size)
        self._log_page = log_page_size + ADAPTER_PAGE
        self.length = length
        page = 1 << self._log_page
        count = (self._offset + length + page - 1) >> self._log_page if length else 0
        if len(pages) < count:
            raise CommandError(syndromes.PAGE_LIST_SHORT, f"pas has {len(pages)} entries, {count} needed")
        pages = pages[:count]
        for index, address in enumerate(pages):
            if address & (page - 1):
                raise CommandError(syndromes.PAGE_MISALIGNED, f"pas[{index}] {address:#x}, page size {page:#x}")
        merged = all(pages[i] - pages[0] == i << self._log_page for i in range(1, count))
        self._base = pages[0] if merged and count else None
        self._pages = array("Q") if merged else pages

    @property
    def page_count(self) -> int:
        """Pages that the queue touches."""
        return ((self._offset + self.length - 1) >> self._log_page) + 1 if self.length else 0

    def pages(self) -> list[int]:
        """The page list, as the host gave it."""
        if self._base is None:
            return list(self._pages)
        return [self._base + (i << self._log_page) for i in range(self.page_count)]

    def stretch(self, at: int) -> tuple[int, int]:
        """IOVA of byte `at`, and how many bytes lie behind each other from there on, all in the queue.

        Raises:
            IndexError: it is not inside the queue (the caller's mistake).
        """
        self._check(at, 0)
        start = self._offset + at
        left = self.length - at
        if self._base is not None:
            return self._base + start, left
        inside = start & ((1 << self._log_page) - 1)
        return self._pages[start >> self._log_page] + inside, min(left, (1 << self._log_page) - inside)

    def _check(self, at: int, length: int) -> None:
        if at < 0 or length < 0 or length > self.length - at:
            raise IndexError(f"queue buffer: {length} bytes at {at}, it has {self.length}")

    def _pieces(self, at: int, length: int) -> list[tuple[int, int]]:
        """IOVA and length of each piece that lies in one page."""
        self._check(at, length)
        start = self._offset + at
        pieces = []
        page = 1 << self._log_page
        while length:
            inside = start & (page - 1)
            step = min(length, page - inside)
            pieces.append((self._pages[start >> self._log_page] + inside, step))
            start += step
            length -= step
        return pieces

    def read(self, dma: DmaSpace, at: int, length: int) -> bytes:
        """Copy `length` bytes from byte `at` of the queue.

        Raises:
            DmaFault: they are not mapped.
            IndexError: they are not inside the queue (the caller's mistake).
        """
        if self._base is None:
            return b"".join(fetch(dma, iova, size) for iova, size in self._pieces(at, length))
        self._check(at, length)
        return fetch(dma, self._base + self._offset + at, length)

    def entry(self, dma: DmaSpace, at: int, length: int) -> memoryview:
        """A view for writing an entry that lies in one page; for use at once, not for keeping.

        Raises:
            DmaFault: it is not mapped for writing.
            IndexError: it is not inside the queue.
        """
        self._check(at, length)
        start = self._offset + at
        if self._base is not None:
            return dma.view(self._base + start, length, write=True)
        inside = start & ((1 << self._log_page) - 1)
        return dma.view(self._pages[start >> self._log_page] + inside, length, write=True)


class Slots:
    """Slots of a queue, found in memory: as many as lie behind each other are found at once, and kept.

    What was found holds as long as the DMA map stays.

    Args:
        buffer: the queue's memory.
        start: where the first slot begins (bytes).
        size: bytes of a slot.
        write: they are to be written.

    Attributes:
        mapping: where the slots that were found last are.
        base: where slot 0 would be in that mapping's memory (bytes).
        end: the slot behind the last one of them.
    """

    __slots__ = ("_buffer", "_first", "_generation", "_size", "_start", "_write", "base", "end", "mapping")

    def __init__(self, buffer: QueueBuffer, start: int, size: int, *, write: bool) -> None:
        self._buffer = buffer
        self._start = start
        self._size = size
        self._write = write
        self._generation = 0
        self._first = 0
        self.base = 0
        self.end = 0
        self.mapping = _NOWHERE

    def find(self, dma: DmaSpace, slot: int) -> bool:
        """Find a slot (the queue has one of this number); tell whether it lies in one piece and may be accessed."""
        if self._generation == dma.generation and self._first <= slot < self.end:
            return True
        size = self._size
        iova, left = self._buffer.stretch(self._start + slot * size)
        if left < size:
            return False
        try:
            mapping = dma.mapping(iova, size, write=self._write)
        except DmaFault:
            return False
        self._generation = dma.generation
        self._first, self.end = slot, slot + min(left, mapping.end - iova) // size
        self.base = iova - mapping.start - slot * size
        self.mapping = mapping
        return True


class Word:
    """A word of a doorbell record (32 bits, big-endian). Where it is in memory is kept as long as the DMA map stays."""

    __slots__ = ("_at", "_generation", "_mapping", "iova")

    def __init__(self, iova: int) -> None:
        self.iova = iova
        self._generation = 0
        self._at = 0
        self._mapping = _NOWHERE

    def read(self, dma: DmaSpace) -> int:
        """Its value.

        Raises:
            DmaFault: it is not mapped.
        """
        if self._generation != dma.generation:
            try:
                mapping = dma.mapping(self.iova, _WORD.size)
            except DmaFault:
                return int.from_bytes(dma.read(Iova(self.iova), _WORD.size), "big")
            self._generation = dma.generation
            self._at = self.iova - mapping.start
            self._mapping = mapping
        value: int = _WORD.unpack_from(self._mapping.store, self._at)[0]
        return value


def doorbell_record(address: int) -> int:
    """Check the address of a doorbell record.

    Raises:
        CommandError: it is zero or not a multiple of 4.
    """
    if address == 0 or address & 3:
        raise CommandError(syndromes.BAD_DOORBELL_RECORD, f"dbr_addr {address:#x}")
    return address
