"""CQE compression: blocks byte by byte, what ends them, and that nothing is lost by it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softhca.hca.errors import CommandError
from softhca.prm.cq import CqStatus
from softhca.prm.cqe import Cqe64, CqeOpcode, CqeSyndrome, MiniCqe8
from softhca.prm.events import EventType
from softhca.prm.opcodes import Opcode
from softhca.prm.syndromes import objects as syndromes
from softhca.prm.syndromes.completion import VendorSyndrome
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import Bench, Completions, inline

MICROSECOND = 1000
REQ, SEND = CqeOpcode.REQ, CqeOpcode.RESP_SEND
HASH, CHECKSUM, STRIDE_INDEX = 0, 1, 3


@pytest.fixture
def bench() -> Bench:
    return Bench()


def compressed_cq(bench: Bench, form: int = CHECKSUM, *, log_size: int = 6, cqe_sz: int = 0) -> Completions:
    return bench.cq(log_size=log_size, cqe_sz=cqe_sz, cqe_comp_en=1, mini_cqe_res_format=form)


def complete(bench: Bench, cq: Completions, opcode: CqeOpcode, counter: int, length: int, qpn: int = 0x40) -> bool:
    return bench.fn.cqs.get(cq.number).complete(opcode, counter, qpn, index=5, length=length)


@dataclass
class Reader:
    """Reads CQEs out of blocks as Linux mlx5e does; a requester's as the manual has it."""

    cq: Completions
    form: int
    blocks: list[int] = field(default_factory=list)

    def slot(self, index: int) -> memoryview:
        end = (index % (1 << self.cq.log_size) + 1) * self.cq.stride
        return self.cq.memory.view[end - 64 : end]

    def read(self) -> list[tuple[int, int, int, int]]:
        """Opcode, QP, WQE counter and byte count of each CQE that is there."""
        found = []
        while (raw := self.cq.raw()) is not None:
            title = Cqe64(bytearray(raw))
            if title.format != 3:
                found.append((title.opcode, title.sop_drop_qpn, title.wqe_counter, title.byte_cnt))
                continue
            first, count = self.cq.consumer - 1, title.byte_cnt
            self.blocks.append(count)
            at, counter = first + 1, title.wqe_counter
            for number in range(count):
                if number and number % 8 == 0:
                    at = first + number
                mini = MiniCqe8(bytes(self.slot(at)[number % 8 * 8 : number % 8 * 8 + 8]))
                qpn = title.sop_drop_qpn
                if title.opcode == REQ:
                    counter, qpn = mini.s_wqe_info.wqe_counter, mini.s_wqe_info.s_wqe_opcode << 24 | title.qpn
                elif self.form == STRIDE_INDEX:
                    counter = mini.stridx
                found.append((title.opcode, qpn, counter, mini.byte_cnt))
                counter = counter + 1 & 0xFFFF
            for index in range(first, first + count):  # as software must: the slots have no owner bits of their own
                self.slot(index)[63] = index >> self.cq.log_size & 1
            self.cq.consumer = first + count
            self.cq.record.set_word(0, self.cq.consumer & 0xFF_FFFF)
        return found


@pytest.mark.requirement("A4", "G2")
def test_block_byte_by_byte(bench: Bench) -> None:
    cq = compressed_cq(bench)
    for counter, opcode, length in ((7, 0x0A, 0), (9, 0x08, 100), (12, 0x0A, 0x1_0000)):
        complete(bench, cq, REQ, counter, length, opcode << 24 | 0xABCDE)
    assert cq.raw() is None
    bench.wait(16 * MICROSECOND)
    title = bytes(32) + bytes.fromhex("00000005 00000000 00000000 00000003 1122334455667788 0a0abcde 0007 00 0c")
    assert cq.raw() == title
    minis = bytes.fromhex("00070a00 00000000  00090800 00000064  000c0a00 00010000")
    assert bytes(cq.memory.view[64:128]) == minis.ljust(64, b"\0")


