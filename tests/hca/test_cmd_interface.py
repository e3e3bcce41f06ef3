"""The command interface: entries, mailboxes, delivery, ownership, order, completion (D1-D10)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace

import pytest

from softhca.hca.command import COMMANDS, Stage
from softhca.hca.function import Function
from softhca.hca.profile import CommandQueue, Pages, load_profile
from softhca.prm.adapter import QueryAdapterIn, QueryAdapterOut
from softhca.prm.events import Eqe, EventType
from softhca.prm.hca_cap import CmdHcaCap, SetHcaCapIn
from softhca.prm.mkey import CreateMkeyIn
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus, DeliveryStatus
from softhca.prm.syndromes import control
from tests.hca.raw_host import DATA, MAILBOX, PAGE, PAGE_SLOT, Message, RawHost, sum8, words

QUERY_ADAPTER = words(Opcode.QUERY_ADAPTER << 16, 0, 0, 0)
QUERY_ADAPTER_OUT = 272
CMD = 1 << EventType.CMD
PAGE_REQUEST = 1 << EventType.PAGE_REQUEST


@pytest.fixture
def ready(host: RawHost) -> RawHost:
    return host.ready()


def adapter(host: RawHost, slot: int = 0) -> Message:
    return host.message(QUERY_ADAPTER, QUERY_ADAPTER_OUT, slot)


def give(host: RawHost, count: int = 100) -> Message:
    """A command with several input mailboxes."""
    return host.give_message(host.new_pages(count), 0)


def still_works(host: RawHost) -> None:
    assert host.submit(adapter(host)).delivery == DeliveryStatus.OK


@pytest.mark.requirement("D2", "D3", "D6")
def test_entry_of_literal_bytes(host: RawHost) -> None:
    host.start()
    entry = bytearray(64)
    entry[0x00:0x08] = bytes.fromhex("07000000 00000010")
    entry[0x10:0x14] = bytes.fromhex("01040000")  # ENABLE_HCA
    entry[0x38:0x40] = bytes.fromhex("0000000c 01e10001")
    message = Message(0, entry)
    host.ring(message)
    host.settle()
    done = bytes(host.slot(0))
    assert done[0x3F] == 0
    assert done[0x20:0x30] == bytes(16)
    assert done[0x00:0x20] == bytes(entry[0x00:0x20])
    assert sum8(done) == 0xFF
    assert host.hca.function.stage is Stage.ENABLED


@pytest.mark.requirement("D9")
def test_numbers_of_the_delivery_statuses() -> None:
    assert {status.name: int(status) for status in DeliveryStatus} == {
        "OK": 0x0,
        "SIGNATURE_ERR": 0x1,
        "TOKEN_ERR": 0x2,
        "BAD_BLOCK_NUMBER": 0x3,
        "BAD_OUTPUT_POINTER": 0x4,
        "BAD_INPUT_POINTER": 0x5,
        "INTERNAL_ERR": 0x6,
        "INPUT_LEN_ERR": 0x7,
        "OUTPUT_LEN_ERR": 0x8,
        "RESERVED_NOT_ZERO": 0x9,
        "BAD_COMMAND_TYPE": 0x10,
    }


@pytest.mark.requirement("D9", "D5")
def test_signature_err(ready: RawHost) -> None:
    message = adapter(ready)
    message.entry[0x3D] ^= 1
    assert ready.submit(message).delivery == DeliveryStatus.SIGNATURE_ERR
    still_works(ready)


@pytest.mark.requirement("D9", "D4")
@pytest.mark.parametrize("block", [0, 1])
def test_token_err_of_the_input(ready: RawHost, block: int) -> None:
    message = give(ready)
    message.input[block][1][0x23D] ^= 0x80
    assert ready.submit(message).delivery == DeliveryStatus.TOKEN_ERR
    still_works(ready)


@pytest.mark.requirement("D9", "D4")
def test_token_err_of_the_output(ready: RawHost) -> None:
    message = adapter(ready)
    message.output[0][1][0x23D] ^= 0x80
    assert ready.submit(message).delivery == DeliveryStatus.TOKEN_ERR


@pytest.mark.requirement("D9", "D4")
@pytest.mark.parametrize("number", [0, 2, 0xFFFFFFFF])
def test_bad_block_number(ready: RawHost, number: int) -> None:
    message = give(ready)
    message.input[1][1][0x238:0x23C] = words(number)
    assert ready.submit(message).delivery == DeliveryStatus.BAD_BLOCK_NUMBER
    message = adapter(ready)
    message.output[0][1][0x238:0x23C] = words(number or 1)
    assert ready.submit(message).delivery == DeliveryStatus.BAD_BLOCK_NUMBER
    still_works(ready)


@pytest.mark.requirement("D9", "D4")
@pytest.mark.parametrize("pointer", [0, 0x1_0000_0001, 0x1_0000_0100, 0xFFFF_FFFF_FFFF_FE00, 0x1000])
def test_bad_pointers_of_the_entry(ready: RawHost, pointer: int) -> None:
    message = give(ready)
    message.set_pointer(0x08, pointer)
    assert ready.submit(message).delivery == DeliveryStatus.BAD_INPUT_POINTER
    message = adapter(ready)
    message.set_pointer(0x30, pointer)
    assert ready.submit(message).delivery == DeliveryStatus.BAD_OUTPUT_POINTER
    still_works(ready)


@pytest.mark.requirement("D9", "D4")
@pytest.mark.parametrize("delta", [1, 0x200, -(1 << 32)])
def test_bad_pointers_inside_a_chain(ready: RawHost, delta: int) -> None:
    message = give(ready)
    following = int.from_bytes(message.input[0][1][0x230:0x238], "big") + delta
    message.input[0][1][0x230:0x238] = following.to_bytes(8, "big")
    assert ready.submit(message).delivery == DeliveryStatus.BAD_INPUT_POINTER
    message = ready.message(QUERY_ADAPTER, 1040)
    following = int.from_bytes(message.output[0][1][0x230:0x238], "big") + delta
    message.output[0][1][0x230:0x238] = following.to_bytes(8, "big")
    assert ready.submit(message).delivery == DeliveryStatus.BAD_OUTPUT_POINTER


@pytest.mark.requirement("D9", "D4")
def test_chain_that_ends_too_early(ready: RawHost) -> None:
    message = give(ready)
    message.input[0][1][0x230:0x238] = bytes(8)
    assert ready.submit(message).delivery == DeliveryStatus.BAD_INPUT_POINTER
    message = ready.message(QUERY_ADAPTER, 1040)
    message.output[0][1][0x230:0x238] = bytes(8)
    assert ready.submit(message).delivery == DeliveryStatus.BAD_OUTPUT_POINTER


@pytest.mark.requirement("D9", "D4")
def test_chain_without_an_end(ready: RawHost) -> None:
    message = give(ready)
    message.input[-1][1][0x230:0x238] = message.input[0][0].to_bytes(8, "big")
    assert ready.submit(message).delivery == DeliveryStatus.BAD_INPUT_POINTER
    message = adapter(ready)
    message.output[0][1][0x230:0x238] = message.output[0][0].to_bytes(8, "big")
    assert ready.submit(message).delivery == DeliveryStatus.BAD_OUTPUT_POINTER


@pytest.mark.requirement("D4")
def test_chain_longer_than_the_message_as_linux_has_it(ready: RawHost) -> None:
    message = give(ready, 10)
    surplus = ready.mailboxes(0, 16 + 3 * DATA)
    for number, (_, block) in enumerate(surplus):
        block[0x238:0x23C] = words(number + 1)
    message.input[0][1][0x230:0x238] = surplus[0][0].to_bytes(8, "big")
    assert ready.submit(message).delivery == DeliveryStatus.OK


@pytest.mark.requirement("D9")
def test_internal_error_when_the_output_cannot_be_delivered_any_more() -> None:
    host = small_host()
    message = big_key(host, slot=3, room=1040)
    host.ring(message)
    host.settle()
    assert host.owned(message)
    for address, _ in message.output:
        hide(host, address)
    host.give(64)
    assert host.slot(3)[0x3F] >> 1 == DeliveryStatus.INTERNAL_ERR


@pytest.mark.requirement("D9", "D2")
@pytest.mark.parametrize("length", [0, 7, 8, 11, 13, 17, 24, 0xFFFF_FFFF])
def test_input_len_err(ready: RawHost, length: int) -> None:
    message = ready.message(words(Opcode.QUERY_PAGES << 16, 1, 0, 0), 16)
    message.set_word(4, length)
    wanted = DeliveryStatus.OK if length in (12, 16) else DeliveryStatus.INPUT_LEN_ERR
    assert ready.submit(message).delivery == wanted
    still_works(ready)


@pytest.mark.requirement("D9", "D2")
def test_input_may_leave_reserved_words_at_its_end_out(ready: RawHost) -> None:
    message = ready.message(words(Opcode.QUERY_PAGES << 16, 1, 0), 16)
    assert ready.submit(message).delivery == DeliveryStatus.OK


@pytest.mark.requirement("D9", "D2")
@pytest.mark.parametrize("room", [0, 7, 15, 16, 271, 0xFFFF_FFFF])
def test_output_len_err(ready: RawHost, room: int) -> None:
    message = adapter(ready)
    message.set_word(0x38, room)
    ready.ring(message)
    ready.settle()
    assert ready.slot(0)[0x3F] >> 1 == DeliveryStatus.OUTPUT_LEN_ERR
    still_works(ready)


@pytest.mark.requirement("D9", "D2")
def test_more_output_room_than_needed_is_zeroed(ready: RawHost) -> None:
    message = ready.message(QUERY_ADAPTER, 16 + 4 * DATA)
    for _, block in message.output:
        block[:DATA] = b"\xee" * DATA
    result = ready.submit(message)
    assert result.delivery == DeliveryStatus.OK
    assert result.output[QUERY_ADAPTER_OUT:] == bytes(16 + 4 * DATA - QUERY_ADAPTER_OUT)


@pytest.mark.requirement("D9", "D2")
@pytest.mark.parametrize(("offset", "value"), [(1, 1), (2, 0x80), (3, 0xFF), (0x3E, 1), (0x3F, 3), (0x3F, 0x81)])
def test_reserved_not_zero_of_the_entry(ready: RawHost, offset: int, value: int) -> None:
    message = adapter(ready)
    message.entry[offset] = value
    message.sign()
    assert ready.submit(message).delivery == DeliveryStatus.RESERVED_NOT_ZERO
    still_works(ready)


@pytest.mark.requirement("D9", "D4")
@pytest.mark.parametrize("offset", [0x200, 0x22F, 0x23C])
def test_reserved_not_zero_of_a_mailbox(ready: RawHost, offset: int) -> None:
    message = give(ready)
    message.input[1][1][offset] = 1
    assert ready.submit(message).delivery == DeliveryStatus.RESERVED_NOT_ZERO
    message = adapter(ready)
    message.output[0][1][offset] = 1
    assert ready.submit(message).delivery == DeliveryStatus.RESERVED_NOT_ZERO


@pytest.mark.requirement("D9", "D2")
@pytest.mark.parametrize("kind", [0, 1, 6, 8, 0xFF])
def test_bad_command_type(ready: RawHost, kind: int) -> None:
    message = adapter(ready)
    message.entry[0] = kind
    message.sign()
    assert ready.submit(message).delivery == DeliveryStatus.BAD_COMMAND_TYPE
    still_works(ready)


@pytest.mark.requirement("D9")
def test_malformed_command_takes_no_effect(ready: RawHost) -> None:
    pages = len(ready.hca.function.icm.pages)
    message = give(ready)
    message.output = ready.mailboxes(9, 100)
    message.set_word(0x38, 100)
    message.set_pointer(0x30, message.output[0][0])  # with another token
    assert ready.submit(message).delivery == DeliveryStatus.TOKEN_ERR
    assert len(ready.hca.function.icm.pages) == pages


@pytest.mark.requirement("D4")
def test_pointers_of_short_messages_mean_nothing(ready: RawHost) -> None:
    message = ready.message(words(Opcode.QUERY_PAGES << 16, 1, 0, 0), 16)
    message.set_pointer(0x08, 0x123)
    message.set_pointer(0x30, 0x456)
    assert ready.submit(message).delivery == DeliveryStatus.OK


@pytest.mark.requirement("D9")
def test_unknown_and_unsupported_opcodes(ready: RawHost) -> None:
    unknown = ready.command(0x9999)
    assert (unknown.delivery, unknown.status, unknown.syndrome) == (0, CommandStatus.BAD_OP, 0xCA010001)
    missing = next(opcode for opcode in Opcode if opcode not in COMMANDS)
    unsupported = ready.command(missing)
    assert (unsupported.status, unsupported.syndrome) == (CommandStatus.BAD_OP, control.UNSUPPORTED_OPCODE.number)
    failed = ready.hca.summary()["failed_commands"]
    assert failed == {"0x9999": 1, missing.name: 1}


@pytest.mark.requirement("D3")
def test_op_mod_and_uid(ready: RawHost) -> None:
    result = ready.command(Opcode.QUERY_ADAPTER, words(0, 1, 0, 0), QUERY_ADAPTER_OUT)
    assert (result.status, result.syndrome) == (CommandStatus.BAD_PARAM, control.BAD_OP_MOD.number)
    result = ready.command(Opcode.QUERY_ADAPTER, words(7, 0, 0, 0), QUERY_ADAPTER_OUT)
    assert (result.status, result.syndrome) == (CommandStatus.BAD_PARAM, control.BAD_UID.number)


@pytest.mark.requirement("C5")
def test_command_in_the_wrong_stage(host: RawHost) -> None:
    host.start()
    result = host.command(Opcode.QUERY_ADAPTER, room=QUERY_ADAPTER_OUT)
    assert (result.status, result.syndrome) == (CommandStatus.BAD_SYS_STATE, control.BAD_STAGE.number)


@pytest.mark.requirement("D1")
def test_slots_and_stride_come_from_the_registers() -> None:
    profile = replace(load_profile(), command_queue=CommandQueue(log_size=3, log_stride=9))
    host = RawHost(profile).start()
    assert host.read(0x14) & 0xFF == 0x39
    message = host.message(words(Opcode.ENABLE_HCA << 16, 0, 0, 0), 12, slot=7)
    host.slots[7 * 512 : 7 * 512 + 64] = message.entry
    host.write(0x18, 1 << 7 | 1 << 8)
    host.settle()
    assert host.slots[7 * 512 + 0x3F] == 0
    assert host.hca.commands.ignored == 1


def signed(chain: Sequence[tuple[int, memoryview]]) -> None:
    for _, block in chain:
        block[0x23E] = ~sum8(block[0x200:0x23E]) & 0xFF
        block[0x23F] = ~sum8(block[:0x23F]) & 0xFF


def checking(host: RawHost) -> RawHost:
    """Turn the check of mailbox signatures on."""
    capability = CmdHcaCap(bytearray(bytes(host.hca.function.caps.general)))
    capability.cmdif_checksum = 3
    request = SetHcaCapIn.pack(opcode=Opcode.SET_HCA_CAP)[:16] + bytes(capability).ljust(4096, b"\0")
    assert host.submit(host.message(request, 16)).status == CommandStatus.OK
    return host


@pytest.mark.requirement("D5")
def test_output_is_signed_always(ready: RawHost) -> None:
    message = ready.message(QUERY_ADAPTER, 1040)
    ready.submit(message)
    for _, block in message.output:
        assert sum8(block[:MAILBOX]) == 0xFF
        assert sum8(block[0x200:0x23F]) == 0xFF


@pytest.mark.requirement("D5")
def test_mailbox_signatures_are_checked_when_enabled(ready: RawHost) -> None:
    assert ready.submit(give(ready, 5)).delivery == DeliveryStatus.OK
    checking(ready)
    assert ready.submit(give(ready, 5)).delivery == DeliveryStatus.SIGNATURE_ERR
    message = give(ready, 100)
    signed(message.input)
    assert ready.submit(message).delivery == DeliveryStatus.OK
    for offset in (0x100, 0x23E, 0x23F):
        message = give(ready, 100)
        signed(message.input)
        message.input[1][1][offset] ^= 0x10
        assert ready.submit(message).delivery == DeliveryStatus.SIGNATURE_ERR


@pytest.mark.requirement("D5")
def test_control_area_of_the_output_chain_is_checked_when_enabled(ready: RawHost) -> None:
    checking(ready)
    message = adapter(ready)
    signed(message.output)
    message.output[0][1][0x23E] ^= 1
    assert ready.submit(message).delivery == DeliveryStatus.SIGNATURE_ERR
    message = adapter(ready)
    signed(message.output)
    message.output[0][1][0] ^= 1  # its data are not the host's
    assert ready.submit(message).delivery == DeliveryStatus.OK


@pytest.mark.requirement("D6")
def test_entry_that_was_not_handed_over_is_left_alone(ready: RawHost) -> None:
    message = adapter(ready)
    message.entry[0x3F] = 0
    message.sign()
    ready.ring(message)
    ready.settle()
    assert bytes(ready.slot(0)) == bytes(message.entry)
    assert (ready.hca.commands.unowned, ready.hca.commands.in_flight) == (1, 0)
    still_works(ready)


@pytest.mark.requirement("D6")
def test_busy_slot_is_not_submitted_twice(ready: RawHost) -> None:
    message = adapter(ready)
    ready.ring(message)
    ready.ring(message)
    ready.settle()
    assert ready.hca.commands.ignored == 1
    assert ready.result(message).status == CommandStatus.OK


@pytest.mark.requirement("D6")
def test_input_is_read_once(ready: RawHost) -> None:
    """What the host writes after the doorbell was served cannot change a command that waits."""
    host = small_host()
    message = big_key(host, slot=1)
    host.ring(message)
    host.settle()
    host.slot(1)[0x10:0x20] = bytes(16)
    for _, block in message.input:
        block[:] = b"\xff" * len(block)
    host.give(64)
    entry = bytes(host.slot(1))
    assert (entry[0x3F], entry[0x20]) == (0, 0)


@pytest.mark.requirement("D7")
def test_one_doorbell_many_slots_in_any_order() -> None:
    orders = set()
    for seed in range(6):
        host = RawHost(seed=seed).ready()
        messages = [adapter(host, slot) for slot in range(31)]
        host.ring(*messages)
        order = []
        while host.hca.commands.in_flight:
            host.engine.run(budget=1)
            order += [m.slot for m in messages if not host.owned(m) and m.slot not in order]
        assert [host.result(m).status for m in messages] == [0] * 31
        orders.add(tuple(order))
    assert len(orders) == 6
    assert tuple(range(31)) not in orders


@pytest.mark.requirement("D7")
def test_a_seed_repeats_the_order() -> None:
    def order() -> list[int]:
        host = RawHost(seed=5).ready()
        messages = [adapter(host, slot) for slot in range(8)]
        host.ring(*messages)
        found: list[int] = []
        while host.hca.commands.in_flight:
            host.engine.run(budget=1)
            found += [m.slot for m in messages if not host.owned(m) and m.slot not in found]
        return found

    assert order() == order()


def command_events(eq: memoryview, owner: int = 0) -> list[int]:
    """Vectors of the command completion events in an EQ's first lap."""
    found = []
    for at in range(0, len(eq), 64):
        if eq[at + 63] & 1 == owner:
            eqe = Eqe(eq, at)
            assert eqe.type == EventType.CMD
            found.append(eqe.data.cmd.vector)
    return found


