"""The comparison of perftest's figures."""

from __future__ import annotations

import pytest
from benchmarks.perftest import CASES, Case, compare, parse

_RATE = Case("ib_send_bw", 64, (1, 1), "rate", 2, 4)
_LATENCY = Case("ib_write_lat", 8, (1, 1), "latency", 1, 0.5)
_OUTPUT = """\
@1 card ib_send_bw 64  64         5000             1.25               0.06   \t\t     0.100000
@1 rxe0 ib_send_bw 64  64         5000             1.61               0.46   \t\t     0.020000
@2 card ib_send_bw 64  64         5000             0.00               0.00   \t\t     0.000000
@2 rxe0 ib_send_bw 64  64         5000             1.61               0.46   \t\t     0.030000
@3 card ib_send_bw 64  64         5000             1.25               0.06   \t\t     0.120000
@3 rxe0 ib_send_bw 64  64         5000             1.61               0.46   \t\t     0.040000
@1 card ib_write_lat 8  8       2000          37.15          4355.18      18.79   \t       307.88      \t507.83
@1 rxe0 ib_write_lat 8  8       2000          inf            inf          inf      \t       inf         \t-nan
@1 rxe0 ib_read_lat 8
Couldn't connect
"""


def test_medians_are_compared_and_what_is_no_figure_is_left_out() -> None:
    line = compare(_RATE, parse(_OUTPUT))
    assert line.value == pytest.approx(110_000 / 30_000)
    assert line.passed
    assert line.higher
    assert "goal 4 x missed; 2 of 3 rounds" in line.note


def test_latency_without_a_partner_fails() -> None:
    line = compare(_LATENCY, parse(_OUTPUT))
    assert line.value is None
    assert not line.passed


@pytest.mark.parametrize(("card", "passed"), [("18.79", True), ("50.1", False)])
def test_lower_latency_is_better(card: str, passed: bool) -> None:
    columns = "8 2000 10 4000 {} 30 5"
    both = [f"@1 {device} ib_write_lat 8 {columns.format(us)}" for device, us in (("card", card), ("rxe0", "40"))]
    assert compare(_LATENCY, parse("\n".join(both))).passed is passed


def test_every_case_has_a_name_of_its_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES) == 9