@pytest.mark.requirement("A4", "G2")
@pytest.mark.parametrize(("form", "own"), [(HASH, "00000000"), (CHECKSUM, "00000000"), (STRIDE_INDEX, "0000fffe")])
def test_mini_cqes_of_a_responder(bench: Bench, form: int, own: str) -> None:
    cq = compressed_cq(bench, form)
    for step in range(3):
        complete(bench, cq, SEND, 0xFFFE + step & 0xFFFF, 10 + step)
    bench.wait(16 * MICROSECOND)
    assert bytes(cq.memory.view[64:72]) == bytes.fromhex(own + "0000000a")
    assert Reader(cq, form).read() == [(SEND, 0x40, 0xFFFE, 10), (SEND, 0x40, 0xFFFF, 11), (SEND, 0x40, 0, 12)]


@pytest.mark.requirement("A4")
def test_cqes_of_128_bytes_have_their_minis_in_the_second_half(bench: Bench) -> None:
    cq = compressed_cq(bench, cqe_sz=1)
    for counter in range(2):
        complete(bench, cq, SEND, counter, 8)
    bench.wait(16 * MICROSECOND)
    assert bytes(cq.memory.view[192:208]) == bytes.fromhex("0000000000000008") * 2
    assert len(Reader(cq, CHECKSUM).read()) == 2


@pytest.mark.requirement("A4")
def test_a_block_ends_at_its_greatest_size(bench: Bench) -> None:
    cq = compressed_cq(bench)
    for counter in range(8):
        assert cq.memory.view[63] == 0xF0
        complete(bench, cq, SEND, counter, counter)
    reader = Reader(cq, CHECKSUM)
    assert [length for *_, length in reader.read()] == list(range(8))
    assert reader.blocks == [8]


@pytest.mark.requirement("A4")
@pytest.mark.parametrize(
    "other",
    [(REQ, 1, 0x40), (SEND, 1, 0x41), (SEND, 2, 0x40)],
    ids=["another kind", "another QP", "a counter that does not follow"],
)
def test_a_block_ends_with_a_cqe_that_does_not_fit(bench: Bench, other: tuple[CqeOpcode, int, int]) -> None:
    cq = compressed_cq(bench)
    complete(bench, cq, SEND, 0, 8)
    opcode, counter, qpn = other
    complete(bench, cq, opcode, counter, 8, qpn)
    assert cq.good(SEND).format == 0
    assert cq.raw() is None
    bench.wait(16 * MICROSECOND)
    assert cq.good(opcode).wqe_counter == counter


@pytest.mark.requirement("A4", "A6")
def test_an_error_cqe_comes_after_what_was_gathered(bench: Bench) -> None:
    cq = compressed_cq(bench)
    complete(bench, cq, SEND, 0, 8)
    complete(bench, cq, SEND, 1, 8)
    bench.fn.cqs.get(cq.number).fail(
        CqeOpcode.RESP_ERR, 2, 0x40, index=0, syndrome=CqeSyndrome.WR_FLUSH_ERR, vendor=VendorSyndrome.FLUSHED
    )
    assert [row[:1] + row[2:3] for row in Reader(cq, CHECKSUM).read()] == [
        (SEND, 0),
        (SEND, 1),
        (CqeOpcode.RESP_ERR, 2),
    ]


@pytest.mark.requirement("A4", "A5")
def test_solicited_cqes_are_not_held_back(bench: Bench) -> None:
    cq = compressed_cq(bench)
    complete(bench, cq, SEND, 0, 8)
    bench.fn.cqs.get(cq.number).complete(SEND, 1, 0x40, index=5, solicited=True)
    assert [cq.good(SEND).solicited for _ in range(2)] == [0, 1]


@pytest.mark.requirement("A4", "A5")
def test_the_event_comes_with_the_block(bench: Bench) -> None:
    cq = compressed_cq(bench)
    bench.ring(cq.uar, 0x20, bytes(4) + cq.number.to_bytes(4, "big"))
    complete(bench, cq, SEND, 0, 8)
    complete(bench, cq, SEND, 1, 8)
    assert bench.events.poll() is None
    bench.wait(16 * MICROSECOND)
    event = bench.events.poll()
    assert event is not None
    assert event.data.comp.cqn == cq.number


@pytest.mark.requirement("A4", "A6")
def test_a_block_that_has_no_room_overruns_the_cq(bench: Bench) -> None:
    cq = compressed_cq(bench, log_size=2)
    for counter in range(6):
        complete(bench, cq, SEND, counter, 8)
    assert bench.fn.cqs.get(cq.number).status is CqStatus.OK
    bench.wait(16 * MICROSECOND)
    assert bench.fn.cqs.get(cq.number).status is CqStatus.CQ_OVERFLOW
    event = bench.events.poll()
    assert event is not None
    assert event.type == EventType.CQ_ERROR
    assert [row[2] for row in Reader(cq, CHECKSUM).read()] == [0, 1, 2, 3]
    assert not complete(bench, cq, SEND, 6, 8)


