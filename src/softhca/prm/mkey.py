"""Memory keys."""

from enum import IntEnum, IntFlag, unique

from softhca.prm.layout import Layout, array, bits, nested, u64
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus

ANY_QP = 0xFF_FFFF
"""Memory key context `qpn`: QPs of any number may use the key."""


@unique
class AccessMode(IntEnum):
    """Memory key context: access_mode_4_2 and access_mode_1_0 together: how addresses are translated."""

    PA = 0x0
    MTT = 0x1
    KLMS = 0x2
    KSM = 0x3
    SW_ICM = 0x4
    MEMIC = 0x5
    CROSSING = 0x6


class MkeyMask(IntFlag):
    """`mkey_mask` of a UMR control segment: which fields of the memory key context a UMR WQE sets."""

    LEN = 1 << 0
    PAGE_SIZE = 1 << 1
    START_ADDR = 1 << 6
    PD = 1 << 7
    EN_RINVAL = 1 << 8
    EN_SIGERR = 1 << 9
    BSF_EN = 1 << 12
    KEY = 1 << 13
    QPN = 1 << 14
    LR = 1 << 17
    LW = 1 << 18
    RR = 1 << 19
    RW = 1 << 20
    A = 1 << 21
    SMALL_FENCE = 1 << 23
    RELAXED_ORDERING_WRITE = 1 << 25
    FREE = 1 << 29
    PAGE_SIZE_5 = 1 << 42
    RELAXED_ORDERING_READ = 1 << 47


class Mkc(Layout, size=0x40):
    """Memory key context."""

    free = bits(0x00, 30)
    access_mode_4_2 = bits(0x00, 28, 26)
    relaxed_ordering_write = bits(0x00, 18)
    small_fence_on_rdma_read_response = bits(0x00, 16)
    umr_en = bits(0x00, 15)
    a = bits(0x00, 14)
    rw = bits(0x00, 13)
    rr = bits(0x00, 12)
    lw = bits(0x00, 11)
    lr = bits(0x00, 10)
    access_mode_1_0 = bits(0x00, 9, 8)
    ma_translation_mode = bits(0x00, 5, 4)
    qpn = bits(0x04, 31, 8)
    mkey_7_0 = bits(0x04, 7, 0)
    length64 = bits(0x0C, 31)
    bsf_en = bits(0x0C, 30)
    sync_umr = bits(0x0C, 29)
    expected_sigerr_count = bits(0x0C, 26)
    en_rinval = bits(0x0C, 24)
    pd = bits(0x0C, 23, 0)
    start_addr = u64(0x10)
    len = u64(0x18)
    bsf_octword_size = bits(0x20, 31, 0)
    crossing_target_vhca_id = bits(0x30, 31, 16)
    translations_octword_size = bits(0x34, 31, 0)
    relaxed_ordering_read = bits(0x38, 6)
    log_page_size = bits(0x38, 5, 0)


class CreateMkeyIn(Layout, size=0x110):
    """CREATE_MKEY: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    pg_access = bits(0x0C, 31)
    mkey_umem_valid = bits(0x0C, 30)
    data_direct = bits(0x0C, 29)
    memory_key_mkey_entry = nested(0x10, Mkc)
    translations_octword_actual_size = bits(0x60, 31, 0)
    klm_pas_mtt = array(0x110, None, 32)


class CreateMkeyOut(Layout, size=0x10):
    """CREATE_MKEY: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    mkey_index = bits(0x08, 23, 0)


class DestroyMkeyIn(Layout, size=0x10):
    """DESTROY_MKEY: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    mkey_index = bits(0x08, 23, 0)


class DestroyMkeyOut(Layout, size=0x10):
    """DESTROY_MKEY: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class QueryMkeyIn(Layout, size=0x10):
    """QUERY_MKEY: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    mkey_index = bits(0x08, 23, 0)
    pg_access = bits(0x0C, 31)


class QueryMkeyOut(Layout, size=0x130, manual="QUERY_MKEY"):
    """QUERY_MKEY: output; the translation entries go on behind the first 32 bytes of them."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    memory_key_mkey_entry = nested(0x10, Mkc)
    bsf0_klm0_pas_mtt0_1 = array(0x110, 16, 8)
    bsf1_klm1_pas_mtt2_3 = array(0x120, 16, 8)
    more = array(0x130, None, 8)


@unique
class PageFaultSubtype(IntEnum):
    """Page fault event, sub-type: what was to be done with the page."""

    WQE = 0x0
    RDMA = 0x1
    MEMORY = 0x2


@unique
class PageFaultType(IntEnum):
    """Page fault event of sub-type WQE, and PAGE_FAULT_RESUME page_fault_type: whose work request it is."""

    RMP = 0x0
    REQ_SEND_OR_WRITE = 0x1
    RESP = 0x2
    REQ_READ_OR_ATOMIC = 0x3


@unique
class PageFaultFlag(IntFlag):
    """Page fault event of sub-type RDMA: bits of its type."""

    REQUESTOR = 0x1
    WRITE = 0x2
    RDMA = 0x4


class TransPageFaultInfo(Layout, size=0x8):
    """A page fault of the transport scheme that is resolved."""

    error = bits(0x00, 31)
    page_fault_type = bits(0x00, 26, 24)
    wq_number = bits(0x00, 23, 0)
    fault_token = bits(0x04, 23, 0)


class MemPageFaultInfo(Layout, size=0x8):
    """A page fault of the memory scheme that is resolved."""

    error = bits(0x00, 31)
    fault_token_47_32 = bits(0x00, 15, 0)
    fault_token_31_0 = bits(0x04, 31, 0)


class PageFaultResumeInPageFaultInfoAuto(Layout, size=0x8):
    """The page fault that is resolved, by scheme (a union)."""

    trans_page_fault_info = nested(0x00, TransPageFaultInfo)
    mem_page_fault_info = nested(0x00, MemPageFaultInfo)


class PageFaultResumeIn(Layout, size=0x10):
    """PAGE_FAULT_RESUME: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    page_fault_info = nested(0x08, PageFaultResumeInPageFaultInfoAuto)


class PageFaultResumeOut(Layout, size=0x10):
    """PAGE_FAULT_RESUME: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
