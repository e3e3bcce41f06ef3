"""Telling a waiting person what a long step does."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str], None]
"""Takes one line about what is being done."""


def silent(line: str) -> None:
    """Say nothing."""
    del line


def to_stderr(line: str) -> None:
    """Print the line on standard error, marked as the lab's."""
    print(f"softhca guest: {line}", file=sys.stderr, flush=True)


@contextmanager
def step(progress: Progress, what: str) -> Iterator[None]:
    """Announce a step, and how long it took when it is done."""
    progress(f"{what} ...")
    start = time.monotonic()
    yield
    progress(f"{what}: {time.monotonic() - start:.1f} s")
