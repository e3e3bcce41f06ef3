"""Registers reached by ACCESS_REGISTER."""

from enum import IntEnum, unique

from softhca.prm.layout import Layout, array, bits, nested


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
class BufferOwnership(IntEnum):
    """PFCC 0x00 [27:26]."""

    UNKNOWN = 0x0
    FW_OWNED = 0x1
    SW_OWNED = 0x2


class AccessRegisterIn(Layout, size=0x10):
    """ACCESS_REGISTER: input."""

    opcode = bits(0x00, 31, 16)
    op_mod = bits(0x04, 15, 0, RegisterAccess)
    register_id = bits(0x08, 15, 0)
    argument = bits(0x0C, 31, 0)
    register_data = array(0x10, None, 32)


class AccessRegisterOut(Layout, size=0x10):
    """ACCESS_REGISTER: output."""

    status = bits(0x00, 31, 24)
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
    e = bits(0x04, 1, 0)


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


class Eth8023CntrsGrpDataLayout(Layout, size=0xF8, name="eth_802_3_cntrs_grp_data_layout"):
    """PPCNT group: IEEE 802.3 counters."""

    a_frames_transmitted_ok_high = bits(0x00, 31, 0)
    a_frames_transmitted_ok_low = bits(0x04, 31, 0)
    a_frames_received_ok_high = bits(0x08, 31, 0)
    a_frames_received_ok_low = bits(0x0C, 31, 0)
    a_frame_check_sequence_errors_high = bits(0x10, 31, 0)
    a_frame_check_sequence_errors_low = bits(0x14, 31, 0)
    a_alignment_errors_high = bits(0x18, 31, 0)
    a_alignment_errors_low = bits(0x1C, 31, 0)
    a_octets_transmitted_ok_high = bits(0x20, 31, 0)
    a_octets_transmitted_ok_low = bits(0x24, 31, 0)
    a_octets_received_ok_high = bits(0x28, 31, 0)
    a_octets_received_ok_low = bits(0x2C, 31, 0)
    a_multicast_frames_xmitted_ok_high = bits(0x30, 31, 0)
    a_multicast_frames_xmitted_ok_low = bits(0x34, 31, 0)
    a_broadcast_frames_xmitted_ok_high = bits(0x38, 31, 0)
    a_broadcast_frames_xmitted_ok_low = bits(0x3C, 31, 0)
    a_multicast_frames_received_ok_high = bits(0x40, 31, 0)
    a_multicast_frames_received_ok_low = bits(0x44, 31, 0)
    a_broadcast_frames_received_ok_high = bits(0x48, 31, 0)
    a_broadcast_frames_received_ok_low = bits(0x4C, 31, 0)
    a_in_range_length_errors_high = bits(0x50, 31, 0)
    a_in_range_length_errors_low = bits(0x54, 31, 0)
    a_out_of_range_length_field_high = bits(0x58, 31, 0)
    a_out_of_range_length_field_low = bits(0x5C, 31, 0)
    a_frame_too_long_errors_high = bits(0x60, 31, 0)
    a_frame_too_long_errors_low = bits(0x64, 31, 0)
    a_symbol_error_during_carrier_high = bits(0x68, 31, 0)
    a_symbol_error_during_carrier_low = bits(0x6C, 31, 0)
    a_mac_control_frames_transmitted_high = bits(0x70, 31, 0)
    a_mac_control_frames_transmitted_low = bits(0x74, 31, 0)
    a_mac_control_frames_received_high = bits(0x78, 31, 0)
    a_mac_control_frames_received_low = bits(0x7C, 31, 0)
    a_unsupported_opcodes_received_high = bits(0x80, 31, 0)
    a_unsupported_opcodes_received_low = bits(0x84, 31, 0)
    a_pause_mac_ctrl_frames_received_high = bits(0x88, 31, 0)
    a_pause_mac_ctrl_frames_received_low = bits(0x8C, 31, 0)
    a_pause_mac_ctrl_frames_transmitted_high = bits(0x90, 31, 0)
    a_pause_mac_ctrl_frames_transmitted_low = bits(0x94, 31, 0)


