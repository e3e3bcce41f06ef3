"""What passes the ports: each packet that a copy stands for is counted, and recorded where a port has a tap (C11).

The data path calls the functions of this module and nothing else for this, so that what is counted is what a tap
shows. A packet is recorded once: at the tap of the port that sends it, or else at that of a port that receives it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from softhca.bus import DmaFault
from softhca.hca.request import Request
from softhca.hca.traffic import ANSWERED_WITH_DATA, count_answer, count_datagram, count_request
from softhca.points import Fault
from softhca.points import catalogue as points
from softhca.prm.cqe import CqeSyndrome
from softhca.prm.ib_packet import NO_CREDITS, AckKind, Grh, NakCode, Transport, syndrome
from softhca.prm.qp import PathMigration, ServiceType
from softhca.prm.wqe import WqeOpcode
from softhca.wire import segment
from softhca.wire.packet import Packet
from softhca.wire.segment import MTUS, Flow
from softhca.wire.tap import Tap

if TYPE_CHECKING:
    from softhca.hca.datagram import Datagram
    from softhca.hca.function import Function
    from softhca.hca.port import Port
    from softhca.hca.qp_context import Qp

_TRANSPORTS = {ServiceType.RC: Transport.RC, ServiceType.UC: Transport.UC, ServiceType.XRC: Transport.XRC}
_NAKS = {
    CqeSyndrome.REMOTE_INVAL_REQ_ERR: NakCode.INVALID_REQUEST,
    CqeSyndrome.REMOTE_ACCESS_ERR: NakCode.REMOTE_ACCESS_ERROR,
    CqeSyndrome.REMOTE_OP_ERR: NakCode.REMOTE_OPERATIONAL_ERROR,
}
_CREDITS = (
    0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
)  # fmt: skip
"""Receive WQEs that AETH.Syndrome bits 4:0 of an ACK tell of (9.7.7.2.2)."""
_COUNTER = 0xFFFF
LOSSES = (points.DROP, points.CORRUPT)
"""Faults after which a packet has not arrived; what has a wrong CRC is dropped by who receives it."""
_MANAGEMENT_LANE = 15


def pass_request(qp: Qp, peer: Qp | None, request: Request) -> Fault | None:
    """A connected QP sends a request; tell what goes wrong with it on its way, if anything.

    Args:
        qp: the requester.
        peer: the QP that takes it; None when nobody does. While the own link is down, nothing leaves the port.
        request: it is not carried out yet: its payload is still that of the requester.
    """
    port = qp.fn.device.port
    if peer is None and not qp.fn.vport.up(port):
        return None
    fault = _request_fault(qp, request)
    target = None if peer is None or (fault is not None and fault.effect in LOSSES) else peer.fn.device.port
    count_request(qp, target, request.opcode, request.length)
    tap = port.tap if port.tap is not None or target is None else target.tap
    if tap is not None:
        _record(tap, lambda: _REQUESTS[request.opcode](_flow(qp, request), qp.send_psn, request))
    return fault


def _request_fault(qp: Qp, request: Request) -> Fault | None:
    probe = qp.fn.device.probe
    if probe is None:
        return None
    count = _packets(0 if request.opcode in ANSWERED_WITH_DATA else request.length, qp.mtu)
    told = (qp.number, qp.remote_qpn, _name(request.opcode), qp.send_psn, count, request.length, 0)
    return probe.hit(points.PACKET, qp.fn.function_id, *told)


def pass_answer(qp: Qp, peer: Qp, request: Request, refusal: CqeSyndrome | None = None) -> Fault | None:
    """A responder answers a request; an unreliable one does not. Tell what goes wrong with the answer, if anything.

    Args:
        qp: the requester.
        peer: the responder.
        request: it has been carried out, or refused.
        refusal: what the requester learns instead of success; RNR_RETRY_EXC_ERR when it may try again.
    """
    if qp.service is ServiceType.UC:
        return None
    count_answer(qp, peer, request.opcode, request.length if refusal is None else 0)
    source, target = peer.fn.device.port, qp.fn.device.port
    tap = source.tap if source.tap is not None else target.tap
    if tap is not None:
        _record(tap, lambda: _answers(qp, peer, request, refusal))
    probe = peer.fn.device.probe
    if probe is None:
        return None
    length = request.length if refusal is None and request.opcode in ANSWERED_WITH_DATA else 0
    name = "acknowledge" if refusal is None else refusal.name
    told = (peer.number, qp.number, name, qp.send_psn, _packets(length, qp.mtu), length, 1)
    return probe.hit(points.PACKET, peer.fn.function_id, *told)


def _packets(length: int, mtu: int) -> int:
    return -(-length // mtu) or 1


def _name(opcode: int) -> str:
    return WqeOpcode(opcode).name


def datagram_fault(sender: Function, datagram: Datagram) -> Fault | None:
    """What goes wrong with a datagram on its way to one port, if anything."""
    probe = sender.device.probe
    if probe is None:
        return None
    told = (datagram.source_qpn, datagram.qpn, "datagram", datagram.psn, 1, datagram.length, 0)
    return probe.hit(points.PACKET, sender.function_id, *told)


def pass_datagram(source: Port | None, targets: list[Port], datagram: Datagram, *, multicast: bool = False) -> None:
    """A datagram is sent.

    Args:
        source: the port that sends it; None when that is the subnet manager's.
        targets: where it arrives.
        datagram: it has not been received yet.
        multicast: it goes to a group, and each of `targets` gets a copy.
    """
    count_datagram(
        source,
        targets,
        datagram.length,
        grh=datagram.grh is not None,
        immediate=datagram.immediate is not None,
        multicast=multicast,
    )
    ports = targets if source is None else [source, *targets]
    for port in ports:
        if port.tap is not None:
            _record(port.tap, lambda: _datagram(ports[0], datagram))
            return


def _record(tap: Tap, packets: Callable[[], Iterable[Packet]]) -> None:
    if tap.open:
        tap.record(packets())


def _lane(port: Port, service_level: int) -> int:
    """The virtual lane of a service level, as the port's SLtoVLMappingTable has it (mad.py)."""
    return service_level % port.figures.vl_hw_cap


