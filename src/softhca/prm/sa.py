"""Subnet administration datagrams (InfiniBand Architecture Specification, volume 1, chapter 15)."""

from enum import IntEnum, IntFlag

from softhca.prm.layout import Layout, bits, nested, raw, u64
from softhca.prm.smp import SmInfo

SA_CLASS = 0x03
"""MgmtClass SubnAdm (13.4.4)."""
SA_CLASS_VERSION = 2
GSI_QKEY = 0x8001_0000
"""The well-known Q_Key of QP1 (10.2.5)."""


class SaMethod(IntEnum):
    """Methods (15.2.2)."""

    GET = 0x01
    SET = 0x02
    GET_TABLE = 0x12
    DELETE = 0x15
    GET_RESP = 0x81
    GET_TABLE_RESP = 0x92
    DELETE_RESP = 0x95


class SaAttribute(IntEnum):
    """Attributes (15.2.5)."""

    CLASS_PORT_INFO = 0x0001
    NODE_RECORD = 0x0011
    PORT_INFO_RECORD = 0x0012
    SM_INFO_RECORD = 0x0018
    PATH_RECORD = 0x0035
    MC_MEMBER_RECORD = 0x0038


class SaStatus(IntEnum):
    """Status: of the common header, or of the class in bits 15:8 (15.2.3)."""

    OK = 0x0000
    METHOD_UNSUPPORTED = 0x000C
    NO_RESOURCES = 0x0100
    REQUEST_INVALID = 0x0200
    NO_RECORDS = 0x0300


class RmppType(IntEnum):
    """RMPP header, RMPPType (13.6.2.1)."""

    NONE = 0
    DATA = 1
    ACK = 2
    STOP = 3
    ABORT = 4


class RmppFlag(IntFlag):
    """RMPP header, RMPPFlags (13.6.2.1)."""

    ACTIVE = 1
    FIRST = 2
    LAST = 4


class NodeComponent(IntFlag):
    """Component mask of NodeRecord (15.2.5.2)."""

    LID = 1 << 0
    NODE_TYPE = 1 << 4
    SYSTEM_IMAGE_GUID = 1 << 6
    NODE_GUID = 1 << 7
    PORT_GUID = 1 << 8


class PortComponent(IntFlag):
    """Component mask of PortInfoRecord (15.2.5.3)."""

    LID = 1 << 0
    PORT_NUM = 1 << 1
    CAPABILITY_MASK = 1 << 7


class PathComponent(IntFlag):
    """Component mask of PathRecord (15.2.5.16)."""

    DGID = 1 << 2
    SGID = 1 << 3
    DLID = 1 << 4
    SLID = 1 << 5
    PKEY = 1 << 13


class MemberComponent(IntFlag):
    """Component mask of MCMemberRecord (15.2.5.17)."""

    MGID = 1 << 0
    PORT_GID = 1 << 1
    QKEY = 1 << 2
    MLID = 1 << 3
    MTU_SELECTOR = 1 << 4
    MTU = 1 << 5
    TCLASS = 1 << 6
    PKEY = 1 << 7
    RATE_SELECTOR = 1 << 8
    RATE = 1 << 9
    SL = 1 << 12
    FLOW_LABEL = 1 << 13
    SCOPE = 1 << 15
    JOIN_STATE = 1 << 16


class SaMad(Layout, size=0x100, manual="IBTA volume 1, 15.2.1"):
    """A subnet administration datagram: common header, RMPP header, SA header and data."""

    base_version = bits(0x00, 31, 24)
    mgmt_class = bits(0x00, 23, 16)
    class_version = bits(0x00, 15, 8)
    method = bits(0x00, 7, 0)
    status = bits(0x04, 31, 16)
    class_specific = bits(0x04, 15, 0)
    transaction_id = u64(0x08)
    attribute_id = bits(0x10, 31, 16)
    attribute_modifier = bits(0x14, 31, 0)
    rmpp_version = bits(0x18, 31, 24)
    rmpp_type = bits(0x18, 23, 16)
    rmpp_response_time = bits(0x18, 15, 11)
    rmpp_flags = bits(0x18, 10, 8)
    rmpp_status = bits(0x18, 7, 0)
    rmpp_segment = bits(0x1C, 31, 0)
    rmpp_length = bits(0x20, 31, 0)
    sm_key = raw(0x24, 8)
    attribute_offset = bits(0x2C, 31, 16)
    component_mask = u64(0x30)
    data = raw(0x38, 200)


