"""What fault rules do to packets and completions: retries, duplicates, sequence errors, counters (G5)."""

from __future__ import annotations

from typing import Any

import pytest

from softhca.points import Point, Probe
from softhca.points.catalogue import CQE, PACKET
from softhca.points.probe import Value
from softhca.points.rules import Rules, parse_line
from softhca.prm.cqe import CqeOpcode, CqeSyndrome
from softhca.prm.init_segment import HealthSyndrome
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import QpState
from softhca.prm.syndromes.completion import VendorSyndrome
from softhca.prm.wqe import WqeOpcode
from tests.hca import test_atomics, test_datagram, test_uc
from tests.hca.bench import SECOND, Bench, data, inline, remote
from tests.hca.raw_host import RawHost
from tests.hca.test_datagram import Two, av
from tests.hca.test_rc import Pair, make_pair

TIMEOUT = 4096 << 14
"""Nanoseconds until a requester of these tests sends again."""

uc = test_uc.pair
ud = test_datagram.pair


def disturb(bench: Bench, *rules: str) -> list[tuple[Point, tuple[Value, ...]]]:
    """Put rules in force; what is told of packets and completions."""
    told: list[tuple[Point, tuple[Value, ...]]] = []

    def record(time: int, card: int, function: int, point: Point, values: tuple[Value, ...]) -> None:
        if point in (CQE, PACKET):
            told.append((point, values))

    probe = Probe(bench.card.engine.clock, record=record, rules=Rules([parse_line(rule) for rule in rules]))
    bench.card.probe = probe  # type: ignore[assignment]
    return told


def counters(bench: Bench) -> Any:
    return bench.call(Opcode.QUERY_Q_COUNTER, counter_set_id=0)


@pytest.fixture
def rc() -> Pair:
    return make_pair(Bench())


def write(pair: Pair, at: int = 0, length: int = 5000) -> None:
    where = remote(pair.target.iova + at, pair.rkey)
    pair.left.post(WqeOpcode.RDMA_WRITE, where, data(pair.lkey, pair.source.iova + at, length))


