"""One run: guests are started with served devices, carry out a command, and are judged."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
import traceback
from pathlib import Path

from softhca.guest import complaints, lab
from softhca.guest.barrier import MAX_LINE, Barrier
from softhca.guest.cache import Cache
from softhca.guest.errors import LabError, LabTimeout
from softhca.guest.guest import WAIT_FOR_DEVICES, Guest
from softhca.guest.options import MAX_DEVICES, MAX_GUESTS, Options, Served, Streams
from softhca.guest.progress import Progress
from softhca.guest.streams import Kept
from softhca.guest.verdict import Verdict
from softhca.vfio_user.loop import Loop

_NOBODY_READS = 128 + 13
"""Exit status of a run whose output nobody takes any more: as of a program that SIGPIPE ended."""
_DRIVER = "mlx5_core"
_LOAD_DRIVER = f"""
modprobe -a mlx5_core mlx5_ib ib_uverbs ib_umad || exit 1
for round in $(seq 100); do
    bound=(/sys/bus/pci/drivers/{_DRIVER}/0000:*)
    [ -e "${{bound[0]}}" ] || bound=()
    [ ${{#bound[@]}} -ge $DEVICES ] && exit 0
    sleep 0.1
done
echo "{_DRIVER} has bound to ${{#bound[@]}} of $DEVICES devices" >&2
exit 1
"""
_LONGEST_WAIT = 0.5
"""Seconds between two looks at whether a virtual machine still runs."""


class Run:
    """One run of guests.

    The guests are started one after the other, then all load the driver at the same time and carry out the command at
    the same time.

    Args:
        options: how it is to be.
        devices: what each guest gets; one entry a guest.
        streams: where each guest's output goes.
        progress: told about what takes long, and about what goes another way than expected.
        cache: the lab's; by default the user's.
        loop: serves the devices; by default one of its own.
    """

    def __init__(
        self,
        options: Options,
        devices: list[list[Served]],
        streams: list[Streams],
        progress: Progress,
        cache: Cache | None = None,
        loop: Loop | None = None,
    ) -> None:
        self._options = options
        self._progress = progress
        self._cache = cache
        self._loop = loop if loop is not None else Loop()
        self._folder = Path(tempfile.mkdtemp(prefix="softhca-"))
        self._guests = [self._guest(number, served, len(devices)) for number, served in enumerate(devices)]
        self._outputs = [(Kept(one.output), Kept(one.error)) for one in streams]
        self._barrier = Barrier(len(devices), self._answer_barrier)
        self._end_of_commands = 0.0
        self._why_earlier: str | None = None

    def _guest(self, number: int, devices: list[Served], count: int) -> Guest:
        if count == 1:
            return Guest(number, self._options, devices, self._folder, self._loop, self._progress)
        folder = self._folder / f"guest{number}"
        folder.mkdir()
        tell = self._progress
        return Guest(number, self._options, devices, folder, self._loop, lambda text: tell(f"guest {number}: {text}"))

    def carry_out(self, command: str | None) -> Verdict:
        """Start the guests, run the bash script `command` in each, judge, end the guests.

        Without a command the one guest there is runs an interactive shell.
        """
        verdict = Verdict([guest.outcome for guest in self._guests])
        try:
            self._check_options()
            self._carry_out(command)
        except BrokenPipeError:
            for outcome in verdict.guests:
                outcome.status = _NOBODY_READS
        except (LabError, OSError, ValueError) as error:
            self._fail_all(f"{error}")
        except Exception:  # noqa: BLE001 - a defect in a device or in the lab ends the run, and the verdict shows it whole
            self._fail_all(traceback.format_exc())
        finally:
            self._end(verdict)
        return verdict

    def _fail_all(self, why: str) -> None:
        for guest in self._guests:
            if not guest.failed:
                guest.outcome.lab_error = why

    def _check_options(self) -> None:
        for guest in self._guests:
            if len(guest.devices) > MAX_DEVICES:
                raise LabError(f"{len(guest.devices)} devices: at most {MAX_DEVICES}")
        if not 1 <= len(self._guests) <= MAX_GUESTS:
            raise LabError(f"{len(self._guests)} guests: allowed are 1 to {MAX_GUESTS}")
        for path in self._options.copy_in:
            if not path.is_file():
                raise LabError(f"--copy-in {path}: there is no such file")
        complaints.find([], self._options.allow_kernel)

    def _carry_out(self, command: str | None) -> None:
        if not self._start() or not self._ready_devices():
            return
        if command is None:
            (guest,) = self._guests
            with guest.judged():
                guest.outcome.status = guest.shell(self._hear_barrier)
        else:
            self._commands(command)
        for guest in self._guests:
            if guest.outcome.status is not None and not guest.failed:
                with guest.judged():
                    guest.copy_out(f".{guest.number}" if len(self._guests) > 1 else "")

    def _start(self) -> bool:
        """Start all; whether all came up."""
        options = self._options
        cache = self._cache if self._cache is not None else Cache(progress=self._progress)
        parts = lab.obtain(cache, options.mirror, options.kernel, options.packages, self._progress)
        for guest in self._guests:
            with guest.judged():
                guest.start(cache, parts, len(self._guests))
                guest.copy_in()
            if guest.failed:
                return False
        return True

    def _ready_devices(self) -> bool:
        """Let all guests see their devices and load the driver; whether all could."""
        if not self._together(WAIT_FOR_DEVICES, 30, "the guest to see its devices"):
            return False
        return not self._options.load_modules or self._together(_LOAD_DRIVER, 120, "the driver to bind")

    def _together(self, script: str, timeout: float, what: str) -> bool:
        """Run a script of our own in all guests that have devices, at the same time; whether all went well.

        Args:
            script: it finds the number of devices in $DEVICES.
            timeout: seconds.
            what: it waits for.
        """
        busy = [guest for guest in self._guests if guest.devices]
        printed = {guest.number: bytearray() for guest in busy}
        for guest in busy:
            sink = printed[guest.number].extend
            guest.begin(guest.helper(script, len(guest.devices)), sink, sink)
        end = time.monotonic() + timeout
        while busy:
            for guest in list(busy):
                with guest.judged():
                    status = guest.poll(what)
                    if status is not None:
                        busy.remove(guest)
                        guest.check_helper(what, status, printed[guest.number])
                    elif time.monotonic() > end:
                        raise LabTimeout(f"waited {timeout:.0f} s for {what}")
                if guest.failed:
                    return False
            if busy:
                self._loop.run(_LONGEST_WAIT)
        return True

    def _commands(self, command: str) -> None:
        """Run the command in all guests at the same time, until all have ended or the time is over."""
        for guest, (output, error) in zip(self._guests, self._outputs, strict=True):
            guest.begin(command, output, error)
        self._end_of_commands = time.monotonic() + self._options.timeout
        busy = list(self._guests)
        while True:
            for guest in list(busy):
                if self._has_ended(guest):
                    busy.remove(guest)
            self._hear_barrier()
            if not busy:
                return
            left = self._end_of_commands - time.monotonic()
            if left <= 0:
                break
            self._loop.run(min(left, _LONGEST_WAIT))
        for guest in busy:
            guest.outcome.waited = self._barrier.describe(guest.number)
            guest.outcome.stopped = self._why_earlier
            guest.outcome.timed_out = self._why_earlier is None

    def _has_ended(self, guest: Guest) -> bool:
        """Whether a guest's command has ended, well or not; after a failure the others have little time left."""
        status: int | None = None
        with guest.judged():
            status = guest.poll("the command")
        if guest.failed:
            self._failed(guest, "has died")
        elif status is not None:
            guest.outcome.status = status
            if status:
                self._failed(guest, f"has failed with status {status}")
            else:
                self._barrier.ended(guest.number, "has ended with status 0")
        return guest.failed or status is not None

    def _failed(self, guest: Guest, how: str) -> None:
        self._barrier.ended(guest.number, how)
        grace = self._options.grace
        if self._why_earlier is None and time.monotonic() + grace < self._end_of_commands:
            self._end_of_commands = time.monotonic() + grace
            self._why_earlier = f"ended {grace:g} s after guest {guest.number} {how}"

    def _hear_barrier(self) -> None:
        for guest in self._guests:
            if guest.failed:
                continue
            channel = guest.barrier
            while (line := channel.take_line()) is not None:
                self._barrier.heard(guest.number, line)
            if len(channel.received) > MAX_LINE:
                channel.close()

    def _answer_barrier(self, number: int, line: str) -> None:
        self._guests[number].barrier.send(line.encode() + b"\n")

    def _end(self, verdict: Verdict) -> None:
        failed = next((guest for guest in self._guests if guest.failed), None)
        for guest, (output, error) in zip(self._guests, self._outputs, strict=True):
            outcome = guest.outcome
            outcome.output, outcome.error = output.end, error.end
            if failed is not None and outcome.verdict == "command" and outcome.status is None and not guest.failed:
                outcome.stopped = f"guest {failed.number} failed before the command"
            guest.judge()
        started = [guest.end() for guest in self._guests]
        (self._folder / "verdict.json").write_text(json.dumps(verdict.as_json(), indent=1) + "\n")
        if self._options.keep is not None:
            shutil.copytree(self._folder, self._options.keep, dirs_exist_ok=True)
        if verdict.verdict in ("ok", "command") or self._options.keep is not None or not any(started):
            shutil.rmtree(self._folder)
        else:
            self._progress(f"logs are kept in {self._folder}")
