"""Capability pages and the commands that read and set them."""

from enum import IntEnum, unique

from softhca.prm.layout import Layout, array, bits, nested, raw, u64


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


class PerProtocolNetworkingOffloadCaps(Layout, size=0x100):
    """Capabilities, Ethernet page: stateless offloads."""

    csum_cap = bits(0x00, 31)
    vlan_cap = bits(0x00, 30)
    lro_cap = bits(0x00, 29)
    lro_psh_flag = bits(0x00, 28)
    lro_time_stamp = bits(0x00, 27)
    wqe_vlan_insert = bits(0x00, 24)
    self_lb_en_modifiable = bits(0x00, 23)
    max_lso_cap = bits(0x00, 20, 16)
    multi_pkt_send_wqe = bits(0x00, 15, 14)
    wqe_inline_mode = bits(0x00, 13, 12)
    rss_ind_tbl_cap = bits(0x00, 11, 8)
    reg_umr_sq = bits(0x00, 7)
    scatter_fcs = bits(0x00, 6)
    enhanced_multi_pkt_send_wqe = bits(0x00, 5)
    tunnel_lso_const_out_ip_id = bits(0x00, 4)
    tunnel_lro_gre = bits(0x00, 3)
    tunnel_lro_vxlan = bits(0x00, 2)
    tunnel_stateless_gre = bits(0x00, 1)
    tunnel_stateless_vxlan = bits(0x00, 0)
    swp = bits(0x04, 31)
    swp_csum = bits(0x04, 30)
    swp_lso = bits(0x04, 29)
    cqe_checksum_full = bits(0x04, 28)
    tunnel_stateless_geneve_tx = bits(0x04, 27)
    tunnel_stateless_mpls_over_udp = bits(0x04, 26)
    tunnel_stateless_mpls_over_gre = bits(0x04, 25)
    tunnel_stateless_vxlan_gpe = bits(0x04, 24)
    tunnel_stateless_ipv4_over_vxlan = bits(0x04, 23)
    tunnel_stateless_ip_over_ip = bits(0x04, 22)
    insert_trailer = bits(0x04, 21)
    tunnel_stateless_ip_over_ip_rx = bits(0x04, 19)
    tunnel_stateless_ip_over_ip_tx = bits(0x04, 18)
    max_vxlan_udp_ports = bits(0x04, 15, 8)
    swp_csum_l4_partial = bits(0x04, 7)
    max_geneve_opt_len = bits(0x04, 1)
    tunnel_stateless_geneve_rx = bits(0x04, 0)
    lro_min_mss_size = bits(0x08, 15, 0)
    lro_timer_supported_periods = array(0x30, 4, 32)


class RoceCap(Layout, size=0x100):
    """Capabilities, RoCE page."""

    roce_apm = bits(0x00, 31)
    sw_r_roce_src_udp_port = bits(0x00, 27)
    fl_rc_qp_when_roce_disabled = bits(0x00, 26)
    fl_rc_qp_when_roce_enabled = bits(0x00, 25)
    roce_cc_general = bits(0x00, 24)
    qp_ooo_transmit_default = bits(0x00, 23)
    qp_ts_format = bits(0x00, 1, 0)
    l3_type = bits(0x10, 19, 16)
    roce_version = bits(0x10, 7, 0)
    r_roce_dest_udp_port = bits(0x14, 15, 0)
    r_roce_max_src_udp_port = bits(0x18, 31, 16)
    r_roce_min_src_udp_port = bits(0x18, 15, 0)
    roce_address_table_size = bits(0x1C, 15, 0)


