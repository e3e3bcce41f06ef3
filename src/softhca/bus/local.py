"""A machine inside this process: memory, interrupt lines and one device, for a driver that runs beside it."""

from __future__ import annotations

import mmap
from collections.abc import Callable

from softhca.bus.dma import DmaSpace, Iova
from softhca.bus.protocol import Device

PAGE = 4096


class LocalHost:
    """A Host whose memory is one anonymous mapping and whose interrupts are Python callables.

    Args:
        memory: bytes of memory to hand out (a multiple of 4096).
        base: IOVA of its first byte; not zero, so that a zero pointer always faults.
    """

    def __init__(self, memory: int = 64 << 20, base: int = 0x1_0000_0000) -> None:
        self._memory = memoryview(mmap.mmap(-1, memory))
        self._base = base
        self._next = 0
        self._free: dict[int, list[int]] = {}
        self._taken: dict[int, int] = {}
        self._dma = DmaSpace()
        self._dma.map(base, self._memory)
        self._handlers: dict[int, Callable[[], None]] = {}
        self._pending: set[int] = set()

    @property
    def dma(self) -> DmaSpace:
        """The memory that a device may reach."""
        return self._dma

    def plug(self, device: Device) -> None:
        """Put a device into this machine."""
        device.attach(self)

    def interrupt(self, vector: int) -> None:
        """Call the handler of a vector, or keep it pending until there is one."""
        handler = self._handlers.get(vector)
        if handler is None:
            self._pending.add(vector)
        else:
            handler()

    def on_interrupt(self, vector: int, handler: Callable[[], None] | None) -> None:
        """Set (or with None take away) the handler of a vector; a pending interrupt is delivered at once."""
        if handler is None:
            self._handlers.pop(vector, None)
            return
        self._handlers[vector] = handler
        if vector in self._pending:
            self._pending.discard(vector)
            handler()

    def allocate(self, length: int) -> tuple[Iova, memoryview]:
        """Zeroed, page-aligned, contiguous memory that devices can reach: its IOVA and a view of it.

        Raises:
            MemoryError: the machine's memory is used up.
        """
        size = max(PAGE, (length + PAGE - 1) & ~(PAGE - 1))
        free = self._free.get(size)
        if free:
            offset = free.pop()
            self._memory[offset : offset + size] = bytes(size)
        else:
            offset = self._next
            if size > len(self._memory) - offset:
                raise MemoryError(f"{size} bytes asked for, {len(self._memory) - offset} left of this host's memory")
            self._next += size
        self._taken[offset] = size
        return Iova(self._base + offset), self._memory[offset : offset + length]

    def free(self, iova: Iova) -> None:
        """Give back what :meth:`allocate` handed out.

        Raises:
            ValueError: `iova` is not the start of a taken allocation.
        """
        offset = iova - self._base
        size = self._taken.pop(offset, None)
        if size is None:
            raise ValueError(f"free of {iova:#x}: nothing was allocated there")
        self._free.setdefault(size, []).append(offset)

    @property
    def allocations(self) -> int:
        """How many allocations are taken."""
        return len(self._taken)