@pytest.mark.requirement("D8", "C10", "A6")
def test_completion_events_begin_after_the_eq_that_carries_them(host: RawHost) -> None:
    host.initialize()
    _, eq = host.create_eq(CMD)
    assert command_events(eq) == []
    assert host.interrupts == []
    host.submit(adapter(host, 4))
    assert command_events(eq) == [1 << 4]
    assert host.interrupts == [0]


@pytest.mark.requirement("D8")
def test_one_event_reports_several_commands(host: RawHost) -> None:
    host.initialize()
    _, eq = host.create_eq(CMD)
    messages = [adapter(host, slot) for slot in range(16)]
    host.ring(*messages)
    host.settle()
    vectors = command_events(eq)
    assert sum(vectors) == 0xFFFF
    assert len(vectors) < 16
    assert all(host.result(m).status == 0 for m in messages)


@pytest.mark.requirement("C10")
def test_command_eq_is_refused_while_others_are_in_flight() -> None:
    host = small_host()
    waiting = big_key(host, slot=3)
    host.ring(waiting)
    host.settle()
    request = bytearray(280)
    request[0x58:0x60] = CMD.to_bytes(8, "big")
    result = host.command(Opcode.CREATE_EQ, bytes(request))
    assert (result.status, result.syndrome) == (CommandStatus.BAD_SYS_STATE, control.QUEUE_NOT_EMPTY.number)


