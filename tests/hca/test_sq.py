"""Send and receive queues full of anything: no exception, no unbounded work, and the card lives on."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softhca.hca.sq import BYTE_BUDGET
from softhca.prm.cqe import CqeOpcode
from softhca.prm.qp import QpState
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import Bench, data, remote

OPCODES = st.sampled_from([*WqeOpcode, 0x77])
SEGMENT = st.binary(min_size=16, max_size=16)


@pytest.mark.requirement("B11", "G2", "G4")
@settings(max_examples=60, deadline=None)
@given(drawn=st.data())
def test_random_wqes(drawn: st.DataObject) -> None:
    bench = Bench()
    cq = bench.cq(log_size=8)
    left, right = bench.qp(cq), bench.qp(cq)
    bench.connect(left, right)
    memory = bench.memory(4096)
    key = bench.mkey(memory)
    plausible = st.builds(
        data,
        st.sampled_from([key, key ^ 1, 0x100]),
        st.sampled_from([memory.iova, memory.iova + 4090, 2**64 - 1]),
        st.sampled_from([0, 1, 8, 4096, 2**31 - 1]),
    ) | st.builds(remote, st.just(memory.iova + 64), st.sampled_from([key, 0]))
    for queue in (left, right):
        for _ in range(drawn.draw(st.integers(0, 3))):
            queue.receive(*[(key, memory.iova, drawn.draw(st.sampled_from([0, 1, 64, 2**31])))])
    for _ in range(drawn.draw(st.integers(1, 4))):
        body = b"".join(drawn.draw(st.lists(SEGMENT | plausible, max_size=6)))
        ds = drawn.draw(st.integers(0, 63) | st.just(1 + len(body) // 16))
        opcode = drawn.draw(OPCODES)
        control = (
            bytes([0, 0, 0, opcode])
            + (left.number << 8 | ds).to_bytes(4, "big")
            + drawn.draw(st.binary(min_size=8, max_size=8))
        )
        left.post_raw(control + body)
    bench.wait(1_000_000)
    other, peer = bench.qp(cq), bench.qp(cq)
    bench.connect(other, peer)
    while cq.raw():
        pass
    other.post(WqeOpcode.NOP)
    assert cq.good(CqeOpcode.REQ).sop_drop_qpn == other.number


@pytest.mark.requirement("A10", "B11")
@settings(max_examples=60, deadline=None)
@given(
    sends=st.integers(0, 0xFFFF_FFFF), receives=st.integers(0, 0xFFFF_FFFF), ring=st.binary(min_size=64, max_size=1024)
)
def test_random_queue_memory_and_doorbell_records(sends: int, receives: int, ring: bytes) -> None:
    bench = Bench()
    cq = bench.cq(log_size=8)
    left = bench.qp(cq)
    bench.connect(left, left)
    left.memory.view[: len(ring)] = ring
    left.memory.view[left.sq_at : left.sq_at + len(ring)] = ring
    left.record.set_word(0, receives)
    left.record.set_word(4, sends)
    bench.ring(bench.uar, 0x800, bytes(4) + (left.number << 8).to_bytes(4, "big"))
    bench.wait(1_000_000)
    if sends & 0xFFFF > 16:
        assert bench.state(left) == QpState.ERR


@pytest.mark.requirement("G5")
def test_a_pass_is_bounded_in_bytes() -> None:
    bench = Bench()
    cq = bench.cq(log_size=8)
    queue = bench.qp(cq)
    bench.connect(queue, queue)
    memory = bench.memory(BYTE_BUDGET)
    key = bench.mkey(memory)
    for _ in range(4):
        segments = remote(memory.iova, key), data(key, memory.iova, BYTE_BUDGET)
        queue.post(WqeOpcode.RDMA_WRITE, *segments, ring=False)
    bench.ring(queue.uar, 0x800, bytes(4) + (queue.number << 8).to_bytes(4, "big"), run=False)
    for done in range(1, 5):
        bench.card.engine.run(1)
        assert bench.fn.qps.get(queue.number).sq_head == done
    bench.run()
    for _ in range(4):
        cq.good(CqeOpcode.REQ)
