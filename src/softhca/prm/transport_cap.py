"""Capability pages of transports and their operations: Ethernet offloads, RoCE, atomics, on-demand paging."""

from enum import IntFlag

from softhca.prm.layout import Layout, array, bits, nested


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


class AtomicOperation(IntFlag):
    """`atomic_operations` of the atomic capabilities."""

    CMP_SWAP = 1 << 0
    FETCH_ADD = 1 << 1
    EXTENDED_CMP_SWAP = 1 << 2
    EXTENDED_FETCH_ADD = 1 << 3


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