def small_host(*, events: int = PAGE_REQUEST) -> RawHost:
    """A function with little room in ICM, and an EQ for its requests."""
    host = RawHost(replace(load_profile(), pages=Pages(boot=4, init=0))).initialize()
    if events:
        host.create_eq(events, log_size=6)
        host.good(Opcode.MANAGE_PAGES, words(0, 0, 0, 0), slot=PAGE_SLOT)  # its first request is answered: nothing
    return host


def big_key(host: RawHost, slot: int, room: int = 16) -> Message:
    """CREATE_MKEY of a free key with translations that take 16 KiB of ICM."""
    key = {"free": 1, "access_mode_1_0": 1, "log_page_size": 12, "translations_octword_size": 1024}
    pd = host.good(Opcode.ALLOC_PD).word(8)
    request = CreateMkeyIn.new(opcode=Opcode.CREATE_MKEY, memory_key_mkey_entry={**key, "pd": pd})
    return host.message(bytes(request), room, slot)


def hide(host: RawHost, address: int) -> None:
    """Unmap the page of an address, leaving the rest of memory mapped."""
    page = address & ~(PAGE - 1)
    start, memory = host.machine._base, host.machine._memory
    host.machine.dma.clear()
    host.machine.dma.map(start, memory[: page - start])
    host.machine.dma.map(page + PAGE, memory[page + PAGE - start :])


