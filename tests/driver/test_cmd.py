from __future__ import annotations

from itertools import pairwise

import pytest

from softhca.driver import bring_up, close, reset_function
from softhca.driver.errors import (
    CommandError,
    CommandFailed,
    CommandTimeout,
    DeliveryError,
    DriverError,
    SignatureError,
    Unconfirmed,
)
from softhca.prm.adapter import QueryAdapterIn, QueryAdapterOut
from softhca.prm.layout import Layout
from softhca.prm.opcodes import Opcode
from softhca.prm.pd import AllocPdIn, AllocPdOut, DeallocPdIn, DeallocPdOut
from softhca.prm.status import CommandStatus, DeliveryStatus
from softhca.prm.syndromes import SYNDROMES
from tests.driver.conftest import Bench, make_bench

MILLISECOND = 1_000_000


class Nothing(Layout, size=0x10, name="test_nothing", manual="a test's own"):
    """An empty message."""


def alloc(bench: Bench) -> int:
    return bench.driver.channel.execute(Opcode.ALLOC_PD, AllocPdIn.new(), AllocPdOut).pd


@pytest.mark.requirement("D9", "A6")
def test_command_error_is_typed_and_says_what_and_why(bench: Bench) -> None:
    with pytest.raises(CommandFailed) as caught:
        bench.driver.channel.execute(Opcode.DEALLOC_PD, DeallocPdIn.new(pd=0xABCDE), DeallocPdOut)
    error = caught.value
    assert error.opcode is Opcode.DEALLOC_PD
    assert error.status == CommandStatus.BAD_RESOURCE
    assert SYNDROMES[error.syndrome].text in str(error)
    assert str(error).startswith("DEALLOC_PD (0x801) failed: BAD_RESOURCE (0x5), syndrome 0xca")
    assert "\n" not in str(error)


@pytest.mark.requirement("D9")
def test_delivery_error_is_another_layer(bench: Bench) -> None:
    channel = bench.driver.channel
    submission = channel.prepare(Opcode.ALLOC_PD, AllocPdIn.new(), AllocPdOut)
    entry = channel._entries[submission.slot]
    entry[0] = 6
    entry[0x3E - 1] ^= 7 ^ 6
    channel.ring(submission)
    with pytest.raises(DeliveryError, match=r"ALLOC_PD .* was not delivered: BAD_COMMAND_TYPE") as caught:
        channel.finish(submission)
    assert caught.value.status == DeliveryStatus.BAD_COMMAND_TYPE
    assert alloc(bench)


@pytest.mark.requirement("D7", "D8")
def test_several_slots_by_one_doorbell_complete_in_any_order(bench: Bench) -> None:
    channel = bench.driver.channel
    bench.card.rung.clear()
    submissions = [channel.prepare(Opcode.ALLOC_PD, AllocPdIn.new(), AllocPdOut) for _ in range(12)]
    channel.ring(*submissions)
    numbers = [channel.finish(submission).pd for submission in submissions]
    assert len(bench.card.rung) == 1
    assert bench.card.rung[0].bit_count() == 12
    assert len(set(numbers)) == 12
    assert numbers != sorted(numbers), "the device really completes out of order"


@pytest.mark.requirement("D7")
def test_order_depends_on_the_seed_alone() -> None:
    def numbers(seed: int) -> list[int]:
        bench = make_bench(seed=seed)
        bring_up(bench.driver)
        channel = bench.driver.channel
        submissions = [channel.prepare(Opcode.ALLOC_PD, AllocPdIn.new(), AllocPdOut) for _ in range(12)]
        channel.ring(*submissions)
        return [channel.finish(submission).pd for submission in submissions]

    assert numbers(3) == numbers(3)
    assert numbers(3) != numbers(4)


@pytest.mark.requirement("D6", "D10")
def test_timeout_puts_slot_and_mailboxes_into_quarantine(bench: Bench) -> None:
    channel = bench.driver.channel
    channel.timeout = MILLISECOND
    bench.card.hold = True
    with pytest.raises(CommandTimeout, match=r"did not complete in 0.001 s; slot .* is in quarantine") as caught:
        channel.execute(Opcode.QUERY_ADAPTER, QueryAdapterIn.new(), QueryAdapterOut)
    slot = caught.value.slot
    held = {box.iova for box in channel.quarantine[slot].output}
    bench.card.hold = False
    for _ in range(3 * channel.geometry.slots):
        submission = channel.prepare(Opcode.QUERY_ADAPTER, QueryAdapterIn.new(), QueryAdapterOut)
        assert submission.slot != slot
        assert not held & {box.iova for box in submission.output}
        channel.ring(submission)
        channel.finish(submission)


@pytest.mark.requirement("D10")
@pytest.mark.parametrize("polled", [True, False])
def test_late_completion_releases_the_slot_after_its_output_was_applied(bench: Bench, polled: bool) -> None:
    channel = bench.driver.channel
    channel.timeout = MILLISECOND
    bench.card.hold = True
    applied: list[int] = []
    submission = channel.prepare(
        Opcode.ALLOC_PD, AllocPdIn.new(), AllocPdOut, apply=lambda reply: applied.append(reply.pd)
    )
    channel.ring(submission)
    with pytest.raises(CommandTimeout):
        channel.finish(submission)
    assert channel.recover() == 1
    bench.card.let_go()
    bench.driver.engine.wait(lambda: False, MILLISECOND)
    if polled:
        channel.recover()
    assert applied == [submission.result().pd]
    assert not channel.quarantine
    assert channel.in_flight == 0