class FlowTableFieldsSupported(Layout, size=0x10):
    """Packet fields that a flow table can match, a bit each."""

    outer_dmac = bits(0x00, 31)
    outer_smac = bits(0x00, 30)
    outer_ether_type = bits(0x00, 29)
    outer_ip_version = bits(0x00, 28)
    outer_first_prio = bits(0x00, 27)
    outer_first_cfi = bits(0x00, 26)
    outer_first_vid = bits(0x00, 25)
    outer_ipv4_ttl = bits(0x00, 24)
    outer_second_prio = bits(0x00, 23)
    outer_second_cfi = bits(0x00, 22)
    outer_second_vid = bits(0x00, 21)
    outer_sip = bits(0x00, 19)
    outer_dip = bits(0x00, 18)
    outer_frag = bits(0x00, 17)
    outer_ip_protocol = bits(0x00, 16)
    outer_ip_ecn = bits(0x00, 15)
    outer_ip_dscp = bits(0x00, 14)
    outer_udp_sport = bits(0x00, 13)
    outer_udp_dport = bits(0x00, 12)
    outer_tcp_sport = bits(0x00, 11)
    outer_tcp_dport = bits(0x00, 10)
    outer_tcp_flags = bits(0x00, 9)
    outer_gre_protocol = bits(0x00, 8)
    outer_gre_key = bits(0x00, 7)
    outer_vxlan_vni = bits(0x00, 6)
    outer_geneve_vni = bits(0x00, 5)
    outer_geneve_oam = bits(0x00, 4)
    outer_geneve_protocol_type = bits(0x00, 3)
    outer_geneve_opt_len = bits(0x00, 2)
    source_vhca_port = bits(0x00, 1)
    source_eswitch_port = bits(0x00, 0)
    inner_dmac = bits(0x04, 31)
    inner_smac = bits(0x04, 30)
    inner_ether_type = bits(0x04, 29)
    inner_ip_version = bits(0x04, 28)
    inner_first_prio = bits(0x04, 27)
    inner_first_cfi = bits(0x04, 26)
    inner_first_vid = bits(0x04, 25)
    inner_second_prio = bits(0x04, 23)
    inner_second_cfi = bits(0x04, 22)
    inner_second_vid = bits(0x04, 21)
    inner_sip = bits(0x04, 19)
    inner_dip = bits(0x04, 18)
    inner_frag = bits(0x04, 17)
    inner_ip_protocol = bits(0x04, 16)
    inner_ip_ecn = bits(0x04, 15)
    inner_ip_dscp = bits(0x04, 14)
    inner_udp_sport = bits(0x04, 13)
    inner_udp_dport = bits(0x04, 12)
    inner_tcp_sport = bits(0x04, 11)
    inner_tcp_dport = bits(0x04, 10)
    inner_tcp_flags = bits(0x04, 9)
    geneve_tlv_option_0_data = bits(0x08, 31)
    geneve_tlv_option_0_exist = bits(0x08, 30)
    outer_first_mpls_over_udp = bits(0x08, 26, 23)
    outer_first_mpls_over_gre = bits(0x08, 22, 19)
    inner_first_mpls = bits(0x08, 18, 15)
    outer_first_mpls = bits(0x08, 14, 11)
    outer_esp_spi = bits(0x08, 8)
    bth_dst_qp = bits(0x08, 5)
    metadata_reg_c_7 = bits(0x0C, 7)
    metadata_reg_c_6 = bits(0x0C, 6)
    metadata_reg_c_5 = bits(0x0C, 5)
    metadata_reg_c_4 = bits(0x0C, 4)
    metadata_reg_c_3 = bits(0x0C, 3)
    metadata_reg_c_2 = bits(0x0C, 2)
    metadata_reg_c_1 = bits(0x0C, 1)
    metadata_reg_c_0 = bits(0x0C, 0)


