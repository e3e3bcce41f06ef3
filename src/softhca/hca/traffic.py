"""What a port sends and receives, and the counters that show it: QUERY_VPORT_COUNTER and PPCNT (C11, E5).

A message between two QPs is a copy, but the counters show the packets that it would be on the wire: as many as the
path MTU makes of it, with their headers, and the packets that answer it. Octets are those that the InfiniBand
specification counts: from the local route header to the invariant CRC.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from softhca.hca.command import command
from softhca.hca.errors import CommandError
from softhca.hca.sriov import named_vport
from softhca.prm.opcodes import Opcode
from softhca.prm.ppcnt import PpcntGroup, PpcntReg
from softhca.prm.qp import ServiceType
from softhca.prm.syndromes import ports as syndromes
from softhca.prm.syndromes import queues
from softhca.prm.vport import QueryVportCounterIn, QueryVportCounterOut, TrafficCounter
from softhca.prm.wqe import WqeOpcode

if TYPE_CHECKING:
    from softhca.hca.function import Function
    from softhca.hca.port import Port
    from softhca.hca.qp_context import Qp

BASE = 8 + 12 + 4
"""Local route header, base transport header, invariant CRC (bytes)."""
GRH = 40
"""Global route header (bytes)."""
ACK = BASE + 4
"""An acknowledge packet (bytes)."""
_XRC = 4
_DATAGRAM = 8
_REQUEST_HEADERS: dict[int, int] = {
    WqeOpcode.RDMA_WRITE: 16,
    WqeOpcode.RDMA_WRITE_IMM: 20,
    WqeOpcode.RDMA_READ: 16,
    WqeOpcode.SEND: 0,
    WqeOpcode.SEND_IMM: 4,
    WqeOpcode.SEND_INVAL: 4,
    WqeOpcode.ATOMIC_CS: 28,
    WqeOpcode.ATOMIC_FA: 28,
    WqeOpcode.ATOMIC_MASKED_CS: 44,
    WqeOpcode.ATOMIC_MASKED_FA: 28,
}
"""Bytes of headers that one packet of a request has beyond the others."""
ANSWERED_WITH_DATA = frozenset(
    (
        WqeOpcode.RDMA_READ,
        WqeOpcode.ATOMIC_CS,
        WqeOpcode.ATOMIC_FA,
        WqeOpcode.ATOMIC_MASKED_CS,
        WqeOpcode.ATOMIC_MASKED_FA,
    )
)
_ATOMIC_ANSWER = ACK + 8
_READ = int(WqeOpcode.RDMA_READ)


@dataclass(slots=True)
class Flow:
    """Packets and octets in one direction."""

    packets: int = 0
    octets: int = 0


@dataclass(slots=True)
class Traffic:
    """What has passed a port since the card started."""

    sent: Flow = field(default_factory=Flow)
    received: Flow = field(default_factory=Flow)
    multicast_sent: Flow = field(default_factory=Flow)
    multicast_received: Flow = field(default_factory=Flow)

    def copy(self) -> Traffic:
        """A snapshot."""
        return Traffic(
            replace(self.sent), replace(self.received), replace(self.multicast_sent), replace(self.multicast_received)
        )

    def since(self, base: Traffic) -> Traffic:
        """What has passed since a snapshot."""
        return Traffic(
            _difference(self.sent, base.sent),
            _difference(self.received, base.received),
            _difference(self.multicast_sent, base.multicast_sent),
            _difference(self.multicast_received, base.multicast_received),
        )


def _difference(now: Flow, base: Flow) -> Flow:
    return Flow(now.packets - base.packets, now.octets - base.octets)


def _pass(source: Port, target: Port | None, packets: int, octets: int) -> None:
    flow = source.traffic.sent
    flow.packets += packets
    flow.octets += octets
    if target is not None:
        flow = target.traffic.received
        flow.packets += packets
        flow.octets += octets


def count_request(qp: Qp, target: Port | None, opcode: int, length: int) -> None:
    """Count the packets of a connected QP's request.

    Args:
        qp: the requester.
        target: the port that they arrive at; None when they are lost.
        opcode: of the WQE.
        length: bytes that the message moves.
    """
    per_packet = BASE + (GRH if qp.path.has_gid else 0) + (_XRC if qp.service is ServiceType.XRC else 0)
    payload = 0 if opcode in ANSWERED_WITH_DATA else length
    packets = -(-payload // qp.mtu) or 1
    octets = packets * per_packet + (payload + 3 & ~3) + _REQUEST_HEADERS.get(opcode, 0)
    _pass(qp.fn.device.port, target, packets, octets)


def count_answer(qp: Qp, peer: Qp, opcode: int, length: int) -> None:
    """Count the packets that answer a request of a reliable QP: data, or one acknowledge packet.

    Args:
        qp: the requester.
        peer: the responder.
        opcode: of the WQE.
        length: bytes that the message moved; 0 for an answer without data.
    """
    responder = peer.fn.device.port
    grh = GRH if peer.path.has_gid else 0
    if opcode not in ANSWERED_WITH_DATA or not length:
        _pass(responder, qp.fn.device.port, 1, ACK + grh)
    elif opcode == WqeOpcode.RDMA_READ:
        packets = -(-length // qp.mtu)
        octets = packets * (BASE + grh) + (length + 3 & ~3) + (4 if packets == 1 else 8)
        _pass(responder, qp.fn.device.port, packets, octets)
    else:
        _pass(responder, qp.fn.device.port, 1, _ATOMIC_ANSWER + grh)


def count_exchanges(qp: Qp, peer: Qp, opcode: int, messages: int, packets: int, payload: int, longer: int) -> None:
    """Count requests of an RC QP that went well, and their answers, all at once.

    Args:
        qp: the requester.
        peer: the responder.
        opcode: of all the WQEs.
        messages: how many they are.
        packets: packets that carry their payload.
        payload: bytes of it, those of each message rounded up to 4.
        longer: messages of more than one packet.
    """
    port, far = qp.fn.device.port.traffic, peer.fn.device.port.traffic
    request = BASE + GRH if qp.path.has_gid else BASE
    answer = BASE + GRH if peer.path.has_gid else BASE
    if opcode == _READ:
        sent, octets = messages, messages * (request + _REQUEST_HEADERS[opcode])
        answers, answer_octets = packets, packets * answer + payload + 4 * (messages + longer)
    else:
        sent, octets = packets, packets * request + payload + messages * _REQUEST_HEADERS[opcode]
        answers, answer_octets = messages, messages * (answer + ACK - BASE)
    for flow in (port.sent, far.received):
        flow.packets += sent
        flow.octets += octets
    for flow in (far.sent, port.received):
        flow.packets += answers
        flow.octets += answer_octets


def count_datagram(
    source: Port | None,
    targets: list[Port],
    length: int,
    *,
    grh: bool,
    immediate: bool = False,
    multicast: bool = False,
) -> None:
    """Count a datagram of `length` bytes; with multicast, the copy that each of `targets` receives too.

    Args:
        source: the port that sends it; None when that is the subnet manager's.
        targets: where it arrives.
        length: bytes of its payload.
        grh: whether it has a global route header.
        immediate: whether it has immediate data.
        multicast: whether it goes to a group.
    """
    octets = BASE + _DATAGRAM + (GRH if grh else 0) + (_REQUEST_HEADERS[WqeOpcode.SEND_IMM] if immediate else 0)
    octets += length + 3 & ~3
    flows = []
    if source is not None:
        flows.append(source.traffic.multicast_sent if multicast else source.traffic.sent)
    flows += [port.traffic.multicast_received if multicast else port.traffic.received for port in targets]
    for flow in flows:
        flow.packets += 1
        flow.octets += octets


def _fill(counter: TrafficCounter, flow: Flow) -> None:
    counter.packets = flow.packets
    counter.octets = flow.octets


@command(Opcode.QUERY_VPORT_COUNTER, QueryVportCounterIn, QueryVportCounterOut, partial="RDMA traffic only")
def query_vport_counter(fn: Function, request: QueryVportCounterIn, reply: QueryVportCounterOut) -> None:
    """Packets and octets that the vport sent and received; the port has no errors to count."""
    target = named_vport(fn, request.other_vport, request.vport_number)
    port = target.device.port
    if request.port_num not in (0, port.number):
        raise CommandError(queues.VPORT_COUNTER_PORT, f"port_num {request.port_num}, allowed are 0 and {port.number}")
    seen = port.traffic.since(target.vport.counted_from)
    _fill(reply.transmitted_ib_unicast, seen.sent)
    _fill(reply.received_ib_unicast, seen.received)
    _fill(reply.transmitted_ib_multicast, seen.multicast_sent)
    _fill(reply.received_ib_multicast, seen.multicast_received)
    if request.clear:
        target.vport.counted_from = port.traffic.copy()


def read_ppcnt(port: Port, register: PpcntReg) -> None:
    """Fill a group of PPCNT: the InfiniBand ones. The link of a port in software has no errors.

    Raises:
        CommandError: another group, or a port or plane that is not there.
    """
    if register.local_port != port.number:
        raise CommandError(syndromes.BAD_LOCAL_PORT, f"local_port {register.local_port}, allowed is {port.number}")
    if register.plane_ind:
        raise CommandError(syndromes.BAD_PLANE, f"plane_ind {register.plane_ind}, allowed is 0")
    if register.grp not in (PpcntGroup.INFINIBAND_PORT, PpcntGroup.INFINIBAND_EXTENDED_PORT):
        raise CommandError(queues.PPCNT_GROUP, f"grp {register.grp:#x}, allowed are 0x20 and 0x21")
    cleared = bytes(register.counter_set.SIZE)
    register.counter_set.assign(cleared)
    if register.grp == PpcntGroup.INFINIBAND_PORT:
        return
    seen = port.traffic.since(port.counted_from)
    group = register.counter_set.ib_ext_port_cntrs_grp_data_layout
    for name, value in (
        ("port_xmit_data", seen.sent.octets + seen.multicast_sent.octets),
        ("port_rcv_data", seen.received.octets + seen.multicast_received.octets),
        ("port_xmit_pkts", seen.sent.packets + seen.multicast_sent.packets),
        ("port_rcv_pkts", seen.received.packets + seen.multicast_received.packets),
        ("port_unicast_xmit_pkts", seen.sent.packets),
        ("port_unicast_rcv_pkts", seen.received.packets),
        ("port_multicast_xmit_pkts", seen.multicast_sent.packets),
        ("port_multicast_rcv_pkts", seen.multicast_received.packets),
    ):
        setattr(group, f"{name}_high", value >> 32 & 0xFFFF_FFFF)
        setattr(group, f"{name}_low", value & 0xFFFF_FFFF)
    if register.clr:
        port.counted_from = port.traffic.copy()
