"""Multicast groups (manual: ATTACH_TO_MCG, DETACH_FROM_MCG)."""

from softhca.prm.layout import Layout, array, bits
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus


class AttachToMcgIn(Layout, size=0x20):
    """ATTACH_TO_MCG: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    qpn = bits(0x08, 23, 0)
    multicast_gid = array(0x10, 16, 8)


class AttachToMcgOut(Layout, size=0x10):
    """ATTACH_TO_MCG: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class DetachFromMcgIn(Layout, size=0x20):
    """DETACH_FROM_MCG: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    qpn = bits(0x08, 23, 0)
    multicast_gid = array(0x10, 16, 8)


class DetachFromMcgOut(Layout, size=0x10):
    """DETACH_FROM_MCG: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