@pytest.mark.requirement("B9")
def test_command_waits_for_pages(host: RawHost) -> None:
    host = small_host()
    message = big_key(host, slot=2)
    host.ring(message)
    host.settle()
    assert host.owned(message)
    assert host.submit(adapter(host, 3)).status == CommandStatus.OK  # others go on
    host.give(64)
    assert host.result(message).status == CommandStatus.OK


@pytest.mark.requirement("B9")
def test_waiting_command_ends_when_no_pages_can_be_given() -> None:
    host = small_host()
    messages = [big_key(host, slot=slot) for slot in (2, 9)]
    host.ring(*messages)
    host.settle()
    host.good(Opcode.MANAGE_PAGES, words(0, 0, 0, 0), slot=PAGE_SLOT)
    for message in messages:
        result = host.result(message)
        assert (result.status, result.syndrome) == (CommandStatus.NO_RESOURCES, control.NO_PAGES.number)


@pytest.mark.requirement("B9", "B3")
def test_command_fails_at_once_when_nobody_can_be_asked_for_pages() -> None:
    host = small_host(events=0)
    result = host.submit(big_key(host, slot=2))
    assert (result.status, result.syndrome) == (CommandStatus.NO_RESOURCES, control.NO_PAGES.number)


@pytest.mark.requirement("B9")
def test_waiting_command_ends_when_the_page_event_is_unmapped() -> None:
    host = small_host()
    message = big_key(host, slot=2)
    host.ring(message)
    host.settle()
    host.good(Opcode.DESTROY_EQ, words(0, 0, 1, 0))
    assert host.result(message).syndrome == control.NO_PAGES.number


