"""Messages between two RC QPs of one card, in one process: the whole way through the device.

What is timed is the device: the doorbell's write to BAR0, then the engine until nothing is ready. The WQEs lie in
their queues already and the CQs are armed before; what a host does (posting, polling, arming) is not in the figures.
Every WQE is signalled, so that a WRITE takes one CQE and a SEND two, and each CQ gives one event a doorbell.
"""

from __future__ import annotations

import random
import statistics
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from benchmarks.card import no_collection
from benchmarks.report import Line, NotMeasured, amount, later, rate
from softhca.bus import Engine, RealClock
from softhca.bus.local import LocalHost
from softhca.driver import Driver, bring_up
from softhca.driver.cmd import CommandChannel
from softhca.driver.memory import Buffer
from softhca.driver.qp import RECEIVE_STRIDE, QueuePair
from softhca.hca.device import Hca
from softhca.hca.profile import load_profile
from softhca.prm.cq import CreateCqIn, CreateCqOut
from softhca.prm.cqe import Cqe64
from softhca.prm.eq import CreateEqIn, CreateEqOut
from softhca.prm.events import Eqe
from softhca.prm.mkey import ANY_QP, AccessMode, CreateMkeyIn, CreateMkeyOut
from softhca.prm.opcodes import Opcode
from softhca.prm.uar import CQ_ARM, EQ_ARM, SEND_FIRST, UAR_PAGE
from softhca.prm.wqe import WQEBB, WqeOpcode

PAGE = 4096
DEPTH = 128
_KEY_BYTE = 0x77
_VECTOR = 5
_LOG_EQ = 10
_SIGNALLED = 0x08
_BUSY = 16
MOST_GROWTH = 1.5
"""Caches of the processor make a message somewhat dearer when the queues and keys in use are many."""


