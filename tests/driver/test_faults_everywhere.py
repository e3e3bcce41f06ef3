"""A fault at each command of a driver's life: everything is undone, nothing is touched that was released (F5, F7)."""

from __future__ import annotations

from functools import cache

import pytest

from softhca.bus import Engine, VirtualClock
from softhca.driver import Driver, DriverError, bring_up, close, roll_back
from softhca.driver.errors import Refused
from softhca.hca.device import Hca
from softhca.hca.profile import load_profile
from softhca.points import Point, Probe
from softhca.points.catalogue import COMMAND_RECEIVED
from softhca.points.probe import Value
from softhca.points.rules import Rules, parse_line
from softhca.prm.opcodes import Opcode
from tests.driver.conftest import SECOND, make_pair
from tests.driver.trapped_host import TrappedHost

EFFECTS = ("status=INTERNAL_ERR", "delivery=TOKEN_ERR", "lost", "ignored", "late=10s", "late=90s", "delay=90s")
"""Refused in both layers, never completed with and without effect, completed in time and too late."""


class Life:
    """A card, a machine and a driver, with a fault."""

    def __init__(self) -> None:
        self.engine = Engine(VirtualClock(), 0)
        self.hca = Hca(self.engine, load_profile("connectx-6-ib"), strict=True)
        self.host = TrappedHost()
        self.host.plug(self.hca)
        self.driver = Driver(self.hca, self.host)

    @property
    def agree(self) -> bool:
        """Whether ledger and device have the same account."""
        return self.driver.account[2] == len(self.hca.function.icm.pages)

    def live(self) -> None:
        """From bring-up to close, with objects and data."""
        bring_up(self.driver)
        pair = make_pair(self.driver, 4096)
        pair.qps[0].post_write(pair.source.region, 0, 4096, pair.target.address, pair.target.key)
        pair.cqs[0].wait(SECOND).check()
        close(self.driver)


@cache
def commands() -> list[tuple[str, int]]:
    """Name, and which occurrence, of each command of a life, in order."""
    life, seen = Life(), list[str]()

    def record(time: int, card: int, function: int, point: Point, values: tuple[Value, ...]) -> None:
        if point is COMMAND_RECEIVED:
            seen.append(Opcode(int(values[1])).name)

    life.hca.probe = Probe(life.engine.clock, record=record)
    life.live()
    return [(name, seen[: at + 1].count(name)) for at, name in enumerate(seen)]


@pytest.mark.requirement("A10", "B8", "D10", "F1", "F5", "F7")
@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize(("name", "nth"), commands(), ids=[f"{name}-{nth}" for name, nth in commands()])
def test_whatever_fails_is_undone(name: str, nth: int, effect: str) -> None:
    life = Life()
    rules = Rules([parse_line(f"command={name} nth={nth} {effect}")])
    life.hca.probe = Probe(life.engine.clock, rules=rules)
    failed: DriverError | None = None
    try:
        life.live()
    except DriverError as error:
        failed = error
    assert rules.rules[0].fired == 1
    assert (failed is None) == (effect == "late=10s")
    if failed is not None:
        cause = failed.__cause__ or failed
        assert life.agree or not isinstance(cause, Refused)
        roll_back(life.driver)
    assert life.driver.account[2] == 0
    assert life.agree
    assert life.host.allocations == 0
    life.engine.wait(lambda: False, 200 * SECOND)
    assert life.host.trap.faults == []
    life.hca.probe = None
    life.live()
    assert life.host.allocations == 0
    assert life.driver.account[2] == 0
    assert life.agree
    assert life.host.trap.faults == []


@pytest.mark.requirement("F5", "F6")
@pytest.mark.parametrize("effect", ["refuse_fast_teardown", *EFFECTS])
def test_fast_teardown_with_a_fault(effect: str) -> None:
    life = Life()
    bring_up(life.driver)
    make_pair(life.driver, 4096)
    life.hca.probe = Probe(life.engine.clock, rules=Rules([parse_line(f"command=TEARDOWN_HCA {effect}")]))
    try:
        assert close(life.driver, fast=True).outstanding == 0
    except DriverError:
        assert life.agree
        roll_back(life.driver)
    assert life.agree
    assert life.host.allocations == 0
    life.engine.wait(lambda: False, 200 * SECOND)
    assert life.host.trap.faults == []
    life.hca.probe = None
    life.live()
    assert life.host.allocations == 0
