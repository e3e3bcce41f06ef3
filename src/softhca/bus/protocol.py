"""Device and Host: the two sides of the seam (A9, A10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Protocol

from softhca.bus.dma import DmaSpace
from softhca.bus.engine import Engine


class Reset(Enum):
    """How a device is reset."""

    COLD = "cold"
    """Power on or a reset of the whole machine: configuration space included."""
    FLR = "flr"
    """PCIe Function Level Reset: the function's state goes, its place on the bus stays."""


class Host(Protocol):
    """What a machine offers to a device that sits in it."""

    @property
    def dma(self) -> DmaSpace:
        """The memory that the device may reach, by IOVA."""
        ...

    def interrupt(self, vector: int) -> None:
        """Raise MSI-X vector `vector` (0-based). A vector that nobody listens to stays pending."""
        ...


class Device(Protocol):
    """A PCI function, as a host sees it. Register data are the bytes as they lie on the bus."""

    @property
    def engine(self) -> Engine:
        """The engine that runs this device's work; the host pumps it."""
        ...

    @property
    def bars(self) -> Mapping[int, int]:
        """BAR index (0..5) -> size in bytes (a power of two)."""
        ...

    @property
    def vectors(self) -> int:
        """Number of MSI-X vectors."""
        ...

    def virtual_functions(self) -> Sequence[Device]:
        """The functions that SR-IOV lets appear now, in the order of their routing ids."""
        ...

    def attach(self, host: Host) -> None:
        """Put the device into `host`'s machine."""
        ...

    def detach(self) -> None:
        """Take the device out of its machine: no DMA and no interrupt after this."""
        ...

    def config_read(self, offset: int, size: int) -> bytes:
        """Read `size` bytes of configuration space (0..4095); what lies outside reads as ones."""
        ...

    def config_write(self, offset: int, data: bytes | memoryview) -> None:
        """Write configuration space; read-only bits keep their value."""
        ...

    def bar_read(self, bar: int, offset: int, size: int) -> bytes:
        """Read `size` bytes at `offset` of a BAR; what does not exist reads as ones or zeros; never fails."""
        ...

    def bar_write(self, bar: int, offset: int, data: bytes | memoryview) -> None:
        """Write at `offset` of a BAR; what does not exist ignores the write, never raises."""
        ...

    def reset(self, kind: Reset) -> None:
        """Reset the device."""
        ...
