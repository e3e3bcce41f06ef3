"""Completion queue entries (manual: completion queues; struct mlx5_cqe64, mlx5_err_cqe)."""

from enum import IntEnum, unique

from softhca.prm.layout import Layout, bits, nested, raw, u64
from softhca.prm.wqe import WqeOpcode


@unique
class CqeOpcode(IntEnum):
    """CQE 0x3C [7:4]."""

    REQ = 0x0
    RESP_WR_IMM = 0x1
    RESP_SEND = 0x2
    RESP_SEND_IMM = 0x3
    RESP_SEND_INV = 0x4
    RESIZE_CQ = 0x5
    NO_PACKET = 0x6
    SIG_ERR = 0xC
    REQ_ERR = 0xD
    RESP_ERR = 0xE
    INVALID = 0xF


@unique
class CqeSyndrome(IntEnum):
    """Error CQE 0x34 [7:0]: what ended the work request."""

    LOCAL_LENGTH_ERR = 0x01
    LOCAL_QP_OP_ERR = 0x02
    LOCAL_PROT_ERR = 0x04
    WR_FLUSH_ERR = 0x05
    MW_BIND_ERR = 0x06
    BAD_RESP_ERR = 0x10
    LOCAL_ACCESS_ERR = 0x11
    REMOTE_INVAL_REQ_ERR = 0x12
    REMOTE_ACCESS_ERR = 0x13
    REMOTE_OP_ERR = 0x14
    TRANSPORT_RETRY_EXC_ERR = 0x15
    RNR_RETRY_EXC_ERR = 0x16
    REMOTE_ABORTED_ERR = 0x22


@unique
class CqeInline(IntEnum):
    """CQE 0x3C [3:2]: whether the CQE carries the message itself, or stands for several CQEs."""

    NONE = 0x0
    UP_TO_32 = 0x1
    UP_TO_64 = 0x2
    COMPRESSED = 0x3


class CqeLro(Layout, size=0x08, manual="Completion queue entry, large receive offload"):
    """What a CQE says of merged TCP segments."""

    tcppsh_abort_dupack = bits(0x00, 31, 24)
    min_ttl = bits(0x00, 23, 16)
    tcp_win = bits(0x00, 15, 0)
    ack_seq_num = bits(0x04, 31, 0)


class CqeShampo(Layout, size=0x08, manual="Completion queue entry, header split"):
    """What a CQE says of a header that was split from its data."""

    flush = bits(0x00, 26)
    match = bits(0x00, 25)
    header_size = bits(0x00, 23, 16)
    header_entry_index = bits(0x00, 15, 0)
    data_offset = bits(0x04, 31, 0)


class Cqe64(Layout, size=0x40, manual="Completion queue entry, 64 bytes"):
    """Completion queue entry, 64 bytes."""

    tls_outer_l3_tunneled = bits(0x00, 31, 24)
    wqe_id = bits(0x00, 15, 0)
    lro = nested(0x04, CqeLro)
    shampo = nested(0x04, CqeShampo)
    rss_hash_result = bits(0x0C, 31, 0)
    rss_hash_type = bits(0x10, 31, 24)
    ml_path = bits(0x10, 23, 16)
    check_sum = bits(0x14, 31, 16)
    slid = bits(0x14, 15, 0)
    flags_rqpn = bits(0x18, 31, 0)
    hds_ip_ext = bits(0x1C, 31, 24)
    l4_l3_hdr_type = bits(0x1C, 23, 16)
    vlan_info = bits(0x1C, 15, 0)
    srqn = bits(0x20, 31, 0)
    imm_inval_pkey = bits(0x24, 31, 0)
    app = bits(0x28, 31, 24)
    app_op = bits(0x28, 23, 16)
    app_info = bits(0x28, 15, 0)
    byte_cnt = bits(0x2C, 31, 0)
    timestamp = u64(0x30)
    sop_drop_qpn = bits(0x38, 31, 0)
    qpn = bits(0x38, 23, 0)
    wqe_counter = bits(0x3C, 31, 16)
    signature = bits(0x3C, 15, 8)
    opcode = bits(0x3C, 7, 4, CqeOpcode)
    format = bits(0x3C, 3, 2)
    solicited = bits(0x3C, 1)
    owner = bits(0x3C, 0)


class ErrCqe(Layout, size=0x40, manual="Completion queue entry with error"):
    """Error completion queue entry, 64 bytes."""

    srqn = bits(0x20, 31, 0)
    hw_error_syndrome = bits(0x34, 31, 24)
    hw_syndrome_type = bits(0x34, 23, 20)
    vendor_err_synd = bits(0x34, 15, 8)
    syndrome = bits(0x34, 7, 0, CqeSyndrome)
    s_wqe_opcode_qpn = bits(0x38, 31, 0)
    s_wqe_opcode = bits(0x38, 31, 24, WqeOpcode)
    qpn = bits(0x38, 23, 0)
    wqe_counter = bits(0x3C, 31, 16)
    signature = bits(0x3C, 15, 8)
    opcode = bits(0x3C, 7, 4, CqeOpcode)
    format = bits(0x3C, 3, 2)
    solicited = bits(0x3C, 1)
    owner = bits(0x3C, 0)


class Cqe128(Layout, size=0x80, manual="Completion queue entry, 128 bytes"):
    """Completion queue entry, 128 bytes: 64 bytes of inline data, then the 64-byte form."""

    inline_data = raw(0x00, 0x40)
    cqe64 = nested(0x40, Cqe64)


class SigErrCqe(Layout, size=0x40, manual="Completion queue entry with signature error"):
    """Signature error completion queue entry, 64 bytes."""

    expected_trans_sig = bits(0x10, 31, 0)
    actual_trans_sig = bits(0x14, 31, 0)
    expected_reftag = bits(0x18, 31, 0)
    actual_reftag = bits(0x1C, 31, 0)
    syndrome = bits(0x20, 31, 16)
    mkey = bits(0x24, 31, 0)
    err_offset = u64(0x28)
    qpn = bits(0x38, 31, 0)
    signature = bits(0x3C, 15, 8)
    opcode = bits(0x3C, 7, 4, CqeOpcode)
    owner = bits(0x3C, 0)


class MiniCqe8SWqeInfo(Layout, size=0x04, manual="Completion queue entry, compressed"):
    """The work request that a requester's CQE is about."""

    wqe_counter = bits(0x00, 31, 16)
    s_wqe_opcode = bits(0x00, 15, 8)


class MiniCqe8(Layout, size=0x08, manual="Completion queue entry, compressed"):
    """What one CQE of a compressed block has of its own; which of the first word's fields it is, the block tells."""

    rx_hash_result = bits(0x00, 31, 0)
    checksum = bits(0x00, 31, 16)
    stridx = bits(0x00, 15, 0)
    s_wqe_info = nested(0x00, MiniCqe8SWqeInfo)
    byte_cnt = bits(0x04, 31, 0)
