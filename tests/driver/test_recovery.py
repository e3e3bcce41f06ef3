from __future__ import annotations

import pytest

from softhca.driver import HealthWatch, Reached, bring_up, close, recover, reset_function, roll_back
from softhca.driver.close import tear_down_fast
from softhca.driver.errors import BringUpError, CommandTimeout, NotReady, StaleObject
from softhca.driver.health import MISSES, Verdict
from softhca.points import Probe
from softhca.points.rules import Rules, parse_line
from softhca.prm.init_segment import HealthSyndrome, NicInterface
from softhca.prm.opcodes import Opcode
from softhca.prm.pd import AllocPdIn, AllocPdOut
from tests.driver.conftest import SECOND, Bench, Pair, make_bench, make_pair


def disturb(bench: Bench, *rules: str) -> None:
    bench.hca.probe = Probe(bench.driver.engine.clock, rules=Rules([parse_line(rule) for rule in rules]))


@pytest.mark.requirement("F6")
def test_fast_teardown_frees_by_the_ledger(bench: Bench) -> None:
    make_pair(bench.driver)
    given = bench.driver.account[2]
    start = len(bench.driver.log)
    closed = close(bench.driver, fast=True)
    assert bench.driver.log[start:] == [Opcode.TEARDOWN_HCA]
    assert (closed.reclaimed, closed.outstanding) == (given, 0)
    assert bench.host.allocations == 0
    assert bench.summary()["pages_outstanding"] == 0
    bring_up(bench.driver)
    assert close(bench.driver).outstanding == 0


@pytest.mark.requirement("F6")
def test_a_device_that_cannot_be_fast_is_closed_normally(bench: Bench) -> None:
    make_pair(bench.driver)
    disturb(bench, "command=TEARDOWN_HCA refuse_fast_teardown")
    start = len(bench.driver.log)
    assert close(bench.driver, fast=True).outstanding == 0
    log = bench.driver.log[start:]
    assert log[0] is Opcode.TEARDOWN_HCA
    assert log[-1] is Opcode.DISABLE_HCA
    assert log.count(Opcode.TEARDOWN_HCA) == 2


@pytest.mark.requirement("F6")
def test_without_the_capability_fast_teardown_is_not_tried(bench: Bench) -> None:
    bench.driver.capabilities.fast_teardown = 0
    assert not tear_down_fast(bench.driver)
    assert Opcode.TEARDOWN_HCA not in bench.driver.log


@pytest.mark.requirement("F8")
def test_after_a_recovery_old_numbers_and_keys_are_refused(pair: Pair) -> None:
    driver = pair.driver
    old_channel, old_pd = driver.channel, driver.pds[0]
    recover(driver)
    new = make_pair(driver)
    with pytest.raises(StaleObject, match="command queue of this life"):
        old_channel.execute(Opcode.ALLOC_PD, AllocPdIn.new(), AllocPdOut)
    with pytest.raises(StaleObject, match="posting a send: an object of an earlier life"):
        pair.qps[0].post_send(pair.source.region, 0, 8)
    with pytest.raises(StaleObject, match="posting a receive"):
        pair.qps[0].post_receive(pair.source.region, 0, 8)
    with pytest.raises(StaleObject):
        new.qps[0].post_send(pair.source.region, 0, 8)
    with pytest.raises(StaleObject, match="polling"):
        pair.cqs[0].poll()
    with pytest.raises(StaleObject, match="CREATE_QP"):
        driver.create_qp(old_pd, new.cqs[0], new.cqs[0])
    with pytest.raises(StaleObject, match="CREATE_MKEY"):
        driver.register_memory(old_pd, 64)
    with pytest.raises(StaleObject):
        pair.qps[0].destroy()


@pytest.mark.requirement("F8", "B10")
def test_a_recovery_leaves_nothing_behind(pair: Pair, bench: Bench) -> None:
    for _ in range(3):
        recover(pair.driver)
        assert bench.driver.account[2] == len(bench.hca.function.icm.pages)
    new = make_pair(pair.driver)
    new.qps[0].post_write(new.source.region, 0, 64, new.target.address, new.target.key)
    new.cqs[0].wait(SECOND).check()
    close(pair.driver)
    assert bench.host.allocations == 0


@pytest.mark.requirement("F7", "D10")
def test_a_lost_command_of_bring_up_is_undone_by_a_reset(cold: Bench) -> None:
    disturb(cold, "command=ENABLE_HCA lost")
    with pytest.raises(BringUpError, match="'enable'"):
        bring_up(cold.driver)
    assert cold.host.allocations > 0
    closed = roll_back(cold.driver)
    assert closed.outstanding == 0
    assert cold.host.allocations == 0
    assert cold.driver.reached is Reached.NOTHING
    bring_up(cold.driver)


