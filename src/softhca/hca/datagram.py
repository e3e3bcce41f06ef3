"""Datagrams: UD QPs and the special QPs 0 and 1 of an InfiniBand port (G3, G5).

The sender's work request ends well as soon as its datagram has left, whether anybody takes it or not: what finds no
QP, no receive WQE or not the right keys is lost without a word, and counted. On Ethernet nobody takes a datagram.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from softhca.hca import pma, rq
from softhca.hca.memory import Piece, Pointer, copy, views_of
from softhca.hca.mkey import KeyViolation, Right
from softhca.hca.path import same_partition
from softhca.hca.qp_context import DATAGRAM, RECEIVING, Inbound, Qp
from softhca.hca.rc import RequestFailed, gather, segments
from softhca.hca.rq import QueueBroken
from softhca.prm.cqe import CqeOpcode, CqeSyndrome
from softhca.prm.events import EventType
from softhca.prm.ib_packet import ICRC_BYTES, IP_VERSION, NEXT_HEADER_IBA, PSN_MASK, Bth, Deth, Grh, ImmDt
from softhca.prm.qp import ServiceType
from softhca.prm.sa import GSI_QKEY
from softhca.prm.smp import MAD_BYTES
from softhca.prm.syndromes.completion import VendorSyndrome
from softhca.prm.wqe import Av, BaseAv, WqeOpcode

if TYPE_CHECKING:
    from softhca.hca.function import Function

_EXTENDED = 1 << 31
"""In dqp_dct: the address vector has its full size."""
_GLOBAL = 1 << 30
"""In grh_gid_fl: the datagram has a global route header."""
_PRIVILEGED = 1 << 31
"""A Q_Key of a work request with this bit stands for the QP's own (10.2.5)."""
_QPN = 0xFF_FFFF
_GRH_FLAG = 1 << 28
"""CQE flags_rqpn: the GRH lies in the buffer."""
PERMISSIVE_LID = 0xFFFF
FIRST_MULTICAST_LID = 0xC000


@dataclass(frozen=True, slots=True)
class Datagram:
    """A datagram on its way.

    Attributes:
        slid, dlid: LIDs, 16 bits.
        service_level: 4 bits.
        grh: the global route header (40 bytes), or None.
        pkey: 16 bits.
        qpn, source_qpn: destination and source QP, 24 bits.
        qkey: 32 bits.
        pieces: the payload.
        length: its bytes.
        psn: packet sequence number, 24 bits.
        immediate: immediate data, or None.
        solicited: the sender asks for a solicited event.
    """

    slid: int
    dlid: int
    service_level: int
    grh: bytes | None
    pkey: int
    qpn: int
    source_qpn: int
    qkey: int
    pieces: list[Piece]
    length: int
    psn: int
    immediate: int | None = None
    solicited: bool = False

    @property
    def destination_gid(self) -> bytes | None:
        """GID of the global route, if it has one (16 bytes)."""
        return None if self.grh is None else self.grh[24:]

    def answer(self, slid: int, psn: int, payload: bytes) -> Datagram:
        """What goes back to the sender, from the same QP and by the same route; `psn` is that of who answers."""
        grh = None
        if self.grh is not None:
            route = Grh(bytearray(self.grh))
            route.source_gid, route.destination_gid = self.grh[24:], self.grh[8:24]
            grh = bytes(route)
        return Datagram(
            slid, self.slid, self.service_level, grh, self.pkey, self.source_qpn, self.qpn, self.qkey,
            [payload], len(payload), psn & PSN_MASK,
        )  # fmt: skip


