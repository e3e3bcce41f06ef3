"""User access regions."""

from softhca.prm.layout import Layout, bits
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus


class AllocUarIn(Layout, size=0x10):
    """ALLOC_UAR: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)


class AllocUarOut(Layout, size=0x10):
    """ALLOC_UAR: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    uar = bits(0x08, 23, 0)


class DeallocUarIn(Layout, size=0x10):
    """DEALLOC_UAR: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    uar = bits(0x08, 23, 0)


class DeallocUarOut(Layout, size=0x10):
    """DEALLOC_UAR: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