class FlowTablePropLayout(Layout, size=0x40):
    """What one kind of flow table can do."""

    ft_support = bits(0x00, 31)
    flow_counter = bits(0x00, 29)
    flow_modify_en = bits(0x00, 28)
    modify_root = bits(0x00, 27)
    identified_miss_table_mode = bits(0x00, 26)
    flow_table_modify = bits(0x00, 25)
    reformat = bits(0x00, 24)
    decap = bits(0x00, 23)
    reset_root_to_default = bits(0x00, 22)
    pop_vlan = bits(0x00, 21)
    push_vlan = bits(0x00, 20)
    pop_vlan_2 = bits(0x00, 18)
    push_vlan_2 = bits(0x00, 17)
    reformat_and_vlan_action = bits(0x00, 16)
    sw_owner = bits(0x00, 14)
    reformat_l3_tunnel_to_l2 = bits(0x00, 13)
    reformat_l2_to_l3_tunnel = bits(0x00, 12)
    reformat_and_modify_action = bits(0x00, 11)
    ignore_flow_level = bits(0x00, 10)
    table_miss_action_domain = bits(0x00, 8)
    termination_table = bits(0x00, 7)
    reformat_and_fwd_to_table = bits(0x00, 6)
    ipsec_encrypt = bits(0x00, 3)
    ipsec_decrypt = bits(0x00, 2)
    sw_owner_v2 = bits(0x00, 1)
    termination_table_raw_traffic = bits(0x04, 31)
    log_max_ft_size = bits(0x04, 29, 24)
    log_max_modify_header_context = bits(0x04, 23, 16)
    max_modify_header_actions = bits(0x04, 15, 8)
    max_ft_level = bits(0x04, 7, 0)
    reformat_add_esp_trasport = bits(0x08, 31)
    reformat_l2_to_l3_esp_tunnel = bits(0x08, 30)
    reformat_add_esp_transport_over_udp = bits(0x08, 29)
    reformat_del_esp_trasport = bits(0x08, 28)
    reformat_l3_esp_tunnel_to_l2 = bits(0x08, 27)
    reformat_del_esp_transport_over_udp = bits(0x08, 26)
    execute_aso = bits(0x08, 25)
    reformat_insert = bits(0x0C, 29)
    reformat_remove = bits(0x0C, 28)
    macsec_encrypt = bits(0x0C, 27)
    macsec_decrypt = bits(0x0C, 26)
    reformat_add_macsec = bits(0x0C, 23)
    reformat_remove_macsec = bits(0x0C, 22)
    reparse = bits(0x0C, 21)
    cross_vhca_object = bits(0x0C, 19)
    reformat_l2_to_l3_audp_tunnel = bits(0x0C, 18)
    reformat_l3_audp_tunnel_to_l2 = bits(0x0C, 17)
    ignore_flow_level_rtc_valid = bits(0x0C, 16)
    log_max_ft_num = bits(0x0C, 7, 0)
    log_max_flow_counter = bits(0x10, 15, 8)
    log_max_destination = bits(0x10, 7, 0)
    log_max_flow = bits(0x14, 7, 0)
    ft_field_support = nested(0x20, FlowTableFieldsSupported)
    ft_field_bitmask_support = nested(0x30, FlowTableFieldsSupported)


class FlowTableFieldsSupported2(Layout, size=0x10, name="flow_table_fields_supported_2"):
    """More packet fields that a flow table can match."""

    inner_l4_type = bits(0x00, 29)
    outer_l4_type = bits(0x00, 28)
    bth_opcode = bits(0x00, 17)
    tunnel_header_0_1 = bits(0x00, 15)


class FlowTableNicCap(Layout, size=0x1000):
    """Capabilities, NIC flow table page."""

    nic_rx_multi_path_tirs = bits(0x00, 31)
    nic_rx_multi_path_tirs_fts = bits(0x00, 30)
    allow_sniffer_and_nic_rx_shared_tir = bits(0x00, 29)
    sw_owner_reformat_supported = bits(0x00, 24)
    encap_general_header = bits(0x04, 31)
    log_max_packet_reformat_context = bits(0x04, 20, 16)
    max_encap_header_size = bits(0x04, 9, 0)
    flow_table_properties_nic_receive = nested(0x40, FlowTablePropLayout)
    flow_table_properties_nic_receive_rdma = nested(0x80, FlowTablePropLayout)
    flow_table_properties_nic_receive_sniffer = nested(0xC0, FlowTablePropLayout)
    flow_table_properties_nic_transmit = nested(0x100, FlowTablePropLayout)
    flow_table_properties_nic_transmit_rdma = nested(0x140, FlowTablePropLayout)
    flow_table_properties_nic_transmit_sniffer = nested(0x180, FlowTablePropLayout)
    ft_field_support_2_nic_receive = nested(0x280, FlowTableFieldsSupported2)
    ft_field_support_2_nic_receive_rdma = nested(0x2A0, FlowTableFieldsSupported2)
    ft_field_support_2_nic_transmit_rdma = nested(0x300, FlowTableFieldsSupported2)
    sw_steering_nic_rx_action_drop_icm_address = u64(0x400)
    sw_steering_nic_tx_action_drop_icm_address = u64(0x408)
    sw_steering_nic_tx_action_allow_icm_address = u64(0x410)


