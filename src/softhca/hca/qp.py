"""Queue pairs: create, destroy, query (A7, A8, B1); their transitions are in qp_transitions.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softhca.bus import DmaFault
from softhca.hca import qp_transitions
from softhca.hca.command import command
from softhca.hca.errors import CommandError
from softhca.hca.objects import HcaObject
from softhca.hca.qp_context import RECEIVE_INLINE, RQ_TYPES, SEND_INLINE, SERVICES, Qp
from softhca.hca.sq import work
from softhca.hca.wq import QueueBuffer, doorbell_record, page_list
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import (
    CreateQpIn,
    CreateQpOut,
    DestroyQpIn,
    DestroyQpOut,
    Qpc,
    QueryQpIn,
    QueryQpOut,
    RqType,
    ServiceType,
)
from softhca.prm.syndromes import objects as syndromes
from softhca.prm.syndromes import queues
from softhca.prm.wqe import WQEBB

if TYPE_CHECKING:
    from softhca.hca.cq import Cq
    from softhca.hca.function import Function

__all__ = ["Qp", "qp_transitions"]


def _check_features(request: CreateQpIn, qpc: Qpc) -> None:
    if qpc.st not in SERVICES:
        allowed = ", ".join(f"{item.value:#x} ({item.name})" for item in SERVICES)
        raise CommandError(syndromes.SERVICE_UNSUPPORTED, f"st {qpc.st:#x}, allowed are {allowed}")
    if qpc.rq_type not in RQ_TYPES:
        allowed = ", ".join(f"{item.value} ({item.name})" for item in RQ_TYPES)
        raise CommandError(syndromes.RQ_TYPE_INVALID, f"rq_type {qpc.rq_type}, allowed are {allowed}")
    if request.wq_umem_valid or qpc.dbr_umem_valid:
        raise CommandError(syndromes.UMEM_UNSUPPORTED, "QP: wq_umem_valid, dbr_umem_valid")
    shared = qpc.st == ServiceType.XRC and qpc.cs_res  # an XRC SRQ's CQ is not the QP's
    if shared or qpc.cs_res not in RECEIVE_INLINE or qpc.cs_req not in SEND_INLINE:
        raise CommandError(queues.SCATTER_TO_CQE_INVALID, f"cs_res {qpc.cs_res:#x}, cs_req {qpc.cs_req:#x}")
    for name in ("wq_signature", "cd_master", "cd_slave_send", "cd_slave_receive", "ulp_stateless_offload_mode"):
        if getattr(qpc, name):
            raise CommandError(syndromes.QP_FEATURE_UNSUPPORTED, f"{name} {getattr(qpc, name)}, allowed is 0")
    if request.qpc_ext:
        raise CommandError(syndromes.QP_FEATURE_UNSUPPORTED, "qpc_ext 1, allowed is 0")


def _buffer(fn: Function, request: CreateQpIn, qpc: Qpc) -> QueueBuffer:
    """The receive queue, then the send queue, in one buffer."""
    limit = fn.caps.general.log_max_qp_sz
    own = qpc.rq_type == RqType.NON_ZERO_RQ
    for name, size in (("log_sq_size", qpc.log_sq_size), ("log_rq_size", qpc.log_rq_size if own else 0)):
        if size > limit:
            raise CommandError(syndromes.BAD_QUEUE_SIZE, f"{name} {size}, allowed up to {limit}")
    length = 16 << (qpc.log_rq_size + qpc.log_rq_stride) if own else 0
    length += 0 if qpc.no_sq else WQEBB << qpc.log_sq_size
    if length:
        doorbell_record(qpc.dbr_addr)
    return QueueBuffer(page_list(request), qpc.log_page_size, qpc.page_offset, length)


def _check_inline(cq: Cq | None, length: int, name: str) -> None:
    """A CQE of 64 bytes carries 32 bytes of a message, one of 128 bytes 64."""
    if length and (cq is None or length > cq.stride // 2):
        cqes = "no CQ" if cq is None else f"CQEs of {cq.stride} bytes"
        raise CommandError(queues.SCATTER_TO_CQE_INVALID, f"{name} asks for {length} bytes, the QP has {cqes}")


def _cq(fn: Function, number: int, *, needed: bool) -> Cq | None:
    return fn.cqs.refer(number) if needed or number else None


@command(
    Opcode.CREATE_QP,
    CreateQpIn,
    CreateQpOut,
    partial="RC, UC, XRC, UD, QP0, QP1; on Ethernet nobody takes a datagram; no UMEM, signatures, QPC extension",
)
def create_qp(fn: Function, request: CreateQpIn, reply: CreateQpOut) -> None:
    """Make a QP in state RST; it does nothing before its transitions (G3)."""
    qpc = request.qpc
    _check_features(request, qpc)
    buffer = _buffer(fn, request, qpc)
    uses: list[HcaObject] = []
    if qpc.uar_page or not qpc.no_sq:  # without a send queue nothing rings
        uses.append(fn.uars.refer(qpc.uar_page))
    if qpc.st != ServiceType.REG_UMR:  # such a QP has no PD: it works on keys by their index
        uses.append(fn.pds.refer(qpc.pd))
    send_cq = _cq(fn, qpc.cqn_snd, needed=not qpc.no_sq)
    recv_cq = _cq(fn, qpc.cqn_rcv, needed=qpc.rq_type != RqType.ZERO_LEN_RQ)
    _check_inline(send_cq, SEND_INLINE[qpc.cs_req], "cs_req")
    _check_inline(recv_cq, RECEIVE_INLINE[qpc.cs_res], "cs_res")
    pool = fn.receive_pools.refer(qpc.srqn_rmpn_xrqn) if qpc.rq_type == RqType.SRQ_RQ else None
    if qpc.st == ServiceType.XRC:
        uses.append(fn.xrcds.refer(qpc.xrcd))
        if pool is not None:  # a default: each request names the SRQ that it uses
            uses.append(pool)
            pool = None
    if pool is not None and pool.pd != qpc.pd:
        raise CommandError(syndromes.POOL_PD_MISMATCH, f"QP PD {qpc.pd:#x}, SRQ {pool.number:#x} PD {pool.pd:#x}")
    qp = Qp(fn, qpc, buffer, send_cq=send_cq, recv_cq=recv_cq, pool=pool, work=work)
    reply.qpn = fn.qps.add(qp)
    if qp.service in (ServiceType.QP0, ServiceType.QP1):
        fn.special[qp.service - ServiceType.QP0] = qp
    qp.refresh()
    qp.refer(*uses, *(item for item in (send_cq, recv_cq, pool) if item is not None))


@command(Opcode.DESTROY_QP, DestroyQpIn, DestroyQpOut)
def destroy_qp(fn: Function, request: DestroyQpIn, reply: DestroyQpOut) -> None:
    """Take a QP away, in whatever state it is; nothing that was posted is carried out any more."""
    fn.qps.remove(request.qpn)


@command(Opcode.QUERY_QP, QueryQpIn, QueryQpOut, partial="no QPC extension")
def query_qp(fn: Function, request: QueryQpIn, reply: QueryQpOut) -> None:
    """A snapshot of a QP."""
    qp = fn.qps.get(request.qpn)
    if request.qpc_ext:
        raise CommandError(syndromes.QP_FEATURE_UNSUPPORTED, "QUERY_QP qpc_ext 1, allowed is 0")
    qp.settle()
    reply.qpc.assign(bytes(qp.context))
    reply.qpc.hw_sq_wqebb_counter = qp.sq_head
    reply.qpc.hw_rq_counter = qp.rq_head
    try:
        reply.qpc.sw_sq_wqebb_counter = qp.posted_sends() if qp.sq_size else 0
        reply.qpc.sw_rq_counter = qp.posted_receives() if qp.rq_size else 0
    except DmaFault:  # the record is gone: the snapshot shows what the device knows
        reply.qpc.sw_sq_wqebb_counter = qp.sq_head
        reply.qpc.sw_rq_counter = qp.rq_head
    pas = reply.qp_pas_or_qpc_ext_and_pas.qp_pas_list.pas
    pas.assign([page.to_bytes(8, "big") for page in qp.buffer.pages()[: len(pas)]])
