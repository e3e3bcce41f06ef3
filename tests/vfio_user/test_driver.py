"""The whole way: the project's own driver over a vfio-user socket, its memory in a memfd, its interrupts by eventfd."""

from __future__ import annotations

import gc
import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from softhca.bus import Device, Engine, Iova, RealClock
from softhca.bus.protocol import Host, Reset
from softhca.cli.run import Story, play
from softhca.driver import Driver, bring_up
from softhca.hca.device import Hca
from softhca.hca.profile import load_profile
from softhca.vfio_user import Loop, Server
from tests.vfio_user.client import Client
from tests.vfio_user.conftest import open_fds

BASE = 0x1_0000_0000
MEMORY = 24 << 20
PAGE = 4096
CONFIG = 7
INSTALL = 0x24


class Machine:
    """A virtual machine: memory that it maps for the device, and eventfds for its vectors."""

    def __init__(self, loop: Loop, path: Path) -> None:
        self.client = Client(loop, path)
        self.client.negotiate()
        self._fd = os.memfd_create("guest")
        os.truncate(self._fd, MEMORY)
        self._memory = memoryview(mmap.mmap(self._fd, MEMORY))
        self.client.map(BASE, MEMORY, self._fd)
        self._next = 0
        self._eventfds: dict[int, tuple[int, Callable[[], None]]] = {}

    def allocate(self, length: int) -> tuple[Iova, memoryview]:
        size = (length + PAGE - 1) & -PAGE
        at, self._next = self._next, self._next + size
        if self._next > MEMORY:
            raise MemoryError
        return Iova(BASE + at), self._memory[at : at + length]

    def free(self, iova: Iova) -> None:
        assert 0 <= iova - BASE < self._next

    def on_interrupt(self, vector: int, handler: Callable[[], None] | None) -> None:
        old = self._eventfds.pop(vector, None)
        if handler is None:
            self.client.set_irqs(INSTALL, vector, 1)
        else:
            fd = os.eventfd(0, os.EFD_NONBLOCK)
            self._eventfds[vector] = fd, handler
            self.client.set_irqs(INSTALL, vector, 1, [fd])
        if old is not None:
            os.close(old[0])

    def deliver(self) -> None:
        """Call the handlers of the vectors that were signalled."""
        for fd, handler in list(self._eventfds.values()):
            try:
                os.eventfd_read(fd)
            except BlockingIOError:
                continue
            handler()

    def vanish(self) -> None:
        """The monitor is killed."""
        self.client.close()
        for fd, _ in self._eventfds.values():
            os.close(fd)
        os.close(self._fd)


class Processor(Engine):
    """Runs the driver's tasks; waiting gives the server's loop its turns."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(RealClock())
        self._machine = machine

    def run(self, budget: int = 256) -> bool:
        self._machine.client.loop.run_once(0)
        self._machine.deliver()
        super().run(budget)
        return True


class RemoteDevice:
    """A Device at the other end of a vfio-user socket; doorbells are posted writes."""

    def __init__(self, machine: Machine) -> None:
        self._client = machine.client
        self.engine: Engine = Processor(machine)
        self.bars = {0: 32 << 20}
        self.vectors = 64

    def virtual_functions(self) -> Sequence[Device]:
        return ()

    def attach(self, host: Host) -> None:
        raise NotImplementedError

    def detach(self) -> None:
        raise NotImplementedError

    def reset(self, kind: Reset) -> None:
        raise NotImplementedError

    def config_read(self, offset: int, size: int) -> bytes:
        return self._client.read(CONFIG, offset, size)

    def config_write(self, offset: int, data: bytes | memoryview) -> None:
        self._client.write(CONFIG, offset, bytes(data))

    def bar_read(self, bar: int, offset: int, size: int) -> bytes:
        return self._client.read(bar, offset, size)

    def bar_write(self, bar: int, offset: int, data: bytes | memoryview) -> None:
        self._client.post(bar, offset, bytes(data))


class Served:
    """A card on a socket."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.loop = Loop()
        self.card = Hca(Engine(RealClock(), seed=3), load_profile(), strict=True)
        self.server = Server(self.loop, self.card, path)

    def machine(self) -> Machine:
        return Machine(self.loop, self.path)

    def idle(self) -> None:
        """Nothing of a client is left in the card."""
        assert not self.server.connected
        summary = self.card.summary()
        assert (summary["objects"], summary["pages_outstanding"]) == ({}, 0)
        assert len(self.card.dma) == 0

    def whole_life(self) -> None:
        """A client comes, brings the card up, moves data, closes it and goes."""
        machine = self.machine()
        story = Story("connectx-6-ib", 1, lambda stage: None)
        play(Driver(RemoteDevice(machine), machine), story)
        assert (story.ok, story.outstanding) == (True, 0)
        assert self.card.summary()["failed_commands"] == {}
        machine.vanish()
        self.idle()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A served card. At the end neither descriptors nor the clients' memory may be left."""
    before = open_fds()
    served = Served(tmp_path / "s")
    yield served
    served.server.close()
    served.loop.close()
    gc.collect()
    assert open_fds() == before
    assert "memfd:guest" not in Path("/proc/self/maps").read_text(encoding="ascii")


@pytest.mark.requirement("A10", "C2", "F4")
def test_one_client_after_the_other(served: Served) -> None:
    served.whole_life()
    served.whole_life()


@pytest.mark.requirement("A10", "F1", "F8")
@pytest.mark.parametrize("steps", [1, 30, 60, 100, 200, 400])
def test_a_client_that_is_killed_during_bring_up(served: Served, steps: int) -> None:
    class Killed(Exception):
        pass

    machine = served.machine()
    device = RemoteDevice(machine)
    left = steps
    post = machine.client.post

    def counted(region: int, offset: int, data: bytes) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise Killed
        post(region, offset, data)

    machine.client.post = counted  # type: ignore[method-assign]
    try:
        driver = Driver(device, machine)
        bring_up(driver, lambda stage: None)
        while True:
            driver.register_memory(driver.create_pd(), PAGE)
    except (Killed, MemoryError):
        machine.vanish()
    served.idle()
    served.whole_life()
