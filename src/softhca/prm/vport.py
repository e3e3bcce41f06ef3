"""Logical ports: state and NIC context."""

from enum import IntEnum, unique

from softhca.prm.layout import Layout, array, bits, nested, u64
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus


@unique
class VportState(IntEnum):
    """QUERY_VPORT_STATE output 0x0C [3:0]."""

    DOWN = 0x0
    UP = 0x1


@unique
class VportAdminState(IntEnum):
    """Administrative state of a logical port."""

    DOWN = 0x0
    UP = 0x1
    AUTO = 0x2
    """As the port is."""


@unique
class VportKind(IntEnum):
    """QUERY_VPORT_STATE and MODIFY_VPORT_STATE op_mod."""

    VNIC_VPORT = 0x0
    ESW_VPORT = 0x1
    UPLINK = 0x2


@unique
class AllowedListType(IntEnum):
    """NIC vport context 0xF0 [26:24]: which list of addresses."""

    UC = 0x0
    MC = 0x1
    VLAN = 0x2


class MacAddressLayout(Layout, size=0x8):
    """A MAC address."""

    mac_addr_47_32 = bits(0x00, 15, 0)
    mac_addr_31_0 = bits(0x04, 31, 0)


class NicVportContext(Layout, size=0x100):
    """NIC vport context: what a logical Ethernet port is set to."""

    min_wqe_inline_mode = bits(0x00, 26, 24)
    disable_mc_local_lb = bits(0x00, 2)
    disable_uc_local_lb = bits(0x00, 1)
    roce_en = bits(0x00, 0)
    arm_change_event = bits(0x04, 31)
    event_on_mtu = bits(0x04, 4)
    event_on_promisc_change = bits(0x04, 3)
    event_on_vlan_change = bits(0x04, 2)
    event_on_mc_address_change = bits(0x04, 1)
    event_on_uc_address_change = bits(0x04, 0)
    vhca_id_type = bits(0x08, 31)
    affiliation_criteria = bits(0x08, 19, 16)
    affiliated_vhca_id = bits(0x08, 15, 0)
    sd_group = bits(0x20, 30, 28)
    mtu = bits(0x24, 15, 0)
    system_image_guid = u64(0x28)
    port_guid = u64(0x30)
    node_guid = u64(0x38)
    qkey_violation_counter = bits(0x68, 31, 16)
    promisc_uc = bits(0xF0, 31)
    promisc_mc = bits(0xF0, 30)
    promisc_all = bits(0xF0, 29)
    allowed_list_type = bits(0xF0, 26, 24, AllowedListType)
    allowed_list_size = bits(0xF0, 11, 0)
    permanent_address = nested(0xF4, MacAddressLayout)
    current_uc_mac_address = array(0x100, None, 64)


class QueryVportStateIn(Layout, size=0x10):
    """QUERY_VPORT_STATE: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0, VportKind)
    other_vport = bits(0x08, 31)
    vport_number = bits(0x08, 15, 0)


class QueryVportStateOut(Layout, size=0x10):
    """QUERY_VPORT_STATE: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    admin_state = bits(0x0C, 7, 4, VportAdminState)
    state = bits(0x0C, 3, 0, VportState)


class ModifyVportStateIn(Layout, size=0x10):
    """MODIFY_VPORT_STATE: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0, VportKind)
    other_vport = bits(0x08, 31)
    vport_number = bits(0x08, 15, 0)
    admin_state = bits(0x0C, 7, 4, VportAdminState)


class ModifyVportStateOut(Layout, size=0x10):
    """MODIFY_VPORT_STATE: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class QueryNicVportContextIn(Layout, size=0x10):
    """QUERY_NIC_VPORT_CONTEXT: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    other_vport = bits(0x08, 31)
    vport_number = bits(0x08, 15, 0)
    allowed_list_type = bits(0x0C, 26, 24, AllowedListType)


class QueryNicVportContextOut(Layout, size=0x110):
    """QUERY_NIC_VPORT_CONTEXT: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    nic_vport_context = nested(0x10, NicVportContext)


class ModifyNicVportFieldSelect(Layout, size=0x4):
    """Fields of the NIC vport context to modify, a bit each."""

    affiliation = bits(0x00, 13)
    disable_uc_local_lb = bits(0x00, 11)
    disable_mc_local_lb = bits(0x00, 10)
    node_guid = bits(0x00, 9)
    port_guid = bits(0x00, 8)
    min_inline = bits(0x00, 7)
    mtu = bits(0x00, 6)
    change_event = bits(0x00, 5)
    promisc = bits(0x00, 4)
    permanent_address = bits(0x00, 3)
    addresses_list = bits(0x00, 2)
    roce_en = bits(0x00, 1)


class ModifyNicVportContextIn(Layout, size=0x200):
    """MODIFY_NIC_VPORT_CONTEXT: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    other_vport = bits(0x08, 31)
    vport_number = bits(0x08, 15, 0)
    field_select = nested(0x0C, ModifyNicVportFieldSelect)
    nic_vport_context = nested(0x100, NicVportContext)


class ModifyNicVportContextOut(Layout, size=0x10):
    """MODIFY_NIC_VPORT_CONTEXT: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class QueryVportCounterIn(Layout, size=0x20):
    """QUERY_VPORT_COUNTER: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    other_vport = bits(0x08, 31)
    port_num = bits(0x08, 19, 16)
    vport_number = bits(0x08, 15, 0)
    clear = bits(0x18, 31)


class TrafficCounter(Layout, size=0x10):
    """Packets and octets of one kind of traffic."""

    packets = u64(0x00)
    octets = u64(0x08)


class QueryVportCounterOut(Layout, size=0x210):
    """QUERY_VPORT_COUNTER: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    received_errors = nested(0x10, TrafficCounter)
    transmit_errors = nested(0x20, TrafficCounter)
    received_ib_unicast = nested(0x30, TrafficCounter)
    transmitted_ib_unicast = nested(0x40, TrafficCounter)
    received_ib_multicast = nested(0x50, TrafficCounter)
    transmitted_ib_multicast = nested(0x60, TrafficCounter)
    received_eth_broadcast = nested(0x70, TrafficCounter)
    transmitted_eth_broadcast = nested(0x80, TrafficCounter)
    received_eth_unicast = nested(0x90, TrafficCounter)
    transmitted_eth_unicast = nested(0xA0, TrafficCounter)
    received_eth_multicast = nested(0xB0, TrafficCounter)
    transmitted_eth_multicast = nested(0xC0, TrafficCounter)
    local_loopback = nested(0xD0, TrafficCounter)
