"""The device and its model side by side: each step is done to both, and then they must agree."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from softhca.hca.fabric import Fabric
from softhca.prm.cqe import Cqe64, CqeOpcode, ErrCqe
from softhca.prm.mkey import AccessMode, MkeyMask
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import QpState, RqType, ServiceType
from softhca.prm.srq import CreateRmpIn
from softhca.prm.wqe import UmrFlag, WqeOpcode
from tests.hca.bench import Bench, Buffer, Completions, Queue, data, inline, remote
from tests.hca.model import (
    ATOMICS,
    NOWHERE,
    SENDS,
    Bind,
    Completion,
    Key,
    Model,
    Part,
    Places,
    Receive,
    Side,
    Work,
    global_route,
)
from tests.hca.test_datagram import av
from tests.hca.test_umr import klms, umr

PAGE = 4096
PAGES = 4
SIZE = PAGES * PAGE
GUARD = b"\xa5" * PAGE
WAIT = 4_000_000
"""All retries of one step are over in this time (ns)."""
LONG_WAIT = 1_100_000_000
"""In this time the device looks at receive queues in error (ns)."""
QKEY = 0x1122_3344
TURNED = 0x5555_0000_0000
"""Where the key begins whose pages change."""
LOG_SQ, LOG_RQ, LOG_POOL = 4, 2, 3
STRIDE = 64
Rights = frozenset[str]
ALL_RIGHTS = frozenset(("lr", "lw", "rr", "rw", "a"))
READER = frozenset(("lr", "rr"))
OPEN = ("mtt", "pa", "klm", "ksm", "deep", "turned")
"""Keys to memory that allow everything."""
SHUT = ("reader", "foreign", "free", "unknown", "null")
"""Keys that refuse, all or some."""


@dataclass(frozen=True)
class Setup:
    """How the two sides are made.

    Attributes:
        pools: where receive work requests are: own, srq or rmp.
        carried: bytes of a message that CQEs carry: 0, 32 or 64.
        forbidden: what the QPs do not allow their peers: read, write, atomic, or nothing of these.
    """

    service: ServiceType
    devices: int = 1
    pools: tuple[str, str] = ("own", "own")
    wide_cqes: bool = False
    rnr_retry: int = 0
    host_order: bool = False
    carried: int = 0
    forbidden: str = ""


@dataclass(frozen=True)
class Place:
    """A part of memory, still abstract: a key by name, an offset that is taken modulo what fits, and a length."""

    key: str
    at: int
    length: int
    wild: bool = False


@dataclass
class Pool:
    """A receive pool: its slots are linked in an order of its own."""

    number: int
    memory: Buffer
    record: Buffer
    order: list[int]
    posted: int = 0

    def link(self) -> None:
        """Link each slot to the one after it."""
        for here, following in zip(self.order, [*self.order[1:], self.order[0]], strict=True):
            struct.pack_into(">HH", self.memory.view, here * STRIDE, 0, following)

    def post(self, segments: bytes) -> int:
        """Post a receive WQE; its index."""
        slot = self.order[self.posted % len(self.order)]
        at = slot * STRIDE + 16
        self.memory.view[at : at + len(segments)] = segments
        self.posted += 1
        self.record.set_word(0, self.posted & 0xFFFF)
        return slot


@dataclass
class End:
    """A side of the model and what it is on the device."""

    bench: Bench
    model: Side
    queue: Queue
    sent: Completions
    received: Completions
    buffer: Buffer
    pool: Pool | None
    kernel: Queue
    names: dict[str, int] = field(default_factory=dict)
    blocks: dict[int, int] = field(default_factory=dict)
    stalled: bool = False

    @property
    def base(self) -> int:
        """IOVA of the memory that the model knows."""
        return self.buffer.iova + PAGE


def make_keys(end: End, pd: int, random: Random) -> None:
    """All kinds of key over a side's memory, on the device and in the model."""
    bench, keys, names = end.bench, end.model.keys, end.names
    window = Buffer(type(end.buffer.iova)(end.base), end.buffer.view[PAGE : PAGE + SIZE])

    def add(
        name: str, number: int, start: int, places: Places, rights: frozenset[str] = ALL_RIGHTS, **how: Any
    ) -> None:
        keys[number], names[name] = Key(start, places, rights, **how), number

    def indirect(name: str, parts: list[tuple[str, int, int]], **context: Any) -> None:
        entries = [(length, names[inner], keys[names[inner]].start + at) for inner, at, length in parts]
        places = [place for inner, at, length in parts for place in keys[names[inner]].places[at : at + length]]
        fields = {"access_mode_1_0": AccessMode.KLMS, "len": len(places), "start_addr": 0} | context
        raw = klms(*entries)
        number = bench.mkey(window, pages=list(struct.unpack(f">{len(raw) // 8}Q", raw)), pd=pd, a=1, **fields)
        add(name, number, fields["start_addr"], places)

    order = random.sample(range(PAGES), PAGES)
    pages = [end.base + page * PAGE for page in order]
    skip = random.randrange(PAGE)
    flat = [place for page in order for place in range(page * PAGE, (page + 1) * PAGE)][skip : SIZE - 5]
    start = 0x7000_0000 + skip
    add("mtt", bench.mkey(window, pages=pages, start=start, length=len(flat), pd=pd, a=1), start, flat)
    physical = {"access_mode_1_0": AccessMode.PA, "length64": 1}
    add("pa", bench.mkey(window, pages=[], start=0, length=0, pd=pd, a=1, **physical), end.base, range(SIZE))
    add("flat", bench.mkey(window, pd=pd, a=1), end.base, range(SIZE))
    add("reader", bench.mkey(window, pd=pd, lw=0, rw=0), end.base, range(SIZE), READER)
    other = bench.call(Opcode.ALLOC_PD).pd
    add("foreign", bench.mkey(window, pd=other), end.base, range(SIZE), usable=False)
    add("free", bench.mkey(window, pages=[], pd=pd, free=1), end.base, range(SIZE), usable=False)
    add("null", 0x300, 0, [NOWHERE] * SIZE, frozenset(("lr", "lw")))
    names["unknown"] = names["flat"] ^ 0x11
    indirect(
        "klm",
        [("mtt", 11, 3000), ("flat", 9000, 1), ("flat", 0, 0), ("null", 0, 50), ("flat", 100, 4500)],
        start_addr=0x123,
    )
    halves = [("flat", page * PAGE, PAGE) for page in (3, 0, 3)]
    indirect("ksm", halves, access_mode_1_0=AccessMode.KSM, log_page_size=12, start_addr=1 << 40)
    indirect("deep", [("klm", 2990, 40), ("ksm", 4000, 5000), ("mtt", 0, 64)])
    fields = {"translations_octword_size": 4, "log_page_size": 12, "free": 1, "umr_en": 1, "a": 1}
    add("turned", bench.mkey(window, pages=[], pd=pd, **fields), TURNED, [])
    names["window"] = make_window(bench, pd)
    keys[names["window"]] = Key(0, [], frozenset(), usable=False, revocable=True)


