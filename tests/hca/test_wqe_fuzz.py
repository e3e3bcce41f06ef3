"""Whatever a host writes into its queues, records, lists and doorbells: nothing escapes, the next QP is served.

After each hostile step the engine comes to rest in a bounded number of turns, no exception passes `Engine.run` or
`bar_write`, and no byte of the machine has changed that was not registered for writing.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softhca.hca.subnet import BROADCAST
from softhca.prm.cqe import CqeOpcode
from softhca.prm.layout import Layout
from softhca.prm.mkey import AccessMode, Mkc, MkeyMask
from softhca.prm.opcodes import Opcode
from softhca.prm.pma import PmaMad
from softhca.prm.qp import QpState, RqType, ServiceType
from softhca.prm.sa import GSI_QKEY, ClassPortInfo, McMemberRecord, PathRecord, SaMad
from softhca.prm.sample import sample
from softhca.prm.wqe import (
    Av,
    BaseAv,
    Klm,
    WqeAtomicSeg,
    WqeCtrlSeg,
    WqeDataSeg,
    WqeEthSeg,
    WqeInlineSeg,
    WqeMaskedAtomicSeg,
    WqeOpcode,
    WqeRaddrSeg,
    WqeUmrCtrlSeg,
    WqeXrcSeg,
)
from tests.hca.bench import PAGE, Bench, Buffer, Completions, Queue, data, inline, remote
from tests.hca.model import ATOMICS
from tests.hca.model_rig import Pool, make_pool, make_window
from tests.hca.raw_host import RawHost
from tests.hca.test_datagram import av
from tests.hca.test_umr import klms

RIGHTS = MkeyMask.LR | MkeyMask.LW | MkeyMask.RR | MkeyMask.RW | MkeyMask.A
MASK = RIGHTS | MkeyMask.START_ADDR | MkeyMask.LEN | MkeyMask.FREE | MkeyMask.KEY | MkeyMask.QPN | MkeyMask.EN_RINVAL
EXAMPLES = int(os.environ.get("SOFTHCA_FUZZ", "1")) * 20
RUNS = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
MOST_TURNS = 3_000
HORIZON = 50_000_000
"""So long (ns) a step is watched: all retries are over by then."""
SERVICES = (ServiceType.RC, ServiceType.UC, ServiceType.UD, ServiceType.XRC, ServiceType.REG_UMR)
NO_RECEIVES = (ServiceType.XRC, ServiceType.REG_UMR)
SEGMENTS: tuple[type[Layout], ...] = (
    WqeRaddrSeg, WqeDataSeg, WqeDataSeg, WqeDataSeg, WqeInlineSeg, WqeAtomicSeg, WqeMaskedAtomicSeg, Av, BaseAv,
    WqeXrcSeg, WqeUmrCtrlSeg, Mkc, Klm, WqeEthSeg,
)  # fmt: skip
OPCODE_SEGMENTS: dict[int, tuple[type[Layout], ...]] = {
    WqeOpcode.RDMA_WRITE: (WqeRaddrSeg,),
    WqeOpcode.RDMA_WRITE_IMM: (WqeRaddrSeg,),
    WqeOpcode.RDMA_READ: (WqeRaddrSeg,),
    WqeOpcode.ATOMIC_CS: (WqeRaddrSeg, WqeAtomicSeg),
    WqeOpcode.ATOMIC_FA: (WqeRaddrSeg, WqeAtomicSeg),
    WqeOpcode.ATOMIC_MASKED_CS: (WqeRaddrSeg, WqeMaskedAtomicSeg),
    WqeOpcode.ATOMIC_MASKED_FA: (WqeRaddrSeg, WqeAtomicSeg),
    WqeOpcode.UMR: (WqeUmrCtrlSeg, Mkc),
}
"""What belongs behind the control segment, so that WQEs get past the first checks."""
SOUND = (WqeOpcode.SEND, WqeOpcode.SEND_IMM, WqeOpcode.SEND_INVAL, *OPCODE_SEGMENTS, WqeOpcode.UMR, WqeOpcode.UMR)


class Machine(Bench):
    """A bench on a whole card: doorbells are BAR writes, and its memory is watched."""

    def __init__(self) -> None:
        host = RawHost(memory=32 << 20).initialize()
        self.host = host
        self.hca = host.hca
        card = SimpleNamespace(engine=host.engine, host=host.machine, port=host.hca.port, fabric=host.hca.fabric)
        self.card = cast(Any, card)
        self.fn = host.hca.function
        self.fn.icm.pages.update(dict.fromkeys(range(1, 1 << 14)))
        self.writable: list[Buffer] = []
        self.watched = memoryview(b"")
        self.uar = self.call(Opcode.ALLOC_UAR).uar
        self.pd = self.call(Opcode.ALLOC_PD).pd
        self.events = self.eq(mask=0x1F_FFFE & ~(1 << 0x06) & ~(1 << 0x0A) & ~(1 << 0x0B))

    def eq(self, **how: Any) -> Any:
        events = super().eq(**how)
        self.writable.append(events.memory)
        return events

    def cq(self, **how: Any) -> Completions:
        cq = super().cq(**how)
        self.writable.append(cq.memory)
        return cq

    def watch(self) -> None:
        """From here on nothing is written but what may be: EQs, CQs, and memory that is registered for it."""
        end = self.memory(PAGE).iova
        self.watched = self.card.host.dma.view(self.host.queue, end - self.host.queue)

    def image(self) -> bytes:
        """All memory that is watched; zeros in place of what the device may write to."""
        image = bytearray(self.watched)
        for buffer in self.writable if image else ():
            at = buffer.iova - self.host.queue
            image[at : at + len(buffer.view)] = bytes(len(buffer.view))
        return bytes(image)

    def ring(self, page: int, offset: int, payload: bytes, *, run: bool = True) -> None:
        self.hca.bar_write(0, page * PAGE + offset, payload)
        if run:
            self.run()

    def run(self) -> None:
        """Until nothing is ready; in a bounded number of turns, and nothing is written that may not be."""
        before = self.image()
        self.come_to_rest()
        assert self.image() == before

    def come_to_rest(self) -> None:
        engine = self.card.engine
        end = engine.clock.now() + HORIZON
        for _ in range(MOST_TURNS):
            if engine.run(budget=1):
                continue
            deadline = engine.next_deadline()
            if deadline is None or deadline > end:
                return
            engine.clock.pass_time(max(0, deadline - engine.clock.now()))
        raise AssertionError(f"still busy after {MOST_TURNS} turns")


@dataclass
class Scene:
    """The hostile QP with all that it can name, its peer, and a pair that does no wrong."""

    machine: Machine
    service: ServiceType
    queue: Queue
    peer: Queue
    pool: Pool
    cq: Completions
    keys: list[int]
    indirect: int
    memory: Buffer
    good: tuple[Queue, Queue, Completions, Buffer, int]

    def works(self, random: Random) -> None:
        """The other pair writes and sends as if nothing had been."""
        left, right, cq, memory, key = self.good
        payload = random.randbytes(40)
        left.post(WqeOpcode.RDMA_WRITE, remote(memory.iova, key), inline(payload))
        assert cq.good(CqeOpcode.REQ)
        assert memory.view[:40] == payload
        right.receive((key, memory.iova + 100, 40))
        left.post(WqeOpcode.SEND, data(key, memory.iova, 40))
        assert {cq.raw()[63] >> 4 for _ in range(2)} == {CqeOpcode.REQ, CqeOpcode.RESP_SEND}  # type: ignore[index]
        assert memory.view[100:140] == payload


def make_keys(machine: Machine, memory: Buffer) -> tuple[list[int], int]:
    """Keys of all kinds that a user may have; and one over a list, which refers to itself among others."""
    plain = machine.mkey(memory, a=1)
    shut = machine.mkey(memory, lw=0, rw=0)
    context = {"access_mode_1_0": AccessMode.KLMS, "umr_en": 1, "en_rinval": 1, "a": 1, "start_addr": 0, "len": 1 << 20}
    own = (max(plain, shut) >> 8) + 1 << 8 | 0x42
    entries = klms((100, plain, memory.iova), (1 << 20, own, 0), (4096, shut, memory.iova), (1 << 31, 0x300, 0))
    listed = machine.mkey(memory, pages=list(struct.unpack(f">{len(entries) // 8}Q", entries)), **context)
    assert listed == own
    paged = machine.mkey(memory, umr_en=1, a=1)
    window = make_window(machine, machine.pd)
    return [plain, shut, listed, paged, window, 0x300, 0x400, 0x200, 0x100], listed


def make_scene(service: ServiceType) -> Scene:
    """Everything, ready to be misused."""
    machine = Machine()
    random = Random(service)
    memory = machine.memory(4 * PAGE)
    machine.writable.append(memory)
    keys, listed = make_keys(machine, memory)
    cq = machine.cq(log_size=4, oi=1)
    context: dict[str, Any] = {"st": service}
    if service is ServiceType.XRC:
        xrcd = machine.call(Opcode.ALLOC_XRCD).xrcd
        context["xrcd"] = xrcd
        pool = make_pool(machine, "xrc", machine.pd, random, cqn=cq.number, xrcd=xrcd)
    else:
        pool = make_pool(machine, "srq", machine.pd, random)
    shared: dict[str, Any] = {"rq_type": RqType.SRQ_RQ, "srqn_rmpn_xrqn": pool.number}
    own: dict[str, Any] = {"rq_type": RqType.ZERO_LEN_RQ} if service in NO_RECEIVES else {}
    if service is ServiceType.REG_UMR:
        own |= {"fre": 1, "pd": 0}
    queue = machine.qp(cq, **context, **own)
    peer = machine.qp(cq, **({} if service is ServiceType.REG_UMR else context), **shared)
    safe = machine.cq()
    left, right = machine.qp(safe), machine.qp(safe)
    machine.connect(left, right)
    own_memory = machine.memory(PAGE)
    machine.writable.append(own_memory)
    good = (left, right, safe, own_memory, machine.mkey(own_memory, pd=machine.pd, key=0x99))
    scene = Scene(machine, service, queue, peer, pool, cq, keys, listed, memory, good)
    revive(scene)
    return scene


def revive(scene: Scene) -> None:
    """Bring the hostile QP and its peer to RTS, from whatever state."""
    machine = scene.machine
    for queue, peer in ((scene.queue, scene.peer), (scene.peer, scene.queue)):
        machine.call(Opcode.TO_RST_QP, qpn=queue.number)
        queue.sends = queue.receives = 0
        queue.record.view[:] = bytes(8)
        extra = {"q_key": 1} if scene.service is ServiceType.UD else {"rae": 1}
        machine.to_init(queue, **extra)
        machine.to_rtr(queue, peer.number, rlid=machine.card.port.lid, log_msg_max=16)
        machine.to_rts(queue, ack_timeout=6, retry_count=2, rnr_retry=2)


# What is written: structures with fields that mean something here, then some bytes changed.


def segment(scene: Scene, layout: type[Layout], random: Random) -> bytes:
    """A random structure; its keys, addresses and counts are often ones that exist."""
    item = sample(layout, random)
    address = scene.memory.iova + random.choice((0, 1, 4095, 8190, 16384, -1)) & (1 << 64) - 1
    values = {
        "lkey": random.choice(scene.keys),
        "rkey": random.choice(scene.keys),
        "key": random.choice(scene.keys),
        "addr": random.choice((address, 0, (1 << 64) - 1)),
        "raddr": random.choice((address, address, 0, (1 << 64) - 8)),
        "va": random.choice((address, 0)),
        "byte_count": random.choice((0, 1, 8, 100, 4096, 16385, (1 << 31) - 1)),
        "bcount": random.choice((0, 1, 4096, (1 << 32) - 1)),
        "xrc_srqn": random.choice((scene.pool.number, scene.queue.number)),
        "pd": scene.machine.pd,
        "log_page_size": random.choice((0, 12, 13, 31, 63)),
        "mkey_mask": random.choice((0, random.getrandbits(64), *(random.getrandbits(64) & MASK for _ in range(8)))),
        "flags": random.choice((0x80, 0x80, 0x90, 0x90, 0x80, 0, 0x10, random.getrandbits(8))),
        "xlt_octowords": random.choice((0, 4, 4, 8, 0xFFFF)),
        "xlt_offset": random.choice((0, 0, 2, 0xFFFF)),
        "xlt_offset_47_16": 0,
        "mkey_7_0": 0x42,
        "free": random.choice((0, 0, 1)),
        "qpn": random.choice((0xFF_FFFF, scene.queue.number)),
        "start_addr": random.choice((0, address)),
        "len": random.choice((0, 4096, 1 << 40)),
        "qkey": 1,
        "dqp_dct": random.choice((0, 1 << 31)) | random.choice((scene.peer.number, 1)),
        "rlid": random.choice((scene.machine.card.port.lid, 0xC001, 0xFFFF)),
    }
    for name, value in values.items():
        if name in layout.FIELDS and random.random() < 0.8:
            setattr(item, name, value & (1 << layout.FIELDS[name].width) - 1)
    if isinstance(item, WqeDataSeg):
        item.inline_ = int(random.random() < 0.1)
        if random.random() < 0.5:
            return data(random.choice(scene.keys[:4]), scene.memory.iova + random.randrange(PAGE), 8)
    if isinstance(item, WqeRaddrSeg) and random.random() < 0.5:
        return remote(scene.memory.iova + 8 * random.randrange(PAGE), random.choice(scene.keys[:4]))
    raw = bytes(item)
    return raw.ljust(-(-len(raw) // 16) * 16, b"\0")


def send_wqe(scene: Scene, random: Random) -> bytes:
    """A send WQE; often one that gets past the first checks."""
    sound = random.random() < 0.7
    opcode = random.choice(SOUND if sound else tuple(WqeOpcode))
    if scene.service is ServiceType.UD and sound:
        opcode = random.choice((WqeOpcode.SEND, WqeOpcode.SEND_IMM))
    layouts = list(OPCODE_SEGMENTS.get(opcode, ())) if sound or random.random() < 0.5 else []
    if scene.service is ServiceType.XRC and opcode != WqeOpcode.UMR:
        layouts.insert(0, WqeXrcSeg)
    if scene.service is ServiceType.UD:
        layouts.insert(0, random.choice((Av, BaseAv)))
    kinds = (WqeDataSeg,) if sound else SEGMENTS
    layouts += random.choices(kinds, k=random.choice((0, 1, 1, 2, 5, 12)) if opcode not in ATOMICS else 1)
    body = b"".join(segment(scene, layout, random) for layout in layouts)
    if opcode == WqeOpcode.UMR and random.random() < 0.7:
        body += b"".join(segment(scene, Klm, random) for _ in range(random.choice((1, 4, 8))))
    ds = min(63, 1 + len(body) // 16) if random.random() < 0.9 else random.randrange(64)
    control = WqeCtrlSeg.pack(
        wqe_index=scene.queue.sends, opcode=opcode, qp_or_sq=scene.queue.number, ds=ds, ce=random.randrange(4), fm=0,
        imm=random.choice((*scene.keys, scene.indirect)),
    )  # fmt: skip
    wqe = bytearray(control + body)[: 63 * 16]
    for _ in range(random.choice((0, 0, 0, 0, 1, 3))):
        wqe[random.randrange(len(wqe))] = random.randrange(256)
    return bytes(wqe)


def post_send(scene: Scene, random: Random) -> None:
    wqe = send_wqe(scene, random) if random.random() < 0.9 else random.randbytes(random.randrange(1, 1024))
    scene.queue.post_raw(wqe, ring=random.random() < 0.8)


def post_receive(scene: Scene, random: Random) -> None:
    raw = b"".join(segment(scene, WqeDataSeg, random) for _ in range(3))
    if random.random() < 0.5:
        raw = data(scene.keys[0], scene.memory.iova + random.randrange(PAGE), 4096) + raw[16:]
    queue = random.choice((scene.queue, scene.peer))
    if queue.rq_slots and random.random() < 0.6:
        at = random.randrange(queue.rq_slots) * queue.rq_stride
        queue.memory.view[at : at + 48] = raw
        queue.receives = (queue.receives + 1) & 0xFFFF
        queue.record.set_word(0, queue.receives)
    else:
        scene.pool.post(raw)


def link(scene: Scene, random: Random) -> None:
    """Next links of the pool: to itself, out of the pool, anywhere."""
    for _ in range(random.randrange(1, 9)):
        slot = random.randrange(8)
        scene.pool.memory.view[slot * 64 : slot * 64 + 4] = random.randbytes(2) + struct.pack(
            ">H", random.choice((slot, 0, 8, 0xFFFF, random.getrandbits(16)))
        )


def record(scene: Scene, random: Random) -> None:
    """A doorbell record that is far ahead, behind, or nonsense."""
    buffer, at = random.choice(
        ((scene.queue.record, 4), (scene.queue.record, 0), (scene.peer.record, 4), (scene.pool.record, 0),
         (scene.cq.record, 0), (scene.cq.record, 4))
    )  # fmt: skip
    now = buffer.word(at)
    buffer.set_word(at, (now + random.choice((1, 2, 15, 16, 17, 0x8000, 0xFFFF, random.getrandbits(32)))) & 0xFFFF_FFFF)
    scene.machine.ring(scene.queue.uar, 0x800, struct.pack(">II", 0, scene.queue.number << 8 | 1))


def write_uar(scene: Scene, random: Random) -> None:
    """BAR writes of any size to UAR pages, some of them with doorbells in them."""
    for _ in range(random.randrange(1, 6)):
        page = scene.queue.uar + random.choice((0, 0, 0, 1, -1))
        offset = random.choice((0x800, 0x900, 0xA00, 0x20, 0x40, 0x48, random.randrange(4096)))
        offset += random.choice((0, 0, 4, 8, 1, 16))
        wqe = send_wqe(scene, random) if random.random() < 0.5 else random.randbytes(300)
        if random.random() < 0.3:
            wqe = struct.pack(">II", random.getrandbits(32), random.choice((scene.cq.number, scene.peer.number << 8)))
        size = random.choice((1, 2, 3, 4, 7, 8, 8, 16, 60, 64, 65, 128, 256, 300))
        scene.machine.ring(page, offset, wqe[:size], run=random.random() < 0.5)


def speak(scene: Scene, random: Random) -> None:
    """The peer sends a message to the hostile QP, or the hostile QP one to its peer."""
    for queue in (scene.queue, scene.peer):
        queue.post(WqeOpcode.SEND_IMM, inline(random.randbytes(random.choice((0, 1, 100)))))


def ask(scene: Scene, random: Random) -> None:
    """A management datagram to the subnet's administration, or to an agent of the port itself."""
    port = scene.machine.card.port
    if random.random() < 0.6:
        mad = sample(SaMad, random)
        body = sample(random.choice((PathRecord, McMemberRecord, ClassPortInfo)), random)
        if isinstance(body, McMemberRecord):
            body.mgid = random.choice((BROADCAST, b"\xff" + random.randbytes(15)))
        if isinstance(body, PathRecord):
            body.dgid, body.sgid, body.dlid, body.slid = port.gid(0), port.gid(0), port.lid, port.lid
        mad.data = bytes(body).ljust(len(mad.data), b"\0")
        mad.component_mask = random.getrandbits(64) | random.choice((0, (1 << 64) - 1))
        mad.mgmt_class, mad.base_version, mad.class_version = 3, 1, 2
        lid, raw = port.sm_lid, bytearray(bytes(mad))
    else:
        query = sample(PmaMad, random)
        query.mgmt_class, query.base_version, query.class_version = 4, 1, 1
        lid, raw = port.lid, bytearray(bytes(query))
    if random.random() < 0.3:
        raw[random.randrange(256)] = random.randrange(256)
    gid = random.choice((None, None, port.gid(0)))
    scene.queue.post(WqeOpcode.SEND, av(1, lid=lid, qkey=GSI_QKEY, gid=gid), inline(bytes(raw)))


ACTIONS = {
    action.__name__: action
    for action in (post_send, post_receive, link, record, write_uar, speak, ask)
}  # fmt: skip
STEP = st.tuples(
    st.sampled_from(["post_send"] * 8 + ["post_receive"] * 4 + sorted(ACTIONS)), st.integers(0, (1 << 32) - 1)
)
STEPS = st.integers(1, 30).flatmap(lambda count: st.lists(STEP, min_size=count, max_size=count))


@RUNS
@given(steps=STEPS)
@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
@pytest.mark.requirement("A10", "B11", "G1", "G2", "G3", "G4")
def test_hostile_queues(service: ServiceType, steps: list[tuple[str, int]]) -> None:
    scene = make_scene(service)
    if service is not ServiceType.REG_UMR:  # what a kernel's QP registers, it may write to
        scene.machine.watch()
    for name, seed in steps:
        random = Random(seed)
        if scene.machine.state(scene.queue) != QpState.RTS or scene.machine.state(scene.peer) != QpState.RTS:
            revive(scene)
        ACTIONS[name](scene, random)
        scene.machine.run()
        scene.works(random)
