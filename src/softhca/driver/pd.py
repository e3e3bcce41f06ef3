"""Protection domains (source 2.5, B11)."""

from __future__ import annotations

from dataclasses import dataclass

from softhca.driver.cmd import CommandChannel
from softhca.prm.opcodes import Opcode
from softhca.prm.pd import AllocPdIn, AllocPdOut, DeallocPdIn, DeallocPdOut


@dataclass(frozen=True)
class ProtectionDomain:
    """QPs, SRQs and MKeys combine only within one of these.

    Attributes:
        number: as ALLOC_PD gave it.
        life: of the function, in which the number means something (F8).
    """

    number: int
    life: int

    @classmethod
    def allocate(cls, channel: CommandChannel) -> ProtectionDomain:
        """ALLOC_PD."""
        return cls(channel.execute(Opcode.ALLOC_PD, AllocPdIn.new(), AllocPdOut).pd, channel.life)

    def deallocate(self, channel: CommandChannel) -> None:
        """DEALLOC_PD; fails while something refers to it (A8)."""
        channel.execute(Opcode.DEALLOC_PD, DeallocPdIn.new(pd=self.number), DeallocPdOut)