@pytest.mark.requirement("F3")
def test_waiting_command_ends_at_teardown() -> None:
    host = small_host()
    message = big_key(host, slot=2)
    host.ring(message)
    host.settle()
    host.good(Opcode.TEARDOWN_HCA)
    assert host.result(message).status in (CommandStatus.BAD_SYS_STATE, CommandStatus.NO_RESOURCES)


@pytest.mark.requirement("C2", "D10")
def test_without_bus_master_nothing_is_read(ready: RawHost) -> None:
    ready.bus_master(False)
    message = adapter(ready)
    ready.ring(message)
    ready.settle()
    assert bytes(ready.slot(0)) == bytes(message.entry)
    assert (ready.hca.commands.dropped, ready.read(0x1010) >> 24) == (1, 0)
    ready.bus_master()
    ready.ring(message)
    ready.settle()
    assert ready.result(message).status == CommandStatus.OK


@pytest.mark.requirement("A10", "E3")
def test_queue_that_is_not_mapped_shows_in_the_health_buffer(host: RawHost) -> None:
    host.bus_master()
    host.write(0x10, 0xDEAD)
    host.write(0x14, 0xBEEF000)
    host.write(0x18, 1)
    host.settle()
    assert host.hca.commands.dropped == 1
    assert host.read(0x1010) >> 24 == 0xA


