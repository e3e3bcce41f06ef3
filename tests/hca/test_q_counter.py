"""Q counters: sets, what moves them, and who counts where."""

from __future__ import annotations

from typing import Any

import pytest

from softhca.hca.errors import CommandError
from softhca.prm.opcodes import Opcode
from softhca.prm.q_counter import QueryQCounterOut
from softhca.prm.syndromes import objects as syndromes
from softhca.prm.syndromes import queues
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import Bench, Queue, data, inline, remote

HEAD = ("status", "syndrome")


@pytest.fixture
def bench() -> Bench:
    return Bench()


def moved(bench: Bench, number: int = 0, **fields: Any) -> dict[str, int]:
    """The counters of a set that are not 0."""
    reply = bench.call(Opcode.QUERY_Q_COUNTER, counter_set_id=number, **fields)
    return {name: getattr(reply, name) for name in QueryQCounterOut.FIELDS if name not in HEAD and getattr(reply, name)}


def pair(bench: Bench, left: int, right: int, *, log_cq: int = 6, **rts: int) -> tuple[Queue, Queue]:
    """Two connected QPs that count in the sets given."""
    queues_ = [bench.qp(bench.cq(log_size=log_cq)) for _ in range(2)]
    for queue, peer, number in ((queues_[0], queues_[1], left), (queues_[1], queues_[0], right)):
        bench.to_init(queue, counter_set_id=number)
        bench.to_rtr(queue, peer.number)
        bench.to_rts(queue, **rts)
    bench.run()
    return queues_[0], queues_[1]


@pytest.fixture
def sets(bench: Bench) -> tuple[int, int]:
    return bench.call(Opcode.ALLOC_Q_COUNTER).counter_set_id, bench.call(Opcode.ALLOC_Q_COUNTER).counter_set_id


@pytest.mark.requirement("C11", "G5")
def test_requests_count_at_the_responder(bench: Bench, sets: tuple[int, int]) -> None:
    left, right = pair(bench, *sets)
    memory = bench.memory(4096)
    key = bench.mkey(memory)
    for _ in range(3):
        left.post(WqeOpcode.RDMA_WRITE, remote(memory.iova, key), inline(b"abc"))
    left.post(WqeOpcode.RDMA_READ, remote(memory.iova, key), data(key, memory.iova + 64, 8))
    right.receive((key, memory.iova, 8))
    left.post(WqeOpcode.RDMA_WRITE_IMM, remote(memory.iova, key), inline(b"abc"))
    assert moved(bench, sets[0]) == {}
    assert moved(bench, sets[1]) == {"rx_write_requests": 4, "rx_read_requests": 1}
    assert moved(bench, 0) == {}


@pytest.mark.requirement("C11", "G5")
def test_receiver_not_ready(bench: Bench, sets: tuple[int, int]) -> None:
    left, _ = pair(bench, *sets, rnr_retry=2)
    left.post(WqeOpcode.SEND, inline(b"abc"))
    bench.wait(100_000_000)
    assert moved(bench, sets[0]) == {"rnr_nak_retry_err": 3, "req_rnr_retries_exceeded": 1, "req_cqe_error": 1}
    assert moved(bench, sets[1]) == {"out_of_buffer": 3}


@pytest.mark.requirement("C11", "G5")
def test_nobody_answers(bench: Bench, sets: tuple[int, int]) -> None:
    left, right = pair(bench, *sets, retry_count=2)
    bench.call(Opcode.TO_RST_QP, qpn=right.number)
    left.post(WqeOpcode.SEND, inline(b"abc"))
    left.post(WqeOpcode.SEND, inline(b"abc"))
    bench.wait(1_000_000_000)
    assert moved(bench, sets[0]) == {
        "local_ack_timeout_err": 3,
        "req_transport_retries_exceeded": 1,
        "req_cqe_flush_error": 1,
        "req_cqe_error": 2,
    }


@pytest.mark.requirement("C11", "G5")
def test_refused_request(bench: Bench, sets: tuple[int, int]) -> None:
    left, right = pair(bench, *sets)
    right.receive((0, 0, 8))
    left.post(WqeOpcode.RDMA_WRITE, remote(0, 0x1234500), inline(b"abc"))
    assert moved(bench, sets[0]) == {"req_remote_access_errors": 1, "req_cqe_error": 1}
    assert moved(bench, sets[1]) == {"resp_remote_access_errors": 1, "resp_cqe_flush_error": 1, "resp_cqe_error": 1}


def test_cq_overflow(bench: Bench, sets: tuple[int, int]) -> None:
    left, _ = pair(bench, *sets, log_cq=0)
    left.post(WqeOpcode.NOP)
    left.post(WqeOpcode.NOP)
    assert moved(bench, sets[0])["cq_overflow"] == 1


def test_clear_and_the_set_that_is_always_there(bench: Bench) -> None:
    left, _ = pair(bench, 0, 0)
    left.post(0x33)
    expected = {"local_operation_error": 1, "req_cqe_error": 1}
    assert moved(bench, 0, clear=1) == expected
    assert moved(bench, 0) == {}


@pytest.mark.requirement("A8", "B3")
def test_sets_come_and_go(bench: Bench, sets: tuple[int, int]) -> None:
    assert len(set(sets)) == 2
    assert 0 not in sets
    left, _ = pair(bench, *sets)
    bench.call(Opcode.DEALLOC_Q_COUNTER, counter_set_id=sets[0])
    left.post(0x33)
    for opcode in (Opcode.DEALLOC_Q_COUNTER, Opcode.QUERY_Q_COUNTER):
        with pytest.raises(CommandError) as refusal:
            bench.call(opcode, counter_set_id=sets[0])
        assert refusal.value.syndrome is syndromes.NO_SUCH_OBJECT
    with pytest.raises(CommandError) as refusal:
        bench.to_init(bench.qp(bench.cq()), counter_set_id=sets[0])
    assert refusal.value.syndrome is queues.COUNTER_SET_INVALID


def test_as_many_as_the_model_has(bench: Bench) -> None:
    numbers = {bench.call(Opcode.ALLOC_Q_COUNTER).counter_set_id for _ in range(bench.fn.caps.general.max_qp_cnt)}
    assert len(numbers) == 64
    with pytest.raises(CommandError) as refusal:
        bench.call(Opcode.ALLOC_Q_COUNTER)
    assert refusal.value.syndrome is syndromes.TABLE_FULL


@pytest.mark.parametrize("fields", [{"other_vport": 1}, {"aggregate": 1}])
def test_other_vports_are_refused(bench: Bench, fields: dict[str, Any]) -> None:
    with pytest.raises(CommandError) as refusal:
        bench.call(Opcode.QUERY_Q_COUNTER, **fields)
    assert refusal.value.syndrome is queues.Q_COUNTER_VPORT
