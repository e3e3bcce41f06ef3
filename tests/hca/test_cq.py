"""Completion queues: owner bits, arming, moderation, overrun."""

from __future__ import annotations

from typing import Any

import pytest

from softhca.hca.errors import CommandError
from softhca.prm.cq import CqState, CqStatus
from softhca.prm.cqe import Cqe64, CqeOpcode, CqeSyndrome
from softhca.prm.events import EventType
from softhca.prm.opcodes import Opcode
from softhca.prm.syndromes import objects as syndromes
from softhca.prm.syndromes import queues
from softhca.prm.syndromes.completion import VendorSyndrome
from softhca.prm.syndromes.table import Syndrome
from tests.hca.bench import Bench, Buffer, Completions

SOLICITED = 1 << 24


@pytest.fixture
def bench() -> Bench:
    return Bench()


def complete(bench: Bench, cq: Completions, counter: int = 0, *, solicited: bool = False) -> bool:
    return bench.fn.cqs.get(cq.number).complete(CqeOpcode.REQ, counter, 0x40, index=0, solicited=solicited)


def arm(bench: Bench, cq: Completions, *, sn: int = 0, command: int = 0) -> None:
    word = sn << 28 | command | cq.consumer & 0xFF_FFFF
    bench.ring(cq.uar, 0x20, word.to_bytes(4, "big") + cq.number.to_bytes(4, "big"))


@pytest.mark.requirement("A4", "G2")
def test_owner_bit_follows_the_laps(bench: Bench) -> None:
    cq = bench.cq(log_size=1)
    for counter in range(9):
        complete(bench, cq, counter)
        at = counter % 2 * 64
        assert cq.memory.view[at + 63] & 1 == counter >> 1 & 1
        cqe = cq.poll()
        assert cqe is not None
        assert cqe.wqe_counter == counter


@pytest.mark.requirement("A6", "G2")
def test_error_cqe_byte_by_byte(bench: Bench) -> None:
    cq = bench.cq()
    bench.fn.cqs.get(cq.number).fail(
        CqeOpcode.RESP_ERR,
        0x1234,
        0xABCDEF,
        index=0x567,
        syndrome=CqeSyndrome.LOCAL_PROT_ERR,
        vendor=VendorSyndrome.KEY_PD,
    )
    expected = bytes(32) + bytes.fromhex("00000567") + bytes(18) + bytes.fromhex("1404 00abcdef 1234 00 e0")
    assert cq.raw() == expected


@pytest.mark.requirement("A4")
def test_polled_cq_gives_no_event(bench: Bench) -> None:
    cq = bench.cq()
    complete(bench, cq)
    assert bench.events.poll() is None
    assert bench.card.interrupts == []


@pytest.mark.requirement("A4", "A5", "G1")
def test_armed_cq_gives_one_event_with_its_number(bench: Bench) -> None:
    cq = bench.cq()
    arm(bench, cq)
    complete(bench, cq)
    complete(bench, cq)
    event = bench.events.poll()
    assert event is not None
    assert (event.type, event.data.comp.cqn) == (EventType.COMP, cq.number)
    assert bench.events.poll() is None
    assert bench.card.interrupts == [1]


@pytest.mark.requirement("A5")
def test_arming_with_unread_cqes_gives_the_event_at_once(bench: Bench) -> None:
    cq = bench.cq()
    complete(bench, cq)
    arm(bench, cq)
    assert bench.events.poll() is not None


def test_a_sequence_number_asks_for_one_event(bench: Bench) -> None:
    cq = bench.cq()
    arm(bench, cq, sn=0)
    complete(bench, cq)
    assert bench.events.poll() is not None
    arm(bench, cq, sn=0)
    complete(bench, cq)
    assert bench.events.poll() is None
    arm(bench, cq, sn=1)
    assert bench.events.poll() is not None


@pytest.mark.requirement("A5")
def test_a_cqe_that_an_event_announced_gives_no_second_one(bench: Bench) -> None:
    cq = bench.cq()
    arm(bench, cq, sn=0)
    complete(bench, cq, solicited=True)
    assert bench.events.poll() is not None
    arm(bench, cq, sn=1)
    assert bench.events.poll() is None, "unread, but announced"
    assert bench.fn.cqs.get(cq.number).state is CqState.NOTIFICATION_REQUEST_ARMED
    complete(bench, cq)
    assert bench.events.poll() is not None
    arm(bench, cq, sn=2, command=SOLICITED)
    assert bench.events.poll() is None
    context = bench.call(Opcode.QUERY_CQ, cqn=cq.number).cq_context
    assert (context.last_notified_index, context.producer_counter) == (2, 2)