class AtomicCaps(Layout, size=0x100):
    """Capabilities, atomic page."""

    atomic_req_8B_endianness_mode = bits(0x08, 31, 30)
    supported_atomic_req_8B_endianness_mode_1 = bits(0x08, 25)
    atomic_operations = bits(0x10, 15, 0)
    atomic_size_qp = bits(0x14, 15, 0)
    atomic_size_dc = bits(0x18, 15, 0)


class OdpPerTransportServiceCap(Layout, size=0x4):
    """Operations that may fault on a page, for one transport."""

    send = bits(0x00, 31)
    receive = bits(0x00, 30)
    write = bits(0x00, 29)
    read = bits(0x00, 28)
    atomic = bits(0x00, 27)
    srq_receive = bits(0x00, 26)


class OdpSchemeCap(Layout, size=0x40):
    """On-demand paging, for one page fault scheme."""

    sig = bits(0x08, 31)
    page_prefetch = bits(0x08, 26)
    rc_odp_caps = nested(0x10, OdpPerTransportServiceCap)
    uc_odp_caps = nested(0x14, OdpPerTransportServiceCap)
    ud_odp_caps = nested(0x18, OdpPerTransportServiceCap)
    xrc_odp_caps = nested(0x1C, OdpPerTransportServiceCap)
    dc_odp_caps = nested(0x20, OdpPerTransportServiceCap)


class OdpCap(Layout, size=0x100):
    """Capabilities, on-demand paging page."""

    transport_page_fault_scheme_cap = nested(0x00, OdpSchemeCap)
    memory_page_fault_scheme_cap = nested(0x40, OdpSchemeCap)
    mem_page_fault = bits(0xC0, 31)


class QueryHcaCapIn(Layout, size=0x10):
    """QUERY_HCA_CAP: input."""

    opcode = bits(0x00, 31, 16)
    op_mod = bits(0x04, 15, 0)
    other_function = bits(0x08, 31)
    ec_vf_function = bits(0x08, 30)
    function_id = bits(0x08, 15, 0)


class FlowTableEswitchCap(Layout, size=0x1000):
    """Capabilities, e-switch flow table page."""

    fdb_to_vport_reg_c_id = bits(0x00, 31, 24)
    fdb_uplink_hairpin = bits(0x00, 18)
    fdb_multi_path_any_table_limit_regc = bits(0x00, 17)
    fdb_dynamic_tunnel = bits(0x00, 15)
    fdb_multi_path_any_table = bits(0x00, 13)
    fdb_modify_header_fwd_to_table = bits(0x00, 10)
    fdb_ipv4_ttl_modify = bits(0x00, 9)
    flow_source = bits(0x00, 8)
    multi_fdb_encap = bits(0x00, 5)
    egress_acl_forward_to_vport = bits(0x00, 4)
    fdb_multi_path_to_table = bits(0x00, 3)
    flow_table_properties_nic_esw_fdb = nested(0x40, FlowTablePropLayout)
    flow_table_properties_esw_acl_ingress = nested(0x80, FlowTablePropLayout)
    flow_table_properties_esw_acl_egress = nested(0xC0, FlowTablePropLayout)
    ft_field_support_2_esw_fdb = nested(0x280, FlowTableFieldsSupported2)
    ft_field_bitmask_support_2_esw_fdb = nested(0x290, FlowTableFieldsSupported2)
    sw_steering_fdb_action_drop_icm_address_rx = u64(0x300)
    sw_steering_fdb_action_drop_icm_address_tx = u64(0x308)
    sw_steering_uplink_icm_address_rx = u64(0x310)
    sw_steering_uplink_icm_address_tx = u64(0x318)


