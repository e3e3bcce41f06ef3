"""A PCI function: configuration space, the gate of Bus Master, resets. NICs derive from it (C2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from softhca.bus.config_space import Capability, ConfigSpace, Identity, MsiX, PciExpress, PowerManagement
from softhca.bus.dma import DmaSpace
from softhca.bus.engine import Engine
from softhca.bus.protocol import Device, Host, Reset

_NOTHING = DmaSpace()


class PciFunction:
    """What every device of ours has in common as a citizen of the bus.

    A subclass implements `bar_read`, `bar_write` and :meth:`on_reset`, reaches memory through :attr:`dma`
    alone (which is empty, so that each access faults, while Bus Master is off), and raises interrupts with
    :meth:`interrupt`.

    Args:
        engine: runs the device's work.
        identity: PCI ids.
        bars: BAR index -> size in bytes.
        vectors, msix_bar, msix_table, msix_pending: the MSI-X capability.
        capabilities: more capabilities, after power management, PCIe and MSI-X.
    """

    def __init__(
        self,
        engine: Engine,
        identity: Identity,
        bars: Mapping[int, int],
        *,
        vectors: int,
        msix_bar: int = 0,
        msix_table: int,
        msix_pending: int,
        capabilities: list[Capability] | None = None,
    ) -> None:
        self._engine = engine
        self._bars = dict(bars)
        self._vectors = vectors
        self._host: Host | None = None
        self.pulled = False
        """Out of its slot: reads are ones, writes are lost; a subclass looks at this in its BARs."""
        self.identity = identity
        msix = MsiX(vectors, msix_bar, msix_table, msix_pending)
        self.config = ConfigSpace(
            identity,
            bars,
            [PowerManagement(), PciExpress(lambda: self.reset(Reset.FLR)), msix, *(capabilities or [])],
        )
        self.dma: DmaSpace = _NOTHING
        """The host's memory while Bus Master is on, else an empty space: each access raises DmaFault."""

    @property
    def engine(self) -> Engine:
        """The engine that runs this device's work."""
        return self._engine

    @property
    def bars(self) -> Mapping[int, int]:
        """BAR index -> size in bytes."""
        return self._bars

    @property
    def vectors(self) -> int:
        """Number of MSI-X vectors."""
        return self._vectors

    def virtual_functions(self) -> Sequence[Device]:
        """The functions that SR-IOV lets appear now; a function without SR-IOV has none."""
        return ()

    def attach(self, host: Host) -> None:
        """Put the device into a machine: a cold reset.

        Raises:
            RuntimeError: it sits in another one.
        """
        if self._host is not None:
            raise RuntimeError("attach: the device sits in a machine already; detach it first")
        self._host = host
        self.pulled = False
        self.reset(Reset.COLD)

    def detach(self) -> None:
        """Take the device out of its machine; what it still did there ends."""
        self._host = None
        self.reset(Reset.COLD)

    def config_read(self, offset: int, size: int) -> bytes:
        """Read configuration space."""
        if self.pulled:
            return b"\xff" * size
        return self.config.read(offset, size)

    def config_write(self, offset: int, data: bytes | memoryview) -> None:
        """Write configuration space."""
        if self.pulled:
            return
        self.config.write(offset, data)
        self._gate()

    def reset(self, kind: Reset) -> None:
        """Reset configuration space, close the gate, then let the device reset itself."""
        if self.pulled and self._host is not None:
            return  # nobody is there to be reset
        self.config.reset(keep_bars=kind is Reset.FLR)
        self._gate()
        self.on_reset(kind)

    def on_reset(self, kind: Reset) -> None:
        """Bring the device's own state back to power on."""
        raise NotImplementedError

    def interrupt(self, vector: int) -> None:
        """Raise an MSI-X vector; without Bus Master nothing leaves the device."""
        if self._host is not None and self.config.bus_master and not self.pulled:
            self._host.interrupt(vector)

    def pull(self) -> None:
        """Surprise removal: the function is gone from the bus, until it is inserted or attached again."""
        self.pulled = True
        self._gate()

    def insert(self) -> None:
        """Put a function that was pulled back into its slot; it starts cold."""
        self.pulled = False
        self.reset(Reset.COLD)

    def _gate(self) -> None:
        open_ = self._host is not None and self.config.bus_master and not self.pulled
        self.dma = self._host.dma if self._host is not None and open_ else _NOTHING
