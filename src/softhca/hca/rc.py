"""Connections (RC, UC, XRC): SEND, RDMA and atomics between two QPs, with the checks of each side (G4, G5, B11).

Both ends are QPs of this device: a message is a copy between mapped views, and its answer is there at once. The
requester checks its own segments first, then the responder checks the request; what each of them finds becomes the
error that the standard gives. On UC the requester learns nothing of what becomes of its message: one that cannot be
taken is dropped. An XRC request names the SRQ whose receive WQEs, protection domain and CQ it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from typing import TYPE_CHECKING, Literal

from softhca.hca import atomics, odp, packets, rq
from softhca.hca.errors import PageFault
from softhca.hca.memory import Piece, Pointer, copy, views_of
from softhca.hca.mkey import MAX_PIECES, KeyUser, KeyViolation, Right, check_invalidation
from softhca.hca.path import peer_of, share_partition
from softhca.hca.qp_context import RECEIVING, WIDE, Inbound, Qp
from softhca.hca.request import Request
from softhca.hca.rq import COUNT, DATA, WHOLE, QueueBroken
from softhca.hca.srq import XrcSrq
from softhca.points import Fault
from softhca.points import catalogue as points
from softhca.prm.codec import codec
from softhca.prm.cqe import CqeOpcode, CqeSyndrome
from softhca.prm.events import EventType
from softhca.prm.qp import QpState, ServiceType
from softhca.prm.syndromes.completion import VendorSyndrome
from softhca.prm.wqe import SEGMENT, WqeInlineSeg, WqeOpcode, WqeRaddrSeg, WqeXrcSeg

if TYPE_CHECKING:
    from softhca.hca.function import Function

_REMOTE = codec(WqeRaddrSeg, "raddr", "rkey")
_XRC = codec(WqeXrcSeg, "xrc_srqn")
_INLINE = WqeInlineSeg.FIELDS["inline_"].mask
_INLINE_COUNT = WqeInlineSeg.FIELDS["byte_count"].mask
_PSN = 0xFF_FFFF
_WITH_IMMEDIATE = (WqeOpcode.SEND_IMM, WqeOpcode.SEND_INVAL, WqeOpcode.RDMA_WRITE_IMM)
_SENDS = (WqeOpcode.SEND, WqeOpcode.SEND_IMM, WqeOpcode.SEND_INVAL)
_RELIABLE_ONLY = frozenset((WqeOpcode.SEND_INVAL, WqeOpcode.RDMA_READ, *atomics.OPERATIONS))
"""What needs an answer, or acts on keys: UC has neither."""

RNR_NANOSECONDS = (
    655_360_000, 10_000, 20_000, 30_000, 40_000, 60_000, 80_000, 120_000,
    160_000, 240_000, 320_000, 480_000, 640_000, 960_000, 1_280_000, 1_920_000,
    2_560_000, 3_840_000, 5_120_000, 7_680_000, 10_240_000, 15_360_000, 20_480_000, 30_720_000,
    40_960_000, 61_440_000, 81_920_000, 122_880_000, 163_840_000, 245_760_000, 327_680_000, 491_520_000,
)  # fmt: skip
"""Meaning of min_rnr_nak (InfiniBand specification, RNR NAK timer)."""


class RequestFailed(Exception):
    """A request ends with an error CQE.

    Args:
        syndrome: the standard's, for the requester's CQE.
        vendor: ours.
    """

    def __init__(self, syndrome: CqeSyndrome, vendor: VendorSyndrome) -> None:
        super().__init__(f"{syndrome.name}, {vendor.name}")
        self.syndrome = syndrome
        self.vendor = vendor


class NotReady(Exception):
    """The responder has no receive WQE.

    Args:
        pause: nanoseconds after which it may be tried again.
    """

    def __init__(self, pause: int) -> None:
        super().__init__(f"receiver not ready, try again after {pause} ns")
        self.pause = pause


class NoAnswer(Exception):
    """Nobody answers: there is no such QP at the path's end, or it does not take requests of this one."""


def _local(fn: Function, qp: Qp, pointer: Pointer, right: Right) -> list[memoryview]:
    try:
        return views_of(fn, pointer, right, qp.key_user)
    except PageFault:
        raise
    except KeyViolation as violation:
        raise RequestFailed(CqeSyndrome.LOCAL_PROT_ERR, violation.vendor) from violation


