"""What fault rules do to commands, pages, event queues and interrupts of a card."""

from __future__ import annotations

import pytest

from softhca.points import Probe
from softhca.points.rules import Rules, parse_line
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus, DeliveryStatus
from softhca.prm.syndromes import control
from tests.hca.raw_host import MILLISECOND, Message, RawHost

SECOND = 1000 * MILLISECOND


@pytest.fixture
def host() -> RawHost:
    return RawHost().start().initialize()


def disturb(host: RawHost, *rules: str) -> Rules:
    found = Rules([parse_line(rule) for rule in rules])
    host.hca.probe = Probe(host.hca.engine.clock, rules=found)
    return found


def alloc_pd(host: RawHost, slot: int = 0) -> Message:
    return host.message(Opcode.ALLOC_PD.to_bytes(2, "big") + bytes(14), 16, slot)


def pds(host: RawHost) -> int:
    return host.hca.function.objects().get("PD", 0)


def passes(host: RawHost, time: int) -> None:
    host.hca.engine.wait(lambda: False, time)


@pytest.mark.requirement("D9")
def test_a_status_without_effect(host: RawHost) -> None:
    disturb(host, "command=ALLOC_PD nth=2 status=NO_RESOURCES")
    assert host.submit(alloc_pd(host)).status == CommandStatus.OK
    failed = host.submit(alloc_pd(host))
    assert (failed.delivery, failed.status) == (0, CommandStatus.NO_RESOURCES)
    assert failed.syndrome == control.INJECTED_FAULT.number
    assert pds(host) == 1
    assert host.submit(alloc_pd(host)).status == CommandStatus.OK
    assert host.hca.commands.failed["ALLOC_PD"] == 1


def test_a_syndrome_of_ones_own(host: RawHost) -> None:
    disturb(host, "command=ALLOC_PD status=BAD_PARAM syndrome=0xdead")
    assert host.submit(alloc_pd(host)).syndrome == 0xDEAD


@pytest.mark.requirement("D9")
def test_a_delivery_status(host: RawHost) -> None:
    disturb(host, "command=ALLOC_PD delivery=TOKEN_ERR")
    assert host.submit(alloc_pd(host)).delivery == DeliveryStatus.TOKEN_ERR
    assert pds(host) == 0


@pytest.mark.requirement("D10")
def test_a_delayed_command_takes_effect_late(host: RawHost) -> None:
    disturb(host, "command=ALLOC_PD delay=5s")
    message = alloc_pd(host)
    host.ring(message)
    passes(host, 4 * SECOND)
    assert host.owned(message)
    assert pds(host) == 0
    passes(host, 2 * SECOND)
    assert not host.owned(message)
    assert pds(host) == 1


@pytest.mark.requirement("D10")
def test_a_late_command_has_taken_effect(host: RawHost) -> None:
    disturb(host, "command=ALLOC_PD late=5s")
    message = alloc_pd(host)
    host.ring(message)
    passes(host, 4 * SECOND)
    assert host.owned(message)
    assert pds(host) == 1
    passes(host, 2 * SECOND)
    assert host.result(message).status == CommandStatus.OK


@pytest.mark.requirement("D10")
@pytest.mark.parametrize(("effect", "count"), [("lost", 1), ("ignored", 0)])
def test_a_command_that_never_completes_keeps_its_slot(host: RawHost, effect: str, count: int) -> None:
    disturb(host, f"command=ALLOC_PD {effect}")
    message = alloc_pd(host)
    host.ring(message)
    passes(host, 3600 * SECOND)
    assert host.owned(message)
    assert pds(host) == count
    assert host.hca.commands.in_flight == 1
    assert host.submit(alloc_pd(host, slot=1)).status == CommandStatus.OK


@pytest.mark.requirement("F8")
@pytest.mark.parametrize("effect", ["delay=1s", "late=1s", "point=command.completed late=1s"])
def test_what_is_late_is_forgotten_at_a_reset(host: RawHost, effect: str) -> None:
    disturb(host, f"command=ALLOC_PD {effect}")
    message = alloc_pd(host)
    host.ring(message)
    passes(host, SECOND // 2)
    host.write(0x14, 0x100)  # the interface is disabled
    before = bytes(host.slot(0))
    passes(host, 5 * SECOND)
    assert bytes(host.slot(0)) == before
    assert pds(host) == 0


@pytest.mark.requirement("B9")
def test_starved_commands_wait_for_pages(host: RawHost) -> None:
    host.create_eq(1 << 0x0B)
    rules = disturb(host, "starve")
    message = host.message(Opcode.ALLOC_PD.to_bytes(2, "big") + bytes(14), 16, 0)
    host.ring(message)
    host.settle()
    assert host.owned(message)
    host.give(10)
    host.settle()
    assert host.result(message).status == CommandStatus.OK
    assert rules.rules[0].fired == 1


@pytest.mark.requirement("B9")
def test_starved_commands_fail_when_nobody_can_be_asked(host: RawHost) -> None:
    disturb(host, "starve")
    failed = host.submit(alloc_pd(host))
    assert (failed.status, failed.syndrome) == (CommandStatus.NO_RESOURCES, control.NO_PAGES.number)
    assert pds(host) == 0


@pytest.mark.requirement("B9")
def test_a_page_request_that_is_lost(host: RawHost) -> None:
    _, ring = host.create_eq(1 << 0x0B)
    disturb(host, "starve", "point=pages.asked drop")
    message = alloc_pd(host)
    host.ring(message)
    passes(host, SECOND)
    assert host.owned(message)
    assert ring[63] == 1, "no EQE"
    host.give(10)  # as a driver that polls would
    host.settle()
    assert host.result(message).status == CommandStatus.OK


@pytest.mark.requirement("A5")
@pytest.mark.parametrize(("effect", "eqes"), [("drop", 0), ("duplicate", 2)])
def test_events_are_dropped_or_come_twice(host: RawHost, effect: str, eqes: int) -> None:
    _, ring = host.create_eq(1 << 0x0A)
    disturb(host, f"event=CMD {effect}")
    assert host.submit(alloc_pd(host)).status == CommandStatus.OK
    host.settle()
    assert [ring[at + 63] for at in range(0, 192, 64)] == [0] * eqes + [1] * (3 - eqes)


@pytest.mark.requirement("A4")
def test_an_interrupt_that_is_lost(host: RawHost) -> None:
    host.create_eq(1 << 0x0A)
    host.interrupts.clear()
    disturb(host, "vector=0 drop")
    assert host.submit(alloc_pd(host)).status == CommandStatus.OK
    host.settle()
    assert host.interrupts == []


@pytest.mark.requirement("D10")
def test_what_is_late_is_forgotten_when_a_host_places_the_queue_anew() -> None:
    host = RawHost().start().enable()
    disturb(host, "command=QUERY_ISSI late=1s")
    message = host.message(Opcode.QUERY_ISSI.to_bytes(2, "big") + bytes(14), 112)
    host.ring(message)
    passes(host, 1)
    host.place_queue()
    passes(host, 2 * SECOND)
    assert host.owned(message)


@pytest.mark.requirement("D10", "E2")
def test_the_same_address_changes_nothing_for_a_queue_in_use(host: RawHost) -> None:
    disturb(host, "command=ALLOC_PD late=1s")
    message = alloc_pd(host)
    host.ring(message)
    passes(host, 1)
    host.place_queue()
    passes(host, 2 * SECOND)
    assert host.result(message).status == CommandStatus.OK
