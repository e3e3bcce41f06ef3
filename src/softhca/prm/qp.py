"""Queue pairs."""

from enum import IntEnum, IntFlag, unique

from softhca.prm.layout import Layout, array, bits, nested, u64
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus


@unique
class QpState(IntEnum):
    """Queue pair context 0x00 [31:28]."""

    RST = 0x0
    INIT = 0x1
    RTR = 0x2
    RTS = 0x3
    SQER = 0x4
    SQD = 0x5
    ERR = 0x6
    SQ_DRAINING = 0x7
    SUSPENDED = 0x9


@unique
class ServiceType(IntEnum):
    """Queue pair context 0x00 [23:16]."""

    RC = 0x0
    UC = 0x1
    UD = 0x2
    XRC = 0x3
    MLX = 0x4
    DCI = 0x5
    DCT = 0x6
    QP0 = 0x7
    QP1 = 0x8
    RAW_ETHERTYPE = 0x9
    RAW_IPV6 = 0xA
    SNIFFER = 0xB
    REG_UMR = 0xC
    PTP_1588 = 0xD
    SYNC_UMR = 0xE


@unique
class PathMigration(IntEnum):
    """Queue pair context 0x00 [12:11]."""

    ARMED = 0x0
    REARM = 0x1
    RESERVED = 0x2
    MIGRATED = 0x3


@unique
class Mtu(IntEnum):
    """Queue pair context 0x08 [31:29]."""

    BYTES_256 = 0x1
    BYTES_512 = 0x2
    BYTES_1K = 0x3
    BYTES_2K = 0x4
    BYTES_4K = 0x5
    RAW_ETHERNET_QP = 0x7


@unique
class RqType(IntEnum):
    """Queue pair context 0xAC [26:24]: where the receive work requests come from."""

    NON_ZERO_RQ = 0x0
    SRQ_RQ = 0x1
    CRQ_RQ = 0x2
    ZERO_LEN_RQ = 0x3


@unique
class AtomicMode(IntEnum):
    """Queue pair context 0x90 [19:16]."""

    NONE = 0x0
    IB_SPEC = 0x1
    ONLY_8B = 0x2
    UP_TO_8B = 0x3
    UP_TO_16B = 0x4
    UP_TO_32B = 0x5
    UP_TO_64B = 0x6
    UP_TO_128B = 0x7
    UP_TO_256B = 0x8


@unique
class EndPaddingMode(IntEnum):
    """Queue pair context 0x00 [3:2]."""

    SCATTER_AS_IS = 0x0
    PAD_TO_CACHE_LINE_ALIGNMENT = 0x1


@unique
class TimestampFormat(IntEnum):
    """Queue pair context 0x08 [7:6]."""

    FREE_RUNNING = 0x0
    DEFAULT = 0x1
    REAL_TIME = 0x2


@unique
class StatRate(IntEnum):
    """Address path 0x08 [11:8]: static rate limit."""

    NO_LIMIT = 0x0
    GBPS_2_5 = 0x7
    GBPS_10 = 0x8
    GBPS_30 = 0x9
    GBPS_5 = 0xA
    GBPS_20 = 0xB
    GBPS_40 = 0xC
    GBPS_60 = 0xD
    GBPS_80 = 0xE
    GBPS_120 = 0xF


@unique
class ScatterToCqeResponder(IntEnum):
    """Queue pair context 0xC4 [7:0]: received data that is put into the CQE."""

    DISABLE = 0x0
    UP_TO_32B = 0x1
    UP_TO_64B = 0x2


@unique
class ScatterToCqeRequester(IntEnum):
    """Queue pair context 0xC4 [15:8]: read data that is put into the CQE."""

    DISABLE = 0x0
    UP_TO_32B = 0x11
    UP_TO_64B = 0x22


