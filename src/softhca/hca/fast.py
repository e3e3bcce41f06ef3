"""The fast loop: send WQEs of the common shape, many in one go.

It stands in front of the general path (`sq`, `rc`, `rq`, `cq`), which alone defines what happens: the loop has the
same effects in the same order, or it leaves a WQE to the general path before any effect of it. What it takes: WQEs of
one WQEBB with one data segment, RDMA WRITE, RDMA READ, SEND and SEND with immediate data, of an RC QP whose peer is
ready, through plain keys, to CQs of plain 64-byte CQEs with room. What is never in its way: errors, waits, taps,
compression.

What is worked out once holds for one drain alone: no command and no doorbell comes between its WQEs. So the event of
a CQ is given when the loop has ended; it says what it would have said at its CQE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from softhca.hca import rq
from softhca.hca.mkey import Right
from softhca.hca.path import peer_of
from softhca.hca.qp_context import RECEIVING, WIDE
from softhca.hca.rq import COUNT, DATA, WHOLE
from softhca.hca.traffic import count_exchanges
from softhca.hca.window import CLOSED, Pane, Window
from softhca.prm.codec import codec, joined
from softhca.prm.cq import CqState
from softhca.prm.cqe import Cqe64, CqeInline, CqeOpcode
from softhca.prm.qp import QpState, ServiceType
from softhca.prm.wqe import INVALID_LKEY, SEGMENT, WQEBB, WqeCtrlSeg, WqeInlineSeg, WqeOpcode, WqeRaddrSeg

if TYPE_CHECKING:
    from softhca.hca.cq import Cq
    from softhca.hca.function import Function
    from softhca.hca.qp_context import Qp

_CONTROL = codec(WqeCtrlSeg, "opcode", 0x04, 0x08, "imm")
_REMOTE = codec(WqeRaddrSeg, "raddr", "rkey")
_RDMA_WQE = joined(_CONTROL, _REMOTE, DATA, length=WQEBB)
_SEND_WQE = joined(_CONTROL, DATA, length=WQEBB)
_CQE = Cqe64.SIZE
_OWNER = _CQE - 1
_SENT = codec(Cqe64, "srqn", "byte_cnt", "timestamp", "sop_drop_qpn", "wqe_counter", length=_OWNER)
_RECEIVED = codec(
    Cqe64, "srqn", "imm_inval_pkey", "byte_cnt", "timestamp", "sop_drop_qpn", "wqe_counter", length=_OWNER
)
_INLINE = WqeInlineSeg.FIELDS["inline_"].mask
_INLINE_COUNT = WqeInlineSeg.FIELDS["byte_count"].mask
_INLINE_DATA = WqeInlineSeg.SIZE
_SEGMENTS = WqeCtrlSeg.FIELDS["ds"].mask
_MOST_SEGMENTS = WQEBB // SEGMENT
_CQ_UPDATE, _SOLICITED = 0x8, 0x2
_INDEX, _PSN = 0xFFFF, 0xFF_FFFF
_ARMED = CqState.NOTIFICATION_REQUEST_ARMED
_OPCODE = 3
"""Byte of a WQE."""
_READ, _WRITE = int(WqeOpcode.RDMA_READ), int(WqeOpcode.RDMA_WRITE)
_REQUESTED = CqeOpcode.REQ << 4
_CARRIED = CqeInline.UP_TO_32 << 2
_SEND_IMM = int(WqeOpcode.SEND_IMM)
_RESPONSES = {int(WqeOpcode.SEND): CqeOpcode.RESP_SEND << 4, _SEND_IMM: CqeOpcode.RESP_SEND_IMM << 4}
_SHUT: Pane = (CLOSED, 0, 0, 0, memoryview(b""))
NOTHING = (0, 0)


def carry_out(fn: Function, qp: Qp, most: int, allowance: int) -> tuple[int, int]:
    """Carry out WQEs from the head of an RC send queue on, as long as they have the common shape.

    Args:
        fn: the QP's function.
        qp: in RTS, and it does not wait.
        most: WQEs that are posted, and that this turn may carry out.
        allowance: with so many bytes moved, no further WQE is begun.

    Returns:
        WQEs that were carried out, and bytes that they moved.
    """
    head = qp.sq_head
    chunk = _fetch(qp, head, most)
    loop = _rdma if chunk[_OPCODE] in (_WRITE, _READ) else _sends if chunk[_OPCODE] in _RESPONSES else None
    peer = _ready_peer(fn, qp) if loop is not None else None
    if loop is None or peer is None:
        return NOTHING
    done, moved = loop(fn, qp, peer, chunk, allowance)
    if done and qp.pushed:
        qp.pushed.pop(head, None)
    return done, moved


_NO_WQE = bytes(WQEBB)


def _fetch(qp: Qp, head: int, most: int) -> bytes:
    """WQEs of one WQEBB that lie one behind the other, each read once; none when the head cannot be read so."""
    pushed = qp.pushed
    if pushed:
        if head in pushed:
            wqe = pushed[head]
            return wqe if len(wqe) == WQEBB else _NO_WQE
        most = min(most, min((index - head) & _INDEX for index in pushed))
    slot = head & (qp.sq_size - 1)
    wqes = qp.sq_wqes
    if not wqes.find(qp.fn.dma, slot):
        return _NO_WQE
    at = wqes.base + slot * WQEBB
    return bytes(wqes.mapping.store[at : at + min(most, wqes.end - slot) * WQEBB])


def _ready_peer(fn: Function, qp: Qp) -> Qp | None:
    """The other end of a connection, if it is there and ready, and nothing but the messages happens."""
    if fn.device.port.tap is not None:
        return None
    peer = peer_of(fn, qp)
    if (
        peer is None
        or peer.service is not ServiceType.RC
        or peer.state not in RECEIVING
        or (peer.state is QpState.RTR and not peer.established)
        or peer.mtu != qp.mtu
        or peer_of(peer.fn, peer) is not qp
        or peer.fn.device.port.tap is not None
    ):
        return None
    return peer


def _settle(qp: Qp, peer: Qp, opcode: int, done: int, packets: int, payload: int, longer: int) -> None:
    """Write back what `done` messages have changed at both ends, beside their CQs and the receive queue."""
    qp.sq_head = (qp.sq_head + done) & _INDEX
    qp.send_psn = (qp.send_psn + packets) & _PSN
    qp.retries, qp.rnr_retries = qp.retry_count, qp.rnr_retry
    qp.carried = None
    peer.receive_psn = (peer.receive_psn + packets) & _PSN
    peer.receive_msn = (peer.receive_msn + done) & _PSN
    count_exchanges(qp, peer, opcode, done, packets, payload, longer)


def _rdma(fn: Function, qp: Qp, peer: Qp, chunk: bytes, allowance: int) -> tuple[int, int]:
    """RDMA WRITE or RDMA READ, as the first one is."""
    opcode = chunk[_OPCODE]
    reading = opcode == _READ
    cq = qp.send_cq
    if cq is None or not (peer.read_enabled if reading else peer.write_enabled) or (reading and qp.send_inline):
        return NOTHING
    near = Window(fn, Right.LOCAL_WRITE if reading else Right.LOCAL_READ, qp.key_user, write=reading)
    their_right = Right.REMOTE_READ if reading else Right.REMOTE_WRITE
    far = Window(peer.fn, their_right, peer.inbound.remote_user, write=not reading)
    near_key, near_first, near_end, near_base, near_memory = _SHUT
    far_key, far_first, far_end, far_base, far_memory = _SHUT
    left, store, at, owner = cq.plain()
    first, end, owner = at, at + left * _CQE, owner | _REQUESTED
    pack, index, stamp, tag = _SENT.pack_into, qp.send_index, fn.device.ticks(), opcode << 24 | qp.number
    counter, longest, mtu = qp.sq_head, min(qp.max_message, WHOLE - 1), qp.mtu
    done = moved = packets = payload = longer = 0
    for code, number_ds, flags, _, raddr, rkey, count, lkey, laddr in _RDMA_WQE.iter_unpack(chunk):
        inline = count & _INLINE
        if inline:
            count &= _INLINE_COUNT
        size = 3 if not inline else 2 + (count + _INLINE_DATA + SEGMENT - 1) // SEGMENT
        if (
            code != opcode
            or number_ds & _SEGMENTS != size
            or size > _MOST_SEGMENTS
            or not 0 < count <= longest
            or moved >= allowance
        ):
            break
        if (flags & _CQ_UPDATE and at == end) or (inline and reading):
            break
        if rkey != far_key or raddr < far_first or count > far_end - raddr:
            if (pane := far.find(rkey, raddr, count)) is None:
                break
            far_key, far_first, far_end, far_base, far_memory = pane
        there = raddr + far_base
        if inline:
            here = done * WQEBB + 2 * SEGMENT + _INLINE_DATA
            far_memory[there : there + count] = chunk[here : here + count]
        else:
            if lkey != near_key or laddr < near_first or count > near_end - laddr:
                if (pane := near.find(lkey, laddr, count)) is None:
                    break
                near_key, near_first, near_end, near_base, near_memory = pane
            here = laddr + near_base
            if reading:
                near_memory[here : here + count] = far_memory[there : there + count]
            else:
                far_memory[there : there + count] = near_memory[here : here + count]
        if flags & _CQ_UPDATE:
            pack(store, at, index, count, stamp, tag, counter + done & _INDEX)
            store[at + _OWNER] = owner
            at += _CQE
        done += 1
        moved += count
        payload += count + 3 & ~3
        if count <= mtu:
            packets += 1
        else:
            packets += -(-count // mtu)
            longer += 1
    if not done:
        return NOTHING
    if reading:
        peer.counters.rx_read_requests += done
    else:
        peer.counters.rx_write_requests += done
    _settle(qp, peer, opcode, done, packets, payload, longer)
    if at != first:
        first_index = cq.producer
        cq.producer += (at - first) // _CQE
        if cq.state is _ARMED:
            cq.announce(first_index + 1)
    return done, moved


def _sends(fn: Function, qp: Qp, peer: Qp, chunk: bytes, allowance: int) -> tuple[int, int]:
    """SEND or SEND with immediate data, as the first one is."""
    opcode = chunk[_OPCODE]
    inbound, cq, pool = peer.inbound, qp.send_cq, peer.pool
    their_cq, carried = inbound.cq, peer.receive_inline
    if cq is None or their_cq is None or cq is their_cq or carried == WIDE:
        return NOTHING
    near = Window(fn, Right.LOCAL_READ, qp.key_user, write=False)
    into = Window(peer.fn, Right.LOCAL_WRITE, inbound.local_user, write=True)
    near_key, near_first, near_end, near_base, near_memory = _SHUT
    into_key, into_first, into_end, into_base, into_memory = _SHUT
    left, store, at, owner = cq.plain()
    first, end, owner = at, at + left * _CQE, owner | _REQUESTED
    their_left, their_store, their_at, their_owner = their_cq.plain()
    most = min(their_left, len(chunk) // WQEBB)
    wqes, counters, places = rq.plain(peer, most) if pool is None else pool.plain(most)
    response = their_owner | _RESPONSES[opcode]
    pack, their_pack, segment = _SENT.pack_into, _RECEIVED.pack_into, DATA.unpack_from
    index, stamp, tag, counter = qp.send_index, fn.device.ticks(), opcode << 24 | qp.number, qp.sq_head
    their_index, their_stamp, their_tag = inbound.index, peer.fn.device.ticks(), peer.number
    longest, mtu, with_immediate = min(qp.max_message, WHOLE - 1), qp.mtu, opcode == _SEND_IMM
    done = moved = packets = payload = longer = 0
    armed, watched = cq.state is _ARMED, their_cq.state is not CqState.FIRED
    only_solicited = their_cq.state is not _ARMED
    events: list[tuple[Cq, int]] = []
    for wqe, their_counter, place in zip(_SEND_WQE.iter_unpack(chunk), counters, places, strict=False):
        code, number_ds, flags, immediate, count, lkey, laddr = wqe
        inline = count & _INLINE
        if inline:
            count &= _INLINE_COUNT
        size = 2 if not inline else 1 + (count + _INLINE_DATA + SEGMENT - 1) // SEGMENT
        if (
            code != opcode
            or number_ds & _SEGMENTS != size
            or size > _MOST_SEGMENTS
            or not 0 < count <= longest
            or moved >= allowance
        ):
            break
        room, rkey, raddr = segment(wqes, place)
        if (flags & _CQ_UPDATE and at == end) or count > (room & COUNT or WHOLE) or rkey == INVALID_LKEY:
            break
        if rkey != into_key or raddr < into_first or count > into_end - raddr:
            if (pane := into.find(rkey, raddr, count)) is None:
                break
            into_key, into_first, into_end, into_base, into_memory = pane
        if inline:
            here = done * WQEBB + SEGMENT + _INLINE_DATA
            data: bytes | memoryview = chunk[here : here + count]
        else:
            if lkey != near_key or laddr < near_first or count > near_end - laddr:
                if (pane := near.find(lkey, laddr, count)) is None:
                    break
                near_key, near_first, near_end, near_base, near_memory = pane
            here = laddr + near_base
            data = near_memory[here : here + count]
        value = immediate if with_immediate else 0
        their_pack(their_store, their_at, their_index, value, count, their_stamp, their_tag, their_counter & _INDEX)
        if count <= carried:
            their_store[their_at : their_at + count] = data
        else:
            there = raddr + into_base
            into_memory[there : there + count] = data
        solicited = flags & _SOLICITED
        their_store[their_at + _OWNER] = response | solicited | (_CARRIED if count <= carried else 0)
        their_at += _CQE
        if solicited:
            their_cq.last_solicited = their_cq.producer + done
        done += 1
        if watched and (solicited or not only_solicited):
            watched = False
            events.append((their_cq, their_cq.producer + done))
        if flags & _CQ_UPDATE:
            pack(store, at, index, count, stamp, tag, counter + done - 1 & _INDEX)
            store[at + _OWNER] = owner
            at += _CQE
            if armed:
                armed = False
                events.append((cq, cq.producer + 1))
        moved += count
        payload += count + 3 & ~3
        if count <= mtu:
            packets += 1
        else:
            packets += -(-count // mtu)
            longer += 1
    if not done:
        return NOTHING
    cq.producer += (at - first) // _CQE
    their_cq.producer += done
    if pool is None:
        rq.took(peer, done)
    else:
        pool.took(done)
    _settle(qp, peer, opcode, done, packets, payload, longer)
    for raised, producer in events:
        raised.announce(producer)
    return done, moved
