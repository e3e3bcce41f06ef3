"""Work queue entries: the segments they are made of (manual: work queues; include/linux/mlx5/qp.h)."""

from enum import IntEnum, IntFlag, unique

from softhca.prm.layout import Layout, bits, nested, raw, u64

WQEBB = 64
"""Bytes of a send queue building block."""
SEGMENT = 16
"""Bytes that the ds field counts in."""
INVALID_LKEY = 0x100
"""The lkey that ends a receive WQE's scatter list early."""


@unique
class WqeOpcode(IntEnum):
    """Control segment 0x00 [7:0] of a send WQE."""

    NOP = 0x00
    SEND_INVAL = 0x01
    RDMA_WRITE = 0x08
    RDMA_WRITE_IMM = 0x09
    SEND = 0x0A
    SEND_IMM = 0x0B
    LSO = 0x0E
    RDMA_READ = 0x10
    ATOMIC_CS = 0x11
    ATOMIC_FA = 0x12
    ATOMIC_MASKED_CS = 0x14
    ATOMIC_MASKED_FA = 0x15
    BIND_MW = 0x18
    CONFIG_CMD = 0x1F
    SET_PSV = 0x20
    GET_PSV = 0x21
    CHECK_PSV = 0x22
    DUMP = 0x23
    UMR = 0x25
    RGET_PSV = 0x26
    RCHECK_PSV = 0x27
    ENHANCED_MPSW = 0x29
    FLOW_TBL_ACCESS = 0x2C
    ACCESS_ASO = 0x2D


class WqeCtrlSeg(Layout, size=0x10, manual="WQE, control segment"):
    """Control segment: every send WQE begins with it."""

    opmod = bits(0x00, 31, 24)
    wqe_index = bits(0x00, 23, 8)
    opcode = bits(0x00, 7, 0, WqeOpcode)
    qp_or_sq = bits(0x04, 31, 8)
    ds = bits(0x04, 5, 0)
    signature = bits(0x08, 31, 24)
    fm = bits(0x08, 7, 5)
    ce = bits(0x08, 3, 2)
    se = bits(0x08, 1)
    imm = bits(0x0C, 31, 0)


class WqeRaddrSeg(Layout, size=0x10, manual="WQE, remote address segment"):
    """Remote address segment."""

    raddr = u64(0x00)
    rkey = bits(0x08, 31, 0)


class WqeDataSeg(Layout, size=0x10, manual="WQE, data segment by pointer"):
    """Data segment by pointer; byte_count 0 means 2^31."""

    inline_ = bits(0x00, 31)
    byte_count = bits(0x00, 30, 0)
    lkey = bits(0x04, 31, 0)
    addr = u64(0x08)


class WqeInlineSeg(Layout, size=0x04, name="wqe_inline_seg", manual="WQE, inline data segment"):
    """Inline data segment: the data follow."""

    inline_ = bits(0x00, 31)
    byte_count = bits(0x00, 9, 0)


class WqeAtomicSeg(Layout, size=0x10, manual="WQE, atomic segment"):
    """Atomic segment."""

    swap_add = u64(0x00)
    compare = u64(0x08)


class WqeMaskedAtomicSeg(Layout, size=0x20, manual="WQE, masked atomic segment"):
    """Masked atomic segment."""

    swap_add = u64(0x00)
    compare = u64(0x08)
    swap_add_mask = u64(0x10)
    compare_mask = u64(0x18)


class WqeXrcSeg(Layout, size=0x10, manual="WQE, XRC segment"):
    """XRC segment."""

    xrc_srqn = bits(0x00, 31, 0)


class BaseAv(Layout, size=0x10, manual="WQE, datagram segment, base"):
    """Address vector without a global route; a DC address has a key of 64 bits in place of the Q key."""

    dc_key = u64(0x00)
    qkey = bits(0x00, 31, 0)
    dqp_dct = bits(0x08, 31, 0)
    stat_rate_sl = bits(0x0C, 31, 24)
    fl_mlid = bits(0x0C, 23, 16)
    rlid = bits(0x0C, 15, 0)


class Av(Layout, size=0x30, manual="WQE, datagram segment"):
    """Address vector with a global route."""

    base = nested(0x00, BaseAv)
    rmac = raw(0x14, 6)
    tclass = bits(0x18, 15, 8)
    hop_limit = bits(0x18, 7, 0)
    grh_gid_fl = bits(0x1C, 31, 0)
    rgid = raw(0x20, 16)


class UmrFlag(IntFlag):
    """UMR control segment 0x00 [31:24]."""

    CHECK_QPN = 0x08
    """The key must be bound to this QP."""
    TRANSLATION_OFFSET_EN = 0x10
    """The list begins at xlt_offset, and entries outside of it are kept."""
    CHECK_NOT_FREE = 0x20
    """The key must be in the free state."""
    CHECK_FREE = 0x40
    """The key must not be in the free state."""
    INLINE = 0x80
    """The list is in the WQE."""


class WqeUmrCtrlSeg(Layout, size=0x30, manual="WQE, UMR control segment"):
    """UMR control segment."""

    flags = bits(0x00, 31, 24)
    xlt_octowords = bits(0x04, 31, 16)
    xlt_offset = bits(0x04, 15, 0)
    mkey_mask = u64(0x08)
    xlt_offset_47_16 = bits(0x10, 31, 0)


class Mtt(Layout, size=0x08):
    """Memory translation table entry: bits 63 to 8 of an address, and permissions that on-demand paging needs."""

    ptag_63_32 = bits(0x00, 31, 0)
    ptag_31_8 = bits(0x04, 31, 8)
    wr_en = bits(0x04, 1)
    rd_en = bits(0x04, 0)


class Klm(Layout, size=0x10, manual="Indirect memory key entry (KLM)"):
    """Entry of an indirect memory key with a length of its own; a KSM has a length of 0 here."""

    bcount = bits(0x00, 31, 0)
    key = bits(0x04, 31, 0)
    va = u64(0x08)


class WqeSignatureSeg(Layout, size=0x10, manual="Receive WQE, signature segment"):
    """Signature segment of a receive WQE."""

    signature = bits(0x04, 31, 24)


class WqeSrqNextSeg(Layout, size=0x10, manual="SRQ WQE, next segment"):
    """Next segment of an SRQ WQE: links the free list."""

    next_wqe_index = bits(0x00, 15, 0)
    signature = bits(0x04, 31, 24)


class WqeEthSeg(Layout, size=0x10, manual="WQE, Ethernet segment"):
    """Ethernet segment."""

    swp_outer_l4_offset = bits(0x00, 31, 24)
    swp_outer_l3_offset = bits(0x00, 23, 16)
    swp_inner_l4_offset = bits(0x00, 15, 8)
    swp_inner_l3_offset = bits(0x00, 7, 0)
    cs_flags = bits(0x04, 31, 24)
    swp_flags = bits(0x04, 23, 16)
    mss = bits(0x04, 15, 0)
    flow_table_metadata = bits(0x08, 31, 0)
    inline_hdr_sz = bits(0x0C, 31, 16)
    inline_hdr_start = bits(0x0C, 15, 0)
    insert_type = bits(0x0C, 31, 16)
    insert_vlan_tci = bits(0x0C, 15, 0)
    trailer = bits(0x0C, 31, 0)
