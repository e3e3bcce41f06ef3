"""Capability pages and the commands that read and set them."""

from enum import IntEnum, unique

from softhca.prm.flow_table_cap import FlowTableEswitchCap, FlowTableNicCap
from softhca.prm.layout import Layout, bits, nested, u64
from softhca.prm.offload_cap import (
    CryptoCap,
    DebugCap,
    DeviceMemCap,
    EswCap,
    ESwitchCap,
    FpgaCap,
    IpsecCap,
    MacsecCap,
    PortSelectionCap,
    QosCap,
    TlsCap,
    VirtioEmulationCap,
    WqeBasedFlowTableCap,
)
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus
from softhca.prm.transport_cap import AtomicCaps, OdpCap, PerProtocolNetworkingOffloadCaps, RoceCap

__all__ = [
    "CAPABILITY_PAGES",
    "AtomicCaps",
    "CapType",
    "CmdHcaCap",
    "CmdHcaCap2",
    "CmdifChecksum",
    "FlowTableNicCap",
    "HcaCapUnion",
    "OdpCap",
    "PerProtocolNetworkingOffloadCaps",
    "PortType",
    "QueryHcaCapIn",
    "QueryHcaCapOut",
    "RoceCap",
    "SetHcaCapIn",
    "SetHcaCapOut",
    "SteeringFormat",
    "TimestampFormatCap",
    "UmrFence",
]


@unique
class PortType(IntEnum):
    """General capabilities 0x34 [9:8]."""

    IB = 0x0
    ETH = 0x1


@unique
class CmdifChecksum(IntEnum):
    """General capabilities 0x40 [15:14]."""

    DISABLED = 0x0
    INITIAL_STATE = 0x1
    ENABLED = 0x3


@unique
class UmrFence(IntEnum):
    """General capabilities 0x40 [21:20]."""

    STRONG = 0x0
    SMALL = 0x1
    NONE = 0x2


@unique
class TimestampFormatCap(IntEnum):
    """General capabilities 0x88: time stamps a queue can give."""

    FREE_RUNNING = 0x0
    REAL_TIME = 0x1
    FREE_RUNNING_AND_REAL_TIME = 0x2


@unique
class SteeringFormat(IntEnum):
    """General capabilities 0x88 [27:24]."""

    CONNECTX_5 = 0x0
    CONNECTX_6DX = 0x1
    CONNECTX_7 = 0x2


@unique
class CapType(IntEnum):
    """QUERY_HCA_CAP and SET_HCA_CAP op_mod [15:1]: which page of capabilities."""

    GENERAL = 0x00
    ETHERNET_OFFLOADS = 0x01
    ODP = 0x02
    ATOMIC = 0x03
    ROCE = 0x04
    IPOIB_OFFLOADS = 0x05
    IPOIB_ENHANCED_OFFLOADS = 0x06
    FLOW_TABLE = 0x07
    ESWITCH_FLOW_TABLE = 0x08
    ESWITCH = 0x09
    QOS = 0x0C
    DEBUG = 0x0D
    DEV_MEM = 0x0F
    TLS = 0x11
    VDPA_EMULATION = 0x13
    DEV_EVENT = 0x14
    IPSEC = 0x15
    CRYPTO = 0x1A
    MACSEC = 0x1F
    GENERAL_2 = 0x20
    PORT_SELECTION = 0x25
    ADV_VIRTUALIZATION = 0x26


