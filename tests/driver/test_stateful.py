"""Any order of legal driver calls: the ledger always agrees with the device, and everything can be closed."""

from __future__ import annotations

import random

from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.strategies import integers, sampled_from

from softhca.driver import bring_up, close
from softhca.driver.cq import CompletionQueue
from softhca.driver.driver import RegisteredMemory
from softhca.driver.memory import HcaAddress
from softhca.driver.pages import BATCH
from softhca.driver.pd import ProtectionDomain
from softhca.driver.qp import QueuePair
from tests.driver.conftest import PROFILES, SECOND, make_bench

SIZE = 8192


class AnyOrder(RuleBasedStateMachine):
    @initialize(profile=sampled_from(PROFILES), seed=integers(0, 99))
    def start(self, profile: str, seed: int) -> None:
        self.bench = make_bench(profile, seed=seed)
        self.driver = self.bench.driver
        bring_up(self.driver)
        self.pd: ProtectionDomain = self.driver.create_pd()
        self.memory: list[RegisteredMemory] = []
        self.pairs: list[tuple[QueuePair, QueuePair, CompletionQueue, CompletionQueue]] = []

    @rule()
    def register(self) -> None:
        self.memory.append(self.driver.register_memory(self.pd, SIZE))

    @rule(log_size=integers(2, 6))
    def connect(self, log_size: int) -> None:
        cqs = [self.driver.create_cq(7), self.driver.create_cq(7)]
        first, second = (self.driver.create_qp(self.pd, cq, cq, log_size) for cq in cqs)
        first.connect(second.endpoint)
        second.connect(first.endpoint)
        self.pairs.append((first, second, cqs[0], cqs[1]))

    @precondition(lambda self: len(self.memory) > 1 and self.pairs)
    @rule(length=integers(1, SIZE), pick=integers(0, 1 << 16))
    def write(self, length: int, pick: int) -> None:
        source, target = self.memory[pick % len(self.memory)], self.memory[(pick + 1) % len(self.memory)]
        first, _, cq, _ = self.pairs[pick % len(self.pairs)]
        data = random.Random(pick).randbytes(length)
        source.view[:length] = data
        first.post_write(source.region, 0, length, HcaAddress(target.address + SIZE - length), target.key)
        cq.wait(SECOND).check()
        assert bytes(target.view[SIZE - length :]) == data

    @precondition(lambda self: self.memory and self.pairs)
    @rule(length=integers(1, SIZE // 2), pick=integers(0, 1 << 16))
    def send(self, length: int, pick: int) -> None:
        memory = self.memory[pick % len(self.memory)]
        first, second, sent, received = self.pairs[pick % len(self.pairs)]
        data = random.Random(pick).randbytes(length)
        memory.view[:length] = data
        second.post_receive(memory.region, SIZE // 2, SIZE // 2)
        first.post_send(memory.region, 0, length)
        assert received.wait(SECOND).check().byte_count == length
        sent.wait(SECOND).check()
        assert bytes(memory.view[SIZE // 2 :][:length]) == data

    @precondition(lambda self: self.pairs)
    @rule()
    def disconnect(self) -> None:
        for item in self.pairs.pop():
            item.destroy()
            if isinstance(item, QueuePair):
                del self.driver.qps[item.number]
            else:
                del self.driver.cqs[item.number]

    @rule(count=integers(1, BATCH))
    def give(self, count: int) -> None:
        self.driver.ledger.give(count)

    @rule()
    def take_back_what_is_spare(self) -> None:
        self.driver.ledger.reclaim()

    @invariant()
    def ledger_and_device_agree(self) -> None:
        if hasattr(self, "bench"):
            ledger = self.driver.ledger
            assert ledger.outstanding == ledger.given - ledger.returned
            assert self.bench.summary()["pages_outstanding"] == ledger.outstanding
            assert self.driver.channel.in_flight == 0
            assert self.bench.summary()["failed_commands"] == {}

    def teardown(self) -> None:
        if hasattr(self, "bench"):
            assert close(self.driver).outstanding == 0
            assert self.bench.host.allocations == 0


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=12, stateful_step_count=30, deadline=None)
