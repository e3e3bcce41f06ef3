"""Queue buffers over page lists."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softhca.bus import DmaFault, DmaSpace, Iova
from softhca.bus.local import LocalHost
from softhca.hca.errors import CommandError
from softhca.hca.wq import QueueBuffer, Slots, Word, doorbell_record, queue_base
from softhca.prm.syndromes import objects as syndromes

HOST = LocalHost(1 << 20)
BASE, MEMORY = HOST.allocate(16 * 4096)
MEMORY[:] = bytes(range(256)) * 256


def buffer_over(order: list[int], *, page_offset: int = 0, length: int) -> QueueBuffer:
    return QueueBuffer(array("Q", [BASE + page * 4096 for page in order]), 0, page_offset, length)


@pytest.mark.requirement("A2", "B5")
def test_contiguous_and_scattered_read_alike() -> None:
    straight = buffer_over([0, 1, 2], length=12288)
    assert straight.read(HOST.dma, 4000, 200) == MEMORY[4000:4200]
    mixed = buffer_over([5, 1, 9], length=12288)
    assert mixed.read(HOST.dma, 4000, 200) == bytes(MEMORY[5 * 4096 + 4000 : 6 * 4096]) + bytes(
        MEMORY[4096 : 4096 + 104]
    )


def test_page_offset_counts_in_parts_of_the_page() -> None:
    assert queue_base(24, 4) == 0x6000, "measured with 64 KiB pages"
    assert buffer_over([3], page_offset=2, length=64).read(HOST.dma, 0, 64) == MEMORY[3 * 4096 + 128 : 3 * 4096 + 192]


@given(data=st.data())
def test_any_piece_of_any_buffer(data: st.DataObject) -> None:
    order = data.draw(st.lists(st.integers(0, 15), min_size=1, max_size=5))
    page_offset = data.draw(st.integers(0, 63))
    length = data.draw(st.integers(1, len(order) * 4096 - page_offset * 64))
    queue = buffer_over(order, page_offset=page_offset, length=length)
    flat = b"".join(bytes(MEMORY[page * 4096 : page * 4096 + 4096]) for page in order)[page_offset * 64 :]
    at = data.draw(st.integers(0, length))
    size = data.draw(st.integers(0, length - at))
    assert queue.read(HOST.dma, at, size) == flat[at : at + size]
    count = -(-(page_offset * 64 + length) // 4096)
    assert queue.pages() == [BASE + page * 4096 for page in order[:count]]
    assert queue.page_count == count


def test_an_entry_is_written_where_it_is_read() -> None:
    queue = buffer_over([7, 2], length=8192)
    queue.entry(HOST.dma, 4096 + 64, 64)[:] = b"\xaa" * 64
    assert queue.read(HOST.dma, 4096 + 64, 64) == b"\xaa" * 64
    MEMORY[:] = bytes(range(256)) * 256


@pytest.mark.parametrize(("at", "length"), [(-1, 1), (8192, 1), (0, 8193), (8191, 2), (1, -1)])
def test_nothing_outside_the_queue(at: int, length: int) -> None:
    queue = buffer_over([0, 1], length=8192)
    with pytest.raises(IndexError):
        queue.read(HOST.dma, at, length)
    with pytest.raises(IndexError):
        queue.entry(HOST.dma, at, length)


@pytest.mark.parametrize("address", [0, 2, 0x1001])
def test_doorbell_record_that_cannot_be(address: int) -> None:
    with pytest.raises(CommandError) as refusal:
        doorbell_record(address)
    assert refusal.value.syndrome is syndromes.BAD_DOORBELL_RECORD


@given(order=st.permutations(range(8)), page_offset=st.integers(0, 63), slot=st.integers(0, 200))
def test_slots_are_where_the_buffer_has_them(order: list[int], page_offset: int, slot: int) -> None:
    queue = buffer_over(order, page_offset=page_offset, length=4 * 4096)
    slots = Slots(queue, 128, 64, write=False)
    for number in (slot, slot + 1, slot):
        assert slots.find(HOST.dma, number)
        at = slots.base + number * 64
        assert bytes(slots.mapping.memory[at : at + 64]) == queue.read(HOST.dma, 128 + number * 64, 64)
        last = slots.base + (slots.end - 1) * 64
        assert bytes(slots.mapping.memory[last : last + 64]) == queue.read(HOST.dma, 128 + (slots.end - 1) * 64, 64)


def test_slots_across_two_pages_or_not_mapped_are_not_found() -> None:
    queue = buffer_over([0, 3], length=8192)
    assert not Slots(queue, 4096 - 32, 64, write=False).find(HOST.dma, 0)
    assert not Slots(queue, 0, 64, write=False).find(DmaSpace(), 0)


def test_what_was_found_goes_with_the_map() -> None:
    space = DmaSpace()
    memory = bytearray(range(256)) * 32
    space.map(BASE, memoryview(memory))
    queue = buffer_over([0], length=4096)
    slots, word = Slots(queue, 0, 64, write=True), Word(BASE + 4)
    assert slots.find(space, 1)
    assert word.read(space) == 0x04050607
    mapping = slots.mapping
    space.unmap(BASE, len(memory))
    assert not len(mapping.memory)
    assert not slots.find(space, 1)
    with pytest.raises(DmaFault):
        word.read(space)
    memory.extend(b"free")  # nobody keeps a view


def test_a_word_across_two_mappings() -> None:
    space = DmaSpace()
    space.map(Iova(0x1000), memoryview(b"\1\2"))
    space.map(Iova(0x1002), memoryview(b"\3\4"))
    assert Word(0x1000).read(space) == 0x01020304
