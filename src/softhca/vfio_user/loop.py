"""The loop of a process that serves devices: sockets and engines in one thread."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from typing import Protocol

from softhca.bus.engine import Engine

Callback = Callable[[], None]
_MILLISECOND = 1_000_000


class HasFileno(Protocol):
    """Anything with a descriptor."""

    def fileno(self) -> int:
        """The descriptor."""
        ...


def _fd_of(file: int | HasFileno) -> int:
    return file if isinstance(file, int) else file.fileno()


class Loop:
    """Waits for sockets, calls their callbacks, then gives each engine a turn.

    A callback may add and remove readers and writers, its own included. Exceptions of callbacks and engine tasks
    pass through :meth:`run_once`.

    Args:
        budget: ready tasks that an engine runs in one turn.
    """

    def __init__(self, budget: int = 256) -> None:
        self._budget = budget
        self._epoll = select.epoll()
        self._readers: dict[int, Callback] = {}
        self._writers: dict[int, Callback] = {}
        self._engines: list[Engine] = []
        self._interrupted = False

    def add_reader(self, file: int | HasFileno, callback: Callback) -> None:
        """Call `callback` when `file` can be read or its peer is gone; replaces the reader of before."""
        self._set(self._readers, _fd_of(file), callback)

    def remove_reader(self, file: int | HasFileno) -> None:
        """Take the reader away, if there is one. Do it before the file is closed."""
        self._set(self._readers, _fd_of(file), None)

    def add_writer(self, file: int | HasFileno, callback: Callback) -> None:
        """Call `callback` when `file` can be written; replaces the writer of before."""
        self._set(self._writers, _fd_of(file), callback)

    def remove_writer(self, file: int | HasFileno) -> None:
        """Take the writer away, if there is one. Do it before the file is closed."""
        self._set(self._writers, _fd_of(file), None)

    def add_engine(self, engine: Engine) -> None:
        """Give `engine` a turn in each round; adding it again changes nothing."""
        if not any(known is engine for known in self._engines):
            self._engines.append(engine)

    def _set(self, table: dict[int, Callback], fd: int, callback: Callback | None) -> None:
        known = fd in self._readers or fd in self._writers
        if callback is not None:
            table[fd] = callback
        elif table.pop(fd, None) is None:
            return
        events = (select.EPOLLIN if fd in self._readers else 0) | (select.EPOLLOUT if fd in self._writers else 0)
        if not events:
            self._epoll.unregister(fd)
        elif known:
            self._epoll.modify(fd, events)
        else:
            self._epoll.register(fd, events)

    def run_once(self, timeout_s: float | None = None) -> None:
        """One round: wait until a file is ready, an engine has work or the timeout is over; then do the work.

        Args:
            timeout_s: longest wait in seconds; None waits without end, 0 does not wait.
        """
        for fd, events in self._wait(timeout_s):
            if events & ~select.EPOLLOUT:
                reader = self._readers.get(fd)
                if reader is not None:
                    reader()
            if events & ~select.EPOLLIN:
                writer = self._writers.get(fd)
                if writer is not None:
                    writer()
        for engine in self._engines:
            engine.run(self._budget)

    def run(self, timeout_s: float) -> None:
        """Rounds until somebody calls :meth:`interrupt` or the timeout is over.

        Between rounds nothing else is done, so that what waits for few events costs the many that serve a device
        nothing.

        Args:
            timeout_s: seconds.
        """
        self._interrupted = False
        end = time.monotonic() + timeout_s
        while not self._interrupted:
            left = end - time.monotonic()
            if left <= 0:
                return
            self.run_once(left)

    def interrupt(self) -> None:
        """Let :meth:`run` return after this round; for callbacks."""
        self._interrupted = True

    def _wait(self, timeout_s: float | None) -> list[tuple[int, int]]:
        if timeout_s == 0:
            return self._epoll.poll(0)
        first: tuple[int, Engine] | None = None
        for engine in self._engines:
            if engine.ready:
                return self._epoll.poll(0)
            deadline = engine.next_deadline()
            if deadline is not None:
                remaining = deadline - engine.clock.now()
                if first is None or remaining < first[0]:
                    first = remaining, engine
        if first is None or (timeout_s is not None and timeout_s * 1e9 <= first[0]):
            return self._epoll.poll(timeout_s)
        return self._wait_for_deadline(*first)

    def _wait_for_deadline(self, remaining: int, engine: Engine) -> list[tuple[int, int]]:
        """Wait until a file is ready, or until the deadline that is `remaining` nanoseconds ahead.

        epoll counts in milliseconds and would oversleep, select does not: it waits for what is left.
        """
        begin = time.monotonic_ns()
        if remaining > _MILLISECOND:
            # half a millisecond less, since the count of milliseconds is rounded up
            ready = self._epoll.poll((remaining // _MILLISECOND - 0.5) / 1e3)
            if ready:
                return ready
            remaining -= time.monotonic_ns() - begin
        if remaining > 0:
            selected, _, _ = select.select([self._epoll], [], [], remaining / 1e9)
            if selected:
                return self._epoll.poll(0)
        self._reach_deadline(engine)
        return self._epoll.poll(0)

    @staticmethod
    def _reach_deadline(engine: Engine) -> None:
        """A virtual clock moves when all is idle; a real one has arrived by itself."""
        deadline = engine.next_deadline()
        if deadline is not None:
            remaining = deadline - engine.clock.now()
            if remaining > 0:
                engine.clock.pass_time(remaining)

    def close(self) -> None:
        """Forget everything; the files themselves stay open."""
        self._readers.clear()
        self._writers.clear()
        self._engines.clear()
        self._epoll.close()
