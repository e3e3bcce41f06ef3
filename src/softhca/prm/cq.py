"""Completion queues."""

from enum import IntEnum, unique

from softhca.prm.layout import Layout, array, bits, nested, u64
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus


@unique
class CqStatus(IntEnum):
    """Completion queue context 0x00 [31:28]."""

    OK = 0x0
    CQ_OVERFLOW = 0x9
    CQ_WRITE_FAIL = 0xA


@unique
class CqState(IntEnum):
    """Completion queue context 0x00 [11:8]: which completion raises an event."""

    SOLICITED_NOTIFICATION_REQUEST_ARMED = 0x6
    NOTIFICATION_REQUEST_ARMED = 0x9
    FIRED = 0xA


@unique
class CqeSize(IntEnum):
    """Completion queue context 0x00 [23:21]."""

    BYTES_64 = 0x0
    BYTES_128 = 0x1
    BYTES_128_PADDED = 0x2


@unique
class CqPeriodMode(IntEnum):
    """Completion queue context 0x00 [16:15]: what starts the moderation period."""

    START_FROM_EQE = 0x0
    START_FROM_CQE = 0x1


@unique
class MiniCqeFormat(IntEnum):
    """Completion queue context 0x00 [13:12]: what a responder's CQE keeps of its own when it is compressed."""

    RESPONDER_HASH = 0x0
    RESPONDER_CHECKSUM = 0x1
    RESPONDER_CHECKSUM_STRIDE_INDEX = 0x3


@unique
class CqeCompressionLayout(IntEnum):
    """Completion queue context 0x00 [1:0]."""

    BASIC = 0x0
    ENHANCED = 0x1


@unique
class ModifyCqOperation(IntEnum):
    """MODIFY_CQ op_mod."""

    MODIFY_CQ = 0x0
    RESIZE_CQ = 0x1


@unique
class CqErrorSyndrome(IntEnum):
    """CQ error event, syndrome."""

    CQ_OVERRUN = 0x1
    CQ_ACCESS_VIOLATION_ERROR = 0x2


@unique
class ModifyCqField(IntEnum):
    """MODIFY_CQ modify_field_select: a bit for each thing that changes."""

    PERIOD = 0x1
    COUNT = 0x2
    OVERRUN = 0x4
    PERIOD_MODE = 0x10


@unique
class ResizeCqField(IntEnum):
    """MODIFY_CQ resize_field_select: a bit for each thing that changes."""

    LOG_SIZE = 0x1
    PAGE_OFFSET = 0x2
    PAGE_SIZE = 0x4


class Cqc(Layout, size=0x40):
    """Completion queue context."""

    status = bits(0x00, 31, 28, CqStatus)
    dbr_umem_valid = bits(0x00, 25)
    apu_cq = bits(0x00, 24)
    cqe_sz = bits(0x00, 23, 21, CqeSize)
    cc = bits(0x00, 20)
    scqe_break_moderation_en = bits(0x00, 18)
    oi = bits(0x00, 17)
    cq_period_mode = bits(0x00, 16, 15, CqPeriodMode)
    cqe_comp_en = bits(0x00, 14)
    mini_cqe_res_format = bits(0x00, 13, 12, MiniCqeFormat)
    st = bits(0x00, 11, 8, CqState)
    cqe_compression_layout = bits(0x00, 1, 0, CqeCompressionLayout)
    page_offset = bits(0x08, 11, 6)
    log_cq_size = bits(0x0C, 28, 24)
    uar_page = bits(0x0C, 23, 0)
    cq_period = bits(0x10, 27, 16)
    cq_max_count = bits(0x10, 15, 0)
    c_eqn_or_apu_element = bits(0x14, 31, 0)
    log_page_size = bits(0x18, 28, 24)
    last_notified_index = bits(0x20, 23, 0)
    last_solicit_index = bits(0x24, 23, 0)
    consumer_counter = bits(0x28, 23, 0)
    producer_counter = bits(0x2C, 23, 0)
    dbr_addr = u64(0x38)


class CreateCqIn(Layout, size=0x110):
    """CREATE_CQ: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    cq_context = nested(0x10, Cqc)
    cq_umem_valid = bits(0x5C, 31)
    pas = array(0x110, None, 64)


class CreateCqOut(Layout, size=0x10):
    """CREATE_CQ: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    cqn = bits(0x08, 23, 0)


class DestroyCqIn(Layout, size=0x10):
    """DESTROY_CQ: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    cqn = bits(0x08, 23, 0)


class DestroyCqOut(Layout, size=0x10):
    """DESTROY_CQ: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class QueryCqIn(Layout, size=0x10):
    """QUERY_CQ: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    cqn = bits(0x08, 23, 0)


class QueryCqOut(Layout, size=0x110):
    """QUERY_CQ: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    cq_context = nested(0x10, Cqc)
    pas = array(0x110, None, 64)


class ModifyFieldSelect(Layout, size=0x4):
    """Fields to modify, a bit each."""

    modify_field_select = bits(0x00, 31, 0)


class ResizeFieldSelect(Layout, size=0x4):
    """Fields to resize by, a bit each."""

    resize_field_select = bits(0x00, 31, 0)


class ModifyFieldSelectResizeFieldSelectAuto(Layout, size=0x4):
    """Fields to modify or to resize by (a union)."""

    modify_field_select = nested(0x00, ModifyFieldSelect)
    resize_field_select = nested(0x00, ResizeFieldSelect)


class ModifyCqIn(Layout, size=0x110):
    """MODIFY_CQ: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0, ModifyCqOperation)
    cqn = bits(0x08, 23, 0)
    modify_field_select_resize_field_select = nested(0x0C, ModifyFieldSelectResizeFieldSelectAuto)
    cq_context = nested(0x10, Cqc)
    cq_umem_valid = bits(0x5C, 31)
    pas = array(0x110, None, 64)


class ModifyCqOut(Layout, size=0x10):
    """MODIFY_CQ: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
