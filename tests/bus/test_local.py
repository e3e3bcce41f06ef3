from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softhca.bus import Iova
from softhca.bus.local import LocalHost

PAGE = 4096


def test_memory_is_zeroed_page_aligned_and_reachable() -> None:
    host = LocalHost(16 * PAGE)
    iova, view = host.allocate(100)
    assert iova % PAGE == 0
    assert iova != 0
    assert len(view) == 100
    view[:4] = b"here"
    assert bytes(host.dma.view(iova, 4)) == b"here"
    host.free(iova)
    again, view = host.allocate(100)
    assert (again, bytes(view)) == (iova, bytes(100))


def test_memory_runs_out_with_a_word() -> None:
    host = LocalHost(4 * PAGE)
    host.allocate(3 * PAGE)
    with pytest.raises(MemoryError, match="8192 bytes asked for, 4096 left"):
        host.allocate(PAGE + 1)
    host.allocate(PAGE)


def test_only_allocations_are_freed() -> None:
    host = LocalHost(4 * PAGE)
    iova, _ = host.allocate(2 * PAGE)
    for wrong in (iova + PAGE, iova - PAGE, 0):
        with pytest.raises(ValueError, match="nothing was allocated there"):
            host.free(Iova(wrong))
    host.free(iova)
    with pytest.raises(ValueError, match="nothing was allocated there"):
        host.free(iova)


@given(st.lists(st.one_of(st.integers(1, 3 * PAGE), st.none()), max_size=60))
def test_allocations_never_overlap(plan: list[int | None]) -> None:
    """A number allocates, None frees the oldest."""
    host, taken = LocalHost(256 * PAGE), list[tuple[int, int]]()
    for size in plan:
        if size is not None:
            iova, _ = host.allocate(size)
            assert all(iova + size <= start or start + length <= iova for start, length in taken)
            taken.append((iova, size))
        elif taken:
            host.free(Iova(taken.pop(0)[0]))
    assert host.allocations == len(taken)


def test_an_interrupt_waits_for_its_handler() -> None:
    host, heard = LocalHost(PAGE), list[int]()
    host.interrupt(3)
    host.interrupt(3)
    host.on_interrupt(3, lambda: heard.append(3))
    assert heard == [3]
    host.interrupt(3)
    host.on_interrupt(3, None)
    host.interrupt(3)
    assert heard == [3, 3]
    host.on_interrupt(3, lambda: heard.append(4))
    assert heard == [3, 3, 4]