def segments(body: bytes, at: int) -> list[bytes | Pointer]:
    """The data segments of a send WQE from byte `at` of its body on: pointers and inline data.

    Raises:
        RequestFailed: the WQE ends inside a segment.
    """
    found: list[bytes | Pointer] = []
    while at < len(body):
        count, key, address = DATA.unpack_from(body, at)
        if not count & _INLINE:
            found.append(Pointer(key, address, count & COUNT or WHOLE))
            at += SEGMENT
            continue
        end = at + 4 + (count & _INLINE_COUNT)
        if end > len(body):
            raise RequestFailed(CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.WQE_SHORT)
        found.append(body[at + 4 : end])
        at = (end + SEGMENT - 1) // SEGMENT * SEGMENT
    return found


def _check_length(qp: Qp, length: int) -> None:
    if length > qp.max_message:
        raise RequestFailed(CqeSyndrome.LOCAL_LENGTH_ERR, VendorSyndrome.MESSAGE_TOO_LONG)


def _bound(pieces: Sized) -> None:
    """Bound the work that one WQE asks for, however many segments it has."""
    if len(pieces) > MAX_PIECES:
        raise KeyViolation(VendorSyndrome.KEY_TOO_SCATTERED)


def _bound_request(pieces: Sized) -> None:
    try:
        _bound(pieces)
    except KeyViolation as violation:
        raise RequestFailed(CqeSyndrome.LOCAL_PROT_ERR, violation.vendor) from violation


def gather(fn: Function, qp: Qp, parts: list[bytes | Pointer]) -> list[Piece]:
    """The payload of a message, checked for its length and for each key."""
    _check_length(qp, sum(len(part) if isinstance(part, bytes) else part.length for part in parts))
    pieces: list[Piece] = []
    for part in parts:
        if isinstance(part, bytes):
            pieces.append(part)
        else:
            pieces += _local(fn, qp, part, Right.LOCAL_READ)
            _bound_request(pieces)
    return pieces


