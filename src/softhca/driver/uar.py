"""UAR pages: where doorbells are rung (source 1.2, A3, G1)."""

from __future__ import annotations

from dataclasses import dataclass

from softhca.bus import Device
from softhca.driver.cmd import CommandChannel
from softhca.driver.memory import BarOffset
from softhca.prm.opcodes import Opcode
from softhca.prm.uar import (
    CQ_ARM,
    EQ_ARM,
    EQ_UPDATE,
    SEND_FIRST,
    UAR_PAGE,
    AllocUarIn,
    AllocUarOut,
    DeallocUarIn,
    DeallocUarOut,
)


@dataclass(frozen=True)
class Uar:
    """A UAR page: page `number` of BAR0, counted in 4 KiB.

    Attributes:
        device: whose BAR.
        number: as ALLOC_UAR gave it.
    """

    device: Device
    number: int

    @classmethod
    def allocate(cls, channel: CommandChannel, device: Device) -> Uar:
        """ALLOC_UAR."""
        return cls(device, channel.execute(Opcode.ALLOC_UAR, AllocUarIn.new(), AllocUarOut).uar)

    def deallocate(self, channel: CommandChannel) -> None:
        """DEALLOC_UAR."""
        channel.execute(Opcode.DEALLOC_UAR, DeallocUarIn.new(uar=self.number), DeallocUarOut)

    def _write(self, at: int, data: bytes) -> None:
        self.device.bar_write(0, BarOffset(self.number * UAR_PAGE + at), data)

    def update_eq(self, eqn: int, consumer: int, *, arm: bool) -> None:
        """Tell the device how far an EQ was read, and ask for an interrupt at the next EQE when `arm`."""
        self._write(EQ_ARM if arm else EQ_UPDATE, (eqn << 24 | consumer & 0xFF_FFFF).to_bytes(4, "big"))

    def arm_cq(self, command: int, cqn: int) -> None:
        """Ask for a completion event of a CQ; `command` is the word in its arm doorbell record."""
        self._write(CQ_ARM, (command << 32 | cqn).to_bytes(8, "big"))

    def ring_send(self, first: bytes | memoryview) -> None:
        """Send Doorbell: the first 8 bytes of the last posted WQE's control segment."""
        self._write(SEND_FIRST, bytes(first))
