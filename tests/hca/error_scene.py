"""Two queue pairs and all that rows of the error table use: what they provoke is read off as the table writes it."""

from __future__ import annotations

import struct
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softhca.prm.cqe import Cqe64, CqeOpcode, CqeSyndrome, ErrCqe
from softhca.prm.events import EventType
from softhca.prm.init_segment import HealthSyndrome
from softhca.prm.mkey import AccessMode, MkeyMask
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import QpState, RqType, ServiceType
from softhca.prm.syndromes.completion import VendorSyndrome
from softhca.prm.wqe import UmrFlag, WqeOpcode
from tests.hca.bench import SECOND, Bench, Buffer, Completions, Queue, data, remote
from tests.hca.test_datagram import QKEY, av, datagram_qp
from tests.hca.test_srq import Pool, srq
from tests.hca.test_umr import klms, umr
from tests.hca.test_xrc import xrc_pool

SIZE = 16384
STATUSES = {
    CqeSyndrome.LOCAL_LENGTH_ERR: "LOC_LEN_ERR",
    CqeSyndrome.LOCAL_QP_OP_ERR: "LOC_QP_OP_ERR",
    CqeSyndrome.LOCAL_PROT_ERR: "LOC_PROT_ERR",
    CqeSyndrome.WR_FLUSH_ERR: "WR_FLUSH_ERR",
    CqeSyndrome.MW_BIND_ERR: "MW_BIND_ERR",
    CqeSyndrome.BAD_RESP_ERR: "BAD_RESP_ERR",
    CqeSyndrome.LOCAL_ACCESS_ERR: "LOC_ACCESS_ERR",
    CqeSyndrome.REMOTE_INVAL_REQ_ERR: "REM_INV_REQ_ERR",
    CqeSyndrome.REMOTE_ACCESS_ERR: "REM_ACCESS_ERR",
    CqeSyndrome.REMOTE_OP_ERR: "REM_OP_ERR",
    CqeSyndrome.TRANSPORT_RETRY_EXC_ERR: "RETRY_EXC_ERR",
    CqeSyndrome.RNR_RETRY_EXC_ERR: "RNR_RETRY_EXC_ERR",
    CqeSyndrome.REMOTE_ABORTED_ERR: "REM_ABORT_ERR",
}
"""What libmlx5 makes of the syndrome of an error CQE (ibv_wc_status)."""
EVENTS = {
    EventType.CQ_ERROR: "CQ_ERR",
    EventType.WQ_CATAS_ERROR: "QP_FATAL",
    EventType.WQ_INVAL_REQ_ERROR: "QP_REQ_ERR",
    EventType.WQ_ACCESS_ERROR: "QP_ACCESS_ERR",
    EventType.SRQ_CATAS_ERROR: "SRQ_ERR",
    EventType.SRQ_LAST_WQE: "QP_LAST_WQE_REACHED",
    EventType.SRQ_RQ_LIMIT: "SRQ_LIMIT_REACHED",
}
"""What mlx5_ib makes of an event (ibv_event_type)."""
STATES = {QpState.RST: "RESET", QpState.SQER: "SQE", QpState.ERR: "ERR"} | {
    state: state.name for state in (QpState.INIT, QpState.RTR, QpState.RTS, QpState.SQD)
}
"""ibv_qp_state."""


@dataclass(frozen=True)
class Row:
    """A row of docs/errors.toml, which says what each field is."""

    id: str
    cause: str
    service: str = "RC"
    requester: list[str] = field(default_factory=list)
    responder: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    states: list[str] = field(default_factory=lambda: ["ERR", "RTS"])
    counter: str = ""
    unit_only: str = ""


PROVOCATIONS: dict[str, Callable[[], Scene]] = {}
"""What brings about each row, by its id."""


def provokes(name: str) -> Callable[[Callable[[], Scene]], Callable[[], Scene]]:
    """Note that a function brings about a row."""

    def note(provoke: Callable[[], Scene]) -> Callable[[], Scene]:
        assert name not in PROVOCATIONS, name
        PROVOCATIONS[name] = provoke
        return provoke

    return note


def rows() -> list[Row]:
    """The table."""
    path = Path(__file__).parents[2] / "docs" / "errors.toml"
    return [Row(**row) for row in tomllib.loads(path.read_text(encoding="utf-8"))["error"]]


def completions(cq: Completions) -> list[str]:
    """What a CQ holds, as the table writes it."""
    found = []
    while (raw := cq.raw()) is not None:
        if raw[63] >> 4 in (CqeOpcode.REQ_ERR, CqeOpcode.RESP_ERR):
            error = ErrCqe(raw)
            found.append(f"{STATUSES[CqeSyndrome(error.syndrome)]} {VendorSyndrome(error.vendor_err_synd).name}")
        else:
            assert raw[63] >> 4 <= CqeOpcode.RESP_SEND_INV, Cqe64(raw)
            found.append("SUCCESS")
    return found


