from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from softhca.bus import DmaFault, DmaSpace
from softhca.bus.dma import ADDRESS_END


def memory(length: int) -> memoryview:
    return memoryview(bytearray(length))


def space_of(*ranges: tuple[int, int]) -> DmaSpace:
    space = DmaSpace()
    for iova, length in ranges:
        space.map(iova, memory(length))
    return space


def test_a_view_is_the_memory_itself() -> None:
    buffer = bytearray(16)
    space = DmaSpace()
    space.map(0x1000, memoryview(buffer))
    space.view(0x1004, 4, write=True)[:] = b"abcd"
    assert buffer[4:8] == b"abcd"
    buffer[15] = 7
    assert space.view(0x100F, 1)[0] == 7


@pytest.mark.requirement("A9")
@pytest.mark.parametrize(
    ("iova", "length"),
    [(0xFFF, 1), (0xFFF, 2), (0x1000, 0x11), (0x1010, 1), (0x100F, 2), (0, 4), (ADDRESS_END - 1, 1), (0x1000, -1)],
)
def test_what_is_not_mapped_faults(iova: int, length: int) -> None:
    with pytest.raises(DmaFault, match="not mapped") as caught:
        space_of((0x1000, 0x10)).view(iova, length)
    assert (caught.value.iova, caught.value.length, caught.value.write) == (iova, length, False)


def test_a_read_only_mapping_refuses_writes() -> None:
    space = DmaSpace()
    space.map(0, memory(8), writable=False)
    space.map(8, memoryview(bytes(8)))
    for iova in (0, 8):
        space.view(iova, 8)
        with pytest.raises(DmaFault, match="read-only") as caught:
            space.view(iova, 8, write=True)
        assert caught.value.write
    with pytest.raises(DmaFault):
        space.views(4, 8, write=True)


def test_views_cross_adjacent_mappings() -> None:
    space = space_of((0x1000, 0x10), (0x1010, 0x20), (0x1030, 0x10))
    parts = space.views(0x100C, 0x28, write=True)
    assert [len(part) for part in parts] == [4, 0x20, 4]
    for part in parts:
        part[:] = b"\xaa" * len(part)
    assert bytes(space.view(0x1010, 0x20)) == b"\xaa" * 0x20
    assert space.views(0x100C, 0) == []
    with pytest.raises(DmaFault):
        space.view(0x100C, 8)


@pytest.mark.parametrize(("iova", "length"), [(0x1038, 9), (0xFFF, 2), (0x2000, 1), (ADDRESS_END - 4, 8)])
def test_views_fault_at_any_hole(iova: int, length: int) -> None:
    with pytest.raises(DmaFault):
        space_of((0x1000, 0x40), (0x1044, 4)).views(iova, length)


@pytest.mark.parametrize(("iova", "length"), [(0x1000, 1), (0xFFF, 2), (0x103F, 1), (0x1000, 0x40), (0, 0x10000)])
def test_mappings_never_overlap(iova: int, length: int) -> None:
    space = space_of((0x1000, 0x40))
    with pytest.raises(ValueError, match="overlaps the mapping at 0x1000"):
        space.map(iova, memory(length))
    assert len(space) == 1


@pytest.mark.parametrize(("iova", "length"), [(0, 0), (-1, 4), (ADDRESS_END - 1, 2), (ADDRESS_END, 1)])
def test_only_64_bit_ranges_are_mapped(iova: int, length: int) -> None:
    with pytest.raises(ValueError, match="64-bit"):
        DmaSpace().map(iova, memory(length))


def test_the_last_byte_of_the_address_space() -> None:
    space = space_of((ADDRESS_END - 8, 8))
    assert len(space.view(ADDRESS_END - 8, 8)) == 8
    assert space.overlaps(ADDRESS_END - 1, 1)


def test_memory_of_any_item_size_is_mapped_as_bytes() -> None:
    space = DmaSpace()
    space.map(0, memoryview(bytearray(16)).cast("Q"))
    assert len(space.view(0, 16)) == 16