def _flow(qp: Qp, request: Request | None = None) -> Flow:
    """What the packets that a connected QP sends have in common."""
    context, port = qp.context, qp.fn.device.port
    path = context.primary_address_path
    return Flow(
        _TRANSPORTS[qp.service],
        destination_qpn=qp.remote_qpn,
        mtu=qp.mtu,
        source_lid=port.lid,
        destination_lid=qp.path.lid,
        service_level=path.sl,
        virtual_lane=_lane(port, path.sl),
        grh=Grh.new(
            traffic_class=path.tclass,
            flow_label=path.flow_label,
            hop_limit=path.hop_limit,
            source_gid=port.gid(path.src_addr_index),
            destination_gid=qp.path.gid,
        )
        if qp.path.has_gid
        else None,
        pkey=port.pkey(path.pkey_index),
        migrated=context.pm_state == PathMigration.MIGRATED,
        xrc_srqn=0 if request is None else request.srqn,
    )


def _send(flow: Flow, psn: int, request: Request) -> Iterable[Packet]:
    """A SEND of any kind."""
    invalidates = request.opcode == WqeOpcode.SEND_INVAL
    return segment.send(
        flow,
        psn,
        request.pieces,
        immediate=None if invalidates else request.immediate,
        invalidate_rkey=request.immediate if invalidates else None,
        solicited=request.solicited,
    )


def _write(flow: Flow, psn: int, request: Request) -> Iterable[Packet]:
    """An RDMA WRITE; without immediate data there is nobody to be told."""
    solicited = request.solicited and request.immediate is not None
    remote = request.remote
    return segment.write(
        flow, psn, request.pieces, remote.address, remote.key, immediate=request.immediate, solicited=solicited
    )


def _read(flow: Flow, psn: int, request: Request) -> Iterable[Packet]:
    remote = request.remote
    return (segment.read_request(flow, psn, remote.address, remote.key, request.length),)


def _compare_swap(flow: Flow, psn: int, request: Request) -> Iterable[Packet]:
    swap, compare = request.operands
    return (segment.compare_swap(flow, psn, request.remote.address, request.remote.key, compare, swap),)


