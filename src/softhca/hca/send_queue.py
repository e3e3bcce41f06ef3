"""Send queues that are objects of their own (CREATE_SQ): what raw Ethernet sends by.

Raw Ethernet is masked: NOP is the only work request that such a queue carries out. Linux needs that much to find out
whether BlueFlame writes arrive whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from softhca.hca.command import command
from softhca.hca.errors import CommandError
from softhca.hca.objects import HcaObject
from softhca.hca.qp_context import Qp
from softhca.hca.sq import work
from softhca.hca.wq import QueueBuffer, doorbell_record, page_list
from softhca.prm.events import EqeQpSrq, EventType
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import Qpc, QpState, RqType, ServiceType
from softhca.prm.sq import (
    CreateSqIn,
    CreateSqOut,
    DestroySqIn,
    DestroySqOut,
    ModifySqIn,
    ModifySqOut,
    QuerySqIn,
    QuerySqOut,
    Sqc,
    SqState,
)
from softhca.prm.srq import WqType
from softhca.prm.syndromes import objects as syndromes
from softhca.prm.syndromes import queues
from softhca.prm.wqe import WQEBB

if TYPE_CHECKING:
    from softhca.hca.cq import Cq
    from softhca.hca.function import Function

_LOG_STRIDE = WQEBB.bit_length() - 1
_EVENT_QUEUE = 2
"""Type of queue in an event: a send queue."""
_STATES = {SqState.RST: QpState.RST, SqState.RDY: QpState.RTS, SqState.ERR: QpState.ERR}
_MOVES = {
    SqState.RST: (SqState.RST, SqState.RDY),
    SqState.RDY: (SqState.RDY, SqState.RST, SqState.ERR),
    SqState.ERR: (SqState.ERR, SqState.RST),
}
"""Where each state may lead."""
_UNSUPPORTED = ("cd_master", "reg_umr", "hairpin", "non_wire", "packet_pacing_rate_limit_index", "tis_lst_sz")


class SendQueue(Qp):
    """A send queue; for the data path it is a QP without a receive queue."""

    KIND = "SQ"

    def __init__(self, fn: Function, context: Sqc, buffer: QueueBuffer, cq: Cq) -> None:
        wq = context.wq
        qpc = Qpc.new(
            st=ServiceType.RAW_ETHERTYPE,
            rq_type=RqType.ZERO_LEN_RQ,
            log_sq_size=wq.log_wq_sz,
            uar_page=wq.uar_page,
            cqn_snd=context.cqn,
            dbr_addr=wq.dbr_addr,
            user_index=context.user_index,
        )
        super().__init__(fn, qpc, buffer, send_cq=cq, recv_cq=None, pool=None, work=work)
        self._sqc = bytes(context)[: Sqc.SIZE]

    @property
    def sq_state(self) -> SqState:
        """Its state, as the send queue context has it."""
        return next((state for state, meant in _STATES.items() if meant is self.state), SqState.ERR)

    def report(self, event: EventType) -> None:
        """Give an event that carries this queue's number."""
        self.fn.event(event, EqeQpSrq.pack(type=_EVENT_QUEUE, qp_srq_n=self.number))

    def query(self) -> bytes:
        """The context as QUERY_SQ shows it."""
        context = Sqc(bytearray(self._sqc))
        context.state = self.sq_state
        context.wq.hw_counter = self.sq_head
        return bytes(context)[: Sqc.SIZE]


@command(Opcode.CREATE_SQ, CreateSqIn, CreateSqOut, partial="NOP alone: no TIS, pacing, hairpin, UMEM")
def create_sq(fn: Function, request: CreateSqIn, reply: CreateSqOut) -> None:
    """Make a send queue in state RST."""
    context = request.ctx
    wq = context.wq
    for name in _UNSUPPORTED:
        if getattr(context, name):
            raise CommandError(queues.SQ_FEATURE_UNSUPPORTED, f"{name} {getattr(context, name)}, allowed is 0")
    if context.state != SqState.RST:
        raise CommandError(queues.SQ_STATE_INVALID, f"state {context.state}, allowed is 0 (RST)")
    if wq.wq_type != WqType.CYCLIC or wq.wq_signature or wq.log_wq_stride != _LOG_STRIDE:
        raise CommandError(
            syndromes.WQ_TYPE_UNSUPPORTED,
            f"wq_type {wq.wq_type} (1), wq_signature {wq.wq_signature} (0), log_wq_stride {wq.log_wq_stride} (6)",
        )
    if wq.dbr_umem_valid or wq.wq_umem_valid:
        raise CommandError(syndromes.UMEM_UNSUPPORTED, "SQ: dbr_umem_valid, wq_umem_valid")
    limit = fn.caps.general.log_max_wq_sz
    if wq.log_wq_sz > limit:
        raise CommandError(syndromes.BAD_QUEUE_SIZE, f"log_wq_sz {wq.log_wq_sz}, allowed up to {limit}")
    doorbell_record(wq.dbr_addr)
    uses: list[HcaObject] = [fn.uars.refer(wq.uar_page)]
    cq = fn.cqs.refer(context.cqn)
    buffer = QueueBuffer(page_list(request), wq.log_wq_pg_sz, wq.page_offset, WQEBB << wq.log_wq_sz)
    queue = SendQueue(fn, Sqc(bytearray(bytes(context)[: Sqc.SIZE])), buffer, cq)
    reply.sqn = fn.send_queues.add(queue)
    queue.refresh()
    queue.refer(*uses, cq)


@command(Opcode.MODIFY_SQ, ModifySqIn, ModifySqOut, partial="the state alone")
def modify_sq(fn: Function, request: ModifySqIn, reply: ModifySqOut) -> None:
    """Move a send queue to another state."""
    queue = fn.send_queues.get(request.sqn)
    if request.modify_bitmask:
        raise CommandError(queues.SQ_FEATURE_UNSUPPORTED, f"modify_bitmask {request.modify_bitmask:#x}, allowed is 0")
    now = queue.sq_state
    if request.sq_state != now or request.ctx.state not in _MOVES[now]:
        raise CommandError(
            queues.SQ_STATE_INVALID,
            f"SQ {request.sqn:#x} is in {now.name}: sq_state {request.sq_state}, state {request.ctx.state}",
        )
    if request.ctx.state != now:
        queue.become(_STATES[SqState(request.ctx.state)])


@command(Opcode.DESTROY_SQ, DestroySqIn, DestroySqOut)
def destroy_sq(fn: Function, request: DestroySqIn, reply: DestroySqOut) -> None:
    """Take a send queue away, in whatever state it is."""
    fn.send_queues.remove(request.sqn)


@command(Opcode.QUERY_SQ, QuerySqIn, QuerySqOut)
def query_sq(fn: Function, request: QuerySqIn, reply: QuerySqOut) -> None:
    """A snapshot of a send queue."""
    reply.sq_context.assign(fn.send_queues.get(request.sqn).query())
