"""RoCE address table."""

from enum import IntEnum, unique

from softhca.prm.layout import Layout, array, bits, nested
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus


@unique
class RoceVersion(IntEnum):
    """RoCE address 0x28 [19:16]."""

    V1 = 0x0
    V2 = 0x2


@unique
class RoceL3Type(IntEnum):
    """RoCE address 0x2C [3:0]."""

    IPV4 = 0x0
    IPV6 = 0x1


class RoceAddrLayout(Layout, size=0x20):
    """An entry of the RoCE address (GID) table."""

    source_l3_address = array(0x00, 16, 8)
    vlan_valid = bits(0x10, 28)
    vlan_id = bits(0x10, 27, 16)
    source_mac_47_32 = bits(0x10, 15, 0)
    source_mac_31_0 = bits(0x14, 31, 0)
    roce_l3_type = bits(0x18, 11, 8, RoceL3Type)
    roce_version = bits(0x18, 7, 0, RoceVersion)


class SetRoceAddressIn(Layout, size=0x30):
    """SET_ROCE_ADDRESS: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    roce_address_index = bits(0x08, 31, 16)
    vhca_port_num = bits(0x08, 3, 0)
    roce_address = nested(0x10, RoceAddrLayout)


class SetRoceAddressOut(Layout, size=0x10):
    """SET_ROCE_ADDRESS: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class QueryRoceAddressIn(Layout, size=0x10):
    """QUERY_ROCE_ADDRESS: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    roce_address_index = bits(0x08, 31, 16)
    vhca_port_num = bits(0x08, 3, 0)


class QueryRoceAddressOut(Layout, size=0x30):
    """QUERY_ROCE_ADDRESS: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    roce_address = nested(0x10, RoceAddrLayout)
