"""Shared receive queues, XRC shared receive queues, receive memory pools."""

from enum import IntEnum, unique

from softhca.prm.layout import Layout, array, bits, nested, u64
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import CmdPas
from softhca.prm.status import CommandStatus


@unique
class SrqState(IntEnum):
    """Shared receive queue context 0x00 [31:28]."""

    GOOD = 0x0
    ERROR = 0x1


@unique
class RmpState(IntEnum):
    """Receive memory pool context 0x00 [23:20]."""

    RDY = 0x1
    ERR = 0x3


@unique
class WqType(IntEnum):
    """Work queue 0x00 [31:28]."""

    LINKED_LIST = 0x0
    CYCLIC = 0x1
    LINKED_LIST_STRIDING_RQ = 0x2
    CYCLIC_STRIDING_RQ = 0x3


@unique
class EndPadMode(IntEnum):
    """Work queue 0x00 [26:25]."""

    NONE = 0x0
    ALIGN = 0x1


@unique
class ArmRqOperation(IntEnum):
    """ARM_RQ op_mod."""

    SRQ = 0x1
    XRQ = 0x2


@unique
class ArmXrcSrqOperation(IntEnum):
    """ARM_XRC_SRQ op_mod."""

    XRC_SRQ = 0x1


class Wq(Layout, size=0xC0):
    """Work queue: the buffer of a receive queue, send queue or receive memory pool."""

    wq_type = bits(0x00, 31, 28, WqType)
    wq_signature = bits(0x00, 27)
    end_padding_mode = bits(0x00, 26, 25, EndPadMode)
    cd_slave = bits(0x00, 24)
    hds_skip_first_sge = bits(0x04, 31)
    log2_hds_buf_size = bits(0x04, 30, 28)
    page_offset = bits(0x04, 20, 16)
    lwm = bits(0x04, 15, 0)
    pd = bits(0x08, 23, 0)
    uar_page = bits(0x0C, 23, 0)
    dbr_addr = u64(0x10)
    hw_counter = bits(0x18, 31, 0)
    sw_counter = bits(0x1C, 31, 0)
    log_wq_stride = bits(0x20, 19, 16)
    log_wq_pg_sz = bits(0x20, 12, 8)
    log_wq_sz = bits(0x20, 4, 0)
    dbr_umem_valid = bits(0x24, 31)
    wq_umem_valid = bits(0x24, 30)
    log_hairpin_num_packets = bits(0x24, 28, 24)
    log_hairpin_data_sz = bits(0x24, 20, 16)
    log_wqe_num_of_strides = bits(0x24, 11, 8)
    two_byte_shift_en = bits(0x24, 7)
    log_wqe_stride_size = bits(0x24, 2, 0)
    dbr_umem_id = bits(0x28, 31, 0)
    wq_umem_id = bits(0x2C, 31, 0)
    wq_umem_offset = u64(0x30)
    headers_mkey = bits(0x38, 31, 0)
    shampo_enable = bits(0x3C, 31)
    log_reservation_size = bits(0x3C, 26, 24)
    log_max_num_of_packets_per_reservation = bits(0x3C, 18, 16)
    log_headers_entry_size = bits(0x3C, 9, 8)
    log_headers_buffer_entry_num = bits(0x3C, 3, 0)
    pas = array(0xC0, None, CmdPas)


class Srqc(Layout, size=0x40):
    """Shared receive queue context."""

    state = bits(0x00, 31, 28, SrqState)
    log_srq_size = bits(0x00, 27, 24)
    wq_signature = bits(0x04, 31)
    cont_srq = bits(0x04, 30)
    rlky = bits(0x04, 28)
    log_rq_stride = bits(0x04, 26, 24)
    xrcd = bits(0x04, 23, 0)
    page_offset = bits(0x08, 31, 26)
    cqn = bits(0x08, 23, 0)
    log_page_size = bits(0x10, 29, 24)
    pd = bits(0x18, 23, 0)
    lwm = bits(0x1C, 31, 16)
    wqe_cnt = bits(0x1C, 15, 0)
    dbr_addr = u64(0x28)


class XrcSrqc(Layout, size=0x40):
    """XRC shared receive queue context."""

    state = bits(0x00, 31, 28, SrqState)
    log_xrc_srq_size = bits(0x00, 27, 24)
    wq_signature = bits(0x04, 31)
    cont_srq = bits(0x04, 30)
    rlky = bits(0x04, 28)
    basic_cyclic_rcv_wqe = bits(0x04, 27)
    log_rq_stride = bits(0x04, 26, 24)
    xrcd = bits(0x04, 23, 0)
    page_offset = bits(0x08, 31, 26)
    dbr_umem_valid = bits(0x08, 24)
    cqn = bits(0x08, 23, 0)
    user_index_equal_xrc_srqn = bits(0x10, 31)
    log_page_size = bits(0x10, 29, 24)
    user_index = bits(0x10, 23, 0)
    pd = bits(0x18, 23, 0)
    lwm = bits(0x1C, 31, 16)
    wqe_cnt = bits(0x1C, 15, 0)
    db_record_addr_h = bits(0x28, 31, 0)
    db_record_addr_l = bits(0x2C, 31, 2)


