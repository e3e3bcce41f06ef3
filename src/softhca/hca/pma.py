"""The performance management agent of a port: it answers for the port's counters, without the host.

It has ClassPortInfo, PortCounters and PortCountersExtended. A Set makes counters zero: with one of those of what was
sent all of them, and so with what was received. The link has no errors, so that all else stays zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from softhca.prm.pma import EXTENDED_WIDTH, PmaAttribute, PmaMad, PortCounters, PortCountersExtended
from softhca.prm.sa import ClassPortInfo
from softhca.prm.smp import MadStatus, Method, MgmtClass

if TYPE_CHECKING:
    from softhca.hca.port import Port

_VERSION = 1
_RESPONSE_TIME = 18
"""4.096 us << 18, a second."""
_ALL_PORTS = 0xFF
_SENT = {PmaAttribute.PORT_COUNTERS: 0x5000, PmaAttribute.PORT_COUNTERS_EXT: 0x55}
"""Bits of CounterSelect that are of what was sent; the received ones are the next higher ones."""
_WORD = 0xFFFF_FFFF


def answer(port: Port, query: bytes) -> bytes | None:
    """The answer to a datagram (both 256 bytes); None when it is no query of this agent's class."""
    mad = PmaMad(bytearray(query))
    if mad.mgmt_class != MgmtClass.PERF or mad.method not in (Method.GET, Method.SET):
        return None
    mad.status = _carry_out(port, mad)
    mad.method = Method.GET_RESP
    return bytes(mad)


def _carry_out(port: Port, mad: PmaMad) -> MadStatus:
    if mad.base_version != _VERSION or mad.class_version != _VERSION:
        return MadStatus.BAD_VERSION
    attribute = mad.attribute_id
    if attribute == PmaAttribute.CLASS_PORT_INFO and mad.method == Method.GET:
        info = ClassPortInfo.pack(
            base_version=_VERSION,
            class_version=_VERSION,
            capability_mask=EXTENDED_WIDTH,
            response_time=_RESPONSE_TIME,
        )
        mad.data = info.ljust(len(mad.data), b"\0")
        return MadStatus.OK
    if attribute not in (PmaAttribute.PORT_COUNTERS, PmaAttribute.PORT_COUNTERS_EXT):
        return MadStatus.ATTRIBUTE_UNSUPPORTED
    asked = PortCounters(mad.data[: PortCounters.SIZE])
    if asked.port_select not in (port.number, _ALL_PORTS):
        return MadStatus.BAD_VALUE
    if mad.method == Method.SET:
        _clear(port, PmaAttribute(attribute), asked.counter_select)
    short = attribute == PmaAttribute.PORT_COUNTERS
    counters = _counters(port, asked.port_select) if short else _extended(port, asked.port_select)
    mad.data = counters.ljust(len(mad.data), b"\0")
    return MadStatus.OK


def _clear(port: Port, attribute: PmaAttribute, select: int) -> None:
    now, base = port.traffic.copy(), port.counted_from.copy()
    if select & _SENT[attribute]:
        base.sent, base.multicast_sent = now.sent, now.multicast_sent
    if select & _SENT[attribute] << 1:
        base.received, base.multicast_received = now.received, now.multicast_received
    port.counted_from = base


def _counters(port: Port, select: int) -> bytes:
    seen = port.traffic.since(port.counted_from)
    return PortCounters.pack(
        port_select=select,
        port_xmit_data=min(_WORD, seen.sent.octets + seen.multicast_sent.octets >> 2),
        port_rcv_data=min(_WORD, seen.received.octets + seen.multicast_received.octets >> 2),
        port_xmit_pkts=min(_WORD, seen.sent.packets + seen.multicast_sent.packets),
        port_rcv_pkts=min(_WORD, seen.received.packets + seen.multicast_received.packets),
    )


def _extended(port: Port, select: int) -> bytes:
    seen = port.traffic.since(port.counted_from)
    return PortCountersExtended.pack(
        port_select=select,
        port_xmit_data=seen.sent.octets + seen.multicast_sent.octets >> 2,
        port_rcv_data=seen.received.octets + seen.multicast_received.octets >> 2,
        port_xmit_pkts=seen.sent.packets + seen.multicast_sent.packets,
        port_rcv_pkts=seen.received.packets + seen.multicast_received.packets,
        port_unicast_xmit_pkts=seen.sent.packets,
        port_unicast_rcv_pkts=seen.received.packets,
        port_multicast_xmit_pkts=seen.multicast_sent.packets,
        port_multicast_rcv_pkts=seen.multicast_received.packets,
    )
