"""A machine in which just what is allocated is mapped for DMA, and an access to anything else is noted."""

from __future__ import annotations

from softhca.bus import DmaFault, DmaSpace, Iova
from softhca.bus.dma import Mapping
from softhca.bus.local import PAGE, LocalHost


class Trap(DmaSpace):
    """A DMA space that notes each access to what is not mapped."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []

    def mapping(self, iova: int, length: int, *, write: bool = False) -> Mapping:
        try:
            return super().mapping(iova, length, write=write)
        except DmaFault as fault:
            self.faults.append(str(fault))
            raise

    def views(self, iova: int, length: int, *, write: bool = False) -> list[memoryview]:
        try:
            return super().views(iova, length, write=write)
        except DmaFault as fault:
            self.faults.append(str(fault))
            raise


class TrappedHost(LocalHost):
    """A machine in which just what is allocated is mapped for DMA."""

    def __init__(self, memory: int = 16 << 20) -> None:
        super().__init__(memory)
        self._dma.clear()
        self.trap = Trap()
        self._dma = self.trap

    def allocate(self, length: int) -> tuple[Iova, memoryview]:
        iova, view = super().allocate(length)
        at, size = iova - self._base, -(-length // PAGE) * PAGE
        self.trap.map(iova, self._memory[at : at + size])
        return iova, view

    def free(self, iova: Iova) -> None:
        self.trap.unmap(iova, self._taken[iova - self._base])
        super().free(iova)
