"""Reliable connections: CQEs byte by byte, the checks of each side, retries."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import pytest

from softhca.hca.mkey import MAX_PIECES, RESERVED_LKEY
from softhca.prm.cqe import CqeOpcode, CqeSyndrome
from softhca.prm.events import EventType
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import QpState
from softhca.prm.syndromes.completion import VendorSyndrome
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import SECOND, Bench, Buffer, Completions, Queue, data, inline, remote
from tests.hca.test_indirect_keys import indirect

IMM = 0xCAFE_F00D


@dataclass
class Pair:
    """Two connected QPs with a CQ for each direction and a buffer for each side."""

    bench: Bench
    left: Queue
    right: Queue
    sent: Completions
    received: Completions
    source: Buffer
    target: Buffer
    lkey: int
    rkey: int


def make_pair(bench: Bench, **context: int) -> Pair:
    sent, received = bench.cq(), bench.cq()
    left, right = bench.qp(sent), bench.qp(sent, received, **context)
    bench.connect(left, right)
    source, target = bench.memory(16384), bench.memory(16384)
    source.view[:] = os.urandom(16384)
    return Pair(bench, left, right, sent, received, source, target, bench.mkey(source), bench.mkey(target, key=0x99))


@pytest.fixture
def pair() -> Pair:
    return make_pair(Bench())


@pytest.mark.requirement("A2", "A3", "G2", "G5")
def test_send_arrives_and_both_cqes_are_right(pair: Pair) -> None:
    pair.right.receive((pair.rkey, pair.target.iova + 100, 5000))
    pair.left.post(WqeOpcode.SEND, data(pair.lkey, pair.source.iova + 8, 4097))
    assert pair.target.view[100 : 100 + 4097] == pair.source.view[8 : 8 + 4097]
    assert not any(pair.target.view[:100])
    assert not any(pair.target.view[100 + 4097 :])
    stamp = (0x1122_3344_5566_7788).to_bytes(8, "big")
    length = (4097).to_bytes(4, "big")
    requester = bytes(44) + length + stamp + bytes([0x0A]) + pair.left.number.to_bytes(3, "big") + bytes(4)
    assert pair.sent.raw() == requester
    responder = bytes(44) + length + stamp + pair.right.number.to_bytes(4, "big") + bytes(3) + b"\x20"
    assert pair.received.raw() == responder
    assert pair.sent.raw() is None


@pytest.mark.requirement("G5")
def test_send_with_immediate_and_solicited(pair: Pair) -> None:
    pair.right.receive((pair.rkey, pair.target.iova, 64))
    pair.left.post(WqeOpcode.SEND_IMM, data(pair.lkey, pair.source.iova, 64), flags=0x0A, immediate=IMM)
    cqe = pair.received.good(CqeOpcode.RESP_SEND_IMM)
    assert (cqe.imm_inval_pkey, cqe.byte_cnt, cqe.solicited, cqe.wqe_counter) == (IMM, 64, 1, 0)


@pytest.mark.requirement("G5")
def test_write_takes_no_receive_wqe_and_write_with_immediate_takes_one(pair: Pair) -> None:
    pair.right.receive((pair.rkey, pair.target.iova + 8192, 64))
    where = remote(pair.target.iova + 3, pair.rkey)
    pair.left.post(
        WqeOpcode.RDMA_WRITE, where, data(pair.lkey, pair.source.iova, 3), data(pair.lkey, pair.source.iova + 9, 4)
    )
    assert pair.target.view[3:10] == bytes(pair.source.view[:3]) + bytes(pair.source.view[9:13])
    assert pair.received.poll() is None
    pair.left.post(WqeOpcode.RDMA_WRITE_IMM, where, data(pair.lkey, pair.source.iova, 100), immediate=IMM)
    cqe = pair.received.good(CqeOpcode.RESP_WR_IMM)
    assert (cqe.imm_inval_pkey, cqe.byte_cnt) == (IMM, 100)
    assert not any(pair.target.view[8192:8256])


@pytest.mark.requirement("G5")
def test_read(pair: Pair) -> None:
    pair.target.view[:] = os.urandom(16384)
    where = remote(pair.target.iova + 5000, pair.rkey)
    pair.left.post(WqeOpcode.RDMA_READ, where, data(pair.lkey, pair.source.iova + 1, 6000))
    assert pair.source.view[1:6001] == pair.target.view[5000:11000]
    cqe = pair.sent.good(CqeOpcode.REQ)
    assert (cqe.byte_cnt, cqe.sop_drop_qpn >> 24) == (6000, WqeOpcode.RDMA_READ)


@pytest.mark.requirement("A2")
def test_inline_data_needs_no_key(pair: Pair) -> None:
    pair.right.receive((pair.rkey, pair.target.iova, 200))
    pair.left.post(WqeOpcode.SEND, inline(b"inline data, more than one block of it: " * 4))
    assert pair.target.view[:160] == b"inline data, more than one block of it: " * 4
    assert pair.received.good(CqeOpcode.RESP_SEND).byte_cnt == 160


@pytest.mark.requirement("G2")
def test_wqe_around_the_end_of_the_ring(pair: Pair) -> None:
    for index in range(40):
        pair.right.receive((pair.rkey, pair.target.iova, 400))
        payload = bytes([index]) * 130
        pair.left.post(WqeOpcode.SEND, inline(payload))
        assert pair.target.view[:130] == payload
        assert pair.sent.good(CqeOpcode.REQ).wqe_counter == index * 3 & 0xFFFF
        assert pair.received.good(CqeOpcode.RESP_SEND).wqe_counter == index


@pytest.mark.requirement("A4")
def test_only_signalled_wqes_complete(pair: Pair) -> None:
    where = remote(pair.target.iova, pair.rkey)
    for flags in (0x00, 0x04, 0x08, 0x0C):
        pair.left.post(WqeOpcode.RDMA_WRITE, where, data(pair.lkey, pair.source.iova, 8), flags=flags)
    assert [pair.sent.good(CqeOpcode.REQ).wqe_counter for _ in range(2)] == [2, 3]
    assert pair.sent.poll() is None


def test_nop_and_empty_send(pair: Pair) -> None:
    pair.left.post(WqeOpcode.NOP)
    assert pair.sent.good(CqeOpcode.REQ).byte_cnt == 0
    pair.right.receive()
    pair.left.post(WqeOpcode.SEND)
    assert pair.received.good(CqeOpcode.RESP_SEND).byte_cnt == 0


def test_empty_write_does_not_look_at_its_key(pair: Pair) -> None:
    pair.left.post(WqeOpcode.RDMA_WRITE, remote(0xDEAD, 0xDEAD))
    assert pair.sent.good(CqeOpcode.REQ).byte_cnt == 0


@pytest.mark.requirement("B11")
def test_doorbell_through_another_uar_is_ignored(pair: Pair) -> None:
    bench = pair.bench
    other = bench.call(Opcode.ALLOC_UAR).uar
    pair.left.post(WqeOpcode.NOP, ring=False)
    bench.ring(other, 0x800, bytes(4) + (pair.left.number << 8 | 1).to_bytes(4, "big"))
    assert pair.sent.poll() is None
    uar = bench.fn.uars.find(other)
    assert uar is not None
    assert uar.ignored == 1
    bench.ring(bench.uar, 0x900, bytes(4) + (pair.left.number << 8 | 1).to_bytes(4, "big"))
    assert pair.sent.good(CqeOpcode.REQ)


def test_doorbell_in_two_halves(pair: Pair) -> None:
    pair.left.post(WqeOpcode.NOP, ring=False)
    pair.bench.ring(pair.bench.uar, 0x800, bytes(4))
    assert pair.sent.poll() is None
    pair.bench.ring(pair.bench.uar, 0x804, (pair.left.number << 8 | 1).to_bytes(4, "big"))
    assert pair.sent.good(CqeOpcode.REQ)


@pytest.mark.requirement("G4", "B11")
@pytest.mark.parametrize(
    ("offset", "length", "flip", "vendor"),
    [
        (0, 16385, 0, VendorSyndrome.KEY_RANGE),
        (16384, 1, 0, VendorSyndrome.KEY_RANGE),
        (-1, 1, 0, VendorSyndrome.KEY_RANGE),
        (0, 8, 0x01, VendorSyndrome.NO_SUCH_KEY),
        (0, 8, 0x100, VendorSyndrome.NO_SUCH_KEY),
    ],
)
def test_local_protection(pair: Pair, offset: int, length: int, flip: int, vendor: VendorSyndrome) -> None:
    key = pair.lkey ^ flip if flip != 0x100 else 0xFFFF_FF42
    pair.left.post(
        WqeOpcode.RDMA_WRITE, remote(pair.target.iova, pair.rkey), data(key, pair.source.iova + offset, length)
    )
    cqe = pair.sent.error()
    assert (cqe.opcode, cqe.syndrome, cqe.vendor_err_synd) == (CqeOpcode.REQ_ERR, CqeSyndrome.LOCAL_PROT_ERR, vendor)
    assert cqe.s_wqe_opcode_qpn == WqeOpcode.RDMA_WRITE << 24 | pair.left.number
    assert pair.bench.state(pair.left) == QpState.ERR
    assert pair.bench.state(pair.right) == QpState.RTS
    assert not any(pair.target.view)


@pytest.mark.requirement("G4", "B11")
@pytest.mark.parametrize(
    ("offset", "length", "flip", "vendor"),
    [
        (1, 16384, 0, VendorSyndrome.KEY_RANGE),
        (16384, 1, 0, VendorSyndrome.KEY_RANGE),
        (-1, 2, 0, VendorSyndrome.KEY_RANGE),
        (0, 8, 0x01, VendorSyndrome.NO_SUCH_KEY),
    ],
)
@pytest.mark.parametrize("opcode", [WqeOpcode.RDMA_WRITE, WqeOpcode.RDMA_READ])
def test_remote_access(
    pair: Pair, opcode: WqeOpcode, offset: int, length: int, flip: int, vendor: VendorSyndrome
) -> None:
    before = bytes(pair.source.view)
    where = remote(pair.target.iova + offset, pair.rkey ^ flip)
    pair.left.post(opcode, where, data(pair.lkey, pair.source.iova, length))
    cqe = pair.sent.error()
    assert (cqe.syndrome, cqe.vendor_err_synd) == (CqeSyndrome.REMOTE_ACCESS_ERR, vendor)
    assert pair.bench.state(pair.left) == QpState.ERR
    assert pair.bench.state(pair.right) == QpState.ERR
    assert not any(pair.target.view)
    assert bytes(pair.source.view) == before
    event = pair.bench.events.poll()
    assert event is not None
    assert (event.type, event.data.qp_srq.qp_srq_n) == (EventType.WQ_ACCESS_ERROR, pair.right.number)


@pytest.mark.requirement("G4")
def test_edges_of_the_address_space() -> None:
    bench = Bench()
    pair = make_pair(bench)
    page = bench.memory(4096)
    key = bench.mkey(page, start=2**64 - 4096, length=4096)
    pair.left.post(WqeOpcode.RDMA_WRITE, remote(2**64 - 1, key), data(pair.lkey, pair.source.iova, 1))
    assert pair.sent.good(CqeOpcode.REQ)
    assert page.view[4095] == pair.source.view[0]
    pair.left.post(WqeOpcode.RDMA_WRITE, remote(2**64 - 1, key), data(pair.lkey, pair.source.iova, 2))
    assert pair.sent.error().syndrome == CqeSyndrome.REMOTE_ACCESS_ERR
    assert not any(page.view[:4095])


@pytest.mark.requirement("G4")
def test_physical_key_ends_with_the_address_space() -> None:
    pair = make_pair(Bench())
    key = pair.bench.mkey(pair.target, pages=[], key=1, access_mode_1_0=0, length64=1, start=0, length=0)
    pair.left.post(WqeOpcode.RDMA_WRITE, remote(pair.target.iova + 9, key), data(key, pair.source.iova, 7))
    assert pair.target.view[9:16] == pair.source.view[:7]
    pair.sent.good(CqeOpcode.REQ)
    pair.left.post(WqeOpcode.SEND, data(key, 2**64 - 1, 2))
    cqe = pair.sent.error()
    assert (cqe.syndrome, cqe.vendor_err_synd) == (CqeSyndrome.LOCAL_PROT_ERR, VendorSyndrome.KEY_RANGE)


@pytest.mark.requirement("A10")
def test_memory_that_is_not_mapped_faults(pair: Pair) -> None:
    key = pair.bench.mkey(pair.target, pages=[], key=1, access_mode_1_0=0, length64=1, start=0, length=0)
    pair.left.post(WqeOpcode.SEND, data(key, 2**64 - 1, 1))
    cqe = pair.sent.error()
    assert (cqe.syndrome, cqe.vendor_err_synd) == (CqeSyndrome.LOCAL_PROT_ERR, VendorSyndrome.DMA_FAULT)


@pytest.mark.requirement("A10")
def test_responder_memory_that_is_not_mapped(pair: Pair) -> None:
    key = pair.bench.mkey(pair.target, pages=[], key=1, access_mode_1_0=0, length64=1, start=0, length=0)
    pair.left.post(WqeOpcode.RDMA_WRITE, remote(0x1000, key), data(pair.lkey, pair.source.iova, 1))
    assert pair.sent.error().syndrome == CqeSyndrome.REMOTE_OP_ERR


@pytest.mark.requirement("G4", "B11")
@pytest.mark.parametrize(
    ("right", "opcode", "vendor"),
    [
        ("rw", WqeOpcode.RDMA_WRITE, VendorSyndrome.KEY_RIGHT),
        ("rr", WqeOpcode.RDMA_READ, VendorSyndrome.KEY_RIGHT),
    ],
)
def test_missing_remote_right(pair: Pair, right: str, opcode: WqeOpcode, vendor: VendorSyndrome) -> None:
    missing: dict[str, Any] = {right: 0}
    key = pair.bench.mkey(pair.target, key=5, **missing)
    pair.left.post(opcode, remote(pair.target.iova, key), data(pair.lkey, pair.source.iova, 8))
    cqe = pair.sent.error()
    assert (cqe.syndrome, cqe.vendor_err_synd) == (CqeSyndrome.REMOTE_ACCESS_ERR, vendor)


@pytest.mark.requirement("G4", "B11")
def test_missing_local_rights(pair: Pair) -> None:
    key = pair.bench.mkey(pair.source, key=5, lw=0)
    pair.left.post(WqeOpcode.RDMA_READ, remote(pair.target.iova, pair.rkey), data(key, pair.source.iova, 8))
    cqe = pair.sent.error()
    assert (cqe.syndrome, cqe.vendor_err_synd) == (CqeSyndrome.LOCAL_PROT_ERR, VendorSyndrome.KEY_RIGHT)


@pytest.mark.requirement("B11", "G4")
def test_other_pd_and_other_qp(pair: Pair) -> None:
    bench = pair.bench
    other = bench.call(Opcode.ALLOC_PD).pd
    foreign = bench.mkey(pair.target, key=5, pd=other)
    pair.left.post(WqeOpcode.RDMA_WRITE, remote(pair.target.iova, foreign), data(pair.lkey, pair.source.iova, 8))
    cqe = pair.sent.error()
    assert (cqe.syndrome, cqe.vendor_err_synd) == (CqeSyndrome.REMOTE_ACCESS_ERR, VendorSyndrome.KEY_PD)
    second = make_pair(bench)
    bound = bench.mkey(second.source, key=6, qpn=second.right.number)
    second.left.post(WqeOpcode.SEND, data(bound, second.source.iova, 8))
    assert second.sent.error().vendor_err_synd == VendorSyndrome.KEY_QP


@pytest.mark.requirement("G4")
def test_free_and_destroyed_keys_open_nothing(pair: Pair) -> None:
    key = pair.bench.mkey(pair.source, pages=[], key=5, free=1)
    pair.left.post(WqeOpcode.SEND, data(key, pair.source.iova, 8))
    assert pair.sent.error().vendor_err_synd == VendorSyndrome.KEY_FREE
    second = make_pair(pair.bench)
    pair.bench.call(Opcode.DESTROY_MKEY, mkey_index=second.rkey >> 8)
    second.left.post(
        WqeOpcode.RDMA_WRITE, remote(second.target.iova, second.rkey), data(second.lkey, second.source.iova, 8)
    )
    assert second.sent.error().syndrome == CqeSyndrome.REMOTE_ACCESS_ERR


def test_reserved_lkey_is_for_those_that_may(pair: Pair) -> None:
    pair.left.post(WqeOpcode.SEND, data(RESERVED_LKEY, pair.source.iova, 8))
    assert pair.sent.error().vendor_err_synd == VendorSyndrome.NO_SUCH_KEY
    second = make_pair(pair.bench, rlky=1)
    second.left.receive((second.lkey, second.source.iova, 64))
    second.right.post(WqeOpcode.SEND, data(RESERVED_LKEY, second.target.iova, 8))
    assert second.sent.good(CqeOpcode.RESP_SEND)
    assert second.sent.good(CqeOpcode.REQ)


@pytest.mark.requirement("G4")
def test_receive_too_short(pair: Pair) -> None:
    pair.right.receive((pair.rkey, pair.target.iova, 10), (pair.rkey, pair.target.iova + 10, 5))
    pair.left.post(WqeOpcode.SEND, data(pair.lkey, pair.source.iova, 16))
    assert pair.sent.error().syndrome == CqeSyndrome.REMOTE_INVAL_REQ_ERR
    cqe = pair.received.error()
    assert (cqe.opcode, cqe.syndrome) == (CqeOpcode.RESP_ERR, CqeSyndrome.LOCAL_LENGTH_ERR)
    assert (cqe.wqe_counter, cqe.s_wqe_opcode_qpn) == (0, pair.right.number)
    assert not any(pair.target.view)


@pytest.mark.requirement("G4")
def test_receive_with_a_bad_key(pair: Pair) -> None:
    pair.right.receive((pair.rkey ^ 1, pair.target.iova, 16))
    pair.left.post(WqeOpcode.SEND, data(pair.lkey, pair.source.iova, 16))
    assert pair.sent.error().syndrome == CqeSyndrome.REMOTE_OP_ERR
    assert pair.received.error().syndrome == CqeSyndrome.LOCAL_PROT_ERR


@pytest.mark.requirement("G3", "G4")
@pytest.mark.parametrize(("right", "opcode"), [("rwe", WqeOpcode.RDMA_WRITE), ("rre", WqeOpcode.RDMA_READ)])
def test_operation_not_enabled_at_the_responder(right: str, opcode: WqeOpcode) -> None:
    bench = Bench()
    sent = bench.cq()
    left, right_qp = bench.qp(sent), bench.qp(sent)
    bench.to_init(left)
    bench.to_init(right_qp, **{right: 0})
    for queue, peer in ((left, right_qp), (right_qp, left)):
        bench.to_rtr(queue, peer.number)
        bench.to_rts(queue)
    memory = bench.memory(64)
    key = bench.mkey(memory)
    left.post(opcode, remote(memory.iova, key), data(key, memory.iova, 8))
    assert sent.error().syndrome == CqeSyndrome.REMOTE_INVAL_REQ_ERR


def test_message_longer_than_the_path_allows() -> None:
    bench = Bench()
    sent = bench.cq()
    left, right = bench.qp(sent), bench.qp(sent)
    for queue, peer in ((left, right), (right, left)):
        bench.to_init(queue)
        bench.to_rtr(queue, peer.number, log_msg_max=12)
        bench.to_rts(queue)
    memory = bench.memory(16384)
    key = bench.mkey(memory)
    left.post(WqeOpcode.RDMA_WRITE, remote(memory.iova, key), data(key, memory.iova, 4097))
    assert sent.error().syndrome == CqeSyndrome.LOCAL_LENGTH_ERR


@pytest.mark.parametrize(
    "wqe",
    [
        b"\0\0\0\x0a" + bytes(60),  # ds 0
        bytes.fromhex("00000008") + bytes(3) + b"\x01" + bytes([0, 0, 0, 8]) + bytes(4),  # no remote segment
        bytes.fromhex("00000025") + bytes(3) + b"\x01" + bytes([0, 0, 0, 8]) + bytes(4),  # UMR is masked
        bytes.fromhex("000000ff") + bytes(3) + b"\x01" + bytes([0, 0, 0, 8]) + bytes(4),  # no such opcode
        bytes.fromhex("0000000a") + bytes(3) + b"\x3f" + bytes([0, 0, 0, 8]) + bytes(4),  # longer than posted
        bytes.fromhex("0000000a") + bytes(3) + b"\x02" + bytes([0, 0, 0, 8]) + bytes(4) + b"\x80\0\0\x20" + bytes(12),
    ],
)
def test_malformed_wqes(pair: Pair, wqe: bytes) -> None:
    pair.left.post_raw(wqe, ring=False)
    pair.bench.ring(pair.bench.uar, 0x800, bytes(4) + (pair.left.number << 8 | 1).to_bytes(4, "big"))
    assert pair.sent.error().syndrome == CqeSyndrome.LOCAL_QP_OP_ERR
    assert pair.bench.state(pair.left) == QpState.ERR


@pytest.mark.requirement("G5")
def test_receiver_not_ready_is_tried_again_after_its_timer(pair: Pair) -> None:
    pair.left.post(WqeOpcode.SEND, data(pair.lkey, pair.source.iova, 16))
    assert pair.sent.poll() is None
    pair.right.receive((pair.rkey, pair.target.iova, 16))
    pair.bench.wait(639_000)
    assert pair.sent.poll() is None
    pair.bench.wait(2_000)
    assert pair.sent.good(CqeOpcode.REQ)
    assert pair.received.good(CqeOpcode.RESP_SEND)


@pytest.mark.requirement("G5")
def test_rnr_retries_end() -> None:
    bench = Bench()
    sent = bench.cq()
    left, right = bench.qp(sent), bench.qp(sent)
    for queue, peer in ((left, right), (right, left)):
        bench.to_init(queue)
        bench.to_rtr(queue, peer.number)
        bench.to_rts(queue, rnr_retry=2)
    left.post(WqeOpcode.SEND)
    bench.wait(2 * 640_000 - 1)
    assert sent.poll() is None
    bench.wait(2)
    assert sent.error().syndrome == CqeSyndrome.RNR_RETRY_EXC_ERR


@pytest.mark.requirement("G5")
@pytest.mark.parametrize("reason", ["no such QP", "not ready to receive", "connected to another", "another LID"])
def test_nobody_answers(reason: str) -> None:
    bench = Bench()
    sent = bench.cq()
    left, right = bench.qp(sent), bench.qp(sent)
    bench.to_init(left)
    bench.to_init(right)
    bench.to_rtr(left, 0x777 if reason == "no such QP" else right.number, rlid=9 if reason == "another LID" else 1)
    bench.to_rts(left, retry_count=3, ack_timeout=10)
    if reason != "not ready to receive":
        bench.to_rtr(right, 0x777 if reason == "connected to another" else left.number)
    left.post(WqeOpcode.SEND)
    bench.wait(4 * (4096 << 10) - 1)
    assert sent.poll() is None
    bench.wait(2)
    cqe = sent.error()
    assert (cqe.syndrome, cqe.vendor_err_synd) == (CqeSyndrome.TRANSPORT_RETRY_EXC_ERR, VendorSyndrome.NO_RESPONSE)


def test_late_peer_is_reached_by_a_retry() -> None:
    bench = Bench()
    sent = bench.cq()
    left, right = bench.qp(sent), bench.qp(sent)
    bench.to_init(left)
    bench.to_rtr(left, right.number)
    bench.to_rts(left)
    memory = bench.memory(64)
    key = bench.mkey(memory)
    left.post(WqeOpcode.RDMA_WRITE, remote(memory.iova, key), inline(b"late"))
    bench.to_init(right)
    bench.to_rtr(right, left.number)
    bench.wait(SECOND)
    assert bytes(memory.view[:4]) == b"late"
    assert sent.good(CqeOpcode.REQ)


@pytest.mark.requirement("G3")
def test_error_flushes_what_is_posted_and_what_comes_later(pair: Pair) -> None:
    for _ in range(3):
        pair.left.receive((pair.lkey, pair.source.iova, 16))
    pair.left.post(WqeOpcode.SEND, data(1, 1, 1), ring=False)
    pair.left.post(WqeOpcode.NOP, flags=0)
    assert pair.sent.error().syndrome == CqeSyndrome.LOCAL_PROT_ERR
    flushed = [pair.sent.error() for _ in range(4)]
    assert {cqe.syndrome for cqe in flushed} == {CqeSyndrome.WR_FLUSH_ERR}
    assert [(cqe.opcode, cqe.wqe_counter) for cqe in flushed] == [
        (CqeOpcode.REQ_ERR, 1), (CqeOpcode.RESP_ERR, 0), (CqeOpcode.RESP_ERR, 1), (CqeOpcode.RESP_ERR, 2),
    ]  # fmt: skip
    pair.left.post(WqeOpcode.NOP)
    assert pair.sent.error().wqe_counter == 2
    pair.left.receive((pair.lkey, pair.source.iova, 16))
    pair.bench.wait(SECOND)
    assert pair.sent.error().wqe_counter == 3
    assert pair.sent.raw() is None


@pytest.mark.requirement("G3")
def test_doorbell_record_that_cannot_be(pair: Pair) -> None:
    pair.left.record.set_word(4, 0x1000)
    pair.bench.ring(pair.bench.uar, 0x800, bytes(4) + (pair.left.number << 8 | 1).to_bytes(4, "big"))
    assert pair.bench.state(pair.left) == QpState.ERR
    event = pair.bench.events.poll()
    assert event is not None
    assert (event.type, event.data.qp_srq.qp_srq_n) == (EventType.WQ_CATAS_ERROR, pair.left.number)


def test_one_pass_is_bounded_and_goes_on() -> None:
    bench = Bench()
    sent = bench.cq(log_size=8)
    left, right = bench.qp(sent, log_sq=8), bench.qp(sent)
    bench.connect(left, right)
    for _ in range(200):
        left.post(WqeOpcode.NOP, ring=False)
    bench.ring(bench.uar, 0x800, bytes(4) + (left.number << 8 | 1).to_bytes(4, "big"), run=False)
    bench.card.engine.run(1)
    assert bench.call(Opcode.QUERY_QP, qpn=left.number).qpc.hw_sq_wqebb_counter == 64
    bench.run()
    assert [sent.good(CqeOpcode.REQ).wqe_counter for _ in range(200)] == list(range(200))


def test_sequence_numbers_count_packets(pair: Pair) -> None:
    where = remote(pair.target.iova, pair.rkey)
    pair.left.post(WqeOpcode.RDMA_WRITE, where, data(pair.lkey, pair.source.iova, 4097))
    assert pair.bench.call(Opcode.QUERY_QP, qpn=pair.left.number).qpc.next_send_psn == 2
    assert pair.bench.call(Opcode.QUERY_QP, qpn=pair.right.number).qpc.next_rcv_psn == 2


@pytest.mark.requirement("G4")
@pytest.mark.parametrize("opcode", [WqeOpcode.RDMA_WRITE, WqeOpcode.RDMA_READ])
def test_pieces_of_a_message_are_bounded_over_all_its_segments(pair: Pair, opcode: WqeOpcode) -> None:
    pieces = MAX_PIECES // 2
    scattered = indirect(pair.bench, [(1, pair.lkey, pair.source.iova + 2 * at) for at in range(pieces)])
    where = remote(pair.target.iova, pair.rkey)
    pair.left.post(opcode, where, data(scattered, 0, pieces), data(scattered, 0, pieces))
    assert pair.sent.good(CqeOpcode.REQ)
    pair.left.post(opcode, where, data(scattered, 0, pieces), data(scattered, 0, pieces), data(scattered, 0, 1))
    cqe = pair.sent.error()
    assert (cqe.syndrome, cqe.vendor_err_synd) == (CqeSyndrome.LOCAL_PROT_ERR, VendorSyndrome.KEY_TOO_SCATTERED)


@pytest.mark.requirement("G4")
def test_pieces_of_a_receive_wqe_are_bounded_too(pair: Pair) -> None:
    pieces = MAX_PIECES // 2
    scattered = indirect(pair.bench, [(1, pair.rkey, pair.target.iova + 2 * at) for at in range(pieces)])
    pair.right.receive((scattered, 0, pieces), (scattered, 0, pieces), (scattered, 0, 9))
    pair.left.post(WqeOpcode.SEND, data(pair.lkey, pair.source.iova, 16384), data(pair.lkey, pair.source.iova, 1))
    assert pair.received.error().vendor_err_synd == VendorSyndrome.KEY_TOO_SCATTERED
    assert pair.sent.error().syndrome == CqeSyndrome.REMOTE_OP_ERR
