"""BlueFlame: WQEs written through the UAR page, and the queue that Linux tests it with."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import pytest

from softhca.hca.errors import CommandError
from softhca.prm.cqe import CqeOpcode, CqeSyndrome
from softhca.prm.opcodes import Opcode
from softhca.prm.sq import CreateSqIn, SqState
from softhca.prm.syndromes import objects as syndromes
from softhca.prm.syndromes import queues
from softhca.prm.syndromes.table import Syndrome
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import Bench, Buffer, Completions, Queue, inline, remote

BUFFERS = (0x800, 0x900)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def write(bench: Bench, uar: int, at: int, wqe: bytes, *, step: int = 8) -> None:
    """Write a WQE to a BlueFlame buffer, as a guest's stores arrive; the queues have their turn afterwards."""
    for offset in range(0, len(wqe), step):
        bench.ring(uar, at + offset, wqe[offset : offset + step], run=False)
    bench.run()


@dataclass
class Raw:
    """A send queue of CREATE_SQ."""

    bench: Bench
    number: int
    cq: Completions
    memory: Buffer
    record: Buffer
    sends: int = 0

    def nop(self, *, signalled: bool) -> bytes:
        """Post a NOP that asks for no CQE; what is to be written to BlueFlame may ask for one."""
        head = struct.pack(">II", self.sends << 8, self.number << 8 | 1)
        at = self.sends % 256 * 64
        self.memory.view[at : at + 64] = head.ljust(64, b"\0")
        self.sends += 1
        self.record.set_word(4, self.sends)
        return (head + struct.pack(">I", 8 * signalled)).ljust(64, b"\0")


def raw(bench: Bench, *, ready: bool = True, **context: Any) -> Raw:
    cq, memory, record = bench.cq(log_size=8), bench.memory(256 * 64), bench.memory(8)
    wq = {"wq_type": 1, "uar_page": bench.uar, "dbr_addr": record.iova, "log_wq_stride": 6, "log_wq_sz": 8}
    wq |= context.pop("wq", {})
    pages = b"".join(page.to_bytes(8, "big") for page in bench.pages(memory))
    request = CreateSqIn.new(ctx={"cqn": cq.number, "wq": wq} | context)
    number = bench.call(Opcode.CREATE_SQ, CreateSqIn(bytearray(bytes(request)[: CreateSqIn.SIZE]) + pages)).sqn
    if ready:
        bench.call(Opcode.MODIFY_SQ, sqn=number, ctx={"state": SqState.RDY})
    return Raw(bench, number, cq, memory, record)


@pytest.mark.requirement("A3", "G1")
@pytest.mark.parametrize("step", [8, 16, 64])
def test_the_write_combining_test_of_linux(bench: Bench, step: int) -> None:
    queue = raw(bench)
    for number in range(255):
        write(bench, bench.uar, BUFFERS[number % 2], queue.nop(signalled=True), step=step)
    seen = [queue.cq.good(CqeOpcode.REQ).wqe_counter for _ in range(255)]
    assert seen == list(range(255))


@pytest.mark.requirement("A3", "G1")
def test_without_the_rest_the_wqe_in_the_queue_counts(bench: Bench) -> None:
    queue = raw(bench)
    write(bench, bench.uar, 0x800, queue.nop(signalled=True)[:8])
    wqe = queue.nop(signalled=True)
    write(bench, bench.uar, 0x900, wqe[:56])
    write(bench, bench.uar, 0x900 + 56, wqe[56:])
    assert queue.cq.poll() is None, "the rest came too late"
    wqe = queue.nop(signalled=True)
    write(bench, bench.uar, 0x800, wqe[:16] + wqe[24:])
    write(bench, bench.uar, 0x800, queue.nop(signalled=True))
    assert queue.cq.good(CqeOpcode.REQ).wqe_counter == 3


def test_a_late_wqe_is_not_kept_for_the_next_lap(bench: Bench) -> None:
    queue = raw(bench)
    late = queue.nop(signalled=True)
    bench.ring(bench.uar, 0x800, late[:8])
    write(bench, bench.uar, 0x800, late)
    for _ in range(300):
        write(bench, bench.uar, 0x800, queue.nop(signalled=False)[:8])
    assert queue.cq.poll() is None


