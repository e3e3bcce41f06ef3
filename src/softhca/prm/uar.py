"""User access regions."""

from softhca.prm.layout import Layout, bits
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus

UAR_PAGE = 4096
"""Bytes of a UAR page."""
CQ_ARM = 0x20
"""Offset in the page of the CQ doorbell (8 bytes)."""
EQ_ARM = 0x40
"""Of the EQ doorbell that arms (4 bytes)."""
EQ_UPDATE = 0x48
"""Of the EQ doorbell that only says how far the EQ was read (4 bytes)."""
SEND_FIRST = 0x800
"""Of the first send doorbell (BlueFlame buffer), 8 bytes."""
SEND_STEP = 0x100
"""A send doorbell may lie at each multiple of this from SEND_FIRST on."""


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
