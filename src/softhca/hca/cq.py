"""Completion queues: CQEs in host memory, arming with sequence numbers, overrun (A4, A5, G2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softhca.bus import DmaFault, Timer
from softhca.hca import compression
from softhca.hca.command import command
from softhca.hca.errors import CommandError
from softhca.hca.objects import HcaObject
from softhca.hca.wq import QueueBuffer, Slots, Store, Word, doorbell_record, page_list
from softhca.points import catalogue as points
from softhca.prm.codec import codec
from softhca.prm.cq import (
    Cqc,
    CqErrorSyndrome,
    CqeSize,
    CqPeriodMode,
    CqState,
    CqStatus,
    CreateCqIn,
    CreateCqOut,
    DestroyCqIn,
    DestroyCqOut,
    ModifyCqField,
    ModifyCqIn,
    ModifyCqOperation,
    ModifyCqOut,
    QueryCqIn,
    QueryCqOut,
    ResizeCqField,
)
from softhca.prm.cqe import Cqe64, Cqe128, CqeInline, CqeOpcode, CqeSyndrome, ErrCqe, MiniCqe8
from softhca.prm.events import EqeComp, EqeCqErr, EventType
from softhca.prm.opcodes import Opcode
from softhca.prm.syndromes import objects as syndromes
from softhca.prm.syndromes import queues
from softhca.prm.syndromes.completion import VendorSyndrome

if TYPE_CHECKING:
    from softhca.hca.eq import Eq
    from softhca.hca.function import Function

_OWNER = Cqe64.SIZE - 1
_QPN = slice(0x39, 0x3C)
_WQE_COUNTER = slice(0x3C, 0x3E)
_BYTE_COUNT = slice(0x2C, 0x30)
_SYNDROME = 0x37
"""Where a CQE has the QP's number."""
_INDEX = 0xFF_FFFF
"""Counters of a CQ are 24 bits wide."""
_CQE = codec(
    Cqe64,
    "slid",
    "flags_rqpn",
    "srqn",
    "imm_inval_pkey",
    "byte_cnt",
    "timestamp",
    "sop_drop_qpn",
    "wqe_counter",
    length=_OWNER,
)
_ERROR_CQE = codec(ErrCqe, "srqn", "vendor_err_synd", "syndrome", "s_wqe_opcode_qpn", "wqe_counter", length=_OWNER)
_COMPLETION = codec(EqeComp, "cqn")
_RESIZE_CQE = bytes(_OWNER)
_MODIFIABLE = sum(ModifyCqField)
_RESIZABLE = sum(ResizeCqField)
_STRIDES: dict[int, int] = {
    CqeSize.BYTES_64: Cqe64.SIZE,
    CqeSize.BYTES_128: Cqe128.SIZE,
    CqeSize.BYTES_128_PADDED: Cqe128.SIZE,
}
"""Bytes from one CQE to the next; of 128 bytes, the last 64 are what a 64-byte CQE is."""
_ARMED = CqState.NOTIFICATION_REQUEST_ARMED
_SOLICITED = CqState.SOLICITED_NOTIFICATION_REQUEST_ARMED
_FIRED, _OK = CqState.FIRED, CqStatus.OK
_COMP = EventType.COMP
_NO_ROOM = (0, memoryview(b""), 0, 0)


