"""A card that does nothing but exist: for tests of the lab that need no HCA."""

from __future__ import annotations

from typing import Any

from softhca.bus.config_space import Identity
from softhca.bus.engine import Engine
from softhca.bus.pci_function import PciFunction
from softhca.bus.protocol import Reset

BAR_SIZE = 32 << 20
_TABLE = 0x2000
_PENDING = 0x3000


class Dummy(PciFunction):
    """Counts, and answers reads of its BAR with the offset."""

    def __init__(self, engine: Engine) -> None:
        identity = Identity(0x1B36, 0x0005, 0xFF0000)
        self.reads = 0
        self.writes: list[tuple[int, bytes]] = []
        super().__init__(engine, identity, {0: BAR_SIZE}, vectors=4, msix_table=_TABLE, msix_pending=_PENDING)

    def on_reset(self, kind: Reset) -> None:
        """Nothing is kept."""

    def bar_read(self, bar: int, offset: int, size: int) -> bytes:
        """The offset itself."""
        self.reads += 1
        return offset.to_bytes(8, "little")[:size]

    def bar_write(self, bar: int, offset: int, data: bytes | memoryview) -> None:
        """Remember it."""
        self.writes.append((offset, bytes(data)))

    def summary(self) -> dict[str, Any]:
        """As a device of the project answers."""
        return {"profile": "dummy", "commands": 0, "failed_commands": {}, "pages_outstanding": 0, "objects": {}}