class OptParam(IntFlag):
    """opt_param_mask of the transition commands, as far as there is a transition here that takes them."""

    RRE = 1 << 1
    RAE = 1 << 2
    RWE = 1 << 3
    PKEY_INDEX = 1 << 4
    Q_KEY = 1 << 5
    RNR_TIMEOUT = 1 << 6
    PM_STATE = 1 << 10
    LAG_TX_AFF = 1 << 15
    PRI_PORT = 1 << 16


class Ads(Layout, size=0x2C):
    """Address path (address vector of a queue pair)."""

    fl = bits(0x00, 31)
    free_ar = bits(0x00, 30)
    pkey_index = bits(0x00, 15, 0)
    plane_index = bits(0x04, 31, 24)
    grh = bits(0x04, 23)
    mlid = bits(0x04, 22, 16)
    rlid = bits(0x04, 15, 0)
    ack_timeout = bits(0x08, 31, 27)
    src_addr_index = bits(0x08, 23, 16)
    stat_rate = bits(0x08, 11, 8, StatRate)
    hop_limit = bits(0x08, 7, 0)
    tclass = bits(0x0C, 27, 20)
    flow_label = bits(0x0C, 19, 0)
    rgid_rip = array(0x10, 16, 8)
    f_dscp = bits(0x20, 27)
    f_ecn = bits(0x20, 26)
    f_eth_prio = bits(0x20, 24)
    ecn = bits(0x20, 23, 22)
    dscp = bits(0x20, 21, 16)
    udp_sport = bits(0x20, 15, 0)
    dei_cfi = bits(0x24, 31)
    eth_prio = bits(0x24, 30, 28)
    sl = bits(0x24, 27, 24)
    vhca_port_num = bits(0x24, 23, 16)
    rmac_47_32 = bits(0x24, 15, 0)
    rmac_31_0 = bits(0x28, 31, 0)


class Qpc(Layout, size=0xE8):
    """Queue pair context."""

    state = bits(0x00, 31, 28, QpState)
    lag_tx_port_affinity = bits(0x00, 27, 24)
    st = bits(0x00, 23, 16, ServiceType)
    isolate_vl_tc = bits(0x00, 13)
    pm_state = bits(0x00, 12, 11, PathMigration)
    req_e2e_credit_mode = bits(0x00, 9, 8)
    offload_type = bits(0x00, 7, 4)
    end_padding_mode = bits(0x00, 3, 2, EndPaddingMode)
    wq_signature = bits(0x04, 31)
    block_lb_mc = bits(0x04, 30)
    atomic_like_write_en = bits(0x04, 29)
    latency_sensitive = bits(0x04, 28)
    drain_sigerr = bits(0x04, 26)
    pd = bits(0x04, 23, 0)
    mtu = bits(0x08, 31, 29, Mtu)
    log_msg_max = bits(0x08, 28, 24)
    log_rq_size = bits(0x08, 22, 19)
    log_rq_stride = bits(0x08, 18, 16)
    no_sq = bits(0x08, 15)
    log_sq_size = bits(0x08, 14, 11)
    retry_mode = bits(0x08, 9, 8)
    ts_format = bits(0x08, 7, 6, TimestampFormat)
    rlky = bits(0x08, 4)
    ulp_stateless_offload_mode = bits(0x08, 3, 0)
    counter_set_id = bits(0x0C, 31, 24)
    uar_page = bits(0x0C, 23, 0)
    user_index = bits(0x10, 23, 0)
    log_page_size = bits(0x14, 28, 24)
    remote_qpn = bits(0x14, 23, 0)
    primary_address_path = nested(0x18, Ads)
    secondary_address_path = nested(0x44, Ads)
    log_ack_req_freq = bits(0x70, 31, 28)
    log_sra_max = bits(0x70, 23, 21)
    retry_count = bits(0x70, 18, 16)
    rnr_retry = bits(0x70, 15, 13)
    fre = bits(0x70, 11)
    cur_rnr_retry = bits(0x70, 10, 8)
    cur_retry_count = bits(0x70, 7, 5)
    next_send_psn = bits(0x78, 23, 0)
    log_num_dci_stream_channels = bits(0x7C, 28, 24)
    cqn_snd = bits(0x7C, 23, 0)
    log_num_dci_errored_streams = bits(0x80, 28, 24)
    deth_sqpn = bits(0x80, 23, 0)
    last_acked_psn = bits(0x88, 23, 0)
    ssn = bits(0x8C, 23, 0)
    log_rra_max = bits(0x90, 23, 21)
    atomic_mode = bits(0x90, 19, 16, AtomicMode)
    rre = bits(0x90, 15)
    rwe = bits(0x90, 14)
    rae = bits(0x90, 13)
    page_offset = bits(0x90, 11, 6)
    cd_slave_receive = bits(0x90, 2)
    cd_slave_send = bits(0x90, 1)
    cd_master = bits(0x90, 0)
    min_rnr_nak = bits(0x94, 28, 24)
    next_rcv_psn = bits(0x94, 23, 0)
    xrcd = bits(0x98, 23, 0)
    cqn_rcv = bits(0x9C, 23, 0)
    dbr_addr = u64(0xA0)
    q_key = bits(0xA8, 31, 0)
    rq_type = bits(0xAC, 26, 24, RqType)
    srqn_rmpn_xrqn = bits(0xAC, 23, 0)
    rmsn = bits(0xB0, 23, 0)
    hw_sq_wqebb_counter = bits(0xB4, 31, 16)
    sw_sq_wqebb_counter = bits(0xB4, 15, 0)
    hw_rq_counter = bits(0xB8, 31, 0)
    sw_rq_counter = bits(0xBC, 31, 0)
    cgs = bits(0xC4, 16)
    cs_req = bits(0xC4, 15, 8, ScatterToCqeRequester)
    cs_res = bits(0xC4, 7, 0, ScatterToCqeResponder)
    dc_access_key = u64(0xC8)
    dbr_umem_valid = bits(0xD0, 28)


