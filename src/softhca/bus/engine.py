"""The engine: one ready queue, timers, and the clock they go by.

Doorbells, commands, packets and timers of every device of a fabric are entries of one ready queue. Which ready
entry runs next is drawn from a seeded generator, so that a run is reproducible and still completes commands out of
order (D7). One thread, no locks.
"""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Callable
from itertools import count
from typing import Protocol

Task = Callable[[], None]

_FEW_TIMERS = 256


class Clock(Protocol):
    """A monotonic clock in nanoseconds."""

    def now(self) -> int:
        """Nanoseconds since an arbitrary start."""
        ...

    def pass_time(self, nanoseconds: int) -> None:
        """Let time pass: sleep, or jump ahead."""
        ...


class RealClock:
    """The machine's monotonic clock."""

    now = staticmethod(time.monotonic_ns)
    """Nanoseconds since an arbitrary start."""

    def pass_time(self, nanoseconds: int) -> None:
        """Sleep."""
        time.sleep(nanoseconds / 1e9)


class VirtualClock:
    """A clock that moves only when the engine is idle, so that hours pass at once and always alike."""

    def __init__(self, start: int = 0) -> None:
        self._now = start

    def now(self) -> int:
        """Nanoseconds since the start of the run."""
        return self._now

    def pass_time(self, nanoseconds: int) -> None:
        """Jump ahead."""
        self._now += nanoseconds


class Timer:
    """A task that runs once at a time; see :meth:`Engine.after`."""

    __slots__ = ("_task", "deadline")

    def __init__(self, deadline: int, task: Task) -> None:
        self.deadline = deadline
        self._task: Task | None = task

    def cancel(self) -> None:
        """Never run, if it has not run yet."""
        self._task = None

    @property
    def active(self) -> bool:
        """Whether it is still to run."""
        return self._task is not None

    def run(self) -> None:
        """Run the task, unless it was cancelled, also between deadline and turn; the timer is over after this."""
        task, self._task = self._task, None
        if task is not None:
            task()


class Engine:
    """Runs the work of all devices of a fabric.

    Args:
        clock: what timers go by.
        seed: decides which of several ready entries runs first; None keeps the order of posting.

    Attributes:
        seed: as given.
    """

    def __init__(self, clock: Clock | None = None, seed: int | None = 0) -> None:
        self.clock: Clock = clock if clock is not None else RealClock()
        self.seed = seed
        self._random = None if seed is None else random.Random(seed)
        self._ready: list[Task] = []
        self._timers: list[tuple[int, int, Timer]] = []
        self._sweep_at = _FEW_TIMERS
        self._serial = count()

    def post(self, task: Task) -> None:
        """Make `task` ready. Ready tasks run in any order: a task must not rely on another one's turn."""
        self._ready.append(task)

    def after(self, nanoseconds: int, task: Task) -> Timer:
        """Run `task` once, when `nanoseconds` have passed."""
        timer = Timer(self.clock.now() + nanoseconds, task)
        heapq.heappush(self._timers, (timer.deadline, next(self._serial), timer))
        if len(self._timers) > self._sweep_at:
            self._sweep()
        return timer

    def _sweep(self) -> None:
        """Drop cancelled timers, so that one which is always set anew takes no room until it would have been due."""
        self._timers = [entry for entry in self._timers if entry[2].active]
        heapq.heapify(self._timers)
        self._sweep_at = max(_FEW_TIMERS, 2 * len(self._timers))

    @property
    def ready(self) -> bool:
        """Whether a task is ready to run now, due timers aside."""
        return bool(self._ready)

    def next_deadline(self) -> int | None:
        """When the next timer is due (ns of the clock), or None."""
        while self._timers and not self._timers[0][2].active:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def run(self, budget: int = 256) -> bool:
        """Run due timers and at most `budget` ready tasks; tell whether more work is ready now."""
        ready = self._ready
        if self._timers:
            self._fire_due()
        while ready and budget > 0:
            budget -= 1
            if len(ready) == 1:
                task = ready.pop()
            elif self._random is None:
                task = ready.pop(0)
            else:
                pick = int(self._random.random() * len(ready))
                ready[pick], ready[-1] = ready[-1], ready[pick]
                task = ready.pop()
            task()
        return bool(ready)

    def _fire_due(self) -> None:
        now = self.clock.now()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if timer.active:
                self._ready.append(timer.run)

    def wait(self, condition: Callable[[], bool], timeout: int) -> bool:
        """Pump until `condition()` holds or `timeout` nanoseconds have passed; tell whether it holds.

        While nothing is ready the clock passes to the next timer (a virtual one jumps, a real one sleeps).
        """
        clock = self.clock
        end = clock.now() + timeout
        while not condition():
            if self.run():
                continue
            if condition():
                return True
            now = clock.now()
            if now >= end:
                return False
            deadline = self.next_deadline()
            until = end if deadline is None else min(end, deadline)
            if until > now:
                clock.pass_time(until - now)
        return True
