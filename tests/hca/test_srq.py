"""Receive pools: SRQ, XRC SRQ, RMP."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import pytest

from softhca.hca.errors import CommandError
from softhca.prm.cqe import CqeOpcode, CqeSyndrome
from softhca.prm.events import EventType
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import QpState
from softhca.prm.srq import CreateRmpIn
from softhca.prm.syndromes import objects as syndromes
from softhca.prm.syndromes.table import Syndrome
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import Bench, Buffer, data, inline

LOG_SIZE, LOG_STRIDE = 3, 6


@dataclass
class Pool:
    """A receive pool as its driver sees it: WQEs are a linked list."""

    number: int
    memory: Buffer
    record: Buffer
    posted: int = 0

    def prepare(self) -> None:
        """Link each WQE to the one after it, as drivers do."""
        for index in range(1 << LOG_SIZE):
            at = index << LOG_STRIDE
            self.memory.view[at : at + 16] = struct.pack(">HH12x", 0, (index + 1) % (1 << LOG_SIZE))

    def post(self, index: int, key: int, address: int, length: int) -> None:
        at = (index << LOG_STRIDE) + 16
        self.memory.view[at : at + 32] = data(key, address, length) + struct.pack(">IIQ", 0, 0x100, 0)
        self.posted += 1
        self.record.set_word(0, self.posted)


def rmp(bench: Bench, **wq: Any) -> Pool:
    memory, record = bench.memory(4096), bench.memory(8)
    fields = {
        "log_wq_sz": LOG_SIZE,
        "log_wq_stride": LOG_STRIDE,
        "pd": bench.pd,
        "dbr_addr": record.iova,
    } | wq
    request = CreateRmpIn.new(ctx={"state": 1, "wq": fields})
    raw = bytearray(bytes(request)[: CreateRmpIn.SIZE]) + memory.iova.to_bytes(8, "big")
    pool = Pool(bench.call(Opcode.CREATE_RMP, CreateRmpIn(raw)).rmpn, memory, record)
    pool.prepare()
    return pool


def srq(bench: Bench, **context: Any) -> Pool:
    memory, record = bench.memory(4096), bench.memory(8)
    fields = {
        "log_srq_size": LOG_SIZE,
        "log_rq_stride": LOG_STRIDE - 4,
        "pd": bench.pd,
        "dbr_addr": record.iova,
    } | context
    number = bench.call(Opcode.CREATE_SRQ, srq_context_entry=fields, pas=[memory.iova]).srqn
    pool = Pool(number, memory, record)
    pool.prepare()
    return pool


def xrc_srq(bench: Bench, **context: Any) -> Pool:
    memory, record = bench.memory(4096), bench.memory(8)
    fields = {
        "log_xrc_srq_size": LOG_SIZE,
        "log_rq_stride": LOG_STRIDE - 4,
        "pd": bench.pd,
        "cqn": bench.cq().number,
        "xrcd": bench.call(Opcode.ALLOC_XRCD).xrcd,
        "db_record_addr_h": record.iova >> 32,
        "db_record_addr_l": (record.iova & 0xFFFF_FFFF) >> 2,
    } | context
    number = bench.call(Opcode.CREATE_XRC_SRQ, xrc_srq_context_entry=fields, pas=[memory.iova]).xrc_srqn
    return Pool(number, memory, record)


@pytest.mark.requirement("A7")
def test_one_number_space() -> None:
    bench = Bench()
    assert len({rmp(bench).number, srq(bench).number, xrc_srq(bench).number}) == 3


@pytest.mark.requirement("A3", "A7")
@pytest.mark.parametrize("make", [rmp, srq])
def test_two_qps_take_from_one_pool(make: Any) -> None:
    bench = Bench()
    pool, cq, received = make(bench), bench.cq(), bench.cq()
    memory = bench.memory(4096)
    key = bench.mkey(memory)
    for index in range(3):
        pool.post(index, key, memory.iova + index * 256, 256)
    takers = [bench.qp(cq, received, rq_type=1, srqn_rmpn_xrqn=pool.number) for _ in range(2)]
    senders = [bench.qp(cq) for _ in range(2)]
    for index in (0, 1):
        bench.connect(senders[index], takers[index])
    for index, sender in enumerate((senders[0], senders[1], senders[0])):
        sender.post(WqeOpcode.SEND, inline(bytes([index + 1]) * 8))
        cqe = received.good(CqeOpcode.RESP_SEND)
        assert (cqe.wqe_counter, cqe.srqn, cqe.sop_drop_qpn) == (index, pool.number, takers[index % 2].number)
        assert bytes(memory.view[index * 256 : index * 256 + 8]) == bytes([index + 1]) * 8


@pytest.mark.requirement("A3")
def test_wqes_are_taken_along_their_links() -> None:
    bench = Bench()
    pool, cq, received = rmp(bench), bench.cq(), bench.cq()
    memory = bench.memory(4096)
    key = bench.mkey(memory)
    pool.memory.view[2:4] = (5).to_bytes(2, "big")
    pool.post(0, key, memory.iova, 64)
    pool.post(5, key, memory.iova, 64)
    taker, sender = bench.qp(cq, received, rq_type=1, srqn_rmpn_xrqn=pool.number), bench.qp(cq)
    bench.connect(sender, taker)
    sender.post(WqeOpcode.SEND, inline(b"a"))
    sender.post(WqeOpcode.SEND, inline(b"b"))
    assert [received.good(CqeOpcode.RESP_SEND).wqe_counter for _ in range(2)] == [0, 5]


def test_limit_event_is_given_once() -> None:
    bench = Bench()
    pool, cq = rmp(bench), bench.cq()
    memory = bench.memory(4096)
    key = bench.mkey(memory)
    for index in range(4):
        pool.post(index, key, memory.iova, 64)
    context = {"state": 1, "wq": {"lwm": 3}}
    bench.call(Opcode.MODIFY_RMP, rmpn=pool.number, rmp_state=1, bitmask={"lwm": 1}, ctx=context)
    taker, sender = bench.qp(cq, bench.cq(), rq_type=1, srqn_rmpn_xrqn=pool.number), bench.qp(cq)
    bench.connect(sender, taker)
    sender.post(WqeOpcode.SEND, inline(b"a"))
    assert bench.events.poll() is None
    sender.post(WqeOpcode.SEND, inline(b"b"))
    event = bench.events.poll()
    assert event is not None
    assert (event.type, event.data.qp_srq.qp_srq_n) == (EventType.SRQ_RQ_LIMIT, pool.number)
    sender.post(WqeOpcode.SEND, inline(b"c"))
    assert bench.events.poll() is None


@pytest.mark.requirement("G3")
def test_qp_in_error_says_that_it_took_its_last_wqe() -> None:
    bench = Bench()
    pool, cq = srq(bench), bench.cq()
    taker = bench.qp(cq, rq_type=1, srqn_rmpn_xrqn=pool.number)
    bench.connect(taker, taker)
    bench.call(Opcode.TO_ERR_QP, qpn=taker.number)
    event = bench.events.poll()
    assert event is not None
    assert (event.type, event.data.qp_srq.qp_srq_n) == (EventType.SRQ_LAST_WQE, taker.number)


@pytest.mark.requirement("A10")
def test_pool_whose_record_cannot_be() -> None:
    bench = Bench()
    pool, cq = srq(bench), bench.cq()
    taker, sender = bench.qp(cq, rq_type=1, srqn_rmpn_xrqn=pool.number), bench.qp(cq)
    bench.connect(sender, taker)
    pool.record.set_word(0, 0x7777)
    sender.post(WqeOpcode.SEND)
    event = bench.events.poll()
    assert event is not None
    assert (event.type, event.data.qp_srq.qp_srq_n) == (EventType.SRQ_CATAS_ERROR, pool.number)
    assert bench.call(Opcode.QUERY_SRQ, srqn=pool.number).srq_context_entry.state == 1


@pytest.mark.requirement("A8")
def test_pool_stays_while_a_qp_refers_to_it() -> None:
    bench = Bench()
    pool = srq(bench)
    taker = bench.qp(bench.cq(), rq_type=1, srqn_rmpn_xrqn=pool.number)
    with pytest.raises(CommandError) as refusal:
        bench.call(Opcode.DESTROY_SRQ, srqn=pool.number)
    assert refusal.value.syndrome is syndromes.STILL_REFERENCED
    bench.call(Opcode.DESTROY_QP, qpn=taker.number)
    bench.call(Opcode.DESTROY_SRQ, srqn=pool.number)


@pytest.mark.requirement("B11")
def test_qp_and_pool_combine_within_one_pd() -> None:
    bench = Bench()
    pool = srq(bench, pd=bench.call(Opcode.ALLOC_PD).pd)
    with pytest.raises(CommandError) as refusal:
        bench.qp(bench.cq(), rq_type=1, srqn_rmpn_xrqn=pool.number)
    assert refusal.value.syndrome is syndromes.POOL_PD_MISMATCH


@pytest.mark.requirement("E6")
def test_queries() -> None:
    bench = Bench()
    one, two, three = rmp(bench), srq(bench), xrc_srq(bench)
    wq = bench.call(Opcode.QUERY_RMP, rmpn=one.number).rmp_context.wq
    assert (wq.log_wq_sz, wq.pd, wq.dbr_addr) == (LOG_SIZE, bench.pd, one.record.iova)
    context = bench.call(Opcode.QUERY_SRQ, srqn=two.number).srq_context_entry
    assert (context.log_srq_size, context.state, context.wqe_cnt) == (LOG_SIZE, 0, 0)
    assert bench.call(Opcode.QUERY_XRC_SRQ, xrc_srqn=three.number).xrc_srq_context_entry.pd == bench.pd


@pytest.mark.parametrize(
    ("make", "opcode", "field"),
    [(srq, Opcode.DESTROY_RMP, "rmpn"), (rmp, Opcode.DESTROY_XRC_SRQ, "xrc_srqn"), (xrc_srq, Opcode.QUERY_SRQ, "srqn")],
)
def test_commands_of_another_kind(make: Any, opcode: Opcode, field: str) -> None:
    bench = Bench()
    pool = make(bench)
    with pytest.raises(CommandError) as refusal:
        bench.call(opcode, **{field: pool.number})
    assert refusal.value.syndrome is syndromes.POOL_WRONG_KIND


@pytest.mark.parametrize(
    ("make", "context", "expected"),
    [
        (rmp, {"wq_type": 2}, syndromes.WQ_TYPE_UNSUPPORTED),
        (rmp, {"wq_umem_valid": 1}, syndromes.UMEM_UNSUPPORTED),
        (rmp, {"log_wq_stride": 4}, syndromes.SRQ_STRIDE_INVALID),
        (rmp, {"log_wq_sz": 31}, syndromes.BAD_QUEUE_SIZE),
        (srq, {"wq_signature": 1}, syndromes.WQ_TYPE_UNSUPPORTED),
        (srq, {"pd": 0x999}, syndromes.NO_SUCH_REFERENCE),
        (srq, {"dbr_addr": 0}, syndromes.BAD_DOORBELL_RECORD),
        (srq, {"log_srq_size": 12}, syndromes.PAGE_LIST_SHORT),
        (xrc_srq, {"cqn": 0x999}, syndromes.NO_SUCH_REFERENCE),
        (xrc_srq, {"xrcd": 0x999}, syndromes.NO_SUCH_REFERENCE),
    ],
)
def test_create_is_refused(make: Any, context: dict[str, int], expected: Syndrome) -> None:
    with pytest.raises(CommandError) as refusal:
        make(Bench(), **context)
    assert refusal.value.syndrome is expected


def test_arm_above_the_size() -> None:
    bench = Bench()
    pool = srq(bench)
    with pytest.raises(CommandError) as refusal:
        bench.call(Opcode.ARM_RQ, op_mod=1, srq_number=pool.number, lwm=9)
    assert refusal.value.syndrome is syndromes.LIMIT_INVALID


def test_receive_that_fails_takes_the_pools_wqe_once() -> None:
    bench = Bench()
    pool, cq, received = rmp(bench), bench.cq(), bench.cq()
    pool.post(0, 0x1, 0, 64)
    taker, sender = bench.qp(cq, received, rq_type=1, srqn_rmpn_xrqn=pool.number), bench.qp(cq)
    bench.connect(sender, taker)
    sender.post(WqeOpcode.SEND, inline(b"a"))
    assert received.error().syndrome == CqeSyndrome.LOCAL_PROT_ERR
    assert cq.error().syndrome == CqeSyndrome.REMOTE_OP_ERR
    assert bench.state(taker) == QpState.ERR
