"""What a signal does to a sub-command."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM leaves what is inside as SIGINT does, by an exception: files are completed, folders of its own removed.

    Raises:
        SystemExit: SIGTERM came; the status is 143.
    """
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    raise SystemExit(128 + number)
