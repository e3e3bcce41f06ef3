"""Runs verbs_mixed.py in a guest: processes that move data in every way over many queue pairs at once, all checked.

While they run, the memory of the process that serves the card is measured; afterwards the driver is unloaded. Exit
status: 0 if all data was right, the kernel did not complain, nothing was left behind at the unload, and the serving
process did not grow once it had warmed up.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_TOOLS = Path(__file__).resolve().parent
_BEGIN, _RESULT = "@mixed begin", "@mixed result "
"""As verbs_mixed.py prints them."""
_PERIOD = 0.25
"""Seconds between two looks at the memory."""
_WARM = 10.0
"""Seconds after which the process must not grow."""
_JUST_AFTER = 2.0
"""Seconds that the first look takes in: garbage is collected now and then."""
_ALLOWED = 1 << 20
"""Bytes by which the allocator may differ from one time to another."""
_KIB = 1024


@dataclass(frozen=True)
class Sample:
    """Memory of the serving process.

    Attributes:
        seconds: since the traffic began.
        own: bytes that are its own (RssAnon); the guest's memory, which it maps, is not counted.
        shared: bytes of the guest's memory that it has touched (RssShmem).
    """

    seconds: float
    own: int
    shared: int


class Memory:
    """Looks at a process until it is told to end.

    Args:
        pid: of the process.
    """

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self._begin: float | None = None
        self._end = threading.Event()
        self.samples: list[Sample] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def begin(self) -> None:
        """The traffic begins."""
        self._begin = time.monotonic()

    def end(self) -> None:
        """The traffic has ended."""
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(_PERIOD):
            begin = self._begin
            try:
                fields = dict(line.split(":", 1) for line in self._status.read_text().splitlines())
            except (FileNotFoundError, ProcessLookupError):
                return
            if begin is None or "RssAnon" not in fields:
                continue
            own, shared = (int(fields[name].split()[0]) * _KIB for name in ("RssAnon", "RssShmem"))
            self.samples.append(Sample(round(time.monotonic() - begin, 2), own, shared))

    def growth(self, warm: float) -> int:
        """Bytes between the most just after warming up and the most of the last third of the time since."""
        late = [sample for sample in self.samples if sample.seconds >= warm]
        if not late:
            return 0
        first = max(sample.own for sample in late if sample.seconds <= late[0].seconds + _JUST_AFTER)
        return max(sample.own for sample in late[-(len(late) // 3 + 1) :]) - first


def run(options: argparse.Namespace, verdict: Path) -> tuple[list[dict[str, Any]], Memory]:
    """Run the guest; what its processes say, and the memory of the one that serves it."""
    inside = f"python3 verbs_mixed.py --seconds={options.seconds:g} --processes={options.processes}"
    command = [sys.executable, "-m", "softhca.cli.main", "guest", "--json", str(verdict)]
    command += [f"--profile={options.profile}", f"--timeout={options.seconds + 240}"]
    command += ["--copy-in", str(_TOOLS / "verbs_mixed.py")]
    command += ["--", f"{inside} && modprobe -r mlx5_ib mlx5_core"]
    results: list[dict[str, Any]] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        memory = Memory(process.pid)
        for line in process.stdout:
            if line.startswith(_BEGIN):
                memory.begin()
            elif line.startswith(_RESULT):
                if not results:
                    memory.end()
                results.append(json.loads(line.removeprefix(_RESULT)))
                print(_told(results[-1]), flush=True)
            else:
                print(line, end="", file=sys.stderr)
        memory.end()
    return results, memory


def _told(result: dict[str, Any]) -> str:
    if "failure" in result:
        return f"process {result['process']}: failed: {result['failure']}"
    figures = f"{result['operations']} operations, {result['bytes'] >> 20} MiB, all compared"
    return f"process {result['process']}: {result['queue_pairs']} queue pairs, {figures}"


def faults(processes: int, results: list[dict[str, Any]], verdict: dict[str, Any], growth: int) -> list[str]:
    """What was not as it should be."""
    found = []
    good = [result for result in results if "failure" not in result and min(result["by_connection"]) > 0]
    if len(good) != processes:
        found.append(f"{len(good)} of {processes} processes did well on all their connections")
    if verdict["verdict"] != "ok":
        found.append(f"the guest's verdict is {verdict['verdict']}")
    if [device["teardowns"] for device in verdict.get("devices", [])] != [[{"pages_outstanding": 0, "objects": 0}]]:
        found.append("the unload left something behind")
    if growth > _ALLOWED:
        found.append(f"the serving process grew by {growth >> 10} KiB after warming up")
    return found


def main() -> None:
    """Parse the command line, run, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of traffic")
    parser.add_argument("--processes", type=int, default=4, help="of 16 queue pairs each")
    parser.add_argument("--profile", default="connectx-6-ib")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "verdict.json"
        results, memory = run(options, path)
        verdict: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"verdict": "lab"}
    warm = min(_WARM, options.seconds / 2)
    growth = memory.growth(warm)
    wrong = faults(options.processes, results, verdict, growth)
    if memory.samples:
        last = memory.samples[-1]
        print(f"serving process: {last.own >> 20} MiB of its own, {growth >> 10} KiB more than after {warm:g} s")
    print("\n".join(f"FAILED: {text}" for text in wrong) or "ok")
    if options.json is not None:
        samples = [asdict(sample) for sample in memory.samples]
        answer = {"processes": results, "guest": verdict, "growth": growth, "memory": samples, "wrong": wrong}
        options.json.write_text(json.dumps(answer, indent=1) + "\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