class Eth2863CntrsGrpDataLayout(Layout, size=0xF8, name="eth_2863_cntrs_grp_data_layout"):
    """PPCNT group: RFC 2863 counters."""

    if_in_octets_high = bits(0x00, 31, 0)
    if_in_octets_low = bits(0x04, 31, 0)
    if_in_ucast_pkts_high = bits(0x08, 31, 0)
    if_in_ucast_pkts_low = bits(0x0C, 31, 0)
    if_in_discards_high = bits(0x10, 31, 0)
    if_in_discards_low = bits(0x14, 31, 0)
    if_in_errors_high = bits(0x18, 31, 0)
    if_in_errors_low = bits(0x1C, 31, 0)
    if_in_unknown_protos_high = bits(0x20, 31, 0)
    if_in_unknown_protos_low = bits(0x24, 31, 0)
    if_out_octets_high = bits(0x28, 31, 0)
    if_out_octets_low = bits(0x2C, 31, 0)
    if_out_ucast_pkts_high = bits(0x30, 31, 0)
    if_out_ucast_pkts_low = bits(0x34, 31, 0)
    if_out_discards_high = bits(0x38, 31, 0)
    if_out_discards_low = bits(0x3C, 31, 0)
    if_out_errors_high = bits(0x40, 31, 0)
    if_out_errors_low = bits(0x44, 31, 0)
    if_in_multicast_pkts_high = bits(0x48, 31, 0)
    if_in_multicast_pkts_low = bits(0x4C, 31, 0)
    if_in_broadcast_pkts_high = bits(0x50, 31, 0)
    if_in_broadcast_pkts_low = bits(0x54, 31, 0)
    if_out_multicast_pkts_high = bits(0x58, 31, 0)
    if_out_multicast_pkts_low = bits(0x5C, 31, 0)
    if_out_broadcast_pkts_high = bits(0x60, 31, 0)
    if_out_broadcast_pkts_low = bits(0x64, 31, 0)


class Eth2819CntrsGrpDataLayout(Layout, size=0xF8, name="eth_2819_cntrs_grp_data_layout"):
    """PPCNT group: RFC 2819 counters."""

    ether_stats_drop_events_high = bits(0x00, 31, 0)
    ether_stats_drop_events_low = bits(0x04, 31, 0)
    ether_stats_octets_high = bits(0x08, 31, 0)
    ether_stats_octets_low = bits(0x0C, 31, 0)
    ether_stats_pkts_high = bits(0x10, 31, 0)
    ether_stats_pkts_low = bits(0x14, 31, 0)
    ether_stats_broadcast_pkts_high = bits(0x18, 31, 0)
    ether_stats_broadcast_pkts_low = bits(0x1C, 31, 0)
    ether_stats_multicast_pkts_high = bits(0x20, 31, 0)
    ether_stats_multicast_pkts_low = bits(0x24, 31, 0)
    ether_stats_crc_align_errors_high = bits(0x28, 31, 0)
    ether_stats_crc_align_errors_low = bits(0x2C, 31, 0)
    ether_stats_undersize_pkts_high = bits(0x30, 31, 0)
    ether_stats_undersize_pkts_low = bits(0x34, 31, 0)
    ether_stats_oversize_pkts_high = bits(0x38, 31, 0)
    ether_stats_oversize_pkts_low = bits(0x3C, 31, 0)
    ether_stats_fragments_high = bits(0x40, 31, 0)
    ether_stats_fragments_low = bits(0x44, 31, 0)
    ether_stats_jabbers_high = bits(0x48, 31, 0)
    ether_stats_jabbers_low = bits(0x4C, 31, 0)
    ether_stats_collisions_high = bits(0x50, 31, 0)
    ether_stats_collisions_low = bits(0x54, 31, 0)
    ether_stats_pkts64octets_high = bits(0x58, 31, 0)
    ether_stats_pkts64octets_low = bits(0x5C, 31, 0)
    ether_stats_pkts65to127octets_high = bits(0x60, 31, 0)
    ether_stats_pkts65to127octets_low = bits(0x64, 31, 0)
    ether_stats_pkts128to255octets_high = bits(0x68, 31, 0)
    ether_stats_pkts128to255octets_low = bits(0x6C, 31, 0)
    ether_stats_pkts256to511octets_high = bits(0x70, 31, 0)
    ether_stats_pkts256to511octets_low = bits(0x74, 31, 0)
    ether_stats_pkts512to1023octets_high = bits(0x78, 31, 0)
    ether_stats_pkts512to1023octets_low = bits(0x7C, 31, 0)
    ether_stats_pkts1024to1518octets_high = bits(0x80, 31, 0)
    ether_stats_pkts1024to1518octets_low = bits(0x84, 31, 0)
    ether_stats_pkts1519to2047octets_high = bits(0x88, 31, 0)
    ether_stats_pkts1519to2047octets_low = bits(0x8C, 31, 0)
    ether_stats_pkts2048to4095octets_high = bits(0x90, 31, 0)
    ether_stats_pkts2048to4095octets_low = bits(0x94, 31, 0)
    ether_stats_pkts4096to8191octets_high = bits(0x98, 31, 0)
    ether_stats_pkts4096to8191octets_low = bits(0x9C, 31, 0)
    ether_stats_pkts8192to10239octets_high = bits(0xA0, 31, 0)
    ether_stats_pkts8192to10239octets_low = bits(0xA4, 31, 0)


