"""A function on a workbench: its commands are called directly, its memory is a LocalHost, its port is alone."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, cast

from softhca.bus import DmaSpace, Engine, Iova, VirtualClock
from softhca.bus.local import LocalHost
from softhca.hca.command import COMMANDS
from softhca.hca.fabric import Fabric
from softhca.hca.function import Function
from softhca.hca.health import Health
from softhca.hca.port import Port
from softhca.hca.profile import load_profile
from softhca.hca.uar import doorbell
from softhca.prm.cqe import Cqe64, CqeOpcode, ErrCqe
from softhca.prm.events import Eqe
from softhca.prm.init_segment import HealthBuffer
from softhca.prm.layout import Layout
from softhca.prm.opcodes import Opcode

PAGE = 4096
LID = 1
VECTORS = 32
SECOND = 1_000_000_000


class Card:
    """What a function asks its device for."""

    function: Function

    def __init__(self, profile: str, engine: Engine | None = None, number: int = 0) -> None:
        self.profile = load_profile(profile).numbered(number)
        self.engine = engine or Engine(VirtualClock(), seed=7)
        self.host = LocalHost(256 << 20)
        self.dma: DmaSpace = self.host.dma
        self.port = Port(self.profile)
        self.uar_pages = 8192
        self.vectors = VECTORS
        self.interrupts: list[int] = []
        self.health = Health(self.engine.clock, HealthBuffer.new())
        self.fabric = Fabric()
        self.probe = None
        self.time = 0x1122_3344_5566_7788

    def interrupt(self, vector: int) -> None:
        self.interrupts.append(vector)

    def ticks(self) -> int:
        return self.time


@dataclass
class Buffer:
    """Memory of the host: its address on the bus and a view of it."""

    iova: Iova
    view: memoryview

    def word(self, at: int) -> int:
        return int.from_bytes(self.view[at : at + 4], "big")

    def set_word(self, at: int, value: int) -> None:
        self.view[at : at + 4] = value.to_bytes(4, "big")


@dataclass
class Events:
    """An EQ and its buffer, as its driver sees it."""

    number: int
    memory: Buffer
    log_size: int
    uar: int
    consumer: int = 0

    def poll(self) -> Eqe | None:
        """The next EQE, if its owner bit says that it is there."""
        at = (self.consumer & ((1 << self.log_size) - 1)) * 64
        if self.memory.view[at + 63] & 1 != self.consumer >> self.log_size & 1:
            return None
        self.consumer += 1
        return Eqe(bytes(self.memory.view[at : at + 64]))


@dataclass
class Completions:
    """A CQ, its buffer and its doorbell record."""

    number: int
    memory: Buffer
    record: Buffer
    log_size: int
    uar: int
    consumer: int = 0
    stride: int = 64

    def raw(self) -> bytes | None:
        """The next CQE, if its owner bit says that it is there; the consumer counter moves on."""
        at = ((self.consumer & ((1 << self.log_size) - 1)) + 1) * self.stride - 64
        own = self.memory.view[at + 63]
        if own >> 4 == CqeOpcode.INVALID or own & 1 != self.consumer >> self.log_size & 1:
            return None
        self.consumer += 1
        self.record.set_word(0, self.consumer & 0xFF_FFFF)
        return bytes(self.memory.view[at : at + 64])

    def poll(self) -> Cqe64 | None:
        cqe = self.raw()
        return None if cqe is None else Cqe64(cqe)

    def good(self, opcode: CqeOpcode) -> Cqe64:
        cqe = self.poll()
        assert cqe is not None, "no CQE"
        assert cqe.opcode == opcode, cqe
        return cqe

    def error(self) -> ErrCqe:
        cqe = self.raw()
        assert cqe is not None, "no CQE"
        assert cqe[63] >> 4 in (CqeOpcode.REQ_ERR, CqeOpcode.RESP_ERR), Cqe64(cqe)
        return ErrCqe(cqe)


@dataclass
class Queue:
    """A QP, its buffer and its doorbell record."""

    bench: Bench
    number: int
    memory: Buffer
    record: Buffer
    rq_slots: int
    rq_stride: int
    sq_slots: int
    uar: int
    sends: int = 0
    receives: int = 0

    @property
    def sq_at(self) -> int:
        return self.rq_slots * self.rq_stride

    def post(self, opcode: int, *segments: bytes, flags: int = 0x08, immediate: int = 0, ring: bool = True) -> None:
        """Write a send WQE around the ring's end, then its doorbell record, then the doorbell."""
        body = b"".join(segments)
        ds = 1 + len(body) // 16
        control = struct.pack(">IIII", self.sends << 8 & 0xFFFF00 | opcode, self.number << 8 | ds, flags, immediate)
        self.post_raw(control + body, ring=ring)

    def post_raw(self, wqe: bytes, *, ring: bool = True) -> None:
        blocks = max(1, -(-len(wqe) // 64))
        wqe = wqe.ljust(blocks * 64, b"\0")
        for block in range(blocks):
            at = self.sq_at + ((self.sends + block) % self.sq_slots) * 64
            self.memory.view[at : at + 64] = wqe[block * 64 : block * 64 + 64]
        self.sends = (self.sends + blocks) & 0xFFFF
        self.record.set_word(4, self.sends)
        if ring:
            self.bench.ring(self.uar, 0x800, wqe[:8])

    def receive(self, *pointers: tuple[int, int, int]) -> None:
        """Post a receive WQE of (key, address, length) segments."""
        at = (self.receives % self.rq_slots) * self.rq_stride
        wqe = b"".join(data(*pointer) for pointer in pointers)
        if len(wqe) < self.rq_stride:
            wqe += struct.pack(">IIQ", 0, 0x100, 0)
        self.memory.view[at : at + len(wqe)] = wqe
        self.receives = (self.receives + 1) & 0xFFFF
        self.record.set_word(0, self.receives)


def data(key: int, address: int, length: int) -> bytes:
    """A data segment."""
    return struct.pack(">IIQ", length, key, address)


def inline(payload: bytes) -> bytes:
    """An inline data segment, padded to 16 bytes."""
    raw = struct.pack(">I", 1 << 31 | len(payload)) + payload
    return raw.ljust(-(-len(raw) // 16) * 16, b"\0")


def remote(address: int, key: int) -> bytes:
    """A remote address segment."""
    return struct.pack(">QII", address, key, 0)


class Bench:
    """A function that is up, with a UAR, a PD and an EQ for everything."""

    def __init__(
        self, profile: str = "connectx-6-ib", *, fabric: Fabric | None = None, engine: Engine | None = None
    ) -> None:
        self.card = Card(profile, engine, len(fabric.devices()) if fabric else 0)
        self.fn = self.card.function = Function(cast(Any, self.card))
        if self.card.port.infiniband:
            (fabric or self.card.fabric).join(cast(Any, self.card))
            self.card.fabric = fabric or self.card.fabric
        self.fn.icm.pages = dict.fromkeys(range(1 << 16))
        self.fn.forget_objects()
        self.uar = self.call(Opcode.ALLOC_UAR).uar
        self.pd = self.call(Opcode.ALLOC_PD).pd
        self.events = self.eq(mask=1 << 0x01 | 0x1F_FFFE & ~(1 << 0x06) & ~(7 << 0x0A))

    def call(self, opcode: Opcode, request: Layout | None = None, **fields: Any) -> Any:
        """Carry out a command; its reply. Raises CommandError as the handler does."""
        entry = COMMANDS[opcode]
        if request is None:
            request = entry.request.new(opcode=opcode, **fields)
        reply = entry.reply(bytearray(entry.reply.SIZE + 512))
        entry.handler(self.fn, request, reply)
        return reply

    def ring(self, page: int, offset: int, payload: bytes, *, run: bool = True) -> None:
        doorbell(self.fn, page, offset, payload)
        if run:
            self.run()

    def run(self) -> None:
        while self.card.engine.run():
            pass

    def wait(self, nanoseconds: int) -> None:
        """Let time pass."""
        self.card.engine.wait(lambda: False, nanoseconds)

    def memory(self, length: int) -> Buffer:
        return Buffer(*self.card.host.allocate(length))

    def pages(self, memory: Buffer) -> list[int]:
        return list(range(memory.iova, memory.iova + len(memory.view), PAGE))

    def eq(self, *, log_size: int = 6, mask: int = 0, vector: int = 1) -> Events:
        memory = self.memory(64 << log_size)
        memory.view[63::64] = b"\1" * (1 << log_size)
        context = {"log_eq_size": log_size, "uar_page": self.uar, "intr": vector}
        reply = self.call(
            Opcode.CREATE_EQ, eq_context_entry=context, event_bitmask=[mask, 0, 0, 0], pas=self.pages(memory)
        )
        return Events(reply.eq_number, memory, log_size, self.uar)

    def cq(self, *, log_size: int = 6, events: Events | None = None, **context: Any) -> Completions:
        stride = 128 if context.get("cqe_sz") else 64
        memory, record = self.memory(stride << log_size), self.memory(8)
        memory.view[stride - 1 :: stride] = b"\xf0" * (1 << log_size)
        fields = {
            "log_cq_size": log_size,
            "uar_page": self.uar,
            "c_eqn_or_apu_element": (events or self.events).number,
            "dbr_addr": record.iova,
        } | context
        reply = self.call(Opcode.CREATE_CQ, cq_context=fields, pas=self.pages(memory))
        return Completions(reply.cqn, memory, record, log_size, self.uar, stride=stride)

    def mkey(
        self,
        memory: Buffer,
        *,
        start: int | None = None,
        length: int | None = None,
        pages: list[int] | None = None,
        key: int = 0x42,
        pg_access: int = 0,
        **context: Any,
    ) -> int:
        """An MTT key over a buffer; its lkey and rkey. With pg_access the pages have their access bits."""
        pages = self.pages(memory) if pages is None else pages
        fields = {
            "access_mode_1_0": 1,
            "lr": 1, "lw": 1, "rr": 1, "rw": 1,
            "qpn": 0xFF_FFFF,
            "mkey_7_0": key,
            "pd": self.pd,
            "start_addr": memory.iova if start is None else start,
            "len": len(memory.view) if length is None else length,
            "log_page_size": 12,
            "translations_octword_size": (len(pages) + 1) // 2,
        } | context  # fmt: skip
        words = [half for page in [*pages, 0][: (len(pages) + 1) // 2 * 2] for half in (page >> 32, page & 0xFFFF_FFFF)]
        reply = self.call(
            Opcode.CREATE_MKEY,
            memory_key_mkey_entry=fields,
            pg_access=pg_access,
            translations_octword_actual_size=(len(pages) + 1) // 2,
            klm_pas_mtt=words,
        )
        return int(reply.mkey_index) << 8 | key

    def qp(
        self,
        send: Completions,
        receive: Completions | None = None,
        *,
        log_sq: int = 4,
        log_rq: int = 4,
        log_stride: int = 2,
        **context: Any,
    ) -> Queue:
        """A QP in RST."""
        rq_slots, stride = 1 << log_rq, 16 << log_stride
        if context.get("rq_type", 0):
            rq_slots = 0
        memory, record = self.memory(rq_slots * stride + (64 << log_sq)), self.memory(8)
        fields = {
            "pm_state": 3,
            "pd": self.pd,
            "uar_page": self.uar,
            "cqn_snd": send.number,
            "cqn_rcv": (receive or send).number,
            "log_sq_size": log_sq,
            "log_rq_size": log_rq,
            "log_rq_stride": log_stride,
            "user_index": 0xFF_FFFF,
            "dbr_addr": record.iova,
        } | context
        reply = self.call(Opcode.CREATE_QP, qpc=fields, pas=self.pages(memory))
        return Queue(self, reply.qpn, memory, record, rq_slots, stride, 1 << log_sq, fields["uar_page"])

    def to_init(self, queue: Queue, **context: Any) -> None:
        fields: dict[str, Any] = {"rre": 1, "rwe": 1, "primary_address_path": {"vhca_port_num": 1}} | context
        self.call(Opcode.RST2INIT_QP, qpn=queue.number, qpc=fields)

    def to_rtr(self, queue: Queue, peer: int, **context: int) -> None:
        path = {"rlid": context.pop("rlid", LID), "vhca_port_num": 1}
        fields: dict[str, Any] = {
            "mtu": 5, "log_msg_max": 30, "remote_qpn": peer, "min_rnr_nak": 12, "primary_address_path": path,
        } | context  # fmt: skip
        self.call(Opcode.INIT2RTR_QP, qpn=queue.number, qpc=fields)

    def to_rts(self, queue: Queue, *, ack_timeout: int = 14, **context: int) -> None:
        path = {"ack_timeout": ack_timeout}
        fields: dict[str, Any] = {"retry_count": 7, "rnr_retry": 7, "primary_address_path": path} | context
        self.call(Opcode.RTR2RTS_QP, qpn=queue.number, qpc=fields)

    def connect(self, left: Queue, right: Queue) -> None:
        """Bring two QPs to RTS, each the other's peer; or one that is its own."""
        for queue, peer in ((left, right), (right, left))[: 1 if left is right else 2]:
            self.to_init(queue)
            self.to_rtr(queue, peer.number)
            self.to_rts(queue)
        self.run()

    def state(self, queue: Queue) -> int:
        return int(self.call(Opcode.QUERY_QP, qpn=queue.number).qpc.state)
