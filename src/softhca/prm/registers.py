"""Registers reached by ACCESS_REGISTER."""

from enum import IntEnum, unique

from softhca.prm.layout import Layout, array, bits, nested
from softhca.prm.opcodes import Opcode
from softhca.prm.ppcnt import PpcntGroup, PpcntReg
from softhca.prm.status import CommandStatus

__all__ = [
    "AccessRegisterIn",
    "AccessRegisterOut",
    "BufferOwnership",
    "DefaultTimeout",
    "DtorReg",
    "McamAccessReg",
    "McamAccessReg1",
    "McamAccessReg2",
    "McamAccessReg3",
    "McamEnhancedFeatures",
    "McamReg",
    "McamRegMngAccessRegCapMask",
    "McamRegMngFeatureCapMask",
    "PaosReg",
    "PcamEnhancedFeatures",
    "PcamReg",
    "PcamRegFeatureCapMask",
    "PcamRegPortAccessRegCapMask",
    "PcamRegs5000To507f",
    "PfccReg",
    "PmlpReg",
    "PmtuReg",
    "PortAdminStatus",
    "PortEventMode",
    "PortOperStatus",
    "PpcntGroup",
    "PpcntReg",
    "ProtoMask",
    "PtysReg",
    "PvlcReg",
    "RegisterAccess",
    "RegisterId",
]


@unique
class RegisterId(IntEnum):
    """ACCESS_REGISTER 0x08 [15:0]: the registers that have a layout here."""

    PMLP = 0x5002
    PMTU = 0x5003
    PTYS = 0x5004
    PAOS = 0x5006
    PFCC = 0x5007
    PPCNT = 0x5008
    PVLC = 0x500F
    PCAM = 0x507F
    NODE_DESC = 0x6001
    HOST_ENDIANNESS = 0x7004
    MCAM = 0x907F
    DTOR = 0xC00E


@unique
class RegisterAccess(IntEnum):
    """ACCESS_REGISTER op_mod."""

    WRITE = 0x0
    READ = 0x1


@unique
class ProtoMask(IntEnum):
    """PTYS 0x00 [2:0]."""

    IB = 0x1
    EN = 0x4


@unique
class PortAdminStatus(IntEnum):
    """PAOS 0x00 [11:8]."""

    UP = 0x1
    DOWN = 0x2
    ONCE = 0x3
    DISABLED = 0x4


@unique
class PortOperStatus(IntEnum):
    """PAOS 0x00 [3:0]."""

    UP = 0x1
    DOWN = 0x2


@unique
class PortEventMode(IntEnum):
    """PAOS 0x04 [1:0]: when a change of the operational state raises an event."""

    NONE = 0x0
    ALWAYS = 0x1
    ONCE = 0x2


@unique
class BufferOwnership(IntEnum):
    """PFCC 0x00 [27:26]."""

    UNKNOWN = 0x0
    FW_OWNED = 0x1
    SW_OWNED = 0x2


class AccessRegisterIn(Layout, size=0x10):
    """ACCESS_REGISTER: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0, RegisterAccess)
    register_id = bits(0x08, 15, 0, RegisterId)
    argument = bits(0x0C, 31, 0)
    register_data = array(0x10, None, 32)


class AccessRegisterOut(Layout, size=0x10):
    """ACCESS_REGISTER: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    register_data = array(0x10, None, 32)