class CmdHcaCap(Layout, size=0x100):
    """Capabilities, general page."""

    page_request_disable = bits(0x00, 25)
    shared_object_to_user_object_allowed = bits(0x00, 15)
    vhca_resource_manager = bits(0x00, 0)
    hca_cap_2 = bits(0x04, 31)
    create_lag_when_not_master_up = bits(0x04, 30)
    dtor = bits(0x04, 29)
    event_on_vhca_state_teardown_request = bits(0x04, 28)
    event_on_vhca_state_in_use = bits(0x04, 27)
    event_on_vhca_state_active = bits(0x04, 26)
    event_on_vhca_state_allocated = bits(0x04, 25)
    event_on_vhca_state_invalid = bits(0x04, 24)
    vhca_id = bits(0x04, 15, 0)
    log_max_srq_sz = bits(0x10, 31, 24)
    log_max_qp_sz = bits(0x10, 23, 16)
    event_cap = bits(0x10, 15)
    isolate_vl_tc_new = bits(0x10, 12)
    prio_tag_required = bits(0x10, 7)
    log_max_qp = bits(0x10, 4, 0)
    ece_support = bits(0x14, 28)
    reg_c_preserve = bits(0x14, 22)
    log_max_srq = bits(0x14, 20, 16)
    uplink_follow = bits(0x14, 14)
    ts_cqe_to_dest_cqn = bits(0x14, 13)
    go_back_n = bits(0x14, 6)
    max_sgl_for_optimized_performance = bits(0x18, 31, 24)
    log_max_cq_sz = bits(0x18, 23, 16)
    relaxed_ordering_write_umr = bits(0x18, 15)
    relaxed_ordering_read_umr = bits(0x18, 14)
    virtio_net_device_emualtion_manager = bits(0x18, 6)
    virtio_blk_device_emualtion_manager = bits(0x18, 5)
    log_max_cq = bits(0x18, 4, 0)
    log_max_eq_sz = bits(0x1C, 31, 24)
    relaxed_ordering_write = bits(0x1C, 23)
    relaxed_ordering_read_pci_enabled = bits(0x1C, 22)
    log_max_mkey = bits(0x1C, 21, 16)
    terminate_scatter_list_mkey = bits(0x1C, 9)
    repeated_mkey = bits(0x1C, 8)
    dump_fill_mkey = bits(0x1C, 7)
    fast_teardown = bits(0x1C, 4)
    log_max_eq = bits(0x1C, 3, 0)
    max_indirection = bits(0x20, 31, 24)
    fixed_buffer_size = bits(0x20, 23)
    log_max_mrw_sz = bits(0x20, 22, 16)
    force_teardown = bits(0x20, 15)
    log_max_bsf_list_size = bits(0x20, 13, 8)
    umr_extended_translation_offset = bits(0x20, 7)
    null_mkey = bits(0x20, 6)
    log_max_klm_list_size = bits(0x20, 5, 0)
    qpc_extension = bits(0x24, 29)
    log_max_ra_req_dc = bits(0x24, 21, 16)
    eth_wqe_too_small = bits(0x24, 13)
    vnic_env_cq_overrun = bits(0x24, 6)
    log_max_ra_res_dc = bits(0x24, 5, 0)
    release_all_pages = bits(0x28, 26)
    must_not_use = bits(0x28, 25)
    roce_accl = bits(0x28, 22)
    log_max_ra_req_qp = bits(0x28, 21, 16)
    log_max_ra_res_qp = bits(0x28, 5, 0)
    end_pad = bits(0x2C, 31)
    cc_query_allowed = bits(0x2C, 30)
    cc_modify_allowed = bits(0x2C, 29)
    start_pad = bits(0x2C, 28)
    cache_line_128byte = bits(0x2C, 27)
    rts2rts_qp_counters_set_id = bits(0x2C, 22)
    vnic_env_int_rq_oob = bits(0x2C, 19)
    sbcam_reg = bits(0x2C, 18)
    qcam_reg = bits(0x2C, 16)
    gid_table_size = bits(0x2C, 15, 0)
    out_of_seq_cnt = bits(0x30, 31)
    vport_counters = bits(0x30, 30)
    retransmission_q_counters = bits(0x30, 29)
    debug = bits(0x30, 28)
    modify_rq_counter_set_id = bits(0x30, 27)
    rq_delay_drop = bits(0x30, 26)
    max_qp_cnt = bits(0x30, 25, 16)
    pkey_table_size = bits(0x30, 15, 0)
    vport_group_manager = bits(0x34, 31)
    vhca_group_manager = bits(0x34, 30)
    ib_virt = bits(0x34, 29)
    eth_virt = bits(0x34, 28)
    vnic_env_queue_counters = bits(0x34, 27)
    ets = bits(0x34, 26)
    nic_flow_table = bits(0x34, 25)
    eswitch_manager = bits(0x34, 24)
    device_memory = bits(0x34, 23)
    mcam_reg = bits(0x34, 22)
    pcam_reg = bits(0x34, 21)
    local_ca_ack_delay = bits(0x34, 20, 16)
    port_module_event = bits(0x34, 15)
    enhanced_error_q_counters = bits(0x34, 14)
    ports_check = bits(0x34, 13)
    disable_link_up = bits(0x34, 11)
    beacon_led = bits(0x34, 10)
    port_type = bits(0x34, 9, 8, PortType)
    num_ports = bits(0x34, 7, 0)
    pps = bits(0x38, 30)
    pps_modify = bits(0x38, 29)
    log_max_msg = bits(0x38, 28, 24)
    max_tc = bits(0x38, 19, 16)
    temp_warn_event = bits(0x38, 15)
    dcbx = bits(0x38, 14)
    general_notification_event = bits(0x38, 13)
    fpga = bits(0x38, 10)
    rol_s = bits(0x38, 9)
    rol_g = bits(0x38, 8)
    wol_s = bits(0x38, 6)
    wol_g = bits(0x38, 5)
    wol_a = bits(0x38, 4)
    wol_b = bits(0x38, 3)
    wol_m = bits(0x38, 2)
    wol_u = bits(0x38, 1)
    wol_p = bits(0x38, 0)
    stat_rate_support = bits(0x3C, 31, 16)
    pci_sync_for_fw_update_event = bits(0x3C, 14)
    init2_lag_tx_port_affinity = bits(0x3C, 7)
    wqe_based_flow_table_update_cap = bits(0x3C, 4)
    cqe_version = bits(0x3C, 3, 0)
    compact_address_vector = bits(0x40, 31)
    striding_rq = bits(0x40, 30)
    ipoib_enhanced_offloads = bits(0x40, 28)
    ipoib_basic_offloads = bits(0x40, 27)
    repeated_block_disabled = bits(0x40, 25)
    umr_modify_entity_size_disabled = bits(0x40, 24)
    umr_modify_atomic_disabled = bits(0x40, 23)
    umr_indirect_mkey_disabled = bits(0x40, 22)
    umr_fence = bits(0x40, 21, 20, UmrFence)
    dc_req_scat_data_cqe = bits(0x40, 19)
    drain_sigerr = bits(0x40, 16)
    cmdif_checksum = bits(0x40, 15, 14, CmdifChecksum)
    sigerr_cqe = bits(0x40, 13)
    wq_signature = bits(0x40, 11)
    sctr_data_cqe = bits(0x40, 10)
    sho = bits(0x40, 8)
    tph = bits(0x40, 7)
    rf = bits(0x40, 6)
    dct = bits(0x40, 5)
    qos = bits(0x40, 4)
    eth_net_offloads = bits(0x40, 3)
    roce = bits(0x40, 2)
    atomic = bits(0x40, 1)
    cq_oi = bits(0x44, 31)
    cq_resize = bits(0x44, 30)
    cq_moderation = bits(0x44, 29)
    cq_period_mode_modify = bits(0x44, 28)
    cq_eq_remap = bits(0x44, 25)
    pg = bits(0x44, 24)
    block_lb_mc = bits(0x44, 23)
    scqe_break_moderation = bits(0x44, 21)
    cq_period_start_from_cqe = bits(0x44, 20)
    cd = bits(0x44, 19)
    apm = bits(0x44, 17)
    vector_calc = bits(0x44, 16)
    umr_ptr_rlky = bits(0x44, 15)
    imaicl = bits(0x44, 14)
    qp_packet_based = bits(0x44, 13)
    qkv = bits(0x44, 9)
    pkv = bits(0x44, 8)
    set_deth_sqpn = bits(0x44, 7)
    xrc = bits(0x44, 3)
    ud = bits(0x44, 2)
    uc = bits(0x44, 1)
    rc = bits(0x44, 0)
    uar_4k = bits(0x48, 31)
    fl_rc_qp_when_roce_disabled = bits(0x48, 23)
    regexp_params = bits(0x48, 22)
    uar_sz = bits(0x48, 21, 16)
    port_selection_cap = bits(0x48, 15)
    umem_uid_0 = bits(0x48, 13)
    log_pg_sz = bits(0x48, 7, 0)
    bf = bits(0x4C, 31)
    driver_version = bits(0x4C, 30)
    pad_tx_eth_packet = bits(0x4C, 29)
    mkey_by_name = bits(0x4C, 25)
    log_bf_reg_size = bits(0x4C, 20, 16)
    qp_error_syndrome = bits(0x4C, 12)
    lag_dct = bits(0x4C, 9, 8)
    lag_tx_port_affinity = bits(0x4C, 7)
    lag_native_fdb_selection = bits(0x4C, 6)
    lag_master = bits(0x4C, 4)
    num_lag_ports = bits(0x4C, 3, 0)
    max_wqe_sz_sq = bits(0x50, 15, 0)
    shampo = bits(0x54, 20)
    max_wqe_sz_rq = bits(0x54, 15, 0)
    max_flow_counter_31_16 = bits(0x58, 31, 16)
    max_wqe_sz_sq_dc = bits(0x58, 15, 0)
    max_qp_mcg = bits(0x5C, 24, 0)
    flow_counter_bulk_alloc = bits(0x60, 15, 8)
    log_max_mcg = bits(0x60, 7, 0)
    log_max_transport_domain = bits(0x64, 28, 24)
    relaxed_ordering_read = bits(0x64, 21)
    log_max_pd = bits(0x64, 20, 16)
    pcie_reset_using_hotreset_method = bits(0x64, 10)
    pci_sync_for_fw_update_with_driver_unload = bits(0x64, 9)
    vnic_env_cnt_steering_fail = bits(0x64, 8)
    vport_counter_local_loopback = bits(0x64, 7)
    q_counter_aggregation = bits(0x64, 6)
    q_counter_other_vport = bits(0x64, 5)
    log_max_xrcd = bits(0x64, 4, 0)
    nic_receive_steering_discard = bits(0x68, 31)
    receive_discard_vport_down = bits(0x68, 30)
    transmit_discard_vport_down = bits(0x68, 29)
    eq_overrun_count = bits(0x68, 28)
    invalid_command_count = bits(0x68, 26)
    quota_exceeded_count = bits(0x68, 25)
    log_max_flow_counter_bulk = bits(0x68, 23, 16)
    max_flow_counter_15_0 = bits(0x68, 15, 0)
    log_max_rq = bits(0x6C, 28, 24)
    log_max_sq = bits(0x6C, 20, 16)
    log_max_tir = bits(0x6C, 12, 8)
    log_max_tis = bits(0x6C, 4, 0)
    basic_cyclic_rcv_wqe = bits(0x70, 31)
    log_max_rmp = bits(0x70, 28, 24)
    log_max_rqt = bits(0x70, 20, 16)
    log_max_rqt_size = bits(0x70, 12, 8)
    log_max_tis_per_sq = bits(0x70, 4, 0)
    ext_stride_num_range = bits(0x74, 31)
    roce_rw_supported = bits(0x74, 30)
    log_max_current_uc_list_wr_supported = bits(0x74, 29)
    log_max_stride_sz_rq = bits(0x74, 28, 24)
    log_min_stride_sz_rq = bits(0x74, 20, 16)
    log_max_stride_sz_sq = bits(0x74, 12, 8)
    log_min_stride_sz_sq = bits(0x74, 4, 0)
    hairpin = bits(0x78, 31)
    log_max_hairpin_queues = bits(0x78, 28, 24)
    log_max_hairpin_wq_data_sz = bits(0x78, 20, 16)
    log_max_hairpin_num_packets = bits(0x78, 12, 8)
    log_max_wq_sz = bits(0x78, 4, 0)
    nic_vport_change_event = bits(0x7C, 31)
    disable_local_lb_uc = bits(0x7C, 30)
    disable_local_lb_mc = bits(0x7C, 29)
    log_min_hairpin_wq_data_sz = bits(0x7C, 28, 24)
    silent_mode = bits(0x7C, 22)
    vhca_state = bits(0x7C, 21)
    log_max_vlan_list = bits(0x7C, 20, 16)
    log_max_current_mc_list = bits(0x7C, 12, 8)
    log_max_current_uc_list = bits(0x7C, 4, 0)
    general_obj_types = u64(0x80)
    sq_ts_format = bits(0x88, 31, 30, TimestampFormatCap)
    rq_ts_format = bits(0x88, 29, 28, TimestampFormatCap)
    steering_format_version = bits(0x88, 27, 24, SteeringFormat)
    create_qp_start_hint = bits(0x88, 23, 0)
    ats = bits(0x8C, 30)
    cross_vhca_rqt = bits(0x8C, 29)
    log_max_uctx = bits(0x8C, 28, 24)
    crypto = bits(0x8C, 22)
    ipsec_offload = bits(0x8C, 21)
    log_max_umem = bits(0x8C, 20, 16)
    max_num_eqs = bits(0x8C, 15, 0)
    tls_tx = bits(0x90, 30)
    tls_rx = bits(0x90, 29)
    log_max_l2_table = bits(0x90, 28, 24)
    log_uar_page_sz = bits(0x90, 15, 0)
    device_frequency_mhz = bits(0x98, 31, 0)
    device_frequency_khz = bits(0x9C, 31, 0)
    num_of_uars_per_page = bits(0xA4, 31, 0)
    flex_parser_protocols = bits(0xA8, 31, 0)
    max_geneve_tlv_options = bits(0xAC, 31, 24)
    max_geneve_tlv_option_data_len = bits(0xAC, 20, 16)
    adv_virtualization = bits(0xAC, 6)
    log_max_dci_stream_channels = bits(0xB0, 20, 16)
    log_max_dci_errored_streams = bits(0xB0, 12, 8)
    enhanced_cqe_compression = bits(0xB4, 15)
    crossing_vhca_mkey = bits(0xB4, 13)
    log_max_dek = bits(0xB4, 12, 8)
    mini_cqe_resp_stride_index = bits(0xB4, 3)
    cqe_128_always = bits(0xB4, 2)
    cqe_compression_128 = bits(0xB4, 1)
    cqe_compression = bits(0xB4, 0)
    cqe_compression_timeout = bits(0xB8, 31, 16)
    cqe_compression_max_num = bits(0xB8, 15, 0)
    flex_parser_id_gtpu_dw_0 = bits(0xBC, 23, 20)
    tag_matching = bits(0xBC, 15)
    rndv_offload_rc = bits(0xBC, 14)
    rndv_offload_dc = bits(0xBC, 13)
    log_tag_matching_list_sz = bits(0xBC, 12, 8)
    log_max_xrq = bits(0xBC, 4, 0)
    affiliate_nic_vport_criteria = bits(0xC0, 31, 24)
    native_port_num = bits(0xC0, 23, 16)
    num_vhca_ports = bits(0xC0, 15, 8)
    flex_parser_id_gtpu_teid = bits(0xC0, 7, 4)
    sw_owner_id = bits(0xC0, 1)
    max_num_of_monitor_counters = bits(0xC4, 31, 16)
    num_ppcnt_monitor_counters = bits(0xC4, 15, 0)
    max_num_sf = bits(0xC8, 31, 16)
    num_q_monitor_counters = bits(0xC8, 15, 0)
    sf = bits(0xD0, 31)
    sf_set_partition = bits(0xD0, 30)
    log_max_sf = bits(0xD0, 28, 24)
    apu = bits(0xD0, 23)
    migration = bits(0xD0, 18)
    log_min_sf_size = bits(0xD0, 15, 8)
    max_num_sf_partitions = bits(0xD0, 7, 0)
    uctx_cap = bits(0xD4, 31, 0)
    flex_parser_id_geneve_tlv_option_0 = bits(0xD8, 27, 24)
    flex_parser_id_icmp_dw1 = bits(0xD8, 23, 20)
    flex_parser_id_icmp_dw0 = bits(0xD8, 19, 16)
    flex_parser_id_icmpv6_dw1 = bits(0xD8, 15, 12)
    flex_parser_id_icmpv6_dw0 = bits(0xD8, 11, 8)
    flex_parser_id_outer_first_mpls_over_gre = bits(0xD8, 7, 4)
    flex_parser_id_outer_first_mpls_over_udp_label = bits(0xD8, 3, 0)
    max_num_match_definer = bits(0xDC, 31, 16)
    sf_base_id = bits(0xDC, 15, 0)
    flex_parser_id_gtpu_dw_2 = bits(0xE0, 31, 28)
    flex_parser_id_gtpu_first_ext_dw_0 = bits(0xE0, 27, 24)
    num_total_dynamic_vf_msix = bits(0xE0, 23, 0)
    dynamic_msix_table_size = bits(0xE4, 11, 0)
    min_dynamic_vf_msix_table_size = bits(0xE8, 19, 16)
    data_direct = bits(0xE8, 13)
    max_dynamic_vf_msix_table_size = bits(0xE8, 11, 0)
    log_max_num_header_modify_argument = bits(0xEC, 28, 24)
    log_header_modify_argument_granularity_offset = bits(0xEC, 23, 20)
    log_header_modify_argument_granularity = bits(0xEC, 19, 16)
    log_header_modify_argument_max_alloc = bits(0xEC, 12, 8)
    vhca_tunnel_commands = u64(0xF0)
    match_definer_format_supported = u64(0xF8)


