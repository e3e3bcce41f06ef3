"""Leads the unmodified Linux driver through what a card rarely does, in a guest: faults of commands, resets, removal.

The first occurrence of each command of the driver's probe fails, some are lost or late; the driver has to give up
cleanly (or go on), the card to hold nothing afterwards, and the next probe to work. Then what needs no fault: unbind,
reload, FLR, removal under traffic. Complaints of the kernel that are the driver's own bugs stand in
docs/driver_bugs.toml. Exit status: 0 if every row is ok, else 1.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import tomllib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from matrix_bench import Bench, Wrong
from matrix_scenarios import Scenario, record, status_faults, timing_faults, whole_life
from softhca.guest import complaints
from softhca.guest.agent import KernelLine
from softhca.guest.complaints import Complaint
from softhca.guest.errors import LabError
from softhca.prm.status import CommandStatus

_BUGS = Path(__file__).resolve().parent.parent / "docs/driver_bugs.toml"
_ROW = "{group:<8} {name:<48} {result:<7} {seconds:>7}  {outcome}"


@dataclass(frozen=True)
class Bug:
    """A complaint that is the driver's own fault.

    Attributes:
        line: of the kernel; `*` stands for what differs from run to run.
        source: where it is in the kernel.
        why: what is wrong there.
        scenarios: regular expression for the titles of those that may bring it.
    """

    line: str
    source: str
    why: str
    scenarios: str

    def explains(self, text: str, title: str) -> bool:
        """Whether a line of the kernel's log, in a scenario, is this."""
        pattern = re.escape(self.line).replace(r"\*", r"\S+")
        return re.fullmatch(pattern, text) is not None and re.search(self.scenarios, title) is not None


def read_bugs(path: Path = _BUGS) -> list[Bug]:
    """The committed list."""
    return [Bug(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("bug", [])]


@dataclass
class Result:
    """What became of a scenario.

    Attributes:
        group, name: of the scenario.
        outcome: what the driver did.
        wrong: what is not as it should be; empty if nothing.
        complaints: of the kernel, that nothing explains.
        bugs: sources of the driver's bugs that came.
        seconds: that it took.
        log: the kernel's last lines, if something was wrong.
    """

    group: str
    name: str
    outcome: str = ""
    wrong: str = ""
    complaints: list[str] = field(default_factory=list)
    bugs: list[str] = field(default_factory=list)
    seconds: float = 0.0
    log: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether all was as it should be."""
        return not self.wrong and not self.complaints


def sort_out(lines: list[KernelLine], scenario: Scenario, bugs: list[Bug]) -> tuple[list[Complaint], list[str]]:
    """The complaints among a scenario's lines that nothing explains, and the sources of the bugs that came."""
    left, found = [], []
    for line in lines:
        explained = [bug.source for bug in bugs if bug.explains(line.text, scenario.title)]
        if explained:
            found += explained
            continue
        if complaints.classify(line) == "fatal":
            left += complaints.find([line], [])
        else:
            left += complaints.find([line], list(scenario.noise))
    return left, list(dict.fromkeys(found))


class Matrix:
    """A run of scenarios, in one guest as long as nothing goes wrong in it.

    Args:
        options: of the command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._console = Console(width=160, soft_wrap=True, highlight=False)
        self._bench: Bench | None = None
        self.bugs = read_bugs()
        self.results: list[Result] = []

    def run(self) -> None:
        """Carry out what the command line asks for, and print each row as it comes."""
        titles = {"group": "group", "name": "scenario", "result": "result", "seconds": "seconds"}
        self._console.print(_ROW.format(**titles, outcome="what the driver does"), style="bold")
        try:
            commands = record(self._ready())
            faults = status_faults(commands, CommandStatus[self._options.status])
            for scenario in [*faults, *timing_faults(), *whole_life()]:
                if self._wanted(scenario):
                    self._carry_out(scenario)
        except (LabError, Wrong) as error:
            self._add(Result("matrix", "a first probe without faults", wrong=str(error)))
        finally:
            self._drop()

    def _wanted(self, scenario: Scenario) -> bool:
        options = self._options
        return (scenario.short or not options.short) and re.search(options.only or "", scenario.title) is not None

    def _ready(self) -> Bench:
        """The guest; a new one if the last one was dropped."""
        if self._bench is None:
            self._bench = Bench(self._options.profile).__enter__()
        return self._bench

    def _drop(self) -> None:
        if self._bench is not None:
            self._bench.__exit__(None, None, None)
            self._bench = None

    def _carry_out(self, scenario: Scenario) -> None:
        result = Result(scenario.group, scenario.name)
        begin = time.monotonic()
        bench = self._ready()
        bench.begin()
        try:
            result.outcome = scenario.carry_out(bench)
        except (LabError, Wrong) as error:
            result.wrong = str(error)
        left, result.bugs = sort_out(bench.lines, scenario, self.bugs)
        result.complaints = [complaint.line for complaint in left]
        if not result.ok:
            result.log = [str(line) for line in bench.lines[-40:]]
            if self._options.keep is not None:
                bench.session.keep_logs(self._options.keep)
            self._drop()
        result.seconds = round(time.monotonic() - begin, 1)
        self._add(result)

    def _add(self, result: Result) -> None:
        self.results.append(result)
        bugs = f" (driver's bug: {', '.join(result.bugs)})" if result.bugs else ""
        told = {"group": result.group, "name": result.name, "seconds": f"{result.seconds:.1f}"}
        outcome = (result.wrong or "; ".join(result.complaints) or result.outcome) + bugs
        row = _ROW.format(**told, result="ok" if result.ok else "failed", outcome=outcome)
        self._console.print(escape(row), style=None if result.ok else "red")

    def unused(self) -> list[str]:
        """Entries of docs/driver_bugs.toml that a whole run has not brought."""
        if self._options.short or self._options.only:
            return []
        seen = {source for result in self.results for source in result.bugs}
        return [f"docs/driver_bugs.toml: {bug.source}: did not come" for bug in self.bugs if bug.source not in seen]

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        rows = [{**asdict(result), "ok": result.ok} for result in self.results]
        return {"scenarios": rows, "unused": self.unused()}


def main() -> None:
    """Parse the command line, run, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="the rows that make test runs")
    parser.add_argument("--only", metavar="REGEX", help="the rows whose group and name match")
    parser.add_argument(
        "--status", default="INTERNAL_ERR", choices=[s.name for s in CommandStatus if s], metavar="NAME"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="copy the guest's logs there when a row fails")
    parser.add_argument("--profile", default="connectx-6-ib")
    options = parser.parse_args()
    begin = time.monotonic()
    matrix = Matrix(options)
    matrix.run()
    bad = [result for result in matrix.results if not result.ok]
    for result in bad:
        print(f"\nFAILED {result.group}: {result.name}\n  {result.wrong}")
        print("\n".join(f"    {line}" for line in result.log))
    unused = matrix.unused()
    print("".join(f"\nFAILED {text}" for text in unused))
    print(f"{len(matrix.results) - len(bad)} ok, {len(bad)} failed, {time.monotonic() - begin:.0f} s")
    if options.json is not None:
        options.json.write_text(json.dumps(matrix.as_json(), indent=1) + "\n")
    sys.exit(1 if bad or unused or not matrix.results else 0)


if __name__ == "__main__":
    main()
