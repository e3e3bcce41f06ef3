"""Precompiled structs: taken from the layouts, equal to them."""

from __future__ import annotations

import pytest

from softhca.prm.codec import codec, joined
from softhca.prm.cqe import Cqe64
from softhca.prm.layout import LayoutError
from softhca.prm.wqe import WqeCtrlSeg, WqeDataSeg

RAW = bytes(range(64))


def test_values_are_the_layouts() -> None:
    view = Cqe64(RAW)
    names = ("slid", "srqn", "byte_cnt", "timestamp", "wqe_counter")
    assert codec(Cqe64, *names).unpack(RAW) == tuple(getattr(view, name) for name in names)


def test_offsets_name_words() -> None:
    assert codec(WqeCtrlSeg, 0x00, 0x08, "imm").unpack(RAW[:16]) == (0x00010203, 0x08090A0B, 0x0C0D0E0F)


def test_length_cuts_the_struct() -> None:
    assert codec(Cqe64, "wqe_counter", length=63).size == 63


@pytest.mark.parametrize("items", [("inline_",), ("lkey", 0x00), ("lkey", "lkey")])
def test_what_cannot_be_taken(items: tuple[str | int, ...]) -> None:
    with pytest.raises(LayoutError):
        codec(WqeDataSeg, *items)


def test_length_that_does_not_hold_the_items() -> None:
    with pytest.raises(LayoutError):
        codec(WqeDataSeg, "addr", length=8)


def test_structures_behind_each_other() -> None:
    both = joined(codec(WqeDataSeg, "lkey"), codec(WqeDataSeg, "addr"), length=64)
    assert both.size == 64
    assert both.unpack(bytes(4) + b"\0\0\0\5" + bytes(23) + b"\7" + bytes(32)) == (5, 7)
    with pytest.raises(LayoutError):
        joined(codec(WqeDataSeg), codec(WqeDataSeg), length=31)
