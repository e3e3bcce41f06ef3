"""What a benchmark reports, and how targets follow the speed of the machine.

An absolute target is stated for a machine whose bare Python loop takes 25 ns a step. The same loop is timed before each
round of a figure, and on a slower machine times are allowed to grow (rates to shrink) by the ratio. A faster machine
gets the target as it is stated. Memory does not depend on speed, and its targets are never scaled.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

LOOP_STEP_NS = 25.0
ROUNDS = 5


class NotMeasured(Exception):
    """A figure could not be taken; the message says why."""


@dataclass(frozen=True)
class Line:
    """One figure.

    Attributes:
        name: what was measured.
        unit: of value and target.
        stated: the target for a machine of 25 ns a step; None: there is none.
        target: after scaling by the baseline; None: there is none.
        value: median of the rounds; None: it could not be measured.
        rounds: every round, in order.
        baseline: ns that a step of the bare loop took, median of one loop a round; None where speed does not count.
        higher: whether more is better.
        note: what a reader has to know.
    """

    name: str
    unit: str
    stated: float | None
    target: float | None
    value: float | None
    rounds: list[float]
    baseline: float | None
    higher: bool = False
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether the target is met; a figure without a target passes when it could be taken."""
        if self.value is None:
            return False
        if self.target is None:
            return True
        return self.value >= self.target if self.higher else self.value <= self.target


def loop_step() -> float:
    """Nanoseconds that a step of a bare loop takes on this machine now."""
    steps = 500_000
    start = time.perf_counter_ns()
    for _ in range(steps):
        pass
    return (time.perf_counter_ns() - start) / steps


def duration(
    name: str, target: float, measure: Callable[[], float], *, unit: str = "s", rounds: int = ROUNDS, note: str = ""
) -> Line:
    """A time, at most `target` before scaling: `measure()` gives it in `unit`; the median counts."""
    taken = _rounds(measure, rounds)
    return Line(
        name, unit, target, target * taken.slowness, taken.value, taken.values, taken.baseline, False, taken.why or note
    )


def rate(
    name: str, target: float | None, measure: Callable[[], float], *, rounds: int = ROUNDS, note: str = ""
) -> Line:
    """A rate, at least `target` before scaling: `measure()` gives it per second; the median counts."""
    taken = _rounds(measure, rounds)
    scaled = None if target is None else target / taken.slowness
    return Line(name, "1/s", target, scaled, taken.value, taken.values, taken.baseline, True, taken.why or note)


def amount(name: str, target: float, measure: Callable[[], float], *, unit: str, note: str = "") -> Line:
    """A figure that does not depend on the machine's speed, measured once, at most `target`."""
    taken = _rounds(measure, 1)
    return Line(name, unit, target, target, taken.value, taken.values, None, False, taken.why or note)


def later(prepare: Callable[[], Callable[[], float]]) -> Callable[[], float]:
    """What prepares at the first call, so that a preparation that fails is that figure's failure and no other's."""
    ready: list[Callable[[], float]] = []

    def measure() -> float:
        if not ready:
            ready.append(prepare())
        return ready[0]()

    return measure


@dataclass(frozen=True)
class _Taken:
    """What the rounds of a figure gave; `why` says why there is no value."""

    values: list[float]
    value: float | None
    baseline: float
    why: str = ""

    @property
    def slowness(self) -> float:
        return max(1.0, self.baseline / LOOP_STEP_NS)


def _rounds(measure: Callable[[], float], rounds: int) -> _Taken:
    """Measure, each round with a bare loop before it: whatever else the machine does slows both."""
    values: list[float] = []
    steps: list[float] = []
    try:
        for _ in range(rounds):
            steps.append(loop_step())
            values.append(measure())
    except NotMeasured as reason:
        return _Taken(values, None, statistics.median(steps), str(reason))
    return _Taken(values, statistics.median(values), statistics.median(steps))


def host() -> dict[str, Any]:
    """The machine that the figures are of."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return {
        "processor": next(models, platform.machine()),
        "processors": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "python": platform.python_version(),
        "kernel": platform.release(),
        "kvm": os.access("/dev/kvm", os.R_OK | os.W_OK),
    }


def _figure(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:,.4g} {unit}" if value < 10_000 else f"{value:,.0f} {unit}"


def show(lines: list[Line]) -> int:
    """Print a table on standard error and JSON on standard output; 1 when a target is missed."""
    table = Table("", "target", "value", "loop step", "", "note")
    for line in lines:
        relation = "" if line.target is None else ">= " if line.higher else "<= "
        verdict = "[red]FAIL[/]" if not line.passed else "" if line.target is None else "[green]pass[/]"
        baseline = "" if line.baseline is None else f"{line.baseline:.0f} ns"
        target = f"{relation}{_figure(line.target, line.unit)}"
        table.add_row(line.name, target, _figure(line.value, line.unit), baseline, verdict, line.note)
    Console(stderr=True).print(table)
    figures = [{**asdict(line), "pass": line.passed} for line in lines]
    json.dump({"host": host(), "loop_step_ns": LOOP_STEP_NS, "figures": figures}, sys.stdout, indent=1)
    print()
    return 0 if all(line.passed for line in lines) else 1