class Eth3635CntrsGrpDataLayout(Layout, size=0xF8, name="eth_3635_cntrs_grp_data_layout"):
    """PPCNT group: RFC 3635 counters."""

    dot3stats_alignment_errors_high = bits(0x00, 31, 0)
    dot3stats_alignment_errors_low = bits(0x04, 31, 0)
    dot3stats_fcs_errors_high = bits(0x08, 31, 0)
    dot3stats_fcs_errors_low = bits(0x0C, 31, 0)
    dot3stats_single_collision_frames_high = bits(0x10, 31, 0)
    dot3stats_single_collision_frames_low = bits(0x14, 31, 0)
    dot3stats_multiple_collision_frames_high = bits(0x18, 31, 0)
    dot3stats_multiple_collision_frames_low = bits(0x1C, 31, 0)
    dot3stats_sqe_test_errors_high = bits(0x20, 31, 0)
    dot3stats_sqe_test_errors_low = bits(0x24, 31, 0)
    dot3stats_deferred_transmissions_high = bits(0x28, 31, 0)
    dot3stats_deferred_transmissions_low = bits(0x2C, 31, 0)
    dot3stats_late_collisions_high = bits(0x30, 31, 0)
    dot3stats_late_collisions_low = bits(0x34, 31, 0)
    dot3stats_excessive_collisions_high = bits(0x38, 31, 0)
    dot3stats_excessive_collisions_low = bits(0x3C, 31, 0)
    dot3stats_internal_mac_transmit_errors_high = bits(0x40, 31, 0)
    dot3stats_internal_mac_transmit_errors_low = bits(0x44, 31, 0)
    dot3stats_carrier_sense_errors_high = bits(0x48, 31, 0)
    dot3stats_carrier_sense_errors_low = bits(0x4C, 31, 0)
    dot3stats_frame_too_longs_high = bits(0x50, 31, 0)
    dot3stats_frame_too_longs_low = bits(0x54, 31, 0)
    dot3stats_internal_mac_receive_errors_high = bits(0x58, 31, 0)
    dot3stats_internal_mac_receive_errors_low = bits(0x5C, 31, 0)
    dot3stats_symbol_errors_high = bits(0x60, 31, 0)
    dot3stats_symbol_errors_low = bits(0x64, 31, 0)
    dot3control_in_unknown_opcodes_high = bits(0x68, 31, 0)
    dot3control_in_unknown_opcodes_low = bits(0x6C, 31, 0)
    dot3in_pause_frames_high = bits(0x70, 31, 0)
    dot3in_pause_frames_low = bits(0x74, 31, 0)
    dot3out_pause_frames_high = bits(0x78, 31, 0)
    dot3out_pause_frames_low = bits(0x7C, 31, 0)


class EthExtendedCntrsGrpDataLayout(Layout, size=0xF8):
    """PPCNT group: Ethernet extended counters."""

    port_transmit_wait_high = bits(0x00, 31, 0)
    port_transmit_wait_low = bits(0x04, 31, 0)
    rx_buffer_almost_full_high = bits(0x28, 31, 0)
    rx_buffer_almost_full_low = bits(0x2C, 31, 0)
    rx_buffer_full_high = bits(0x30, 31, 0)
    rx_buffer_full_low = bits(0x34, 31, 0)
    rx_icrc_encapsulated_high = bits(0x38, 31, 0)
    rx_icrc_encapsulated_low = bits(0x3C, 31, 0)


