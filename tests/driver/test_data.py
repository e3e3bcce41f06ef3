from __future__ import annotations

import random

import pytest

from softhca.driver import bring_up
from softhca.driver.errors import CompletionError, DriverError
from softhca.driver.memory import HcaAddress
from softhca.driver.mr import Access
from softhca.prm.cqe import CqeOpcode, CqeSyndrome
from softhca.prm.qp import QpState
from tests.driver.conftest import PROFILES, SECOND, Bench, Pair, make_bench, make_pair

SIZES = [1, 4095, 64 << 10, 1 << 20]


@pytest.mark.requirement("A1", "A2", "A3", "A4")
@pytest.mark.parametrize("size", SIZES)
def test_write_arrives_byte_for_byte(bench: Bench, size: int) -> None:
    pair = make_pair(bench.driver, size + 64)
    data = random.Random(size).randbytes(size)
    pair.source.view[7 : 7 + size] = data
    commands = len(bench.driver.log)
    counter = pair.qps[0].post_write(pair.source.region, 7, size, HcaAddress(pair.target.address + 33), pair.target.key)
    done = pair.cqs[0].wait(SECOND).check()
    assert (done.opcode, done.qpn, done.wqe_counter) == (CqeOpcode.REQ, pair.qps[0].number, counter)
    assert bytes(pair.target.view[33 : 33 + size]) == data
    assert not any(pair.target.view[:33])
    assert not any(pair.target.view[33 + size :])
    assert pair.cqs[1].poll() is None, "a write tells the peer nothing"
    assert len(bench.driver.log) == commands, "the data path needs no command"


@pytest.mark.requirement("A3", "A4")
@pytest.mark.parametrize("size", SIZES)
def test_send_goes_to_the_posted_receive(bench: Bench, size: int) -> None:
    pair = make_pair(bench.driver, size + 64)
    data = random.Random(size).randbytes(size)
    pair.source.view[:size] = data
    receive = pair.qps[1].post_receive(pair.target.region, 16, size + 20)
    send = pair.qps[0].post_send(pair.source.region, 0, size)
    received, sent = pair.cqs[1].wait(SECOND).check(), pair.cqs[0].wait(SECOND).check()
    assert (received.opcode, received.qpn, received.wqe_counter) == (CqeOpcode.RESP_SEND, pair.qps[1].number, receive)
    assert received.byte_count == size
    assert (sent.opcode, sent.wqe_counter) == (CqeOpcode.REQ, send)
    assert bytes(pair.target.view[16 : 16 + size]) == data
    assert not any(pair.target.view[16 + size :])


@pytest.mark.parametrize("clock", ["real", "virtual"])
@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_moves_data(profile: str, clock: str) -> None:
    bench = make_bench(profile, clock=clock)
    bring_up(bench.driver)
    pair = make_pair(bench.driver)
    pair.source.view[:] = random.Random(1).randbytes(1 << 16)
    pair.qps[0].post_write(pair.source.region, 0, 1 << 16, pair.target.address, pair.target.key)
    pair.cqs[0].wait(SECOND).check()
    assert pair.target.view == pair.source.view


@pytest.mark.requirement("A5", "B5")
def test_queues_wrap_many_times(bench: Bench) -> None:
    pair = make_pair(bench.driver, 4096, log_size=2, log_cq_size=3)
    for number in range(100):
        pair.source.view[:8] = number.to_bytes(8, "little")
        receive = pair.qps[1].post_receive(pair.target.region, 0, 8)
        pair.qps[0].post_send(pair.source.region, 0, 8)
        assert pair.cqs[1].wait(SECOND).check().wqe_counter == receive == number
        assert pair.cqs[0].wait(SECOND).check().wqe_counter == number
        assert int.from_bytes(pair.target.view[:8], "little") == number


@pytest.mark.requirement("A3")
def test_several_wqes_in_flight_complete_in_the_order_of_their_queue(pair: Pair) -> None:
    for at in range(16):
        pair.source.view[at] = at + 1
        pair.qps[0].post_write(pair.source.region, at, 1, HcaAddress(pair.target.address + at), pair.target.key)
    assert [pair.cqs[0].wait(SECOND).check().wqe_counter for _ in range(16)] == list(range(16))
    assert bytes(pair.target.view[:16]) == bytes(range(1, 17))


