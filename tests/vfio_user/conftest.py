from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from softhca.bus import Engine, VirtualClock
from softhca.bus.config_space import Identity
from softhca.bus.pci_function import PciFunction
from softhca.bus.protocol import Reset
from softhca.vfio_user import Loop, Server
from tests.vfio_user.client import Client


def open_fds() -> dict[int, str]:
    """This process' descriptors and what they are."""
    found: dict[int, str] = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            continue
    return found


class Card(PciFunction):
    """A device of two BARs of plain memory that writes down what happens to it."""

    def __init__(self, engine: Engine | None = None) -> None:
        self.memory = {0: bytearray(0x10000), 2: bytearray(0x1000)}
        self.writes: list[tuple[int, int, bytes]] = []
        self.resets: list[Reset] = []
        self.on_write: Callable[[], None] = lambda: None
        super().__init__(
            engine if engine is not None else Engine(VirtualClock()),
            Identity(0x15B3, 0x101B, 0x020700),
            {bar: len(memory) for bar, memory in self.memory.items()},
            vectors=8,
            msix_table=0x2000,
            msix_pending=0x3000,
        )

    def on_reset(self, kind: Reset) -> None:
        self.resets.append(kind)

    def bar_read(self, bar: int, offset: int, size: int) -> bytes:
        return bytes(self.memory[bar][offset : offset + size])

    def bar_write(self, bar: int, offset: int, data: bytes | memoryview) -> None:
        self.writes.append((bar, offset, bytes(data)))
        self.memory[bar][offset : offset + len(data)] = data
        self.on_write()


class Rig:
    """A loop, a served card, and clients of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.loop = Loop()
        self.card = Card()
        self.events: list[str] = []
        self.server = Server(
            self.loop,
            self.card,
            path,
            on_connect=lambda: self.events.append("connect"),
            on_disconnect=lambda: self.events.append("disconnect"),
        )
        self.clients: list[Client] = []

    def client(self, *, negotiated: bool = True) -> Client:
        client = Client(self.loop, self.path)
        self.clients.append(client)
        if negotiated:
            client.negotiate()
        return client

    def serves(self) -> None:
        """Show that the next client is served."""
        client = self.client()
        assert client.read(7, 0, 4) == bytes.fromhex("b3151b10")
        client.close()
        assert not self.server.connected

    def close(self) -> None:
        for client in self.clients:
            client.socket.close()
        self.loop.run_once(0)
        self.server.close()
        self.loop.close()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A served card. At the end no descriptor may be left of it."""
    before = open_fds()
    rig = Rig(tmp_path / "s")
    yield rig
    rig.close()
    del rig
    assert open_fds() == before


@pytest.fixture
def client(rig: Rig) -> Client:
    """A client that has agreed on the version."""
    return rig.client()
