"""The card and our driver in one process: bring-up, and the command interface."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from benchmarks.report import NotMeasured
from softhca.bus import Engine, Iova, RealClock
from softhca.bus.local import LocalHost
from softhca.driver import Driver, bring_up, close
from softhca.driver.bringup import STEPS
from softhca.hca.device import Hca
from softhca.hca.profile import DEFAULT, load_profile
from softhca.prm.adapter import QueryAdapterIn, QueryAdapterOut
from softhca.prm.cmd import CmdLayout
from softhca.prm.hca_cap import CmdifChecksum
from softhca.prm.init_segment import InitialSeg
from softhca.prm.opcodes import Opcode

LAST_POLLED = "driver version"
"""The step of bring-up after which commands would complete by events."""


class Machine(NamedTuple):
    """A card in a machine, with a driver."""

    card: Hca
    host: LocalHost
    driver: Driver


def machine(memory: int = 64 << 20) -> Machine:
    """A card in a machine of `memory` bytes, with a driver that has not begun."""
    card = Hca(Engine(RealClock()), load_profile(DEFAULT))
    host = LocalHost(memory)
    host.plug(card)
    return Machine(card, host, Driver(card, host))


def bring_up_and_close() -> float:
    """Milliseconds for a card's whole life: profile, firmware start, bring-up, close."""
    start = time.perf_counter()
    driver = machine().driver
    bring_up(driver)
    closed = close(driver)
    took = (time.perf_counter() - start) * 1e3
    if closed.outstanding:
        raise NotMeasured(f"{closed.outstanding} pages are still the device's after close")
    return took


def first_bring_up() -> float:
    """:func:`bring_up_and_close` as the first thing that a fresh process does after its imports."""
    code = "from benchmarks.card import bring_up_and_close as measure; print(measure())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotMeasured(f"exit status {done.returncode}: {done.stderr.strip()[-300:]}")
    return float(done.stdout)


@contextmanager
def no_collection() -> Iterator[None]:
    """No garbage collection while something is timed."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class CommandLoop:
    """A command that lies ready in its slot of an initialised card, and is submitted again and again.

    The entry and its mailboxes are those that the driver filled once, signatures included, so that what is timed is
    the device: doorbell, fetch, every check, execution, output, signatures. Completion is found by polling the
    ownership bit.
    """

    def __init__(self) -> None:
        card, host, driver = machine()
        for name, _, step in STEPS:
            step(driver)
            if name == LAST_POLLED:
                break
        if driver.capabilities.cmdif_checksum != CmdifChecksum.ENABLED:
            raise NotMeasured("the device does not check signatures")
        channel = driver.channel
        submission = channel.prepare(Opcode.QUERY_ADAPTER, QueryAdapterIn.new(), QueryAdapterOut)
        high, low = (driver.segment.read(name) for name in ("cmdq_phy_addr_63_32", "cmdq_phy_addr_31_12"))
        address = Iova(high << 32 | low << 12) + submission.slot * channel.geometry.stride
        self.card = card
        self.driver = driver
        self.memory = host.dma.view(address, CmdLayout.SIZE, write=True)
        self.entry = bytes(self.memory)
        self.vector = (1 << submission.slot).to_bytes(4, "big")
        self.doorbell = InitialSeg.FIELDS["command_doorbell_vector"].word

    def run(self, count: int) -> float:
        """Commands a second over `count` commands."""
        memory, entry, vector, doorbell = self.memory, self.entry, self.vector, self.doorbell
        ring, run = self.driver.device.bar_write, self.driver.engine.run
        with no_collection():
            start = time.perf_counter()
            for _ in range(count):
                memory[:] = entry
                ring(0, doorbell, vector)
                run()
                if memory[0x3F] or memory[0x20]:
                    raise NotMeasured(f"QUERY_ADAPTER: ownership {memory[0x3F]:#x}, status {memory[0x20]:#x}")
            return count / (time.perf_counter() - start)


def commands(count: int = 20_000) -> Callable[[], float]:
    """What measures commands a second, `count` of them at a time."""
    loop = CommandLoop()
    return lambda: loop.run(count)