class CreateQpIn(Layout, size=0x110):
    """CREATE_QP: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    qpc_ext = bits(0x08, 31)
    input_qpn = bits(0x08, 23, 0)
    opt_param_mask = bits(0x10, 31, 0)
    ece = bits(0x14, 31, 0)
    qpc = nested(0x18, Qpc)
    wq_umem_offset = u64(0x100)
    wq_umem_id = bits(0x108, 31, 0)
    wq_umem_valid = bits(0x10C, 31)
    pas = array(0x110, None, 64)


class CreateQpOut(Layout, size=0x10):
    """CREATE_QP: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    qpn = bits(0x08, 23, 0)
    ece = bits(0x0C, 31, 0)


class DestroyQpIn(Layout, size=0x10):
    """DESTROY_QP: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    qpn = bits(0x08, 23, 0)


class DestroyQpOut(Layout, size=0x10):
    """DESTROY_QP: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class QueryQpIn(Layout, size=0x10):
    """QUERY_QP: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    qpc_ext = bits(0x08, 31)
    qpn = bits(0x08, 23, 0)


class CmdPas(Layout, size=0x8):
    """A page address: bits 63 to 12."""

    pa_h = bits(0x00, 31, 0)
    pa_l = bits(0x04, 31, 12)


class QpPasListIn(Layout, size=0x0):
    """The page list of a queue pair."""

    pas = array(0x00, None, CmdPas)


class CqeErrorSyndrome(Layout, size=0x4):
    """Why a queue pair went into error, as in its error CQE."""

    hw_error_syndrome = bits(0x00, 31, 24)
    hw_syndrome_type = bits(0x00, 23, 20)
    vendor_error_syndrome = bits(0x00, 15, 8)
    syndrome = bits(0x00, 7, 0)


class QpContextExtension(Layout, size=0xC0):
    """Extension of the queue pair context."""

    error_syndrome = nested(0x0C, CqeErrorSyndrome)


class QpcExtensionAndPasListIn(Layout, size=0xC0):
    """Extension of the context, then the page list."""

    qpc_data_extension = nested(0x00, QpContextExtension)
    pas = array(0xC0, None, 64)


class QpPasOrQpcExtAndPas(Layout, size=0xC0):
    """The page list, with or without an extension of the context (a union)."""

    qp_pas_list = nested(0x00, QpPasListIn)
    qpc_ext_and_pas_list = nested(0x00, QpcExtensionAndPasListIn)


class QueryQpOut(Layout, size=0x1D0):
    """QUERY_QP: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    opt_param_mask = bits(0x10, 31, 0)
    ece = bits(0x14, 31, 0)
    qpc = nested(0x18, Qpc)
    qp_pas_or_qpc_ext_and_pas = nested(0x110, QpPasOrQpcExtAndPas)