class Cq(HcaObject):
    """A completion queue.

    Attributes:
        stride: bytes from one CQE to the next, 64 or 128.
        uar: number of the UAR page whose doorbell arms it.
        producer, consumer: CQEs written, and read as far as the device knows; both counted from the creation.
        last_solicited: index of the last CQE that was a solicited one, or -1.
        state: what it is armed for.
    """

    __slots__ = (
        "_armed_from",
        "_armed_sn",
        "_buffer",
        "_compressor",
        "_context",
        "_count",
        "_entries",
        "_eq",
        "_fired_at",
        "_fired_sn",
        "_fn",
        "_icm_bytes",
        "_log_size",
        "_notified",
        "_overrun_ignored",
        "_period",
        "_period_mode",
        "_plain",
        "_record",
        "_size",
        "_slots",
        "_timer",
        "consumer",
        "last_solicited",
        "producer",
        "state",
        "status",
        "stride",
        "uar",
    )
    # More than 30 attributes: without slots, each access is a search in a dictionary.

    KIND = "CQ"

    def __init__(self, fn: Function, context: Cqc, buffer: QueueBuffer, eq: Eq) -> None:
        super().__init__()
        self._fn = fn
        self._eq = eq
        self.stride = _STRIDES[CqeSize(context.cqe_sz)]
        self._take_buffer(context, buffer)
        self._record = Word(context.dbr_addr)
        self._overrun_ignored = bool(context.oi)
        self._period = context.cq_period
        self._count = context.cq_max_count
        self._period_mode = CqPeriodMode(context.cq_period_mode)
        self._fired_at = fn.device.engine.clock.now()
        self._timer: Timer | None = None
        self._fired_sn = -1
        self._armed_sn = -1
        self.last_solicited = -1
        self._armed_from = 0
        self._notified = 0
        self.uar = context.uar_page
        self.status = CqStatus.OK
        self.state = CqState.FIRED
        self.producer = 0
        self.consumer = 0
        self._compressor: compression.Compressor | None = None
        if context.cqe_comp_en:
            self._compressor = compression.Compressor(fn, context, self._write_compressed)

    def icm_bytes(self) -> int:
        """Room of the context and its translation (bytes)."""
        return self._icm_bytes

    def _take_buffer(self, context: Cqc, buffer: QueueBuffer) -> None:
        self._context = bytes(context)
        self._buffer = buffer
        figures = self._fn.device.profile.icm
        self._icm_bytes = figures.cqc + figures.mtt * buffer.page_count
        self._log_size = context.log_cq_size
        self._size = 1 << context.log_cq_size
        self._slots = 0 if context.cc else self._size - 1
        self._entries = Slots(buffer, self.stride - Cqe64.SIZE, self.stride, write=True)
        self._plain = self.stride == Cqe64.SIZE and not context.cc and not context.cqe_comp_en

    def complete(
        self,
        opcode: CqeOpcode,
        counter: int,
        qpn: int,
        *,
        index: int,
        length: int = 0,
        immediate: int = 0,
        solicited: bool = False,
        source: int = 0,
        slid: int = 0,
        inline: bytes | bytearray | None = None,
        wide: bool = False,
    ) -> bool:
        """Write the CQE of a work request that went well; tell whether it could be written.

        Args:
            opcode: of the CQE.
            counter: index of the WQE.
            qpn: number of the QP; for a requester with the WQE's opcode in bits 31:24.
            index: the SRQ's number, or the user index of the QP, by the CQE's version.
            length: bytes moved.
            immediate: immediate data, as in the WQE.
            solicited: whether the message asked for a solicited event.
            source: flags and number of the sender's QP, for datagrams.
            slid: the sender's LID, for datagrams.
            inline: the message itself, for the CQE to carry it; None: it lies in memory already.
            wide: whether it lies in the first half of a CQE of 128 bytes (up to 64 bytes), or else in the first half
                of the 64-byte form (up to 32 bytes).
        """
        body = _CQE.pack(slid, source, index, immediate, length, self._fn.device.ticks(), qpn, counter)
        op_own = opcode << 4 | solicited << 1
        if self._compressor is not None:
            if inline is None and not solicited:
                return self.status is CqStatus.OK and self._compressor.add(body, op_own)
            self._compressor.close()
        if inline is None:
            return self._write(body, op_own, solicited)
        if wide:
            return self._write(body, op_own | CqeInline.UP_TO_64 << 2, solicited, inline)
        return self._write(bytes(inline) + body[len(inline) :], op_own | CqeInline.UP_TO_32 << 2, solicited)

    def plain(self) -> tuple[int, Store, int, int]:
        """Room for CQEs of 64 bytes that may be written as they are, from `producer` on.

        Returns:
            How many there may be; the memory, where in it the first one goes (bytes), each further one behind it; the
            owner bit of all. None may be written so when the CQ is collapsed, compressed, full or in error, or an event
            of it is moderated.
        """
        if not self._plain or self.status is not _OK:
            return _NO_ROOM
        if self._count != 1 and self._period and self.state is not _FIRED:
            return _NO_ROOM
        size, producer, dma = self._size, self.producer, self._fn.device.dma
        left = size if self._overrun_ignored else size - producer + self.consumer
        if left <= 0:
            try:
                left = size - producer + self.consumer if self._room(1) else 0
            except DmaFault:
                return _NO_ROOM
        slot = producer & self._slots
        entries = self._entries
        if left <= 0 or not entries.find(dma, slot):
            return _NO_ROOM
        if left > entries.end - slot:
            left = entries.end - slot
        return left, entries.mapping.store, entries.base + slot * Cqe64.SIZE, producer >> self._log_size & 1

    def fail(
        self,
        opcode: CqeOpcode,
        counter: int,
        qpn: int,
        *,
        index: int,
        syndrome: CqeSyndrome,
        vendor: VendorSyndrome,
    ) -> bool:
        """Write the CQE of a work request that failed, which counts as solicited; arguments as :meth:`complete`."""
        body = _ERROR_CQE.pack(index, vendor, syndrome, qpn, counter)
        qp = self._fn.qps.find(qpn & _INDEX)
        if qp is not None:
            qp.counters.error_cqe(opcode, syndrome)
        self.write_out()
        return self._write(body, opcode << 4, solicited=True)

    def write_out(self) -> None:
        """Write what waits to be compressed: before a CQE that is not, and before its QP or SRQ goes."""
        if self._compressor is not None:
            self._compressor.close()

    def _write_compressed(self, body: bytes, op_own: int, minis: bytes, count: int) -> bool:
        return self._write(body, op_own, False, minis=minis, count=count)

    def _write(
        self,
        body: bytes,
        op_own: int,
        solicited: bool,
        first_half: bytes | bytearray = b"",
        minis: bytes = b"",
        count: int = 1,
    ) -> bool:
        """Write a CQE, its owner byte last and alone (a whole-entry pack would show a valid byte too early).

        A compressed one stands for `count` CQEs, with `minis` in slots behind it.
        """
        if self.status is not CqStatus.OK:
            return False
        dma = self._fn.dma
        try:
            unread = self.producer - self.consumer
            if unread + count > self._size and not self._overrun_ignored and not self._room(count):
                qp = self._fn.qps.find(int.from_bytes(body[_QPN], "big"))
                if qp is not None:
                    qp.counters.cq_overflow += 1
                self._error(CqStatus.CQ_OVERFLOW, CqErrorSyndrome.CQ_OVERRUN)
                return False
            end = ((self.producer & self._slots) + 1) * self.stride
            view = self._buffer.entry(dma, end - Cqe64.SIZE, Cqe64.SIZE)
            if first_half:
                self._buffer.entry(dma, end - self.stride, len(first_half))[:] = first_half
            for at in range(0, len(minis), Cqe64.SIZE):
                behind = at // MiniCqe8.SIZE or 1
                slot_end = (((self.producer + behind) & self._slots) + 1) * self.stride
                self._buffer.entry(dma, slot_end - Cqe64.SIZE, Cqe64.SIZE)[:] = minis[at : at + Cqe64.SIZE]
        except DmaFault:
            self._error(CqStatus.CQ_WRITE_FAIL, CqErrorSyndrome.CQ_ACCESS_VIOLATION_ERROR)
            return False
        view[:_OWNER] = body
        view[_OWNER] = op_own | self.producer >> self._log_size & 1
        probe = self._fn.device.probe
        if probe is not None:
            qpn, counter = int.from_bytes(body[_QPN], "big"), int.from_bytes(body[_WQE_COUNTER], "big")
            failed = op_own >> 4 in (CqeOpcode.REQ_ERR, CqeOpcode.RESP_ERR)
            length = 0 if failed else int.from_bytes(body[_BYTE_COUNT], "big")
            told = (self.number, qpn, op_own >> 4, counter, length, body[_SYNDROME] if failed else 0)
            probe.hit(points.CQE, self._fn.function_id, *told)
        if solicited:
            self.last_solicited = self.producer
        self.producer += count
        if self.state is _ARMED or (self.state is _SOLICITED and solicited):
            self._notify()
        return True

    def resize(self, context: Cqc, buffer: QueueBuffer) -> None:
        """Go over to another buffer. The last CQE in the old one says so; software moves what it has not read.

        That CQE takes an index as any other, so that the unread ones move up by one slot.

        Raises:
            CommandError: the CQ has failed, or one of the buffers has too little room; nothing has changed.
            PagesLacking: ICM has no room for the translation.
        """
        self.write_out()
        if self.status is not CqStatus.OK or not self._consumed_by_record():
            raise CommandError(queues.CQ_RESIZE_BAD_STATE, f"CQ {self.number:#x}: status {self.status.name}")
        unread = self.producer - self.consumer
        if unread >= self._size or unread + 1 > 1 << context.log_cq_size:
            raise CommandError(
                queues.CQ_RESIZE_NO_ROOM,
                f"CQ {self.number:#x}: {unread} unread, old size {self._size}, new size {1 << context.log_cq_size}",
            )
        figures = self._fn.device.profile.icm
        more = figures.mtt * (buffer.page_count - self._buffer.page_count)
        self._fn.icm.take(more) if more > 0 else self._fn.icm.give_back(-more)
        notify, self.state = self.state, CqState.FIRED
        written = self._write(_RESIZE_CQE, CqeOpcode.RESIZE_CQ << 4, solicited=False)
        self.state = notify
        if not written:
            self._fn.icm.give_back(more)
            raise CommandError(queues.CQ_RESIZE_BAD_STATE, f"CQ {self.number:#x}: its buffer cannot be written")
        kept = Cqc(bytearray(self._context))
        kept.log_cq_size, kept.log_page_size, kept.page_offset = (
            context.log_cq_size, context.log_page_size, context.page_offset,
        )  # fmt: skip
        self._take_buffer(kept, buffer)

    def _consumed_by_record(self) -> bool:
        """Take the consumer counter of the doorbell record; tell whether it can be read."""
        try:
            self._consumed(self._record.read(self._fn.dma))
        except DmaFault:
            return False
        return True

    def _room(self, count: int) -> bool:
        """Read the consumer counter from the doorbell record: it is looked at only when the queue seems full."""
        self._consumed(self._record.read(self._fn.dma))
        return self.producer - self.consumer + count <= self._size

    def _consumed(self, counter: int) -> None:
        """Take a 24-bit consumer counter, unless it lies behind what is known already."""
        unread = (self.producer - counter) & _INDEX
        if unread <= self.producer - self.consumer:
            self.consumer = self.producer - unread

    def arm(self, request: int) -> None:
        """Take the first word of an arm doorbell: [29:28] sequence number, [24] solicited only, [23:0] consumer.

        A sequence number asks for one event: once it was given, the same number asks for nothing. A CQE that is
        there already, unread and newer than the last event, raises the event at once.
        """
        sn = request >> 28 & 3
        if sn == self._fired_sn:
            return
        self._consumed(request & _INDEX)
        only_solicited = bool(request >> 24 & 1)
        if only_solicited and self.state is _ARMED and sn == self._armed_sn:
            only_solicited = False  # the same event was asked for under the wider condition already
        unannounced = max(self.consumer, self._notified)
        if self.state is CqState.FIRED or sn != self._armed_sn:
            self._armed_from = unannounced
        self._armed_sn = sn
        self.state = _SOLICITED if only_solicited else _ARMED
        if (self.last_solicited if only_solicited else self.producer - 1) >= unannounced:
            self._notify()

    def _notify(self) -> None:
        """The notification condition holds: give the event, or let it wait for more (moderation).

        It comes with cq_max_count CQEs (0: any number), or when cq_period microseconds (0: at once) have passed since
        the last event or, in the other mode, since the last CQE that asked for it.
        """
        if not self._period or (self._count and self.producer - self._armed_from >= self._count):
            self._fire()
            return
        engine = self._fn.device.engine
        if self._period_mode is CqPeriodMode.START_FROM_CQE:
            left = self._period * 1000
            if self._timer is not None:
                self._timer.cancel()
        elif self._timer is not None and self._timer.active:
            return
        else:
            left = self._fired_at + self._period * 1000 - engine.clock.now()
        if left <= 0:
            self._fire()
        else:
            self._timer = engine.after(left, self._fire)

    def announce(self, producer: int) -> None:
        """Give the event that the CQE before index `producer` has raised; CQEs behind it may be written already."""
        if self.state is not _FIRED:
            self._fire()
            self._notified = producer

    def _fire(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.state is _FIRED:
            return
        self.state = _FIRED
        self._fired_sn = self._armed_sn
        self._notified = self.producer
        if self._period:
            self._fired_at = self._fn.device.engine.clock.now()
        self._eq.post(_COMP, _COMPLETION.pack(self.number))

    def _error(self, status: CqStatus, syndrome: CqErrorSyndrome) -> None:
        self.status = status
        self._fn.event(EventType.CQ_ERROR, EqeCqErr.pack(cqn=self.number, syndrome=syndrome))

    def end(self) -> None:
        """A notification that waits is not given any more; a CQE that waits is not written."""
        if self._compressor is not None:
            self._compressor.drop()
        if self._timer is not None:
            self._timer.cancel()

    def moderate(
        self,
        *,
        period: int | None = None,
        count: int | None = None,
        oi: bool | None = None,
        mode: CqPeriodMode | None = None,
    ) -> None:
        """Change what MODIFY_CQ may change; None leaves it."""
        self._period = self._period if period is None else period
        self._count = self._count if count is None else count
        self._overrun_ignored = self._overrun_ignored if oi is None else oi
        self._period_mode = self._period_mode if mode is None else mode

    def context(self) -> bytes:
        """The CQ context as QUERY_CQ shows it (B1): what the host has read by now, as far as its record can be read."""
        self._consumed_by_record()
        cqc = Cqc(bytearray(self._context))
        cqc.status = self.status
        cqc.st = self.state
        cqc.oi = self._overrun_ignored
        cqc.cq_period = self._period
        cqc.cq_period_mode = self._period_mode
        cqc.cq_max_count = self._count
        cqc.consumer_counter = self.consumer & _INDEX
        cqc.producer_counter = self.producer & _INDEX
        cqc.last_solicit_index = self.last_solicited & _INDEX if self.last_solicited >= 0 else 0
        cqc.last_notified_index = self._notified & _INDEX
        return bytes(cqc)

    def pages(self) -> list[int]:
        """The page list of the buffer."""
        return self._buffer.pages()


def _check_features(context: Cqc, *, umem: int) -> None:
    if umem or context.dbr_umem_valid:
        raise CommandError(syndromes.UMEM_UNSUPPORTED, "CQ: cq_umem_valid, dbr_umem_valid")
    if context.cqe_sz not in list(CqeSize):
        raise CommandError(syndromes.CQE_SIZE_UNSUPPORTED, f"cqe_sz {context.cqe_sz}, allowed are 0, 1 and 2")
    if context.apu_cq:
        raise CommandError(syndromes.CQ_CHANNEL_UNSUPPORTED, f"apu_cq {context.apu_cq}, allowed is 0")


def _period_mode(fn: Function, context: Cqc) -> CqPeriodMode:
    most = CqPeriodMode.START_FROM_CQE if fn.caps.general.cq_period_start_from_cqe else CqPeriodMode.START_FROM_EQE
    if context.cq_period_mode > most:
        raise CommandError(queues.CQ_PERIOD_MODE, f"cq_period_mode {context.cq_period_mode}, allowed up to {most}")
    return CqPeriodMode(context.cq_period_mode)


def _buffer(fn: Function, request: CreateCqIn | ModifyCqIn, context: Cqc) -> QueueBuffer:
    limit = fn.caps.general.log_max_cq_sz
    if context.log_cq_size > limit:
        raise CommandError(syndromes.BAD_QUEUE_SIZE, f"log_cq_size {context.log_cq_size}, allowed up to {limit}")
    length = _STRIDES[CqeSize(context.cqe_sz)] << context.log_cq_size
    return QueueBuffer(page_list(request), context.log_page_size, context.page_offset, length)


@command(Opcode.CREATE_CQ, CreateCqIn, CreateCqOut, partial="no enhanced compression, no UMEM")
def create_cq(fn: Function, request: CreateCqIn, reply: CreateCqOut) -> None:
    """Make a CQ that reports to an EQ."""
    context = request.cq_context
    _check_features(context, umem=request.cq_umem_valid)
    _period_mode(fn, context)
    compression.check(fn, context)
    doorbell_record(context.dbr_addr)
    eq = fn.eqs.refer(context.c_eqn_or_apu_element)
    uar = fn.uars.refer(context.uar_page)
    cq = Cq(fn, context, _buffer(fn, request, context), eq)
    reply.cqn = fn.cqs.add(cq)
    cq.refer(eq, uar)


@command(Opcode.DESTROY_CQ, DestroyCqIn, DestroyCqOut)
def destroy_cq(fn: Function, request: DestroyCqIn, reply: DestroyCqOut) -> None:
    """Take a CQ away that no queue refers to."""
    fn.cqs.remove(request.cqn)


@command(Opcode.QUERY_CQ, QueryCqIn, QueryCqOut)
def query_cq(fn: Function, request: QueryCqIn, reply: QueryCqOut) -> None:
    """A snapshot of a CQ."""
    cq = fn.cqs.get(request.cqn)
    reply.cq_context.assign(cq.context())
    reply.pas.assign(cq.pages()[: len(reply.pas)])


def _resize(fn: Function, cq: Cq, request: ModifyCqIn) -> None:
    select = request.modify_field_select_resize_field_select.resize_field_select.resize_field_select
    if select != _RESIZABLE:
        raise CommandError(queues.CQ_RESIZE_FIELDS, f"resize_field_select {select:#x}, allowed is {_RESIZABLE:#x}")
    context = request.cq_context
    if request.cq_umem_valid:
        raise CommandError(syndromes.UMEM_UNSUPPORTED, "MODIFY_CQ: cq_umem_valid")
    if _STRIDES.get(context.cqe_sz) != cq.stride:
        raise CommandError(queues.CQ_RESIZE_CQE_SIZE, f"cqe_sz {context.cqe_sz}, the CQ's CQEs are {cq.stride} bytes")
    cq.resize(context, _buffer(fn, request, context))


@command(Opcode.MODIFY_CQ, ModifyCqIn, ModifyCqOut, op_mods=tuple(ModifyCqOperation), partial="no UMEM")
def modify_cq(fn: Function, request: ModifyCqIn, reply: ModifyCqOut) -> None:
    """Change the moderation of a CQ, or whether it ignores overruns; or give it another buffer (op_mod 1)."""
    cq = fn.cqs.get(request.cqn)
    if request.op_mod == ModifyCqOperation.RESIZE_CQ:
        _resize(fn, cq, request)
        return
    select = request.modify_field_select_resize_field_select.modify_field_select.modify_field_select
    if select & ~(_MODIFIABLE if fn.caps.general.cq_period_mode_modify else _MODIFIABLE & ~ModifyCqField.PERIOD_MODE):
        raise CommandError(syndromes.CQ_FIELD_UNSUPPORTED, f"modify_field_select {select:#x}, allowed {_MODIFIABLE:#x}")
    context = request.cq_context
    cq.moderate(
        period=context.cq_period if select & ModifyCqField.PERIOD else None,
        count=context.cq_max_count if select & ModifyCqField.COUNT else None,
        oi=bool(context.oi) if select & ModifyCqField.OVERRUN else None,
        mode=_period_mode(fn, context) if select & ModifyCqField.PERIOD_MODE else None,
    )
