"""Memory that the device reaches, the machine that it comes from, and the kinds of address (source 1.4, A9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NewType, Protocol

from softhca.bus import Iova
from softhca.driver.errors import Refused

PAGE = 4096

HcaAddress = NewType("HcaAddress", int)
"""An HCA virtual address: means something only together with an lkey or rkey."""
BarOffset = NewType("BarOffset", int)
"""An offset in BAR 0."""


class Machine(Protocol):
    """What the driver needs of the machine that it runs on; `softhca.bus.local.LocalHost` is one."""

    def allocate(self, length: int) -> tuple[Iova, memoryview]:
        """Zeroed, page-aligned, contiguous memory mapped for DMA (MemoryError when there is none)."""
        ...

    def free(self, iova: Iova) -> None:
        """Take the DMA mapping away and give the memory back."""
        ...

    def on_interrupt(self, vector: int, handler: Callable[[], None] | None) -> None:
        """Call `handler` when MSI-X vector `vector` is raised (None: nobody)."""
        ...


class Arena:
    """What one driver has taken of a machine, so that all of it can be given back when the device is known to be still.

    Args:
        machine: where it comes from.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._taken: set[Iova] = set()
        self._handled: set[int] = set()

    def allocate(self, length: int) -> tuple[Iova, memoryview]:
        """As the machine does (MemoryError when there is no memory)."""
        iova, view = self._machine.allocate(length)
        self._taken.add(iova)
        return iova, view

    def free(self, iova: Iova) -> None:
        """As the machine does."""
        self._taken.discard(iova)
        self._machine.free(iova)

    def on_interrupt(self, vector: int, handler: Callable[[], None] | None) -> None:
        """As the machine does."""
        if handler is None:
            self._handled.discard(vector)
        else:
            self._handled.add(vector)
        self._machine.on_interrupt(vector, handler)

    def release(self) -> int:
        """Give everything back, handlers of interrupts too; tell how many allocations.

        The caller knows that the device accesses nothing any more: it was reset, or is gone (F1, F7).
        """
        for vector in sorted(self._handled):
            self._machine.on_interrupt(vector, None)
        count = len(self._taken)
        for iova in sorted(self._taken):
            self._machine.free(iova)
        self._handled.clear()
        self._taken.clear()
        return count


class Buffer:
    """Contiguous memory mapped for DMA; it stays mapped until :meth:`free` (A10).

    Args:
        machine: where it comes from.
        length: bytes, at least 1.
    """

    def __init__(self, machine: Machine, length: int) -> None:
        self._machine = machine
        self.iova, self.view = machine.allocate(length)

    def __len__(self) -> int:
        return len(self.view)

    @property
    def pages(self) -> list[int]:
        """The DMA addresses of its pages, as a PAS list takes them."""
        return list(range(self.iova, self.iova + len(self.view), PAGE))

    def free(self) -> None:
        """Give it back. The caller knows that the device no longer accesses it (F1)."""
        self._machine.free(self.iova)


@contextmanager
def lent(*buffers: Buffer) -> Iterator[None]:
    """Buffers that a command gives to the device: the host's again when it is refused.

    After a time-out they stay where they are: the device may have taken them (D10).
    """
    try:
        yield
    except Refused:
        for buffer in buffers:
            buffer.free()
        raise
