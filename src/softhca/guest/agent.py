"""Talks to the agent in the guest: runs commands, moves files, reads the kernel's messages."""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from softhca.guest.channel import Channel
from softhca.guest.errors import LabError
from softhca.guest.machine import Machine

Sink = Callable[[bytes], None]


@dataclass(frozen=True)
class KernelLine:
    """A message of the guest's kernel.

    Attributes:
        level: 0 (emergency) to 7 (debug), None where it is not known (read from the console).
        facility: 0 for the kernel itself, other values for programs that write into its log.
        seconds: since the kernel started.
        text: without time stamp.
    """

    level: int | None
    seconds: float
    text: str
    facility: int = 0

    def __str__(self) -> str:
        """As dmesg prints it."""
        return f"[{self.seconds:12.6f}] {self.text}"


def _word(text: str) -> str:
    return base64.b64encode(text.encode()).decode() or "="


class KernelLog:
    """Puts the kernel's messages together from what the guest reads from /dev/kmsg."""

    def __init__(self) -> None:
        self.lines: list[KernelLine] = []
        self.marks: set[str] = set()
        """Marks that were written into the log and have been seen."""
        self._last = -1

    def feed(self, line: str) -> None:
        """Take one line of /dev/kmsg (Documentation/ABI/testing/dev-kmsg); repeated records are dropped."""
        match = re.match(r"(\d+),(\d+),(\d+),[^;]*;(.*)", line)
        if match is None:
            return  # a continuation line: the record's dictionary
        sequence = int(match[2])
        if sequence <= self._last:
            return
        self._last = sequence
        mark = re.match(r"softhca: mark (\w+)$", match[4])
        if mark:
            self.marks.add(mark[1])
        else:
            self.lines.append(KernelLine(int(match[1]) & 7, int(match[3]) / 1e6, match[4], int(match[1]) >> 3))


class Stream:
    """What a command prints on one port, up to the end mark of its run."""

    def __init__(self, channel: Channel, sink: Sink, token: str) -> None:
        self._channel = channel
        self._sink = sink
        self._mark = f"\0end {token}\0".encode()
        self.ended = False

    def poll(self) -> None:
        """Pass on what came, except what may be the beginning of the mark."""
        data = self._channel.received
        at = data.find(self._mark)
        if at >= 0:
            self._pass(at)
            del data[: len(self._mark)]
            self.ended = True
            return
        # the mark has zero bytes at its ends alone: only the last zero byte can begin one
        zero = data.rfind(b"\0", max(0, len(data) - len(self._mark) + 1))
        begins = zero >= 0 and self._mark.startswith(data[zero:])
        self._pass(zero if begins else len(data))

    def _pass(self, count: int) -> None:
        if count:
            self._sink(bytes(self._channel.received[:count]))
            del self._channel.received[:count]


class Job:
    """A script that runs in a guest.

    Args:
        machine: the guest.
        log: takes the kernel's messages meanwhile.
        token: marks the end of the streams and of the kernel's messages.
        output: takes what the script prints on standard output, as it comes.
        error: takes what it prints on standard error.

    Attributes:
        status: its exit status, None as long as the guest has not told it.
    """

    def __init__(self, machine: Machine, log: KernelLog, token: str, output: Sink, error: Sink) -> None:
        self.status: int | None = None
        self._machine = machine
        self._log = log
        self._token = token
        self._streams = [
            Stream(machine.channels["output"], output, token),
            Stream(machine.channels["error"], error, token),
        ]

    def poll(self) -> bool:
        """Pass on what came; whether all has come: status, output and the kernel's messages up to the script's end."""
        self.drain()
        if self.status is None:
            line = self._machine.channels["control"].take_line()
            if line is not None:
                self.status = int(line.split()[1])
        return self.status is not None and all(s.ended for s in self._streams) and self._token in self._log.marks

    def drain(self) -> None:
        """Pass on what came of output and the kernel's messages."""
        _take_log(self._machine, self._log)
        for stream in self._streams:
            if not stream.ended:
                stream.poll()