class Rig:
    """A card that is up, with raw queues of the benchmark's own.

    Args:
        memory: bytes of the machine.
    """

    def __init__(self, memory: int = 1 << 30) -> None:
        self.card = Hca(Engine(RealClock()), load_profile("connectx-6-ib"))
        self.host = LocalHost(memory)
        self.host.plug(self.card)
        self.driver = Driver(self.card, self.host)
        bring_up(self.driver)
        assert self.driver.uar is not None
        self.channel: CommandChannel = self.driver.channel
        self.uar = self.driver.uar
        self.page = self.uar.number * UAR_PAGE
        self.pd = self.driver.create_pd()
        self.eq = Buffer(self.host, Eqe.SIZE << _LOG_EQ)
        context = {"log_eq_size": _LOG_EQ, "uar_page": self.uar.number, "intr": _VECTOR}
        request = CreateEqIn.new(eq_context_entry=context, pas=self.eq.pages)
        self.eqn = self.channel.execute(Opcode.CREATE_EQ, request, CreateEqOut).eq_number
        self.random = random.Random(1)

    def _key(self, length: int, pages: list[int]) -> CreateMkeyIn:
        octwords = (len(pages) + 1) // 2
        words = [half for page in pages for half in (page >> 32, page & 0xFFFF_FFFF)]
        words += [0] * (octwords * 4 - len(words))
        context = {
            "access_mode_1_0": AccessMode.MTT,
            "lr": 1, "lw": 1, "rr": 1, "rw": 1,
            "pd": self.pd.number,
            "qpn": ANY_QP,
            "mkey_7_0": _KEY_BYTE,
            "start_addr": 1 << 40,
            "len": length,
            "log_page_size": 12,
            "translations_octword_size": octwords,
        }  # fmt: skip
        return CreateMkeyIn.new(
            memory_key_mkey_entry=context, translations_octword_actual_size=octwords, klm_pas_mtt=words
        )

    def _register(self, request: CreateMkeyIn, pages: list[int]) -> Region:
        index = self.channel.execute(Opcode.CREATE_MKEY, request, CreateMkeyOut).mkey_index
        return Region(index << 8 | _KEY_BYTE, 1 << 40, pages)

    def region(self, length: int, *, shuffled: bool = True, pages: list[int] | None = None) -> Region:
        """Registered memory of `length` bytes; its pages are those of the machine in another order, or in theirs."""
        if pages is None:
            pages = Buffer(self.host, length).pages
            if shuffled:
                self.random.shuffle(pages)
        return self._register(self._key(length, pages), pages)

    def regions(self, count: int) -> list[Region]:
        """`count` keys over the same two pages."""
        pages = Buffer(self.host, 2 * PAGE).pages[::-1]
        request = self._key(2 * PAGE, pages)
        return [self._register(request, pages) for _ in range(count)]

    def cq(self, log_size: int) -> Cq:
        """A CQ."""
        buffer, record = Buffer(self.host, Cqe64.SIZE << log_size), Buffer(self.host, 8)
        buffer.view[Cqe64.SIZE - 1 :: Cqe64.SIZE] = b"\xf1" * (1 << log_size)
        context = {
            "log_cq_size": log_size,
            "uar_page": self.uar.number,
            "c_eqn_or_apu_element": self.eqn,
            "dbr_addr": record.iova,
        }
        request = CreateCqIn.new(cq_context=context, pas=buffer.pages)
        return Cq(self, self.channel.execute(Opcode.CREATE_CQ, request, CreateCqOut).cqn, buffer, record, log_size)

    def pair(self, log_size: int = 7, own: tuple[Cq, Cq] | None = None) -> Pair:
        """Two connected QPs, with CQs of their own for what the first sends and the second receives, or the given."""
        send_cq, receive_cq = own or (self.cq(log_size), self.cq(log_size))
        cqs = cast(Any, (send_cq, receive_cq))  # of these, their numbers are all that is wanted
        ends = [
            QueuePair(self.channel, self.host, self.uar, self.pd, self.driver.port, *cqs, log_size=log_size)
            for _ in (0, 1)
        ]
        for end, peer in (ends, ends[::-1]):
            end.connect(peer.endpoint)
        return Pair(self, ends[0], ends[1], send_cq, receive_cq, 1 << log_size)

    def rearm(self, cqs: list[Cq], events: int) -> None:
        """What a host does between two doorbells: it has read all CQEs and EQEs, and asks for the next events."""
        write = self.card.bar_write
        if events:
            write(0, self.page + EQ_ARM, (self.eqn << 24 | events & 0xFF_FFFF).to_bytes(4, "big"))
        for cq in cqs:
            cq.sequence = (cq.sequence + 1) & 3
            cq.record.view[0:4] = (cq.consumer & 0xFF_FFFF).to_bytes(4, "big")
            request = cq.sequence << 28 | cq.consumer & 0xFF_FFFF
            write(0, self.page + CQ_ARM, (request << 32 | cq.number).to_bytes(8, "big"))


@dataclass
class Region:
    """Registered memory: key, first address, pages."""

    key: int
    address: int
    pages: list[int]


@dataclass
class Cq:
    """A CQ as its host sees it."""

    rig: Rig
    number: int
    buffer: Buffer
    record: Buffer
    log_size: int
    consumer: int = 0
    sequence: int = 0

    def check(self, count: int) -> None:
        """Take `count` CQEs; they must all be there and good."""
        size = 1 << self.log_size
        for index in (self.consumer, self.consumer + count - 1):
            at = (index & (size - 1)) * Cqe64.SIZE
            own = self.buffer.view[at + Cqe64.SIZE - 1]
            if own >> 4 > 3 or own & 1 != index >> self.log_size & 1:
                raise NotMeasured(f"CQ {self.number:#x}: CQE {index} has op_own {own:#x}")
        self.consumer += count