@pytest.mark.requirement("A4", "A5")
def test_armed_cq_gives_one_event_and_an_unarmed_one_none(pair: Pair) -> None:
    cq, eq = pair.cqs[0], pair.driver.completion_eq
    assert eq is not None

    def write() -> None:
        pair.qps[0].post_write(pair.source.region, 0, 8, pair.target.address, pair.target.key)
        cq.wait(SECOND).check()

    write()
    assert (cq.events, eq.events) == (0, 0)
    cq.arm()
    write()
    pair.driver.engine.wait(lambda: cq.events > 0, SECOND)
    assert (cq.events, eq.events) == (1, 1)
    write()
    assert (cq.events, eq.events) == (1, 1)
    cq.arm()
    write()
    pair.driver.engine.wait(lambda: cq.events > 1, SECOND)
    assert (cq.events, eq.events) == (2, 2)


@pytest.mark.requirement("A4")
def test_event_names_its_own_cq_and_carries_no_result(pair: Pair) -> None:
    told: list[str] = []
    pair.cqs[0].on_completion = lambda: told.append("first")
    pair.cqs[1].on_completion = lambda: told.append("second")
    pair.cqs[1].arm()
    pair.qps[1].post_receive(pair.target.region, 0, 8)
    pair.qps[0].post_send(pair.source.region, 0, 8)
    pair.driver.engine.wait(lambda: bool(told), SECOND)
    assert told == ["second"]
    assert pair.cqs[1].poll() is not None


@pytest.mark.requirement("B11", "G4")
@pytest.mark.parametrize(
    ("key", "offset", "syndrome"),
    [(0x1234_5600, 0, CqeSyndrome.REMOTE_ACCESS_ERR), (None, 1 << 16, CqeSyndrome.REMOTE_ACCESS_ERR)],
)
def test_bad_remote_key_or_range_is_an_error_completion(
    pair: Pair, key: int | None, offset: int, syndrome: CqeSyndrome
) -> None:
    remote = HcaAddress(pair.target.address + offset)
    pair.qps[0].post_write(pair.source.region, 0, 8, remote, pair.target.key if key is None else key)
    done = pair.cqs[0].wait(SECOND)
    assert done.opcode is CqeOpcode.REQ_ERR
    with pytest.raises(CompletionError, match=f"QP {pair.qps[0].number:#x} failed: syndrome 0x{syndrome:02x}"):
        done.check()
    assert not any(pair.target.view)


@pytest.mark.requirement("B11", "G4")
def test_key_without_remote_write_is_refused(bench: Bench) -> None:
    pair = make_pair(bench.driver)
    readable = bench.driver.register_memory(bench.driver.pds[0], 4096, Access.LOCAL_READ | Access.REMOTE_READ)
    pair.qps[0].post_write(pair.source.region, 0, 8, readable.address, readable.key)
    assert pair.cqs[0].wait(SECOND).error is not None
    assert not any(readable.view)


@pytest.mark.requirement("C9", "G3")
def test_created_qp_can_do_nothing_before_its_transitions(bench: Bench) -> None:
    driver = bench.driver
    pd, cq = driver.create_pd(), driver.create_cq()
    qp = driver.create_qp(pd, cq, cq)
    memory = driver.register_memory(pd, 4096)
    assert qp.state is QpState.RST
    with pytest.raises(DriverError, match="needs state RTS, it is in RST"):
        qp.post_send(memory.region, 0, 8)


@pytest.mark.requirement("E6", "B1")
def test_query_gives_the_context_as_the_interface_has_it(pair: Pair) -> None:
    context = pair.qps[0].query().qpc
    assert context.state == 3
    assert context.remote_qpn == pair.qps[1].number
    assert context.cqn_snd == pair.cqs[0].number
    assert context.log_sq_size == 4


@pytest.mark.requirement("A9")
def test_hca_virtual_address_is_not_the_dma_address(bench: Bench) -> None:
    from softhca.driver.memory import Buffer
    from softhca.driver.mr import MemoryRegion

    pair = make_pair(bench.driver)
    buffer = Buffer(bench.host, 8192)
    region = MemoryRegion.register(
        bench.driver.channel, bench.driver.pds[0], buffer, address=HcaAddress(0x7F00_0000_0000)
    )
    pair.source.view[:5] = b"hello"
    pair.qps[0].post_write(pair.source.region, 0, 5, HcaAddress(region.address + 4094), region.key)
    pair.cqs[0].wait(SECOND).check()
    assert bytes(buffer.view[4094:4099]) == b"hello"
