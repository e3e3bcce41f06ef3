"""Copies between lists of views."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from softhca.hca.memory import copy

cuts = st.lists(st.integers(0, 40), max_size=8)


def pieces(raw: bytearray, where: list[int]) -> list[memoryview]:
    view, ends = memoryview(raw), sorted(at for at in where if at <= len(raw))
    return [view[start:end] for start, end in zip([0, *ends], [*ends, len(raw)], strict=True)]


@given(payload=st.binary(max_size=40), spare=st.integers(0, 8), source_cuts=cuts, target_cuts=cuts)
def test_copy_is_concatenation(payload: bytes, spare: int, source_cuts: list[int], target_cuts: list[int]) -> None:
    target = bytearray(len(payload) + spare)
    copy(pieces(target, target_cuts), pieces(bytearray(payload), source_cuts))
    assert target == payload + bytes(spare)


def test_overlapping_memory_is_moved() -> None:
    raw = bytearray(b"abcdefgh")
    copy([memoryview(raw)[2:8]], [memoryview(raw)[0:6]])
    assert raw == b"ababcdef"
