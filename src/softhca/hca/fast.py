"""The fast loop: send WQEs of the common shape, many in one go.

It stands in front of the general path (`sq`, `rc`, `rq`, `cq`), which alone defines what happens: the loop has the
same effects in the same order, or it leaves a WQE to the general path before any effect of it. What it takes: WQEs of
one WQEBB with one data segment, RDMA WRITE, RDMA READ, SEND and SEND with immediate data, of an RC QP whose peer is
ready, through plain keys, to CQs of plain 64-byte CQEs with room. What is never in its way: errors, waits, taps,
compression.

What is known of a connection is kept as long as neither end is modified, what is known of keys and memory as long as
no key and no DMA map changes. No command and no doorbell comes between the WQEs of a turn. So the event of a CQ is
given when the loop has ended; it says what it would have said at its CQE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from softhca.hca import rq
from softhca.hca.memory import copy
from softhca.hca.mkey import KeyViolation, Right
from softhca.hca.path import peer_of, share_partition
from softhca.hca.qp_context import RECEIVING, WIDE
from softhca.hca.rq import COUNT, DATA, WHOLE
from softhca.hca.traffic import count_exchanges
from softhca.hca.window import Window
from softhca.prm.codec import codec, joined
from softhca.prm.cq import CqState
from softhca.prm.cqe import Cqe64, CqeInline, CqeOpcode
from softhca.prm.hca_cap import PortType
from softhca.prm.qp import QpState, ServiceType
from softhca.prm.wqe import INVALID_LKEY, SEGMENT, WQEBB, WqeCtrlSeg, WqeInlineSeg, WqeOpcode, WqeRaddrSeg

if TYPE_CHECKING:
    from softhca.hca.cq import Cq
    from softhca.hca.function import Function
    from softhca.hca.qp_context import Qp

_CONTROL = codec(WqeCtrlSeg, "opcode", 0x04, 0x08, "imm")
_RDMA_WQE = joined(_CONTROL, codec(WqeRaddrSeg, "raddr", "rkey"), DATA, length=WQEBB)
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
_CQ_UPDATE, _SOLICITED = 0x8, 0x2
_INDEX, _PSN = 0xFFFF, 0xFF_FFFF
_FIRED, _ARMED = CqState.FIRED, CqState.NOTIFICATION_REQUEST_ARMED
_IB = PortType.IB
_RST, _RTR, _RTS = QpState.RST, QpState.RTR, QpState.RTS
_OPCODE = 3
"""Byte of a WQE."""
_READ, _WRITE, _SEND_IMM = int(WqeOpcode.RDMA_READ), int(WqeOpcode.RDMA_WRITE), int(WqeOpcode.SEND_IMM)
_REQUESTED = CqeOpcode.REQ << 4
_RESPONSES = {int(WqeOpcode.SEND): CqeOpcode.RESP_SEND << 4, _SEND_IMM: CqeOpcode.RESP_SEND_IMM << 4}
_CARRIED = CqeInline.UP_TO_32 << 2
_NO_WQE = bytes(WQEBB)
NOTHING = (0, 0)


class Link:
    """What is known of a connection between two RC QPs, while neither is modified; a port keeps its P_Keys and GID.

    Args:
        qp: the requester.
        peer: the responder.
        cq: of the requester.

    Attributes:
        source, sink: windows on the requester's memory, for reading and for writing.
        theirs, wanted: windows on the responder's memory for RDMA WRITE and RDMA READ.
        receive: window on the responder's memory for its receive WQEs.
        numbers: user index or 0, number, most bytes of a message, MTU.
        their_numbers: user index or number of the pool, number, bytes of a message that a CQE carries.
    """

    __slots__ = (
        "_path",
        "_their_path",
        "cq",
        "numbers",
        "peer",
        "qp",
        "receive",
        "sink",
        "source",
        "their_numbers",
        "theirs",
        "wanted",
    )  # fmt: skip

    def __init__(self, qp: Qp, peer: Qp, cq: Cq) -> None:
        self.qp, self.peer, self.cq = qp, peer, cq
        self._path, self._their_path = qp.path, peer.path
        inbound = peer.inbound
        self.source = Window(qp.fn, Right.LOCAL_READ, qp.key_user, write=False)
        self.sink = Window(qp.fn, Right.LOCAL_WRITE, qp.key_user, write=True)
        self.theirs = Window(peer.fn, Right.REMOTE_WRITE, inbound.remote_user, write=True)
        self.wanted = Window(peer.fn, Right.REMOTE_READ, inbound.remote_user, write=False)
        self.receive = Window(peer.fn, Right.LOCAL_WRITE, inbound.local_user, write=True)
        self.numbers = qp.send_index, qp.number, min(qp.max_message, WHOLE - 1), qp.mtu
        self.their_numbers = inbound.index, peer.number, peer.receive_inline

    def holds(self) -> bool:
        """Whether neither end has been modified, and the path still leads from one to the other."""
        fn, other = self.qp.fn, self.peer.fn
        return (
            self.qp.path is self._path
            and self.peer.path is self._their_path
            and self.peer.state is not _RST
            and fn.device.port.kind is _IB
            and fn.vport.up(fn.device.port)
            and (other is fn or other.vport.up(other.device.port))
        )


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
    opcode = chunk[_OPCODE]
    loop = _rdma if opcode in (_WRITE, _READ) else _sends if opcode in _RESPONSES else None
    if loop is None:
        return NOTHING
    link = qp.link
    if link is None or not link.holds():
        link = qp.link = _find_link(fn, qp)
    if link is None or not _ready(link):
        return NOTHING
    done, moved = loop(link, chunk, allowance)
    if done and qp.pushed:
        qp.pushed.pop(head, None)
    return done, moved


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
    if not wqes.find(qp.fn.device.dma, slot):
        return _NO_WQE
    at = wqes.base + slot * WQEBB
    return bytes(wqes.mapping.store[at : at + min(most, wqes.end - slot) * WQEBB])


def _find_link(fn: Function, qp: Qp) -> Link | None:
    """The connection of an RC QP; None when its peer does not know it, or it has no CQ."""
    peer = peer_of(fn, qp)
    if (
        peer is None
        or qp.send_cq is None
        or peer.service is not ServiceType.RC
        or peer.mtu != qp.mtu
        or peer_of(peer.fn, peer) is not qp
        or not share_partition(qp, peer)
    ):
        return None
    return Link(qp, peer, qp.send_cq)


def _ready(link: Link) -> bool:
    """Whether the peer takes requests now, and nothing but the messages happens."""
    qp, peer = link.qp, link.peer
    state = peer.state
    if state is not _RTS and (state not in RECEIVING or (state is _RTR and not peer.established)):
        return False
    if qp.fault is not None or peer.inbound_fault is not None:
        return False
    return qp.fn.device.port.tap is None and peer.fn.device.port.tap is None


def _inlined(count: int, number_ds: int, before: int) -> int:
    """Bytes of the inline data that are all that a WQE has; 0 when it has another shape.

    Args:
        count: first word of its data segment.
        number_ds: second word of its control segment.
        before: segments in front of the data segment.
    """
    length = count & _INLINE_COUNT
    size = before + (length + _INLINE_DATA + SEGMENT - 1) // SEGMENT
    fits = count & _INLINE and size * SEGMENT <= WQEBB and number_ds & _SEGMENTS == size
    return length if fits else 0


def _settle(link: Link, opcode: int, done: int, packets: int, payload: int, longer: int) -> None:
    """Write back what `done` messages have changed at both ends, beside their CQs and the receive queue."""
    qp, peer = link.qp, link.peer
    qp.sq_head = (qp.sq_head + done) & _INDEX
    qp.send_psn = (qp.send_psn + packets) & _PSN
    qp.retries, qp.rnr_retries = qp.retry_count, qp.rnr_retry
    qp.carried = None
    peer.receive_psn = (peer.receive_psn + packets) & _PSN
    peer.receive_msn = (peer.receive_msn + done) & _PSN
    if opcode == _READ:
        peer.counters.rx_read_requests += done
    elif opcode == _WRITE:
        peer.counters.rx_write_requests += done
    count_exchanges(qp, peer, opcode, done, packets, payload, longer)


def _piecewise(source: tuple[Window, int, int], target: tuple[Window, int, int], count: int) -> bool:
    """Copy a message between keys and addresses where it lies in several pieces; tell whether both keys allow it."""
    try:
        pieces = source[0].views(source[1], source[2], count)
        copy(target[0].views(target[1], target[2], count), pieces)
    except KeyViolation:
        return False
    return True


def _rdma(link: Link, chunk: bytes, allowance: int) -> tuple[int, int]:
    """RDMA WRITE or RDMA READ, as the first one is."""
    qp, peer, cq, opcode = link.qp, link.peer, link.cq, chunk[_OPCODE]
    reading = opcode == _READ
    if not (peer.read_enabled if reading else peer.write_enabled) or (reading and qp.send_inline):
        return NOTHING
    near, far = (link.sink, link.wanted) if reading else (link.source, link.theirs)
    near_key, near_first, near_end, near_base, mapping = near.look()
    near_memory = mapping.memory
    far_key, far_first, far_end, far_base, mapping = far.look()
    far_memory = mapping.memory
    left, store, at, owner = cq.plain()
    first, end, owner = at, at + left * _CQE, owner | _REQUESTED
    index, number, longest, mtu = link.numbers
    pack, stamp, tag, counter = _SENT.pack_into, qp.fn.device.ticks(), opcode << 24 | number, qp.sq_head
    done = moved = packets = payload = longer = inline = 0
    for code, number_ds, flags, _, raddr, rkey, count, lkey, laddr in _RDMA_WQE.iter_unpack(chunk):
        if code != opcode or moved >= allowance or (flags & _CQ_UPDATE and at == end):
            break
        if number_ds & _SEGMENTS != 3 or not 0 < count <= longest:
            inline = count = _inlined(count, number_ds, 2)
            if not 0 < count <= longest or reading:
                break
        whole = True
        if rkey != far_key or raddr < far_first or count > far_end - raddr:
            if (pane := far.find(rkey, raddr, count)) is not None:
                far_key, far_first, far_end, far_base, mapping = pane
                far_memory = mapping.memory
            else:
                whole = False
        if not inline and (lkey != near_key or laddr < near_first or count > near_end - laddr):
            if (pane := near.find(lkey, laddr, count)) is not None:
                near_key, near_first, near_end, near_base, mapping = pane
                near_memory = mapping.memory
            else:
                whole = False
        here, there = laddr + near_base, raddr + far_base
        if not whole:
            ends = ((far, rkey, raddr), (near, lkey, laddr)) if reading else ((near, lkey, laddr), (far, rkey, raddr))
            if inline or not _piecewise(*ends, count):
                break
        elif inline:
            here = done * WQEBB + 2 * SEGMENT + _INLINE_DATA
            far_memory[there : there + count] = chunk[here : here + count]
            inline = 0
        elif reading:
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
        packets += 1 if count <= mtu else -(-count // mtu)
        longer += count > mtu
    if done:
        _settle(link, opcode, done, packets, payload, longer)
    if at != first:
        cq.producer += (at - first) // _CQE
        if cq.state is _ARMED:
            cq.announce(cq.producer - (at - first) // _CQE + 1)
    return done, moved


def _sends(link: Link, chunk: bytes, allowance: int) -> tuple[int, int]:
    """SEND or SEND with immediate data, as the first one is."""
    qp, peer, cq, opcode = link.qp, link.peer, link.cq, chunk[_OPCODE]
    index, number, longest, mtu = link.numbers
    their_index, their_tag, carried = link.their_numbers
    their_cq, pool = peer.recv_cq, peer.pool
    if their_cq is None or cq is their_cq or carried == WIDE:
        return NOTHING
    their_left, their_store, their_at, their_owner = their_cq.plain()
    most = len(chunk) // WQEBB
    most = most if most < their_left else their_left
    wqes, counters, places = rq.plain(peer, most) if pool is None else pool.plain(most)
    if not places:
        return NOTHING
    near, into = link.source, link.receive
    near_key, near_first, near_end, near_base, mapping = near.look()
    near_memory = mapping.memory
    into_key, into_first, into_end, into_base, mapping = into.look()
    into_memory = mapping.memory
    left, store, at, owner = cq.plain()
    first, end, owner, response = at, at + left * _CQE, owner | _REQUESTED, their_owner | _RESPONSES[opcode]
    pack, their_pack, segment = _SENT.pack_into, _RECEIVED.pack_into, DATA.unpack_from
    stamp, tag, counter, value = qp.fn.device.ticks(), opcode << 24 | number, qp.sq_head, 0
    their_stamp = stamp if peer.fn is qp.fn else peer.fn.device.ticks()
    armed, watched, only_solicited = cq.state is _ARMED, their_cq.state is not _FIRED, their_cq.state is not _ARMED
    events: list[tuple[Cq, int]] = []
    done = moved = packets = payload = longer = inline = 0
    for wqe, their_counter, place in zip(_SEND_WQE.iter_unpack(chunk), counters, places, strict=False):
        code, number_ds, flags, immediate, count, lkey, laddr = wqe
        if code != opcode or moved >= allowance or (flags & _CQ_UPDATE and at == end):
            break
        if number_ds & _SEGMENTS != 2 or not 0 < count <= longest:
            inline = count = _inlined(count, number_ds, 1)
            if not 0 < count <= longest:
                break
        room, rkey, raddr = segment(wqes, place)
        if count > (room & COUNT or WHOLE) or rkey == INVALID_LKEY:
            break
        whole = True
        if rkey != into_key or raddr < into_first or count > into_end - raddr:
            if (pane := into.find(rkey, raddr, count)) is not None:
                into_key, into_first, into_end, into_base, mapping = pane
                into_memory = mapping.memory
            else:
                whole = False
        if not inline and (lkey != near_key or laddr < near_first or count > near_end - laddr):
            if (pane := near.find(lkey, laddr, count)) is not None:
                near_key, near_first, near_end, near_base, mapping = pane
                near_memory = mapping.memory
            else:
                whole = False
        if not whole:
            if inline or count <= carried or not _piecewise((near, lkey, laddr), (into, rkey, raddr), count):
                break
        elif inline:
            here = done * WQEBB + SEGMENT + _INLINE_DATA
            data: bytes | memoryview = chunk[here : here + count]
            inline = 0
        else:
            here = laddr + near_base
            data = near_memory[here : here + count]
        if opcode == _SEND_IMM:
            value = immediate
        their_pack(their_store, their_at, their_index, value, count, their_stamp, their_tag, their_counter & _INDEX)
        own = response | flags & _SOLICITED
        if count <= carried:
            their_store[their_at : their_at + count] = bytes(data)
            own |= _CARRIED
        elif whole:
            there = raddr + into_base
            into_memory[there : there + count] = data
        their_store[their_at + _OWNER] = own
        their_at += _CQE
        if flags & _SOLICITED:
            their_cq.last_solicited = their_cq.producer + done
        done += 1
        if watched and (flags & _SOLICITED or not only_solicited):
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
        packets += 1 if count <= mtu else -(-count // mtu)
        longer += count > mtu
    if done:
        cq.producer += (at - first) // _CQE
        their_cq.producer += done
        rq.took(peer, done) if pool is None else pool.took(done)
        _settle(link, opcode, done, packets, payload, longer)
    for raised, producer in events:
        raised.announce(producer)
    return done, moved