class PtysReg(Layout, size=0x40):
    """PTYS: port type and speed."""

    an_disable_admin = bits(0x00, 30)
    an_disable_cap = bits(0x00, 29)
    local_port = bits(0x00, 23, 16)
    plane_ind = bits(0x00, 7, 4)
    proto_mask = bits(0x00, 2, 0, ProtoMask)
    an_status = bits(0x04, 31, 28)
    data_rate_oper = bits(0x04, 15, 0)
    ext_eth_proto_capability = bits(0x08, 31, 0)
    eth_proto_capability = bits(0x0C, 31, 0)
    ib_link_width_capability = bits(0x10, 31, 16)
    ib_proto_capability = bits(0x10, 15, 0)
    ext_eth_proto_admin = bits(0x14, 31, 0)
    eth_proto_admin = bits(0x18, 31, 0)
    ib_link_width_admin = bits(0x1C, 31, 16)
    ib_proto_admin = bits(0x1C, 15, 0)
    ext_eth_proto_oper = bits(0x20, 31, 0)
    eth_proto_oper = bits(0x24, 31, 0)
    ib_link_width_oper = bits(0x28, 31, 16)
    ib_proto_oper = bits(0x28, 15, 0)
    connector_type = bits(0x2C, 3, 0)
    eth_proto_lp_advertise = bits(0x30, 31, 0)


class PmtuReg(Layout, size=0x10):
    """PMTU: port MTU."""

    local_port = bits(0x00, 23, 16)
    max_mtu = bits(0x04, 31, 16)
    admin_mtu = bits(0x08, 31, 16)
    oper_mtu = bits(0x0C, 31, 16)


class PvlcReg(Layout, size=0x10):
    """PVLC: port virtual lanes."""

    local_port = bits(0x00, 23, 16)
    vl_hw_cap = bits(0x04, 3, 0)
    vl_admin = bits(0x08, 3, 0)
    vl_operational = bits(0x0C, 3, 0)


class PaosReg(Layout, size=0x10):
    """PAOS: port administrative and operational status."""

    swid = bits(0x00, 31, 24)
    local_port = bits(0x00, 23, 16)
    admin_status = bits(0x00, 11, 8, PortAdminStatus)
    oper_status = bits(0x00, 3, 0, PortOperStatus)
    ase = bits(0x04, 31)
    ee = bits(0x04, 30)
    e = bits(0x04, 1, 0, PortEventMode)


class PmlpReg(Layout, size=0x40):
    """PMLP: port module to local port."""

    rxtx = bits(0x00, 31)
    local_port = bits(0x00, 23, 16)
    width = bits(0x00, 7, 0)
    lane0_module_mapping = bits(0x04, 31, 0)
    lane1_module_mapping = bits(0x08, 31, 0)
    lane2_module_mapping = bits(0x0C, 31, 0)
    lane3_module_mapping = bits(0x10, 31, 0)


class PfccReg(Layout, size=0x20):
    """PFCC: port flow control."""

    buf_ownership = bits(0x00, 27, 26, BufferOwnership)
    local_port = bits(0x00, 23, 16)
    ppan_mask_n = bits(0x00, 4)
    minor_stall_mask = bits(0x00, 3)
    critical_stall_mask = bits(0x00, 2)
    ppan = bits(0x04, 31, 28)
    prio_mask_tx = bits(0x04, 23, 16)
    prio_mask_rx = bits(0x04, 7, 0)
    pptx = bits(0x08, 31)
    aptx = bits(0x08, 30)
    pptx_mask_n = bits(0x08, 29)
    pfctx = bits(0x08, 23, 16)
    pprx = bits(0x0C, 31)
    aprx = bits(0x0C, 30)
    pprx_mask_n = bits(0x0C, 29)
    pfcrx = bits(0x0C, 23, 16)
    device_stall_minor_watermark = bits(0x10, 31, 16)
    device_stall_critical_watermark = bits(0x10, 15, 0)


class PcamRegs5000To507f(Layout, size=0x10, name="pcam_regs_5000_to_507f"):
    """PCAM: registers 0x5000 to 0x507F that exist, a bit each."""

    port_access_reg_cap_mask_127_to_96 = bits(0x00, 31, 0)
    port_access_reg_cap_mask_95_to_64 = bits(0x04, 31, 0)
    port_access_reg_cap_mask_63_to_36 = bits(0x08, 31, 4)
    pplm = bits(0x08, 3)
    port_access_reg_cap_mask_34_to_32 = bits(0x08, 2, 0)
    port_access_reg_cap_mask_31_to_13 = bits(0x0C, 31, 13)
    pbmc = bits(0x0C, 12)
    pptb = bits(0x0C, 11)
    port_access_reg_cap_mask_10_to_09 = bits(0x0C, 10, 9)
    ppcnt = bits(0x0C, 8)
    port_access_reg_cap_mask_07_to_00 = bits(0x0C, 7, 0)


