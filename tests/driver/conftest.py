"""A machine with a card and a driver, in the states that tests begin in."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from softhca.bus import Engine, RealClock, VirtualClock
from softhca.bus.local import LocalHost
from softhca.driver import Driver, bring_up
from softhca.driver.cq import CompletionQueue
from softhca.driver.driver import RegisteredMemory
from softhca.driver.qp import QueuePair
from softhca.hca.device import Hca
from softhca.hca.profile import load_profile
from tests.driver.stub import HeldDoorbells

PROFILES = ["connectx-5-ib", "connectx-6-ib", "connectx-7-ib", "connectx-6dx-eth", "connectx-7-eth"]
SECOND = 1_000_000_000


@dataclass
class Bench:
    """All parts of one process: card, machine, driver."""

    hca: Hca
    card: HeldDoorbells
    host: LocalHost
    driver: Driver

    def summary(self) -> dict[str, object]:
        return dict(self.hca.summary())


def make_bench(
    profile: str = "connectx-6-ib",
    *,
    seed: int = 0,
    clock: str = "virtual",
    memory: int = 64 << 20,
    flash: bytes | None = None,
) -> Bench:
    """A card after power on in a machine, and a driver that has not begun."""
    engine = Engine(RealClock() if clock == "real" else VirtualClock(), seed)
    hca = Hca(engine, load_profile(profile), flash=flash, strict=True)
    card = HeldDoorbells(hca)
    host = LocalHost(memory)
    host.plug(card)
    return Bench(hca, card, host, Driver(card, host))


@pytest.fixture
def cold() -> Bench:
    """Nothing done yet."""
    return make_bench()


@pytest.fixture
def bench() -> Bench:
    """Brought up."""
    made = make_bench()
    bring_up(made.driver)
    return made


@dataclass
class Pair:
    """Two connected QPs of one card, a CQ each, memory on each side."""

    driver: Driver
    qps: list[QueuePair]
    cqs: list[CompletionQueue]
    source: RegisteredMemory
    target: RegisteredMemory


def make_pair(driver: Driver, size: int = 1 << 16, *, log_size: int = 4, log_cq_size: int = 7) -> Pair:
    """Create and connect."""
    pd = driver.create_pd()
    source, target = driver.register_memory(pd, size), driver.register_memory(pd, size)
    cqs = [driver.create_cq(log_cq_size), driver.create_cq(log_cq_size)]
    qps = [driver.create_qp(pd, cq, cq, log_size, psn=0xFFFFF0 + at) for at, cq in enumerate(cqs)]
    qps[0].connect(qps[1].endpoint)
    qps[1].connect(qps[0].endpoint)
    return Pair(driver, qps, cqs, source, target)


@pytest.fixture
def pair(bench: Bench) -> Pair:
    """Two connected QPs with 64 KiB on each side."""
    return make_pair(bench.driver)