class WqeBasedFlowTableCap(Layout, size=0x3C):
    """Capabilities, flow tables updated by WQE."""

    log_max_num_ste = bits(0x00, 28, 24)
    log_max_num_stc = bits(0x00, 20, 16)
    log_max_num_rtc = bits(0x00, 12, 8)
    log_max_num_header_modify_pattern = bits(0x00, 4, 0)
    rtc_hash_split_table = bits(0x04, 31)
    rtc_linear_lookup_table = bits(0x04, 30)
    stc_alloc_log_granularity = bits(0x04, 28, 24)
    stc_alloc_log_max = bits(0x04, 20, 16)
    ste_alloc_log_granularity = bits(0x04, 12, 8)
    ste_alloc_log_max = bits(0x04, 4, 0)
    rtc_reparse_mode = bits(0x08, 20, 16)
    rtc_index_mode = bits(0x08, 12, 8)
    rtc_log_depth_max = bits(0x08, 4, 0)
    ste_format = bits(0x0C, 15, 0)
    stc_action_type = raw(0x10, 16)
    header_insert_type = bits(0x20, 31, 16)
    header_remove_type = bits(0x20, 15, 0)
    trivial_match_definer = bits(0x24, 31, 0)
    rtc_max_num_hash_definer_gen_wqe = bits(0x28, 4, 0)
    access_index_mode = bits(0x2C, 7, 0)
    ste_format_gen_wqe = bits(0x30, 15, 0)
    linear_match_definer_reg_c3 = bits(0x34, 31, 0)
    fdb_jump_to_tir_stc = bits(0x38, 31)


class EswCap(Layout, size=0x100):
    """Capabilities, e-switch (management)."""

    merged_eswitch = bits(0x00, 2)
    esw_manager_vport_number_valid = bits(0x0C, 31)
    esw_manager_vport_number = bits(0x0C, 15, 0)


class ESwitchCap(Layout, size=0x100, name="e_switch_cap"):
    """Capabilities, e-switch page."""

    vport_svlan_strip = bits(0x00, 31)
    vport_cvlan_strip = bits(0x00, 30)
    vport_svlan_insert = bits(0x00, 29)
    vport_cvlan_insert_if_not_exist = bits(0x00, 28)
    vport_cvlan_insert_overwrite = bits(0x00, 27)
    vport_cvlan_insert_always = bits(0x00, 25)
    esw_shared_ingress_acl = bits(0x00, 24)
    esw_uplink_ingress_acl = bits(0x00, 23)
    root_ft_on_other_esw = bits(0x00, 22)
    esw_functions_changed = bits(0x00, 6)
    ecpf_vport_exists = bits(0x00, 4)
    counter_eswitch_affinity = bits(0x00, 3)
    merged_eswitch = bits(0x00, 2)
    nic_vport_node_guid_modify = bits(0x00, 1)
    nic_vport_port_guid_modify = bits(0x00, 0)
    vxlan_encap_decap = bits(0x04, 31)
    nvgre_encap_decap = bits(0x04, 30)
    log_max_fdb_encap_uplink = bits(0x04, 28, 24)
    log_max_packet_reformat_context = bits(0x04, 20, 16)
    max_encap_header_size = bits(0x04, 9, 0)
    log_max_esw_sf = bits(0x08, 20, 16)
    esw_sf_base_id = bits(0x08, 15, 0)


class PortSelectionCap(Layout, size=0x1000):
    """Capabilities, port selection page."""

    port_select_flow_table = bits(0x00, 15)
    port_select_flow_table_bypass = bits(0x00, 13)
    flow_table_properties_port_selection = nested(0x40, FlowTablePropLayout)
    ft_field_support_2_port_selection = nested(0x80, FlowTableFieldsSupported2)


class QosCap(Layout, size=0x100):
    """Capabilities, quality of service page."""

    packet_pacing = bits(0x00, 31)
    esw_scheduling = bits(0x00, 30)
    esw_bw_share = bits(0x00, 29)
    esw_rate_limit = bits(0x00, 28)
    packet_pacing_burst_bound = bits(0x00, 26)
    packet_pacing_typical_size = bits(0x00, 25)
    nic_sq_scheduling = bits(0x00, 23)
    nic_bw_share = bits(0x00, 22)
    nic_rate_limit = bits(0x00, 21)
    packet_pacing_uid = bits(0x00, 20)
    log_esw_max_sched_depth = bits(0x00, 19, 16)
    log_max_qos_nic_queue_group = bits(0x04, 20, 16)
    packet_pacing_max_rate = bits(0x08, 31, 0)
    packet_pacing_min_rate = bits(0x0C, 31, 0)
    packet_pacing_rate_table_size = bits(0x10, 15, 0)
    esw_element_type = bits(0x14, 31, 16)
    esw_tsar_type = bits(0x14, 15, 0)
    max_qos_para_vport = bits(0x18, 15, 0)
    max_tsar_bw_share = bits(0x1C, 31, 0)
    nic_element_type = bits(0x20, 31, 16)
    nic_tsar_type = bits(0x20, 15, 0)
    log_meter_aso_granularity = bits(0x24, 28, 24)
    log_meter_aso_max_alloc = bits(0x24, 20, 16)
    log_max_num_meter_aso = bits(0x24, 12, 8)