class Rst2initQpIn(Layout, size=0x110):
    """RST2INIT_QP: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    qpn = bits(0x08, 23, 0)
    opt_param_mask = bits(0x10, 31, 0)
    ece = bits(0x14, 31, 0)
    qpc = nested(0x18, Qpc)


class Rst2initQpOut(Layout, size=0x10):
    """RST2INIT_QP: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    ece = bits(0x0C, 31, 0)


class Init2rtrQpIn(Layout, size=0x110):
    """INIT2RTR_QP: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    qpn = bits(0x08, 23, 0)
    opt_param_mask = bits(0x10, 31, 0)
    ece = bits(0x14, 31, 0)
    qpc = nested(0x18, Qpc)


class Init2rtrQpOut(Layout, size=0x10):
    """INIT2RTR_QP: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    ece = bits(0x0C, 31, 0)


class Rtr2rtsQpIn(Layout, size=0x110):
    """RTR2RTS_QP: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    qpn = bits(0x08, 23, 0)
    opt_param_mask = bits(0x10, 31, 0)
    ece = bits(0x14, 31, 0)
    qpc = nested(0x18, Qpc)


class Rtr2rtsQpOut(Layout, size=0x10):
    """RTR2RTS_QP: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    ece = bits(0x0C, 31, 0)


class Rts2rtsQpIn(Layout, size=0x110):
    """RTS2RTS_QP: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    qpn = bits(0x08, 23, 0)
    opt_param_mask = bits(0x10, 31, 0)
    ece = bits(0x14, 31, 0)
    qpc = nested(0x18, Qpc)


class Rts2rtsQpOut(Layout, size=0x10):
    """RTS2RTS_QP: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    ece = bits(0x0C, 31, 0)


class Init2initQpIn(Layout, size=0x110):
    """INIT2INIT_QP: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    qpn = bits(0x08, 23, 0)
    opt_param_mask = bits(0x10, 31, 0)
    ece = bits(0x14, 31, 0)
    qpc = nested(0x18, Qpc)


class Init2initQpOut(Layout, size=0x10):
    """INIT2INIT_QP: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    ece = bits(0x0C, 31, 0)


class Sqerr2rtsQpIn(Layout, size=0x110):
    """SQERR2RTS_QP: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    qpn = bits(0x08, 23, 0)
    opt_param_mask = bits(0x10, 31, 0)
    qpc = nested(0x18, Qpc)


class Sqerr2rtsQpOut(Layout, size=0x10):
    """SQERR2RTS_QP: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class Sqd2rtsQpIn(Layout, size=0x110):
    """SQD2RTS_QP: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    qpn = bits(0x08, 23, 0)
    opt_param_mask = bits(0x10, 31, 0)
    qpc = nested(0x18, Qpc)


class Sqd2rtsQpOut(Layout, size=0x10):
    """SQD2RTS_QP: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class Qp2errIn(Layout, size=0x10, name="qp_2err_in"):
    """QP_2ERR: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    qpn = bits(0x08, 23, 0)


class Qp2errOut(Layout, size=0x10, name="qp_2err_out"):
    """QP_2ERR: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class Qp2rstIn(Layout, size=0x10, name="qp_2rst_in"):
    """QP_2RST: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    qpn = bits(0x08, 23, 0)


class Qp2rstOut(Layout, size=0x10, name="qp_2rst_out"):
    """QP_2RST: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
