"""Unreliable connections: the same messages as RC, but a responder's trouble stays the responder's."""

from __future__ import annotations

import os

import pytest

from softhca.prm.cqe import CqeOpcode, CqeSyndrome
from softhca.prm.events import EventType
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import QpState, ServiceType
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import Bench, data, inline, remote
from tests.hca.test_rc import IMM, Pair


@pytest.fixture
def pair() -> Pair:
    bench = Bench()
    sent, received = bench.cq(), bench.cq()
    left, right = bench.qp(sent, st=ServiceType.UC), bench.qp(sent, received, st=ServiceType.UC)
    bench.connect(left, right)
    source, target = bench.memory(16384), bench.memory(16384)
    source.view[:] = os.urandom(16384)
    return Pair(bench, left, right, sent, received, source, target, bench.mkey(source), bench.mkey(target, key=0x99))


def lost(pair: Pair) -> int:
    qp = pair.bench.fn.qps.find(pair.left.number)
    assert qp is not None
    return qp.lost


@pytest.mark.requirement("G5")
def test_send_and_write(pair: Pair) -> None:
    pair.right.receive((pair.rkey, pair.target.iova, 9000))
    pair.left.post(WqeOpcode.SEND_IMM, data(pair.lkey, pair.source.iova, 9000), immediate=IMM)
    assert pair.target.view[:9000] == pair.source.view[:9000]
    assert pair.sent.good(CqeOpcode.REQ).byte_cnt == 9000
    assert pair.received.good(CqeOpcode.RESP_SEND_IMM).imm_inval_pkey == IMM
    pair.right.receive()
    where = remote(pair.target.iova + 9000, pair.rkey)
    pair.left.post(WqeOpcode.RDMA_WRITE, where, data(pair.lkey, pair.source.iova, 10))
    pair.left.post(WqeOpcode.RDMA_WRITE_IMM, where, data(pair.lkey, pair.source.iova, 100), immediate=IMM)
    assert pair.target.view[9000:9100] == pair.source.view[:100]
    assert pair.received.good(CqeOpcode.RESP_WR_IMM).byte_cnt == 100
    assert lost(pair) == 0


@pytest.mark.requirement("G5")
def test_what_cannot_be_taken_is_dropped_without_a_word(pair: Pair) -> None:
    pair.left.post(WqeOpcode.SEND, inline(b"nobody waits"))
    pair.right.receive((pair.rkey, pair.target.iova, 4))
    pair.left.post(WqeOpcode.SEND, inline(b"too long for what is posted"))
    pair.left.post(WqeOpcode.RDMA_WRITE, remote(pair.target.iova, pair.rkey ^ 1), inline(b"wrong key"))
    pair.left.post(WqeOpcode.RDMA_WRITE, remote(pair.target.iova + 16384, pair.rkey), inline(b"out of range"))
    assert [pair.sent.good(CqeOpcode.REQ).wqe_counter for _ in range(4)] == [0, 1, 2, 3]
    assert pair.received.poll() is None
    assert lost(pair) == 4
    assert not any(pair.target.view)
    assert pair.bench.state(pair.left) == pair.bench.state(pair.right) == QpState.RTS
    pair.left.post(WqeOpcode.SEND, inline(b"fits"))
    assert pair.received.good(CqeOpcode.RESP_SEND).wqe_counter == 0
    assert bytes(pair.target.view[:4]) == b"fits"


@pytest.mark.requirement("G3", "G5")
def test_a_wrong_key_in_a_receive_wqe_ends_the_responder_alone(pair: Pair) -> None:
    pair.right.receive((pair.rkey ^ 1, pair.target.iova, 4))
    pair.left.post(WqeOpcode.SEND, inline(b"fits"))
    assert pair.sent.good(CqeOpcode.REQ)
    assert pair.received.error().syndrome == CqeSyndrome.LOCAL_PROT_ERR
    assert pair.bench.state(pair.left) == QpState.RTS
    assert pair.bench.state(pair.right) == QpState.ERR


@pytest.mark.requirement("G3", "G5")
@pytest.mark.parametrize(
    ("opcode", "syndrome"),
    [(WqeOpcode.RDMA_READ, CqeSyndrome.LOCAL_QP_OP_ERR), (WqeOpcode.RDMA_WRITE, CqeSyndrome.LOCAL_PROT_ERR)],
)
def test_a_local_error_stops_the_send_queue_alone(pair: Pair, opcode: WqeOpcode, syndrome: CqeSyndrome) -> None:
    pair.left.post(opcode, remote(pair.target.iova, pair.rkey), data(pair.lkey ^ 1, pair.source.iova, 8))
    assert pair.sent.error().syndrome == syndrome
    assert pair.bench.state(pair.left) == QpState.SQER
    pair.left.receive((pair.lkey, pair.source.iova, 4))
    pair.right.post(WqeOpcode.SEND, inline(b"take"))
    assert bytes(pair.source.view[:4]) == b"take", "it receives all the same"
    assert pair.sent.good(CqeOpcode.RESP_SEND)
    assert pair.sent.good(CqeOpcode.REQ)
    pair.bench.call(Opcode.SQERR2RTS_QP, qpn=pair.left.number, qpc={})
    pair.left.post(WqeOpcode.NOP)
    assert pair.sent.good(CqeOpcode.REQ)


@pytest.mark.requirement("G3")
def test_the_first_message_before_rts_gives_the_event_once() -> None:
    bench = Bench()
    cq = bench.cq()
    left, right = bench.qp(cq), bench.qp(cq)
    for queue, peer in ((left, right), (right, left)):
        bench.to_init(queue)
        bench.to_rtr(queue, peer.number)
    bench.to_rts(left)
    for _ in range(2):
        right.receive()
        left.post(WqeOpcode.SEND)
    event = bench.events.poll()
    assert event is not None
    assert (event.type, event.data.qp_srq.qp_srq_n) == (EventType.COMM_EST, right.number)
    assert bench.events.poll() is None
