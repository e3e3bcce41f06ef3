"""Event queues: EQEs, arming, interrupts, overflow."""

from __future__ import annotations

import pytest

from softhca.hca.errors import CommandError
from softhca.prm.eq import EqState, EqStatus
from softhca.prm.events import EventType
from softhca.prm.init_segment import HealthSyndrome
from softhca.prm.opcodes import Opcode
from softhca.prm.syndromes import objects as syndromes
from softhca.prm.syndromes.table import Syndrome
from tests.hca.bench import VECTORS, Bench, Events

PORT = 1 << EventType.PORT_CHANGE


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.call(Opcode.DESTROY_EQ, eq_number=bench.events.number)
    return bench


def update(bench: Bench, events: Events, *, arm: bool, consumer: int | None = None) -> None:
    counter = events.consumer if consumer is None else consumer
    bench.ring(bench.uar, 0x40 if arm else 0x48, (events.number << 24 | counter & 0xFF_FFFF).to_bytes(4, "big"))


@pytest.mark.requirement("A4", "A6", "G1")
def test_eqe_byte_by_byte_on_both_laps(bench: Bench) -> None:
    events = bench.eq(log_size=1, mask=PORT)
    for lap in (0, 0, 1, 1, 0):
        assert bench.fn.event(EventType.PORT_CHANGE, bytes(range(28)), subtype=4)
        at = events.consumer % 2 * 64
        expected = b"\0\x09\0\x04" + bytes(28) + bytes(range(28)) + bytes(3) + bytes([lap])
        assert events.memory.view[at : at + 64] == expected
        assert events.poll() is not None
        update(bench, events, arm=False)


@pytest.mark.requirement("A4", "A5")
def test_new_eq_is_armed_and_fires_once_until_it_is_armed_again(bench: Bench) -> None:
    events = bench.eq(mask=PORT, vector=3)
    for _ in range(3):
        bench.fn.event(EventType.PORT_CHANGE, b"")
    assert bench.card.interrupts == [3]
    while events.poll():
        pass
    update(bench, events, arm=True)
    assert bench.card.interrupts == [3]
    bench.fn.event(EventType.PORT_CHANGE, b"")
    assert bench.card.interrupts == [3, 3]


@pytest.mark.requirement("A5")
def test_arming_with_unread_eqes_fires_at_once(bench: Bench) -> None:
    events = bench.eq(mask=PORT)
    bench.fn.event(EventType.PORT_CHANGE, b"")
    bench.fn.event(EventType.PORT_CHANGE, b"")
    events.poll()
    update(bench, events, arm=True)
    assert len(bench.card.interrupts) == 2


def test_update_does_not_arm(bench: Bench) -> None:
    events = bench.eq(mask=PORT)
    bench.fn.event(EventType.PORT_CHANGE, b"")
    update(bench, events, arm=False)
    bench.fn.event(EventType.PORT_CHANGE, b"")
    assert len(bench.card.interrupts) == 1


@pytest.mark.requirement("D8")
def test_overflow_overwrites_nothing_and_is_told(bench: Bench) -> None:
    events = bench.eq(log_size=2, mask=PORT)
    for number in range(6):
        bench.fn.event(EventType.PORT_CHANGE, bytes([number + 1]))
    assert [events.memory.view[at * 64 + 32] for at in range(4)] == [1, 2, 3, 4]
    assert bench.card.health.syndrome is HealthSyndrome.ASYNCHRONOUS_EQ_BUF_OVERRUN
    eq = bench.fn.eqs.get(events.number)
    assert (eq.status, eq.lost) == (EqStatus.EQ_WRITE_FAILURE, 2)


def test_impossible_consumer_counter_is_ignored_and_counted(bench: Bench) -> None:
    events = bench.eq(mask=PORT)
    bench.fn.event(EventType.PORT_CHANGE, b"")
    update(bench, events, arm=True, consumer=5)
    uar = bench.fn.uars.get(bench.uar)
    assert uar.ignored == 1
    assert bench.fn.eqs.get(events.number).consumer == 0