class DebugCap(Layout, size=0x100):
    """Capabilities, debug page."""

    core_dump_general = bits(0x00, 31)
    core_dump_qp = bits(0x00, 30)
    resource_dump = bits(0x00, 22)
    stall_detect = bits(0x04, 29)


class FpgaShellCaps(Layout, size=0x40):
    """What an FPGA shell can do."""

    max_num_qps = bits(0x00, 31, 16)
    total_rcv_credits = bits(0x00, 7, 0)
    qp_type = bits(0x04, 17, 16)
    rae = bits(0x04, 10)
    rwe = bits(0x04, 9)
    rre = bits(0x04, 8)
    dc = bits(0x04, 3)
    ud = bits(0x04, 2)
    uc = bits(0x04, 1)
    rc = bits(0x04, 0)
    log_ddr_size = bits(0x08, 5, 0)
    max_fpga_qp_msg_size = bits(0x0C, 31, 0)


class FpgaCap(Layout, size=0x100):
    """Capabilities of an FPGA on the adapter."""

    fpga_id = bits(0x00, 31, 24)
    fpga_device = bits(0x00, 23, 0)
    register_file_ver = bits(0x04, 31, 0)
    fpga_ctrl_modify = bits(0x08, 31)
    access_reg_query_mode = bits(0x08, 25, 24)
    access_reg_modify_mode = bits(0x08, 17, 16)
    image_version = bits(0x10, 31, 0)
    image_date = bits(0x14, 31, 0)
    image_time = bits(0x18, 31, 0)
    shell_version = bits(0x1C, 31, 0)
    shell_caps = nested(0x30, FpgaShellCaps)
    ieee_vendor_id = bits(0x70, 23, 0)
    sandbox_product_version = bits(0x74, 31, 16)
    sandbox_product_id = bits(0x74, 15, 0)
    sandbox_basic_caps = bits(0x78, 31, 0)
    sandbox_extended_caps_len = bits(0x7C, 15, 0)
    sandbox_extended_caps_addr = u64(0x80)
    fpga_ddr_start_addr = u64(0x88)
    fpga_cr_space_start_addr = u64(0x90)
    fpga_ddr_size = bits(0x98, 31, 0)
    fpga_cr_space_size = bits(0x9C, 31, 0)


class TlsCap(Layout, size=0x100):
    """Capabilities, TLS page."""

    tls_1_2_aes_gcm_128 = bits(0x00, 31)
    tls_1_3_aes_gcm_128 = bits(0x00, 30)
    tls_1_2_aes_gcm_256 = bits(0x00, 29)
    tls_1_3_aes_gcm_256 = bits(0x00, 28)


class DeviceMemCap(Layout, size=0x100):
    """Capabilities, device memory page."""

    memic = bits(0x00, 31)
    log_min_memic_alloc_size = bits(0x04, 20, 16)
    log_max_memic_addr_alignment = bits(0x04, 7, 0)
    memic_bar_start_addr = u64(0x08)
    memic_bar_size = bits(0x10, 31, 0)
    max_memic_size = bits(0x14, 31, 0)
    steering_sw_icm_start_address = u64(0x18)
    log_header_modify_sw_icm_size = bits(0x20, 23, 16)
    log_sw_icm_alloc_granularity = bits(0x20, 13, 8)
    log_steering_sw_icm_size = bits(0x20, 7, 0)
    log_indirect_encap_sw_icm_size = bits(0x24, 31, 24)
    log_header_modify_pattern_sw_icm_size = bits(0x24, 7, 0)
    header_modify_sw_icm_start_address = u64(0x28)
    header_modify_pattern_sw_icm_start_address = u64(0x38)
    memic_operations = bits(0x40, 31, 0)
    indirect_encap_sw_icm_start_address = u64(0x48)