def carry_out(
    fn: Function, qp: Qp, opcode: int, body: bytes, *, immediate: int, solicited: bool, inline: int = 0
) -> int:
    """Carry out a work request of a connected QP.

    Args:
        fn: the QP's function.
        qp: the requester.
        opcode: of the WQE.
        body: the WQE after its control segment.
        immediate: immediate data or the rkey to invalidate, if the opcode has such.
        solicited: the responder's CQE is to be a solicited one.
        inline: up to so many bytes that are read are left to the CQE, in `qp.carried`.

    Returns:
        Bytes moved.

    Raises:
        RequestFailed: it ends in error.
        NotReady, NoAnswer: it is to be tried again.
        PageFault: memory of its own is not there.
    """
    srqn = 0
    if qp.service is ServiceType.XRC:
        srqn, body = _xrc(body), body[SEGMENT:]
    if opcode in _RELIABLE_ONLY and qp.service is ServiceType.UC:
        raise RequestFailed(CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.OPCODE)
    if opcode in _SENDS:
        request = _outbound(opcode, gather(fn, qp, segments(body, 0)), immediate, solicited)
    elif opcode in (WqeOpcode.RDMA_WRITE, WqeOpcode.RDMA_WRITE_IMM):
        request = _outbound(opcode, gather(fn, qp, segments(body, SEGMENT)), immediate, solicited)
        request.remote = _remote(body, request.length)
    elif opcode == WqeOpcode.RDMA_READ:
        request = _read_request(fn, qp, body, inline)
    elif opcode in atomics.OPERATIONS:
        request = _atomic_request(fn, qp, opcode, body)
    else:
        raise RequestFailed(CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.OPCODE)
    request.srqn = srqn
    try:
        _exchange(fn, qp, request)
    except (NoAnswer, NotReady, RequestFailed):
        if qp.service is not ServiceType.UC:
            raise
        qp.lost += 1
    qp.send_psn = (qp.send_psn + max(1, -(-request.length // qp.mtu))) & _PSN
    return request.length


def _exchange(fn: Function, qp: Qp, request: Request) -> None:
    """Bring a request to its responder, which carries it out and answers."""
    try:
        peer = _responder(fn, qp)
    except NoAnswer:
        packets.pass_request(qp, None, request)
        raise
    fault = packets.pass_request(qp, peer, request)
    if fault is not None:
        _lose_request(qp, peer, request, fault)
    if qp.unanswered is not None:
        _answer_again(qp, peer, request, qp.unanswered)
    else:
        _serve(qp, peer, request)
    if fault is not None and fault.effect is points.DUPLICATE and qp.service is not ServiceType.UC:
        peer.counters.duplicate_request += 1
        packets.pass_answer(qp, peer, request)


def _serve(qp: Qp, peer: Qp, request: Request) -> None:
    """The responder carries a request out and answers; an answer that is lost is asked for again by the requester."""
    try:
        _CARRY_OUT[request.opcode](_inbound(peer, request), request)
    except NotReady:
        _lose_answer(packets.pass_answer(qp, peer, request, CqeSyndrome.RNR_RETRY_EXC_ERR))
        raise
    except RequestFailed as failure:
        _lose_answer(packets.pass_answer(qp, peer, request, failure.syndrome))
        raise
    fault = packets.pass_answer(qp, peer, request)
    if fault is not None and fault.effect in packets.LOSSES:
        qp.unanswered = request
        raise NoAnswer


def _lose_answer(fault: Fault | None) -> None:
    if fault is not None and fault.effect in packets.LOSSES:
        raise NoAnswer


def _lose_request(qp: Qp, peer: Qp, request: Request, fault: Fault) -> None:
    """A packet of a request is lost, comes with a wrong CRC, or after a later one.

    A responder that misses a packet tells so (sequence error), and the requester sends again at once; one that gets
    nothing is silent until the requester's timeout. On UC the message is gone either way.

    Raises:
        NoAnswer: the request is not carried out now.
    """
    if fault.effect in packets.LOSSES or (fault.effect is points.REORDER and qp.service is ServiceType.UC):
        raise NoAnswer
    if fault.effect is points.REORDER:
        peer.counters.out_of_sequence += 1
        qp.counters.packet_seq_err += 1
        again = packets.pass_request(qp, peer, request)
        if again is not None and again.effect in packets.LOSSES:
            raise NoAnswer


def _answer_again(qp: Qp, peer: Qp, request: Request, served: Request) -> None:
    """A request that was carried out, but whose answer was lost: it changes nothing, and is answered once more.

    Data that are read are read again; an atomic is answered with what it found the first time.
    """
    peer.counters.duplicate_request += 1
    qp.unanswered = None
    if request.opcode == WqeOpcode.RDMA_READ:
        _CARRY_OUT[request.opcode](_inbound(peer, request), request)
    elif request.opcode in atomics.OPERATIONS:
        order: Literal["big", "little"] = "big" if request.big_endian else "little"
        copy(request.targets, [served.original.to_bytes(atomics.SIZE, order)])
    fault = packets.pass_answer(qp, peer, request)
    if fault is not None and fault.effect in packets.LOSSES:
        qp.unanswered = served
        raise NoAnswer


def _xrc(body: bytes) -> int:
    """Number of the SRQ that an XRC request names."""
    if len(body) < SEGMENT:
        raise RequestFailed(CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.WQE_SHORT)
    number: int = _XRC.unpack_from(body)[0]
    return number


def _outbound(opcode: int, pieces: list[Piece], immediate: int, solicited: bool) -> Request:
    """A request that carries a payload."""
    length = sum(len(piece) for piece in pieces)
    return Request(opcode, length, pieces, immediate if opcode in _WITH_IMMEDIATE else None, solicited)


def _remote(body: bytes, length: int) -> Pointer:
    if len(body) < SEGMENT:
        raise RequestFailed(CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.WQE_SHORT)
    address, key = _REMOTE.unpack_from(body)
    return Pointer(key, address, length)


def _responder(fn: Function, qp: Qp) -> Qp:
    """The QP at the other end, ready to take a request of this one.

    Raises:
        NoAnswer: there is none.
    """
    peer = peer_of(fn, qp)
    if (
        peer is None
        or peer.service is not qp.service
        or not peer.takes_requests
        or peer.state not in RECEIVING
        or peer_of(peer.fn, peer) is not qp
    ):
        raise NoAnswer
    if not share_partition(qp, peer):
        peer.fn.device.port.violated_pkey()
        raise NoAnswer
    if peer.state is QpState.RTR and not peer.established:
        peer.established = True
        peer.report(EventType.COMM_EST)
    return peer


def _inbound(peer: Qp, request: Request) -> Inbound:
    """How the responder takes this request.

    Raises:
        RequestFailed: it may not take requests for the SRQ that this one names (XRC).
    """
    if peer.service is not ServiceType.XRC:
        return peer.inbound
    pool = peer.fn.receive_pools.find(request.srqn)
    if not isinstance(pool, XrcSrq) or pool.xrcd != peer.context.xrcd:
        raise _refuse(peer, EventType.WQ_INVAL_REQ_ERROR, CqeSyndrome.REMOTE_INVAL_REQ_ERR, VendorSyndrome.XRC_DOMAIN)
    user = KeyUser(pool.pd, peer.number, peer.key_user.reserved)
    return Inbound(peer, pool, pool.cq, pool.index, user, user)


def _refuse(peer: Qp, event: EventType, syndrome: CqeSyndrome, vendor: VendorSyndrome) -> RequestFailed:
    """The responder refuses a request for good: it goes into ERR, and the requester learns why.

    On UC nobody learns of it, unless it is the responder itself that is broken.
    """
    if event is EventType.WQ_ACCESS_ERROR:
        peer.counters.resp_remote_access_errors += 1
    elif event is EventType.WQ_INVAL_REQ_ERROR:
        peer.counters.resp_remote_invalid_request += 1
    if peer.service is not ServiceType.UC or event is EventType.WQ_CATAS_ERROR:
        peer.enter_error(event)
    return RequestFailed(syndrome, vendor)


def _refused_key(peer: Qp, violation: KeyViolation) -> RequestFailed:
    if violation.vendor is VendorSyndrome.DMA_FAULT:
        return _refuse(peer, EventType.WQ_CATAS_ERROR, CqeSyndrome.REMOTE_OP_ERR, VendorSyndrome.RESPONDER_FAILED)
    return _refuse(peer, EventType.WQ_ACCESS_ERROR, CqeSyndrome.REMOTE_ACCESS_ERR, violation.vendor)


def _remote_views(inbound: Inbound, pointer: Pointer, right: Right) -> list[memoryview]:
    peer = inbound.qp
    if not pointer.length:
        return []  # the key of an empty request is not looked at (InfiniBand specification)
    try:
        odp.check_refusal(peer)
        return views_of(peer.fn, pointer, right, inbound.remote_user)
    except KeyViolation as violation:
        if isinstance(violation, PageFault) and odp.responder_waits(inbound, pointer, right):
            raise _later(peer) from violation
        raise _refused_key(peer, violation) from violation


def _write(inbound: Inbound, request: Request) -> None:
    peer = inbound.qp
    if not peer.write_enabled:
        raise _refuse(
            peer,
            EventType.WQ_INVAL_REQ_ERROR,
            CqeSyndrome.REMOTE_INVAL_REQ_ERR,
            VendorSyndrome.WRITE_NOT_ENABLED,
        )
    targets = _remote_views(inbound, request.remote, Right.REMOTE_WRITE)
    if request.immediate is None:
        copy(targets, request.pieces)
        peer.counters.rx_write_requests += 1
        _count_received(peer, request.length)
        return
    wqe = _next_receive(inbound)
    copy(targets, request.pieces)
    peer.counters.rx_write_requests += 1
    _finish_receive(inbound, wqe, CqeOpcode.RESP_WR_IMM, request)


def _read_request(fn: Function, qp: Qp, body: bytes, inline: int) -> Request:
    """An RDMA READ, its own segments checked."""
    parts = segments(body, SEGMENT)
    pointers = [part for part in parts if isinstance(part, Pointer)]
    if len(pointers) != len(parts):
        raise RequestFailed(CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.OPCODE)  # inline data has no place here
    length = sum(pointer.length for pointer in pointers)
    _check_length(qp, length)
    targets: list[memoryview] = []
    for pointer in pointers:
        targets += _local(fn, qp, pointer, Right.LOCAL_WRITE)
        _bound_request(targets)
    if 0 < length <= inline:
        qp.carried = bytearray(length)
        targets = [memoryview(qp.carried)]
    return Request(WqeOpcode.RDMA_READ, length, remote=_remote(body, length), targets=targets)


def _read(inbound: Inbound, request: Request) -> None:
    peer = inbound.qp
    if not peer.read_enabled:
        raise _refuse(
            peer, EventType.WQ_INVAL_REQ_ERROR, CqeSyndrome.REMOTE_INVAL_REQ_ERR, VendorSyndrome.READ_NOT_ENABLED
        )
    copy(request.targets, _remote_views(inbound, request.remote, Right.REMOTE_READ))
    peer.counters.rx_read_requests += 1
    _count_received(peer, request.length)


def _atomic_request(fn: Function, qp: Qp, opcode: int, body: bytes) -> Request:
    """An atomic, its own segments checked."""
    needed, layout, _ = atomics.OPERATIONS[opcode]
    if not fn.caps.atomic.atomic_operations & needed:
        raise RequestFailed(CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.OPCODE)
    pointer = _remote(body, atomics.SIZE)
    if len(body) < SEGMENT + layout.size:
        raise RequestFailed(CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.WQE_SHORT)
    operands: tuple[int, ...] = layout.unpack_from(body, SEGMENT)
    parts = segments(body, SEGMENT + layout.size)
    pointers = [part for part in parts if isinstance(part, Pointer)]
    if len(pointers) != len(parts):
        raise RequestFailed(CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.OPCODE)
    if sum(part.length for part in pointers) != atomics.SIZE:
        raise RequestFailed(CqeSyndrome.LOCAL_LENGTH_ERR, VendorSyndrome.ATOMIC_LENGTH)
    targets = [view for part in pointers for view in _local(fn, qp, part, Right.LOCAL_WRITE)]
    big = not fn.caps.atomic.atomic_req_8B_endianness_mode
    return Request(opcode, atomics.SIZE, remote=pointer, operands=operands, targets=targets, big_endian=big)


def _atomic(inbound: Inbound, request: Request) -> None:
    """Change 8 bytes of the responder's memory, which are a number of the (little-endian) host."""
    peer = inbound.qp
    if not peer.atomic_enabled or request.remote.address % atomics.SIZE:
        vendor = VendorSyndrome.ATOMIC_MISALIGNED if peer.atomic_enabled else VendorSyndrome.ATOMIC_NOT_ENABLED
        raise _refuse(peer, EventType.WQ_INVAL_REQ_ERROR, CqeSyndrome.REMOTE_INVAL_REQ_ERR, vendor)
    views = _remote_views(inbound, request.remote, Right.REMOTE_ATOMIC)
    peer.counters.rx_atomic_requests += 1
    request.original = old = int.from_bytes(b"".join(views), "little")
    _, _, operation = atomics.OPERATIONS[request.opcode]
    copy(views, [operation(old, *request.operands).to_bytes(atomics.SIZE, "little")])
    copy(request.targets, [old.to_bytes(atomics.SIZE, "big" if request.big_endian else "little")])
    _count_received(peer, atomics.SIZE)


def _next_receive(inbound: Inbound) -> rq.ReceiveWqe:
    peer = inbound.qp
    try:
        wqe = rq.peek(peer, inbound.pool)
    except QueueBroken as broken:
        raise _refuse(
            peer, EventType.WQ_CATAS_ERROR, CqeSyndrome.REMOTE_OP_ERR, VendorSyndrome.RESPONDER_FAILED
        ) from broken
    if wqe is None:
        peer.counters.out_of_buffer += 1
        raise _later(peer)
    return wqe


def _later(peer: Qp) -> NotReady:
    """The responder cannot take the request now."""
    return NotReady(RNR_NANOSECONDS[peer.context.min_rnr_nak])


def _receive(inbound: Inbound, request: Request) -> None:
    wqe = _next_receive(inbound)
    targets = _scatter(inbound, wqe, request.length)
    inline = b"".join(request.pieces) if 0 < request.length <= inbound.qp.receive_inline else None
    if inline is None:
        copy(targets, request.pieces)
    opcode = CqeOpcode.RESP_SEND if request.immediate is None else CqeOpcode.RESP_SEND_IMM
    _finish_receive(inbound, wqe, opcode, request, inline)


def _receive_and_invalidate(inbound: Inbound, request: Request) -> None:
    """A message that takes a key of the responder away; the CQE names it, and tells that it is gone."""
    wqe = _next_receive(inbound)
    try:
        key = check_invalidation(inbound.qp.fn, inbound.remote_user, request.immediate or 0)
    except KeyViolation as violation:
        raise _refused_key(inbound.qp, violation) from violation
    copy(_scatter(inbound, wqe, request.length), request.pieces)
    key.invalidate()
    _finish_receive(inbound, wqe, CqeOpcode.RESP_SEND_INV, request)


def _scatter(inbound: Inbound, wqe: rq.ReceiveWqe, length: int) -> list[memoryview]:
    """Where a message goes. What is wrong with the receive WQE is told to both ends."""
    targets: list[memoryview] = []
    peer = inbound.qp
    left = length
    for segment in wqe.segments:
        if not left:
            break
        step = min(left, segment.length)
        try:
            odp.check_refusal(peer)
            pointer = Pointer(segment.key, segment.address, step)
            targets += views_of(peer.fn, pointer, Right.LOCAL_WRITE, inbound.local_user)
            _bound(targets)
        except KeyViolation as violation:
            if isinstance(violation, PageFault) and odp.receiver_waits(inbound, wqe.counter, length):
                raise _later(peer) from violation
            raise _failed_receive(
                inbound, wqe, CqeSyndrome.LOCAL_PROT_ERR, violation.vendor, CqeSyndrome.REMOTE_OP_ERR
            ) from violation
        left -= step
    if left and peer.service is ServiceType.UC:
        raise RequestFailed(CqeSyndrome.REMOTE_INVAL_REQ_ERR, VendorSyndrome.RECEIVE_TOO_SHORT)
    if left:
        raise _failed_receive(
            inbound,
            wqe,
            CqeSyndrome.LOCAL_LENGTH_ERR,
            VendorSyndrome.RECEIVE_TOO_SHORT,
            CqeSyndrome.REMOTE_INVAL_REQ_ERR,
        )
    return targets


def _failed_receive(
    inbound: Inbound, wqe: rq.ReceiveWqe, local: CqeSyndrome, vendor: VendorSyndrome, remote: CqeSyndrome
) -> RequestFailed:
    peer, cq = inbound.qp, inbound.cq
    rq.take(peer, inbound.pool)
    written = cq is None or cq.fail(
        CqeOpcode.RESP_ERR, wqe.counter, peer.number, index=inbound.index, syndrome=local, vendor=vendor
    )
    peer.enter_error(None if written else EventType.WQ_CATAS_ERROR)
    return RequestFailed(remote, vendor)


def _finish_receive(
    inbound: Inbound, wqe: rq.ReceiveWqe, opcode: CqeOpcode, request: Request, inline: bytes | None = None
) -> None:
    """Take the receive WQE and write its CQE, which carries `inline` if that is given."""
    peer, cq = inbound.qp, inbound.cq
    rq.take(peer, inbound.pool)
    _count_received(peer, request.length)
    if cq is not None and not cq.complete(
        opcode,
        wqe.counter,
        peer.number,
        index=inbound.index,
        length=request.length,
        immediate=request.immediate or 0,
        solicited=request.solicited,
        inline=inline,
        wide=peer.receive_inline == WIDE,
    ):
        raise _refuse(peer, EventType.WQ_CATAS_ERROR, CqeSyndrome.REMOTE_OP_ERR, VendorSyndrome.RESPONDER_FAILED)


def _count_received(peer: Qp, length: int) -> None:
    peer.receive_psn = (peer.receive_psn + max(1, -(-length // peer.mtu))) & _PSN
    peer.receive_msn = (peer.receive_msn + 1) & _PSN


_CARRY_OUT: Mapping[int, Callable[[Inbound, Request], None]] = {
    WqeOpcode.SEND: _receive,
    WqeOpcode.SEND_IMM: _receive,
    WqeOpcode.SEND_INVAL: _receive_and_invalidate,
    WqeOpcode.RDMA_WRITE: _write,
    WqeOpcode.RDMA_WRITE_IMM: _write,
    WqeOpcode.RDMA_READ: _read,
    **dict.fromkeys(atomics.OPERATIONS, _atomic),
}
"""What the responder does."""
