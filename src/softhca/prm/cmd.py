"""The command entry and the mailbox (manual: command interface; struct mlx5_cmd_layout, mlx5_cmd_prot_block)."""

from softhca.prm.layout import Layout, bits, raw, u64
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus

ENTRY_TYPE_PCIE = 0x7
"""Command entry type: PCIe command transport."""
INLINE = 16
"""Bytes of a message that lie in its entry."""
MAILBOX_DATA = 512
"""Data bytes of a mailbox."""


def mailboxes(length: int) -> int:
    """How many mailboxes a message of `length` bytes takes beside its entry."""
    return max(0, -(-(length - INLINE) // MAILBOX_DATA))


def xor8(data: bytes | bytearray | memoryview) -> int:
    """XOR of all bytes; what is signed has 0xFF here, its signature included."""
    folded = int.from_bytes(data, "big")
    shift = 4 << (len(data) - 1).bit_length() if len(data) > 1 else 0
    while shift >= 8:
        folded ^= folded >> shift
        shift >>= 1
    return folded & 0xFF


class CmdLayout(Layout, size=0x40, manual="Command interface, command queue entry"):
    """Command queue entry."""

    type = bits(0x00, 31, 24)
    inlen = bits(0x04, 31, 0)
    in_ptr = u64(0x08)
    in_ = raw(0x10, 16)
    out = raw(0x20, 16)
    out_ptr = u64(0x30)
    outlen = bits(0x38, 31, 0)
    token = bits(0x3C, 31, 24)
    sig = bits(0x3C, 23, 16)
    status = bits(0x3C, 7, 1)
    ownership = bits(0x3C, 0)


class CmdProtBlock(Layout, size=0x240, manual="Command interface, mailbox"):
    """Mailbox: a block of a command's input or output beyond the first 16 bytes."""

    data = raw(0x000, MAILBOX_DATA)
    next = u64(0x230)
    block_num = bits(0x238, 31, 0)
    token = bits(0x23C, 23, 16)
    ctrl_sig = bits(0x23C, 15, 8)
    sig = bits(0x23C, 7, 0)


class InputHeader(Layout, size=0x08, manual="Command interface, command input"):
    """What the input of every command begins with."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)


class OutputHeader(Layout, size=0x08, manual="Command interface, command output"):
    """What the output of every command begins with."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