@pytest.mark.requirement("D8")
def test_a_command_whose_event_is_lost_is_found_complete_after_its_time(bench: Bench) -> None:
    disturb(bench, "event=CMD drop")
    bench.driver.create_pd()
    assert bench.driver.channel.missed_events == 1
    assert bench.driver.channel.quarantine == {}


@pytest.mark.requirement("E3")
def test_one_equal_reading_proves_nothing(bench: Bench) -> None:
    watch = HealthWatch(bench.driver)
    assert watch.look().verdict is Verdict.ALIVE
    again = watch.look()
    assert again.verdict is Verdict.SUSPECT
    assert not again.verdict.needs_recovery
    assert watch.observe().verdict is Verdict.ALIVE


@pytest.mark.requirement("E3")
def test_a_counter_that_stands_is_stuck_after_several_readings(bench: Bench) -> None:
    bench.hca.health.stop()
    report = HealthWatch(bench.driver).observe()
    assert report.verdict is Verdict.STUCK
    assert report.misses == MISSES
    assert "stuck" in str(report)


@pytest.mark.requirement("E3")
def test_a_fault_that_the_device_lives_with(bench: Bench) -> None:
    bench.hca.health.report(HealthSyndrome.HIGH_TEMP_ERR, 0x77)
    report = HealthWatch(bench.driver).observe()
    assert report.verdict is Verdict.UNWELL
    assert (report.syndrome, report.extended) == ("HIGH_TEMP_ERR", 0x77)
    assert (report.hardware, report.firmware) == (0x101B, 20 << 24 | 26 << 16 | 1040)
    bench.driver.create_pd()


@pytest.mark.requirement("E3")
def test_commands_in_quarantine_are_part_of_the_report(bench: Bench) -> None:
    disturb(bench, "command=ALLOC_PD late=90s")
    with pytest.raises(CommandTimeout):
        bench.driver.create_pd()
    watch = HealthWatch(bench.driver)
    assert watch.look().quarantined == 1
    assert "1 commands in quarantine" in str(watch.look())
    bench.driver.engine.wait(lambda: False, 60 * SECOND)
    assert watch.look().quarantined == 0


@pytest.mark.requirement("E2", "E3", "F8")
def test_a_dead_device_is_recovered_by_a_software_reset(pair: Pair, bench: Bench) -> None:
    bench.hca.die(HealthSyndrome.FW_INTERNAL_ERR)
    report = HealthWatch(bench.driver).look()
    assert report.verdict is Verdict.DEAD
    assert report.verdict.needs_recovery
    recover(bench.driver)
    assert HealthWatch(bench.driver).look().verdict is Verdict.ALIVE
    make_pair(bench.driver)
    close(bench.driver)
    assert bench.host.allocations == 0


@pytest.mark.requirement("E2", "E3")
def test_an_interface_that_somebody_disabled(bench: Bench) -> None:
    bench.driver.segment.set_interface(NicInterface.DISABLED)
    assert HealthWatch(bench.driver).look().verdict is Verdict.DISABLED
    recover(bench.driver)
    assert HealthWatch(bench.driver).look().verdict is Verdict.ALIVE


@pytest.mark.requirement("F1", "E3")
def test_a_card_that_is_gone_frees_everything(pair: Pair, bench: Bench) -> None:
    bench.hca.remove()
    assert HealthWatch(bench.driver).look().verdict is Verdict.GONE
    with pytest.raises(NotReady, match="the function is gone"):
        recover(bench.driver)
    assert bench.host.allocations == 0
    assert bench.driver.account[2] == 0


@pytest.mark.requirement("F7")
def test_a_function_that_does_not_come_back_keeps_everything(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    make_pair(bench.driver)
    allocations = bench.host.allocations
    monkeypatch.setattr(bench.driver.pci, "capabilities", dict)
    with pytest.raises(NotReady, match="no PCIe capability"):
        reset_function(bench.driver)
    assert bench.host.allocations == allocations
    assert bench.driver.account[2] > 0


@pytest.mark.requirement("E4")
def test_ticks_are_time_only_by_the_reported_frequency() -> None:
    bench = make_bench()
    bring_up(bench.driver)
    segment, frequency = bench.driver.segment, bench.driver.capabilities.device_frequency_khz
    start = segment.timer()
    bench.driver.engine.wait(lambda: False, SECOND)
    assert segment.nanoseconds(segment.timer() - start, frequency) == pytest.approx(SECOND, rel=1e-6)
    with pytest.raises(ValueError, match="device_frequency_khz is 0"):
        segment.nanoseconds(1, 0)
