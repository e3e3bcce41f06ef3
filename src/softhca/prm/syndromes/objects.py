"""Syndromes of objects: their numbers, references, contexts and limits (area 02)."""

from softhca.prm.status import CommandStatus
from softhca.prm.syndromes.table import syndrome

NO_SUCH_OBJECT = syndrome(
    0xCA020001,
    CommandStatus.BAD_RESOURCE,
    "the number names no object of that kind of this function",
    "the order of create and destroy; numbers from before the last INIT_HCA are not valid",
)
STILL_REFERENCED = syndrome(
    0xCA020002,
    CommandStatus.BAD_RES_STATE,
    "the object is still referenced by another one",
    "destroy what refers to it first (QPs before CQs, CQs before EQs, keys before PDs)",
)
TABLE_FULL = syndrome(
    0xCA020003,
    CommandStatus.EXCEED_LIM,
    "as many objects of that kind exist as the capabilities allow",
    "the log_max_ capability of the object",
)
NO_SUCH_REFERENCE = syndrome(
    0xCA020004,
    CommandStatus.BAD_RESOURCE,
    "the command refers to an object that does not exist",
    "the object numbers inside the context",
)
PAGE_LIST_SHORT = syndrome(
    0xCA020010,
    CommandStatus.BAD_INPUT_LEN,
    "the page list holds fewer pages than the buffer needs",
    "buffer bytes and page_offset divided by the page size, rounded up, are the entries that pas needs",
)
PAGE_MISALIGNED = syndrome(
    0xCA020011,
    CommandStatus.BAD_PARAM,
    "a page address is not a multiple of the page size",
    "log_page_size of the context (queues count from 4 KiB, keys from 1 byte) and the addresses in pas",
)
BAD_PAGE_SIZE = syndrome(
    0xCA020012,
    CommandStatus.BAD_SIZE,
    "the page size is not one that the device takes",
    "log_page_size: queues 0 to 19 (4 KiB to 2 GiB), keys 12 to 31",
)
BAD_DOORBELL_RECORD = syndrome(
    0xCA020013,
    CommandStatus.BAD_PARAM,
    "the doorbell record's address is zero or not a multiple of 4",
    "dbr_addr of the context",
)
UMEM_UNSUPPORTED = syndrome(
    0xCA020014,
    CommandStatus.BAD_PARAM,
    "the buffer or doorbell record is given as a UMEM, which this device does not have",
    "give the pages in pas and the record in dbr_addr",
)
BAD_QUEUE_SIZE = syndrome(
    0xCA020015,
    CommandStatus.EXCEED_LIM,
    "the queue has more slots than the capabilities allow",
    "log_max_eq_sz, log_max_cq_sz, log_max_qp_sz, log_max_srq_sz",
)
BAD_INTERRUPT = syndrome(
    0xCA020020,
    CommandStatus.BAD_PARAM,
    "the EQ's interrupt is not one of the device's MSI-X vectors",
    "intr of the EQ context, the table size of the MSI-X capability",
)
EVENT_UNKNOWN = syndrome(
    0xCA020021,
    CommandStatus.BAD_PARAM,
    "the event bitmask holds an event that this device does not know",
    "event_bitmask of CREATE_EQ",
)
EVENT_TAKEN = syndrome(
    0xCA020022,
    CommandStatus.BAD_RES_STATE,
    "an event of the bitmask is mapped to another EQ already",
    "destroy the other EQ first, or leave the event out",
)
CQE_SIZE_UNSUPPORTED = syndrome(
    0xCA020030,
    CommandStatus.BAD_PARAM,
    "the CQE size is not one that the device takes",
    "cqe_sz of the CQ context: 0 (64 bytes), 1 and 2 (128 bytes)",
)
CQE_COMPRESSION_UNSUPPORTED = syndrome(
    0xCA020031,
    CommandStatus.BAD_PARAM,
    "CQE compression of a kind that the device does not have",
    "the CQ context: cqe_comp_en needs the capability cqe_compression, or cqe_compression_128 for CQEs of 128 bytes; "
    "mini_cqe_res_format 0, 1, or 3 with mini_cqe_resp_stride_index; cqe_compression_layout 0; not with cc",
)
CQ_CHANNEL_UNSUPPORTED = syndrome(
    0xCA020032,
    CommandStatus.BAD_PARAM,
    "a CQ that reports to an APU is asked for, which this device does not have",
    "apu_cq of the CQ context",
)
CQ_FIELD_UNSUPPORTED = syndrome(
    0xCA020033,
    CommandStatus.BAD_PARAM,
    "MODIFY_CQ selects a field that cannot be changed",
    "modify_field_select: 1 (period), 2 (count), 4 (oi)",
)
ACCESS_MODE_UNSUPPORTED = syndrome(
    0xCA020040,
    CommandStatus.BAD_PARAM,
    "the key's access mode is not one that the device takes",
    "access_mode_4_2 and access_mode_1_0 of the MKey context: 0 (PA), 1 (MTT); with max_indirection 2 (KLM), and with "
    "fixed_buffer_size 3 (KSM)",
)
KEY_RANGE_INVALID = syndrome(
    0xCA020041,
    CommandStatus.BAD_PARAM,
    "the key's range is empty or runs over the end of 64 bits",
    "start_addr, len and length64 of the MKey context",
)
KEY_FEATURE_UNSUPPORTED = syndrome(
    0xCA020042,
    CommandStatus.BAD_PARAM,
    "the key asks for signatures or for access rights by page, which this device does not have",
    "bsf_en and bsf_octword_size of the MKey context, pg_access of the command",
)
TRANSLATION_SIZE_INVALID = syndrome(
    0xCA020043,
    CommandStatus.BAD_INPUT_LEN,
    "the message holds fewer translation entries than it says",
    "translations_octword_actual_size counts 16 bytes each",
)
KEY_LIST_TOO_LONG = syndrome(
    0xCA020044,
    CommandStatus.EXCEED_LIM,
    "the key has more entries than the device takes",
    "translations_octword_size of the MKey context, log_max_klm_list_size",
)
SRQ_STRIDE_INVALID = syndrome(
    0xCA020050,
    CommandStatus.BAD_SIZE,
    "the stride of the receive queue is too small for a next segment and a data segment, or too big",
    "log_rq_stride, log_wq_stride",
)
WQ_TYPE_UNSUPPORTED = syndrome(
    0xCA020051,
    CommandStatus.BAD_PARAM,
    "the type of work queue is not one that the device takes here",
    "wq_type and wq_signature of the WQ context: a linked list (0) or cyclic (1), without signatures",
)
POOL_WRONG_KIND = syndrome(
    0xCA020052,
    CommandStatus.BAD_RESOURCE,
    "the number names a receive pool of another kind",
    "SRQ, XRC_SRQ and RMP share a number space; use the command of the kind that created it",
)
POOL_MODIFY_INVALID = syndrome(
    0xCA020053,
    CommandStatus.BAD_PARAM,
    "MODIFY_RMP asks for a change that is not possible",
    "rmp_state 1 (ready), bitmask with lwm alone",
)
LIMIT_INVALID = syndrome(
    0xCA020054,
    CommandStatus.BAD_PARAM,
    "the limit is above the number of slots of the receive queue",
    "lwm",
)
SERVICE_UNSUPPORTED = syndrome(
    0xCA020060,
    CommandStatus.BAD_PARAM,
    "the QP's service type is not one that the device takes",
    "st of the QP context; docs/conformance.md lists the transports",
)
QP_FEATURE_UNSUPPORTED = syndrome(
    0xCA020061,
    CommandStatus.BAD_PARAM,
    "the QP asks for a feature that this device does not have",
    "wq_signature, cross-channel (cd_*), stateless offload and qpc_ext of CREATE_QP",
)
RQ_TYPE_INVALID = syndrome(
    0xCA020062,
    CommandStatus.BAD_PARAM,
    "the type of receive queue is not one that the device takes",
    "rq_type of the QP context: 0 (own), 1 (SRQ or RMP), 3 (none)",
)
POOL_PD_MISMATCH = syndrome(
    0xCA020063,
    CommandStatus.BAD_PARAM,
    "the QP and its SRQ belong to different protection domains",
    "pd of the QP context and of the SRQ's",
)
ILLEGAL_TRANSITION = syndrome(
    0xCA020070,
    CommandStatus.BAD_QP_STATE,
    "the QP's state does not allow this transition",
    "QUERY_QP for the state; a QP in error leaves it through 2RST_QP only",
)
OPTIONAL_NOT_ALLOWED = syndrome(
    0xCA020071,
    CommandStatus.BAD_PARAM,
    "opt_param_mask holds a field that is not optional in this transition",
    "opt_param_mask",
)
PORT_INVALID = syndrome(
    0xCA020072,
    CommandStatus.BAD_PARAM,
    "the QP's port is not one of the device's",
    "vhca_port_num of the primary address path: 1 to num_ports",
)
MTU_INVALID = syndrome(
    0xCA020073,
    CommandStatus.BAD_PARAM,
    "the path MTU is not defined",
    "mtu of the QP context: 1 (256) to 5 (4096)",
)
MESSAGE_SIZE_INVALID = syndrome(
    0xCA020074,
    CommandStatus.EXCEED_LIM,
    "log_msg_max is above the capability",
    "log_max_msg",
)
READ_DEPTH_INVALID = syndrome(
    0xCA020075,
    CommandStatus.EXCEED_LIM,
    "more outstanding reads and atomics are asked for than the capabilities allow",
    "log_sra_max and log_max_ra_req_qp, log_rra_max and log_max_ra_res_qp",
)
PATH_MIGRATION_UNSUPPORTED = syndrome(
    0xCA020076,
    CommandStatus.BAD_PARAM,
    "an alternate path is asked for, which this device does not have",
    "pm_state 3 (migrated), opt_param_mask without the alternate path",
)
PKEY_INDEX_INVALID = syndrome(
    0xCA020077,
    CommandStatus.BAD_INDEX,
    "the P_Key index is outside the port's table",
    "pkey_index of the primary address path, pkey_table_size",
)
