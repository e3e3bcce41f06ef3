"""perftest in a guest: the card against the kernel's rdma_rxe in the same guest, one after the other."""

from __future__ import annotations

import math
import re
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.guest import SOFTHCA
from benchmarks.report import Line

ROUNDS = 3
TIMEOUT = 1500
"""Seconds that all of it may take in the guest."""
_SCRIPT = Path(__file__).with_name("perftest.sh")
_TAIL = 300
_RESULT = re.compile(r"@(\d+) (card|rxe0) (\S+) (\d+) +(.+)")
Key = tuple[str, str, int]
"""Device (`card` or `rxe0`), tool, bytes of a message."""


@dataclass(frozen=True)
class Case:
    """One comparison.

    Attributes:
        tool: the program.
        size: bytes of a message.
        counts: messages sent over the card and over rxe: about as long, whatever their speed.
        figure: `bandwidth` (MiB/s), `rate` (messages a second) or `latency` (us, the median of one way).
        target, goal: the card's figure as a multiple of rxe's.
    """

    tool: str
    size: int
    counts: tuple[int, int]
    figure: str
    target: float
    goal: float

    @property
    def name(self) -> str:
        """What the report calls it."""
        size = {8: "8 B", 64: "64 B", 65536: "64 KiB", 1 << 20: "1 MiB"}[self.size]
        return f"{self.tool} {size}: {self.figure}"


_LARGE = [Case(f"ib_{verb}_bw", 65536, (3000, 200), "bandwidth", 25, 50) for verb in ("write", "read")]
_HUGE = [Case(f"ib_{verb}_bw", 1 << 20, (400, 20), "bandwidth", 25, 50) for verb in ("write", "read")]
_SMALL = [Case(f"ib_{verb}_bw", 64, (40000, 20000), "rate", 2, 4) for verb in ("write", "send")]
_LATENCY = [Case(f"ib_{verb}_lat", 8, (5000, 5000), "latency", 1, 0.5) for verb in ("write", "send", "read")]
CASES = [*_LARGE, *_HUGE, *_SMALL, *_LATENCY]
_UNITS = {"bandwidth": "MiB/s", "rate": "messages/s", "latency": "us"}


def parse(output: str) -> dict[Key, list[list[float]]]:
    """The columns of perftest's tables, in order of the rounds; a measurement without figures is left out."""
    results: dict[Key, list[list[float]]] = {}
    for match in _RESULT.finditer(output):
        try:
            columns = [float(word) for word in match[5].split()]
        except ValueError:
            continue
        results.setdefault((match[2], match[3], int(match[4])), []).append(columns)
    return results


def _value(case: Case, columns: list[float]) -> float:
    """The figure, out of bytes, iterations and then peak, average, rate or minimum, maximum, median, ..."""
    if case.figure == "bandwidth":
        return columns[3]
    return columns[4] * 1e6 if case.figure == "rate" else columns[4]


def compare(case: Case, results: dict[Key, list[list[float]]]) -> Line:
    """The line of a case: the median of the card's rounds as a multiple of that of rxe's."""
    higher = case.figure != "latency"
    known = {}
    for device in ("card", "rxe0"):
        rounds = results.get((device, case.tool, case.size), [])
        values = [_value(case, columns) for columns in rounds if len(columns) > 4]
        known[device] = [value for value in values if math.isfinite(value) and value > 0]
    pairs = zip(known["card"], known["rxe0"], strict=False)
    ratios = [card / rxe for card, rxe in pairs]
    if not ratios:
        return Line(case.name, "x rxe", case.target, case.target, None, [], None, higher, "perftest gave no figure")
    card, rxe = statistics.median(known["card"]), statistics.median(known["rxe0"])
    ratio = card / rxe
    reached = ratio >= case.goal if higher else ratio <= case.goal
    note = (
        f"{card:,.4g} and {rxe:,.4g} {_UNITS[case.figure]}; goal {case.goal:g} x {'reached' if reached else 'missed'}"
    )
    if len(ratios) < ROUNDS:
        note += f"; {len(ratios)} of {ROUNDS} rounds"
    return Line(case.name, "x rxe", case.target, case.target, ratio, ratios, None, higher, note)


def _run(cases: list[Case], rounds: int) -> tuple[str, str]:
    """What the guest printed, and why there is not all of it (empty if there is)."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "cases"
        table.write_text("".join(f"{case.tool} {case.size} {case.counts[0]} {case.counts[1]}\n" for case in cases))
        command: list[str | Path] = [SOFTHCA, "guest", "--timeout", str(TIMEOUT), "--copy-in", _SCRIPT]
        command += ["--copy-in", table, "--", f"bash {_SCRIPT.name} {rounds}"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    why = f"softhca guest: status {done.returncode}: {done.stderr.strip()[-_TAIL:]}" if done.returncode else ""
    return done.stdout, why


def lines(cases: list[Case] | None = None, rounds: int = ROUNDS) -> list[Line]:
    """Measure all cases in one guest."""
    chosen = CASES if cases is None else cases
    output, why = _run(chosen, rounds)
    results = parse(output)
    compared = [compare(case, results) for case in chosen]
    if not why:
        return compared
    return [*compared, Line("the guest of perftest", "", None, None, None, [], None, note=why)]