def _take_log(machine: Machine, log: KernelLog) -> None:
    channel = machine.channels["kernel"]
    while (line := channel.take_line()) is not None:
        log.feed(line)


class Agent:
    """The agent of one machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.log = KernelLog()

    def wait_ready(self, timeout: float) -> str:
        """Wait until the agent has started; the guest's kernel release.

        Raises:
            LabError: it does not come up within `timeout` seconds.
        """
        return self._answer("ready", timeout, "the guest to boot")[0]

    def begin(self, script: str, output: Sink, error: Sink) -> Job:
        """Let a bash script start in the working folder; whoever holds the job polls it.

        Args:
            script: what `bash -c` runs; its standard input is empty.
            output: takes what it prints on standard output, as it comes.
            error: takes what it prints on standard error.
        """
        token = secrets.token_hex(16)
        self._send("run", _word(script), token)
        return Job(self._machine, self.log, token, output, error)

    def run(self, script: str, output: Sink, error: Sink, timeout: float, what: str = "the command") -> int:
        """Run a bash script to its end and return its exit status.

        Args:
            script: see :meth:`begin`.
            output: see there.
            error: see there.
            timeout: seconds.
            what: what is waited for, for the message.

        Raises:
            LabTimeout: it took longer.
            MachineGone: the guest ended.
        """
        job = self.begin(script, output, error)
        try:
            self._machine.pump(job.poll, timeout, what)
        finally:
            job.drain()
        assert job.status is not None
        return job.status

    def poll_log(self) -> None:
        """Take the kernel's messages that came."""
        _take_log(self._machine, self.log)

    def put(self, name: str, data: bytes, mode: int, timeout: float = 120) -> None:
        """Write a file in the working folder.

        Raises:
            LabError: the guest cannot write it.
        """
        self._send("put", _word(name), f"{mode & 0o777:o}", str(len(data)))
        self._machine.channels["input"].send(data)
        if self._answer("done", timeout, f"the guest to take {name}") != ["0"]:
            raise LabError(f"the guest could not write {name} in its working folder")

    def get(self, name: str, timeout: float = 120) -> bytes | None:
        """A file's content, None if there is no such file; `name` is relative to the working folder."""
        self._send("get", _word(name))
        size = int(self._answer("size", timeout, f"the guest to send {name}")[0])
        if size < 0:
            return None
        received = self._machine.channels["output"].received
        self._machine.pump(lambda: len(received) >= size, timeout, f"the guest to send {name}")
        data = bytes(received[:size])
        del received[:size]
        return data

    def set_clock(self, seconds: int) -> None:
        """Set the guest's clock (seconds since 1970)."""
        self._send("clock", str(seconds))
        self._answer("done", 30, "the guest to set its clock")

    def set_variable(self, assignment: str) -> None:
        """Put ``NAME=value`` into the environment of what runs from now on.

        Raises:
            LabError: the guest refuses it.
        """
        self._send("export", _word(assignment))
        if self._answer("done", 30, "the guest to set a variable") != ["0"]:
            raise LabError(f"the guest could not set {assignment}")

    def start_shell(self, rows: int, columns: int, terminal: str) -> None:
        """Start an interactive shell on the `shell` channel; what is sent there from now on reaches it."""
        self._send("shell", str(rows), str(columns), _word(terminal))
        self._answer("shell", 30, "the guest to start a shell")

    def shell_status(self) -> int | None:
        """Exit status of the shell, None while it runs."""
        self.poll_log()
        line = self._machine.channels["control"].take_line()
        return int(line.split()[1]) if line is not None else None

    def _send(self, *words: str) -> None:
        self._machine.channels["control"].send(" ".join(words).encode() + b"\n")

    def _answer(self, kind: str, timeout: float, what: str) -> list[str]:
        answer: list[str] = []

        def answered() -> bool:
            self.poll_log()
            line = self._machine.channels["control"].take_line()
            if line is not None:
                answer.extend(line.split())
            return bool(answer)

        self._machine.pump(answered, timeout, what)
        if answer[0] != kind:
            raise LabError(f"waiting for {what}: the guest's agent answered {' '.join(answer)!r}")
        return answer[1:]
