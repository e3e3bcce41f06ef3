"""What watching a card costs, and what not watching it costs."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks import card
from benchmarks.card import no_collection
from benchmarks.report import NotMeasured
from softhca.points.catalogue import CQE, EQE, PACKET
from softhca.points.point import Point
from softhca.points.probe import Value
from softhca.trace.recorder import BATCH, Recorder

EVENTS: tuple[tuple[Point, tuple[Value, ...]], ...] = (
    (CQE, (3, 0x40, 0, 1, 64, 0)),
    (PACKET, (0x40, 0x41, "RDMA_WRITE", 5, 1, 64, 0)),
    (EQE, (1, 0, 0, bytes(28))),
)
"""An event each of the data path."""
TESTS_A_COMMAND = 6
"""Attribute tests of points that a command passes: received, completed, two of stages and pages, EQE, interrupt."""


def event() -> float:
    """Microseconds that an event of the data path costs, its line in the file included; the dearest of them."""
    return max(_cost(point, values) for point, values in EVENTS)


def _cost(point: Point, values: tuple[Value, ...]) -> float:
    count = 4 * BATCH
    recorder = Recorder(Path("/dev/null"), {})
    record = recorder.record
    with no_collection():
        start = time.perf_counter()
        for at in range(count):
            record(at, 0, 0, point, values)
        recorder.close()
        took = time.perf_counter() - start
    if recorder.written != count:
        raise NotMeasured(f"{recorder.written} of {count} events were written: {recorder.failure}")
    return took / count * 1e6


class _Watched:
    probe = None


def off() -> float:
    """Percent of a command's time that the points of a card take which nobody watches."""
    watched, count = _Watched(), 1_000_000
    with no_collection():
        start = time.perf_counter()
        for _ in range(count):
            if watched.probe is not None:
                raise NotMeasured("it is None")
        tests = time.perf_counter() - start
        start = time.perf_counter()
        for _ in range(count):
            pass
        tests -= time.perf_counter() - start
    return TESTS_A_COMMAND * tests / count * card.CommandLoop().run(5_000) * 100
