"""Runs in a guest: rdma-core's own pyverbs suite, module by module, each in a process of its own.

A test that crashes, hangs or takes its process down counts as failed; the rest of its module goes on in a new process.
Each module's result is one line of JSON on standard output, as soon as it is there; see :class:`Module`.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import importlib
import json
import os
import signal
import subprocess
import sys
import time
import unittest
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SUITE = Path("/usr/share/doc/rdma-core/tests")
_MARK = "@suite "
_HUGE_PAGES = 16
"""Pages of 2 MiB that some tests need."""
_ORDER = {"ok": 0, "skipped": 1, "failed": 2}


@dataclass
class Module:
    """What became of a module's tests.

    Attributes:
        module: its name.
        ok: tests that passed.
        skipped: tests that the suite skipped.
        failed: tests that failed, crashed or hung.
        reasons: why, by the name of each test that is skipped or failed.
        details: traceback or last output, by the name of each test that failed.
        seconds: that it took.
        kernel: what the guest's kernel said meanwhile.
    """

    module: str
    ok: int = 0
    skipped: int = 0
    failed: int = 0
    reasons: dict[str, str] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    kernel: list[str] = field(default_factory=list)

    def count(self, test: str, outcome: str, reason: str, detail: str) -> None:
        """Enter one test."""
        setattr(self, outcome, getattr(self, outcome) + 1)
        if outcome != "ok":
            self.reasons[test] = reason
        if outcome == "failed":
            self.details[test] = detail


class Recorder(unittest.TestResult):
    """Writes down each test as it starts and ends, so that nothing is lost when the process ends early.

    Args:
        path: file that takes a line of JSON for each event.
        limit: seconds that one test may take; a process that exceeds them shows where it stood and ends.
    """

    def __init__(self, path: Path, limit: float) -> None:
        super().__init__()
        self._file = path.open("a")
        self._limit = limit
        self._worst: tuple[str, str, str] = ("ok", "", "")

    def _write(self, **event: Any) -> None:
        self._file.write(json.dumps(event) + "\n")
        self._file.flush()

    def _note(self, test: unittest.TestCase, outcome: str, reason: str = "", detail: str = "") -> None:
        if not isinstance(test, unittest.TestCase) or getattr(test, "_outcome", None) is None:
            self._write(end=test.id(), outcome=outcome, reason=reason, detail=detail)  # a class or module as a whole
        elif _ORDER[outcome] >= _ORDER[self._worst[0]]:
            self._worst = outcome, reason, detail

    def _note_error(self, test: unittest.TestCase, error: Any) -> None:
        text = self._exc_info_to_string(error, test)  # type: ignore[attr-defined]
        self._note(test, "failed", f"{error[0].__name__}: {error[1]}".splitlines()[0], text)

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        """A test begins."""
        super().startTest(test)
        self._worst = "ok", "", ""
        self._write(start=test.id())
        print(f"--- {test.id()}", file=sys.stderr, flush=True)
        faulthandler.dump_traceback_later(self._limit, exit=True)

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        """A test has ended."""
        faulthandler.cancel_dump_traceback_later()
        super().stopTest(test)
        outcome, reason, detail = self._worst
        self._write(end=test.id(), outcome=outcome, reason=reason, detail=detail)

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """A test raised something unexpected."""
        self._note_error(test, err)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """A test's assertion did not hold."""
        self._note_error(test, err)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """A part of a test ended; `err` is None if it went well."""
        if err is not None:
            self._note_error(test, err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        """A test does not apply."""
        self._note(test, "skipped", reason)

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        """A test passed that the suite expects to fail."""
        self._note(test, "failed", "unexpected success", "")


def _cases(suite: unittest.TestSuite | unittest.TestCase) -> list[unittest.TestCase]:
    if isinstance(suite, unittest.TestCase):
        return [suite]
    return [case for part in suite for case in _cases(part)]


def _run_child(name: str, done: set[str], journal: Path, log: Path, limit: float) -> None:
    """In a process of its own: run the tests of a module that are not in `done`."""
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    faulthandler.enable()
    recorder = Recorder(journal, limit)
    faulthandler.dump_traceback_later(limit, exit=True)
    loaded = unittest.defaultTestLoader.loadTestsFromName(f"tests.{name}")
    left = [case for case in _cases(loaded) if case.id() not in done]
    unittest.TestSuite(left).run(recorder)
    sys.stdout.flush()
    os._exit(0)


def _wait(child: int, end: float) -> str | None:
    """How a process ended, None if its time was over (it is then ended, and all that it started)."""
    status: int | None = None
    while time.monotonic() < end and status is None:
        ended, raw = os.waitpid(child, os.WNOHANG)
        status = raw if ended else None
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if status is None:
        patience = time.monotonic() + 10
        while time.monotonic() < patience and not os.waitpid(child, os.WNOHANG)[0]:
            time.sleep(0.05)
        return None
    code = os.waitstatus_to_exitcode(status)
    return signal.Signals(-code).name if code < 0 else f"exit {code}"


def _read_journal(journal: Path, module: Module, done: set[str]) -> str | None:
    """Enter what ended; the test that started and did not end, if there is one."""
    running: str | None = None
    for line in journal.read_text().splitlines() if journal.exists() else []:
        event = json.loads(line)
        if "start" in event:
            running = event["start"]
        else:
            module.count(event["end"], event["outcome"], event["reason"], event["detail"])
            done.add(event["end"])
            running = None
    journal.unlink(missing_ok=True)
    return running


def run_module(name: str, work: Path, limit: float, module_limit: float) -> Module:
    """Run one module of the suite.

    Args:
        name: as `test_qp`.
        work: folder for files.
        limit: seconds that one test may take.
        module_limit: seconds that the module may take; its tests that are left then are lost.
    """
    module, done = Module(name), set[str]()
    journal, log = work / f"{name}.journal", work / f"{name}.log"
    begin = time.monotonic()
    while True:
        child = os.fork()
        if child == 0:
            try:
                _run_child(name, done, journal, log, limit)
            finally:
                os._exit(1)
        how = _wait(child, begin + module_limit)
        culprit = _read_journal(journal, module, done)
        module.seconds = round(time.monotonic() - begin, 1)
        if how == "exit 0" and culprit is None:
            return module
        tail = log.read_text(errors="replace")[-4000:] if log.exists() else ""
        reason = f"the module took longer than {module_limit:.0f} s" if how is None else f"crash or hang: {how}"
        module.count(culprit or f"tests.{name}", "failed", reason, tail)
        if how is None or culprit is None:
            return module
        done.add(culprit)


class KernelMessages:
    """What the kernel says, from now on."""

    def __init__(self) -> None:
        self._fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self._fd, 0, os.SEEK_END)

    def take(self) -> list[str]:
        """Its messages since the last time."""
        lines: list[str] = []
        while True:
            try:
                record = os.read(self._fd, 8192)
            except BlockingIOError:
                return lines
            except BrokenPipeError:
                continue  # some were overwritten
            lines.append(record.decode(errors="replace").partition(";")[2].splitlines()[0])