def send(fn: Function, qp: Qp, opcode: int, body: bytes, *, immediate: int, solicited: bool) -> int:
    """Send a datagram.

    Args:
        fn: the QP's function.
        qp: the sender.
        opcode: of the WQE.
        body: the WQE after its control segment: address vector, then data.
        immediate: immediate data, if the opcode has such.
        solicited: the receiver's CQE is to be a solicited one.

    Returns:
        Bytes sent.

    Raises:
        RequestFailed: the WQE is malformed, or its data are not what the QP may send.
    """
    if opcode not in (WqeOpcode.SEND, WqeOpcode.SEND_IMM):
        raise RequestFailed(CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.OPCODE)
    if len(body) < BaseAv.SIZE:
        raise RequestFailed(CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.WQE_SHORT)
    size = Av.SIZE if BaseAv(body).dqp_dct & _EXTENDED else BaseAv.SIZE
    if len(body) < size:
        raise RequestFailed(CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.WQE_SHORT)
    pieces = gather(fn, qp, segments(body, size))
    length = sum(len(piece) for piece in pieces)
    port = fn.device.port
    if length > min(qp.mtu, port.mtu):
        raise RequestFailed(CqeSyndrome.LOCAL_LENGTH_ERR, VendorSyndrome.MESSAGE_TOO_LONG)
    psn, qp.send_psn = qp.send_psn, (qp.send_psn + 1) & PSN_MASK
    if port.infiniband and fn.vport.up(port):
        data = immediate if opcode == WqeOpcode.SEND_IMM else None
        datagram = _pack(fn, qp, Av(body[:size].ljust(Av.SIZE, b"\0")), pieces, psn, data, solicited)
        taken = fn.device.fabric.deliver(fn, datagram)
    else:
        taken = False
    qp.lost += not taken
    return length


def _pack(
    fn: Function, qp: Qp, av: Av, pieces: list[Piece], psn: int, immediate: int | None, solicited: bool
) -> Datagram:
    port, base = fn.device.port, av.base
    length = sum(len(piece) for piece in pieces)
    route = None
    if av.grh_gid_fl & _GLOBAL:
        headers = Bth.SIZE + Deth.SIZE + (0 if immediate is None else ImmDt.SIZE)
        route = Grh.pack(
            ip_version=IP_VERSION,
            traffic_class=av.tclass,
            flow_label=av.grh_gid_fl & 0xF_FFFF,
            payload_length=headers + (length + 3) // 4 * 4 + ICRC_BYTES,
            next_header=NEXT_HEADER_IBA,
            hop_limit=av.hop_limit,
            source_gid=port.gid(av.grh_gid_fl >> 20 & 0xFF),
            destination_gid=bytes(av.rgid),
        )
    return Datagram(
        slid=port.lid,
        dlid=base.rlid,
        service_level=base.stat_rate_sl & 0xF,
        grh=route,
        pkey=port.pkey(qp.context.primary_address_path.pkey_index),
        qpn=base.dqp_dct & _QPN,
        source_qpn=_SPECIAL.get(qp.service, qp.number),
        qkey=qp.context.q_key if base.qkey & _PRIVILEGED else base.qkey,
        pieces=pieces,
        length=length,
        psn=psn,
        immediate=immediate,
        solicited=solicited,
    )


_SPECIAL = {ServiceType.QP0: 0, ServiceType.QP1: 1}
"""The numbers that the special QPs have on the wire."""


def receive(fn: Function, datagram: Datagram) -> bool:
    """Take a datagram that has arrived at a function's port; whether an agent or a QP took it."""
    number = datagram.qpn
    if number == 1 and datagram.qkey == GSI_QKEY and _asked_agent(fn, datagram):
        return True
    qp = fn.special.get(number) if number in (0, 1) else fn.qps.find(number)
    return qp is not None and take(qp, datagram)


def _asked_agent(fn: Function, datagram: Datagram) -> bool:
    """Let the port's own agent answer a query that is for it; the answer comes a little later."""
    if datagram.length != MAD_BYTES:
        return False
    port = fn.device.port
    found = pma.answer(port, b"".join(bytes(piece) for piece in datagram.pieces))
    if found is None:
        return False
    answer = datagram.answer(port.lid, port.agent_psn, found)
    port.agent_psn += 1

    def reply() -> None:
        fn.device.fabric.deliver(fn, answer)

    fn.device.engine.post(reply)
    return True


