"""Event queues: EQEs in host memory, arming, the MSI-X vector, and which events go where (A4, A5, D8)."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from softhca.hca.command import command
from softhca.hca.errors import CommandError
from softhca.hca.objects import HcaObject
from softhca.hca.wq import QueueBuffer, Slots, page_list
from softhca.points import catalogue as points
from softhca.prm.codec import codec, joined
from softhca.prm.eq import (
    CreateEqIn,
    CreateEqOut,
    DestroyEqIn,
    DestroyEqOut,
    Eqc,
    EqState,
    EqStatus,
    QueryEqIn,
    QueryEqOut,
)
from softhca.prm.events import Eqe, EventType
from softhca.prm.init_segment import HealthSyndrome
from softhca.prm.opcodes import Opcode
from softhca.prm.syndromes import objects as syndromes

if TYPE_CHECKING:
    from softhca.hca.function import Function

_OK = EqStatus.OK
_OWNER = Eqe.SIZE - 1
_EQE = joined(codec(Eqe, "type", "sub_type", length=Eqe.FIELDS["data"].offset), Struct(">28s"), length=_OWNER)
_INDEX = 0xFF_FFFF
"""Counters of an EQ are 24 bits wide."""


class Eq(HcaObject):
    """An event queue.

    Attributes:
        consumer, producer: EQEs read by the host and written by the device, counted from the creation.
        lost: EQEs that found no room or could not be written.
    """

    KIND = "EQ"

    def __init__(self, fn: Function, context: Eqc, buffer: QueueBuffer, events: tuple[EventType, ...]) -> None:
        super().__init__()
        self._fn = fn
        self._context = bytes(context)
        self._buffer = buffer
        self._entries = Slots(buffer, 0, Eqe.SIZE, write=True)
        figures = fn.device.profile.icm
        self._room = figures.eqc + figures.mtt * buffer.page_count
        self._log_size = context.log_eq_size
        self._size = 1 << context.log_eq_size
        self._overrun_ignored = bool(context.oi)
        self.events = events
        self.uar = context.uar_page
        self.interrupt = context.intr
        self.status = EqStatus.OK
        self.armed = True  # a new EQ is armed; the driver relies on it
        self.consumer = 0
        self.producer = 0
        self.lost = 0

    def icm_bytes(self) -> int:
        """Room of the context and its translation (bytes)."""
        return self._room

    def post(self, kind: EventType, data: bytes, subtype: int = 0) -> bool:
        """Write an EQE, its owner byte last, alone; raise the interrupt if the EQ is armed. Tell whether it is there.

        Without room nothing is overwritten: the EQ goes into its error status and the device's health says so.

        Args:
            kind: type of event.
            data: up to 28 bytes of event data.
            subtype: sub-type of the event.
        """
        probe = self._fn.device.probe
        if probe is not None:
            fault = probe.hit(points.EQE, self._fn.function_id, self.number, kind, subtype, data)
            if fault is not None and fault.effect is points.DROP:
                return True
            if fault is not None and fault.effect is points.DUPLICATE:
                self._write(kind, data, subtype)
        return self._write(kind, data, subtype)

    def _write(self, kind: EventType, data: bytes, subtype: int) -> bool:
        if self.status is not _OK:
            self.lost += 1
            return False
        if self.producer - self.consumer >= self._size and not self._overrun_ignored:
            self._fail(HealthSyndrome.ASYNCHRONOUS_EQ_BUF_OVERRUN)
            return False
        slot = self.producer & (self._size - 1)
        entries = self._entries
        if not entries.find(self._fn.dma, slot):
            self._fail(HealthSyndrome.EQ_IN_ERR)
            return False
        store, at = entries.mapping.store, entries.base + slot * Eqe.SIZE
        _EQE.pack_into(store, at, kind, subtype, data)
        store[at + _OWNER] = self.producer >> self._log_size & 1
        self.producer += 1
        if self.armed:
            self._fire()
        return True

    def _fire(self) -> None:
        self.armed = False
        probe = self._fn.device.probe
        if probe is None or probe.hit(points.INTERRUPT, self._fn.function_id, self.interrupt) is None:
            self._fn.device.interrupt(self.interrupt)

    def _fail(self, why: HealthSyndrome) -> None:
        """Write no more; the manual has one status for this, and the health syndrome says why."""
        self.status = EqStatus.EQ_WRITE_FAILURE
        self.lost += 1
        self._fn.device.health.report(why, self.number)

    def update(self, counter: int, *, arm: bool) -> bool:
        """Take a consumer counter from a doorbell (24 bits); tell whether it is one that can be.

        With `arm`, the next EQE raises the interrupt, at once when it is there already.
        """
        unread = (self.producer - counter) & _INDEX
        if unread > self.producer - self.consumer:
            return False
        self.consumer = self.producer - unread
        if arm:
            self.armed = True
            if unread:
                self._fire()
        return True

    def context(self) -> bytes:
        """The EQ context as QUERY_EQ shows it (B1)."""
        eqc = Eqc(bytearray(self._context))
        eqc.status = self.status
        eqc.st = EqState.ARMED if self.armed else EqState.FIRED
        eqc.consumer_counter = self.consumer & _INDEX
        eqc.producer_counter = self.producer & _INDEX
        return bytes(eqc)

    def pages(self) -> list[int]:
        """The page list of the buffer."""
        return self._buffer.pages()


def _events_of(fn: Function, request: CreateEqIn) -> tuple[EventType, ...]:
    events = []
    for word, mask in enumerate(request.event_bitmask):
        while mask:
            number = word * 64 + (mask & -mask).bit_length() - 1
            mask &= mask - 1
            try:
                event = EventType(number)
            except ValueError:
                raise CommandError(syndromes.EVENT_UNKNOWN, f"event_bitmask: event {number:#x}") from None
            if event in fn.event_map:
                raise CommandError(
                    syndromes.EVENT_TAKEN, f"event {event.name} is mapped to EQ {fn.event_map[event].number:#x}"
                )
            events.append(event)
    return tuple(events)


@command(Opcode.CREATE_EQ, CreateEqIn, CreateEqOut)
def create_eq(fn: Function, request: CreateEqIn, reply: CreateEqOut) -> None:
    """Make an EQ and map its events to it; from here on they are reported there."""
    context = request.eq_context_entry
    limit = fn.caps.general.log_max_eq_sz
    if context.log_eq_size > limit:
        raise CommandError(syndromes.BAD_QUEUE_SIZE, f"log_eq_size {context.log_eq_size}, allowed up to {limit}")
    if context.intr >= fn.device.vectors:
        raise CommandError(syndromes.BAD_INTERRUPT, f"intr {context.intr}, vectors are {fn.device.vectors}")
    events = _events_of(fn, request)
    if EventType.CMD in events:
        fn.device.commands.require_alone()
    uar = fn.uars.refer(context.uar_page)
    length = Eqe.SIZE << context.log_eq_size
    buffer = QueueBuffer(page_list(request), context.log_page_size, context.page_offset, length)
    eq = Eq(fn, context, buffer, events)
    reply.eq_number = fn.eqs.add(eq)
    eq.refer(uar)
    for event in events:
        fn.event_map[event] = eq
    if EventType.PAGE_REQUEST in events:
        fn.vfs.serve(True)


@command(Opcode.DESTROY_EQ, DestroyEqIn, DestroyEqOut)
def destroy_eq(fn: Function, request: DestroyEqIn, reply: DestroyEqOut) -> None:
    """Take an EQ away that no CQ refers to; its events are mapped nowhere after this (F3)."""
    eq = fn.eqs.remove(request.eq_number)
    for event in eq.events:
        del fn.event_map[event]
    if EventType.PAGE_REQUEST in eq.events:
        fn.icm.asked = False  # a request that was not answered has gone with its queue
        fn.vfs.serve(False)


@command(Opcode.QUERY_EQ, QueryEqIn, QueryEqOut)
def query_eq(fn: Function, request: QueryEqIn, reply: QueryEqOut) -> None:
    """A snapshot of an EQ."""
    eq = fn.eqs.get(request.eq_number)
    reply.eq_context_entry.assign(eq.context())
    reply.event_bitmask = sum(1 << event for event in eq.events if event < 64)
    pages = eq.pages()
    reply.pas.assign(pages[: len(reply.pas)])
