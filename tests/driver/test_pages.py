from __future__ import annotations

import pytest

from softhca.bus.local import LocalHost
from softhca.driver import bring_up, close
from softhca.driver.errors import BringUpError, CommandFailed, LedgerError, PageShortage
from softhca.driver.memory import Buffer
from softhca.driver.mr import MemoryRegion
from softhca.driver.pd import ProtectionDomain
from softhca.prm.events import Eqe, EventType
from softhca.prm.hca_cap import QueryHcaCapIn, QueryHcaCapOut
from softhca.prm.opcodes import Opcode
from softhca.prm.pages import ManagePagesOut, PagesNeed
from softhca.prm.status import CommandStatus
from tests.driver.conftest import Bench, make_bench


@pytest.mark.requirement("B6", "B8", "F4")
def test_ledger_agrees_with_the_device_at_each_point(bench: Bench) -> None:
    ledger = bench.driver.ledger
    assert ledger.given > 0
    assert ledger.outstanding == ledger.held(0) == ledger.given
    assert bench.summary()["pages_outstanding"] == ledger.outstanding
    closed = close(bench.driver)
    assert closed.reclaimed == ledger.given == ledger.returned
    assert ledger.outstanding == 0


@pytest.mark.requirement("B8")
def test_query_pages_is_satisfied_by_what_was_given(bench: Bench) -> None:
    assert bench.driver.ledger.query(PagesNeed.BOOT_PAGES) <= 0
    assert bench.driver.ledger.query(PagesNeed.INIT_PAGES) <= 0


@pytest.mark.requirement("B8", "C8")
def test_pages_may_be_given_in_several_batches(bench: Bench) -> None:
    ledger = bench.driver.ledger
    before = ledger.outstanding
    for count in (1, 3, 64, 512):
        ledger.give(count)
    assert ledger.outstanding == before + 580
    assert bench.summary()["pages_outstanding"] == before + 580


@pytest.mark.requirement("B10", "F4")
def test_reclaim_repeats_until_none_comes_back(bench: Bench) -> None:
    ledger = bench.driver.ledger
    for _ in range(3):
        ledger.give(512)
    commands = bench.driver.log.count(Opcode.MANAGE_PAGES)
    closed = close(bench.driver)
    assert closed.outstanding == 0
    assert closed.reclaimed == ledger.given
    assert bench.driver.log.count(Opcode.MANAGE_PAGES) - commands > 3


def register_many(bench: Bench, pd: ProtectionDomain, buffer: Buffer) -> list[MemoryRegion]:
    """Register keys until pages were given at run time."""
    driver = bench.driver
    given = driver.ledger.given
    regions: list[MemoryRegion] = []
    while driver.ledger.given == given:
        assert len(regions) < 50_000, "the device never asked for pages"
        regions.append(MemoryRegion.register(driver.channel, pd, buffer))
    return regions


@pytest.mark.requirement("B9", "B3")
def test_pages_request_at_run_time_is_answered_and_the_command_goes_on(bench: Bench) -> None:
    buffer = Buffer(bench.host, 4096)
    regions = register_many(bench, bench.driver.create_pd(), buffer)
    assert bench.summary()["failed_commands"] == {}
    assert bench.summary()["pages_outstanding"] == bench.driver.ledger.outstanding
    for region in regions:
        region.deregister(bench.driver.channel)
    buffer.free()
    assert close(bench.driver).outstanding == 0
    assert bench.host.allocations == 0


@pytest.mark.requirement("B9", "B3")
def test_no_memory_for_a_page_request_ends_the_command_with_no_resources(bench: Bench) -> None:
    pd, buffer = bench.driver.create_pd(), Buffer(bench.host, 4096)
    MemoryRegion.register(bench.driver.channel, pd, buffer)
    starve(bench.host)
    with pytest.raises(CommandFailed) as caught:
        register_many(bench, pd, buffer)
    assert caught.value.status == CommandStatus.NO_RESOURCES
    assert bench.driver.ledger.outstanding == bench.driver.ledger.given
    assert bench.driver.log.count(Opcode.MANAGE_PAGES) < 10, "the device asks again only when it must"


def starve(host: LocalHost) -> None:
    """Take all memory that is left."""
    size = 16 << 20
    while size >= 4096:
        try:
            host.allocate(size)
        except MemoryError:
            size //= 2


@pytest.mark.requirement("B9", "F7")
def test_no_memory_at_bring_up_is_reported_and_undone() -> None:
    bench = make_bench(memory=1 << 16)
    with pytest.raises(BringUpError, match=r"function 0 lacks .* pages") as caught:
        bring_up(bench.driver)
    assert isinstance(caught.value.__cause__, PageShortage)
    assert caught.value.stage in {"boot pages", "init pages"}
    closed = close(bench.driver)
    assert closed.outstanding == 0
    assert bench.host.allocations == 0


@pytest.mark.requirement("B10", "F4")
def test_page_that_was_never_given_is_not_freed(bench: Bench) -> None:
    reply = ManagePagesOut.new(output_num_entries=1, pas=[0x1234_5000])
    outstanding = bench.driver.ledger.outstanding
    with pytest.raises(LedgerError, match="returns 0x12345000, which function 0 was not given"):
        bench.driver.ledger._came_back(0, reply)
    assert bench.driver.ledger.outstanding == outstanding


@pytest.mark.requirement("B9")
def test_failed_answer_to_a_page_request_is_not_lost(bench: Bench) -> None:
    ledger = bench.driver.ledger
    event = Eqe.new(type=EventType.PAGE_REQUEST, data={"req_pages": {"func_id": 7, "num_pages": 4}})
    allocations = bench.host.allocations
    ledger.on_page_request(event)
    with pytest.raises(CommandFailed, match="MANAGE_PAGES"):
        ledger.settle()
    assert bench.host.allocations == allocations, "refused pages are the host's again"
    assert ledger.outstanding == ledger.given
    assert close(bench.driver).outstanding == 0


@pytest.mark.requirement("B8", "B10")
def test_notice_of_spare_pages_takes_back_what_the_device_returns(bench: Bench) -> None:
    ledger = bench.driver.ledger
    ledger.give(300)
    outstanding = ledger.outstanding
    event = Eqe.new(data={"req_pages": {"num_pages": (1 << 32) - 100}})
    ledger.on_page_request(event)
    ledger.settle()
    assert ledger.outstanding == outstanding - 100
    assert bench.summary()["pages_outstanding"] == ledger.outstanding


@pytest.mark.requirement("D6")
def test_no_memory_for_mailboxes_leaves_the_slot_free(bench: Bench) -> None:
    channel = bench.driver.channel
    starve(bench.host)
    with pytest.raises(MemoryError):
        channel.prepare(Opcode.QUERY_HCA_CAP, QueryHcaCapIn.new(op_mod=1), QueryHcaCapOut, room=1 << 20)
    assert channel.in_flight == 0
    assert sorted(channel._free) == list(range(channel.geometry.slots - 1))
    assert bench.driver.create_pd().number


@pytest.mark.requirement("B7")
def test_pages_of_one_function_are_not_found_under_another(bench: Bench) -> None:
    ledger = bench.driver.ledger
    address = next(iter(ledger._held[0]))
    with pytest.raises(LedgerError, match="which function 1 was not given"):
        ledger._came_back(1, ManagePagesOut.new(output_num_entries=1, pas=[address]))
    assert ledger.held(0) == ledger.given