class EthPerPrioGrpDataLayout(Layout, size=0xF8):
    """PPCNT group: counters of a priority."""

    rx_octets_high = bits(0x00, 31, 0)
    rx_octets_low = bits(0x04, 31, 0)
    rx_frames_high = bits(0x20, 31, 0)
    rx_frames_low = bits(0x24, 31, 0)
    tx_octets_high = bits(0x28, 31, 0)
    tx_octets_low = bits(0x2C, 31, 0)
    tx_frames_high = bits(0x48, 31, 0)
    tx_frames_low = bits(0x4C, 31, 0)
    rx_pause_high = bits(0x50, 31, 0)
    rx_pause_low = bits(0x54, 31, 0)
    rx_pause_duration_high = bits(0x58, 31, 0)
    rx_pause_duration_low = bits(0x5C, 31, 0)
    tx_pause_high = bits(0x60, 31, 0)
    tx_pause_low = bits(0x64, 31, 0)
    tx_pause_duration_high = bits(0x68, 31, 0)
    tx_pause_duration_low = bits(0x6C, 31, 0)
    rx_pause_transition_high = bits(0x70, 31, 0)
    rx_pause_transition_low = bits(0x74, 31, 0)
    rx_discards_high = bits(0x78, 31, 0)
    rx_discards_low = bits(0x7C, 31, 0)
    device_stall_minor_watermark_cnt_high = bits(0x80, 31, 0)
    device_stall_minor_watermark_cnt_low = bits(0x84, 31, 0)
    device_stall_critical_watermark_cnt_high = bits(0x88, 31, 0)
    device_stall_critical_watermark_cnt_low = bits(0x8C, 31, 0)


class EthPerTcPrioGrpDataLayout(Layout, size=0xF8):
    """PPCNT group: counters of a traffic class."""

    transmit_queue_high = bits(0x00, 31, 0)
    transmit_queue_low = bits(0x04, 31, 0)
    no_buffer_discard_uc_high = bits(0x08, 31, 0)
    no_buffer_discard_uc_low = bits(0x0C, 31, 0)


class EthPerTcCongestPrioGrpDataLayout(Layout, size=0xF8):
    """PPCNT group: congestion counters of a traffic class."""

    wred_discard_high = bits(0x00, 31, 0)
    wred_discard_low = bits(0x04, 31, 0)
    ecn_marked_tc_high = bits(0x08, 31, 0)
    ecn_marked_tc_low = bits(0x0C, 31, 0)


class IbPortCntrsGrpDataLayout(Layout, size=0x28):
    """PPCNT group: InfiniBand port counters."""

    symbol_error_counter = bits(0x00, 31, 16)
    link_error_recovery_counter = bits(0x00, 15, 8)
    link_downed_counter = bits(0x00, 7, 0)
    port_rcv_errors = bits(0x04, 31, 16)
    port_rcv_remote_physical_errors = bits(0x04, 15, 0)
    port_rcv_switch_relay_errors = bits(0x08, 31, 16)
    port_xmit_discards = bits(0x08, 15, 0)
    port_xmit_constraint_errors = bits(0x0C, 31, 24)
    port_rcv_constraint_errors = bits(0x0C, 23, 16)
    link_overrun_errors = bits(0x0C, 7, 0)
    vl_15_dropped = bits(0x10, 15, 0)
    port_xmit_wait = bits(0x24, 31, 0)


