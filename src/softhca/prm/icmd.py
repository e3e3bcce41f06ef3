"""ICMD: the tools' commands behind the vendor-specific capability (source 5.7, E7)."""

from enum import IntEnum, unique

from softhca.prm.layout import Layout, bits, u64

CONTROL = 0x00_0000
MAILBOX_SIZE = 0x00_1000
SYNDROME = 0x00_1008
MAILBOX = 0x10_0000
"""Addresses in the ICMD space."""


@unique
class IcmdOpcode(IntEnum):
    """Control [31:16]."""

    ACCESS_REGISTER = 0x9001


@unique
class IcmdStatus(IntEnum):
    """Control [15:8]."""

    OK = 0x0
    INVALID_OPCODE = 0x1
    INVALID_CMD = 0x2
    OPERATIONAL_ERROR = 0x3
    BAD_PARAM = 0x4
    BUSY = 0x5


@unique
class TlvType(IntEnum):
    """First 5 bits of a TLV."""

    END = 0x0
    OPERATION = 0x1
    REGISTER = 0x3


@unique
class TlvMethod(IntEnum):
    """Operation TLV 0x04 [14:8]."""

    QUERY = 0x1
    WRITE = 0x2


class IcmdCtrl(Layout, size=0x4, manual="Adapters PRM, ICMD"):
    """ICMD control."""

    opcode = bits(0x00, 31, 16, IcmdOpcode)
    status = bits(0x00, 15, 8, IcmdStatus)
    exmb = bits(0x00, 1)
    busy = bits(0x00, 0)


class OperationTlv(Layout, size=0x10, manual="Adapters PRM, register access TLVs"):
    """What ACCESS_REGISTER of ICMD begins with: which register, and what is done with it."""

    type = bits(0x00, 31, 27, TlvType)
    len = bits(0x00, 26, 16)
    dr = bits(0x00, 15)
    status = bits(0x00, 14, 8)
    register_id = bits(0x04, 31, 16)
    r = bits(0x04, 15)
    method = bits(0x04, 14, 8, TlvMethod)
    class_ = bits(0x04, 7, 0)
    tid = u64(0x08)


class RegTlv(Layout, size=0x4, manual="Adapters PRM, register access TLVs"):
    """What stands before the contents of a register: its length in words, this one included."""

    type = bits(0x00, 31, 27, TlvType)
    len = bits(0x00, 26, 16)
