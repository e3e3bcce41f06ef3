"""Guests that are driven step by step from here: scripts, and the kernel's messages in between.

:class:`softhca.guest.run.Run` carries out one command and judges; here the caller does, and what it does to the devices
between two scripts happens in this process.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from softhca.guest import lab
from softhca.guest.agent import KernelLine
from softhca.guest.cache import Cache
from softhca.guest.guest import Guest
from softhca.guest.options import Options, Served
from softhca.guest.progress import Progress, silent
from softhca.vfio_user.loop import Loop


@dataclass(frozen=True)
class Done:
    """How a script ended.

    Attributes:
        status: its exit status.
        output: what it printed, on both streams.
    """

    status: int
    output: str


class Session:
    """Running guests, numbered from 0; a context manager that starts and ends them.

    The drivers are not loaded, and files of `options.copy_in` lie in the working folder.

    Args:
        options: how the guests are to be; the timeout is that of each script that names none.
        devices: what each guest gets; one entry a guest.
        progress: told about what takes long.
        cache: the lab's; by default the user's.

    Raises:
        LabError: a guest does not start.
    """

    def __init__(
        self, options: Options, devices: list[list[Served]], progress: Progress = silent, cache: Cache | None = None
    ) -> None:
        self._options = options
        self._progress = progress
        self._cache = cache
        self._loop = Loop()
        self._folder = Path(tempfile.mkdtemp(prefix="softhca-"))
        self._guests: list[Guest] = []
        for number, served in enumerate(devices):
            folder = self._folder / f"guest{number}"
            folder.mkdir()
            self._guests.append(Guest(number, options, served, folder, self._loop, progress))
        self._seen = [0] * len(devices)

    def __enter__(self) -> Session:
        cache = self._cache if self._cache is not None else Cache(progress=self._progress)
        options = self._options
        try:
            parts = lab.obtain(cache, options.mirror, options.kernel, options.packages, self._progress)
            for guest in self._guests:
                guest.start(cache, parts, len(self._guests))
                guest.copy_in()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, script: str, guest: int = 0, timeout: float | None = None) -> Done:
        """Run a bash script in a guest to its end; the devices of all guests are served meanwhile.

        Args:
            script: its working folder has the files of `copy_in`.
            guest: its number.
            timeout: seconds; by default that of the options.

        Raises:
            LabTimeout: it took longer.
            MachineGone: the guest ended.
        """
        printed = bytearray()
        seconds = self._options.timeout if timeout is None else timeout
        status = self._guests[guest].agent.run(script, printed.extend, printed.extend, seconds)
        return Done(status, printed.decode(errors="replace"))

    def serve(self, seconds: float) -> None:
        """Serve the devices for a time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._loop.run(left)

    def messages(self, guest: int = 0) -> list[KernelLine]:
        """What a guest's kernel has said since the last time this was asked, or since the guest was started."""
        lines = self._guests[guest].agent.log.lines
        first, self._seen[guest] = self._seen[guest], len(lines)
        return lines[first:]

    def keep_logs(self, folder: Path) -> None:
        """Copy what has been written about the guests; they are still running."""
        shutil.copytree(self._folder, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.sock"))

    def close(self) -> None:
        """End the guests and remove what they wrote. May be called again."""
        guests, self._guests = self._guests, []
        if not guests:
            return
        for guest in guests:
            guest.end()
        self._loop.close()
        shutil.rmtree(self._folder, ignore_errors=True)
