"""One message of every kind, as packets."""

from __future__ import annotations

from collections.abc import Iterator

from softhca.prm.ib_packet import ACK, AckKind, Grh, NakCode, Transport, syndrome
from softhca.wire import segment
from softhca.wire.packet import Packet
from softhca.wire.segment import Flow

GRH = Grh.new(
    traffic_class=3,
    flow_label=0x12345,
    hop_limit=64,
    source_gid=bytes.fromhex("fe80000000000000" "0000000000000001"),
    destination_gid=bytes.fromhex("fe80000000000000" "0000000000000002"),
)  # fmt: skip


def flows(mtu: int) -> Iterator[Flow]:
    """One flow of each transport, without and with GRH."""
    for transport in (Transport.RC, Transport.UC, Transport.UD, Transport.XRC):
        for grh in (None, GRH):
            yield Flow(
                transport,
                destination_qpn=0x48,
                mtu=mtu,
                source_lid=3,
                destination_lid=4,
                service_level=2,
                virtual_lane=1,
                grh=grh,
                qkey=0x11111111,
                source_qpn=0x52,
                xrc_srqn=0x61,
            )


def messages(flow: Flow, data: bytes, psn: int = 0xFFFFFE) -> Iterator[Packet]:
    """Every operation of the flow's transport with this data."""
    if flow.transport is Transport.UD and len(data) > flow.mtu:
        return
    yield from segment.send(flow, psn, data)
    yield from segment.send(flow, psn, data, immediate=0xDEADBEEF, solicited=True)
    if flow.transport is Transport.UD:
        return
    yield from segment.write(flow, psn, data, 0x7F0012345678, 0x1234)
    yield from segment.write(flow, psn, data, 0x7F0012345678, 0x1234, immediate=7)
    if flow.transport is Transport.UC:
        return
    yield from segment.send(flow, psn, data, invalidate_rkey=0x4321)
    yield segment.read_request(flow, psn, 0x7F0012345678, 0x1234, len(data))
    yield from segment.read_response(flow, psn, data, msn=9)
    yield segment.compare_swap(flow, psn, 0x1000, 0x1234, 1, 2)
    yield segment.fetch_add(flow, psn, 0x1000, 0x1234, 3)
    yield segment.masked_compare_swap(flow, psn, 0x1000, 0x1234, 1, 2, 0xFF, 0xFF00)
    yield segment.masked_fetch_add(flow, psn, 0x1000, 0x1234, 3, 1 << 63)
    yield segment.atomic_acknowledge(flow, psn, 1 << 63, msn=10)
    yield segment.acknowledge(flow, psn, 11, ACK)
    yield segment.acknowledge(flow, psn, 11, syndrome(AckKind.RNR_NAK, 12))
    for code in NakCode:
        yield segment.acknowledge(flow, psn, 11, syndrome(AckKind.NAK, code))
