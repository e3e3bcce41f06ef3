"""ICM pages: what lacks, hand-over, requests at run time, return (B2, B3, B6-B10)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from softhca.hca.errors import PagesLacking
from softhca.hca.icm import PAGE, IcmAccount
from softhca.hca.pages import BATCH, LOW_WATER, MOST
from softhca.hca.profile import Pages, load_profile
from softhca.prm.events import Eqe, EventType
from softhca.prm.mkey import CreateMkeyIn
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus
from softhca.prm.syndromes import Syndrome, control
from tests.hca.raw_host import PAGE_SLOT, RawHost, words

PAGE_REQUEST = 1 << EventType.PAGE_REQUEST


def requests(eq: memoryview) -> list[tuple[int, int]]:
    """Function and number of each Pages Request event in an EQ's first lap."""
    found = []
    for at in range(0, len(eq), 64):
        if not eq[at + 63] & 1:
            eqe = Eqe(eq, at)
            assert eqe.type == EventType.PAGE_REQUEST
            found.append((eqe.data.req_pages.func_id, eqe.data.req_pages.num_pages))
    return found


def small(init: int = 0) -> RawHost:
    return RawHost(replace(load_profile(), pages=Pages(boot=4, init=init))).initialize()


def key(host: RawHost, octwords: int = 0) -> bytes:
    """CREATE_MKEY of a free key with room for translations."""
    pd = host.good(Opcode.ALLOC_PD).word(8)
    context = {"free": 1, "access_mode_1_0": 1, "log_page_size": 12, "translations_octword_size": octwords, "pd": pd}
    return bytes(CreateMkeyIn.new(opcode=Opcode.CREATE_MKEY, memory_key_mkey_entry=context))


def refused(host: RawHost, pages: list[int], syndrome: Syndrome) -> None:
    before = dict(host.hca.function.icm.pages)
    result = host.submit(host.give_message(pages))
    assert (result.status, result.syndrome) == (syndrome.status, syndrome.number)
    assert host.hca.function.icm.pages == before


@pytest.mark.requirement("B2", "B6")
def test_account() -> None:
    icm = IcmAccount()
    with pytest.raises(PagesLacking):
        icm.take(1)
    icm.accept([0x1000, 0x2000, 0x3000])
    icm.take(PAGE + 1)
    assert (icm.needed, icm.room) == (2, 2 * PAGE - 1)
    assert icm.hand_back(5) == [0x3000]
    assert icm.hand_back(5) == []
    icm.give_back(PAGE + 1)
    assert len(icm.pages) == 2  # no page goes back by itself
    assert icm.hand_back(-1) == []
    assert icm.hand_back(5) == [0x2000, 0x1000]


@pytest.mark.requirement("B8", "C8")
def test_need_falls_with_each_batch(host: RawHost) -> None:
    host.enable()
    for left in (16, 11, 6, 1):
        assert host.query_pages(1) == left
        host.give(min(5, left))
    assert (host.query_pages(1), host.query_pages(2), host.query_pages(3)) == (0, 64, 64)


@pytest.mark.requirement("B8")
def test_accepted_pages_are_reported(host: RawHost) -> None:
    host.enable()
    assert host.submit(host.give_message(host.new_pages(7))).word(8) == 7


@pytest.mark.requirement("A10", "B6")
def test_bad_pages_are_refused_as_a_whole(host: RawHost) -> None:
    host.enable()
    good = host.new_pages(3)
    refused(host, [good[0], good[1] + 8], control.ICM_PAGE_MISALIGNED)
    refused(host, [good[0], 0], control.ICM_PAGE_MISALIGNED)
    refused(host, [good[0], good[1], good[0]], control.ICM_PAGE_DUPLICATE)
    refused(host, [good[0], 0x1000], control.ICM_PAGE_UNMAPPED)
    refused(host, [good[0], (1 << 64) - PAGE], control.ICM_PAGE_UNMAPPED)
    assert host.submit(host.give_message(good)).status == CommandStatus.OK
    refused(host, [good[2]], control.ICM_PAGE_DUPLICATE)


