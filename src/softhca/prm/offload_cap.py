"""Capability pages of units beside the transports: e-switch, port selection, QoS, TLS, IPsec and others."""

from softhca.prm.flow_table_cap import FlowTableFieldsSupported2, FlowTablePropLayout
from softhca.prm.layout import Layout, bits, nested, raw, u64


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
