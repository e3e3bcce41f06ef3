"""Subnet management datagrams (InfiniBand Architecture Specification, volume 1, chapters 13 and 14)."""

from enum import IntEnum, IntFlag

from softhca.prm.layout import Layout, array, bits, raw, u64

MAD_BYTES = 256


class MgmtClass(IntEnum):
    """Common MAD header, MgmtClass (13.4.4)."""

    SUBN_LID_ROUTED = 0x01
    PERF = 0x04
    SUBN_DIRECTED_ROUTE = 0x81


class Method(IntEnum):
    """Common MAD header, method (13.4.5)."""

    GET = 0x01
    SET = 0x02
    GET_RESP = 0x81


class MadStatus(IntEnum):
    """Common MAD header, status bits 4:2 (13.4.7)."""

    OK = 0x00
    BAD_VERSION = 0x04
    METHOD_UNSUPPORTED = 0x08
    ATTRIBUTE_UNSUPPORTED = 0x0C
    BAD_VALUE = 0x1C


class Attribute(IntEnum):
    """SMP attributes (14.2.5)."""

    NODE_DESCRIPTION = 0x0010
    NODE_INFO = 0x0011
    SWITCH_INFO = 0x0012
    GUID_INFO = 0x0014
    PORT_INFO = 0x0015
    PKEY_TABLE = 0x0016
    SL_TO_VL_MAPPING_TABLE = 0x0017
    SM_INFO = 0x0020


class PortCapability(IntFlag):
    """PortInfo.CapabilityMask (14.2.5.6)."""

    IS_SM = 1 << 1
    SYSTEM_IMAGE_GUID = 1 << 11
    EXTENDED_SPEEDS = 1 << 14
    CM = 1 << 16
    SNMP = 1 << 17
    DEVICE_MANAGEMENT = 1 << 19
    VENDOR_CLASS = 1 << 20


class Smp(Layout, size=0x100, manual="IBTA volume 1, 13.4.2 and 14.2.1"):
    """A subnet management datagram: common header, M_Key and attribute data."""

    base_version = bits(0x00, 31, 24)
    mgmt_class = bits(0x00, 23, 16)
    class_version = bits(0x00, 15, 8)
    method = bits(0x00, 7, 0)
    status = bits(0x04, 31, 16)
    class_specific = bits(0x04, 15, 0)
    transaction_id = u64(0x08)
    attribute_id = bits(0x10, 31, 16)
    attribute_modifier = bits(0x14, 31, 0)
    m_key = u64(0x18)
    dr_slid = bits(0x20, 31, 16)
    dr_dlid = bits(0x20, 15, 0)
    data = raw(0x40, 64)
    path = raw(0x80, 128)


class NodeInfo(Layout, size=0x40, manual="IBTA volume 1, 14.2.5.3"):
    """SMP attribute NodeInfo."""

    base_version = bits(0x00, 31, 24)
    class_version = bits(0x00, 23, 16)
    node_type = bits(0x00, 15, 8)
    num_ports = bits(0x00, 7, 0)
    system_image_guid = u64(0x04)
    node_guid = u64(0x0C)
    port_guid = u64(0x14)
    partition_cap = bits(0x1C, 31, 16)
    device_id = bits(0x1C, 15, 0)
    revision = bits(0x20, 31, 0)
    local_port_num = bits(0x24, 31, 24)
    vendor_id = bits(0x24, 23, 0)


class PortInfo(Layout, size=0x40, manual="IBTA volume 1, 14.2.5.6"):
    """SMP attribute PortInfo."""

    m_key = u64(0x00)
    gid_prefix = u64(0x08)
    lid = bits(0x10, 31, 16)
    master_sm_lid = bits(0x10, 15, 0)
    capability_mask = bits(0x14, 31, 0)
    diag_code = bits(0x18, 31, 16)
    m_key_lease_period = bits(0x18, 15, 0)
    local_port_num = bits(0x1C, 31, 24)
    link_width_enabled = bits(0x1C, 23, 16)
    link_width_supported = bits(0x1C, 15, 8)
    link_width_active = bits(0x1C, 7, 0)
    link_speed_supported = bits(0x20, 31, 28)
    port_state = bits(0x20, 27, 24)
    port_physical_state = bits(0x20, 23, 20)
    link_down_default_state = bits(0x20, 19, 16)
    m_key_protect_bits = bits(0x20, 15, 14)
    lmc = bits(0x20, 10, 8)
    link_speed_active = bits(0x20, 7, 4)
    link_speed_enabled = bits(0x20, 3, 0)
    neighbor_mtu = bits(0x24, 31, 28)
    master_sm_sl = bits(0x24, 27, 24)
    vl_cap = bits(0x24, 23, 20)
    init_type = bits(0x24, 19, 16)
    mtu_cap = bits(0x28, 19, 16)
    operational_vls = bits(0x28, 7, 4)
    guid_cap = bits(0x30, 15, 8)
    subnet_timeout = bits(0x30, 4, 0)
    link_speed_ext_active = bits(0x3C, 15, 12)
    link_speed_ext_supported = bits(0x3C, 11, 8)
    link_speed_ext_enabled = bits(0x3C, 4, 0)


class GuidInfo(Layout, size=0x40, manual="IBTA volume 1, 14.2.5.5"):
    """SMP attribute GUIDInfo: a block of eight GUIDs."""

    guid = array(0x00, 8, 64)


class PkeyTable(Layout, size=0x40, manual="IBTA volume 1, 14.2.5.7"):
    """SMP attribute P_KeyTable: a block of 32 keys."""

    pkey = array(0x00, 32, 16)


class SwitchInfo(Layout, size=0x14, manual="IBTA volume 1, 14.2.5.4"):
    """SMP attribute SwitchInfo."""

    linear_fdb_cap = bits(0x00, 31, 16)
    random_fdb_cap = bits(0x00, 15, 0)
    multicast_fdb_cap = bits(0x04, 31, 16)
    linear_fdb_top = bits(0x04, 15, 0)
    life_time_value = bits(0x08, 7, 3)
    port_state_change = bits(0x08, 2)
    lids_per_port = bits(0x0C, 31, 16)
    partition_enforcement_cap = bits(0x0C, 15, 0)
    enhanced_port_0 = bits(0x10, 27)


class SlToVlMappingTable(Layout, size=0x08, manual="IBTA volume 1, 14.2.5.8"):
    """SMP attribute SLtoVLMappingTable: the virtual lane of each service level, two in a byte."""

    pair = array(0x00, 8, 8)


class SmInfo(Layout, size=0x18, manual="IBTA volume 1, 14.2.5.13"):
    """SMP attribute SMInfo."""

    guid = u64(0x00)
    sm_key = u64(0x08)
    act_count = bits(0x10, 31, 0)
    priority = bits(0x14, 31, 28)
    sm_state = bits(0x14, 27, 24)
