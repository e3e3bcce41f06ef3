"""Host and device through random objects, pages, faults and resets; nothing is lost, nothing dead is touched."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.strategies import integers, sampled_from

from softhca.bus import Engine, Reset, VirtualClock
from softhca.driver import Driver, DriverError, HealthWatch, bring_up, close, recover, roll_back
from softhca.driver.cq import CompletionQueue
from softhca.driver.driver import RegisteredMemory
from softhca.driver.errors import BringUpError, Refused, StaleObject
from softhca.driver.qp import QueuePair
from softhca.hca.device import Hca
from softhca.hca.profile import load_profile
from softhca.points import Probe
from softhca.points.rules import Rules, parse_line
from softhca.prm.init_segment import HealthSyndrome
from tests.driver.conftest import SECOND
from tests.driver.trapped_host import TrappedHost

SIZE = 8192
EFFECTS = (
    "status=NO_RESOURCES",
    "status=BAD_RES_STATE",
    "delivery=SIGNATURE_ERR",
    "lost",
    "ignored",
    "late=5s",
    "late=90s",
)
EVENTS = ("event=CMD drop", "event=CMD duplicate", "event=COMP duplicate", "vector=0 drop", "starve", "starve count=3")


class Disturbed(RuleBasedStateMachine):
    @initialize(seed=integers(0, 99))
    def start(self, seed: int) -> None:
        self.engine = Engine(VirtualClock(), seed)
        self.hca = Hca(self.engine, load_profile("connectx-6-ib"), strict=True)
        self.host = TrappedHost(32 << 20)
        self.host.plug(self.hca)
        self.driver = Driver(self.hca, self.host)
        self.faults = Rules()
        self.hca.probe = Probe(self.engine.clock, rules=self.faults)
        bring_up(self.driver)
        self.begin()

    def begin(self) -> None:
        """A new life of the function: what was made in the old one is kept apart."""
        self.old: list[QueuePair] = getattr(self, "old", [])
        self.pd = self.driver.create_pd()
        self.memory: list[RegisteredMemory] = []
        self.pairs: list[tuple[QueuePair, CompletionQueue]] = []

    def recover(self) -> None:
        """As an operator would: until it is up again, whatever comes in between."""
        self.old += [qp for qp, _ in self.pairs][-2:]
        try:
            recover(self.driver)
        except BringUpError:
            self.faults.clear()
            roll_back(self.driver)
            bring_up(self.driver)
        self.faults.clear()
        self.begin()

    def attempt(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Do something that a fault may hit; when it is not known what became of it, reset."""
        allocations = self.host.allocations
        try:
            return function(*arguments)
        except Refused:
            assert self.host.allocations <= allocations + 4, "what a refused command was lent comes back"
        except DriverError:
            self.recover()
        return None

    @rule()
    def register(self) -> None:
        memory = self.attempt(self.driver.register_memory, self.pd, SIZE)
        if isinstance(memory, RegisteredMemory):
            self.memory.append(memory)

    @rule()
    def connect(self) -> None:
        def make() -> tuple[QueuePair, CompletionQueue]:
            cq = self.driver.create_cq(5)
            qp = self.driver.create_qp(self.pd, cq, cq, 4)
            qp.connect(qp.endpoint)
            return qp, cq

        made = self.attempt(make)
        if isinstance(made, tuple):
            self.pairs.append(made)

    @precondition(lambda self: self.pairs and len(self.memory) > 1)
    @rule(pick=integers(0, 1 << 16))
    def write(self, pick: int) -> None:
        qp, cq = self.pairs[pick % len(self.pairs)]
        source, target = self.memory[pick % len(self.memory)], self.memory[(pick + 1) % len(self.memory)]
        data = random.Random(pick).randbytes(SIZE)
        source.view[:] = data

        def move() -> None:
            qp.post_write(source.region, 0, SIZE, target.address, target.key)
            cq.wait(SECOND).check()
            assert bytes(target.view) == data

        self.attempt(move)

    @precondition(lambda self: self.pairs)
    @rule()
    def disconnect(self) -> None:
        qp, cq = self.pairs[-1]

        def end() -> bool:
            if qp.number in self.driver.qps:
                qp.destroy()
                del self.driver.qps[qp.number]
            cq.destroy()
            del self.driver.cqs[cq.number]
            return True

        if self.attempt(end):
            self.pairs.pop()
        elif self.pairs and qp.number not in self.driver.qps:
            self.pairs.pop()  # the CQ alone is left

    @rule(count=integers(1, 64))
    def give(self, count: int) -> None:
        self.attempt(self.driver.ledger.give, count)

    @rule()
    def reclaim(self) -> None:
        self.attempt(self.driver.ledger.reclaim)

    @rule(effect=sampled_from(EFFECTS), nth=integers(1, 3))
    def fault_a_command(self, effect: str, nth: int) -> None:
        self.faults.add([parse_line(f"point=command.received nth={nth} {effect}")])

    @rule(line=sampled_from(EVENTS))
    def fault_something_else(self, line: str) -> None:
        self.faults.add([parse_line(line)])

    @rule()
    def dies(self) -> None:
        self.hca.die(HealthSyndrome.FW_INTERNAL_ERR)
        assert HealthWatch(self.driver).look().verdict.needs_recovery
        self.recover()

    @rule()
    def somebody_resets_it(self) -> None:
        self.hca.reset(Reset.FLR)
        self.recover()

    @rule()
    def time_passes(self) -> None:
        self.engine.wait(lambda: False, 100 * SECOND)

    @precondition(lambda self: self.old and self.memory)
    @rule()
    def dead_objects_are_refused(self) -> None:
        for qp in self.old:
            with pytest.raises(StaleObject):
                qp.post_send(self.memory[0].region, 0, 8)
            with pytest.raises(StaleObject):
                qp.query()

    @invariant()
    def the_accounts_agree(self) -> None:
        if hasattr(self, "driver") and not self.driver.channel.in_flight:
            assert self.driver.account[2] == len(self.hca.function.icm.pages)

    @invariant()
    def nothing_released_is_touched(self) -> None:
        if hasattr(self, "host"):
            assert self.host.trap.faults == []

    def teardown(self) -> None:
        if not hasattr(self, "driver"):
            return
        self.faults.clear()
        try:
            close(self.driver)
        except DriverError:
            roll_back(self.driver)
        assert self.host.allocations == 0
        assert self.driver.account[2] == len(self.hca.function.icm.pages) == 0
        self.engine.wait(lambda: False, 200 * SECOND)
        assert self.host.trap.faults == []


TestDisturbed = pytest.mark.requirement("B6", "B8", "D10", "F1", "F5", "F7", "F8")(Disturbed.TestCase)
TestDisturbed.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
