"""Event types and event queue entries (manual: events and interrupts; struct mlx5_eqe)."""

from enum import IntEnum, unique

from softhca.prm.layout import Layout, array, bits, nested, raw


@unique
class EventType(IntEnum):
    """EQE 0x00 [23:16]; the bit of that number in an EQ's event bitmask subscribes to it."""

    COMP = 0x00
    PATH_MIG = 0x01
    COMM_EST = 0x02
    SQ_DRAINED = 0x03
    CQ_ERROR = 0x04
    WQ_CATAS_ERROR = 0x05
    PATH_MIG_FAILED = 0x07
    INTERNAL_ERROR = 0x08
    PORT_CHANGE = 0x09
    CMD = 0x0A
    PAGE_REQUEST = 0x0B
    PAGE_FAULT = 0x0C
    NIC_VPORT_CHANGE = 0x0D
    ESW_FUNCTIONS_CHANGED = 0x0E
    VHCA_STATE_CHANGE = 0x0F
    WQ_INVAL_REQ_ERROR = 0x10
    WQ_ACCESS_ERROR = 0x11
    SRQ_CATAS_ERROR = 0x12
    SRQ_LAST_WQE = 0x13
    SRQ_RQ_LIMIT = 0x14
    GPIO_EVENT = 0x15
    PORT_MODULE_EVENT = 0x16
    TEMP_WARN_EVENT = 0x17
    XRQ_ERROR = 0x18
    REMOTE_CONFIG = 0x19
    DB_BF_CONGESTION = 0x1A
    STALL_EVENT = 0x1B
    DCT_DRAINED = 0x1C
    DCT_KEY_VIOLATION = 0x1D
    FPGA_ERROR = 0x20
    FPGA_QP_ERROR = 0x21
    GENERAL_EVENT = 0x22
    MONITOR_COUNTER = 0x24
    PPS_EVENT = 0x25
    DEVICE_TRACER = 0x26
    OBJECT_CHANGE = 0x27


class EqeComp(Layout, size=0x1C, manual="Event queue entry, completion event"):
    """Event data: completion."""

    cqn = bits(0x18, 31, 0)


class EqeQpSrq(Layout, size=0x1C, manual="Event queue entry, QP and SRQ events"):
    """Event data: affiliated QP or SRQ event."""

    type = bits(0x14, 31, 24)
    qp_srq_n = bits(0x18, 31, 0)


class EqeCqErr(Layout, size=0x1C, manual="Event queue entry, CQ error"):
    """Event data: CQ error; syndrome 1 is an overrun."""

    cqn = bits(0x00, 31, 0)
    syndrome = bits(0x08, 7, 0)


class EqePortState(Layout, size=0x1C, manual="Event queue entry, port state change"):
    """Event data: port change; the port number is in the upper four bits."""

    port = bits(0x08, 31, 24)


class EqeCmd(Layout, size=0x1C, manual="Event queue entry, command completion"):
    """Event data: bitmap of the slots that completed."""

    vector = bits(0x00, 31, 0)


class EqePageReq(Layout, size=0x1C, manual="Event queue entry, pages request"):
    """Event data: pages asked for (positive) or returnable (negative, two's complement)."""

    ec_function = bits(0x00, 31, 16)
    func_id = bits(0x00, 15, 0)
    num_pages = bits(0x04, 31, 0)


class EqePortModule(Layout, size=0x1C, manual="Event queue entry, port module event"):
    """Event data: port module."""

    module = bits(0x00, 23, 16)
    module_status = bits(0x00, 7, 0)
    error_type = bits(0x04, 15, 8)


class EqeVportChange(Layout, size=0x1C, manual="Event queue entry, NIC vport change"):
    """Event data: NIC vport context changed."""

    vport_num = bits(0x00, 15, 0)


class EqeTempWarning(Layout, size=0x1C, manual="Event queue entry, temperature warning"):
    """Event data: sensors above their threshold, a bit each."""

    sensor_warning_msb = raw(0x00, 8)
    sensor_warning_lsb = raw(0x08, 8)


class EvData(Layout, size=0x1C, manual="Event queue entry, event data"):
    """Event data (a union)."""

    raw = array(0x00, 7, 32)
    cmd = nested(0x00, EqeCmd)
    comp = nested(0x00, EqeComp)
    qp_srq = nested(0x00, EqeQpSrq)
    cq_err = nested(0x00, EqeCqErr)
    port = nested(0x00, EqePortState)
    req_pages = nested(0x00, EqePageReq)
    vport_change = nested(0x00, EqeVportChange)
    port_module = nested(0x00, EqePortModule)
    temp_warning = nested(0x00, EqeTempWarning)


class Eqe(Layout, size=0x40, manual="Event queue entry"):
    """Event queue entry."""

    type = bits(0x00, 23, 16, EventType)
    sub_type = bits(0x00, 7, 0)
    data = nested(0x20, EvData)
    signature = bits(0x3C, 15, 8)
    owner = bits(0x3C, 0)