class ClassPortInfo(Layout, size=0x48, manual="IBTA volume 1, 13.4.8.1"):
    """ClassPortInfo, as far as its receiver looks at it."""

    base_version = bits(0x00, 31, 24)
    class_version = bits(0x00, 23, 16)
    capability_mask = bits(0x00, 15, 0)
    capability_mask_2 = bits(0x04, 31, 5)
    response_time = bits(0x04, 4, 0)


class NodeRecord(Layout, size=0x6C, manual="IBTA volume 1, 15.2.5.2"):
    """SA attribute NodeRecord."""

    lid = bits(0x00, 31, 16)
    node_info = raw(0x04, 40)
    node_description = raw(0x2C, 64)


class PortInfoRecord(Layout, size=0x44, manual="IBTA volume 1, 15.2.5.3"):
    """SA attribute PortInfoRecord."""

    lid = bits(0x00, 31, 16)
    port_num = bits(0x00, 15, 8)
    options = bits(0x00, 7, 0)
    port_info = raw(0x04, 64)


class SmInfoRecord(Layout, size=0x1C, manual="IBTA volume 1, 15.2.5.10"):
    """SA attribute SMInfoRecord."""

    lid = bits(0x00, 31, 16)
    sm_info = nested(0x04, SmInfo)


class PathRecord(Layout, size=0x40, manual="IBTA volume 1, 15.2.5.16"):
    """SA attribute PathRecord."""

    service_id = u64(0x00)
    dgid = raw(0x08, 16)
    sgid = raw(0x18, 16)
    dlid = bits(0x28, 31, 16)
    slid = bits(0x28, 15, 0)
    raw_traffic = bits(0x2C, 31)
    flow_label = bits(0x2C, 27, 8)
    hop_limit = bits(0x2C, 7, 0)
    traffic_class = bits(0x30, 31, 24)
    reversible = bits(0x30, 23)
    number_of_paths = bits(0x30, 22, 16)
    pkey = bits(0x30, 15, 0)
    qos_class = bits(0x34, 31, 20)
    sl = bits(0x34, 19, 16)
    mtu_selector = bits(0x34, 15, 14)
    mtu = bits(0x34, 13, 8)
    rate_selector = bits(0x34, 7, 6)
    rate = bits(0x34, 5, 0)
    packet_life_time_selector = bits(0x38, 31, 30)
    packet_life_time = bits(0x38, 29, 24)
    preference = bits(0x38, 23, 16)


class McMemberRecord(Layout, size=0x34, manual="IBTA volume 1, 15.2.5.17"):
    """SA attribute MCMemberRecord."""

    mgid = raw(0x00, 16)
    port_gid = raw(0x10, 16)
    qkey = bits(0x20, 31, 0)
    mlid = bits(0x24, 31, 16)
    mtu_selector = bits(0x24, 15, 14)
    mtu = bits(0x24, 13, 8)
    traffic_class = bits(0x24, 7, 0)
    pkey = bits(0x28, 31, 16)
    rate_selector = bits(0x28, 15, 14)
    rate = bits(0x28, 13, 8)
    packet_life_time_selector = bits(0x28, 7, 6)
    packet_life_time = bits(0x28, 5, 0)
    sl = bits(0x2C, 31, 28)
    flow_label = bits(0x2C, 27, 8)
    hop_limit = bits(0x2C, 7, 0)
    scope = bits(0x30, 31, 28)
    join_state = bits(0x30, 27, 24)
    proxy_join = bits(0x30, 23)
