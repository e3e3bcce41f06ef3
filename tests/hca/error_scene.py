"""Two queue pairs and all that rows of the error table use: what they provoke is read off as the table writes it."""

from __future__ import annotations

import struct
from typing import Any

from error_table import PLAIN, SIZE, Row, Setting
from softhca.prm.cqe import Cqe64, CqeOpcode, CqeSyndrome, ErrCqe
from softhca.prm.events import EventType
from softhca.prm.init_segment import HealthSyndrome
from softhca.prm.mkey import AccessMode, MkeyMask
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import QpState, RqType, ServiceType
from softhca.prm.syndromes.completion import VendorSyndrome
from softhca.prm.wqe import UmrFlag, WqeOpcode
from tests.hca.bench import LID, PAGE, SECOND, Bench, Completions, Queue, data, remote
from tests.hca.test_datagram import QKEY, av, datagram_qp
from tests.hca.test_srq import Pool, srq
from tests.hca.test_umr import klms, umr
from tests.hca.test_xrc import xrc_pool

_NUMBER = 0xFF_FFFF
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


class Bed:
    """A scene in process: requester and responder on one card. See :class:`error_table.Scene`.

    Args:
        setting: what it is made of.
        completion_events: log2 of the EQEs of the EQ that both CQs report to.
    """

    def __init__(self, setting: Setting = PLAIN, *, completion_events: int = 6) -> None:
        self.bench = bench = Bench()
        self.setting = setting
        self.faults = bench.eq(mask=1 << EventType.PAGE_FAULT)
        announced = bench.eq(log_size=completion_events)
        self.sent, self.received = (
            bench.cq(log_size=1 if setting.short_cq == side else 6, events=announced) for side in ("near", "far")
        )
        self.memories = {True: bench.memory(SIZE), False: bench.memory(SIZE)}
        self.source, self.target = int(self.memories[True].iova), int(self.memories[False].iova)
        self.memories[True].view[:] = bytes(range(1, 129)) * (SIZE // 128)
        self.lkey, self.rkey = self.key(near=True), self.key(near=False)
        self.xrcd = bench.call(Opcode.ALLOC_XRCD).xrcd
        self.pool: Pool | None = None
        if setting.pooled:
            self.pool = srq(bench)
        elif setting.service == "XRC":
            self.pool = xrc_pool(bench, self.xrcd, bench.pd, self.received)
        self.left, self.right = self._queues()
        self.expected: list[tuple[bool, bytes]] = []
        self.counted = self.counters()
        if setting.service != "UD":
            self._connect()

    def _queues(self) -> tuple[Queue, Queue]:
        bench, service = self.bench, self.setting.service
        if service == "UD":
            right = datagram_qp(bench, self.received)
            return datagram_qp(bench, self.sent, pkey_index=self.setting.pkey_index), right
        fields: dict[str, Any] = {"st": ServiceType[service]}
        near = fields
        if service == "XRC":
            fields = fields | {"xrcd": self.xrcd, "rq_type": RqType.SRQ_RQ}
            near = fields | {"rq_type": RqType.ZERO_LEN_RQ}
        elif self.pool is not None:
            fields = fields | {"rq_type": RqType.SRQ_RQ}
        if self.pool is not None:
            fields["srqn_rmpn_xrqn"] = self.pool.number
        return bench.qp(self.sent, **near), bench.qp(self.received, **fields)

    def _connect(self) -> None:
        """Without retries: what is not answered at once has failed."""
        bench, setting = self.bench, self.setting
        for queue, peer in ((self.right, self.left), (self.left, self.right)):
            rights = {"rre": 1, "rwe": 1, "rae": 1, "atomic_mode": 1} if setting.service != "UC" else {}
            if queue is self.right and setting.without:
                rights[{"read": "rre", "write": "rwe", "atomic": "rae"}[setting.without]] = 0
            near = queue is self.left
            place = {"vhca_port_num": 1, "pkey_index": setting.pkey_index if near else 0}
            bench.to_init(queue, **rights, primary_address_path=place)
            bench.to_rtr(queue, (near and setting.peer) or peer.number, rlid=(near and setting.lid) or LID)
            if not (near and setting.early):
                bench.to_rts(queue, retry_count=0, rnr_retry=7 if setting.patient else 0)
        bench.run()

    # --- keys ---------------------------------------------------------------------------------------------------------

    def key(self, *, near: bool, without: str = "", length: int = SIZE, other_pd: bool = False, **context: Any) -> int:
        fields: dict[str, Any] = {"a": 1, "umr_en": 1} | context
        if without:
            fields[{"local write": "lw", "write": "rw", "read": "rr", "atomic": "a"}[without]] = 0
        if other_pd:
            fields["pd"] = self.bench.call(Opcode.ALLOC_PD).pd
        return self.bench.mkey(self.memories[near], key=0x42 if near else 0x98, length=length, **fields)

    def vanished(self, *, near: bool) -> int:
        pages = [0] * (SIZE // PAGE)
        return self.key(near=near, pages=pages, pg_access=1)

    def _refuse_faults(self) -> None:
        """Resume what waits for a page with an error, as Linux does when there is no such memory."""
        self.bench.run()
        while (event := self.faults.poll()) is not None:
            rdma = event.data.page_fault.rdma
            word = rdma.pftype_token if event.sub_type else event.data.page_fault.wqe.pftype_wq
            token = word & _NUMBER if event.sub_type else event.data.page_fault.wqe.token
            info = {"error": 1, "page_fault_type": word >> 24, "wq_number": word & _NUMBER, "fault_token": token}
            self.bench.call(Opcode.PAGE_FAULT_RESUME, page_fault_info={"trans_page_fault_info": info})
            self.bench.run()

    def drop(self, key: int) -> None:
        self.bench.call(Opcode.DESTROY_MKEY, mkey_index=key >> 8)

    def window(self, *, other_pd: bool = False) -> int:
        pd = self.bench.call(Opcode.ALLOC_PD).pd if other_pd else self.bench.pd
        fields: dict[str, int] = {
            "access_mode_1_0": AccessMode.KLMS, "free": 1, "umr_en": 1, "en_rinval": 1, "lr": 1, "qpn": 0xFF_FFFF,
            "pd": pd, "mkey_7_0": 0x10, "translations_octword_size": 4,
        }  # fmt: skip
        return int(self.bench.call(Opcode.CREATE_MKEY, memory_key_mkey_entry=fields).mkey_index) << 8 | 0x10

    def bind(self, window: int, region: int, *, near: bool, length: int = SIZE) -> int:
        """As libmlx5 does it."""
        queue, start = (self.left, self.source) if near else (self.right, self.target)
        fields = MkeyMask.FREE | MkeyMask.KEY | MkeyMask.QPN | MkeyMask.LEN | MkeyMask.START_ADDR
        key = window + 1
        body = umr(
            fields | MkeyMask.LW | MkeyMask.RR | MkeyMask.RW | MkeyMask.A,
            flags=UmrFlag.INLINE | UmrFlag.TRANSLATION_OFFSET_EN | UmrFlag.CHECK_NOT_FREE,
            entries=klms((length, region, start)),
            rr=1, rw=1, qpn=queue.number, mkey_7_0=key & 0xFF, start_addr=start, len=length,
        )  # fmt: skip
        queue.post(WqeOpcode.UMR, body, immediate=window)
        return key

    def invalidate(self, key: int, *, near: bool) -> None:
        """As libmlx5 does it."""
        mask = MkeyMask.FREE | MkeyMask.KEY | MkeyMask.QPN
        flags = UmrFlag.INLINE | UmrFlag.TRANSLATION_OFFSET_EN | UmrFlag.CHECK_QPN
        body = umr(mask, flags=flags, free=1, qpn=0xFF_FFFF)
        (self.left if near else self.right).post(WqeOpcode.UMR, body, immediate=key)

    # --- work requests ------------------------------------------------------------------------------------------------

    def send(
        self, key: int | None = None, length: int = 64, *, wrong_qkey: bool = False, srqn: int = 0, ring: bool = True
    ) -> None:
        head = b""
        if self.setting.service == "UD":
            where = self.setting.peer or self.right.number
            head = av(where, lid=self.setting.lid or LID, qkey=QKEY ^ wrong_qkey)
        elif self.setting.service == "XRC":
            head = struct.pack(">I12x", srqn)
        self.left.post(WqeOpcode.SEND, head, data(self._own(key), self.source, length), ring=ring)

    def _own(self, key: int | None) -> int:
        return self.lkey if key is None else key

    def _there(self, key: int | None, at: int = 0) -> bytes:
        return remote(self.target + at, self.rkey if key is None else key)

    def send_invalidating(self, key: int) -> None:
        self.left.post(WqeOpcode.SEND_INVAL, data(self.lkey, self.source, 64), immediate=key)

    def write(self, key: int | None = None, length: int = 64, *, immediate: bool = False) -> None:
        opcode = WqeOpcode.RDMA_WRITE_IMM if immediate else WqeOpcode.RDMA_WRITE
        pieces = [data(self.lkey, self.source, length)] if length else []
        self.left.post(opcode, self._there(key), *pieces)

    def read(self, key: int | None = None, into: int | None = None) -> None:
        self.left.post(WqeOpcode.RDMA_READ, self._there(key), data(self._own(into), self.source, 64))

    def atomic(self, key: int | None = None, *, at: int = 0, pieces: int = 1) -> None:
        results = [data(self.lkey, self.source + 8 * piece, 8) for piece in range(pieces)]
        self.left.post(WqeOpcode.ATOMIC_FA, self._there(key, at), struct.pack(">QQ", 1, 0), *results)

    def raw(self, opcode: int, *segments: bytes, immediate: int = 0) -> None:
        self.left.post(opcode, *segments, immediate=immediate)

    def post_behind(self, opcode: int, *segments: bytes, ds: int = 0, count: int = 1) -> None:
        body = b"".join(segments)
        size = ds or 1 + len(body) // 16
        control = struct.pack(">IIII", opcode, self.left.number << 8 | size, 8, 0)
        self.left.post_raw(control + body, ring=False)
        self.left.record.set_word(4, count)
        self.bench.ring(self.bench.uar, 0x800, control[:8])

    def count_receives(self, count: int) -> None:
        (self.right if self.pool is None else self.pool).record.set_word(0, count)

    def receive(self, key: int | None = None, length: int = SIZE, *, near: bool = False) -> None:
        key = self.rkey if key is None else key
        if self.pool is not None and not near:
            self.pool.post(self.pool.posted, key, self.target, length)
            return
        (self.left if near else self.right).receive((key, self.target, length))

    # --- queues and memories ------------------------------------------------------------------------------------------

    def to_error(self, *, near: bool) -> None:
        self.bench.call(Opcode.TO_ERR_QP, qpn=(self.left if near else self.right).number)
        self.bench.run()

    def reset_responder(self) -> None:
        self.bench.call(Opcode.TO_RST_QP, qpn=self.right.number)

    def destroy_responder(self) -> None:
        self.bench.call(Opcode.DESTROY_QP, qpn=self.right.number)

    def arm_srq(self, limit: int) -> None:
        assert self.pool is not None
        self.bench.call(Opcode.ARM_RQ, op_mod=1, srq_number=self.pool.number, lwm=limit)

    def other_srq(self) -> int:
        xrcd = self.bench.call(Opcode.ALLOC_XRCD).xrcd
        return xrc_pool(self.bench, xrcd, self.bench.pd, self.received).number

    def settle(self) -> None:
        self.bench.run()

    def fill(self, *, near: bool, byte: int) -> None:
        self.memories[near].view[:] = bytes([byte]) * SIZE

    def expect(self, *, near: bool, begins: bytes) -> None:
        self.expected.append((near, begins))

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
        self._refuse_faults()
        self.bench.wait(SECOND)
        for near, begins in self.expected:
            assert bytes(self.memories[near].view[: len(begins)]) == begins
        risen = ""
        if self.bench.fn.qps.find(self.right.number) is not None:
            now = self.counters()
            risen = " ".join(name for name, before in self.counted.items() if now[name] == before + 1)
        return Row(
            id=row.id,
            cause=row.cause,
            service=self.setting.service,
            requester=completions(self.sent),
            responder=completions(self.received),
            events=self._events(),
            states=[self._state(self.left), self._state(self.right)],
            counter=risen,
            kept=row.kept,
            profile=row.profile,
            unit_only=row.unit_only,
        )
