"""What a benchmark reports, and how targets follow the speed of the machine.

An absolute target is stated for a machine whose bare Python loop takes 25 ns a step. The same loop is timed in the
same run, and times are allowed to grow (rates to shrink) by the ratio.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

LOOP_STEP_NS = 25.0
ROUNDS = 5


@dataclass(frozen=True)
class Line:
    """One figure.

    Attributes:
        name: what was measured.
        unit: of value and target.
        target: after scaling by the baseline.
        value: median of the rounds.
        baseline: ns that a step of the bare loop took in this run.
        higher: whether more is better.
    """

    name: str
    unit: str
    target: float
    value: float
    baseline: float
    higher: bool

    @property
    def passed(self) -> bool:
        """Whether the target is met."""
        return self.value >= self.target if self.higher else self.value <= self.target


def loop_step() -> float:
    """Nanoseconds that a step of a bare loop takes on this machine now (best of five)."""
    steps = 200_000
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter_ns()
        for _ in range(steps):
            pass
        best = min(best, (time.perf_counter_ns() - start) / steps)
    return best


def duration(name: str, target: float, measure: Callable[[], float], rounds: int = ROUNDS, unit: str = "s") -> Line:
    """A time: `measure()` gives it in `unit`; the median counts."""
    baseline = loop_step()
    value = statistics.median(measure() for _ in range(rounds))
    return Line(name, unit, target * max(1.0, baseline / LOOP_STEP_NS), value, baseline, higher=False)


def rate(name: str, target: float, measure: Callable[[], float], rounds: int = ROUNDS) -> Line:
    """A rate: `measure()` gives it per second; the median counts."""
    baseline = loop_step()
    value = statistics.median(measure() for _ in range(rounds))
    return Line(name, "1/s", target / max(1.0, baseline / LOOP_STEP_NS), value, baseline, higher=True)


def amount(name: str, unit: str, target: float, value: float) -> Line:
    """A figure that does not depend on the machine's speed."""
    return Line(name, unit, target, value, LOOP_STEP_NS, higher=False)


def show(lines: list[Line]) -> int:
    """Print a table on standard error and JSON on standard output; 1 when a target is missed."""
    table = Table("", "target", "value", "loop step", "")
    for line in lines:
        relation = ">=" if line.higher else "<="
        verdict = "[green]pass[/]" if line.passed else "[red]FAIL[/]"
        table.add_row(
            line.name,
            f"{relation} {line.target:,.4g} {line.unit}",
            f"{line.value:,.4g} {line.unit}",
            f"{line.baseline:.0f} ns",
            verdict,
        )
    Console(stderr=True).print(table)
    json.dump([{**asdict(line), "pass": line.passed} for line in lines], sys.stdout, indent=1)
    print()
    return 0 if all(line.passed for line in lines) else 1
