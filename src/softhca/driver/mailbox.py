"""Mailboxes: the part of a command's message that does not fit its entry, and their signatures (source 4.3, D4, D5)."""

from __future__ import annotations

from softhca.driver.memory import PAGE, Buffer, Machine
from softhca.prm.cmd import INLINE, MAILBOX_DATA, CmdProtBlock, mailboxes, xor8

_STRIDE = 1024
_CONTROL = slice(0x200, 0x23F)
_CONTROL_BEFORE_SIGNATURE = slice(0x200, 0x23E)


class Mailbox:
    """One mailbox: 0x240 bytes that begin on a 1024-byte boundary.

    Attributes:
        iova: its DMA address.
        data: its 512 bytes of data.
        block: its control fields.
    """

    def __init__(self, iova: int, view: memoryview) -> None:
        self.iova = iova
        self._view = view
        self.data = view[:MAILBOX_DATA]
        self.block = CmdProtBlock(view)

    def prepare(self, token: int, number: int, following: int, data: bytes) -> None:
        """Fill it for one use and sign it."""
        self._view[:] = bytes(len(self._view))
        self.data[: len(data)] = data
        self.block.token = token
        self.block.block_num = number
        self.block.next = following
        self.block.ctrl_sig = ~xor8(self._view[_CONTROL_BEFORE_SIGNATURE]) & 0xFF
        self.block.sig = ~xor8(self._view[:-1]) & 0xFF

    def is_signed(self) -> bool:
        """Whether both signatures are right."""
        return xor8(self._view[_CONTROL]) == 0xFF and xor8(self._view) == 0xFF


class MailboxPool:
    """The mailboxes of a command channel. It grows by pages and shrinks only when it is freed.

    Args:
        machine: where its memory comes from.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._buffers: list[Buffer] = []
        self._free: list[Mailbox] = []

    def chain(self, token: int, length: int, message: bytes = b"") -> list[Mailbox]:
        """A chain for a message of `length` bytes, filled with `message` beyond its inline part.

        Raises:
            MemoryError: the machine has no more memory.
        """
        count = mailboxes(length)
        while len(self._free) < count:
            self._grow()
        chain = [self._free.pop() for _ in range(count)]
        for number, box in enumerate(chain):
            following = chain[number + 1].iova if number + 1 < count else 0
            start = INLINE + number * MAILBOX_DATA
            box.prepare(token, number, following, message[start : start + MAILBOX_DATA])
        return chain

    def give_back(self, chain: list[Mailbox]) -> None:
        """Take mailboxes back that the device no longer accesses."""
        self._free.extend(chain)

    def free(self) -> None:
        """Free all memory of the pool."""
        for buffer in self._buffers:
            buffer.free()
        self._buffers.clear()
        self._free.clear()

    def _grow(self) -> None:
        buffer = Buffer(self._machine, PAGE)
        self._buffers.append(buffer)
        for at in range(0, PAGE, _STRIDE):
            self._free.append(Mailbox(buffer.iova + at, buffer.view[at : at + CmdProtBlock.SIZE]))