class CmdHcaCap2(Layout, size=0x100, name="cmd_hca_cap_2"):
    """Capabilities, second general page."""

    migratable = bits(0x10, 31)
    query_vuid = bits(0x10, 13)
    umr_log_entity_size_5 = bits(0x10, 7)
    max_reformat_insert_size = bits(0x14, 31, 24)
    max_reformat_insert_offset = bits(0x14, 23, 16)
    max_reformat_remove_size = bits(0x14, 15, 8)
    max_reformat_remove_offset = bits(0x14, 7, 0)
    migration_multi_load = bits(0x18, 23)
    migration_tracking_state = bits(0x18, 22)
    multiplane_qp_ud = bits(0x18, 21)
    migration_in_chunks = bits(0x18, 15)
    sf_eq_usage = bits(0x18, 13)
    multiplane = bits(0x18, 7)
    cross_vhca_object_to_object_supported = bits(0x1C, 31, 0)
    allowed_object_for_other_vhca_access = u64(0x20)
    flow_table_type_2_type = bits(0x34, 31, 24)
    format_select_dw_8_6_ext = bits(0x34, 21)
    log_min_mkey_entity_size = bits(0x34, 20, 16)
    sw_vhca_id_valid = bits(0x44, 30)
    sw_vhca_id = bits(0x44, 29, 16)
    ts_cqe_metadata_size2wqe_counter = bits(0x48, 20, 16)
    format_select_dw_gtpu_dw_0 = bits(0x50, 31, 24)
    format_select_dw_gtpu_dw_1 = bits(0x50, 23, 16)
    format_select_dw_gtpu_dw_2 = bits(0x50, 15, 8)
    format_select_dw_gtpu_first_ext_dw_0 = bits(0x50, 7, 0)
    generate_wqe_type = bits(0x54, 31, 0)
    min_mkey_log_entity_size_fixed_buffer = bits(0x70, 20, 16)
    ec_vf_vport_base = bits(0x70, 15, 0)
    max_mkey_log_entity_size_mtt = bits(0x74, 21, 16)
    max_rqt_vhca_id = bits(0x74, 15, 0)
    pcc_ifa2 = bits(0x7C, 15)
    min_mkey_log_entity_size_fixed_buffer_valid = bits(0x80, 30)
    return_reg_id = bits(0x80, 15, 0)
    flow_table_hash_type = bits(0x84, 3, 0)
    max_num_eqs_24b = bits(0x88, 23, 0)