def raise_ipoib() -> None:
    """Give each InfiniBand port a network interface with an address: what the tests of the RDMA CM go by."""
    subprocess.run(["modprobe", "ib_ipoib"], check=True)
    for number, link in enumerate(sorted(Path("/sys/class/infiniband").glob("*/device/net/*")), start=1):
        subprocess.run(["ip", "address", "add", f"192.0.2.{number}/24", "dev", link.name], check=True)
        subprocess.run(["ip", "link", "set", link.name, "up"], check=True)


def main() -> None:
    """Run the modules named, by default all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("modules", nargs="*")
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--module-limit", type=float, default=300.0)
    options = parser.parse_args()
    sys.argv[1:] = []
    os.chdir(SUITE.parent)
    sys.path[:0] = [str(SUITE), str(SUITE.parent)]
    for name in ("args_parser", "tests.base", "tests.utils"):  # once, before the processes split off
        importlib.import_module(name)
    sys.modules["args_parser"].parser.parse_args()
    Path("/proc/sys/vm/nr_hugepages").write_text(f"{_HUGE_PAGES}\n")
    raise_ipoib()
    work = Path("/tmp/suite")
    work.mkdir(exist_ok=True)
    kernel = KernelMessages()
    for name in options.modules or sorted(path.stem for path in SUITE.glob("test_*.py")):
        print(_MARK + json.dumps({"begin": name}), flush=True)
        module = run_module(name, work, options.limit, options.module_limit)
        module.kernel = kernel.take()
        print(_MARK + json.dumps(asdict(module)), flush=True)


if __name__ == "__main__":
    main()