@pytest.mark.requirement("A3", "G1")
def test_a_wqe_of_several_blocks_around_the_end_of_the_ring(bench: Bench) -> None:
    queue: Queue = bench.qp(bench.cq(), log_sq=2)
    bench.connect(queue, queue)
    memory = bench.memory(4096)
    key = bench.mkey(memory)
    for lap in range(5):
        body = remote(memory.iova, key) + inline(bytes([lap + 1]) * 100)
        ds = 1 + len(body) // 16
        head = struct.pack(">IIII", queue.sends << 8 | WqeOpcode.RDMA_WRITE, queue.number << 8 | ds, 8, 0)
        wqe = (head + body).ljust(192, b"\0")
        queue.post_raw(bytes([*wqe[:140], *bytes(52)]), ring=False)
        write(bench, queue.uar, 0x800 + lap % 2 * 0x100, wqe)
        assert bytes(memory.view[:100]) == bytes([lap + 1]) * 100


def test_another_page_pushes_nothing(bench: Bench) -> None:
    queue = raw(bench)
    page = bench.call(Opcode.ALLOC_UAR).uar
    write(bench, page, 0x800, queue.nop(signalled=True))
    assert queue.cq.poll() is None
    assert bench.fn.uars.get(page).ignored == 8


@pytest.mark.requirement("A8", "G3")
def test_life_of_a_send_queue(bench: Bench) -> None:
    queue = raw(bench, ready=False)
    shown = bench.call(Opcode.QUERY_SQ, sqn=queue.number).sq_context
    assert (shown.state, shown.cqn) == (SqState.RST, queue.cq.number)
    with pytest.raises(CommandError) as refusal:
        bench.call(Opcode.MODIFY_SQ, sqn=queue.number, sq_state=1, ctx={"state": 1})
    assert refusal.value.syndrome is queues.SQ_STATE_INVALID
    bench.call(Opcode.MODIFY_SQ, sqn=queue.number, ctx={"state": 1})
    bench.call(Opcode.MODIFY_SQ, sqn=queue.number, sq_state=1, ctx={"state": 3})
    write(bench, bench.uar, 0x800, queue.nop(signalled=True))
    assert queue.cq.error().syndrome == CqeSyndrome.WR_FLUSH_ERR
    with pytest.raises(CommandError) as refusal:
        bench.call(Opcode.DESTROY_CQ, cqn=queue.cq.number)
    assert refusal.value.syndrome is syndromes.STILL_REFERENCED
    with pytest.raises(CommandError) as refusal:
        bench.call(Opcode.DESTROY_QP, qpn=queue.number)
    assert refusal.value.syndrome is syndromes.NO_SUCH_OBJECT
    bench.call(Opcode.DESTROY_SQ, sqn=queue.number)
    bench.call(Opcode.DESTROY_CQ, cqn=queue.cq.number)


def test_a_send_queue_does_nothing_but_nops(bench: Bench) -> None:
    queue = raw(bench)
    wqe = bytearray(queue.nop(signalled=True))
    wqe[3] = WqeOpcode.SEND
    write(bench, bench.uar, 0x800, bytes(wqe))
    assert queue.cq.error().syndrome == CqeSyndrome.LOCAL_QP_OP_ERR
    assert bench.call(Opcode.QUERY_SQ, sqn=queue.number).sq_context.state == SqState.ERR


@pytest.mark.requirement("A8")
@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({"tis_lst_sz": 1}, queues.SQ_FEATURE_UNSUPPORTED),
        ({"state": 1}, queues.SQ_STATE_INVALID),
        ({"wq": {"log_wq_stride": 5}}, syndromes.WQ_TYPE_UNSUPPORTED),
        ({"wq": {"wq_umem_valid": 1}}, syndromes.UMEM_UNSUPPORTED),
        ({"wq": {"log_wq_sz": 20}}, syndromes.BAD_QUEUE_SIZE),
        ({"wq": {"dbr_addr": 0}}, syndromes.BAD_DOORBELL_RECORD),
        ({"cqn": 0x1234}, syndromes.NO_SUCH_REFERENCE),
    ],
)
def test_what_is_refused(bench: Bench, context: dict[str, Any], expected: Syndrome) -> None:
    with pytest.raises(CommandError) as refusal:
        raw(bench, **context)
    assert refusal.value.syndrome is expected
