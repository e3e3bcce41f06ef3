"""Runs the usual RDMA tools in a guest with the card: tool x transport x options; prints a table.

perftest's bandwidth and latency tools, the pingpong examples (with payload check where they have it), the InfiniBand
diagnostics, `rdma` and our own payload check. Exit status: 0 if every row is ok and the guest's kernel did not
complain.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_MARK = "@smoke "
_ROW = "{tool:<18} {transport:<9} {options:<28} {result:<7} {figure:<24} {seconds:>7}"
_UD_SIZES = (2, 64, 4096)
_ALL_SIZES = "-a"


@dataclass(frozen=True)
class Case:
    """One row.

    Attributes:
        tool: program; of a pair of programs, both.
        transport: RC, UC, UD, or empty.
        options: as on the command line, of both of a pair.
        pair: whether a server runs first and a client connects to it.
        flags: more options that the row does not show.
        expect: regular expression that the output has to match; its first group, if there is one, is the figure.
        ends: whether it ends by itself; else it is ended when its output matches.
        limit: seconds.
    """

    tool: str
    transport: str = ""
    options: str = ""
    pair: bool = True
    flags: str = ""
    expect: str = ""
    ends: bool = True
    limit: float = 60.0


@dataclass
class Result:
    """What became of a row.

    Attributes:
        ok: whether all went well.
        figure: what the tool measured, empty if nothing.
        reason: the output's end, if it did not go well.
        seconds: that it took.
    """

    ok: bool
    figure: str = ""
    reason: str = ""
    seconds: float = 0.0
    case: dict[str, Any] = field(default_factory=dict)


def _perftest(verb: str, measure: str, transport: str, options: str, limit: float = 60.0) -> Case:
    flags = "-F" + (f" -c {transport}" if verb != "atomic" and transport != "RC" else "")
    expect = r"\n +\d+ +\d+ +[\d.]+ +([\d.]+)" if measure == "bw" else r"\n +\d+ +\d+ +[\d.]+ +[\d.]+ +([\d.]+)"
    return Case(f"ib_{verb}_{measure}", transport, options, flags=flags, expect=expect, limit=limit)


def _perftests() -> Iterator[Case]:
    transports = {"write": ("RC", "UC"), "read": ("RC",), "send": ("RC", "UC", "UD"), "atomic": ("RC",)}
    for verb, kinds in transports.items():
        for transport in kinds:
            for measure in ("bw", "lat"):
                yield from _perftest_rows(verb, measure, transport)


def _perftest_rows(verb: str, measure: str, transport: str) -> Iterator[Case]:
    def row(options: str, limit: float = 60.0) -> Case:
        return _perftest(verb, measure, transport, options, limit)

    if verb == "atomic":
        yield from (row(f"-n 1000 -A {kind}") for kind in ("CMP_AND_SWAP", "FETCH_AND_ADD"))
    elif transport == "UD":
        yield from (row(f"-n 1000 -s {size}") for size in _UD_SIZES)
    else:
        yield row(f"-n 100 {_ALL_SIZES}", 240.0)
        yield row("-n 1000 -s 2")
        yield row("-n 1000 -s 65536")
    size = "" if verb == "atomic" else "-s 1024 "
    if verb != "write":  # perftest has no events for WRITE
        yield row(f"-n 500 {size}-e")
    if measure == "bw":
        yield row(f"-n 500 {size}-q 16")
        yield row(f"-n 512 {size}-l 16")
    if verb in ("write", "send"):
        yield row("-n 500 -s 64 -I 128")


def _others() -> Iterator[Case]:
    for name, check in (("rc", "-c"), ("uc", "-c"), ("ud", "-c"), ("srq", "-c"), ("xsrq", "")):
        for options in (check, f"{check} -e".strip()):
            expect = r"(\d+) bytes in" if name != "xsrq" else ""
            yield Case(f"ibv_{name}_pingpong", name.upper(), options, expect=expect)
    yield Case("ibv_rc_pingpong", "RC", "-c -s 8388608 -n 20", expect="bytes in")
    yield from _diagnostics()
    yield Case("python3", "all", "guest_payload.py", pair=False, limit=600.0)


def _diagnostics() -> Iterator[Case]:
    singles = (
        ("ibstat", "", r"State: (Active)"),
        ("ibstatus", "", r"state:\s+4: (ACTIVE)"),
        ("ibv_devinfo", "-v", r"state:\s+(PORT_ACTIVE)"),
        ("smpquery", "-D nodeinfo 0", r"NodeType:\.+(.*)"),
        ("smpquery", "-D portinfo 0 1", r"LinkState:\.+(.*)"),
        ("perfquery", "", r"PortXmitData:\.+(\d+)"),
        ("rdma", "link show", r"state (ACTIVE)"),
        ("rdma", "resource show", r"qp (\d+)"),
        ("rdma", "statistic show", r"(link \S+)"),
    )
    for tool, options, expect in singles:
        yield Case(tool, "", options, pair=False, expect=expect)
    yield Case("ibv_asyncwatch", "", "", pair=False, expect="(async event FD)", ends=False)


def full() -> list[Case]:
    """Every row."""
    return [*_perftests(), *_others()]


def short() -> list[Case]:
    """The rows that `make test` runs."""
    bandwidths = [("write", "RC"), ("read", "RC"), ("send", "RC")]
    rows = [_perftest(verb, "bw", kind, "-n 200 -s 65536") for verb, kind in bandwidths]
    rows += [_perftest(verb, "lat", kind, "-n 200 -s 8") for verb, kind in bandwidths]
    rows += [_perftest("write", "bw", "RC", "-n 200 -s 64 -q 16"), _perftest("send", "bw", "RC", "-n 192 -s 64 -l 16")]
    rows += [_perftest("write", "bw", "RC", "-n 20 -s 8388608"), _perftest("send", "bw", "RC", "-n 200 -s 1024 -e")]
    rows += [_perftest("send", "lat", "RC", "-n 200 -s 64 -I 128"), _perftest("write", "bw", "UC", "-n 200 -s 4096")]
    kinds = ("rc", "uc", "ud", "srq")
    rows += [Case(f"ibv_{name}_pingpong", name.upper(), "-c -n 200", expect="bytes in") for name in kinds]
    rows.append(_perftest("send", "bw", "UD", "-n 200 -s 1024"))
    rows.append(_perftest("atomic", "bw", "RC", "-n 200 -A FETCH_AND_ADD"))
    rows.append(_perftest("atomic", "lat", "RC", "-n 200 -A CMP_AND_SWAP"))
    rows += [row for row in _diagnostics() if row.tool != "rdma" or row.options == "resource show"]
    return [*rows, Case("python3", "all", "guest_payload.py --short", pair=False, limit=180.0)]


# --- in the guest -----------------------------------------------------------------------------------------------------


def _listens(port: int) -> bool:
    """Whether a process listens at a TCP port."""
    wanted = f":{port:04X}"
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(path).read_text().splitlines()[1:]:
            words = line.split()
            if words[1].endswith(wanted) and words[3] == "0A":
                return True
    return False


def _start(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _wait(process: subprocess.Popen[bytes], end: float) -> int | None:
    try:
        return process.wait(max(0.1, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None


def _run_pair(case: Case, port: int, logs: list[Path], end: float) -> str:
    """Run server and client; what went wrong, empty if nothing."""
    command = [case.tool, "-p", str(port), *shlex.split(case.flags), *shlex.split(case.options)]
    server = _start(command, logs[0])
    try:
        while not _listens(port):
            if server.poll() is not None or time.monotonic() > end:
                return f"the server does not listen (status {server.poll()})"
            time.sleep(0.02)
        client = _start([*command, "127.0.0.1"], logs[1])
        try:
            statuses = _wait(client, end), _wait(server, end)
        finally:
            _end(client)
    finally:
        _end(server)
    return "" if statuses == (0, 0) else f"status {statuses[0]} of the client, {statuses[1]} of the server"


def _run_single(case: Case, logs: list[Path], end: float) -> str:
    process = _start([case.tool, *shlex.split(case.options)], logs[0])
    try:
        if case.ends:
            status = _wait(process, end)
            return "" if status == 0 else f"status {status}"
        while time.monotonic() < end and process.poll() is None:
            if re.search(case.expect, logs[0].read_text(errors="replace")):
                return ""
            time.sleep(0.05)
        return f"it ended with {process.poll()}"
    finally:
        _end(process)


def run_case(case: Case, port: int) -> Result:
    """Run one row."""
    logs = [Path("/tmp/smoke.server"), Path("/tmp/smoke.client")]
    for log in logs:
        log.write_text("")
    begin = time.monotonic()
    end = begin + case.limit
    wrong = _run_pair(case, port, logs, end) if case.pair else _run_single(case, logs, end)
    seconds = round(time.monotonic() - begin, 1)
    outputs = [log.read_text(errors="replace") for log in logs]
    found = re.search(case.expect, outputs[1 if case.pair else 0])
    if not wrong and found is None:
        wrong = f"the output does not match {case.expect!r}"
    if wrong:
        tails = "\n".join(part for output in outputs for part in output.strip().splitlines()[-8:])
        return Result(False, "", f"{wrong}\n{tails}", seconds, asdict(case))
    figure = found[1].strip() if found is not None and found.re.groups else ""
    unit = {"bw": " MiB/s", "lat": " us"}.get(case.tool.rpartition("_")[2], "")
    return Result(True, figure + unit, "", seconds, asdict(case))


def inside(cases: list[Case]) -> None:
    """In the guest: run rows and print a line of JSON for each."""
    for number, case in enumerate(cases):
        print(_MARK + json.dumps(asdict(run_case(case, 20000 + number))), flush=True)


# --- outside ----------------------------------------------------------------------------------------------------------


def outside(options: argparse.Namespace, cases: list[Case], verdict: Path) -> list[dict[str, Any]]:
    """Run rows in a guest, print each as it comes, return their results; a row that the guest did not reach failed."""
    here = Path(__file__).parent
    command = [sys.executable, "-m", "softhca.cli.main", "guest", "--json", str(verdict)]
    command += [f"--profile={options.profile}", f"--timeout={options.timeout}"]
    for name in ("guest_smoke.py", "guest_payload.py"):
        command += ["--copy-in", str(here / name)]
    words = ["--short"] if options.short else []
    words += [f"--only={options.only}"] if options.only else []
    command += ["--", "python3", "guest_smoke.py", "--inside", *words]
    results: list[dict[str, Any]] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if not line.startswith(_MARK):
                print(line, end="", file=sys.stderr)
                continue
            results.append(json.loads(line.removeprefix(_MARK)))
            _print_row(results[-1])
    for case in cases[len(results) :]:
        results.append(asdict(Result(False, "", "the guest ended before", 0.0, asdict(case))))
        _print_row(results[-1])
    return results


def _print_row(result: dict[str, Any]) -> None:
    case = result["case"]
    shown = {key: case[key] for key in ("tool", "transport", "options")}
    word = "ok" if result["ok"] else "failed"
    print(_ROW.format(**shown, result=word, figure=result["figure"], seconds=result["seconds"]), flush=True)


def main() -> None:
    """Parse the command line, run, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="the rows that make test runs")
    parser.add_argument("--only", metavar="REGEX", help="the rows whose tool, transport and options match")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--profile", default="connectx-6-ib")
    parser.add_argument("--timeout", type=float, default=1500.0, help="seconds for all rows together")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    cases = short() if options.short else full()
    if options.only:
        cases = [c for c in cases if re.search(options.only, f"{c.tool} {c.transport} {c.options}")]
    if options.inside:
        inside(cases)
        return
    names = {name: name for name in ("tool", "transport", "options", "result", "figure", "seconds")}
    print(_ROW.format(**names), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "verdict.json"
        results = outside(options, cases, path)
        verdict: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"verdict": "lab"}
    bad = [result for result in results if not result["ok"]]
    for result in bad:
        print(f"\nFAILED {result['case']['tool']} {result['case']['transport']} {result['case']['options']}")
        print("\n".join(f"    {line}" for line in result["reason"].splitlines()))
    print(f"\n{len(results) - len(bad)} ok, {len(bad)} failed; the guest's verdict: {verdict['verdict']}")
    if options.json is not None:
        options.json.write_text(json.dumps({"cases": results, "guest": verdict}, indent=1) + "\n")
    sys.exit(0 if not bad and verdict["verdict"] == "ok" else 1)


if __name__ == "__main__":
    main()