@pytest.mark.requirement("B8", "D9")
@pytest.mark.parametrize("count", [0, 2, 4, 0xFFFF_FFFF])
def test_count_must_agree_with_the_message(host: RawHost, count: int) -> None:
    host.enable()
    message = host.give_message(host.new_pages(3))
    message.set_word(0x1C, count)
    result = host.submit(message)
    assert (result.status, result.syndrome) == (CommandStatus.BAD_INPUT_LEN, control.PAGE_COUNT_WRONG.number)


@pytest.mark.requirement("B10", "B8")
def test_only_pages_that_are_not_needed_come_back(host: RawHost) -> None:
    host.initialize()
    host.give(500)
    free = 580 - 12
    assert host.query_pages(3) == LOW_WATER + BATCH - free < 0
    assert host.query_pages(2) == 0
    came = []
    while returned := host.take(100):
        came += returned
    assert len(came) == len(set(came)) == free - LOW_WATER
    assert host.query_pages(3) == 0
    host.good(Opcode.TEARDOWN_HCA)
    assert host.query_pages(3) == LOW_WATER - free + len(came) - 12 - LOW_WATER
    while returned := host.take(30):
        came += returned
    assert len(came) == len(set(came)) == 580


@pytest.mark.requirement("B10", "D2")
def test_take_is_bounded_by_the_room_of_the_output(host: RawHost) -> None:
    host.ready()
    result = host.good(Opcode.MANAGE_PAGES, words(0, 2, 0, 0xFFFF_FFFF), 16 + 3 * 8)
    assert result.word(8) == 3
    assert host.good(Opcode.MANAGE_PAGES, words(0, 2, 0, 0xFFFF_FFFF), 16).word(8) == 0
    assert len(host.hca.function.icm.pages) == 13


@pytest.mark.requirement("B2", "B3")
def test_objects_take_room_and_give_it_back() -> None:
    host = small()
    icm = host.hca.function.icm
    request = key(host, 100)
    before = icm.used
    number = host.good(Opcode.CREATE_MKEY, request).word(8)
    assert icm.used == before + 128 + 100 * 16
    host.good(Opcode.DESTROY_MKEY, words(0, 0, number, 0))
    assert icm.used == before
    assert len(icm.pages) == 4


@pytest.mark.requirement("B3", "B9")
def test_without_an_event_the_regular_need_is_told_by_query(host: RawHost) -> None:
    host.initialize()
    assert host.query_pages(2) == 0
    message = key(host, 68 * 256 - 16)
    host.good(Opcode.CREATE_MKEY, message)
    lack = host.query_pages(2)
    assert lack == host.query_pages(3) == LOW_WATER + BATCH
    host.give(lack)
    assert host.query_pages(3) == 0


@pytest.mark.requirement("B9")
def test_pages_are_asked_for_ahead_and_once() -> None:
    host = small(init=LOW_WATER)
    _, eq = host.create_eq(PAGE_REQUEST, log_size=6)
    assert requests(eq) == []
    host.good(Opcode.CREATE_MKEY, key(host, 512))
    wanted = requests(eq)
    assert wanted == [(0, LOW_WATER + BATCH - (LOW_WATER - 2))]
    host.good(Opcode.CREATE_MKEY, key(host, 512))
    assert requests(eq) == wanted
    host.give(1)
    assert len(requests(eq)) == 2  # still too few: asked again after the answer
    host.give(requests(eq)[1][1])
    assert len(requests(eq)) == 2
    assert host.interrupts == [0]  # the EQ was not armed again


@pytest.mark.requirement("B9")
def test_no_pages_is_an_answer_too() -> None:
    host = small(init=LOW_WATER)
    _, eq = host.create_eq(PAGE_REQUEST, log_size=6)
    host.good(Opcode.CREATE_MKEY, key(host, 512))
    host.good(Opcode.MANAGE_PAGES, words(0, 0, 0, 0), slot=PAGE_SLOT)
    host.good(Opcode.QUERY_ADAPTER, room=272)
    assert len(requests(eq)) == 1  # not ahead any more, only when a command lacks them
    message = host.message(key(host, 256 * 400), 16, slot=1)
    host.ring(message)
    host.settle()
    assert len(requests(eq)) == 2


