"""Send queues that are objects of their own (raw Ethernet)."""

from enum import IntEnum, unique

from softhca.prm.layout import Layout, bits, nested, u64
from softhca.prm.opcodes import Opcode
from softhca.prm.srq import Wq
from softhca.prm.status import CommandStatus


@unique
class SqState(IntEnum):
    """Send queue context 0x00 [23:20]."""

    RST = 0x0
    RDY = 0x1
    ERR = 0x3


class Sqc(Layout, size=0xF0):
    """Send queue context."""

    rlky = bits(0x00, 31)
    cd_master = bits(0x00, 30)
    fre = bits(0x00, 29)
    flush_in_error_en = bits(0x00, 28)
    allow_multi_pkt_send_wqe = bits(0x00, 27)
    min_wqe_inline_mode = bits(0x00, 26, 24)
    state = bits(0x00, 23, 20, SqState)
    reg_umr = bits(0x00, 19)
    allow_swp = bits(0x00, 18)
    hairpin = bits(0x00, 17)
    non_wire = bits(0x00, 16)
    ts_format = bits(0x00, 5, 4)
    user_index = bits(0x04, 23, 0)
    cqn = bits(0x08, 23, 0)
    hairpin_peer_rq = bits(0x0C, 23, 0)
    hairpin_peer_vhca = bits(0x10, 15, 0)
    ts_cqe_to_dest_cqn = bits(0x18, 23, 0)
    packet_pacing_rate_limit_index = bits(0x1C, 15, 0)
    tis_lst_sz = bits(0x20, 31, 16)
    qos_queue_group_id = bits(0x20, 15, 0)
    tis_num_0 = bits(0x2C, 23, 0)
    wq = nested(0x30, Wq)


class CreateSqIn(Layout, size=0x110):
    """CREATE_SQ: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    ctx = nested(0x20, Sqc)


class CreateSqOut(Layout, size=0x10):
    """CREATE_SQ: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    sqn = bits(0x08, 23, 0)


class ModifySqIn(Layout, size=0x110):
    """MODIFY_SQ: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    sq_state = bits(0x08, 31, 28, SqState)
    sqn = bits(0x08, 23, 0)
    modify_bitmask = u64(0x10)
    ctx = nested(0x20, Sqc)


class ModifySqOut(Layout, size=0x10):
    """MODIFY_SQ: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class DestroySqIn(Layout, size=0x10):
    """DESTROY_SQ: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    sqn = bits(0x08, 23, 0)


class DestroySqOut(Layout, size=0x10):
    """DESTROY_SQ: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class QuerySqIn(Layout, size=0x10):
    """QUERY_SQ: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    sqn = bits(0x08, 23, 0)


class QuerySqOut(Layout, size=0x110):
    """QUERY_SQ: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    sq_context = nested(0x20, Sqc)
