from __future__ import annotations

import pytest

from softhca.driver import Reached, close
from softhca.driver.bringup import STEPS
from softhca.driver.errors import CommandFailed, CommandTimeout
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus
from tests.driver.conftest import SECOND, Bench, Pair, make_pair


@pytest.mark.requirement("F2", "F3", "F4")
def test_close_goes_in_the_order_of_the_source(bench: Bench) -> None:
    make_pair(bench.driver)
    start = len(bench.driver.log)
    closed = close(bench.driver)
    log = bench.driver.log[start:]
    order = [
        Opcode.DESTROY_QP,
        Opcode.DESTROY_CQ,
        Opcode.DESTROY_MKEY,
        Opcode.DEALLOC_PD,
        Opcode.DESTROY_EQ,
        Opcode.DEALLOC_UAR,
        Opcode.TEARDOWN_HCA,
        Opcode.MANAGE_PAGES,
        Opcode.DISABLE_HCA,
    ]
    assert list(dict.fromkeys(log)) == order
    assert log[-1] is Opcode.DISABLE_HCA
    assert closed.torn_down
    assert closed.outstanding == 0
    assert bench.host.allocations == 0
    assert not any(dict(bench.hca.summary()["objects"]).values())


@pytest.mark.requirement("F1", "F2")
def test_close_with_work_in_flight_leaves_nothing_running(bench: Bench) -> None:
    pair = make_pair(bench.driver, 1 << 20)
    for _ in range(8):
        pair.qps[0].post_write(pair.source.region, 0, 1 << 20, pair.target.address, pair.target.key)
    close(bench.driver)
    assert bench.host.allocations == 0
    bench.driver.engine.wait(lambda: False, SECOND)


@pytest.mark.requirement("A8", "F2")
def test_referenced_object_is_not_destroyed_and_stays_usable(pair: Pair) -> None:
    with pytest.raises(CommandFailed) as caught:
        pair.cqs[0].destroy()
    assert caught.value.status == CommandStatus.BAD_RES_STATE
    pair.qps[0].post_write(pair.source.region, 0, 8, pair.target.address, pair.target.key)
    pair.cqs[0].wait(SECOND).check()


@pytest.mark.requirement("F7")
@pytest.mark.parametrize("last", [name for name, _, _ in STEPS])
def test_partial_bring_up_is_undone_as_far_as_it_went(cold: Bench, last: str) -> None:
    for name, _, function in STEPS:
        function(cold.driver)
        if name == last:
            break
    reached = cold.driver.reached
    closed = close(cold.driver)
    assert closed.outstanding == 0
    assert closed.torn_down == (reached >= Reached.INITIALIZED)
    assert cold.host.allocations == 0
    assert cold.summary()["failed_commands"] == {}
    assert cold.summary()["pages_outstanding"] == 0


@pytest.mark.requirement("F5")
def test_failing_close_command_frees_nothing(bench: Bench) -> None:
    channel = bench.driver.channel
    channel.timeout = 1_000_000
    make_pair(bench.driver)
    allocations = bench.host.allocations
    bench.card.hold = True
    with pytest.raises(CommandTimeout, match="DESTROY_QP"):
        close(bench.driver)
    assert bench.host.allocations == allocations
    assert bench.driver.ledger.outstanding == bench.driver.ledger.given
    assert bench.driver.reached is Reached.READY