def test_solicited_only(bench: Bench) -> None:
    cq = bench.cq()
    arm(bench, cq, command=SOLICITED)
    complete(bench, cq)
    assert bench.events.poll() is None
    complete(bench, cq, solicited=True)
    assert bench.events.poll() is not None
    complete(bench, cq, solicited=True)
    arm(bench, cq, sn=1, command=SOLICITED)
    assert bench.events.poll() is not None, "a solicited CQE is there that no event announced"


def test_solicited_request_does_not_narrow_an_armed_cq(bench: Bench) -> None:
    cq = bench.cq()
    arm(bench, cq)
    arm(bench, cq, command=SOLICITED)
    complete(bench, cq)
    assert bench.events.poll() is not None


def test_errors_count_as_solicited(bench: Bench) -> None:
    cq = bench.cq()
    arm(bench, cq, command=SOLICITED)
    bench.fn.cqs.get(cq.number).fail(
        CqeOpcode.REQ_ERR, 0, 0, index=0, syndrome=CqeSyndrome.WR_FLUSH_ERR, vendor=VendorSyndrome.FLUSHED
    )
    assert bench.events.poll() is not None


@pytest.mark.requirement("B11")
def test_arming_through_another_uar_is_ignored(bench: Bench) -> None:
    cq = bench.cq()
    cq.uar = bench.call(Opcode.ALLOC_UAR).uar
    arm(bench, cq)
    complete(bench, cq)
    assert bench.events.poll() is None


def test_arm_doorbell_in_two_halves(bench: Bench) -> None:
    cq = bench.cq()
    bench.ring(cq.uar, 0x20, bytes(4))
    bench.ring(cq.uar, 0x24, cq.number.to_bytes(4, "big"))
    complete(bench, cq)
    assert bench.events.poll() is not None


@pytest.mark.requirement("A6")
def test_overrun_overwrites_nothing_and_is_told(bench: Bench) -> None:
    cq = bench.cq(log_size=2)
    assert all(complete(bench, cq, counter) for counter in range(4))
    assert not complete(bench, cq, 4)
    first = cq.poll()
    assert first is not None
    assert first.wqe_counter == 0
    event = bench.events.poll()
    assert event is not None
    assert (event.type, event.data.cq_err.cqn, event.data.cq_err.syndrome) == (EventType.CQ_ERROR, cq.number, 1)
    assert bench.call(Opcode.QUERY_CQ, cqn=cq.number).cq_context.status == CqStatus.CQ_OVERFLOW


def test_room_is_found_by_the_doorbell_record(bench: Bench) -> None:
    cq = bench.cq(log_size=2)
    for counter in range(100):
        assert complete(bench, cq, counter)
        assert cq.poll() is not None


def test_overrun_may_be_ignored(bench: Bench) -> None:
    cq = bench.cq(log_size=2, oi=1)
    assert all(complete(bench, cq, counter) for counter in range(9))


@pytest.mark.requirement("A10")
def test_buffer_that_is_not_mapped(bench: Bench) -> None:
    fields = {"log_cq_size": 6, "uar_page": bench.uar, "c_eqn_or_apu_element": bench.events.number, "dbr_addr": 0x8000}
    number = bench.call(Opcode.CREATE_CQ, cq_context=fields, pas=[0x7000]).cqn
    assert not bench.fn.cqs.get(number).complete(CqeOpcode.REQ, 0, 0, index=0)
    event = bench.events.poll()
    assert event is not None
    assert (event.data.cq_err.cqn, event.data.cq_err.syndrome) == (number, 2)


def test_moderation_by_count_and_by_time(bench: Bench) -> None:
    cq = bench.cq()
    select = {"modify_field_select": {"modify_field_select": 3}}
    context = {"cq_period": 10, "cq_max_count": 3}
    bench.call(Opcode.MODIFY_CQ, cqn=cq.number, modify_field_select_resize_field_select=select, cq_context=context)
    arm(bench, cq, sn=0)
    complete(bench, cq)
    complete(bench, cq)
    assert bench.events.poll() is None
    complete(bench, cq)
    assert bench.events.poll() is not None
    while cq.poll():
        pass
    arm(bench, cq, sn=1)
    complete(bench, cq)
    bench.wait(9_999)
    assert bench.events.poll() is None
    bench.wait(2)
    assert bench.events.poll() is not None


