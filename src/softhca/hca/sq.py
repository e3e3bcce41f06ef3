"""Send queues: WQEs are drained by the doorbell record, in order; in ERR both queues are flushed (A3, G2, G3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from softhca.bus import DmaFault
from softhca.hca import datagram, odp, rq, umr
from softhca.hca.errors import PageFault
from softhca.hca.fast import carry_out as carry_out_fast
from softhca.hca.qp_context import CONNECTED, DATAGRAM, UNLIMITED_RETRIES, WIDE, Qp
from softhca.hca.rc import NoAnswer, NotReady, RequestFailed, carry_out
from softhca.hca.rq import QueueBroken
from softhca.prm.codec import codec
from softhca.prm.cqe import CqeOpcode, CqeSyndrome
from softhca.prm.events import EventType
from softhca.prm.qp import QpState, ServiceType
from softhca.prm.syndromes.completion import VendorSyndrome
from softhca.prm.wqe import SEGMENT, WQEBB, WqeCtrlSeg, WqeOpcode

if TYPE_CHECKING:
    from softhca.hca.function import Function

BUDGET = 64
"""WQEs that one pass carries out before other work has its turn."""
BYTE_BUDGET = 8 << 20
"""With this many bytes moved, a pass ends too."""
_UMR_COST = 1 << 20
"""What a UMR WQE, which moves none, counts for: its list may be long."""
_CONTROL = codec(WqeCtrlSeg, 0x00, 0x04, 0x08, "imm")
_INDEX = 0xFFFF
_RC, _RTS = ServiceType.RC, QpState.RTS
_CQ_UPDATE = 0x8
_FIRST_PAUSE, _LONGEST_PAUSE = 1_000_000, 1_024_000_000
"""How often receive queues in ERR are looked at (ns): nothing rings when a receive WQE is posted."""


@dataclass(frozen=True, slots=True)
class SendWqe:
    """A send WQE.

    Attributes:
        counter: index of its first WQEBB.
        opcode: what to do.
        flags: fm_ce_se of the control segment.
        immediate: last word of the control segment.
        blocks: WQEBBs that it takes.
        body: its bytes after the control segment; None when it is malformed: empty, or longer than what is posted.
    """

    counter: int
    opcode: int
    flags: int
    immediate: int
    blocks: int
    body: bytes | None

    @property
    def signalled(self) -> bool:
        """Whether it asks for a CQE when it goes well."""
        return bool(self.flags & _CQ_UPDATE)

    @property
    def solicited(self) -> bool:
        """Whether it asks for a solicited event at the responder."""
        return bool(self.flags & 0x2)


def _posted(qp: Qp) -> int:
    """WQEBBs that are posted and not carried out."""
    try:
        count = (qp.posted_sends() - qp.sq_head) & _INDEX
    except DmaFault as fault:
        raise QueueBroken(f"QP {qp.number:#x}: send doorbell record") from fault
    if count > qp.sq_size:
        raise QueueBroken(f"QP {qp.number:#x}: {count} WQEBBs posted, the queue has {qp.sq_size}")
    return count


def _read(qp: Qp, counter: int, length: int) -> bytes:
    """Bytes of the send queue from a WQEBB on, around its end if need be."""
    ring = qp.sq_size * WQEBB
    at = (counter & (qp.sq_size - 1)) * WQEBB
    first = min(length, ring - at)
    dma = qp.fn.dma
    try:
        head = qp.buffer.read(dma, qp.sq_offset + at, first)
        return head if first == length else head + qp.buffer.read(dma, qp.sq_offset, length - first)
    except DmaFault as fault:
        raise QueueBroken(f"QP {qp.number:#x}: send WQE {counter}") from fault


def _fetch(qp: Qp, available: int) -> SendWqe:
    """The WQE at the head; it is read once. One that is longer than what is posted ends where that ends."""
    counter = qp.sq_head
    pushed = qp.pushed.pop(counter, b"") if qp.pushed else b""
    block = pushed[:WQEBB] or _read(qp, counter, WQEBB)
    opcode, control, flags, immediate = _CONTROL.unpack_from(block)
    segments = control & 0x3F
    blocks = max(1, -(-segments * SEGMENT // WQEBB))
    if not segments or blocks > available:
        return SendWqe(counter, opcode & 0xFF, flags & 0xFF, immediate, min(blocks, available), None)
    length = segments * SEGMENT
    whole = pushed or (block if blocks == 1 else block + _read(qp, counter + 1, length - WQEBB))
    return SendWqe(counter, opcode & 0xFF, flags & 0xFF, immediate, blocks, whole[SEGMENT:length])


def work(fn: Function, qp: Qp) -> None:
    """One turn of a QP's queues, as its state has it."""
    try:
        if qp.state is _RTS:
            _send(fn, qp)
        elif qp.state is QpState.SQER:
            _flush_sends(qp, BUDGET)
        elif qp.state is QpState.ERR:
            _flush(qp)
    except QueueBroken:
        broken(qp)


