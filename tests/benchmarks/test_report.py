from __future__ import annotations

import json

import pytest
from benchmarks.report import Line, NotMeasured, amount, duration, rate, show


@pytest.fixture(params=[10.0, 25.0, 50.0])
def step(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    """How fast the machine is said to be."""
    value = float(request.param)
    monkeypatch.setattr("benchmarks.report.loop_step", lambda: value)
    return value


def test_a_slow_machine_gets_more_time_and_a_fast_one_no_less(step: float) -> None:
    line = duration("x", 30, lambda: 45.0, unit="ms")
    assert (line.stated, line.target, line.baseline) == (30, 60.0 if step == 50 else 30.0, step)
    assert line.passed is (step == 50)


def test_a_slow_machine_may_do_less_a_second(step: float) -> None:
    line = rate("x", 20_000, lambda: 15_000.0)
    assert line.target == (10_000.0 if step == 50 else 20_000.0)
    assert line.passed is (step == 50)


def test_the_median_of_the_rounds_counts() -> None:
    values = iter([9.0, 1.0, 2.0, 100.0, 3.0])
    line = duration("x", 3, lambda: next(values))
    assert (line.value, line.rounds) == (3.0, [9.0, 1.0, 2.0, 100.0, 3.0])
    assert line.passed


def test_memory_is_not_scaled(step: float) -> None:
    assert not amount("x", 60, lambda: 61.0, unit="MiB").passed
    assert amount("x", 60, lambda: 60.0, unit="MiB").baseline is None


def test_what_cannot_be_measured_fails_and_says_why() -> None:
    def measure() -> float:
        raise NotMeasured("no guest here")

    line = duration("x", 3, measure)
    assert (line.value, line.note, line.passed) == (None, "no guest here", False)


def test_a_figure_without_a_target_passes() -> None:
    assert rate("x", None, lambda: 1.0).passed


@pytest.mark.parametrize(("value", "status"), [(3.0, 0), (4.0, 1)])
def test_the_document_and_the_exit_status(value: float, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [Line("x", "s", 3, 3, value, [value], 20.0), Line("y", "1/s", None, None, 7.0, [7.0], 20.0, higher=True)]
    assert show(lines) == status
    output = capsys.readouterr()
    document = json.loads(output.out)
    assert [(figure["name"], figure["target"], figure["value"], figure["pass"]) for figure in document["figures"]] == [
        ("x", 3, value, status == 0),
        ("y", None, 7.0, True),
    ]
    assert {"processor", "processors", "load", "python", "kernel", "kvm"} <= document["host"].keys()
    assert ("FAIL" in output.err) is (status == 1)
