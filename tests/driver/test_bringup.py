from __future__ import annotations

import pytest

from softhca.driver import Driver, Reached, bring_up, close
from softhca.driver.bringup import STEPS, Stage
from softhca.driver.errors import BringUpError, CommandFailed
from softhca.prm.function import InitHcaIn, InitHcaOut
from softhca.prm.opcodes import Opcode
from softhca.prm.pd import AllocPdIn, AllocPdOut
from softhca.prm.status import CommandStatus
from tests.driver.conftest import PROFILES, Bench, make_bench

ORDER = [
    Opcode.ENABLE_HCA,
    Opcode.QUERY_ISSI,
    Opcode.SET_ISSI,
    Opcode.QUERY_PAGES,
    Opcode.MANAGE_PAGES,
    Opcode.QUERY_HCA_CAP,
    Opcode.SET_HCA_CAP,
    Opcode.QUERY_PAGES,
    Opcode.MANAGE_PAGES,
    Opcode.INIT_HCA,
]


def run_until(driver: Driver, last: str) -> None:
    """Run the steps of bring-up up to and with `last`."""
    for name, _, function in STEPS:
        function(driver)
        if name == last:
            return
    raise AssertionError(f"no step {last}")


@pytest.mark.requirement("C5", "C8", "C10", "C11")
@pytest.mark.parametrize("clock", ["real", "virtual"])
@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_comes_up_and_closes(profile: str, clock: str) -> None:
    bench = make_bench(profile, clock=clock)
    stages = bring_up(bench.driver)
    assert [stage.name for stage in stages] == [name for name, _, _ in STEPS]
    assert bench.driver.reached is Reached.READY
    assert bench.driver.port.ethernet == profile.endswith("eth")
    assert bench.driver.port.link_up
    assert bench.driver.port.vport_up
    closed = close(bench.driver)
    assert closed.torn_down
    assert closed.outstanding == 0
    assert bench.summary()["failed_commands"] == {}
    assert bench.summary()["pages_outstanding"] == 0
    assert bench.host.allocations == 0


@pytest.mark.requirement("C5")
def test_commands_come_in_the_order_of_the_source(bench: Bench) -> None:
    found = iter(bench.driver.log)
    assert all(opcode in found for opcode in ORDER)
    log = bench.driver.log
    assert log.index(Opcode.CREATE_EQ) > log.index(Opcode.INIT_HCA)


@pytest.mark.requirement("C5", "C3")
@pytest.mark.parametrize("last", ["command queue", "enable", "interface step", "boot pages"])
def test_command_out_of_order_is_refused_with_bad_system_state(cold: Bench, last: str) -> None:
    run_until(cold.driver, last)
    with pytest.raises(CommandFailed) as caught:
        cold.driver.channel.execute(Opcode.ALLOC_PD, AllocPdIn.new(), AllocPdOut)
    assert caught.value.status == CommandStatus.BAD_SYS_STATE


@pytest.mark.requirement("C8")
def test_init_hca_fails_while_init_pages_are_lacking(cold: Bench) -> None:
    run_until(cold.driver, "capabilities")
    with pytest.raises(CommandFailed) as caught:
        cold.driver.channel.execute(Opcode.INIT_HCA, InitHcaIn.new(), InitHcaOut)
    assert caught.value.status in {CommandStatus.BAD_SYS_STATE, CommandStatus.NO_RESOURCES}


@pytest.mark.requirement("C3", "C9")
def test_states_are_told_apart(cold: Bench) -> None:
    reached: list[tuple[str, Reached]] = []

    def watch(stage: Stage) -> None:
        reached.append((stage.name, cold.driver.reached))

    bring_up(cold.driver, watch)
    assert dict(reached) == {
        "firmware start": Reached.NOTHING,
        "enumeration": Reached.ENUMERATED,
        "bus master": Reached.ENUMERATED,
        "command queue": Reached.QUEUE,
        "enable": Reached.ENABLED,
        "interface step": Reached.ENABLED,
        "boot pages": Reached.ENABLED,
        "capabilities": Reached.ENABLED,
        "init pages": Reached.ENABLED,
        "initialise": Reached.INITIALIZED,
        "driver version": Reached.INITIALIZED,
        "command events": Reached.INITIALIZED,
        "completion events": Reached.INITIALIZED,
        "port": Reached.READY,
    }


@pytest.mark.requirement("C2")
def test_without_bus_master_no_command_completes(cold: Bench) -> None:
    run_until(cold.driver, "command queue")
    cold.driver.pci.disable_bus_master()
    cold.driver.timeout = cold.driver.channel.timeout = 1_000_000
    with pytest.raises(Exception, match="ENABLE_HCA"):
        run_until_from(cold.driver, "enable")


def run_until_from(driver: Driver, only: str) -> None:
    next(function for name, _, function in STEPS if name == only)(driver)


@pytest.mark.requirement("C6")
def test_highest_common_issi_is_set(bench: Bench) -> None:
    assert bench.driver.issi == 1
    assert bench.hca.function.issi == 1


@pytest.mark.requirement("C7")
def test_selected_capabilities_are_within_what_is_possible(bench: Bench) -> None:
    caps = bench.driver.capabilities
    assert caps.log_uar_page_sz == 0
    assert 0 < caps.log_max_qp <= 18


@pytest.mark.requirement("C10")
def test_commands_are_polled_before_the_command_eq_and_event_driven_after(cold: Bench) -> None:
    run_until(cold.driver, "driver version")
    assert not cold.driver.channel.event_driven
    run_until_from(cold.driver, "command events")
    assert cold.driver.channel.event_driven
    assert cold.driver.command_eq is not None
    before = cold.driver.command_eq.events
    pd = cold.driver.create_pd()
    assert cold.driver.command_eq.events == before + 1
    pd.deallocate(cold.driver.channel)


def test_same_seed_and_virtual_clock_give_the_same_stages() -> None:
    first, second = (bring_up(make_bench(seed=9).driver) for _ in range(2))
    assert first == second


@pytest.mark.requirement("C1", "C3", "F7")
def test_bad_flash_image_enumerates_and_is_never_ready() -> None:
    bench = make_bench(flash=b"not firmware")
    with pytest.raises(BringUpError, match="initializing stays 1 for 120 s") as caught:
        bring_up(bench.driver)
    assert caught.value.stage == "command queue"
    assert "health syndrome 0x00" not in str(caught.value)
    assert bench.driver.reached is Reached.ENUMERATED
    assert not bench.driver.log
    close(bench.driver)
    assert bench.host.allocations == 0


@pytest.mark.requirement("F8")
def test_card_comes_up_again_after_a_close(bench: Bench) -> None:
    close(bench.driver)
    again = Driver(bench.card, bench.host)
    bring_up(again)
    assert close(again).outstanding == 0
    assert bench.host.allocations == 0