def make_window(bench: Bench, pd: int) -> int:
    """A memory window of type 2 that is not bound."""
    context = {"access_mode_1_0": AccessMode.KLMS, "free": 1, "umr_en": 1, "en_rinval": 1, "lr": 1, "pd": pd}
    context |= {"qpn": 0xFF_FFFF, "translations_octword_size": 4, "mkey_7_0": 1}
    return int(bench.call(Opcode.CREATE_MKEY, memory_key_mkey_entry=context).mkey_index) << 8 | 1


def make_pool(bench: Bench, kind: str, pd: int, random: Random, **context: int) -> Pool:
    """A receive pool: srq, rmp, or xrc."""
    memory, record = bench.memory(STRIDE << LOG_POOL), bench.memory(8)
    order = [0, *random.sample(range(1, 1 << LOG_POOL), (1 << LOG_POOL) - 1)]
    if kind == "rmp":
        wq = {"log_wq_sz": LOG_POOL, "log_wq_stride": 6, "pd": pd, "dbr_addr": record.iova}
        request = CreateRmpIn.new(ctx={"state": 1, "wq": wq})
        raw = bytearray(bytes(request)[: CreateRmpIn.SIZE]) + memory.iova.to_bytes(8, "big")
        number = bench.call(Opcode.CREATE_RMP, CreateRmpIn(raw)).rmpn
    elif kind == "srq":
        fields = {"log_srq_size": LOG_POOL, "log_rq_stride": 2, "pd": pd, "dbr_addr": record.iova}
        number = bench.call(Opcode.CREATE_SRQ, srq_context_entry=fields, pas=[memory.iova]).srqn
    else:
        fields = {"log_xrc_srq_size": LOG_POOL, "log_rq_stride": 2, "pd": pd, "user_index": 0xFF_FFFF} | context
        fields |= {"db_record_addr_h": record.iova >> 32, "db_record_addr_l": record.iova >> 2 & 0x3FFF_FFFF}
        number = bench.call(Opcode.CREATE_XRC_SRQ, xrc_srq_context_entry=fields, pas=[memory.iova]).xrc_srqn
    pool = Pool(number, memory, record, order)
    pool.link()
    return pool