class QueryHcaCapIn(Layout, size=0x10):
    """QUERY_HCA_CAP: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    other_function = bits(0x08, 31)
    ec_vf_function = bits(0x08, 30)
    function_id = bits(0x08, 15, 0)


class HcaCapUnion(Layout, size=0x1000):
    """A capability page; the type in op_mod tells which (a union)."""

    cmd_hca_cap = nested(0x00, CmdHcaCap)
    cmd_hca_cap_2 = nested(0x00, CmdHcaCap2)
    odp_cap = nested(0x00, OdpCap)
    atomic_caps = nested(0x00, AtomicCaps)
    roce_cap = nested(0x00, RoceCap)
    per_protocol_networking_offload_caps = nested(0x00, PerProtocolNetworkingOffloadCaps)
    flow_table_nic_cap = nested(0x00, FlowTableNicCap)
    flow_table_eswitch_cap = nested(0x00, FlowTableEswitchCap)
    wqe_based_flow_table_cap = nested(0x00, WqeBasedFlowTableCap)
    esw_cap = nested(0x00, EswCap)
    e_switch_cap = nested(0x00, ESwitchCap)
    port_selection_cap = nested(0x00, PortSelectionCap)
    qos_cap = nested(0x00, QosCap)
    debug_cap = nested(0x00, DebugCap)
    fpga_cap = nested(0x00, FpgaCap)
    tls_cap = nested(0x00, TlsCap)
    device_mem_cap = nested(0x00, DeviceMemCap)
    virtio_emulation_cap = nested(0x00, VirtioEmulationCap)
    macsec_cap = nested(0x00, MacsecCap)
    crypto_cap = nested(0x00, CryptoCap)
    ipsec_cap = nested(0x00, IpsecCap)


class QueryHcaCapOut(Layout, size=0x1010):
    """QUERY_HCA_CAP: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    capability = nested(0x10, HcaCapUnion)