@dataclass
class Pair:
    """Two QPs: the first sends, the second receives."""

    rig: Rig
    left: QueuePair
    right: QueuePair
    send_cq: Cq
    receive_cq: Cq
    slots: int
    posted: int = 0
    received: int = 0
    sends: bool = False

    def fill(
        self,
        opcode: WqeOpcode,
        length: int,
        source: Region,
        target: Region,
        stride: int,
        regions: list[Region] | None = None,
    ) -> None:
        """Fill both rings: each WQE has its own place, `stride` bytes behind the one before it.

        With `regions`, source and target are taken from all over these, each WQE's from others.
        """
        span = len(source.pages) * PAGE
        self.sends = opcode is WqeOpcode.SEND
        for slot in range(self.slots):
            at = slot * stride % (span - length + 1)
            if regions:
                step = max(1, len(regions) // self.slots)
                source, target = regions[slot * step % len(regions)], regions[-1 - slot * step % len(regions)]
            data = struct.pack(">IIQ", length, source.key, source.address + at)
            remote = b"" if self.sends else struct.pack(">QII", target.address + at, target.key, 0)
            ds = 1 + (len(remote) + len(data)) // 16
            control = struct.pack(">IIII", slot << 8 | opcode, self.left.number << 8 | ds, _SIGNALLED, 0)
            wqe = (control + remote + data).ljust(WQEBB, b"\0")
            first = RECEIVE_STRIDE * self.slots + slot * WQEBB
            self.left.buffer.view[first : first + WQEBB] = wqe
            receive = struct.pack(">IIQ", length, target.key, target.address + at)
            self.right.buffer.view[slot * RECEIVE_STRIDE : (slot + 1) * RECEIVE_STRIDE] = receive

    def drain(self, depth: int) -> int:
        """Ring for `depth` more WQEs and let the card carry them out; nanoseconds that it took."""
        rig, left = self.rig, self.left
        cqs = [self.send_cq, self.receive_cq] if self.sends else [self.send_cq]
        self.posted += depth
        if self.sends:
            self.received += depth
            self.right.doorbell_record.view[0:4] = (self.received & 0xFFFF).to_bytes(4, "big")
        record = left.doorbell_record.view
        counter = (self.posted & 0xFFFF).to_bytes(4, "big")
        ring, run, at = rig.card.bar_write, rig.card.engine.run, rig.page + SEND_FIRST
        last = (self.posted - 1 & self.slots - 1) * WQEBB + RECEIVE_STRIDE * self.slots
        doorbell = bytes(left.buffer.view[last : last + 8])
        start = time.perf_counter_ns()
        record[4:8] = counter
        ring(0, at, doorbell)
        while run():
            pass
        took = time.perf_counter_ns() - start
        for cq in cqs:
            cq.check(depth)
        rig.rearm(cqs, rig.card.function.eqs.get(rig.eqn).producer)
        return took


Measure = Callable[[], float]


def message(opcode: WqeOpcode, length: int, *, depth: int = DEPTH, stride: int = 64) -> Measure:
    """What measures messages a second: `depth` WQEs a doorbell, over lists of shuffled pages of 4 KiB.

    Args:
        opcode: of all WQEs.
        length: bytes of a message.
        depth: WQEs for each doorbell.
        stride: bytes from one message to the next; with a page or more, each one lies in another page.
    """
    rig = Rig(256 << 20)
    pair = rig.pair()
    span = -(-(DEPTH * stride + length) // PAGE) * PAGE
    pair.fill(opcode, length, rig.region(span), rig.region(span), stride)
    rig.rearm([pair.send_cq, pair.receive_cq], 0)
    return lambda: 1e9 / _cost([pair], depth)


def _cost(pairs: list[Pair], depth: int, messages: int = 20_000) -> float:
    """Nanoseconds for a message, median of the doorbells, which go to the pairs in turn."""
    with no_collection():
        took = [pairs[turn % len(pairs)].drain(depth) for turn in range(max(40, messages // depth))]
    return float(statistics.median(took)) / depth


def big_write(length: int = 1 << 20, span: int = 256 << 20, depth: int = 8) -> Measure:
    """What measures the rate of RDMA WRITEs as a multiple of `mmap.move` between the same buffers.

    Both walk through the same `span` bytes in the same steps, one after the other; pages are in the machine's order.
    """
    rig = Rig(2 * span + (128 << 20))
    pair = rig.pair()
    source, target = rig.region(span, shuffled=False), rig.region(span, shuffled=False)
    pair.fill(WqeOpcode.RDMA_WRITE, length, source, target, 2 * length)
    memory = rig.card.dma.mapping(source.pages[0], 1)
    move, start = memory.store.move, memory.start  # type: ignore[union-attr]
    rig.rearm([pair.send_cq], 0)

    def measure() -> float:
        device = bare = 0
        with no_collection():
            for turn in range(span // (2 * length * depth)):
                device += pair.drain(depth)
                begin = time.perf_counter_ns()
                for number in range(turn * depth, (turn + 1) * depth):
                    at = (2 * number + 1) * length
                    move(target.pages[0] - start + at, source.pages[0] - start + at, length)
                bare += time.perf_counter_ns() - begin
        return bare / device

    return measure


def with_queues(count: int) -> list[Pair]:
    """Pairs to send over, when there are `count` QPs on the card."""
    rig = Rig(512 << 20)
    cqs = rig.cq(7), rig.cq(7)
    pairs = [rig.pair(4, cqs) for _ in range(max(1, count // 2))]
    region = rig.region(1 << 16)
    busy = pairs[:: max(1, len(pairs) // _BUSY)][:_BUSY]
    for pair in busy:
        pair.fill(WqeOpcode.SEND, 64, region, region, 64)
    rig.rearm(list(cqs), 0)
    return busy


def with_regions(count: int) -> list[Pair]:
    """A pair that uses another key for each message, as far as there are that many, when there are `count`."""
    rig = Rig(256 << 20)
    regions = rig.regions(count)
    pair = rig.pair()
    pair.fill(WqeOpcode.RDMA_WRITE, 64, regions[0], regions[-1], 64, regions)
    rig.rearm([pair.send_cq], 0)
    return [pair]


def with_pages(count: int) -> list[Pair]:
    """A pair whose messages lie all over a region of `count` pages, in the machine's memory in disorder."""
    rig = Rig(256 << 20)
    some = Buffer(rig.host, 1 << 20).pages
    pages = [rig.random.choice(some) for _ in range(count)]
    region = rig.region(count * PAGE, pages=pages)
    pair = rig.pair()
    pair.fill(WqeOpcode.RDMA_WRITE, 64, region, region, max(PAGE, count // DEPTH * PAGE))
    rig.rearm([pair.send_cq], 0)
    return [pair]


def _growth(name: str, make: Callable[[int], list[Pair]], counts: tuple[int, ...], depth: int) -> Line:
    """How much dearer a message is with the most than with the fewest of something; the note has the curve.

    The costs are taken in turn, three times, and the lowest counts, so that what else the machine does shows least.
    """
    made = {count: make(count) for count in counts}
    costs = dict.fromkeys(counts, float("inf"))
    for _ in range(3):
        costs = {count: min(costs[count], _cost(pairs, depth, 4000)) for count, pairs in made.items()}
    ratio = costs[counts[-1]] / costs[counts[0]]
    curve = ", ".join(f"{count:,}: {cost:,.0f}" for count, cost in costs.items())
    return Line(name, "times dearer", MOST_GROWTH, MOST_GROWTH, ratio, [ratio], None, False, f"ns a message: {curve}")


def lines() -> list[Line]:
    """All figures of this module."""
    write, send, read = WqeOpcode.RDMA_WRITE, WqeOpcode.SEND, WqeOpcode.RDMA_READ
    ratio = amount("in process: 1 MiB WRITE, of mmap.move", 0.8, later(big_write), unit="")
    return [
        rate("in process: 64 B WRITE", 400_000, later(lambda: message(write, 64))),
        rate("in process: 64 B SEND", 250_000, later(lambda: message(send, 64))),
        rate("in process: 64 B READ", None, later(lambda: message(read, 64))),
        rate("in process: 64 B SEND, depth 4", 200_000, later(lambda: message(send, 64, depth=4))),
        rate("in process: 64 B SEND, depth 1", None, later(lambda: message(send, 64, depth=1))),
        rate("in process: 64 B WRITE, each in another page", None, later(lambda: message(write, 64, stride=PAGE + 64))),
        rate("in process: 4 KiB WRITE", None, later(lambda: message(write, 4096, stride=PAGE))),
        replace(ratio, higher=True),
        _growth("in process: QPs there", with_queues, (2, 20, 200, 2_000, 10_000), 16),
        _growth("in process: keys in use", with_regions, (128, 1_000, 10_000, 100_000), DEPTH),
        _growth("in process: pages of a key", with_pages, (256, 4_096, 65_536, 262_144), DEPTH),
    ]