@pytest.mark.requirement("D9")
def test_fault_of_a_handler_is_answered_logged_and_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(fn: Function, request: QueryAdapterIn, reply: QueryAdapterOut) -> None:
        raise ZeroDivisionError("broken")

    monkeypatch.setitem(COMMANDS, Opcode.QUERY_ADAPTER, replace(COMMANDS[Opcode.QUERY_ADAPTER], handler=broken))
    host = RawHost(strict=False).ready()
    result = host.submit(adapter(host))
    assert (result.delivery, result.status, result.syndrome) == (0, CommandStatus.INTERNAL_ERR, 0xCA010007)
    assert host.hca.commands.faults == 1
    assert "ZeroDivisionError" in caplog.text
    strict = RawHost(strict=True).ready()
    strict.ring(adapter(strict))
    with pytest.raises(ZeroDivisionError):
        strict.settle()
    assert not strict.slot(0)[0x3F] & 1


@pytest.mark.requirement("D6", "E2")
def test_queue_that_moves_takes_nothing_along(host: RawHost) -> None:
    host.enable()
    message = host.message(struct.pack(">HHIII", Opcode.QUERY_ISSI, 0, 0, 0, 0), 112)
    host.ring(message)
    other, _ = host.machine.allocate(PAGE)
    host.write(0x14, other & 0xFFFF_FFFF)
    host.settle()
    assert host.owned(message)
    assert host.hca.commands.in_flight == 0


@pytest.mark.requirement("D7", "E2")
def test_a_queue_that_is_moved_for_ever_fills_no_memory(host: RawHost) -> None:
    host.start()
    for turn in range(1000):
        host.write(0x14, 0x1000 * (turn + 1))
        host.write(0x18, 0xFFFF_FFFF)
    assert len(host.engine._ready) <= 32
    host.settle()
    host.place_queue()
    host.good(Opcode.ENABLE_HCA, room=12)