def test_unmap_takes_whole_mappings_only() -> None:
    space = space_of((0x1000, 0x10), (0x1010, 0x10), (0x2000, 0x10))
    for iova, length in ((0x1008, 8), (0x1000, 0x18), (0x1008, 0x1000), (0x0, 0x1008)):
        with pytest.raises(ValueError, match="cuts the mapping"):
            space.unmap(iova, length)
    assert space.unmap(0x1000, 0x20) == 0x20
    assert space.unmap(0x1000, 0x20) == 0
    assert len(space) == 1
    assert space.clear() == 0x10
    assert len(space) == 0


@pytest.mark.requirement("A10")
def test_the_generation_tells_of_every_change_and_of_another_space() -> None:
    first, second = DmaSpace(), DmaSpace()
    seen = [first.generation, second.generation]
    for space in (first, second):
        space.map(0, memory(8))
        seen.append(space.generation)
        space.unmap(0, 8)
        seen.append(space.generation)
        space.clear()
        seen.append(space.generation)
    assert len(set(seen)) == len(seen)


SIZE = 64


class DmaMachine(RuleBasedStateMachine):
    """Against a model that keeps each byte's owner."""

    def __init__(self) -> None:
        super().__init__()
        self.space = DmaSpace()
        self.owner: list[tuple[int, int, bool] | None] = [None] * SIZE
        """Per address: start and length of its mapping, and whether it is writable."""

    @rule(iova=st.integers(0, SIZE - 1), length=st.integers(1, 16), writable=st.booleans())
    def map(self, iova: int, length: int, writable: bool) -> None:
        length = min(length, SIZE - iova)
        free = all(owner is None for owner in self.owner[iova : iova + length])
        assert self.space.overlaps(iova, length) is not free
        buffer = memoryview(bytearray(range(iova, iova + length)))
        try:
            self.space.map(iova, buffer, writable=writable)
        except ValueError:
            assert not free
        else:
            assert free
            self.owner[iova : iova + length] = [(iova, length, writable)] * length

    @rule(iova=st.integers(0, SIZE - 1), length=st.integers(1, SIZE))
    def unmap(self, iova: int, length: int) -> None:
        owners = {owner for owner in self.owner[iova : iova + length] if owner is not None}
        whole = all(iova <= start and start + size <= iova + length for start, size, _ in owners)
        try:
            removed = self.space.unmap(iova, length)
        except ValueError:
            assert not whole
        else:
            assert whole
            assert removed == sum(size for _, size, _ in owners)
            for start, size, _ in owners:
                self.owner[start : start + size] = [None] * size

    @rule(iova=st.integers(0, SIZE - 1), length=st.integers(1, SIZE), write=st.booleans())
    def look(self, iova: int, length: int, write: bool) -> None:
        owners = self.owner[iova : iova + length] + [None] * max(0, iova + length - SIZE)
        good = all(owner is not None and (owner[2] or not write) for owner in owners)
        try:
            parts = self.space.views(iova, length, write=write)
        except DmaFault:
            assert not good
        else:
            assert good
            assert b"".join(parts) == bytes(range(iova, iova + length))
        try:
            view = self.space.view(iova, length, write=write)
        except DmaFault:
            assert not good or len(set(owners)) > 1
        else:
            assert good
            assert bytes(view) == bytes(range(iova, iova + length))

    @invariant()
    def same_number(self) -> None:
        assert len(self.space) == len({owner for owner in self.owner if owner is not None})


TestDmaMachine = DmaMachine.TestCase


@given(st.integers(-8, ADDRESS_END + 8), st.integers(-8, ADDRESS_END), st.booleans())
def test_any_access_gives_a_view_or_a_fault(iova: int, length: int, write: bool) -> None:
    space = space_of((0x1000, 0x1000), (ADDRESS_END - 0x1000, 0x1000))
    try:
        view = space.view(iova, length, write=write)
    except DmaFault:
        return
    assert len(view) == length