class PcamRegPortAccessRegCapMask(Layout, size=0x10, name="pcam_reg__port_access_reg_cap_mask"):
    """PCAM: mask of registers (a union)."""

    regs_5000_to_507f = nested(0x00, PcamRegs5000To507f)


class PcamEnhancedFeatures(Layout, size=0x10):
    """PCAM: features of port registers, a bit each."""

    fec_100G_per_lane_in_pplm = bits(0x08, 23)
    buffer_ownership = bits(0x08, 12)
    fec_50G_per_lane_in_pplm = bits(0x0C, 23)
    rx_icrc_encapsulated_counter = bits(0x0C, 18)
    ptys_extended_ethernet = bits(0x0C, 13)
    pfcc_mask = bits(0x0C, 9)
    per_lane_error_counters = bits(0x0C, 5)
    rx_buffer_fullness_counters = bits(0x0C, 4)
    ptys_connector_type = bits(0x0C, 3)
    ppcnt_discard_group = bits(0x0C, 1)
    ppcnt_statistical_group = bits(0x0C, 0)


class PcamRegFeatureCapMask(Layout, size=0x10, name="pcam_reg__feature_cap_mask"):
    """PCAM: mask of features (a union)."""

    enhanced_features = nested(0x00, PcamEnhancedFeatures)


class PcamReg(Layout, size=0x50):
    """PCAM: port capability mask."""

    feature_group = bits(0x00, 23, 16)
    access_reg_group = bits(0x00, 7, 0)
    port_access_reg_cap_mask = nested(0x08, PcamRegPortAccessRegCapMask)
    feature_cap_mask = nested(0x28, PcamRegFeatureCapMask)


class McamAccessReg(Layout, size=0x10):
    """MCAM: management registers that exist, a bit each."""

    mcda = bits(0x00, 3)
    mcc = bits(0x00, 2)
    mcqi = bits(0x00, 1)
    mcqs = bits(0x00, 0)
    regs_95_to_90 = bits(0x04, 31, 26)
    mpir = bits(0x04, 25)
    regs_88_to_87 = bits(0x04, 24, 23)
    mpegc = bits(0x04, 22)
    mtutc = bits(0x04, 21)
    regs_84_to_68 = bits(0x04, 20, 4)
    tracer_registers = bits(0x04, 3, 0)
    regs_63_to_46 = bits(0x08, 31, 14)
    mrtc = bits(0x08, 13)
    regs_44_to_41 = bits(0x08, 12, 9)
    mfrl = bits(0x08, 8)
    regs_39_to_32 = bits(0x08, 7, 0)
    regs_31_to_11 = bits(0x0C, 31, 11)
    mtmp = bits(0x0C, 10)
    regs_9_to_0 = bits(0x0C, 9, 0)


class McamAccessReg1(Layout, size=0x10, name="mcam_access_reg1"):
    """MCAM: management registers of group 1 that exist, a bit each."""

    regs_127_to_96 = bits(0x00, 31, 0)
    regs_95_to_64 = bits(0x04, 31, 0)
    regs_63_to_32 = bits(0x08, 31, 0)
    regs_31_to_0 = bits(0x0C, 31, 0)


class McamAccessReg2(Layout, size=0x10, name="mcam_access_reg2"):
    """MCAM: management registers of group 2 that exist, a bit each."""

    regs_127_to_99 = bits(0x00, 31, 3)
    mirc = bits(0x00, 2)
    regs_97_to_96 = bits(0x00, 1, 0)
    regs_95_to_87 = bits(0x04, 31, 23)
    synce_registers = bits(0x04, 22, 21)
    regs_84_to_64 = bits(0x04, 20, 0)
    regs_63_to_32 = bits(0x08, 31, 0)
    regs_31_to_0 = bits(0x0C, 31, 0)