CAPABILITY_PAGES: dict[int, str] = {
    CapType.GENERAL: "cmd_hca_cap",
    CapType.ETHERNET_OFFLOADS: "per_protocol_networking_offload_caps",
    CapType.ODP: "odp_cap",
    CapType.ATOMIC: "atomic_caps",
    CapType.ROCE: "roce_cap",
    CapType.FLOW_TABLE: "flow_table_nic_cap",
    CapType.ESWITCH_FLOW_TABLE: "flow_table_eswitch_cap",
    CapType.ESWITCH: "e_switch_cap",
    CapType.QOS: "qos_cap",
    CapType.DEBUG: "debug_cap",
    CapType.DEV_MEM: "device_mem_cap",
    CapType.TLS: "tls_cap",
    CapType.VDPA_EMULATION: "virtio_emulation_cap",
    CapType.IPSEC: "ipsec_cap",
    CapType.CRYPTO: "crypto_cap",
    CapType.MACSEC: "macsec_cap",
    CapType.GENERAL_2: "cmd_hca_cap_2",
    CapType.PORT_SELECTION: "port_selection_cap",
}
"""Type of a page -> the field of the union that it is."""


class SetHcaCapIn(Layout, size=0x1010):
    """SET_HCA_CAP: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    other_function = bits(0x08, 31)
    ec_vf_function = bits(0x08, 30)
    function_id = bits(0x08, 15, 0)
    capability = nested(0x10, HcaCapUnion)

    def alternative(self, name: str) -> str | None:
        """The page that op_mod names."""
        return CAPABILITY_PAGES.get(self.op_mod >> 1) if name == "capability" else None


class SetHcaCapOut(Layout, size=0x10):
    """SET_HCA_CAP: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
