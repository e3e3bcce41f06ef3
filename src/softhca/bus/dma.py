"""The DMA space of a machine: which memory a device reaches at which IOVA (A9, A10)."""

from __future__ import annotations

from bisect import bisect_right
from itertools import count
from mmap import mmap
from typing import NewType

Iova = NewType("Iova", int)
"""An address as a device uses it on the bus; neither a CPU address nor an HCA virtual address."""

ADDRESS_END = 1 << 64

_generations = count(1)
_NOTHING = memoryview(b"")


class DmaFault(Exception):
    """A device accessed memory that is not mapped for it in this way.

    Attributes:
        iova: first address of the refused access.
        length: its length in bytes.
        write: whether it was a write.
    """

    def __init__(self, iova: int, length: int, write: bool, why: str) -> None:
        super().__init__(f"DMA {'write' if write else 'read'} of {length} bytes at {iova:#x}: {why}")
        self.iova = iova
        self.length = length
        self.write = write


class Mapping:
    """A range of IOVAs and the memory behind it.

    Attributes:
        start, end: first IOVA, and the one behind the last.
        memory: the bytes; none once it is unmapped.
        store: the same bytes for `struct` and for single bytes, as the quickest kind of buffer that there is.
        writable: devices may write to it.
    """

    __slots__ = ("end", "memory", "start", "store", "writable")

    def __init__(self, start: int, memory: memoryview, writable: bool) -> None:
        self.start = start
        self.end = start + len(memory)
        self.memory = memory
        whole = memory.obj
        self.store: memoryview | mmap = whole if isinstance(whole, mmap) and len(whole) == len(memory) else memory
        self.writable = writable

    def drop(self) -> None:
        """It is unmapped: let go of the memory, whoever still holds the mapping."""
        self.memory = self.store = _NOTHING


class DmaSpace:
    """Mappings of IOVA ranges to memory, with zero-copy views.

    Mappings never overlap. A view stays usable while its owner keeps it, but nobody may keep one across an
    :meth:`unmap`: take a new view for each access, or compare :attr:`generation`.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._mappings: list[Mapping] = []
        self.generation = next(_generations)
        """Changes with the map, and no two spaces ever share a value: a cached view is valid while it stays."""

    def __len__(self) -> int:
        return len(self._mappings)

    def map(self, iova: int, memory: memoryview, *, writable: bool = True) -> None:
        """Make `memory` reachable at `iova`.

        Raises:
            ValueError: empty, beyond 64 bits, or overlapping a present mapping.
        """
        memory = memory.cast("B") if memory.format != "B" or memory.ndim != 1 else memory
        length = len(memory)
        if length == 0 or iova < 0 or length > ADDRESS_END - iova:
            raise ValueError(f"DMA map of {length} bytes at {iova:#x}: not a range of 64-bit addresses")
        at = bisect_right(self._starts, iova)
        if at and self._mappings[at - 1].end > iova:
            raise ValueError(f"DMA map at {iova:#x}: overlaps the mapping at {self._starts[at - 1]:#x}")
        if at < len(self._starts) and self._starts[at] - iova < length:
            raise ValueError(f"DMA map at {iova:#x}: overlaps the mapping at {self._starts[at]:#x}")
        self._starts.insert(at, iova)
        self._mappings.insert(at, Mapping(iova, memory, writable and not memory.readonly))
        self.generation = next(_generations)

    def unmap(self, iova: int, length: int) -> int:
        """Remove every mapping that lies wholly in the range; return the bytes removed.

        Raises:
            ValueError: a mapping lies partly in the range (nothing is removed).
        """
        end = iova + length
        first = bisect_right(self._starts, iova - 1)
        if first and self._mappings[first - 1].end > iova:
            raise ValueError(f"DMA unmap at {iova:#x}: cuts the mapping at {self._starts[first - 1]:#x}")
        last = first
        while last < len(self._mappings) and self._starts[last] < end:
            if self._mappings[last].end > end:
                raise ValueError(f"DMA unmap at {iova:#x}: cuts the mapping at {self._starts[last]:#x}")
            last += 1
        removed = _dropped(self._mappings[first:last])
        del self._starts[first:last]
        del self._mappings[first:last]
        self.generation = next(_generations)
        return removed

    def clear(self) -> int:
        """Remove every mapping; return the bytes removed."""
        removed = _dropped(self._mappings)
        self._starts.clear()
        self._mappings.clear()
        self.generation = next(_generations)
        return removed

    def overlaps(self, iova: int, length: int) -> bool:
        """Whether some byte of the range is mapped."""
        at = bisect_right(self._starts, iova + length - 1)
        return length > 0 and at > 0 and self._mappings[at - 1].end > iova

    def mapping(self, iova: int, length: int, *, write: bool = False) -> Mapping:
        """The mapping that has all of `length` bytes at `iova`.

        It may be kept as long as :attr:`generation` stays.

        Raises:
            DmaFault: some byte is not mapped (for writing, when `write`), or the range spans two mappings.
        """
        at = bisect_right(self._starts, iova) - 1
        if at < 0 or length < 0:
            raise DmaFault(iova, length, write, "not mapped")
        mapping = self._mappings[at]
        if iova > mapping.end or length > mapping.end - iova:
            raise DmaFault(iova, length, write, "not mapped, or across two mappings")
        if write and not mapping.writable:
            raise DmaFault(iova, length, write, "mapped read-only")
        return mapping

    def view(self, iova: int, length: int, *, write: bool = False) -> memoryview:
        """A zero-copy view of `length` bytes at `iova`, inside one mapping.

        Raises:
            DmaFault: some byte is not mapped (for writing, when `write`), or the range spans two mappings.
        """
        mapping = self.mapping(iova, length, write=write)
        offset = iova - mapping.start
        return mapping.memory[offset : offset + length]

    def views(self, iova: int, length: int, *, write: bool = False) -> list[memoryview]:
        """Zero-copy views that cover `length` bytes at `iova`, across adjacent mappings.

        Raises:
            DmaFault: some byte is not mapped (for writing, when `write`). Nothing has been touched then.
        """
        parts: list[memoryview] = []
        while length > 0:
            at = bisect_right(self._starts, iova) - 1
            if at < 0 or iova >= self._mappings[at].end:
                raise DmaFault(iova, length, write, "not mapped")
            part = self.view(iova, min(length, self._mappings[at].end - iova), write=write)
            parts.append(part)
            iova += len(part)
            length -= len(part)
        return parts

    def read(self, iova: int, length: int) -> bytes:
        """Copy `length` bytes from `iova`.

        Raises:
            DmaFault: some byte is not mapped.
        """
        return b"".join(self.views(iova, length))

    def write(self, iova: int, data: bytes | bytearray | memoryview) -> None:
        """Copy `data` to `iova`.

        Raises:
            DmaFault: some byte is not mapped for writing; nothing has been written then.
        """
        at = 0
        source = memoryview(data)
        for part in self.views(iova, len(source), write=True):
            part[:] = source[at : at + len(part)]
            at += len(part)


def _dropped(mappings: list[Mapping]) -> int:
    """Bytes of mappings that are unmapped by this."""
    removed = 0
    for mapping in mappings:
        removed += len(mapping.memory)
        mapping.drop()
    return removed