class Rig:
    """Two ends and their model."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        random = Random(repr(setup))
        fabric = Fabric()
        here = Bench(fabric=fabric)
        there = Bench(fabric=fabric, engine=here.card.engine) if setup.devices == 2 else here
        self.xrcd = there.call(Opcode.ALLOC_XRCD).xrcd
        if setup.devices == 2:
            assert here.call(Opcode.ALLOC_XRCD).xrcd == self.xrcd
        self.left = self._end(here, 0, random)
        self.right = self._end(there, 1, random)
        self._connect()
        for end in (self.left, self.right):
            end.bench.fn.caps.atomic.atomic_req_8B_endianness_mode = int(setup.host_order)
        self.model = Model(
            setup.service,
            self.left.model,
            self.right.model,
            patient=setup.rnr_retry == 7,
            host_order=setup.host_order,
        )

    def _end(self, bench: Bench, which: int, random: Random) -> End:
        setup = self.setup
        size: dict[str, Any] = {"cqe_sz": int(setup.wide_cqes or setup.carried > 32)}
        sent, received = bench.cq(log_size=5, **size), bench.cq(log_size=5, **size)
        pd = bench.call(Opcode.ALLOC_PD).pd
        kind = setup.pools[which]
        pool, context = None, {"st": setup.service, "pd": pd, "cs_res": setup.carried // 32}
        if setup.service is ServiceType.RC:
            context["cs_req"] = setup.carried // 32 * 0x11
        if setup.service is ServiceType.XRC:
            context |= {"xrcd": self.xrcd, "rq_type": RqType.SRQ_RQ if which else RqType.ZERO_LEN_RQ}
            if which:
                pool = make_pool(bench, "xrc", pd, random, cqn=received.number, xrcd=self.xrcd)
        elif kind != "own":
            pool = make_pool(bench, kind, pd, random)
            context["rq_type"] = RqType.SRQ_RQ
        if pool is not None:
            context["srqn_rmpn_xrqn"] = pool.number
        queue = bench.qp(sent, received, log_sq=LOG_SQ, log_rq=LOG_RQ, **context)
        buffer = bench.memory(SIZE + 2 * PAGE)
        buffer.view[:PAGE] = buffer.view[PAGE + SIZE :] = GUARD
        buffer.view[PAGE : PAGE + SIZE] = random.randbytes(SIZE)
        side = Side(
            queue.number,
            bytearray(buffer.view[PAGE : PAGE + SIZE]),
            shared=pool is not None,
            allowed=frozenset(("read", "write", "atomic")) - {setup.forbidden},
            qkey=QKEY + which,
            carries_received=setup.carried,
            carries_read=setup.carried if setup.service is ServiceType.RC else 0,
        )
        kernel = bench.qp(bench.cq(), st=ServiceType.REG_UMR, rq_type=RqType.ZERO_LEN_RQ, fre=1, pd=0, log_sq=LOG_SQ)
        bench.to_init(kernel)
        bench.to_rtr(kernel, 0)
        bench.to_rts(kernel)
        end = End(bench, side, queue, sent, received, buffer, pool, kernel)
        make_keys(end, pd, random)
        self.turn(end, random)
        return end

    def _connect(self) -> None:
        allowed = self.left.model.allowed
        rights = {"rre": "read" in allowed, "rwe": "write" in allowed, "rae": "atomic" in allowed, "atomic_mode": 1}
        datagram = self.setup.service is ServiceType.UD
        for end, peer in ((self.left, self.right), (self.right, self.left)):
            bench, queue = end.bench, end.queue
            bench.to_init(queue, **({"q_key": end.model.qkey} if datagram else rights))
            bench.to_rtr(queue, peer.queue.number, rlid=peer.bench.card.port.lid, log_msg_max=12)
            bench.to_rts(queue, ack_timeout=8, retry_count=1, rnr_retry=self.setup.rnr_retry)
        self.left.bench.run()

    # Steps.

    def peer(self, end: End) -> End:
        """The other end."""
        return self.right if end is self.left else self.left

    def window(self, end: End) -> Key:
        """The memory window of a side, under the number that it has now."""
        index = end.names["window"] >> 8
        end.names["window"] = next(number for number in end.model.keys if number >> 8 == index)
        return end.model.keys[end.names["window"]]

    def receive(self, end: End, places: Sequence[Place]) -> bool:
        """Post a receive work request; whether there was room."""
        if self.setup.service is ServiceType.XRC and end is self.left:
            return False
        room = 1 << (LOG_RQ if end.pool is None else LOG_POOL)
        if len(end.model.receives) >= room:
            return False
        parts = [self._part(end, place) for place in places]
        if end.pool is None:
            counter = end.queue.receives
            end.queue.receive(*((part.key, part.address, part.length) for part in parts))
        else:
            segments = b"".join(data(part.key, part.address, part.length) for part in parts)
            counter = end.pool.post((segments + data(0x100, 0, 0))[: STRIDE - 16])
        end.model.receives.append(Receive(counter, parts))
        return True

    def send(self, end: End, work: Work, *, ring: bool) -> None:
        """Post a send work request, if there is room."""
        if self.setup.service is ServiceType.XRC and end is self.right:
            return
        segments = b"".join(self._segments(end, work))
        blocks = -(-(16 + len(segments)) // 64)
        taken = sum(end.blocks[posted.counter] for posted in end.model.posted)
        if blocks + taken > 1 << LOG_SQ:
            self.ring(end)
            return
        work.counter = end.queue.sends
        end.blocks[work.counter] = blocks
        end.model.posted.append(work)
        flags = 8 * work.signalled | 2 * work.solicited
        key = work.bind.window if work.bind is not None else work.immediate
        opcode = WqeOpcode.UMR if work.bind is not None else work.opcode
        end.queue.post(opcode, segments, flags=flags, immediate=key, ring=False)
        if ring or end.model.state is not QpState.RTS:
            self.ring(end)

    def ring(self, end: End) -> None:
        """Ring for all that is posted."""
        end.stalled = True
        control = struct.pack(">II", 0, end.queue.number << 8 | 1)
        end.bench.ring(end.queue.uar, 0x800, control)

    @staticmethod
    def turn(end: End, random: Random) -> None:
        """The kernel gives a key other pages, under the same number."""
        order = random.sample(range(PAGES), PAGES)
        number = end.names["turned"]
        entries = b"".join((end.base + page * PAGE | 3).to_bytes(8, "big") for page in order)
        mask = int(MkeyMask.LEN | MkeyMask.START_ADDR | MkeyMask.FREE)
        body = umr(mask, flags=UmrFlag.INLINE, entries=entries, start_addr=TURNED, len=SIZE)
        end.kernel.post(WqeOpcode.UMR, body, immediate=number, flags=0)
        end.model.keys[number].places = [place for page in order for place in range(page * PAGE, (page + 1) * PAGE)]

    def recover(self, end: End) -> None:
        """Let an unreliable QP send again after an error."""
        if end.model.state is QpState.SQER:
            end.model.state = QpState.RTS
            end.bench.call(Opcode.SQERR2RTS_QP, qpn=end.queue.number, qpc={})

    def settle(self) -> None:
        """Let the device and the model come to rest, and compare them."""
        self.left.bench.run()
        ends = (self.left, self.right)
        late = any(end.model.state is QpState.ERR and end.model.receives for end in ends)
        self.left.bench.wait(LONG_WAIT if late else WAIT)
        for end in (*ends, *ends):
            if end.stalled or end.model.state is not QpState.RTS:
                self.model.run(end.model)
                end.stalled = bool(end.model.posted)
        for name, end in zip(("left", "right"), ends, strict=True):
            self._compare(f"{name}, send CQ", end.sent, end.model.sent)
            self._compare(f"{name}, receive CQ", end.received, end.model.received)
            assert end.bench.state(end.queue) == end.model.state, f"{name}: state"
            self.window(end)
            memory = end.buffer.view
            assert memory[:PAGE] == GUARD == memory[PAGE + SIZE :], f"{name}: guards"
            assert memory[PAGE : PAGE + SIZE] == end.model.memory, f"{name}: {difference(end)}"

    @staticmethod
    def _compare(where: str, cq: Completions, expected: list[Completion]) -> None:
        seen = []
        while (raw := cq.raw()) is not None:
            end = ((cq.consumer - 1) % (1 << cq.log_size) + 1) * cq.stride
            seen.append(completion(raw, bytes(cq.memory.view[end - cq.stride : end])))
        assert seen == expected, f"{where}: {seen}, expected {expected}"
        expected.clear()

    # From what is abstract to numbers.

    def _part(self, end: End, place: Place) -> Part:
        number = end.names[place.key]
        key = end.model.keys.get(number)
        if key is None:
            return Part(number, place.at, place.length)
        length = min(place.length, len(key.places)) or 1
        at = place.at % (len(key.places) - length + 1) if len(key.places) >= length else 0
        if place.wild and place.key not in ("pa", "null"):
            at = len(key.places) - length + 1 if place.at & 1 else -1
        return Part(number, (key.start + at) % (1 << 64), length)

    def local(self, end: End, places: Sequence[Place | bytes]) -> list[Part | bytes]:
        """Local parts of a work request."""
        return [place if isinstance(place, bytes) else self._part(end, place) for place in places]

    def remote(self, end: End, place: Place, length: int, *, aligned: bool) -> Part:
        """The remote part of a work request of `end`, in the keys of its peer."""
        peer = self.peer(end)
        part = self._part(peer, Place(place.key, place.at, length, place.wild))
        address = part.address & ~7 if aligned else part.address
        return Part(part.key, address, part.length)

    def bind(self, end: End, place: Place | None, rights: frozenset[str]) -> Work:
        """Bind the window of a side, or (without a place) invalidate it."""
        window = end.names["window"]
        if place is None:
            return Work(0, WqeOpcode.UMR, bind=Bind(window))
        number = window & ~0xFF | (window + 1) & 0xFF
        return Work(0, WqeOpcode.UMR, bind=Bind(window, self._part(end, place), number, rights))

    def _segments(self, end: End, work: Work) -> list[bytes]:
        peer = self.peer(end)
        found = []
        if work.bind is not None:
            return [self._bind_segments(end, work.bind)]
        if work.opcode is WqeOpcode.NOP:
            return []
        if self.setup.service is ServiceType.XRC and peer.pool is not None:
            found.append(struct.pack(">I12x", peer.pool.number))
        if self.setup.service is ServiceType.UD:
            found.append(self._address(peer, work))
        if work.remote is not None and work.opcode not in SENDS:
            found.append(remote(work.remote.address, work.remote.key))
        found += [operands(work.opcode, work.operands)] if work.opcode in ATOMICS else []
        for part in work.local:
            found.append(inline(part) if isinstance(part, bytes) else data(part.key, part.address, part.length))
        return found

    @staticmethod
    def _address(peer: End, work: Work) -> bytes:
        qpn, qkey, route = work.route
        port = peer.bench.card.port
        return av(qpn, lid=port.lid, qkey=qkey, gid=port.gid(0) if route is not None else None)

    def route(self, end: End, length: int, *, grh: bool, lost: int, immediate: bool) -> tuple[int, int, bytes | None]:
        """Where a datagram goes; `lost` 1: to no QP, 2: with a wrong Q_Key."""
        peer = self.peer(end)
        qpn, qkey = peer.model.qpn ^ (lost == 1) << 20, peer.model.qkey ^ (lost == 2)
        if not grh:
            return qpn, qkey, None
        gids = (end.bench.card.port.gid(0), peer.bench.card.port.gid(0))
        return qpn, qkey, global_route(*gids, length, immediate=immediate, hops=0x40, flow=0xA5 << 20 | 0xBCDEF)

    def _bind_segments(self, end: End, bind: Bind) -> bytes:
        if bind.target is None:
            flags = UmrFlag.INLINE | UmrFlag.CHECK_FREE | UmrFlag.CHECK_QPN
            return umr(bind_mask(place=False), flags=flags, free=1, qpn=0xFF_FFFF, mkey_7_0=bind.window & 0xFF)
        target = bind.target
        context = dict.fromkeys(bind.rights, 1) | {"qpn": end.queue.number, "mkey_7_0": bind.number & 0xFF}
        return umr(
            bind_mask(place=True),
            flags=UmrFlag.INLINE | UmrFlag.TRANSLATION_OFFSET_EN | UmrFlag.CHECK_NOT_FREE,
            entries=klms((target.length, target.key, target.address)),
            start_addr=target.address,
            len=target.length,
            pointer=b"",
            **context,
        )


def bind_mask(*, place: bool) -> int:
    """What a bind (with a place) or an invalidation sets of the window's context."""
    mask = MkeyMask.FREE | MkeyMask.KEY | MkeyMask.QPN
    if place:
        mask |= MkeyMask.LEN | MkeyMask.START_ADDR | MkeyMask.LW | MkeyMask.RR | MkeyMask.RW | MkeyMask.A
    return int(mask)