def due_after(bench: Bench, microseconds: int) -> bool:
    """Whether an event comes just then."""
    bench.wait(microseconds * 1000 - 1)
    early = bench.events.poll()
    bench.wait(2)
    return early is None and bench.events.poll() is not None


@pytest.mark.requirement("A5")
def test_a_period_that_starts_from_the_event(bench: Bench) -> None:
    cq = bench.cq(cq_period=10)
    bench.wait(10_000)
    arm(bench, cq, sn=0)
    complete(bench, cq)
    assert bench.events.poll() is not None, "the last event was long ago"
    bench.wait(4_000)
    cq.poll()
    arm(bench, cq, sn=1)
    complete(bench, cq)
    bench.wait(3_000)
    complete(bench, cq)
    assert due_after(bench, 3)


@pytest.mark.requirement("A5")
def test_a_period_that_starts_from_the_cqe(bench: Bench) -> None:
    cq = bench.cq(cq_period=10, cq_period_mode=1)
    bench.wait(50_000)
    arm(bench, cq, sn=0)
    for _ in range(5):
        complete(bench, cq)
        bench.wait(9_000)
    assert bench.events.poll() is None
    assert due_after(bench, 1)


@pytest.mark.requirement("A5")
def test_the_mode_of_the_period_is_changed(bench: Bench) -> None:
    cq = bench.cq(cq_period=10)
    bench.fn.caps.general.cq_period_mode_modify = 1
    select = {"modify_field_select": {"modify_field_select": 0x10}}
    fields: dict[str, Any] = {"cqn": cq.number, "modify_field_select_resize_field_select": select}
    bench.call(Opcode.MODIFY_CQ, **fields, cq_context={"cq_period_mode": 1})
    context = bench.call(Opcode.QUERY_CQ, cqn=cq.number).cq_context
    assert (context.cq_period, context.cq_period_mode) == (10, 1)
    bench.fn.caps.general.cq_period_start_from_cqe = 0
    for mode in (1, 2):
        with pytest.raises(CommandError) as refusal:
            bench.call(Opcode.MODIFY_CQ, **fields, cq_context={"cq_period_mode": mode})
        assert refusal.value.syndrome is queues.CQ_PERIOD_MODE
    with pytest.raises(CommandError) as refusal:
        bench.cq(cq_period_mode=1)
    assert refusal.value.syndrome is queues.CQ_PERIOD_MODE


@pytest.mark.requirement("B1", "E6")
def test_query(bench: Bench) -> None:
    cq = bench.cq()
    complete(bench, cq)
    arm(bench, cq, command=SOLICITED)
    reply = bench.call(Opcode.QUERY_CQ, cqn=cq.number)
    context = reply.cq_context
    assert context.st == CqState.SOLICITED_NOTIFICATION_REQUEST_ARMED
    assert (context.producer_counter, context.dbr_addr) == (1, cq.record.iova)
    assert reply.pas[0] == cq.memory.iova


@pytest.mark.requirement("A8", "B3")
@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({"log_cq_size": 31}, syndromes.BAD_QUEUE_SIZE),
        ({"cqe_sz": 3}, syndromes.CQE_SIZE_UNSUPPORTED),
        ({"cqe_comp_en": 1, "mini_cqe_res_format": 2}, syndromes.CQE_COMPRESSION_UNSUPPORTED),
        ({"cqe_comp_en": 1, "cqe_compression_layout": 1}, syndromes.CQE_COMPRESSION_UNSUPPORTED),
        ({"cqe_comp_en": 1, "cc": 1}, syndromes.CQE_COMPRESSION_UNSUPPORTED),
        ({"apu_cq": 1}, syndromes.CQ_CHANNEL_UNSUPPORTED),
        ({"dbr_umem_valid": 1}, syndromes.UMEM_UNSUPPORTED),
        ({"c_eqn_or_apu_element": 99}, syndromes.NO_SUCH_REFERENCE),
        ({"uar_page": 0x1234}, syndromes.NO_SUCH_REFERENCE),
        ({"dbr_addr": 0}, syndromes.BAD_DOORBELL_RECORD),
        ({"dbr_addr": 0x1002}, syndromes.BAD_DOORBELL_RECORD),
        ({"log_page_size": 31}, syndromes.BAD_PAGE_SIZE),
    ],
)
def test_create_is_refused(bench: Bench, context: dict[str, Any], expected: Syndrome) -> None:
    with pytest.raises(CommandError) as refusal:
        bench.cq(**context) if "log_cq_size" not in context else create(bench, context)
    assert refusal.value.syndrome is expected


