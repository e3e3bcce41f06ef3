"""Runs the usual RDMA programs between two guests on one fabric; prints a table.

Each program has its server in guest 1 and its client in guest 0; the port counters of both have to rise by the packets
that it sends. At the end both guests unload the driver, which has to give everything back.

Exit status: 0 if every row went well, both cards were left clean and no guest's kernel complained, else 1.
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
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_MARK = "@two "
_TABLE = "{name:<14} {options:<38} {result:<7} {forth:>9} {back:>9} {seconds:>8}"
_SERVER = "10.0.0.2"
_INTERFACE = "ib0"
_COUNTERS = Path("/sys/class/infiniband/mlx5_0/ports/1/counters")
_UNLOAD = "rdma_ucm rdma_cm ib_ipoib mlx5_ib mlx5_core"


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes:
        name: of the program.
        client: its words in guest 0, after the name; `{address}` and `{lid}` stand for guest 1's.
        server: its words in guest 1, after the name; None: no server is needed.
        ready: when the server is: `cm` (it listens at the RDMA CM), `tcp:PORT`, `prints:REGEX`, or the words of
            a client that succeeds then.
        forth: packets that guest 0 sends to guest 1 at least.
        back: packets that guest 1 sends to guest 0 at least.
        expect: regular expression that the client's output has to match.
        ends: whether the server ends by itself.
        limit: seconds.
    """

    name: str
    client: str
    server: str | None = ""
    ready: str = "cm"
    forth: int = 1
    back: int = 1
    expect: str = ""
    ends: bool = True
    limit: float = 60.0


def _perftest(name: str, options: str, forth: int, back: int, limit: float = 60.0) -> Row:
    ready = "tcp:18515"
    if " -R" in f" {options}":
        ready = "cm"
    return Row(
        name, f"-F {options} {{address}}", f"-F {options}", ready, forth, back, r"\n +\d+ +\d+ +[\d.]+", True, limit
    )


def short() -> list[Row]:
    """The rows that `make test` runs."""
    return [
        Row("ibping", "-f -c 100 {lid}", "-S", "-f -c 1 {lid}", 100, 100, r"\b0% packet loss", ends=False),
        Row("ping", "-c 20 -i 0.05 {address}", None, "", 20, 20, r" 0% packet loss"),
        Row("ping", "-6 -c 2 ff02::1%ib0", None, "", 2, 2, "2 received"),
        Row("rping", "-c -a {address} -v -C 100", "-s -v -C 100", "cm", 200, 300, "rdma-ping-99: "),
        Row("ucmatose", "-s {address}", forth=10, back=10, expect="return status 0"),
        Row("udaddy", "-s {address}", forth=10, back=10, expect="return status 0"),
        Row("rstream", "-s {address} -S 64 -C 1 -I 500", "-S 64 -C 1 -I 500", "cm", 500, 500, "custom"),
        Row("rstream", "-s {address} -T v -S 65536 -I 10 -C 4", "-T v -S 65536 -I 10 -C 4", "cm", 640, 640, "custom"),
        _perftest("ib_write_bw", "-n 1000", 16_000, 1000),
    ]


def full() -> list[Row]:
    """Every row."""
    return [
        *short(),
        Row("ibping", "-c 5 {lid}", "-S", "-f -c 1 {lid}", 5, 5, r"\b0% packet loss", ends=False),
        Row("ping", "-c 5 -i 0.2 -s 20000 {address}", None, "", 50, 50, r" 0% packet loss"),
        Row("perfquery", "{lid} 1", None, "", 1, 1, r"PortXmitPkts:\.+\d+"),
        Row(
            "ucmatose", "-s {address} -c 10 -C 100 -S 4096", "-c 10 -C 100 -S 4096", "cm", 1000, 1000, "return status 0"
        ),
        Row("udaddy", "-s {address} -c 4 -C 50 -S 2048", "-c 4 -C 50 -S 2048", "cm", 200, 200, "return status 0"),
        Row(
            "mckey",
            "-m 239.1.1.1 -s -b 10.0.0.1",
            "-m 239.1.1.1 -b {address}",
            "prints:joined",
            10,
            0,
            "return status 0",
        ),
        Row("rstream", "-s {address}", "", "cm", 100_000, 100_000, "1m_bw", limit=1200.0),
        Row("riostream", "-s {address} -S 4096 -I 50 -C 10", "-S 4096 -I 50 -C 10", "cm", 500, 500, "custom"),
        Row("rping", "-c -a {address} -C 20 -S 65535 -V", "-s -C 20 -S 65535 -V", "cm", 340, 340),
        _perftest("ib_write_bw", "", 80_000, 5000, 120),
        _perftest("ib_write_bw", "-R", 80_000, 5000, 120),
        _perftest("ib_read_bw", "-n 1000", 1000, 16_000),
        _perftest("ib_send_bw", "-n 1000", 16_000, 1000),
        _perftest("ib_send_lat", "-n 500", 500, 500),
        _perftest("ib_send_bw", "-c UD -n 1000 -s 2048", 1000, 1),
        Row("ibv_rc_pingpong", "-c {address}", "-c", "tcp:18515", 1000, 1000, "bytes in"),
    ]


