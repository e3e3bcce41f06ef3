"""The fast loop: the same as the general path, on random streams; and what goes through it."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softhca.bus import Engine, VirtualClock
from softhca.hca import fast, sq
from softhca.hca.device import Hca
from softhca.hca.function import Function
from softhca.hca.profile import load_profile
from softhca.hca.qp_context import Qp
from softhca.hca.translation import PageTable
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import QpState
from softhca.prm.registers import PortAdminStatus
from softhca.prm.uar import CQ_ARM
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import PAGE, Bench, Buffer, Completions, Queue, data, inline, remote
from tests.hca.test_srq import Pool, rmp

SPAN = 5 * PAGE
START = 0x7000_0000_0123
SHUFFLE = (3, 0, 1, 4, 2)
PSN = 0xFF_FFF0

Taken = list[int]


@pytest.fixture(scope="module", autouse=True)
def taken() -> Iterator[Taken]:
    """How many WQEs each turn of the fast loop carried out."""
    turns: Taken = []

    def counted(fn: Function, qp: Qp, most: int, allowance: int) -> tuple[int, int]:
        done, moved = fast.carry_out(fn, qp, most, allowance)
        turns.append(done)
        return done, moved

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sq, "carry_out_fast", counted)
        yield turns


@dataclass(frozen=True)
class Send:
    """A send work request."""

    opcode: int
    key: int
    here: int
    their_key: int
    there: int
    length: int
    segments: int = 1
    carried: bool = False
    flags: int = 8
    flame: bool = False


@dataclass(frozen=True)
class Step:
    """A step of a stream: `count` send WQEs, each `at` bytes behind the other, or what else a host does."""

    side: int
    send: Send | None = None
    what: str = ""
    ring: bool = True
    key: int = 0
    at: int = 0
    length: int = 0
    count: int = 1


@dataclass(frozen=True)
class Scene:
    """How the two ends are made."""

    log_cq: int = 6
    log_sq: int = 4
    pool: bool = False
    inline: int = 0
    psn: int = PSN
    mtu: int = 1
    rnr_retry: int = 7
    one_cq: bool = False
    oi: int = 0
    user_index: int = 0xFF_FFFF


@dataclass
class Ends:
    """Two connected QPs on a bench, with memory behind several kinds of key."""

    bench: Bench
    queues: list[Queue]
    sent: Completions
    received: Completions
    memory: Buffer
    keys: list[tuple[int, int]]
    pool: Pool | None
    end: int
    sequence: dict[int, int] = field(default_factory=dict)

    def qp(self, side: int) -> Qp:
        found = self.bench.fn.qps.find(self.queues[side].number)
        assert found is not None
        return found

    def send(self, side: int, wqe: Send, *, ring: bool) -> None:
        """Post a send WQE, if the queue has room for it."""
        queue = self.queues[side]
        key, base = self.keys[wqe.key]
        their_key, their_base = self.keys[wqe.their_key]
        parts = [remote(their_base + wqe.there, their_key)] if wqe.opcode in REMOTE else []
        if wqe.opcode in ATOMIC:
            parts.append(struct.pack(">QQ", 1, 2))
        if wqe.carried:
            parts.append(inline(bytes(range(1, wqe.length % 80 + 1))))
        else:
            parts += [data(key, base + wqe.here + 8 * i, wqe.length) for i in range(wqe.segments)]
        free = queue.sq_slots - (queue.sends - self.qp(side).sq_head & 0xFFFF)
        if free * 64 < 16 + sum(map(len, parts)):
            return
        at = queue.sq_at + queue.sends % queue.sq_slots * 64
        queue.post(wqe.opcode, *parts, flags=wqe.flags, immediate=0xABCD_0001, ring=ring and not wqe.flame)
        if wqe.flame and ring:
            self.bench.ring(queue.uar, 0x800, bytes(queue.memory.view[at : at + 64]))

    def receive(self, side: int, key: int, at: int, length: int) -> None:
        """Post a receive WQE, if the queue has room for it."""
        number, base = self.keys[key]
        if self.pool is not None and side == 1:
            pool = self.bench.fn.receive_pools.get(self.pool.number)
            if self.pool.posted - pool.taken & 0xFFFF < pool.slots:
                self.pool.post(self.pool.posted % pool.slots, number, base + at, length)
        elif self.queues[side].receives - self.qp(side).rq_head & 0xFFFF < self.queues[side].rq_slots:
            self.queues[side].receive((number, base + at, length))

    def do(self, step: Step) -> None:
        """Do a step of a stream."""
        cq = self.received if step.side else self.sent
        if step.send is not None:
            for number in range(step.count):
                wqe = replace(step.send, here=step.send.here + number * step.at)
                self.send(step.side, wqe, ring=step.ring and number == step.count - 1)
        elif step.what == "poll":
            while cq.raw() is not None:
                pass
        elif step.what == "arm":
            self.arm(cq, solicited=step.ring)
        elif step.what == "limit" and self.pool is not None:
            self.bench.fn.receive_pools.get(self.pool.number).arm(step.at % 8)
        elif step.what == "wait":
            self.bench.wait(step.at * 1000)
        elif step.what == "receive":
            for _ in range(step.count):
                self.receive(step.side, step.key, step.at, step.length)

    def arm(self, cq: Completions, *, solicited: bool) -> None:
        sequence = self.sequence[cq.number] = self.sequence.get(cq.number, 0) + 1 & 3
        request = sequence << 28 | solicited << 24 | cq.consumer & 0xFF_FFFF
        self.bench.ring(cq.uar, CQ_ARM, (request << 32 | cq.number).to_bytes(8, "big"), run=False)

    def shows(self) -> dict[str, Any]:
        """All that can be seen of the two ends."""
        bench, host = self.bench, self.bench.card.host
        contexts = [bytes(bench.call(Opcode.QUERY_QP, qpn=queue.number).qpc) for queue in self.queues]
        cqs = [bytes(bench.call(Opcode.QUERY_CQ, cqn=cq.number).cq_context) for cq in (self.sent, self.received)]
        inner = [[getattr(self.qp(side), name) for name in INNER] for side in (0, 1)]
        first, last = bench.events.memory.iova, self.end
        pool = bench.fn.receive_pools.find(self.pool.number) if self.pool else None
        return {
            "memory": bytes(host.dma.view(first, last - first)),
            "queues": contexts,
            "cqs": cqs,
            "inner": inner,
            "pool": pool and (pool.taken, pool.head, pool.lwm, pool.failed),
            "counters": {k: v for k, v in vars(bench.fn.default_counters).items() if not k.startswith("_")},
            "traffic": bench.card.port.traffic,
            "interrupts": bench.card.interrupts,
        }


INNER = ("sq_head", "rq_head", "send_psn", "receive_psn", "receive_msn", "retries", "rnr_retries",
         "carried", "pushed", "state", "established", "lost")  # fmt: skip
ATOMIC = (WqeOpcode.ATOMIC_CS, WqeOpcode.ATOMIC_FA)
REMOTE = frozenset((WqeOpcode.RDMA_WRITE, WqeOpcode.RDMA_WRITE_IMM, WqeOpcode.RDMA_READ, *ATOMIC))


def make(scene: Scene, *, quick: bool) -> Ends:
    bench = Bench()
    bench.fn.fast = quick
    memory = bench.memory(SPAN)
    memory.view[:] = bytes(i * 7 & 0xFF for i in range(SPAN))
    pages = [memory.iova + i * PAGE for i in SHUFFLE]
    other = bench.call(Opcode.ALLOC_PD).pd
    size: dict[str, Any] = {"start": START, "length": SPAN - START % PAGE}
    keys = [
        (bench.mkey(memory, pages=pages, **size), START),
        (bench.mkey(memory, key=1, **size), START),
        (bench.mkey(memory, pages=[], access_mode_1_0=0, start=memory.iova, key=2), memory.iova),
        (bench.mkey(memory, key=3, lw=0, rw=0, **size), START),
        (bench.mkey(memory, key=4, lr=0, rr=0, **size), START),
        (bench.mkey(memory, key=5, pd=other, **size), START),
        (0x7777_7742, START),
    ]
    sent, received = (bench.cq(log_size=scene.log_cq, oi=scene.oi) for _ in (0, 1))
    if scene.one_cq:
        received = sent
    pool = rmp(bench) if scene.pool else None
    context: dict[str, Any] = {"cs_res": scene.inline, "user_index": scene.user_index}
    if pool:
        context |= {"rq_type": 1, "srqn_rmpn_xrqn": pool.number}
    left = bench.qp(sent, sent, log_sq=scene.log_sq)
    right = bench.qp(sent, received, log_sq=scene.log_sq, **context)
    for queue, peer in ((left, right), (right, left)):
        bench.to_init(queue)
        bench.to_rtr(queue, peer.number, mtu=scene.mtu, next_rcv_psn=scene.psn)
        bench.to_rts(queue, next_send_psn=scene.psn, rnr_retry=scene.rnr_retry)
    bench.run()
    return Ends(bench, [left, right], sent, received, memory, keys, pool, bench.memory(1).iova)


good = st.sampled_from((0, 0, 0, 1, 2))
COMMON = (WqeOpcode.RDMA_WRITE, WqeOpcode.SEND, WqeOpcode.SEND_IMM, WqeOpcode.RDMA_READ)
RARE = (WqeOpcode.RDMA_WRITE_IMM, WqeOpcode.NOP, WqeOpcode.ATOMIC_FA, WqeOpcode.SEND_INVAL)
EDGES = (0, PAGE - START % PAGE - 8, SPAN - START % PAGE - 70, SPAN)


def mostly(common: st.SearchStrategy[int], rare: st.SearchStrategy[int], odds: int) -> st.SearchStrategy[int]:
    """The common one, but for one time in `odds`."""
    return st.integers(0, odds - 1).flatmap(lambda draw: rare if draw == odds - 1 else common)


any_key = mostly(good, st.integers(0, 6), 30)
places = mostly(st.integers(0, SPAN - 2 * PAGE), st.sampled_from(EDGES), 20)
lengths = mostly(st.integers(1, 600), st.sampled_from((0, 256, 257, 4096, 9000)), 10)
opcodes = mostly(st.sampled_from(COMMON), st.sampled_from(RARE), 10)
sends = st.builds(
    Send,
    opcodes,
    any_key,
    places,
    any_key,
    places,
    lengths,
    segments=mostly(st.just(1), st.integers(2, 3), 10),
    carried=st.sampled_from((False, False, False, True)),
    flags=st.sampled_from((0, 8, 8, 8, 0x0A, 2)),
    flame=st.booleans(),
)
sides = st.sampled_from((0, 0, 0, 1))
strides = st.sampled_from((0, 64, 300))
rung = mostly(st.just(1), st.just(0), 4)
bursts = st.builds(Step, sides, sends, ring=rung, at=strides, count=st.integers(1, 12))
steps = st.one_of(
    bursts,
    bursts,
    bursts,
    st.builds(
        Step,
        st.sampled_from((0, 1, 1, 1)),
        what=st.just("receive"),
        key=any_key,
        at=places,
        length=mostly(st.just(PAGE), lengths, 5),
        count=st.integers(1, 8),
    ),
    st.builds(Step, st.integers(0, 1), what=st.sampled_from(("poll", "arm", "arm")), ring=st.booleans()),
    st.builds(Step, st.just(0), what=st.sampled_from(("limit", "wait")), at=st.integers(0, 4000)),
)
scenes = st.builds(
    Scene,
    log_cq=st.integers(2, 6),
    pool=st.booleans(),
    inline=st.integers(0, 1),
    psn=st.sampled_from((0, PSN)),
    rnr_retry=st.sampled_from((0, 1, 7)),
    one_cq=st.sampled_from((False, False, False, True)),
    oi=st.integers(0, 1),
    user_index=st.sampled_from((0xFF_FFFF, 5)),
)


def compare(ends: tuple[Ends, Ends]) -> None:
    left, right = (end.shows() for end in ends)
    for name, value in left.items():
        assert value == right[name], name


@pytest.mark.requirement("G2", "G4", "G5")
@settings(max_examples=200, deadline=None)
@given(scene=scenes, stream=st.lists(steps, min_size=12, max_size=60))
def test_random_streams_are_the_same_with_and_without(scene: Scene, stream: list[Step]) -> None:
    ends = make(scene, quick=True), make(scene, quick=False)
    receives = [Step(side, what="receive", length=2 * PAGE, count=8) for side in (0, 1)]
    for step in receives + stream:
        for end in ends:
            end.do(step)
    for end in ends:
        end.bench.ring(end.queues[0].uar, 0x800, struct.pack(">II", 0, end.queues[0].number << 8))
        end.bench.wait(1000)
    compare(ends)


def test_the_streams_went_through_the_loop(taken: Taken) -> None:
    assert sum(taken) > 500


def plain(opcode: int, **changes: Any) -> Send:
    return replace(Send(opcode, 1, 0, 1, 2 * PAGE, 64), **changes)


def ready(**scene: Any) -> Ends:
    ends = make(Scene(**scene), quick=True)
    for side in (0, 1):
        ends.do(Step(side, what="receive", key=1, at=PAGE, length=PAGE, count=8))
    return ends


@pytest.mark.parametrize("pool", [False, True])
@pytest.mark.parametrize("key", [0, 1, 2])
@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize("opcode", COMMON)
def test_the_common_shape_is_taken_in_one_turn(
    taken: Taken, opcode: WqeOpcode, carried: bool, key: int, pool: bool
) -> None:
    if carried and opcode is WqeOpcode.RDMA_READ:
        return
    ends = ready(pool=pool)
    taken.clear()
    wqe = plain(opcode, carried=carried, key=key, their_key=key, length=20)
    ends.do(Step(0, wqe, count=8, at=32))
    assert taken == [8]
    assert [ends.sent.raw() is not None for _ in range(9)] == [True] * 8 + [False]


@pytest.mark.parametrize("opcode", COMMON)
def test_messages_that_lie_in_several_pieces_are_taken_too(taken: Taken, opcode: WqeOpcode) -> None:
    ends = make(Scene(), quick=True)
    ends.do(Step(1, what="receive", key=0, at=2 * PAGE + 9, length=2 * PAGE, count=4))
    taken.clear()
    ends.do(Step(0, plain(opcode, key=0, their_key=0, there=2 * PAGE + 9, length=5000), count=2, at=100))
    assert taken == [2]
    ends.do(Step(0, plain(opcode, their_key=6, key=0, length=5000)))
    ends.do(Step(0, plain(opcode, key=6, their_key=0, length=5000)))
    assert taken[1] == (opcode in (WqeOpcode.SEND, WqeOpcode.SEND_IMM))


@pytest.mark.parametrize(
    "change",
    [
        {"segments": 2},
        {"length": 0},
        {"key": 6},
        {"their_key": 6},
        {"key": 5},
        {"key": 4},
        {"their_key": 3},
        {"here": SPAN},
        {"there": SPAN - START % PAGE - 63},
        {"opcode": WqeOpcode.RDMA_WRITE_IMM},
        {"opcode": WqeOpcode.NOP},
        {"carried": True, "length": 29},
    ],
)
def test_what_has_another_shape_is_left_to_the_general_path(taken: Taken, change: dict[str, Any]) -> None:
    ends = ready()
    taken.clear()
    ends.do(Step(0, plain(WqeOpcode.RDMA_WRITE), count=3, ring=False))
    ends.do(Step(0, replace(plain(WqeOpcode.RDMA_WRITE), **change)))
    assert taken == [3, 0]


def test_the_loop_goes_on_after_a_strange_work_request(taken: Taken) -> None:
    ends = ready()
    taken.clear()
    for opcode in (WqeOpcode.SEND, WqeOpcode.NOP, WqeOpcode.RDMA_WRITE, WqeOpcode.RDMA_WRITE):
        ends.do(Step(0, plain(opcode), ring=False))
    ends.do(Step(0, plain(WqeOpcode.SEND)))
    assert taken == [1, 0, 2, 1]


def test_a_queue_that_only_has_strange_ones_is_tried_less_and_less(taken: Taken) -> None:
    ends = ready(log_sq=6, log_cq=7)
    taken.clear()
    ends.do(Step(0, plain(WqeOpcode.NOP), count=40))
    assert taken == [0] * 5


def test_switched_off(taken: Taken) -> None:
    ends = make(Scene(), quick=False)
    taken.clear()
    ends.do(Step(0, plain(WqeOpcode.RDMA_WRITE)))
    assert taken == []
    assert ends.sent.raw() is not None


@pytest.mark.requirement("A4")
def test_an_event_tells_of_the_first_of_many(taken: Taken) -> None:
    ends = ready()
    taken.clear()
    ends.arm(ends.sent, solicited=False)
    ends.arm(ends.received, solicited=True)
    ends.do(Step(0, plain(WqeOpcode.SEND), count=2, ring=False))
    ends.do(Step(0, plain(WqeOpcode.SEND, flags=0x0A), count=2))
    assert taken == [4]
    events = [ends.bench.events.poll() for _ in range(3)]
    assert [event and event.data.comp.cqn for event in events] == [ends.sent.number, ends.received.number, None]
    contexts = [ends.bench.call(Opcode.QUERY_CQ, cqn=cq.number).cq_context for cq in (ends.sent, ends.received)]
    assert [context.last_notified_index for context in contexts] == [1, 3]
    assert contexts[1].last_solicit_index == 3


def test_blue_flame_brings_the_work_request_itself(taken: Taken) -> None:
    ends = ready()
    taken.clear()
    ends.do(Step(0, plain(WqeOpcode.SEND), ring=False))
    queue = ends.queues[0]
    wqe = bytes(queue.memory.view[queue.sq_at : queue.sq_at + 64])
    queue.memory.view[queue.sq_at : queue.sq_at + 64] = bytes(64)
    ends.bench.ring(queue.uar, 0x800, wqe)
    assert taken == [1]
    assert not ends.qp(0).pushed
    cqe = ends.received.poll()
    assert cqe is not None
    assert cqe.byte_cnt == 64


def test_memory_that_is_unmapped_is_not_touched(taken: Taken) -> None:
    ends = ready()
    ends.do(Step(0, plain(WqeOpcode.RDMA_WRITE)))
    assert ends.sent.raw() is not None
    dma = ends.bench.card.dma
    taken.clear()
    dma.clear()
    ends.do(Step(0, plain(WqeOpcode.RDMA_WRITE)))
    assert not sum(taken)
    assert ends.qp(0).state is QpState.ERR


def test_a_card_without_it() -> None:
    profile = load_profile("connectx-6-ib")
    assert Hca(Engine(VirtualClock()), profile).function.fast
    assert not Hca(Engine(VirtualClock()), profile, fast=False).function.fast


def destroy_key(ends: Ends) -> None:
    ends.bench.call(Opcode.DESTROY_MKEY, mkey_index=ends.keys[1][0] >> 8)


def invalidate_key(ends: Ends) -> None:
    ends.bench.fn.mkeys.get(ends.keys[1][0] >> 8).invalidate()


def reset_peer(ends: Ends) -> None:
    ends.bench.call(Opcode.TO_RST_QP, qpn=ends.queues[1].number)


def destroy_peer(ends: Ends) -> None:
    ends.bench.call(Opcode.DESTROY_QP, qpn=ends.queues[1].number)


def take_link_down(ends: Ends) -> None:
    ends.bench.card.port.link.admin = PortAdminStatus.DOWN


def break_peer(ends: Ends) -> None:
    ends.qp(1).enter_error()


@pytest.mark.requirement("F1", "G4", "G5")
@pytest.mark.parametrize("change", [destroy_key, invalidate_key, reset_peer, destroy_peer, take_link_down, break_peer])
@pytest.mark.parametrize("opcode", COMMON)
def test_what_was_known_is_forgotten(taken: Taken, opcode: WqeOpcode, change: Callable[[Ends], None]) -> None:
    ends = ready()
    taken.clear()
    ends.do(Step(0, plain(opcode)))
    assert taken == [1]
    before = bytes(ends.memory.view)
    change(ends)
    ends.do(Step(0, plain(opcode, there=3 * PAGE)))
    assert taken == [1, 0]
    assert bytes(ends.memory.view) == before


@pytest.mark.parametrize("opcode", COMMON)
def test_pages_that_are_loaded_anew_are_used(taken: Taken, opcode: WqeOpcode) -> None:
    ends = ready()
    ends.do(Step(0, plain(opcode, length=8)))
    table = ends.bench.fn.mkeys.get(ends.keys[1][0] >> 8).table
    assert isinstance(table, PageTable)
    pages = array("Q", (ends.memory.iova + page * PAGE | 3 for page in SHUFFLE))
    table.load(0, pages, keep=False)
    ends.do(Step(0, plain(opcode, length=8)))
    quick = bytes(ends.memory.view)
    other = make(Scene(), quick=False)
    for side in (0, 1):
        other.do(Step(side, what="receive", key=1, at=PAGE, length=PAGE, count=8))
    other.do(Step(0, plain(opcode, length=8)))
    table = other.bench.fn.mkeys.get(other.keys[1][0] >> 8).table
    assert isinstance(table, PageTable)
    table.load(0, pages, keep=False)
    other.do(Step(0, plain(opcode, length=8)))
    assert quick == bytes(other.memory.view)