def create(bench: Bench, context: dict[str, int]) -> Any:
    fields = {"uar_page": bench.uar, "c_eqn_or_apu_element": bench.events.number, "dbr_addr": 0x8000} | context
    return bench.call(Opcode.CREATE_CQ, cq_context=fields, pas=[0x7000])


@pytest.mark.parametrize(
    ("op_mod", "select", "expected"),
    [
        (1, 1, queues.CQ_RESIZE_FIELDS),
        (0, 8, syndromes.CQ_FIELD_UNSUPPORTED),
        (0, 0x10, syndromes.CQ_FIELD_UNSUPPORTED),
    ],
)
def test_modify_is_refused(bench: Bench, op_mod: int, select: int, expected: Syndrome) -> None:
    cq = bench.cq()
    field = {"modify_field_select": {"modify_field_select": select}}
    with pytest.raises(CommandError) as refusal:
        bench.call(Opcode.MODIFY_CQ, op_mod=op_mod, cqn=cq.number, modify_field_select_resize_field_select=field)
    assert refusal.value.syndrome is expected


@pytest.mark.requirement("A8")
def test_eq_stays_while_a_cq_refers_to_it(bench: Bench) -> None:
    cq = bench.cq()
    with pytest.raises(CommandError) as refusal:
        bench.call(Opcode.DESTROY_EQ, eq_number=bench.events.number)
    assert refusal.value.syndrome is syndromes.STILL_REFERENCED
    arm(bench, cq)
    complete(bench, cq)
    assert bench.events.poll() is not None, "the EQ is usable after the refusal"
    bench.call(Opcode.DESTROY_CQ, cqn=cq.number)
    bench.call(Opcode.DESTROY_EQ, eq_number=bench.events.number)


def test_arming_with_a_counter_that_was_passed_already_loses_no_event(bench: Bench) -> None:
    cq = bench.cq(log_size=1)
    for counter in range(3):
        complete(bench, cq, counter)
        cq.poll()
    assert bench.fn.cqs.get(cq.number).consumer == 2
    cq.consumer = 1
    arm(bench, cq)
    assert bench.events.poll() is not None


@pytest.mark.requirement("F1", "A10")
def test_a_notification_that_is_due_is_not_given_once_the_cq_is_destroyed(bench: Bench) -> None:
    cq = bench.cq(cq_period=10, cq_max_count=5)
    arm(bench, cq)
    complete(bench, cq)
    bench.card.engine.clock.pass_time(10_000)
    bench.card.engine._fire_due()
    assert bench.card.engine.ready
    bench.call(Opcode.DESTROY_CQ, cqn=cq.number)
    bench.run()
    assert bench.events.poll() is None