class IbExtPortCntrsGrpDataLayout(Layout, size=0xF8):
    """PPCNT group: InfiniBand extended port counters."""

    port_xmit_data_high = bits(0x60, 31, 0)
    port_xmit_data_low = bits(0x64, 31, 0)
    port_rcv_data_high = bits(0x68, 31, 0)
    port_rcv_data_low = bits(0x6C, 31, 0)
    port_xmit_pkts_high = bits(0x70, 31, 0)
    port_xmit_pkts_low = bits(0x74, 31, 0)
    port_rcv_pkts_high = bits(0x78, 31, 0)
    port_rcv_pkts_low = bits(0x7C, 31, 0)
    port_unicast_xmit_pkts_high = bits(0x90, 31, 0)
    port_unicast_xmit_pkts_low = bits(0x94, 31, 0)
    port_multicast_xmit_pkts_high = bits(0x98, 31, 0)
    port_multicast_xmit_pkts_low = bits(0x9C, 31, 0)
    port_unicast_rcv_pkts_high = bits(0xA0, 31, 0)
    port_unicast_rcv_pkts_low = bits(0xA4, 31, 0)
    port_multicast_rcv_pkts_high = bits(0xA8, 31, 0)
    port_multicast_rcv_pkts_low = bits(0xAC, 31, 0)


class PhysLayerCntrs(Layout, size=0xF8):
    """PPCNT group: physical layer counters."""

    time_since_last_clear_high = bits(0x00, 31, 0)
    time_since_last_clear_low = bits(0x04, 31, 0)
    symbol_errors_high = bits(0x08, 31, 0)
    symbol_errors_low = bits(0x0C, 31, 0)
    sync_headers_errors_high = bits(0x10, 31, 0)
    sync_headers_errors_low = bits(0x14, 31, 0)
    edpl_bip_errors_lane0_high = bits(0x18, 31, 0)
    edpl_bip_errors_lane0_low = bits(0x1C, 31, 0)
    edpl_bip_errors_lane1_high = bits(0x20, 31, 0)
    edpl_bip_errors_lane1_low = bits(0x24, 31, 0)
    edpl_bip_errors_lane2_high = bits(0x28, 31, 0)
    edpl_bip_errors_lane2_low = bits(0x2C, 31, 0)
    edpl_bip_errors_lane3_high = bits(0x30, 31, 0)
    edpl_bip_errors_lane3_low = bits(0x34, 31, 0)
    fc_fec_corrected_blocks_lane0_high = bits(0x38, 31, 0)
    fc_fec_corrected_blocks_lane0_low = bits(0x3C, 31, 0)
    fc_fec_corrected_blocks_lane1_high = bits(0x40, 31, 0)
    fc_fec_corrected_blocks_lane1_low = bits(0x44, 31, 0)
    fc_fec_corrected_blocks_lane2_high = bits(0x48, 31, 0)
    fc_fec_corrected_blocks_lane2_low = bits(0x4C, 31, 0)
    fc_fec_corrected_blocks_lane3_high = bits(0x50, 31, 0)
    fc_fec_corrected_blocks_lane3_low = bits(0x54, 31, 0)
    fc_fec_uncorrectable_blocks_lane0_high = bits(0x58, 31, 0)
    fc_fec_uncorrectable_blocks_lane0_low = bits(0x5C, 31, 0)
    fc_fec_uncorrectable_blocks_lane1_high = bits(0x60, 31, 0)
    fc_fec_uncorrectable_blocks_lane1_low = bits(0x64, 31, 0)
    fc_fec_uncorrectable_blocks_lane2_high = bits(0x68, 31, 0)
    fc_fec_uncorrectable_blocks_lane2_low = bits(0x6C, 31, 0)
    fc_fec_uncorrectable_blocks_lane3_high = bits(0x70, 31, 0)
    fc_fec_uncorrectable_blocks_lane3_low = bits(0x74, 31, 0)
    rs_fec_corrected_blocks_high = bits(0x78, 31, 0)
    rs_fec_corrected_blocks_low = bits(0x7C, 31, 0)
    rs_fec_uncorrectable_blocks_high = bits(0x80, 31, 0)
    rs_fec_uncorrectable_blocks_low = bits(0x84, 31, 0)
    rs_fec_no_errors_blocks_high = bits(0x88, 31, 0)
    rs_fec_no_errors_blocks_low = bits(0x8C, 31, 0)
    rs_fec_single_error_blocks_high = bits(0x90, 31, 0)
    rs_fec_single_error_blocks_low = bits(0x94, 31, 0)
    rs_fec_corrected_symbols_total_high = bits(0x98, 31, 0)
    rs_fec_corrected_symbols_total_low = bits(0x9C, 31, 0)
    rs_fec_corrected_symbols_lane0_high = bits(0xA0, 31, 0)
    rs_fec_corrected_symbols_lane0_low = bits(0xA4, 31, 0)
    rs_fec_corrected_symbols_lane1_high = bits(0xA8, 31, 0)
    rs_fec_corrected_symbols_lane1_low = bits(0xAC, 31, 0)
    rs_fec_corrected_symbols_lane2_high = bits(0xB0, 31, 0)
    rs_fec_corrected_symbols_lane2_low = bits(0xB4, 31, 0)
    rs_fec_corrected_symbols_lane3_high = bits(0xB8, 31, 0)
    rs_fec_corrected_symbols_lane3_low = bits(0xBC, 31, 0)
    link_down_events = bits(0xC0, 31, 0)
    successful_recovery_events = bits(0xC4, 31, 0)