@pytest.mark.requirement("G5")
@pytest.mark.parametrize("effect", ["drop", "corrupt"])
def test_a_request_that_is_lost_is_sent_again_after_the_timeout(rc: Pair, effect: str) -> None:
    told = disturb(rc.bench, f"point=packet answer=0 {effect}")
    write(rc)
    assert rc.sent.poll() is None
    assert not any(rc.target.view[:5000])
    rc.bench.wait(TIMEOUT + SECOND // 1000)
    assert rc.sent.good(CqeOpcode.REQ).byte_cnt == 5000
    assert rc.target.view[:5000] == rc.source.view[:5000]
    found = counters(rc.bench)
    assert (found.local_ack_timeout_err, found.duplicate_request, found.rx_write_requests) == (1, 0, 1)
    assert [values[2] for point, values in told if point is PACKET] == ["RDMA_WRITE", "RDMA_WRITE", "acknowledge"]
    traffic = rc.bench.card.port.traffic
    assert traffic.sent.packets - traffic.received.packets == 2, "two packets of a message did not arrive"


@pytest.mark.requirement("G5")
@pytest.mark.parametrize("effect", ["drop", "corrupt"])
def test_an_answer_that_is_lost_does_not_carry_the_request_out_twice(rc: Pair, effect: str) -> None:
    rc.right.receive((rc.rkey, rc.target.iova, 100))
    rc.right.receive((rc.rkey, rc.target.iova + 1000, 100))
    disturb(rc.bench, f"point=packet answer=1 count=2 {effect}")
    rc.left.post(WqeOpcode.SEND, inline(b"once"))
    assert rc.received.good(CqeOpcode.RESP_SEND).byte_cnt == 4
    assert rc.sent.poll() is None
    rc.bench.wait(3 * TIMEOUT)
    assert rc.sent.good(CqeOpcode.REQ).wqe_counter == 0
    assert rc.received.poll() is None
    found = counters(rc.bench)
    assert (found.duplicate_request, found.local_ack_timeout_err) == (2, 2)
    rc.left.post(WqeOpcode.SEND, inline(b"more"))
    assert bytes(rc.target.view[1000:1004]) == b"more"


@pytest.mark.requirement("G5")
def test_an_atomic_whose_answer_is_lost_happens_once(rc: Pair) -> None:
    pair = test_atomics.make()
    pair.set(40)
    disturb(pair.bench, "point=packet answer=1 drop")
    pair.post(WqeOpcode.ATOMIC_FA, 2, 0)
    assert pair.value() == 42
    pair.set(50)  # somebody else goes on
    pair.bench.wait(2 * TIMEOUT)
    assert pair.sent.good(CqeOpcode.REQ).wqe_counter == 0
    assert (pair.value(), pair.result()) == (50, 40)


@pytest.mark.requirement("G5")
def test_data_whose_answer_is_lost_is_read_again(rc: Pair) -> None:
    disturb(rc.bench, "point=packet answer=1 drop")
    rc.target.view[:64] = b"a" * 64
    where = remote(rc.target.iova, rc.rkey)
    rc.left.post(WqeOpcode.RDMA_READ, where, data(rc.lkey, rc.source.iova, 64))
    rc.bench.wait(2 * TIMEOUT)
    assert rc.sent.good(CqeOpcode.REQ).byte_cnt == 64
    assert bytes(rc.source.view[:64]) == b"a" * 64


@pytest.mark.requirement("G5")
def test_a_request_that_comes_twice_is_answered_twice_and_carried_out_once(rc: Pair) -> None:
    rc.right.receive((rc.rkey, rc.target.iova, 100))
    told = disturb(rc.bench, "point=packet answer=0 duplicate")
    rc.left.post(WqeOpcode.SEND, inline(b"once"))
    assert rc.received.good(CqeOpcode.RESP_SEND).byte_cnt == 4
    assert rc.received.poll() is None
    assert rc.sent.good(CqeOpcode.REQ).wqe_counter == 0
    assert counters(rc.bench).duplicate_request == 1
    assert [values[2] for point, values in told if point is PACKET].count("acknowledge") == 2


@pytest.mark.requirement("G5")
def test_a_request_out_of_order_is_a_sequence_error_and_sent_again_at_once(rc: Pair) -> None:
    disturb(rc.bench, "point=packet answer=0 reorder")
    write(rc)
    assert rc.sent.good(CqeOpcode.REQ).byte_cnt == 5000
    found = counters(rc.bench)
    assert (found.out_of_sequence, found.packet_seq_err, found.local_ack_timeout_err) == (1, 1, 0)
    assert rc.target.view[:5000] == rc.source.view[:5000]


@pytest.mark.requirement("G5")
def test_when_all_is_lost_the_retries_are_exhausted(rc: Pair) -> None:
    disturb(rc.bench, "point=packet answer=0 count=0 drop")
    write(rc)
    rc.bench.wait(9 * TIMEOUT)
    failed = rc.sent.error()
    assert (failed.syndrome, failed.vendor_err_synd) == (
        CqeSyndrome.TRANSPORT_RETRY_EXC_ERR,
        VendorSyndrome.NO_RESPONSE,
    )
    assert rc.bench.state(rc.left) == QpState.ERR
    assert counters(rc.bench).local_ack_timeout_err == 8


@pytest.mark.requirement("G5")
@pytest.mark.parametrize("effect", ["drop", "corrupt", "reorder"])
def test_an_unreliable_message_is_lost_without_a_word(uc: Pair, effect: str) -> None:
    uc.right.receive((uc.rkey, uc.target.iova, 100))
    disturb(uc.bench, f"point=packet {effect}")
    uc.left.post(WqeOpcode.SEND, inline(b"gone"))
    uc.left.post(WqeOpcode.SEND, inline(b"here"))
    assert [uc.sent.good(CqeOpcode.REQ).wqe_counter for _ in range(2)] == [0, 1]
    assert uc.received.good(CqeOpcode.RESP_SEND).byte_cnt == 4
    assert bytes(uc.target.view[:4]) == b"here"
    assert test_uc.lost(uc) == 1


def post_datagrams(pair: Two, *texts: bytes) -> None:
    for at in range(4):
        pair.right.receive((pair.key, pair.target.iova + 100 * at, 100))
    for text in texts:
        pair.left.post(WqeOpcode.SEND, av(pair.right.number), inline(text))


def arrived(pair: Two) -> list[bytes]:
    found = []
    while (cqe := pair.arrived.poll()) is not None:
        at = 100 * (cqe.wqe_counter % 4)
        found.append(bytes(pair.target.view[at + 40 : at + cqe.byte_cnt]))
    return found


@pytest.mark.requirement("G5")
@pytest.mark.parametrize(
    ("effect", "texts"),
    [
        ("drop", [b"two", b"three"]),
        ("corrupt", [b"two", b"three"]),
        ("duplicate", [b"one", b"one", b"two", b"three"]),
        ("reorder", [b"two", b"one", b"three"]),
    ],
)
def test_datagrams(ud: Two, effect: str, texts: list[bytes]) -> None:
    disturb(ud.here, f"operation=datagram {effect}")
    post_datagrams(ud, b"one", b"two", b"three")
    assert arrived(ud) == texts


@pytest.mark.requirement("G5")
def test_a_datagram_that_nothing_overtakes_comes_late(ud: Two) -> None:
    disturb(ud.here, "operation=datagram reorder")
    post_datagrams(ud, b"one")
    assert arrived(ud) == []
    ud.here.wait(SECOND // 100)
    assert arrived(ud) == [b"one"]


@pytest.mark.requirement("A4")
def test_each_completion_is_told_of(rc: Pair) -> None:
    told = disturb(rc.bench)
    write(rc, length=64)
    rc.left.post(WqeOpcode.RDMA_WRITE, remote(0, 0), data(rc.lkey, rc.source.iova, 1))
    completions = [values for point, values in told if point is CQE]
    assert completions[0] == (rc.sent.number, rc.left.number, CqeOpcode.REQ, 0, 64, 0)
    assert completions[1] == (
        rc.sent.number, rc.left.number, CqeOpcode.REQ_ERR, 1, 0, CqeSyndrome.REMOTE_ACCESS_ERR
    )  # fmt: skip


@pytest.mark.requirement("A10")
def test_an_access_that_fails_is_told_of_and_touches_nothing() -> None:
    host = RawHost().initialize()
    rules = Rules([parse_line("point=dma write=false fault"), parse_line("point=dma write=true nth=3 fault")])
    host.hca.probe = Probe(host.engine.clock, rules=rules)
    message = host.message(Opcode.ALLOC_PD.to_bytes(2, "big") + bytes(14), 16)
    host.ring(message)
    host.settle()
    assert host.owned(message), "its entry could not be read"
    assert host.hca.commands.dropped == 1
    assert host.hca.health.syndrome is HealthSyndrome.ICM_FETCH_PCI_ERR
    assert host.submit(message).status == 0
    assert [rule.fired for rule in rules.rules] == [1, 0]
    host.hca.probe = None
    host.hca.config_write(4, bytes([6, 0]))
    host.good(Opcode.ALLOC_PD)
    assert rules.rules[1].seen == 1


@pytest.mark.requirement("A10")
def test_while_accesses_are_watched_nothing_that_was_found_is_kept() -> None:
    host = RawHost().initialize()
    host.hca.probe = Probe(host.engine.clock, rules=Rules([parse_line("point=dma nth=1000000 fault")]))
    assert host.hca.dma.generation != host.hca.dma.generation
    assert host.hca.dma.read(host.queue, 8) == host.machine.dma.read(host.queue, 8)