def resize(bench: Bench, cq: Completions, log_size: int, **context: int) -> Buffer:
    memory = bench.memory(cq.stride << log_size)
    memory.view[cq.stride - 1 :: cq.stride] = b"\xf0" * (1 << log_size)
    bench.call(
        Opcode.MODIFY_CQ,
        op_mod=1,
        cqn=cq.number,
        modify_field_select_resize_field_select={"resize_field_select": {"resize_field_select": 7}},
        cq_context={"log_cq_size": log_size, "cqe_sz": cq.stride // 128} | context,
        pas=bench.pages(memory),
    )
    return memory


@pytest.mark.requirement("A4")
@pytest.mark.parametrize("log_size", [3, 5])
@pytest.mark.parametrize("stride", [64, 128])
def test_resize_goes_over_to_the_new_buffer_behind_a_resize_cqe(bench: Bench, log_size: int, stride: int) -> None:
    cq = bench.cq(log_size=4, cqe_sz=stride // 128)
    for counter in range(20):
        complete(bench, cq, counter)
        if counter < 17:
            cq.poll()
    new = resize(bench, cq, log_size)
    assert [cq.good(CqeOpcode.REQ).wqe_counter for _ in range(3)] == [17, 18, 19]
    cq.good(CqeOpcode.RESIZE_CQ)
    assert cq.consumer == 21
    cq.memory, cq.log_size = new, log_size
    for counter in range(40):
        complete(bench, cq, counter)
        assert cq.good(CqeOpcode.REQ).wqe_counter == counter
    queried = bench.call(Opcode.QUERY_CQ, cqn=cq.number)
    assert (queried.cq_context.log_cq_size, queried.pas[0]) == (log_size, new.iova)


def test_resize_gives_no_event_and_keeps_the_cq_armed(bench: Bench) -> None:
    cq = bench.cq()
    arm(bench, cq)
    resize(bench, cq, 4)
    assert bench.events.poll() is None
    complete(bench, cq)
    assert bench.events.poll() is not None


def test_resize_accounts_for_its_pages(bench: Bench) -> None:
    cq = bench.cq(log_size=6)
    used = bench.fn.icm.used
    resize(bench, cq, 10)
    assert bench.fn.icm.used > used
    resize(bench, cq, 6)
    assert bench.fn.icm.used == used
    bench.call(Opcode.DESTROY_CQ, cqn=cq.number)


@pytest.mark.requirement("A8")
def test_resize_is_refused_and_changes_nothing(bench: Bench) -> None:
    cq = bench.cq(log_size=2)
    for counter in range(4):
        complete(bench, cq, counter)
    for log_size, context, expected in (
        (4, {}, queues.CQ_RESIZE_NO_ROOM),
        (1, {}, queues.CQ_RESIZE_NO_ROOM),
        (4, {"cqe_sz": 1}, queues.CQ_RESIZE_CQE_SIZE),
        (4, {"log_page_size": 31}, syndromes.BAD_PAGE_SIZE),
    ):
        with pytest.raises(CommandError) as refusal:
            resize(bench, cq, log_size, **context)
        assert refusal.value.syndrome is expected
    assert [cq.good(CqeOpcode.REQ).wqe_counter for _ in range(4)] == [0, 1, 2, 3]
    complete(bench, cq, 4)
    assert cq.good(CqeOpcode.REQ).wqe_counter == 4


def test_a_failed_cq_is_not_resized(bench: Bench) -> None:
    cq = bench.cq(log_size=1)
    for counter in range(3):
        complete(bench, cq, counter)
    with pytest.raises(CommandError) as refusal:
        resize(bench, cq, 4)
    assert refusal.value.syndrome is queues.CQ_RESIZE_BAD_STATE


@pytest.mark.requirement("A4")
@pytest.mark.parametrize("size", [1, 2])
def test_128_byte_cqes_end_with_the_64_byte_form(bench: Bench, size: int) -> None:
    cq = bench.cq(log_size=1, cqe_sz=size)
    for counter in range(5):
        complete(bench, cq, counter)
        assert cq.memory.view[counter % 2 * 128 + 127] & 1 == counter >> 1 & 1
        assert cq.good(CqeOpcode.REQ).wqe_counter == counter
    assert not any(cq.memory.view[:64])


def test_collapsed_cq_writes_its_first_entry_alone(bench: Bench) -> None:
    cq = bench.cq(log_size=2, cc=1, oi=1)
    for counter in range(7):
        complete(bench, cq, counter)
    assert Cqe64(bytes(cq.memory.view[:64])).wqe_counter == 6
    assert cq.memory.view[63] & 1 == 1
    assert cq.memory.view[64 + 63] == 0xF0


@pytest.mark.requirement("A4")
def test_a_cqe_carries_the_message_itself(bench: Bench) -> None:
    narrow, wide = bench.cq(), bench.cq(cqe_sz=1)
    message = bytes(range(1, 33))
    bench.fn.cqs.get(narrow.number).complete(CqeOpcode.RESP_SEND, 7, 0x40, index=5, length=32, inline=message)
    cqe = narrow.good(CqeOpcode.RESP_SEND)
    assert (bytes(cqe)[:32], cqe.format, cqe.srqn, cqe.byte_cnt) == (message, 1, 5, 32)
    message = bytes(range(1, 65))
    bench.fn.cqs.get(wide.number).complete(CqeOpcode.RESP_SEND, 7, 0x40, index=5, length=64, inline=message, wide=True)
    cqe = wide.good(CqeOpcode.RESP_SEND)
    assert (bytes(wide.memory.view[:64]), cqe.format, cqe.byte_cnt) == (message, 2, 64)