@pytest.mark.requirement("B9")
def test_a_waiting_command_asks_for_what_it_needs() -> None:
    host = small(init=LOW_WATER)
    _, eq = host.create_eq(PAGE_REQUEST, log_size=6)
    message = host.message(key(host, 256 * 400), 16, slot=1)
    host.ring(message)
    host.settle()
    (function_id, number), *others = requests(eq)
    assert (function_id, others) == (0, [])
    assert number >= 400 - LOW_WATER
    host.give(100)
    assert host.owned(message)
    assert len(requests(eq)) == 2
    host.give(requests(eq)[1][1])
    assert host.result(message).status == CommandStatus.OK


@pytest.mark.requirement("B7", "B8")
def test_pages_come_back_after_reset_of_the_interface(host: RawHost) -> None:
    host.initialize()
    host.write(0x14, host.read(0x14) & 0xFFFF_F000 | 1 << 8)
    assert host.hca.summary()["pages_outstanding"] == 0


@pytest.mark.requirement("B9")
def test_a_request_that_cannot_be_told_fails_the_command() -> None:
    host = small(init=LOW_WATER)
    host.create_eq(PAGE_REQUEST | 1 << EventType.PORT_CHANGE, log_size=0)
    for kind in (EventType.PORT_CHANGE, EventType.PORT_CHANGE):  # the second one finds no room
        host.hca.function.event(kind, b"")
    message = host.message(key(host, 256 * 400), 16, slot=1)
    result = host.submit(message)
    assert (result.status, result.syndrome) == (CommandStatus.NO_RESOURCES, control.NO_PAGES.number)


@pytest.mark.requirement("B9", "B10")
def test_a_command_that_waits_asks_again_when_pages_were_taken_instead() -> None:
    host = small(init=LOW_WATER + 10)
    _, eq = host.create_eq(PAGE_REQUEST, log_size=6)
    message = host.message(key(host, 256 * 400), 16, slot=1)
    host.ring(message)
    host.settle()
    assert len(requests(eq)) == 1
    host.take(4)
    assert len(requests(eq)) == 2
    host.give(requests(eq)[1][1])
    assert host.result(message).status == CommandStatus.OK


@pytest.mark.requirement("B8")
def test_one_command_gives_a_bounded_number_of_pages(host: RawHost) -> None:
    host.enable()
    many = host.message(words(Opcode.MANAGE_PAGES << 16, 1, 0, MOST + 1) + bytes(8 * (MOST + 1)), 16)
    result = host.submit(many)
    assert (result.status, result.syndrome) == (CommandStatus.EXCEED_LIM, control.TOO_MANY_PAGES.number)
    host.give(host.query_pages(1))


@pytest.mark.requirement("B9")
def test_one_request_asks_for_what_one_command_can_give() -> None:
    host = small(init=LOW_WATER)
    _, eq = host.create_eq(PAGE_REQUEST, log_size=6)
    host.ring(host.message(key(host, 1 << 31), 16, slot=1))
    host.settle()
    assert requests(eq) == [(0, MOST)]


@pytest.mark.requirement("B9")
def test_a_request_goes_with_the_queue_that_it_was_written_to() -> None:
    host = small(init=LOW_WATER)
    number, first = host.create_eq(PAGE_REQUEST, log_size=2)
    host.ring(host.message(key(host, 256 * 400), 16, slot=1))
    host.settle()
    assert len(requests(first)) == 1
    host.good(Opcode.DESTROY_EQ, words(0, 0, number, 0))
    _, second = host.create_eq(PAGE_REQUEST, log_size=2)
    message = host.message(key(host, 256 * 400), 16, slot=1)
    host.ring(message)
    host.settle()
    assert len(requests(second)) == 1
    host.give(requests(second)[0][1])
    assert host.result(message).status == CommandStatus.OK