class Scene:
    """A requester and a responder on one card, one CQ each, with a memory and a key on each side.

    Args:
        service: of the queue pairs.
        cqs: log2 of the CQEs of the requester's and the responder's CQ.
        pooled: the responder takes from an SRQ.
        requester_state: how far the requester is brought.
        rights: of the responder (rre, rwe, rae), changes.
        path: of the requester, changes.
        pkey_index: of the requester (datagrams).
        completion_events: log2 of the EQEs of the EQ that both CQs report to.
    """

    def __init__(
        self,
        service: str = "RC",
        *,
        cqs: tuple[int, int] = (6, 6),
        pooled: bool = False,
        requester_state: QpState = QpState.RTS,
        rights: dict[str, int] | None = None,
        path: dict[str, int] | None = None,
        pkey_index: int = 0,
        completion_events: int = 6,
    ) -> None:
        self.bench = bench = Bench()
        self.service = service
        announced = bench.eq(log_size=completion_events)
        self.sent, self.received = (bench.cq(log_size=size, events=announced) for size in cqs)
        self.source, self.target = bench.memory(SIZE), bench.memory(SIZE)
        self.source.view[:] = bytes(range(1, 129)) * (SIZE // 128)
        self.lkey, self.rkey = bench.mkey(self.source, umr_en=1), self.key(self.target, 0x99)
        self.xrcd = bench.call(Opcode.ALLOC_XRCD).xrcd
        self.pool: Pool | None = None
        if pooled:
            self.pool = srq(bench)
        elif service == "XRC":
            self.pool = xrc_pool(bench, self.xrcd, bench.pd, self.received)
        self.left, self.right = self._queues(pkey_index)
        self.counted = self.counters()
        if service != "UD":
            self._connect(requester_state, rights or {}, path or {})

    def _queues(self, pkey_index: int) -> tuple[Queue, Queue]:
        bench = self.bench
        if self.service == "UD":
            right = datagram_qp(bench, self.received)
            return datagram_qp(bench, self.sent, pkey_index=pkey_index), right
        fields: dict[str, Any] = {"st": ServiceType[self.service]}
        near = fields
        if self.service == "XRC":
            fields = fields | {"xrcd": self.xrcd, "rq_type": RqType.SRQ_RQ}
            near = fields | {"rq_type": RqType.ZERO_LEN_RQ}
        elif self.pool is not None:
            fields = fields | {"rq_type": RqType.SRQ_RQ}
        if self.pool is not None:
            fields["srqn_rmpn_xrqn"] = self.pool.number
        return bench.qp(self.sent, **near), bench.qp(self.received, **fields)

    def _connect(self, requester_state: QpState, rights: dict[str, int], path: dict[str, int]) -> None:
        """Without retries: what is not answered at once has failed."""
        bench = self.bench
        reliable = self.service != "UC"
        for queue, peer in ((self.right, self.left), (self.left, self.right)):
            given = {"rre": 1, "rae": 1, "atomic_mode": 1} if reliable else {}
            bench.to_init(queue, **(given | (rights if queue is self.right else {})))
            changed = path if queue is self.left else {}
            number = changed.get("peer", peer.number)
            bench.to_rtr(queue, number, **({"rlid": changed["rlid"]} if "rlid" in changed else {}))
            if queue is self.right or requester_state is QpState.RTS:
                bench.to_rts(queue, retry_count=0, rnr_retry=0)
        bench.run()

    # --- keys ---------------------------------------------------------------------------------------------------------

    def key(self, memory: Buffer, key: int = 0x33, **context: Any) -> int:
        """A key over a memory, with every right, as Linux makes them."""
        return self.bench.mkey(memory, key=key, **({"a": 1, "umr_en": 1} | context))

    def other_pd(self) -> int:
        """A protection domain that neither queue pair is of."""
        return int(self.bench.call(Opcode.ALLOC_PD).pd)

    def window(self, **context: Any) -> int:
        """A type 2 memory window that is not bound."""
        fields: dict[str, int] = {
            "access_mode_1_0": AccessMode.KLMS, "free": 1, "umr_en": 1, "en_rinval": 1, "lr": 1, "qpn": 0xFF_FFFF,
            "pd": self.bench.pd, "mkey_7_0": 0x10, "translations_octword_size": 4,
        } | context  # fmt: skip
        return int(self.bench.call(Opcode.CREATE_MKEY, memory_key_mkey_entry=fields).mkey_index) << 8 | 0x10

    def bind(self, queue: Queue, window: int, region: int, memory: Buffer, length: int = SIZE) -> None:
        """Bind a type 2 window to a region from its start on, as libmlx5 does it, with all remote rights."""
        fields = MkeyMask.FREE | MkeyMask.KEY | MkeyMask.QPN | MkeyMask.LEN | MkeyMask.START_ADDR
        body = umr(
            fields | MkeyMask.LW | MkeyMask.RR | MkeyMask.RW | MkeyMask.A,
            flags=UmrFlag.INLINE | UmrFlag.TRANSLATION_OFFSET_EN | UmrFlag.CHECK_NOT_FREE,
            entries=klms((length, region, memory.iova)),
            rr=1, rw=1, qpn=queue.number, mkey_7_0=window & 0xFF, start_addr=memory.iova, len=length,
        )  # fmt: skip
        queue.post(WqeOpcode.UMR, body, immediate=window)

    def invalidate(self, queue: Queue, key: int) -> None:
        """Invalidate a key from a queue pair of its own, as libmlx5 does it."""
        mask = MkeyMask.FREE | MkeyMask.KEY | MkeyMask.QPN
        flags = UmrFlag.INLINE | UmrFlag.TRANSLATION_OFFSET_EN | UmrFlag.CHECK_QPN
        queue.post(WqeOpcode.UMR, umr(mask, flags=flags, free=1, qpn=0xFF_FFFF, mkey_7_0=key & 0xFF), immediate=key)

    # --- work requests ------------------------------------------------------------------------------------------------

    def send(self, key: int | None = None, length: int = 64, *, qkey: int = QKEY, **options: Any) -> None:
        """A SEND from the start of the source."""
        piece = data(self.lkey if key is None else key, self.source.iova, length)
        head = [av(self.right.number, qkey=qkey)] if self.service == "UD" else []
        self.left.post(WqeOpcode.SEND, *head, piece, **options)

    def send_xrc(self, srqn: int) -> None:
        """A SEND that names an SRQ."""
        self.left.post(WqeOpcode.SEND, struct.pack(">I12x", srqn), data(self.lkey, self.source.iova, 64))

    def write(self, key: int | None = None, length: int = 64, opcode: WqeOpcode = WqeOpcode.RDMA_WRITE) -> None:
        """An RDMA WRITE or READ between the starts of both memories."""
        where = remote(self.target.iova, self.rkey if key is None else key)
        self.left.post(opcode, where, data(self.lkey, self.source.iova, length))

    def read(self, key: int | None = None, into: int | None = None) -> None:
        """An RDMA READ of 64 bytes."""
        where = remote(self.target.iova, self.rkey if key is None else key)
        piece = data(self.lkey if into is None else into, self.source.iova, 64)
        self.left.post(WqeOpcode.RDMA_READ, where, piece)

    def atomic(self, key: int | None = None, *, at: int = 0, length: int = 8) -> None:
        """A fetch and add of 1."""
        where = remote(self.target.iova + at, self.rkey if key is None else key)
        operands = struct.pack(">QQ", 1, 0)
        self.left.post(WqeOpcode.ATOMIC_FA, where, operands, data(self.lkey, self.source.iova, length))

    def receive(self, key: int | None = None, length: int = SIZE, *, queue: Queue | None = None) -> None:
        """A receive of the start of the target."""
        (queue or self.right).receive((self.rkey if key is None else key, self.target.iova, length))

    # --- what became of it --------------------------------------------------------------------------------------------

    def counters(self) -> dict[str, int]:
        """The counters that the table names."""
        port = self.bench.card.port
        responder = self.bench.fn.qps.get(self.right.number)
        return {
            "qkey_violations": port.qkey_violations,
            "pkey_violations": port.pkey_violations,
            "out_of_buffer": responder.counters.out_of_buffer,
        }

    def _state(self, queue: Queue) -> str:
        found = self.bench.fn.qps.find(queue.number)
        return "" if found is None else STATES[QpState(self.bench.state(queue))]

    def _events(self) -> list[str]:
        pool = () if self.pool is None else (self.pool.number,)
        sides = {
            "requester": ((self.left.number,), (self.sent.number,), ()),
            "responder": ((self.right.number,), (self.received.number,), pool),
        }
        found = []
        while (eqe := self.bench.events.poll()) is not None:
            kind = EventType(eqe.type)
            if kind is EventType.COMP:
                continue
            numbers, which = eqe.data.qp_srq.qp_srq_n, 0
            if kind is EventType.CQ_ERROR:
                numbers, which = eqe.data.cq_err.cqn, 1
            elif kind in (EventType.SRQ_CATAS_ERROR, EventType.SRQ_RQ_LIMIT):
                which = 2
            (side,) = [name for name, owned in sides.items() if numbers in owned[which]]
            found.append(f"{side} {EVENTS[kind]}")
        health = self.bench.card.health.syndrome
        return found + ([f"health {health.name}"] if health is not HealthSyndrome.OK else [])

    def outcome(self, row: Row) -> Row:
        """Let what is posted take its course; the row that it makes."""
        self.bench.run()
        self.bench.wait(SECOND)
        risen = ""
        if self.bench.fn.qps.find(self.right.number) is not None:
            now = self.counters()
            risen = " ".join(name for name, before in self.counted.items() if now[name] == before + 1)
        return Row(
            id=row.id,
            cause=row.cause,
            service=self.service,
            requester=completions(self.sent),
            responder=completions(self.received),
            events=self._events(),
            states=[self._state(self.left), self._state(self.right)],
            counter=risen,
            unit_only=row.unit_only,
        )