def operands(opcode: WqeOpcode, values: tuple[int, ...]) -> bytes:
    """The atomic segment: operands as the model has them."""
    assert len(values) == (4 if opcode is WqeOpcode.ATOMIC_MASKED_CS else 2)
    return struct.pack(f">{len(values)}Q", *values)


def completion(raw: bytes, slot: bytes) -> Completion:
    """A CQE as the model says it; `slot` is all of it, of 64 or 128 bytes."""
    cqe = Cqe64(raw)
    opcode = CqeOpcode(cqe.opcode)
    if opcode in (CqeOpcode.REQ_ERR, CqeOpcode.RESP_ERR):
        error = ErrCqe(raw)
        work = error.s_wqe_opcode_qpn >> 24
        return Completion(opcode, error.wqe_counter, error.qpn, work, error.syndrome)
    carried = (slot[-64:], slot)[cqe.format - 1][: cqe.byte_cnt] if cqe.format else b""
    return Completion(
        opcode,
        cqe.wqe_counter,
        cqe.qpn,
        cqe.sop_drop_qpn >> 24,
        length=cqe.byte_cnt,
        immediate=cqe.imm_inval_pkey,
        solicited=bool(cqe.solicited),
        source=0 if carried else cqe.flags_rqpn,
        carried=carried,
    )


def difference(end: End) -> str:
    """Where memory first differs from the model's."""
    seen, expected = bytes(end.buffer.view[PAGE : PAGE + SIZE]), end.model.memory
    at = next((at for at in range(SIZE) if seen[at] != expected[at]), None)
    if at is None:
        return "memory is equal"
    return f"memory at {at}: {seen[at : at + 16].hex()}, expected {expected[at : at + 16].hex()}"