class Rmpc(Layout, size=0xF0):
    """Receive memory pool context."""

    state = bits(0x00, 23, 20, RmpState)
    basic_cyclic_rcv_wqe = bits(0x04, 31)
    wq = nested(0x30, Wq)


class CreateSrqIn(Layout, size=0x110):
    """CREATE_SRQ: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    srq_context_entry = nested(0x10, Srqc)
    pas = array(0x110, None, 64)


class CreateSrqOut(Layout, size=0x10):
    """CREATE_SRQ: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    srqn = bits(0x08, 23, 0)


class DestroySrqIn(Layout, size=0x10):
    """DESTROY_SRQ: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    srqn = bits(0x08, 23, 0)


class DestroySrqOut(Layout, size=0x10):
    """DESTROY_SRQ: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class QuerySrqIn(Layout, size=0x10):
    """QUERY_SRQ: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    srqn = bits(0x08, 23, 0)


class QuerySrqOut(Layout, size=0x110):
    """QUERY_SRQ: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    srq_context_entry = nested(0x10, Srqc)
    pas = array(0x110, None, 64)


class ArmRqIn(Layout, size=0x10):
    """ARM_RQ: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0, ArmRqOperation)
    srq_number = bits(0x08, 23, 0)
    lwm = bits(0x0C, 15, 0)


class ArmRqOut(Layout, size=0x10):
    """ARM_RQ: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class CreateXrcSrqIn(Layout, size=0x110):
    """CREATE_XRC_SRQ: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    xrc_srq_context_entry = nested(0x10, XrcSrqc)
    xrc_srq_umem_valid = bits(0x5C, 31)
    pas = array(0x110, None, 64)


class CreateXrcSrqOut(Layout, size=0x10):
    """CREATE_XRC_SRQ: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    xrc_srqn = bits(0x08, 23, 0)


class DestroyXrcSrqIn(Layout, size=0x10):
    """DESTROY_XRC_SRQ: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    xrc_srqn = bits(0x08, 23, 0)


class DestroyXrcSrqOut(Layout, size=0x10):
    """DESTROY_XRC_SRQ: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class QueryXrcSrqIn(Layout, size=0x10):
    """QUERY_XRC_SRQ: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    xrc_srqn = bits(0x08, 23, 0)


class QueryXrcSrqOut(Layout, size=0x110):
    """QUERY_XRC_SRQ: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    xrc_srq_context_entry = nested(0x10, XrcSrqc)
    pas = array(0x110, None, 64)


class ArmXrcSrqIn(Layout, size=0x10):
    """ARM_XRC_SRQ: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0, ArmXrcSrqOperation)
    xrc_srqn = bits(0x08, 23, 0)
    lwm = bits(0x0C, 15, 0)


class ArmXrcSrqOut(Layout, size=0x10):
    """ARM_XRC_SRQ: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class CreateRmpIn(Layout, size=0x110):
    """CREATE_RMP: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    ctx = nested(0x20, Rmpc)


class CreateRmpOut(Layout, size=0x10):
    """CREATE_RMP: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    rmpn = bits(0x08, 23, 0)


class DestroyRmpIn(Layout, size=0x10):
    """DESTROY_RMP: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    rmpn = bits(0x08, 23, 0)


class DestroyRmpOut(Layout, size=0x10):
    """DESTROY_RMP: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class QueryRmpIn(Layout, size=0x10):
    """QUERY_RMP: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    rmpn = bits(0x08, 23, 0)


class QueryRmpOut(Layout, size=0x110):
    """QUERY_RMP: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    rmp_context = nested(0x20, Rmpc)


class RmpBitmask(Layout, size=0x8):
    """Fields of a receive memory pool to modify, a bit each."""

    lwm = bits(0x04, 0)


class ModifyRmpIn(Layout, size=0x110):
    """MODIFY_RMP: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    rmp_state = bits(0x08, 31, 28)
    rmpn = bits(0x08, 23, 0)
    bitmask = nested(0x10, RmpBitmask)
    ctx = nested(0x20, Rmpc)


class ModifyRmpOut(Layout, size=0x10):
    """MODIFY_RMP: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
