"""Atomics: what they do to the responder's memory, what comes back, and each way to refuse them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softhca.hca import atomics
from softhca.hca.errors import CommandError
from softhca.prm.cqe import CqeOpcode, CqeSyndrome
from softhca.prm.events import EventType
from softhca.prm.qp import QpState
from softhca.prm.syndromes.completion import VendorSyndrome
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import Bench, Buffer, Completions, Queue, data, remote

ALL = (1 << 64) - 1
WORD = st.integers(0, ALL)


@dataclass
class Pair:
    bench: Bench
    left: Queue
    right: Queue
    sent: Completions
    source: Buffer
    target: Buffer
    lkey: int
    rkey: int

    def post(self, opcode: WqeOpcode, *operands: int, at: int = 0, local: bytes | None = None, rkey: int = 0) -> None:
        segments = [remote(self.target.iova + at, rkey or self.rkey), struct.pack(f">{len(operands)}Q", *operands)]
        segments.append(data(self.lkey, self.source.iova, 8) if local is None else local)
        self.left.post(opcode, *segments)

    def set(self, value: int, at: int = 0) -> None:
        self.target.view[at : at + 8] = value.to_bytes(8, "little")

    def value(self, at: int = 0) -> int:
        return int.from_bytes(self.target.view[at : at + 8], "little")

    def result(self) -> int:
        return int.from_bytes(self.source.view[:8], "little")


def make(*, rae: int = 1, host_order: int = 1, a: int = 1) -> Pair:
    bench = Bench()
    bench.fn.caps.atomic.atomic_req_8B_endianness_mode = host_order
    sent = bench.cq()
    left, right = bench.qp(sent), bench.qp(sent)
    for queue, peer in ((left, right), (right, left)):
        bench.to_init(queue, rae=rae, atomic_mode=1)
        bench.to_rtr(queue, peer.number)
        bench.to_rts(queue)
    source, target = bench.memory(4096), bench.memory(4096)
    lkey = bench.mkey(source)
    return Pair(bench, left, right, sent, source, target, lkey, bench.mkey(target, key=0x55, a=a))


@pytest.mark.requirement("G5")
@pytest.mark.parametrize(
    ("opcode", "operands", "after"),
    [
        (WqeOpcode.ATOMIC_CS, (77, 5), 77),
        (WqeOpcode.ATOMIC_CS, (77, 6), 5),
        (WqeOpcode.ATOMIC_FA, (ALL, 0), 4),
        (WqeOpcode.ATOMIC_MASKED_CS, (0xF0, 0x1, 0xF0, 0x1), 0xF5),
        (WqeOpcode.ATOMIC_MASKED_CS, (0xF0, 0x2, 0xF0, 0x2), 5),
        (WqeOpcode.ATOMIC_MASKED_FA, (0xB, 0x8), 0x0),
    ],
)
def test_operation_and_result(opcode: WqeOpcode, operands: tuple[int, ...], after: int) -> None:
    pair = make()
    pair.set(5, at=16)
    pair.post(opcode, *operands, at=16)
    cqe = pair.sent.good(CqeOpcode.REQ)
    assert (cqe.byte_cnt, cqe.sop_drop_qpn >> 24) == (8, opcode)
    assert (pair.result(), pair.value(16)) == (5, after)
    assert not any(pair.target.view[:16])
    assert not any(pair.target.view[24:])


@pytest.mark.requirement("G5")
def test_result_is_big_endian_until_the_driver_chooses() -> None:
    pair = make(host_order=0)
    pair.set(0x0102_0304_0506_0708)
    pair.post(WqeOpcode.ATOMIC_FA, 1, 0)
    assert pair.source.view[:8] == bytes([1, 2, 3, 4, 5, 6, 7, 8])
    assert pair.value() == 0x0102_0304_0506_0709


@pytest.mark.requirement("G5")
def test_result_may_be_scattered() -> None:
    pair = make()
    pair.set(0x0102_0304_0506_0708)
    base = pair.source.iova
    pair.post(WqeOpcode.ATOMIC_FA, 0, 0, local=data(pair.lkey, base, 3) + data(pair.lkey, base + 100, 5))
    assert bytes(pair.source.view[:3]) + bytes(pair.source.view[100:105]) == bytes([8, 7, 6, 5, 4, 3, 2, 1])


@pytest.mark.requirement("G5", "B11")
@pytest.mark.parametrize(
    ("context", "at", "syndrome", "vendor", "event"),
    [
        (
            {"rae": 0},
            0,
            CqeSyndrome.REMOTE_INVAL_REQ_ERR,
            VendorSyndrome.ATOMIC_NOT_ENABLED,
            EventType.WQ_INVAL_REQ_ERROR,
        ),
        ({}, 4, CqeSyndrome.REMOTE_INVAL_REQ_ERR, VendorSyndrome.ATOMIC_MISALIGNED, EventType.WQ_INVAL_REQ_ERROR),
        ({"a": 0}, 0, CqeSyndrome.REMOTE_ACCESS_ERR, VendorSyndrome.KEY_RIGHT, EventType.WQ_ACCESS_ERROR),
        ({}, 4096, CqeSyndrome.REMOTE_ACCESS_ERR, VendorSyndrome.KEY_RANGE, EventType.WQ_ACCESS_ERROR),
    ],
)
def test_responder_refuses(
    context: dict[str, Any], at: int, syndrome: CqeSyndrome, vendor: VendorSyndrome, event: EventType
) -> None:
    pair = make(**context)
    while pair.bench.events.poll() is not None:
        pass
    pair.post(WqeOpcode.ATOMIC_FA, 1, 0, at=at)
    error = pair.sent.error()
    assert (error.syndrome, error.vendor_err_synd) == (syndrome, vendor)
    assert pair.bench.state(pair.left) == pair.bench.state(pair.right) == QpState.ERR
    eqe = pair.bench.events.poll()
    assert eqe is not None
    assert eqe.type == event
    assert not any(pair.target.view)


@pytest.mark.requirement("G5")
@pytest.mark.parametrize(
    ("length", "syndrome", "vendor"),
    [
        (4, CqeSyndrome.LOCAL_LENGTH_ERR, VendorSyndrome.ATOMIC_LENGTH),
        (16, CqeSyndrome.LOCAL_LENGTH_ERR, VendorSyndrome.ATOMIC_LENGTH),
    ],
)
def test_requester_refuses_lengths(length: int, syndrome: CqeSyndrome, vendor: VendorSyndrome) -> None:
    pair = make()
    pair.post(WqeOpcode.ATOMIC_CS, 1, 0, local=data(pair.lkey, pair.source.iova, length))
    error = pair.sent.error()
    assert (error.syndrome, error.vendor_err_synd) == (syndrome, vendor)
    assert pair.bench.state(pair.right) == QpState.RTS
    assert not any(pair.target.view)


@pytest.mark.requirement("G5")
def test_requester_checks_its_own_memory_first() -> None:
    pair = make()
    pair.post(WqeOpcode.ATOMIC_FA, 1, 0, local=data(pair.lkey, pair.source.iova + 4090, 8))
    assert pair.sent.error().syndrome == CqeSyndrome.LOCAL_PROT_ERR
    assert not any(pair.target.view)


@pytest.mark.requirement("G5")
def test_short_wqe_and_operations_that_the_model_lacks() -> None:
    pair = make()
    pair.left.post(WqeOpcode.ATOMIC_MASKED_CS, remote(pair.target.iova, pair.rkey), bytes(16))
    assert pair.sent.error().vendor_err_synd == VendorSyndrome.WQE_SHORT
    pair = make()
    pair.bench.fn.caps.atomic.atomic_operations = 0x3
    pair.post(WqeOpcode.ATOMIC_MASKED_FA, 1, 0)
    error = pair.sent.error()
    assert (error.syndrome, error.vendor_err_synd) == (CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.OPCODE)


@given(old=WORD, add=WORD)
def test_masked_add_without_boundaries_is_an_add(old: int, add: int) -> None:
    assert atomics.masked_fetch_add(old, add, 0) == atomics.fetch_add(old, add, 0)


@given(old=WORD, add=WORD)
def test_masked_add_of_bytes(old: int, add: int) -> None:
    sums = bytes((a + b) & 0xFF for a, b in zip(old.to_bytes(8, "big"), add.to_bytes(8, "big"), strict=True))
    assert atomics.masked_fetch_add(old, add, 0x8080_8080_8080_8080) == int.from_bytes(sums, "big")


@given(old=WORD, swap=WORD, compare=WORD)
def test_masked_swap_with_full_masks_is_a_swap(old: int, swap: int, compare: int) -> None:
    assert atomics.masked_compare_swap(old, swap, compare, ALL, ALL) == atomics.compare_swap(old, swap, compare)
    assert atomics.masked_compare_swap(old, swap, old, ALL, 0) == swap


@pytest.mark.requirement("C7")
def test_drivers_write_the_atomic_page_with_nothing_but_their_choice() -> None:
    bench = Bench()
    caps = bench.fn.caps
    page = type(caps.atomic).new(atomic_req_8B_endianness_mode=1)
    assert caps.atomic.atomic_req_8B_endianness_mode == 0
    caps.select("atomic", bytes(page).ljust(4096, b"\0"))
    assert (caps.atomic.atomic_req_8B_endianness_mode, caps.atomic.atomic_size_qp) == (1, 8)
    page.atomic_size_qp = 16
    with pytest.raises(CommandError):
        caps.select("atomic", bytes(page).ljust(4096, b"\0"))
