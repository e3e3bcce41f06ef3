"""Performance management datagrams (InfiniBand Architecture Specification, volume 1, chapter 16)."""

from enum import IntEnum

from softhca.prm.layout import Layout, bits, raw, u64


class PmaAttribute(IntEnum):
    """Attributes (16.1.3)."""

    CLASS_PORT_INFO = 0x0001
    PORT_COUNTERS = 0x0012
    PORT_COUNTERS_EXT = 0x001D


EXTENDED_WIDTH = 1 << 9
"""ClassPortInfo.CapabilityMask: counters of 64 bits are there (16.1.3.1)."""


class PmaMad(Layout, size=0x100, manual="IBTA volume 1, 16.1.1"):
    """A performance management datagram."""

    base_version = bits(0x00, 31, 24)
    mgmt_class = bits(0x00, 23, 16)
    class_version = bits(0x00, 15, 8)
    method = bits(0x00, 7, 0)
    status = bits(0x04, 31, 16)
    transaction_id = u64(0x08)
    attribute_id = bits(0x10, 31, 16)
    attribute_modifier = bits(0x14, 31, 0)
    data = raw(0x40, 192)


class PortCounters(Layout, size=0x2C, manual="IBTA volume 1, 16.1.3.5"):
    """Attribute PortCounters: each counter stays at its largest value once it is there; data count in 4 octets."""

    port_select = bits(0x00, 23, 16)
    counter_select = bits(0x00, 15, 0)
    symbol_error_counter = bits(0x04, 31, 16)
    link_error_recovery_counter = bits(0x04, 15, 8)
    link_downed_counter = bits(0x04, 7, 0)
    port_rcv_errors = bits(0x08, 31, 16)
    port_rcv_remote_physical_errors = bits(0x08, 15, 0)
    port_rcv_switch_relay_errors = bits(0x0C, 31, 16)
    port_xmit_discards = bits(0x0C, 15, 0)
    port_xmit_constraint_errors = bits(0x10, 31, 24)
    port_rcv_constraint_errors = bits(0x10, 23, 16)
    local_link_integrity_errors = bits(0x10, 7, 4)
    excessive_buffer_overrun_errors = bits(0x10, 3, 0)
    vl15_dropped = bits(0x14, 15, 0)
    port_xmit_data = bits(0x18, 31, 0)
    port_rcv_data = bits(0x1C, 31, 0)
    port_xmit_pkts = bits(0x20, 31, 0)
    port_rcv_pkts = bits(0x24, 31, 0)
    port_xmit_wait = bits(0x28, 31, 0)


class PortCountersExtended(Layout, size=0x48, manual="IBTA volume 1, 16.1.4.11"):
    """Attribute PortCountersExtended; data count in 4 octets."""

    port_select = bits(0x00, 23, 16)
    counter_select = bits(0x00, 15, 0)
    port_xmit_data = u64(0x08)
    port_rcv_data = u64(0x10)
    port_xmit_pkts = u64(0x18)
    port_rcv_pkts = u64(0x20)
    port_unicast_xmit_pkts = u64(0x28)
    port_unicast_rcv_pkts = u64(0x30)
    port_multicast_xmit_pkts = u64(0x38)
    port_multicast_rcv_pkts = u64(0x40)