# --- in a guest -------------------------------------------------------------------------------------------------------


def _until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for a condition; whether it came true."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _barrier(name: str, seconds: float) -> str:
    """Meet the other guest; what went wrong, empty if nothing."""
    command = ["softhca-barrier", "-t", f"{seconds:.0f}", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


def _packets() -> dict[str, int]:
    """The port's counters, as everybody reads them."""
    return {way: int((_COUNTERS / f"port_{way}_packets").read_text()) for way in ("xmit", "rcv")}


def _is_ready(row: Row, process: subprocess.Popen[bytes], log: Path) -> bool:
    """Whether a server is, as far as its own guest can tell."""
    kind, _, what = row.ready.partition(":")
    if kind == "tcp":
        wanted = f":{int(what):04X}"
        lines = [
            line.split() for path in ("tcp", "tcp6") for line in Path(f"/proc/net/{path}").read_text().splitlines()
        ]
        return any(words[1].endswith(wanted) and words[3] == "0A" for words in lines)
    if kind == "prints":
        return re.search(what, log.read_text(errors="replace")) is not None
    if kind == "cm":
        shown = subprocess.run(
            ["rdma", "resource", "show", "cm_id"], capture_output=True, text=True, check=False
        ).stdout
        return any(f"pid {process.pid} " in line and "state LISTEN" in line for line in shown.splitlines())
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _start(row: Row, words: str, log: Path) -> subprocess.Popen[bytes]:
    command = ["stdbuf", "-oL", row.name, *shlex.split(words.format(address=_SERVER, lid=2))]
    with log.open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)


def _run(row: Row, words: str, log: Path, seconds: float) -> int | None:
    """Run a program to its end; its exit status, None if it took too long."""
    process = _start(row, words, log)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _end(process)


def _serve(row: Row, number: int, log: Path) -> str:
    """Guest 1's part of a row; what went wrong, empty if nothing."""
    if row.server is None:
        return _barrier(f"{number}-ready", 30) or _barrier(f"{number}-end", row.limit + 30)
    process = _start(row, row.server, log)
    try:
        if not _until(lambda: _is_ready(row, process, log), 20):
            status = process.poll()
            _barrier(f"{number}-failed", 30)
            return f"the server does not listen (status {status})"
        wrong = _barrier(f"{number}-ready", 30) or _barrier(f"{number}-end", row.limit + 30)
        if wrong or not row.ends:
            return wrong
        try:
            status = process.wait(10)
        except subprocess.TimeoutExpired:
            return "the server does not end"
        return f"status {status} of the server" if status else ""
    finally:
        _end(process)


def _ask(row: Row, number: int, log: Path) -> str:
    """Guest 0's part of a row; what went wrong, empty if nothing."""
    wrong = _barrier(f"{number}-ready", 60)
    if wrong:
        return wrong
    if row.ready.startswith("-"):
        _until(lambda: _run(row, row.ready, log, 5) == 0, 20)
    status = _run(row, row.client, log, row.limit)
    wrong = _barrier(f"{number}-end", 30)
    if status != 0:
        return f"status {status} of the client" if status is not None else f"the client took more than {row.limit} s"
    if not re.search(row.expect, log.read_text(errors="replace")):
        return f"the client's output does not match {row.expect!r}"
    return wrong


def _set_up(guest: int) -> str:
    """Bring IPoIB up; what went wrong, empty if nothing."""
    address = f"10.0.0.{guest + 1}/24"
    for command in ("modprobe ib_ipoib", f"ip addr add {address} dev {_INTERFACE}", f"ip link set {_INTERFACE} up"):
        done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
        if done.returncode:
            return f"{command}: {done.stderr.strip()}"
    carrier = Path(f"/sys/class/net/{_INTERFACE}/carrier")
    if not _until(lambda: carrier.read_text().strip() == "1", 20):
        return f"{_INTERFACE} does not come up"
    return _barrier("up", 60)


def inside(rows: list[Row]) -> None:
    """In a guest: play its part in each row, and print a line of JSON for each; then unload the driver."""
    guest = int(os.environ["GUEST"])
    log = Path("/tmp/two_guests.log")
    failure = _set_up(guest)
    for number, row in enumerate(rows):
        begin, before = time.monotonic(), _packets()
        log.write_text("")
        wrong = failure or _barrier(f"{number}-begin", 60) or (_serve if guest else _ask)(row, number, log)
        rise = {way: count - before[way] for way, count in _packets().items()}
        tail = log.read_text(errors="replace").strip().splitlines()[-8:] if wrong else []
        answer = {"row": number, "wrong": wrong, "tail": tail, "seconds": round(time.monotonic() - begin, 1), **rise}
        print(_MARK + json.dumps(answer), flush=True)
    _barrier("last", 60)
    done = subprocess.run(["modprobe", "-r", *_UNLOAD.split()], check=False)
    sys.exit(done.returncode)


