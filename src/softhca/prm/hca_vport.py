"""Logical InfiniBand ports: context, GID and PKEY tables."""

from enum import IntEnum, unique

from softhca.prm.layout import Layout, array, bits, nested, u64
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus


@unique
class PortState(IntEnum):
    """State of an InfiniBand port (IBTA PortInfo:PortState)."""

    NOP = 0x0
    DOWN = 0x1
    INIT = 0x2
    ARMED = 0x3
    ACTIVE = 0x4


@unique
class PhysicalState(IntEnum):
    """Physical state of an InfiniBand port (IBTA PortInfo:PortPhysicalState)."""

    NOP = 0x0
    SLEEP = 0x1
    POLLING = 0x2
    DISABLED = 0x3
    TRAINING = 0x4
    LINK_UP = 0x5
    LINK_ERROR_RECOVERY = 0x6
    PHY_TEST = 0x7


class HcaVportContext(Layout, size=0x200):
    """HCA vport context: what a logical InfiniBand port is set to."""

    field_select = bits(0x00, 31, 0)
    sm_virt_aware = bits(0x20, 31)
    has_smi = bits(0x20, 30)
    has_raw = bits(0x20, 29)
    grh_required = bits(0x20, 28)
    num_port_plane = bits(0x20, 23, 16)
    port_physical_state = bits(0x20, 15, 12, PhysicalState)
    vport_state_policy = bits(0x20, 11, 8)
    port_state = bits(0x20, 7, 4, PortState)
    vport_state = bits(0x20, 3, 0, PortState)
    system_image_guid = u64(0x28)
    port_guid = u64(0x30)
    node_guid = u64(0x38)
    cap_mask1 = bits(0x40, 31, 0)
    cap_mask1_field_select = bits(0x44, 31, 0)
    cap_mask2 = bits(0x48, 31, 0)
    cap_mask2_field_select = bits(0x4C, 31, 0)
    lid = bits(0x60, 31, 16)
    init_type_reply = bits(0x60, 11, 8)
    lmc = bits(0x60, 7, 5)
    subnet_timeout = bits(0x60, 4, 0)
    sm_lid = bits(0x64, 31, 16)
    sm_sl = bits(0x64, 15, 12)
    qkey_violation_counter = bits(0x68, 31, 16)
    pkey_violation_counter = bits(0x68, 15, 0)


class QueryHcaVportContextIn(Layout, size=0x10):
    """QUERY_HCA_VPORT_CONTEXT: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    other_vport = bits(0x08, 31)
    port_num = bits(0x08, 19, 16)
    vport_number = bits(0x08, 15, 0)


class QueryHcaVportContextOut(Layout, size=0x210):
    """QUERY_HCA_VPORT_CONTEXT: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    hca_vport_context = nested(0x10, HcaVportContext)


class ModifyHcaVportContextIn(Layout, size=0x210):
    """MODIFY_HCA_VPORT_CONTEXT: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    other_vport = bits(0x08, 31)
    port_num = bits(0x08, 19, 16)
    vport_number = bits(0x08, 15, 0)
    hca_vport_context = nested(0x10, HcaVportContext)


class ModifyHcaVportContextOut(Layout, size=0x10):
    """MODIFY_HCA_VPORT_CONTEXT: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class QueryHcaVportGidIn(Layout, size=0x10):
    """QUERY_HCA_VPORT_GID: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    other_vport = bits(0x08, 31)
    port_num = bits(0x08, 19, 16)
    vport_number = bits(0x08, 15, 0)
    gid_index = bits(0x0C, 15, 0)


class Array128Auto(Layout, size=0x10):
    """A GID."""

    array128_auto = array(0x00, 16, 8)


class QueryHcaVportGidOut(Layout, size=0x10):
    """QUERY_HCA_VPORT_GID: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    gids_num = bits(0x0C, 31, 16)
    gid = array(0x10, None, Array128Auto)


class QueryHcaVportPkeyIn(Layout, size=0x10):
    """QUERY_HCA_VPORT_PKEY: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    other_vport = bits(0x08, 31)
    port_num = bits(0x08, 19, 16)
    vport_number = bits(0x08, 15, 0)
    pkey_index = bits(0x0C, 15, 0)


class Pkey(Layout, size=0x4):
    """A partition key."""

    pkey = bits(0x00, 15, 0)


class QueryHcaVportPkeyOut(Layout, size=0x10):
    """QUERY_HCA_VPORT_PKEY: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    pkey = array(0x10, None, Pkey)
