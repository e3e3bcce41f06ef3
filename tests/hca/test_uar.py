"""Doorbells: what is none is ignored, whatever it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softhca.hca.uar import doorbell
from tests.hca.bench import Bench

BENCH = Bench()


@pytest.mark.requirement("G1", "B11")
@given(
    page=st.integers(0, 8191) | st.just(BENCH.uar),
    offset=st.integers(0, 4095) | st.sampled_from([0x20, 0x24, 0x40, 0x48, 0x800, 0x804, 0xF00]),
    data=st.binary(min_size=1, max_size=64),
)
def test_any_write_is_survived(page: int, offset: int, data: bytes) -> None:
    doorbell(BENCH.fn, page, offset, data)
    BENCH.run()


@pytest.mark.requirement("B11")
@pytest.mark.parametrize(
    ("offset", "data"),
    [
        (0x00, bytes(4)),
        (0x20, bytes(4) + b"\0\0\xff\xff"),
        (0x40, b"\xff\0\0\0"),
        (0x800, bytes(8)),
        (0x808, bytes(8)),
        (0x20, bytes(2)),
    ],
)
def test_what_is_no_doorbell_is_counted(offset: int, data: bytes) -> None:
    bench = Bench()
    bench.ring(bench.uar, offset, data)
    assert bench.fn.uars.get(bench.uar).ignored == 1