class PhysLayerStatisticalCntrs(Layout, size=0xF8):
    """PPCNT group: physical layer statistical counters."""

    time_since_last_clear_high = bits(0x00, 31, 0)
    time_since_last_clear_low = bits(0x04, 31, 0)
    phy_received_bits_high = bits(0x08, 31, 0)
    phy_received_bits_low = bits(0x0C, 31, 0)
    phy_symbol_errors_high = bits(0x10, 31, 0)
    phy_symbol_errors_low = bits(0x14, 31, 0)
    phy_corrected_bits_high = bits(0x18, 31, 0)
    phy_corrected_bits_low = bits(0x1C, 31, 0)
    phy_corrected_bits_lane0_high = bits(0x20, 31, 0)
    phy_corrected_bits_lane0_low = bits(0x24, 31, 0)
    phy_corrected_bits_lane1_high = bits(0x28, 31, 0)
    phy_corrected_bits_lane1_low = bits(0x2C, 31, 0)
    phy_corrected_bits_lane2_high = bits(0x30, 31, 0)
    phy_corrected_bits_lane2_low = bits(0x34, 31, 0)
    phy_corrected_bits_lane3_high = bits(0x38, 31, 0)
    phy_corrected_bits_lane3_low = bits(0x3C, 31, 0)


class EthCntrsGrpDataLayoutAuto(Layout, size=0xF8):
    """A group of counters; PPCNT grp tells which (a union)."""

    eth_802_3_cntrs_grp_data_layout = nested(0x00, Eth8023CntrsGrpDataLayout)
    eth_2863_cntrs_grp_data_layout = nested(0x00, Eth2863CntrsGrpDataLayout)
    eth_2819_cntrs_grp_data_layout = nested(0x00, Eth2819CntrsGrpDataLayout)
    eth_3635_cntrs_grp_data_layout = nested(0x00, Eth3635CntrsGrpDataLayout)
    eth_extended_cntrs_grp_data_layout = nested(0x00, EthExtendedCntrsGrpDataLayout)
    eth_per_prio_grp_data_layout = nested(0x00, EthPerPrioGrpDataLayout)
    eth_per_tc_prio_grp_data_layout = nested(0x00, EthPerTcPrioGrpDataLayout)
    eth_per_tc_congest_prio_grp_data_layout = nested(0x00, EthPerTcCongestPrioGrpDataLayout)
    ib_port_cntrs_grp_data_layout = nested(0x00, IbPortCntrsGrpDataLayout)
    ib_ext_port_cntrs_grp_data_layout = nested(0x00, IbExtPortCntrsGrpDataLayout)
    phys_layer_cntrs = nested(0x00, PhysLayerCntrs)
    phys_layer_statistical_cntrs = nested(0x00, PhysLayerStatisticalCntrs)


class PpcntReg(Layout, size=0x100):
    """PPCNT: port performance counters."""

    swid = bits(0x00, 31, 24)
    local_port = bits(0x00, 23, 16)
    pnat = bits(0x00, 15, 14)
    grp = bits(0x00, 5, 0)
    clr = bits(0x04, 31)
    plane_ind = bits(0x04, 11, 8)
    prio_tc = bits(0x04, 4, 0)
    counter_set = nested(0x08, EthCntrsGrpDataLayoutAuto)


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


class McamRegMngAccessRegCapMask(Layout, size=0x10, name="mcam_reg__mng_access_reg_cap_mask"):
    """MCAM: mask of registers (a union)."""

    access_regs = nested(0x00, McamAccessReg)


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
