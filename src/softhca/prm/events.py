"""Event types and event queue entries (manual: events and interrupts; struct mlx5_eqe)."""

from enum import IntEnum, unique

from softhca.prm.layout import Layout, array, bits, nested, u64


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


@unique
class PortChangeSubtype(IntEnum):
    """Sub-type of a port change event."""

    DOWN = 0x1
    ACTIVE = 0x4
    INITIALIZED = 0x5
    LID = 0x6
    PKEY = 0x7
    GUID = 0x8
    CLIENT_REREG = 0x9


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

    sensor_warning_msb = u64(0x00)
    sensor_warning_lsb = u64(0x08)


class EqeXrqErr(Layout, size=0x1C, manual="Event queue entry, XRQ error"):
    """Event data: error of a receive queue with tag matching."""

    type_xrqn = bits(0x14, 31, 0)


class EqeGpio(Layout, size=0x1C, manual="Event queue entry, GPIO event"):
    """Event data: lines that changed, a bit each."""

    gpio_event = u64(0x08)


class EqeCongestion(Layout, size=0x1C, manual="Event queue entry, doorbell congestion"):
    """Event data: congestion of doorbells."""

    type = bits(0x00, 31, 24)
    congestion_level = bits(0x00, 15, 8)


class EqeStallVl(Layout, size=0x1C, manual="Event queue entry, stall"):
    """Event data: a virtual lane is stalled."""

    port_vl = bits(0x00, 7, 0)


class EqePageFaultWqe(Layout, size=0x1C, manual="Event queue entry, page fault, WQE"):
    """Page fault at a work request."""

    bytes_committed = bits(0x00, 31, 0)
    wqe_index = bits(0x04, 15, 0)
    packet_length = bits(0x08, 15, 0)
    token = bits(0x0C, 31, 0)
    pftype_wq = bits(0x18, 31, 0)


class EqePageFaultRdma(Layout, size=0x1C, manual="Event queue entry, page fault, RDMA"):
    """Page fault at the target of an RDMA operation."""

    bytes_committed = bits(0x00, 31, 0)
    r_key = bits(0x04, 31, 0)
    packet_length = bits(0x08, 15, 0)
    rdma_op_len = bits(0x0C, 31, 0)
    rdma_va = u64(0x10)
    pftype_token = bits(0x18, 31, 0)


class EqePageFaultMemory(Layout, size=0x1C, manual="Event queue entry, page fault, memory scheme"):
    """Page fault at a memory key; demand_fault_pages counts 4 KiB pages in bits 31 to 12."""

    flags = bits(0x00, 31, 24)
    post_demand_fault_pages = bits(0x00, 15, 0)
    pre_demand_fault_pages = bits(0x04, 31, 16)
    token47_32 = bits(0x04, 15, 0)
    token31_0 = bits(0x08, 31, 0)
    demand_fault_pages = bits(0x0C, 31, 0)
    mkey = bits(0x10, 31, 0)
    va = u64(0x14)


class EqePageFault(Layout, size=0x1C, manual="Event queue entry, page fault"):
    """Event data: page fault; the sub-type tells which (a union)."""

    wqe = nested(0x00, EqePageFaultWqe)
    rdma = nested(0x00, EqePageFaultRdma)
    memory = nested(0x00, EqePageFaultMemory)


class EqePps(Layout, size=0x1C, manual="Event queue entry, PPS event"):
    """Event data: edge at a pin; time_stamp is seconds and nanoseconds, or a count of the internal timer."""

    pin = bits(0x00, 7, 0)
    time_stamp = u64(0x08)


class EqeDct(Layout, size=0x1C, manual="Event queue entry, DCT event"):
    """Event data: affiliated DC target event."""

    dctn = bits(0x18, 31, 0)


class EqeObjChange(Layout, size=0x1C, manual="Event queue entry, object change"):
    """Event data: a general object changed."""

    obj_type = bits(0x00, 15, 0)
    obj_id = bits(0x04, 31, 0)