def _fetch_add(flow: Flow, psn: int, request: Request) -> Iterable[Packet]:
    return (segment.fetch_add(flow, psn, request.remote.address, request.remote.key, request.operands[0]),)


def _masked_compare_swap(flow: Flow, psn: int, request: Request) -> Iterable[Packet]:
    swap, compare, swap_mask, compare_mask = request.operands
    remote = request.remote
    return (segment.masked_compare_swap(flow, psn, remote.address, remote.key, compare, swap, compare_mask, swap_mask),)


def _masked_fetch_add(flow: Flow, psn: int, request: Request) -> Iterable[Packet]:
    add, boundary = request.operands
    return (segment.masked_fetch_add(flow, psn, request.remote.address, request.remote.key, add, boundary),)


_REQUESTS: Mapping[int, Callable[[Flow, int, Request], Iterable[Packet]]] = {
    WqeOpcode.SEND: _send,
    WqeOpcode.SEND_IMM: _send,
    WqeOpcode.SEND_INVAL: _send,
    WqeOpcode.RDMA_WRITE: _write,
    WqeOpcode.RDMA_WRITE_IMM: _write,
    WqeOpcode.RDMA_READ: _read,
    WqeOpcode.ATOMIC_CS: _compare_swap,
    WqeOpcode.ATOMIC_FA: _fetch_add,
    WqeOpcode.ATOMIC_MASKED_CS: _masked_compare_swap,
    WqeOpcode.ATOMIC_MASKED_FA: _masked_fetch_add,
}
_ATOMICS = (WqeOpcode.ATOMIC_CS, WqeOpcode.ATOMIC_FA, WqeOpcode.ATOMIC_MASKED_CS, WqeOpcode.ATOMIC_MASKED_FA)


def _answers(qp: Qp, peer: Qp, request: Request, refusal: CqeSyndrome | None) -> Iterable[Packet]:
    """Data, or an acknowledge of the whole message; a refused one is refused with its first packet."""
    flow, psn, msn = _flow(peer), qp.send_psn, peer.receive_msn
    if refusal is CqeSyndrome.RNR_RETRY_EXC_ERR:
        return (segment.acknowledge(flow, psn, msn, syndrome(AckKind.RNR_NAK, peer.context.min_rnr_nak)),)
    if refusal is not None:
        return (segment.acknowledge(flow, psn, msn, syndrome(AckKind.NAK, _NAKS[refusal])),)
    good = syndrome(AckKind.ACK, _credits(peer))
    if request.opcode == WqeOpcode.RDMA_READ:
        return segment.read_response(flow, psn, request.targets, msn, good)
    if request.opcode in _ATOMICS:
        return (segment.atomic_acknowledge(flow, psn, request.original, msn, good),)
    return (segment.acknowledge(flow, psn + segment.packet_count(request.length, flow.mtu) - 1, msn, good),)


def _credits(peer: Qp) -> int:
    """What an ACK tells of the receive WQEs that are posted: the most that its code can say; of a pool nothing."""
    if peer.pool is not None or peer.service is not ServiceType.RC or not peer.rq_size:
        return NO_CREDITS
    try:
        posted = (peer.posted_receives() - peer.rq_head) & _COUNTER
    except DmaFault:
        return NO_CREDITS
    return max(code for code, count in enumerate(_CREDITS) if count <= posted)


def _datagram(port: Port, datagram: Datagram) -> Iterable[Packet]:
    management = datagram.source_qpn == 0
    flow = Flow(
        Transport.UD,
        destination_qpn=datagram.qpn,
        mtu=MTUS[-1],
        source_lid=datagram.slid,
        destination_lid=datagram.dlid,
        service_level=datagram.service_level,
        virtual_lane=_MANAGEMENT_LANE if management else _lane(port, datagram.service_level),
        grh=None if datagram.grh is None else Grh(datagram.grh),
        pkey=datagram.pkey,
        qkey=datagram.qkey,
        source_qpn=datagram.source_qpn,
    )
    return segment.send(flow, datagram.psn, datagram.pieces, immediate=datagram.immediate, solicited=datagram.solicited)