@pytest.mark.requirement("D10", "F5")
def test_quarantined_memory_stays_mapped_until_the_device_is_cut_off(bench: Bench) -> None:
    channel = bench.driver.channel
    channel.timeout = MILLISECOND
    bench.card.hold = True
    with pytest.raises(CommandTimeout):
        channel.execute(Opcode.QUERY_ADAPTER, QueryAdapterIn.new(), QueryAdapterOut)
    bench.card.hold = False
    bench.card.kept.clear()
    with pytest.raises(Unconfirmed, match="QUERY_ADAPTER in slot"):
        close(bench.driver)
    assert bench.host.allocations > 0
    assert reset_function(bench.driver).outstanding == 0
    assert bench.host.allocations == 0
    assert not bench.hca.config.bus_master


@pytest.mark.requirement("D6")
def test_device_owned_entry_is_not_touched_and_its_slot_not_used_again(bench: Bench) -> None:
    channel = bench.driver.channel
    bench.card.hold = True
    first = channel.prepare(Opcode.ALLOC_PD, AllocPdIn.new(), AllocPdOut)
    before = bytes(channel._entries[first.slot])
    others = [channel.prepare(Opcode.ALLOC_PD, AllocPdIn.new(), AllocPdOut) for _ in range(channel.geometry.slots - 2)]
    assert bytes(channel._entries[first.slot]) == before
    assert len({submission.slot for submission in [first, *others]}) == channel.geometry.slots - 1
    assert channel.page_slot not in {submission.slot for submission in [first, *others]}
    channel.timeout = MILLISECOND
    with pytest.raises(CommandError, match="found no free slot among 31"):
        channel.prepare(Opcode.ALLOC_PD, AllocPdIn.new(), AllocPdOut)
    bench.card.hold = False
    channel.ring(first, *others)
    assert len({channel.finish(submission).pd for submission in [first, *others]}) == 31


@pytest.mark.requirement("D6")
def test_unfinished_command_has_no_result(bench: Bench) -> None:
    submission = bench.driver.channel.prepare(Opcode.ALLOC_PD, AllocPdIn.new(), AllocPdOut)
    with pytest.raises(CommandError, match="is not done"):
        submission.result()
    bench.driver.channel.ring(submission)
    assert bench.driver.channel.finish(submission) is submission.result()


@pytest.mark.requirement("D4", "D6")
def test_tokens_change_with_each_use_and_are_never_zero(bench: Bench) -> None:
    channel = bench.driver.channel
    tokens = []
    for _ in range(300):
        submission = channel.prepare(Opcode.QUERY_ADAPTER, QueryAdapterIn.new(), QueryAdapterOut)
        tokens.append(submission.token)
        channel.ring(submission)
        channel.finish(submission)
    assert all(1 <= token <= 255 for token in tokens)
    assert all(this != following for this, following in pairwise(tokens))


@pytest.mark.requirement("D5")
def test_output_with_a_wrong_signature_is_refused(bench: Bench) -> None:
    channel = bench.driver.channel
    bench.host.on_interrupt(0, lambda: None)
    channel.use_polling()
    submission = channel.prepare(Opcode.QUERY_ADAPTER, QueryAdapterIn.new(), QueryAdapterOut)
    channel.ring(submission)
    entry = channel._entries[submission.slot]
    bench.driver.engine.wait(lambda: entry[-1] & 1 == 0, MILLISECOND)
    submission.output[0].data[5] ^= 1
    with pytest.raises(SignatureError, match=r"QUERY_ADAPTER .* left a wrong signature"):
        channel.finish(submission)


@pytest.mark.requirement("C10")
def test_switching_to_events_needs_an_empty_queue(bench: Bench) -> None:
    channel = bench.driver.channel
    bench.card.hold = True
    channel.prepare(Opcode.ALLOC_PD, AllocPdIn.new(), AllocPdOut)
    with pytest.raises(DriverError, match="the queue must be empty"):
        channel.use_events(lambda: None)


@pytest.mark.requirement("D8")
def test_lost_event_is_made_up_for_by_looking_at_the_entry(bench: Bench) -> None:
    channel = bench.driver.channel
    channel.timeout = MILLISECOND
    assert bench.driver.command_eq is not None
    bench.host.on_interrupt(bench.driver.command_eq.vector, lambda: None)
    channel.use_events(lambda: None)
    assert alloc(bench)


@pytest.mark.requirement("D8")
def test_command_eq_never_overruns(bench: Bench) -> None:
    eq = bench.driver.command_eq
    assert eq is not None
    before = eq.events
    for _ in range(600):
        bench.driver.channel.execute(Opcode.QUERY_ADAPTER, QueryAdapterIn.new(), QueryAdapterOut)
    assert eq.events == before + 600
    assert eq.unexpected == 0