class McamAccessReg3(Layout, size=0x10, name="mcam_access_reg3"):
    """MCAM: management registers of group 3 that exist, a bit each."""

    regs_127_to_96 = bits(0x00, 31, 0)
    regs_95_to_64 = bits(0x04, 31, 0)
    regs_63_to_32 = bits(0x08, 31, 0)
    regs_31_to_2 = bits(0x0C, 31, 2)
    mtctr = bits(0x0C, 1)
    mtptm = bits(0x0C, 0)


class McamRegMngAccessRegCapMask(Layout, size=0x10, name="mcam_reg__mng_access_reg_cap_mask"):
    """MCAM: mask of registers (a union)."""

    access_regs = nested(0x00, McamAccessReg)
    access_regs1 = nested(0x00, McamAccessReg1)
    access_regs2 = nested(0x00, McamAccessReg2)
    access_regs3 = nested(0x00, McamAccessReg3)


class McamEnhancedFeatures(Layout, size=0x10):
    """MCAM: features of management registers, a bit each."""

    mtutc_freq_adj_units = bits(0x08, 15)
    mtutc_time_adjustment_extended_range = bits(0x08, 14)
    mcia_32dwords = bits(0x08, 2)
    out_pulse_duration_ns = bits(0x08, 1)
    npps_period = bits(0x08, 0)
    reset_state = bits(0x0C, 21)
    ptpcyc2realtime_modify = bits(0x0C, 20)
    pci_status_and_power = bits(0x0C, 17)
    mark_tx_action_cnp = bits(0x0C, 11)
    mark_tx_action_cqe = bits(0x0C, 10)
    dynamic_tx_overflow = bits(0x0C, 9)
    pcie_outbound_stalled = bits(0x0C, 4)
    tx_overflow_buffer_pkt = bits(0x0C, 3)
    mtpps_enh_out_per_adj = bits(0x0C, 2)
    mtpps_fs = bits(0x0C, 1)
    pcie_performance_group = bits(0x0C, 0)


class McamRegMngFeatureCapMask(Layout, size=0x10, name="mcam_reg__mng_feature_cap_mask"):
    """MCAM: mask of features (a union)."""

    enhanced_features = nested(0x00, McamEnhancedFeatures)


class McamReg(Layout, size=0x48):
    """MCAM: management capability mask."""

    feature_group = bits(0x00, 23, 16)
    access_reg_group = bits(0x00, 7, 0)
    mng_access_reg_cap_mask = nested(0x08, McamRegMngAccessRegCapMask)
    mng_feature_cap_mask = nested(0x28, McamRegMngFeatureCapMask)

    def alternative(self, name: str) -> str | None:
        """The mask of registers of this group."""
        if name != "mng_access_reg_cap_mask" or self.access_reg_group > 3:
            return None
        return f"access_regs{self.access_reg_group or ''}"


class DefaultTimeout(Layout, size=0x4):
    """A timeout."""

    to_multiplier = bits(0x00, 31, 29)
    to_value = bits(0x00, 19, 0)


class DtorReg(Layout, size=0x40):
    """DTOR: default timeouts."""

    pcie_toggle_to = nested(0x04, DefaultTimeout)
    health_poll_to = nested(0x14, DefaultTimeout)
    full_crdump_to = nested(0x18, DefaultTimeout)
    fw_reset_to = nested(0x1C, DefaultTimeout)
    flush_on_err_to = nested(0x20, DefaultTimeout)
    pci_sync_update_to = nested(0x24, DefaultTimeout)
    tear_down_to = nested(0x28, DefaultTimeout)
    fsm_reactivate_to = nested(0x2C, DefaultTimeout)
    reclaim_pages_to = nested(0x30, DefaultTimeout)
    reclaim_vfs_pages_to = nested(0x34, DefaultTimeout)
    reset_unload_to = nested(0x38, DefaultTimeout)