# --- outside ----------------------------------------------------------------------------------------------------------


@dataclass
class Result:
    """What became of a row: what each guest told, by number."""

    row: Row
    told: dict[int, dict[str, Any]]

    @property
    def wrong(self) -> list[str]:
        """What went wrong, in sentences."""
        found = []
        for guest in (0, 1):
            if guest not in self.told:
                found.append(f"guest {guest} ended before")
            elif self.told[guest]["wrong"]:
                found.append("\n    ".join([f"guest {guest}: {self.told[guest]['wrong']}", *self.told[guest]["tail"]]))
        if found:
            return found
        for sender, least in ((0, self.row.forth), (1, self.row.back)):
            for guest, way in ((sender, "xmit"), (1 - sender, "rcv")):
                rise = self.told[guest][way]
                if rise < least:
                    found.append(f"guest {guest}: port_{way}_packets rose by {rise}, {least} were sent at least")
        return found

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {"case": asdict(self.row), "ok": not self.wrong, "wrong": self.wrong, "guests": self.told}

    def show(self) -> None:
        """Print the table's row."""
        asked = self.told.get(0, {})
        print(
            _TABLE.format(
                name=self.row.name,
                options=self.row.client.format(address=_SERVER, lid=2)[:38],
                result="failed" if self.wrong else "ok",
                forth=asked.get("xmit", ""),
                back=asked.get("rcv", ""),
                seconds=asked.get("seconds", ""),
            ),
            flush=True,
        )


def outside(options: argparse.Namespace, rows: list[Row], verdict: Path) -> list[Result]:
    """Run rows between two guests and print each as it comes."""
    command = [sys.executable, "-m", "softhca.cli.main", "guest", "--guests=2", "--json", str(verdict)]
    command += [f"--profile={options.profile}", f"--timeout={options.timeout}", "--copy-in", str(Path(__file__))]
    words = ["--short"] if options.short else []
    words += [f"--only={options.only}"] if options.only else []
    command += ["--", "python3", Path(__file__).name, "--inside", *words]
    results = [Result(row, {}) for row in rows]
    line_of_guest = re.compile(rf"\[(\d+)\] {_MARK}(.*)")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            match = line_of_guest.match(line)
            if match is None:
                print(line, end="", file=sys.stderr)
                continue
            told = json.loads(match[2])
            result = results[told["row"]]
            result.told[int(match[1])] = told
            if len(result.told) == 2:
                result.show()
    for result in results:
        if len(result.told) < 2:
            result.show()
    return results


def unclean(verdict: dict[str, Any]) -> list[str]:
    """What the cards still held when the driver was gone."""
    found = []
    for number, device in enumerate(verdict.get("devices", [])):
        if device["pages_outstanding"] or device["teardowns"] != [{"pages_outstanding": 0, "objects": 0}]:
            kept = {key: device[key] for key in ("pages_outstanding", "objects", "teardowns")}
            found.append(f"the card of guest {number} is not clean: {kept}")
    return found


def main() -> None:
    """Parse the command line, run, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="the rows that make test runs")
    parser.add_argument("--only", metavar="REGEX", help="the rows whose name and options match")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--profile", default="connectx-6-ib")
    parser.add_argument("--timeout", type=float, default=1500.0, help="seconds for all rows together")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    rows = short() if options.short else full()
    if options.only:
        rows = [row for row in rows if re.search(options.only, f"{row.name} {row.client}")]
    if options.inside:
        inside(rows)
        return
    names = {"name": "program", "result": "result", "forth": "0 sends", "back": "0 gets"}
    print(_TABLE.format(options="options", seconds="seconds", **names), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "verdict.json"
        results = outside(options, rows, path)
        verdict: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"verdict": "lab"}
    bad = [result for result in results if result.wrong]
    for result in bad:
        print(f"\nFAILED {result.row.name} {result.row.client}")
        print("\n".join(f"  {sentence}" for sentence in result.wrong))
    left = unclean(verdict)
    print("".join(f"\n{sentence}" for sentence in left))
    print(f"{len(results) - len(bad)} ok, {len(bad)} failed; the guests' verdict: {verdict['verdict']}")
    if options.json is not None:
        answer = {"cases": [result.as_json() for result in results], "unclean": left, "guests": verdict}
        options.json.write_text(json.dumps(answer, indent=1) + "\n")
    sys.exit(0 if not bad and not left and verdict["verdict"] == "ok" else 1)


if __name__ == "__main__":
    main()