@pytest.mark.requirement("B11")
def test_doorbell_acts_through_its_own_uar_alone(bench: Bench) -> None:
    events = bench.eq(mask=PORT)
    other = bench.call(Opcode.ALLOC_UAR).uar
    bench.fn.event(EventType.PORT_CHANGE, b"")
    bench.ring(other, 0x40, (events.number << 24).to_bytes(4, "big"))
    assert len(bench.card.interrupts) == 1


@pytest.mark.requirement("A10")
def test_buffer_that_is_not_mapped(bench: Bench) -> None:
    context = {"log_eq_size": 6, "uar_page": bench.uar}
    reply = bench.call(Opcode.CREATE_EQ, eq_context_entry=context, event_bitmask=[PORT, 0, 0, 0], pas=[0x7000])
    bench.fn.event(EventType.PORT_CHANGE, b"")
    assert bench.fn.eqs.get(reply.eq_number).status is EqStatus.EQ_WRITE_FAILURE
    assert bench.card.health.syndrome is HealthSyndrome.EQ_IN_ERR


@pytest.mark.requirement("B1", "E6")
def test_query_shows_counters_state_mask_and_pages(bench: Bench) -> None:
    events = bench.eq(mask=PORT)
    bench.fn.event(EventType.PORT_CHANGE, b"")
    reply = bench.call(Opcode.QUERY_EQ, eq_number=events.number)
    context = reply.eq_context_entry
    assert (context.st, context.consumer_counter, context.producer_counter) == (EqState.FIRED, 0, 1)
    assert reply.event_bitmask == PORT
    assert reply.pas[0] == events.memory.iova


@pytest.mark.requirement("B2")
def test_room_in_icm_comes_and_goes(bench: Bench) -> None:
    before = bench.fn.icm.used
    events = bench.eq()
    assert bench.fn.icm.used == before + 64 + 8
    bench.call(Opcode.DESTROY_EQ, eq_number=events.number)
    assert bench.fn.icm.used == before


@pytest.mark.requirement("F3")
def test_events_of_a_destroyed_eq_go_nowhere(bench: Bench) -> None:
    events = bench.eq(mask=PORT)
    bench.call(Opcode.DESTROY_EQ, eq_number=events.number)
    assert not bench.fn.event(EventType.PORT_CHANGE, b"")
    bench.eq(mask=PORT)
    assert bench.fn.event(EventType.PORT_CHANGE, b"")


@pytest.mark.requirement("A8", "B3")
@pytest.mark.parametrize(
    ("context", "mask", "pages", "expected"),
    [
        ({"log_eq_size": 31}, 0, 1, syndromes.BAD_QUEUE_SIZE),
        ({"intr": VECTORS}, 0, 1, syndromes.BAD_INTERRUPT),
        ({"uar_page": 0x1234}, 0, 1, syndromes.NO_SUCH_REFERENCE),
        ({}, 1 << 0x3F, 1, syndromes.EVENT_UNKNOWN),
        ({"log_eq_size": 7}, 0, 1, syndromes.PAGE_LIST_SHORT),
        ({"page_offset": 1}, 0, 1, syndromes.PAGE_LIST_SHORT),
        ({"log_page_size": 20}, 0, 1, syndromes.BAD_PAGE_SIZE),
        ({"log_page_size": 1}, 0, 1, syndromes.PAGE_MISALIGNED),
    ],
)
def test_create_is_refused(bench: Bench, context: dict[str, int], mask: int, pages: int, expected: Syndrome) -> None:
    used = bench.fn.icm.used
    fields = {"log_eq_size": 6, "uar_page": bench.uar} | context
    with pytest.raises(CommandError) as refusal:
        bench.call(
            Opcode.CREATE_EQ, eq_context_entry=fields, event_bitmask=[mask, 0, 0, 0], pas=[0x1_0000_1000] * pages
        )
    assert refusal.value.syndrome is expected
    assert bench.fn.icm.used == used


def test_one_event_is_mapped_once(bench: Bench) -> None:
    bench.eq(mask=PORT)
    with pytest.raises(CommandError) as refusal:
        bench.eq(mask=PORT)
    assert refusal.value.syndrome is syndromes.EVENT_TAKEN
