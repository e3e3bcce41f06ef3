"""Receive pools: SRQ, XRC SRQ and RMP, which share a number space and hold receive WQEs for many QPs (A3, A7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from softhca.bus import DmaFault
from softhca.hca.command import command
from softhca.hca.errors import CommandError
from softhca.hca.objects import HcaObject
from softhca.hca.rq import NO_WQES, Plain
from softhca.hca.wq import QueueBuffer, Slots, Word, doorbell_record, page_list
from softhca.prm.codec import codec
from softhca.prm.events import EqeQpSrq, EventType
from softhca.prm.layout import Layout
from softhca.prm.opcodes import Opcode
from softhca.prm.srq import (
    ArmRqIn,
    ArmRqOperation,
    ArmRqOut,
    ArmXrcSrqIn,
    ArmXrcSrqOperation,
    ArmXrcSrqOut,
    CreateRmpIn,
    CreateRmpOut,
    CreateSrqIn,
    CreateSrqOut,
    CreateXrcSrqIn,
    CreateXrcSrqOut,
    DestroyRmpIn,
    DestroyRmpOut,
    DestroySrqIn,
    DestroySrqOut,
    DestroyXrcSrqIn,
    DestroyXrcSrqOut,
    ModifyRmpIn,
    ModifyRmpOut,
    QueryRmpIn,
    QueryRmpOut,
    QuerySrqIn,
    QuerySrqOut,
    QueryXrcSrqIn,
    QueryXrcSrqOut,
    Rmpc,
    RmpState,
    Srqc,
    SrqState,
    Wq,
    WqType,
    XrcSrqc,
)
from softhca.prm.syndromes import objects as syndromes
from softhca.prm.wqe import WqeSrqNextSeg

if TYPE_CHECKING:
    from softhca.hca.cq import Cq
    from softhca.hca.function import Function

_MIN_STRIDE, _MAX_STRIDE = 5, 12
"""log2 of bytes: a next segment and a data segment at least."""
_COUNTER = 0xFFFF
_NEXT = codec(WqeSrqNextSeg, "next_wqe_index")
VERSION_0_INDEX = 0xFF_FFFF
"""This user index asks for CQEs of version 0."""


@dataclass(frozen=True)
class PoolShape:
    """What the three kinds of context say in their own words.

    Attributes:
        log_size: log2 of the slots.
        log_stride: log2 of a slot's bytes.
        log_page_size, page_offset: of the buffer, as :class:`QueueBuffer` takes them.
        pd: number of the PD.
        record: IOVA of the doorbell record.
        lwm: limit at which an event is given; 0 for none.
        cyclic: WQEs are taken in turn, without a next segment.
    """

    log_size: int
    log_stride: int
    log_page_size: int
    page_offset: int
    pd: int
    record: int
    lwm: int
    cyclic: bool = False


class ReceivePool(HcaObject):
    """Receive WQEs that several QPs take from.

    Attributes:
        pd: number of the protection domain that its data segments are checked against.
        head: index of the WQE that is taken next.
        taken: WQEs taken, 16 bits.
        failed: its memory could not be read; no WQE is taken any more.
    """

    KIND = "SRQ"

    def __init__(self, fn: Function, context: Layout, shape: PoolShape, buffer: QueueBuffer) -> None:
        super().__init__()
        self._fn = fn
        self._context = bytes(context)
        self._buffer = buffer
        figures = fn.device.profile.icm
        self._room = figures.srqc + figures.mtt * buffer.page_count
        self._size = 1 << shape.log_size
        self._stride = 1 << shape.log_stride
        self._record = Word(shape.record)
        self._wqes = Slots(buffer, 0, self._stride, write=False)
        self._cyclic = shape.cyclic
        self._following = 0
        self._walk = [0]
        self.pd = shape.pd
        self.lwm = shape.lwm
        self.head = 0
        self.taken = 0
        self.failed = False

    def icm_bytes(self) -> int:
        """Room of the context and its translation (bytes)."""
        return self._room

    @property
    def slots(self) -> int:
        """Number of slots."""
        return self._size

    def available(self) -> int:
        """WQEs that are posted and not taken, by the doorbell record; 0 once the pool has failed."""
        if self.failed:
            return 0
        try:
            count = (self._record.read(self._fn.dma) - self.taken) & _COUNTER
        except DmaFault:
            self._fail()
            return 0
        if count > self._size:
            self._fail()
            return 0
        return count

    def peek(self) -> tuple[int, bytes] | None:
        """Index and segments (without the next segment) of the WQE that is next, or None when there is none."""
        if not self.available():
            return None
        try:
            wqe = self._buffer.read(self._fn.dma, self.head * self._stride, self._stride)
        except DmaFault:
            self._fail()
            return None
        following: int = self.head + 1 if self._cyclic else _NEXT.unpack_from(wqe)[0]
        self._following = following & (self._size - 1)
        return self.head, wqe if self._cyclic else wqe[WqeSrqNextSeg.SIZE :]

    def plain(self, most: int) -> Plain:
        """At most `most` WQEs from the next one on, as :func:`softhca.hca.rq.plain` has them.

        None when there is more to do than to take them: the pool is cyclic or broken, or would reach its limit.
        """
        fn, size, stride, wqes = self._fn, self._size, self._stride, self._wqes
        self._walk = walk = [self.head]
        try:
            count = (self._record.read(fn.dma) - self.taken) & _COUNTER
        except DmaFault:
            return NO_WQES
        if self.failed or self._cyclic or count > size:
            return NO_WQES
        places: list[int] = []
        slot, store = self.head, NO_WQES[0]
        for _ in range(min(most, count - self.lwm)):
            if not wqes.find(fn.dma, slot) or (places and wqes.mapping.store is not store):
                break
            store = wqes.mapping.store
            at = wqes.base + slot * stride
            places.append(at + WqeSrqNextSeg.SIZE)
            slot = _NEXT.unpack_from(store, at)[0] & (size - 1)
            walk.append(slot)
        return store, walk[:-1], places

    def took(self, count: int) -> None:
        """Take `count` of the WQEs that :meth:`plain` showed."""
        self.head = self._walk[count]
        self.taken = (self.taken + count) & _COUNTER

    def take(self) -> None:
        """Take the WQE that :meth:`peek` showed; give the limit event when too few are left."""
        self.head = self._following
        self.taken = (self.taken + 1) & _COUNTER
        self._check_limit()

    def arm(self, lwm: int) -> None:
        """Ask for one limit event when fewer than `lwm` WQEs are left.

        Raises:
            CommandError: the limit is above the number of slots.
        """
        if lwm > self._size:
            raise CommandError(syndromes.LIMIT_INVALID, f"lwm {lwm}, the queue has {self._size} slots")
        self.lwm = lwm
        self._check_limit()

    def _check_limit(self) -> None:
        if self.lwm and self.available() < self.lwm:
            self.lwm = 0
            self._fn.event(EventType.SRQ_RQ_LIMIT, EqeQpSrq.pack(qp_srq_n=self.number))

    def _fail(self) -> None:
        if not self.failed:
            self.failed = True
            self._fn.event(EventType.SRQ_CATAS_ERROR, EqeQpSrq.pack(qp_srq_n=self.number))

    def pages(self) -> list[int]:
        """The page list of the buffer."""
        return self._buffer.pages()


class Srq(ReceivePool):
    """A shared receive queue."""

    def context(self) -> bytes:
        """The SRQ context as QUERY_SRQ shows it."""
        srqc = Srqc(bytearray(self._context))
        srqc.state = SrqState.ERROR if self.failed else SrqState.GOOD
        srqc.lwm = self.lwm
        srqc.wqe_cnt = self.available()
        return bytes(srqc)


class XrcSrq(ReceivePool):
    """A shared receive queue of an XRC domain, with a CQ of its own.

    Attributes:
        xrcd: number of its XRC domain.
        cq: where its receive WQEs are completed.
    """

    def __init__(self, fn: Function, srqc: XrcSrqc, shape: PoolShape, buffer: QueueBuffer, cq: Cq) -> None:
        super().__init__(fn, srqc, shape, buffer)
        self.xrcd = srqc.xrcd
        self.cq = cq
        by_number = srqc.user_index_equal_xrc_srqn or srqc.user_index == VERSION_0_INDEX
        self._user_index = srqc.user_index if fn.caps.general.cqe_version and not by_number else None

    def end(self) -> None:
        """No CQE of its receive WQEs is to come after this."""
        self.cq.write_out()

    @property
    def index(self) -> int:
        """What CQEs of its receive WQEs carry in their srqn word: its user index or, in version 0, its number."""
        return self.number if self._user_index is None else self._user_index

    def context(self) -> bytes:
        """The XRC SRQ context as QUERY_XRC_SRQ shows it."""
        srqc = XrcSrqc(bytearray(self._context))
        srqc.state = SrqState.ERROR if self.failed else SrqState.GOOD
        srqc.lwm = self.lwm
        srqc.wqe_cnt = self.available()
        return bytes(srqc)


class Rmp(ReceivePool):
    """A receive memory pool: what Linux makes of an SRQ under ISSI 1."""

    KIND = "RMP"

    def context(self) -> bytes:
        """The RMP context as QUERY_RMP shows it."""
        rmpc = Rmpc(bytearray(self._context))
        rmpc.state = RmpState.ERR if self.failed else RmpState.RDY
        rmpc.wq.lwm = self.lwm
        rmpc.wq.hw_counter = self.taken
        return bytes(rmpc)[: Rmpc.SIZE]


def _buffer(fn: Function, request: Layout, shape: PoolShape) -> QueueBuffer:
    limit = fn.caps.general.log_max_srq_sz
    if shape.log_size > limit:
        raise CommandError(syndromes.BAD_QUEUE_SIZE, f"SRQ: 2^{shape.log_size} slots, allowed up to 2^{limit}")
    minimum = _MIN_STRIDE - shape.cyclic
    if not minimum <= shape.log_stride <= _MAX_STRIDE:
        raise CommandError(
            syndromes.SRQ_STRIDE_INVALID, f"2^{shape.log_stride} bytes, allowed 2^{minimum} to 2^{_MAX_STRIDE}"
        )
    doorbell_record(shape.record)
    length = 1 << (shape.log_size + shape.log_stride)
    return QueueBuffer(page_list(request), shape.log_page_size, shape.page_offset, length)


Pool = TypeVar("Pool", bound=ReceivePool)


def _pool(fn: Function, number: int, kind: type[Pool]) -> Pool:
    pool = fn.receive_pools.get(number)
    if not isinstance(pool, kind):
        raise CommandError(syndromes.POOL_WRONG_KIND, f"{number:#x} is a {type(pool).__name__}, not {kind.__name__}")
    return pool


def _remove(fn: Function, number: int, kind: type[ReceivePool]) -> None:
    fn.receive_pools.remove(_pool(fn, number, kind).number)


@command(Opcode.CREATE_SRQ, CreateSrqIn, CreateSrqOut)
def create_srq(fn: Function, request: CreateSrqIn, reply: CreateSrqOut) -> None:
    """Make an SRQ."""
    srqc = request.srq_context_entry
    if srqc.wq_signature:
        raise CommandError(syndromes.WQ_TYPE_UNSUPPORTED, "SRQ wq_signature 1")
    shape = PoolShape(
        log_size=srqc.log_srq_size,
        log_stride=srqc.log_rq_stride + 4,
        log_page_size=srqc.log_page_size,
        page_offset=srqc.page_offset,
        pd=srqc.pd,
        record=srqc.dbr_addr,
        lwm=srqc.lwm,
    )
    pd = fn.pds.refer(srqc.pd)
    srq = Srq(fn, srqc, shape, _buffer(fn, request, shape))
    reply.srqn = fn.receive_pools.add(srq)
    srq.refer(pd)


@command(Opcode.DESTROY_SRQ, DestroySrqIn, DestroySrqOut)
def destroy_srq(fn: Function, request: DestroySrqIn, reply: DestroySrqOut) -> None:
    """Take an SRQ away that no QP refers to."""
    _remove(fn, request.srqn, Srq)


@command(Opcode.QUERY_SRQ, QuerySrqIn, QuerySrqOut)
def query_srq(fn: Function, request: QuerySrqIn, reply: QuerySrqOut) -> None:
    """A snapshot of an SRQ."""
    srq = _pool(fn, request.srqn, Srq)
    reply.srq_context_entry.assign(srq.context())
    reply.pas.assign(srq.pages()[: len(reply.pas)])


@command(Opcode.ARM_RQ, ArmRqIn, ArmRqOut, op_mods=(ArmRqOperation.SRQ,))
def arm_rq(fn: Function, request: ArmRqIn, reply: ArmRqOut) -> None:
    """Ask for a limit event of an SRQ (op_mod 1)."""
    srq = _pool(fn, request.srq_number, Srq)
    srq.arm(request.lwm)


@command(Opcode.CREATE_XRC_SRQ, CreateXrcSrqIn, CreateXrcSrqOut, partial="no UMEM")
def create_xrc_srq(fn: Function, request: CreateXrcSrqIn, reply: CreateXrcSrqOut) -> None:
    """Make an XRC SRQ."""
    srqc = request.xrc_srq_context_entry
    if srqc.wq_signature:
        raise CommandError(syndromes.WQ_TYPE_UNSUPPORTED, "XRC SRQ wq_signature 1")
    if request.xrc_srq_umem_valid or srqc.dbr_umem_valid:
        raise CommandError(syndromes.UMEM_UNSUPPORTED, "XRC SRQ: xrc_srq_umem_valid, dbr_umem_valid")
    shape = PoolShape(
        log_size=srqc.log_xrc_srq_size,
        log_stride=srqc.log_rq_stride + 4,
        log_page_size=srqc.log_page_size,
        page_offset=srqc.page_offset,
        pd=srqc.pd,
        record=srqc.db_record_addr_h << 32 | srqc.db_record_addr_l << 2,
        lwm=srqc.lwm,
        cyclic=bool(srqc.basic_cyclic_rcv_wqe),
    )
    pd, cq, xrcd = fn.pds.refer(srqc.pd), fn.cqs.refer(srqc.cqn), fn.xrcds.refer(srqc.xrcd)
    srq = XrcSrq(fn, srqc, shape, _buffer(fn, request, shape), cq)
    reply.xrc_srqn = fn.receive_pools.add(srq)
    srq.refer(pd, cq, xrcd)


@command(Opcode.DESTROY_XRC_SRQ, DestroyXrcSrqIn, DestroyXrcSrqOut)
def destroy_xrc_srq(fn: Function, request: DestroyXrcSrqIn, reply: DestroyXrcSrqOut) -> None:
    """Take an XRC SRQ away that no QP refers to."""
    _remove(fn, request.xrc_srqn, XrcSrq)


@command(Opcode.QUERY_XRC_SRQ, QueryXrcSrqIn, QueryXrcSrqOut)
def query_xrc_srq(fn: Function, request: QueryXrcSrqIn, reply: QueryXrcSrqOut) -> None:
    """A snapshot of an XRC SRQ."""
    srq = _pool(fn, request.xrc_srqn, XrcSrq)
    reply.xrc_srq_context_entry.assign(srq.context())
    reply.pas.assign(srq.pages()[: len(reply.pas)])


@command(Opcode.ARM_XRC_SRQ, ArmXrcSrqIn, ArmXrcSrqOut, op_mods=(ArmXrcSrqOperation.XRC_SRQ,))
def arm_xrc_srq(fn: Function, request: ArmXrcSrqIn, reply: ArmXrcSrqOut) -> None:
    """Ask for a limit event of an XRC SRQ (op_mod 1)."""
    srq = _pool(fn, request.xrc_srqn, XrcSrq)
    srq.arm(request.lwm)


def _rmp_shape(wq: Wq) -> PoolShape:
    if wq.wq_type not in (WqType.LINKED_LIST, WqType.CYCLIC) or wq.wq_signature:
        raise CommandError(
            syndromes.WQ_TYPE_UNSUPPORTED,
            f"wq_type {wq.wq_type} (0 or 1), wq_signature {wq.wq_signature} (0)",
        )
    if wq.dbr_umem_valid or wq.wq_umem_valid:
        raise CommandError(syndromes.UMEM_UNSUPPORTED, "RMP: dbr_umem_valid, wq_umem_valid")
    return PoolShape(
        log_size=wq.log_wq_sz,
        log_stride=wq.log_wq_stride,
        log_page_size=wq.log_wq_pg_sz,
        page_offset=wq.page_offset,
        pd=wq.pd,
        record=wq.dbr_addr,
        lwm=wq.lwm,
        cyclic=wq.wq_type == WqType.CYCLIC,
    )


@command(Opcode.CREATE_RMP, CreateRmpIn, CreateRmpOut, partial="no UMEM")
def create_rmp(fn: Function, request: CreateRmpIn, reply: CreateRmpOut) -> None:
    """Make an RMP."""
    wq = request.ctx.wq
    shape = _rmp_shape(wq)
    pd = fn.pds.refer(shape.pd)
    context = Rmpc(bytes(request)[0x20 : 0x20 + Rmpc.SIZE])
    rmp = Rmp(fn, context, shape, _buffer(fn, request, shape))
    reply.rmpn = fn.receive_pools.add(rmp)
    rmp.refer(pd)


@command(Opcode.DESTROY_RMP, DestroyRmpIn, DestroyRmpOut)
def destroy_rmp(fn: Function, request: DestroyRmpIn, reply: DestroyRmpOut) -> None:
    """Take an RMP away that no QP refers to."""
    _remove(fn, request.rmpn, Rmp)


@command(Opcode.QUERY_RMP, QueryRmpIn, QueryRmpOut)
def query_rmp(fn: Function, request: QueryRmpIn, reply: QueryRmpOut) -> None:
    """A snapshot of an RMP."""
    rmp = _pool(fn, request.rmpn, Rmp)
    reply.rmp_context.assign(rmp.context())


@command(Opcode.MODIFY_RMP, ModifyRmpIn, ModifyRmpOut, partial="the limit alone")
def modify_rmp(fn: Function, request: ModifyRmpIn, reply: ModifyRmpOut) -> None:
    """Ask for a limit event of an RMP."""
    rmp = _pool(fn, request.rmpn, Rmp)
    if request.rmp_state != RmpState.RDY or request.ctx.state != RmpState.RDY:
        raise CommandError(
            syndromes.POOL_MODIFY_INVALID, f"rmp_state {request.rmp_state}, state {request.ctx.state}; allowed is 1"
        )
    if request.bitmask.lwm:
        rmp.arm(request.ctx.wq.lwm)
