"""Memory that the device reaches, the machine that it comes from, and the kinds of address (source 1.4, A9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NewType, Protocol

from softhca.bus import Iova

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
