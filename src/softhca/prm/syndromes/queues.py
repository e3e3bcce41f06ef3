"""Syndromes of queues that change while they are used, and of their counters (area 04)."""

from softhca.prm.status import CommandStatus
from softhca.prm.syndromes.table import syndrome

CQ_RESIZE_FIELDS = syndrome(
    0xCA040001,
    CommandStatus.BAD_PARAM,
    "MODIFY_CQ is to resize, and does not select size, page size and page offset together",
    "resize_field_select: 7",
)
CQ_RESIZE_CQE_SIZE = syndrome(
    0xCA040002,
    CommandStatus.BAD_PARAM,
    "the new buffer of a CQ has CQEs of another size",
    "cqe_sz: as at the CQ's creation",
)
CQ_RESIZE_NO_ROOM = syndrome(
    0xCA040003,
    CommandStatus.BAD_SIZE,
    "the CQ cannot be resized: its old buffer has no room for the resize CQE, or the new one none for what is unread",
    "unread CQEs: consumer counter in the doorbell record",
)
CQ_RESIZE_BAD_STATE = syndrome(
    0xCA040004,
    CommandStatus.BAD_RES_STATE,
    "a CQ in its error state, or one whose buffer cannot be written, is not resized",
    "status of the CQ context: destroy the CQ",
)
Q_COUNTER_VPORT = syndrome(
    0xCA040010,
    CommandStatus.BAD_PARAM,
    "Q counters of another vport or of all sets together are asked for, which this device does not have",
    "other_vport and aggregate; the capabilities q_counter_other_vport and q_counter_aggregation",
)
VPORT_COUNTER_PORT = syndrome(
    0xCA040011,
    CommandStatus.BAD_PARAM,
    "QUERY_VPORT_COUNTER names a port that the device does not have",
    "port_num: 0 or 1",
)
PPCNT_GROUP = syndrome(
    0xCA040012,
    CommandStatus.BAD_PARAM,
    "PPCNT has not this group of counters",
    "grp: 0x20 (InfiniBand port counters), 0x21 (extended ones)",
)
COUNTER_SET_INVALID = syndrome(
    0xCA040013,
    CommandStatus.BAD_PARAM,
    "a QP is to count in a set of Q counters that does not exist",
    "counter_set_id: 0, or what ALLOC_Q_COUNTER gave",
)
SCATTER_TO_CQE_INVALID = syndrome(
    0xCA040020,
    CommandStatus.BAD_PARAM,
    "CQEs are to carry data, and the value is not defined or the CQ's CQEs do not hold so much",
    "cs_res 0, 1 or 2, cs_req 0, 0x11 or 0x22: 32 bytes in CQEs of 64, 64 bytes in CQEs of 128",
)
SQ_FEATURE_UNSUPPORTED = syndrome(
    0xCA040030,
    CommandStatus.BAD_PARAM,
    "a send queue with more than NOPs to do is asked for, which this device does not have",
    "TIS, pacing, hairpin and UMR in the SQ context; modify_bitmask",
)
SQ_STATE_INVALID = syndrome(
    0xCA040031,
    CommandStatus.BAD_RES_STATE,
    "the send queue is in another state, or its state does not lead to the one wanted",
    "sq_state is the state now, state in the context the next: RST, RDY, ERR",
)
PAGE_FAULT_TOKEN = syndrome(
    0xCA040040,
    CommandStatus.BAD_RES_STATE,
    "no page fault that waits has this token: it was resumed already, or its QP is gone",
    "fault_token is that of the event; each is resumed once",
)
PAGE_FAULT_OTHER = syndrome(
    0xCA040041,
    CommandStatus.BAD_PARAM,
    "the page fault of this token is of another queue or type",
    "wq_number and page_fault_type are those of the event; for an RDMA fault wq_number is the token",
)
CQ_PERIOD_MODE = syndrome(
    0xCA040050,
    CommandStatus.BAD_PARAM,
    "the moderation period of a CQ is to start from what the device does not have",
    "cq_period_mode of the CQ context: 0 (event), 1 (CQE) with the capability cq_period_start_from_cqe",
)