def broken(qp: Qp) -> None:
    """A queue of the QP cannot be read, or its CQ takes nothing: give the event; nothing more can be flushed."""
    if qp.state is QpState.ERR:
        qp.rest()
        return
    qp.enter_error(EventType.WQ_CATAS_ERROR)


def _send(fn: Function, qp: Qp) -> None:
    if (qp.timer is not None and qp.waiting) or not qp.sq_size:
        return
    if qp.fault is not None:
        _end_fault(qp, qp.fault)
        return
    budget, bytes_left = BUDGET, BYTE_BUDGET
    available = 0
    fast = fn.fast and fn.device.probe is None and qp.service is _RC
    passed = skip = 0
    while available or (available := _posted(qp)):
        if not budget or bytes_left <= 0:
            qp.ring()
            return
        if fast and passed >= skip:
            done, moved = carry_out_fast(fn, qp, min(available, budget), bytes_left)
            if done:
                available -= done
                budget -= done
                bytes_left -= moved
                skip = 0
                if qp.state is not _RTS:
                    return
                continue
            passed, skip = 0, 2 * skip + 1
        passed += 1
        budget -= 1
        wqe = _fetch(qp, available)
        available -= wqe.blocks
        try:
            length = _carry_out(fn, qp, wqe)
        except NotReady as refusal:
            _retry_later(qp, wqe, refusal.pause)
            return
        except NoAnswer:
            _await_answer(qp, wqe)
            return
        except PageFault as fault:
            if not odp.requester_waits(qp, wqe.counter, wqe.opcode):
                _fail(qp, wqe, CqeSyndrome.LOCAL_PROT_ERR, fault.vendor)
            return
        except RequestFailed as failure:
            _fail(qp, wqe, failure.syndrome, failure.vendor)
            return
        bytes_left -= length if wqe.opcode != WqeOpcode.UMR else _UMR_COST
        _complete(qp, wqe, length)
        if qp.state is not QpState.RTS:
            return


def _end_fault(qp: Qp, fault: odp.Fault) -> None:
    """The WQE that waits for a page fault ends in error when the host has refused to resolve it."""
    if fault.refused and (available := _posted(qp)):
        qp.fault = None
        _fail(qp, _fetch(qp, available), CqeSyndrome.LOCAL_PROT_ERR, VendorSyndrome.KEY_NOT_PRESENT)


def _carry_out(fn: Function, qp: Qp, wqe: SendWqe) -> int:
    """Do what the WQE says; bytes moved."""
    qp.carried = None
    if wqe.body is None:
        raise RequestFailed(CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.WQE_SHORT)
    if wqe.opcode == WqeOpcode.NOP:
        return 0
    if wqe.opcode == WqeOpcode.UMR and qp.service in (*CONNECTED, ServiceType.REG_UMR):
        return umr.carry_out(fn, qp, wqe.immediate, wqe.body)
    if qp.service in CONNECTED:
        inline = qp.send_inline if wqe.signalled else 0
        return carry_out(fn, qp, wqe.opcode, wqe.body, immediate=wqe.immediate, solicited=wqe.solicited, inline=inline)
    if qp.service in DATAGRAM:
        return datagram.send(fn, qp, wqe.opcode, wqe.body, immediate=wqe.immediate, solicited=wqe.solicited)
    raise RequestFailed(CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.OPCODE)