@pytest.mark.requirement("A4", "A7")
@pytest.mark.parametrize("opcode", [Opcode.DESTROY_QP, Opcode.TO_RST_QP])
def test_no_cqe_of_a_qp_comes_after_its_end(bench: Bench, opcode: Opcode) -> None:
    cq = compressed_cq(bench)
    queue = bench.qp(cq, cq)
    bench.connect(queue, queue)
    queue.post(WqeOpcode.NOP)
    assert cq.raw() is None
    bench.call(opcode, qpn=queue.number)
    assert cq.good(REQ).qpn == queue.number
    bench.wait(1000 * MICROSECOND)
    assert cq.raw() is None


@pytest.mark.requirement("A4", "A8")
def test_nothing_is_written_once_the_cq_is_destroyed(bench: Bench) -> None:
    cq = compressed_cq(bench)
    complete(bench, cq, SEND, 0, 8)
    bench.call(Opcode.DESTROY_CQ, cqn=cq.number)
    bench.wait(1000 * MICROSECOND)
    assert cq.raw() is None


@pytest.mark.requirement("A4")
def test_a_profile_without_compression() -> None:
    bench = Bench()
    bench.fn.caps.general.cqe_compression = 0
    with pytest.raises(CommandError) as refusal:
        compressed_cq(bench)
    assert refusal.value.syndrome is syndromes.CQE_COMPRESSION_UNSUPPORTED


@pytest.mark.requirement("A4", "G2", "G5")
def test_messages_of_two_qps(bench: Bench) -> None:
    send, receive = compressed_cq(bench), compressed_cq(bench, STRIDE_INDEX)
    first, second = bench.qp(send, receive), bench.qp(send, receive)
    bench.connect(first, second)
    memory = bench.memory(4096)
    key = bench.mkey(memory)
    for number in range(5):
        second.receive((key, memory.iova + 64 * number, 64))
    for number in range(5):
        first.post(WqeOpcode.SEND, inline(bytes([number]) * (number + 1)), ring=number == 4)
    bench.wait(100 * MICROSECOND)
    readers = Reader(send, CHECKSUM), Reader(receive, STRIDE_INDEX)
    assert [(row[1] >> 24, row[2]) for row in readers[0].read()] == [(WqeOpcode.SEND, number) for number in range(5)]
    assert [row[2:] for row in readers[1].read()] == [(number, number + 1) for number in range(5)]
    assert [reader.blocks for reader in readers] == [[5], [5]]
    assert bytes(memory.view[64 * 4 : 64 * 4 + 5]) == b"\4" * 5


MESSAGES = st.tuples(
    st.sampled_from([REQ, SEND, CqeOpcode.RESP_SEND_IMM]), st.integers(0, 0xFFFF), st.integers(0, 1 << 31),
    st.sampled_from([0x40, 0x41]), st.integers(0, 20), st.booleans(),
)  # fmt: skip


@pytest.mark.requirement("A4", "G2")
@given(st.lists(MESSAGES, max_size=60), st.sampled_from([HASH, CHECKSUM, STRIDE_INDEX]), st.integers(2, 20))
@settings(max_examples=60, deadline=None)
def test_whatever_is_completed_is_read(
    messages: list[tuple[CqeOpcode, int, int, int, int, bool]], form: int, most: int
) -> None:
    bench = Bench()
    bench.fn.caps.general.cqe_compression_max_num = most
    cq = compressed_cq(bench, form, log_size=4)
    reader = Reader(cq, form)
    expected, seen, counter = [], [], 0
    for opcode, anywhere, length, qpn, pause, jumps in messages:
        counter = anywhere if jumps else counter + 1 & 0xFFFF
        assert complete(bench, cq, opcode, counter, length, qpn)
        expected.append((opcode, qpn, counter, length))
        bench.wait(pause * MICROSECOND)
        seen += reader.read()
    bench.wait(16 * MICROSECOND)
    assert seen + reader.read() == expected
