"""Messages that CQEs carry: cs_res for what is received, cs_req for what is read."""

from __future__ import annotations

from typing import Any

import pytest

from softhca.hca.errors import CommandError
from softhca.prm.cqe import CqeOpcode, CqeSyndrome
from softhca.prm.syndromes import queues
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import Bench, Completions, Queue, data, inline, remote

NARROW = {"cs_res": 1, "cs_req": 0x11}
WIDE = {"cs_res": 2, "cs_req": 0x22}
MESSAGE = bytes(range(1, 101))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def loop(bench: Bench, cqe_sz: int, **context: int) -> tuple[Queue, Completions, Completions]:
    """A QP that is its own peer, its send CQ and its receive CQ."""
    send, receive = bench.cq(cqe_sz=cqe_sz), bench.cq(cqe_sz=cqe_sz)
    queue = bench.qp(send, receive, **context)
    bench.connect(queue, queue)
    return queue, send, receive


def carried(cq: Completions, opcode: CqeOpcode) -> tuple[int, bytes]:
    """Format of the next CQE, and what it carries."""
    cqe = cq.good(opcode)
    end = ((cq.consumer - 1) % (1 << cq.log_size) + 1) * cq.stride
    start = end - 64 if cqe.format == 1 else end - 128
    return cqe.format, bytes(cq.memory.view[start : start + cqe.byte_cnt]) if cqe.format else b""


@pytest.mark.requirement("A4", "G4")
@pytest.mark.parametrize(
    ("cqe_sz", "context", "length", "form"),
    [(0, NARROW, 1, 1), (0, NARROW, 32, 1), (0, NARROW, 33, 0), (1, NARROW, 32, 1), (1, WIDE, 64, 2), (1, WIDE, 65, 0)],
)
def test_a_short_message_is_carried(bench: Bench, cqe_sz: int, context: dict[str, int], length: int, form: int) -> None:
    queue, _, receive = loop(bench, cqe_sz, **context)
    memory = bench.memory(4096)
    key = bench.mkey(memory)
    queue.receive((key, memory.iova, 128))
    queue.post(WqeOpcode.SEND, inline(MESSAGE[:length]))
    seen = carried(receive, CqeOpcode.RESP_SEND)
    in_memory = bytes(memory.view[:length])
    assert seen == (form, MESSAGE[:length] if form else b"")
    assert in_memory == (bytes(length) if form else MESSAGE[:length])


@pytest.mark.requirement("A4", "G4")
@pytest.mark.parametrize(
    ("cqe_sz", "context", "length", "form"),
    [(0, NARROW, 32, 1), (0, NARROW, 33, 0), (1, WIDE, 64, 2), (1, WIDE, 65, 0)],
)
def test_what_is_read_is_carried(bench: Bench, cqe_sz: int, context: dict[str, int], length: int, form: int) -> None:
    queue, send, _ = loop(bench, cqe_sz, **context)
    memory = bench.memory(4096)
    memory.view[:100] = MESSAGE
    key = bench.mkey(memory)
    read = (remote(memory.iova, key), data(key, memory.iova + 1024, length))
    queue.post(WqeOpcode.RDMA_READ, *read)
    seen = carried(send, CqeOpcode.REQ)
    assert seen == (form, MESSAGE[:length] if form else b"")
    assert bytes(memory.view[1024 : 1024 + length]) == (bytes(length) if form else MESSAGE[:length])
    queue.post(WqeOpcode.RDMA_WRITE, remote(memory.iova, key), data(key, memory.iova, length))
    assert carried(send, CqeOpcode.REQ) == (0, b"")
    queue.post(WqeOpcode.RDMA_READ, *read, flags=0)
    assert bytes(memory.view[1024 : 1024 + length]) == MESSAGE[:length], "without a CQE it goes to memory"


def test_the_receive_wqe_is_checked_all_the_same(bench: Bench) -> None:
    queue, send, receive = loop(bench, 0, **NARROW)
    memory = bench.memory(4096)
    queue.receive((bench.mkey(memory, lw=0), memory.iova, 128))
    queue.post(WqeOpcode.SEND, inline(b"abc"))
    assert receive.error().syndrome == CqeSyndrome.LOCAL_PROT_ERR
    assert send.error().syndrome == CqeSyndrome.REMOTE_OP_ERR


@pytest.mark.requirement("A8")
@pytest.mark.parametrize(
    ("cqe_sz", "context"),
    [(0, {"cs_res": 2}), (0, {"cs_req": 0x22}), (1, {"cs_res": 3}), (1, {"cs_req": 1}), (0, {"cs_res": 1, "st": 3})],
)
def test_what_is_refused(bench: Bench, cqe_sz: int, context: dict[str, Any]) -> None:
    cq = bench.cq(cqe_sz=cqe_sz)
    with pytest.raises(CommandError) as refusal:
        bench.qp(cq, **context)
    assert refusal.value.syndrome is queues.SCATTER_TO_CQE_INVALID