def _complete(qp: Qp, wqe: SendWqe, length: int) -> None:
    qp.retries, qp.rnr_retries = qp.retry_count, qp.rnr_retry
    qp.sq_head = (wqe.counter + wqe.blocks) & _INDEX
    if not wqe.signalled or qp.send_cq is None:
        return
    qpn = wqe.opcode << 24 | qp.number
    if not qp.send_cq.complete(
        CqeOpcode.REQ,
        wqe.counter,
        qpn,
        index=qp.send_index,
        length=length,
        inline=qp.carried,
        wide=qp.send_inline == WIDE,
    ):
        qp.enter_error(EventType.WQ_CATAS_ERROR)


def _error_cqe(qp: Qp, wqe: SendWqe, syndrome: CqeSyndrome, vendor: VendorSyndrome) -> bool:
    qp.sq_head = (wqe.counter + wqe.blocks) & _INDEX
    qpn = wqe.opcode << 24 | qp.number
    return qp.send_cq is None or qp.send_cq.fail(
        CqeOpcode.REQ_ERR, wqe.counter, qpn, index=qp.send_index, syndrome=syndrome, vendor=vendor
    )


def _fail(qp: Qp, wqe: SendWqe, syndrome: CqeSyndrome, vendor: VendorSyndrome) -> None:
    """End a WQE in error: its CQE, then the QP goes into ERR, or only its send queue when it is unreliable."""
    written = _error_cqe(qp, wqe, syndrome, vendor)
    if written and (qp.service in DATAGRAM or qp.service is ServiceType.UC):
        qp.become(QpState.SQER)
        return
    qp.enter_error(None if written else EventType.WQ_CATAS_ERROR)


def _retry_later(qp: Qp, wqe: SendWqe, pause: int) -> None:
    """The responder was not ready: send again after the time that it asked for, as often as allowed."""
    qp.counters.rnr_nak_retry_err += 1
    if qp.rnr_retries == 0:
        _fail(qp, wqe, CqeSyndrome.RNR_RETRY_EXC_ERR, VendorSyndrome.RECEIVER_NOT_READY)
        return
    if qp.rnr_retry != UNLIMITED_RETRIES:
        qp.rnr_retries -= 1
    qp.pause(pause)


def _await_answer(qp: Qp, wqe: SendWqe) -> None:
    """Nobody answers: send again when the timeout has passed, as often as allowed; without a timeout wait for ever."""
    exponent = qp.context.primary_address_path.ack_timeout
    if not exponent:
        return

    def expired() -> None:
        if qp.state is not QpState.RTS:
            return
        qp.counters.local_ack_timeout_err += 1
        if qp.retries == 0:
            _fail(qp, wqe, CqeSyndrome.TRANSPORT_RETRY_EXC_ERR, VendorSyndrome.NO_RESPONSE)
            return
        qp.retries -= 1
        qp.rest()
        qp.ring()

    qp.pause(4096 << exponent, expired)


def _flush_sends(qp: Qp, budget: int) -> int | None:
    """Complete at most `budget` posted send WQEs with flush errors; what is left of it, None when the CQ takes none."""
    while budget and qp.sq_size and (available := _posted(qp)):
        budget -= 1
        if not _error_cqe(qp, _fetch(qp, available), CqeSyndrome.WR_FLUSH_ERR, VendorSyndrome.FLUSHED):
            return None
    if not budget:
        qp.ring()
    return budget


def _flush_receives(qp: Qp, budget: int) -> int | None:
    """The same for the receive queue."""
    while budget and qp.rq_size and rq.posted(qp):
        budget -= 1
        counter = qp.rq_head
        rq.take(qp, None)
        if qp.recv_cq is not None and not qp.recv_cq.fail(
            CqeOpcode.RESP_ERR,
            counter,
            qp.number,
            index=qp.receive_index,
            syndrome=CqeSyndrome.WR_FLUSH_ERR,
            vendor=VendorSyndrome.FLUSHED,
        ):
            return None
    if not budget:
        qp.ring()
    return budget


def _flush(qp: Qp) -> None:
    """Complete what is posted with flush errors, then look again later for what is posted in ERR."""
    left = _flush_sends(qp, BUDGET)
    if left:
        left = _flush_receives(qp, left)
    if left and qp.rq_size:
        idle = left == BUDGET
        qp.flush_pause = min(max(qp.flush_pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE) if idle else _FIRST_PAUSE
        qp.pause(qp.flush_pause)