class EqeSyncFwUpdate(Layout, size=0x1C, manual="Event queue entry, general event, firmware update"):
    """Event data: stage of a firmware reset."""

    sync_rst_state = bits(0x00, 7, 0)


class EqeVhcaState(Layout, size=0x1C, manual="Event queue entry, VHCA state change"):
    """Event data: the state of a function changed."""

    ec_function = bits(0x00, 31, 16)
    function_id = bits(0x00, 15, 0)


class EvData(Layout, size=0x1C, manual="Event queue entry, event data"):
    """Event data; the type of the entry tells which (a union)."""

    raw = array(0x00, 7, 32)
    cmd = nested(0x00, EqeCmd)
    comp = nested(0x00, EqeComp)
    qp_srq = nested(0x00, EqeQpSrq)
    cq_err = nested(0x00, EqeCqErr)
    port = nested(0x00, EqePortState)
    gpio = nested(0x00, EqeGpio)
    cong = nested(0x00, EqeCongestion)
    stall_vl = nested(0x00, EqeStallVl)
    req_pages = nested(0x00, EqePageReq)
    page_fault = nested(0x00, EqePageFault)
    vport_change = nested(0x00, EqeVportChange)
    port_module = nested(0x00, EqePortModule)
    pps = nested(0x00, EqePps)
    dct = nested(0x00, EqeDct)
    temp_warning = nested(0x00, EqeTempWarning)
    xrq_err = nested(0x00, EqeXrqErr)
    sync_fw_update = nested(0x00, EqeSyncFwUpdate)
    vhca_state = nested(0x00, EqeVhcaState)
    obj_change = nested(0x00, EqeObjChange)


EVENT_DATA: dict[int, str] = {
    EventType.COMP: "comp",
    EventType.PATH_MIG: "qp_srq",
    EventType.COMM_EST: "qp_srq",
    EventType.SQ_DRAINED: "qp_srq",
    EventType.CQ_ERROR: "cq_err",
    EventType.WQ_CATAS_ERROR: "qp_srq",
    EventType.PATH_MIG_FAILED: "qp_srq",
    EventType.PORT_CHANGE: "port",
    EventType.CMD: "cmd",
    EventType.PAGE_REQUEST: "req_pages",
    EventType.PAGE_FAULT: "page_fault",
    EventType.NIC_VPORT_CHANGE: "vport_change",
    EventType.VHCA_STATE_CHANGE: "vhca_state",
    EventType.WQ_INVAL_REQ_ERROR: "qp_srq",
    EventType.WQ_ACCESS_ERROR: "qp_srq",
    EventType.SRQ_CATAS_ERROR: "qp_srq",
    EventType.SRQ_LAST_WQE: "qp_srq",
    EventType.SRQ_RQ_LIMIT: "qp_srq",
    EventType.GPIO_EVENT: "gpio",
    EventType.PORT_MODULE_EVENT: "port_module",
    EventType.TEMP_WARN_EVENT: "temp_warning",
    EventType.XRQ_ERROR: "xrq_err",
    EventType.DB_BF_CONGESTION: "cong",
    EventType.STALL_EVENT: "stall_vl",
    EventType.DCT_DRAINED: "dct",
    EventType.DCT_KEY_VIOLATION: "dct",
    EventType.PPS_EVENT: "pps",
    EventType.OBJECT_CHANGE: "obj_change",
}
"""Type of an event -> the field of EvData that describes it; a type that is not here has none."""


class Eqe(Layout, size=0x40, manual="Event queue entry"):
    """Event queue entry."""

    type = bits(0x00, 23, 16, EventType)
    sub_type = bits(0x00, 7, 0)
    data = nested(0x20, EvData)
    signature = bits(0x3C, 15, 8)
    owner = bits(0x3C, 0)

    def alternative(self, name: str) -> str | None:
        """The data that an event of this type has."""
        return EVENT_DATA.get(self.type) if name == "data" else None
