"""PPCNT, the register of port counters, and its groups."""

from enum import IntEnum, unique

from softhca.prm.layout import Layout, bits, nested


@unique
class PpcntGroup(IntEnum):
    """PPCNT 0x00 [5:0]: which group of counters."""

    IEEE_802_3 = 0x00
    RFC_2863 = 0x01
    RFC_2819 = 0x02
    RFC_3635 = 0x03
    ETHERNET_EXTENDED = 0x05
    PER_PRIORITY = 0x10
    PER_TRAFFIC_CLASS = 0x11
    PHYSICAL_LAYER = 0x12
    PER_TRAFFIC_CLASS_CONGESTION = 0x13
    PHYSICAL_LAYER_STATISTICAL = 0x16
    INFINIBAND_PORT = 0x20
    INFINIBAND_EXTENDED_PORT = 0x21


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


PPCNT_COUNTERS: dict[int, str] = {
    PpcntGroup.IEEE_802_3: "eth_802_3_cntrs_grp_data_layout",
    PpcntGroup.RFC_2863: "eth_2863_cntrs_grp_data_layout",
    PpcntGroup.RFC_2819: "eth_2819_cntrs_grp_data_layout",
    PpcntGroup.RFC_3635: "eth_3635_cntrs_grp_data_layout",
    PpcntGroup.ETHERNET_EXTENDED: "eth_extended_cntrs_grp_data_layout",
    PpcntGroup.PER_PRIORITY: "eth_per_prio_grp_data_layout",
    PpcntGroup.PER_TRAFFIC_CLASS: "eth_per_tc_prio_grp_data_layout",
    PpcntGroup.PHYSICAL_LAYER: "phys_layer_cntrs",
    PpcntGroup.PER_TRAFFIC_CLASS_CONGESTION: "eth_per_tc_congest_prio_grp_data_layout",
    PpcntGroup.PHYSICAL_LAYER_STATISTICAL: "phys_layer_statistical_cntrs",
    PpcntGroup.INFINIBAND_PORT: "ib_port_cntrs_grp_data_layout",
    PpcntGroup.INFINIBAND_EXTENDED_PORT: "ib_ext_port_cntrs_grp_data_layout",
}
"""Group -> the field of the union of counters that describes it."""


class PpcntReg(Layout, size=0x100):
    """PPCNT: port performance counters."""

    swid = bits(0x00, 31, 24)
    local_port = bits(0x00, 23, 16)
    pnat = bits(0x00, 15, 14)
    grp = bits(0x00, 5, 0, PpcntGroup)
    clr = bits(0x04, 31)
    plane_ind = bits(0x04, 11, 8)
    prio_tc = bits(0x04, 4, 0)
    counter_set = nested(0x08, EthCntrsGrpDataLayoutAuto)

    def alternative(self, name: str) -> str | None:
        """The counters of this group."""
        return PPCNT_COUNTERS.get(self.grp) if name == "counter_set" else None