class VirtioEmulationCap(Layout, size=0x100):
    """Capabilities, virtio emulation page."""

    desc_tunnel_offload_type = bits(0x00, 31)
    eth_frame_offload_type = bits(0x00, 30)
    virtio_version_1_0 = bits(0x00, 29)
    device_features_bits_mask = bits(0x00, 28, 16)
    event_mode = bits(0x00, 15, 8)
    virtio_queue_type = bits(0x00, 7, 0)
    max_tunnel_desc = bits(0x04, 31, 16)
    log_doorbell_stride = bits(0x04, 12, 8)
    log_doorbell_bar_size = bits(0x04, 4, 0)
    doorbell_bar_offset = u64(0x08)
    max_emulated_devices = bits(0x10, 31, 24)
    max_num_virtio_queues = bits(0x10, 23, 0)
    desc_group_mkey_supported = bits(0x18, 12)
    freeze_to_rdy_supported = bits(0x18, 11)
    umem_1_buffer_param_a = bits(0x20, 31, 0)
    umem_1_buffer_param_b = bits(0x24, 31, 0)
    umem_2_buffer_param_a = bits(0x28, 31, 0)
    umem_2_buffer_param_b = bits(0x2C, 31, 0)
    umem_3_buffer_param_a = bits(0x30, 31, 0)
    umem_3_buffer_param_b = bits(0x34, 31, 0)


class MacsecCap(Layout, size=0x100):
    """Capabilities, MACsec page."""

    macsec_epn = bits(0x00, 31)
    macsec_crypto_esp_aes_gcm_256_encrypt = bits(0x00, 28)
    macsec_crypto_esp_aes_gcm_128_encrypt = bits(0x00, 27)
    macsec_crypto_esp_aes_gcm_256_decrypt = bits(0x00, 26)
    macsec_crypto_esp_aes_gcm_128_decrypt = bits(0x00, 25)
    log_max_macsec_offload = bits(0x00, 20, 16)
    min_log_macsec_full_replay_window = bits(0x04, 31, 24)
    max_log_macsec_full_replay_window = bits(0x04, 23, 16)


class CryptoCap(Layout, size=0x100):
    """Capabilities, crypto page."""

    synchronize_dek = bits(0x00, 28)
    int_kek_manual = bits(0x00, 27)
    int_kek_auto = bits(0x00, 26)
    log_dek_max_alloc = bits(0x04, 28, 24)
    log_max_num_deks = bits(0x04, 20, 16)
    log_dek_granularity = bits(0x0C, 28, 24)
    log_max_num_int_kek = bits(0x0C, 20, 16)
    sw_wrapped_dek = bits(0x0C, 15, 0)


class IpsecCap(Layout, size=0x100):
    """Capabilities, IPsec page."""

    ipsec_full_offload = bits(0x00, 31)
    ipsec_crypto_offload = bits(0x00, 30)
    ipsec_esn = bits(0x00, 29)
    ipsec_crypto_esp_aes_gcm_256_encrypt = bits(0x00, 28)
    ipsec_crypto_esp_aes_gcm_128_encrypt = bits(0x00, 27)
    ipsec_crypto_esp_aes_gcm_256_decrypt = bits(0x00, 26)
    ipsec_crypto_esp_aes_gcm_128_decrypt = bits(0x00, 25)
    log_max_ipsec_offload = bits(0x00, 20, 16)
    min_log_ipsec_full_replay_window = bits(0x04, 31, 24)
    max_log_ipsec_full_replay_window = bits(0x04, 23, 16)


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

    status = bits(0x00, 31, 24)
    syndrome = bits(0x04, 31, 0)
    capability = nested(0x10, HcaCapUnion)


class SetHcaCapIn(Layout, size=0x1010):
    """SET_HCA_CAP: input."""

    opcode = bits(0x00, 31, 16)
    op_mod = bits(0x04, 15, 0)
    other_function = bits(0x08, 31)
    ec_vf_function = bits(0x08, 30)
    function_id = bits(0x08, 15, 0)
    capability = nested(0x10, HcaCapUnion)


class SetHcaCapOut(Layout, size=0x10):
    """SET_HCA_CAP: output."""

    status = bits(0x00, 31, 24)
    syndrome = bits(0x04, 31, 0)