def take(qp: Qp, datagram: Datagram) -> bool:
    """Let a QP take a datagram; whether it did."""
    if qp.service not in DATAGRAM or qp.state not in RECEIVING or not _keys_fit(qp, datagram):
        return False
    inbound = qp.inbound
    try:
        wqe = rq.peek(qp, inbound.pool)
    except QueueBroken:
        qp.enter_error(EventType.WQ_CATAS_ERROR)
        return False
    if wqe is None:
        qp.counters.out_of_buffer += 1
        return False
    rq.take(qp, inbound.pool)
    try:
        _scatter(qp, inbound, wqe, datagram)
    except RequestFailed as failure:
        written = inbound.cq is None or inbound.cq.fail(
            CqeOpcode.RESP_ERR,
            wqe.counter,
            qp.number,
            index=inbound.index,
            syndrome=failure.syndrome,
            vendor=failure.vendor,
        )
        qp.enter_error(None if written else EventType.WQ_CATAS_ERROR)
        return False
    return _complete(qp, inbound, wqe, datagram)


def _keys_fit(qp: Qp, datagram: Datagram) -> bool:
    """Check P_Key and Q_Key (10.9.3, 10.2.5); QP0 has neither, and QP1 takes every P_Key of the table."""
    if qp.service is ServiceType.QP0:
        return True
    port = qp.fn.device.port
    index = qp.context.primary_address_path.pkey_index
    own = port.pkeys if qp.service is ServiceType.QP1 else [port.pkey(index)]
    if not any(same_partition(pkey, datagram.pkey) for pkey in own):
        port.violated_pkey()
        return False
    if datagram.qkey != qp.context.q_key:
        port.qkey_violations = min(port.qkey_violations + 1, 0xFFFF)
        return False
    return True


def _scatter(qp: Qp, inbound: Inbound, wqe: rq.ReceiveWqe, datagram: Datagram) -> None:
    """Write route and payload; without a global route the first 40 bytes stay as they are (11.4.1.2).

    Raises:
        RequestFailed: what is wrong with the receive WQE.
    """
    left = Grh.SIZE + datagram.length
    targets: list[memoryview] = []
    for segment in wqe.segments:
        if not left:
            break
        step = min(left, segment.length)
        pointer = Pointer(segment.key, segment.address, step)
        try:
            targets += views_of(qp.fn, pointer, Right.LOCAL_WRITE, inbound.local_user)
        except KeyViolation as violation:
            raise RequestFailed(CqeSyndrome.LOCAL_PROT_ERR, violation.vendor) from violation
        left -= step
    if left:
        raise RequestFailed(CqeSyndrome.LOCAL_LENGTH_ERR, VendorSyndrome.RECEIVE_TOO_SHORT)
    if datagram.grh is not None:
        copy(targets, [datagram.grh, *datagram.pieces])
        return
    skip = Grh.SIZE
    while skip and targets:
        step = min(skip, len(targets[0]))
        targets[0] = targets[0][step:]
        skip -= step
        if not targets[0]:
            del targets[0]
    copy(targets, datagram.pieces)


def _complete(qp: Qp, inbound: Inbound, wqe: rq.ReceiveWqe, datagram: Datagram) -> bool:
    immediate = datagram.pkey if qp.service is ServiceType.QP1 else datagram.immediate or 0
    flag = 0 if datagram.grh is None else _GRH_FLAG
    if inbound.cq is None or inbound.cq.complete(
        CqeOpcode.RESP_SEND if datagram.immediate is None else CqeOpcode.RESP_SEND_IMM,
        wqe.counter,
        qp.number,
        index=inbound.index,
        length=Grh.SIZE + datagram.length,
        immediate=immediate,
        solicited=datagram.solicited,
        source=flag | datagram.service_level << 24 | datagram.source_qpn,
        slid=datagram.slid,
    ):
        return True
    qp.enter_error(EventType.WQ_CATAS_ERROR)
    return False
