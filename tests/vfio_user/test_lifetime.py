"""Clients come, wait, die at any byte, and leave nothing behind."""

from __future__ import annotations

import os
import resource
import socket
from pathlib import Path

import pytest

from softhca.bus.protocol import Reset
from softhca.vfio_user import Loop, Server
from softhca.vfio_user.protocol import (
    Command,
    DeviceInfo,
    DmaMap,
    DmaUnmap,
    IrqInfo,
    IrqSet,
    MultiEntry,
    RegionAccess,
    RegionInfo,
    Version,
    WriteMulti,
)
from tests.vfio_user.client import Client, Closed
from tests.vfio_user.conftest import Card, Rig, open_fds


def test_the_device_sits_in_the_clients_machine_while_it_is_there(rig: Rig) -> None:
    assert not rig.server.connected
    client = rig.client()
    assert rig.server.connected
    client.write(7, 4, b"\x06\x00")
    client.close()
    assert not rig.server.connected
    assert not rig.card.config.bus_master
    rig.client()
    assert rig.events == ["connect", "disconnect", "connect"]
    assert rig.server.clients == 2


def test_a_second_client_waits_for_the_first_to_go(rig: Rig) -> None:
    first = rig.client()
    second = rig.client(negotiated=False)
    second.send(Command.VERSION, Version(0, 0).pack())
    assert second.silent()
    assert first.read(7, 0, 2) == b"\xb3\x15"
    first.close()
    assert second.receive().command == Command.VERSION
    assert second.read(7, 0, 2) == b"\xb3\x15"


def test_one_that_gave_up_waiting_is_passed_over(rig: Rig) -> None:
    first, second, third = rig.client(), rig.client(negotiated=False), rig.client(negotiated=False)
    second.socket.close()
    first.close()
    third.pump(4)
    third.negotiate()


def test_close_sends_the_client_away(rig: Rig, client: Client) -> None:
    rig.server.close()
    rig.server.close()
    assert not rig.path.exists()
    assert not rig.server.connected
    with pytest.raises(Closed):
        client.receive()


def test_a_callback_may_close_the_server(tmp_path: Path) -> None:
    before = open_fds()
    loop = Loop()
    server = Server(loop, Card(), tmp_path / "s", on_connect=lambda: server.close())
    client = Client(loop, tmp_path / "s")
    with pytest.raises(Closed):
        client.receive()
    client.close()
    loop.close()
    assert open_fds() == before


@pytest.mark.parametrize("flags", [0, 0x10])
def test_the_device_may_close_the_server(rig: Rig, client: Client, flags: int) -> None:
    """Even while one of its messages is answered and more are waiting."""
    rig.card.on_write = rig.server.close
    access = RegionAccess(0, 0, 4).pack() + b"1234"
    client.send_raw(b"".join(client.message(Command.REGION_WRITE, access, flags=flags) for _ in range(3)))
    with pytest.raises(Closed):
        client.receive()
    assert len(rig.card.writes) == 1


def test_a_client_waits_while_no_descriptor_is_free(rig: Rig) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    client = rig.client()
    client.close()
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(os.fspath(rig.path))
    resource.setrlimit(resource.RLIMIT_NOFILE, (sock.fileno() + 1, limits[1]))
    try:
        rig.loop.run_once(0)
        rig.loop.run_once(0)
        assert not rig.server.connected
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    rig.loop.run_once(0)
    assert rig.server.connected
    sock.close()
    rig.loop.run_once(0)
    rig.serves()


def test_the_summary(rig: Rig, client: Client) -> None:
    client.refused(99)
    assert rig.server.summary() == {
        "socket": str(rig.path),
        "connected": True,
        "clients": 1,
        "mappings": 0,
        "refused": 1,
    }
    client.close()
    assert rig.server.summary()["connected"] is False


def test_two_servers_on_one_loop(rig: Rig, client: Client, tmp_path: Path) -> None:
    card = Card()
    server = Server(rig.loop, card, tmp_path / "t")
    other = Client(rig.loop, tmp_path / "t")
    other.negotiate()
    other.post(0, 0, b"there")
    client.post(0, 0, b"here")
    client.pump(4)
    assert (rig.card.writes, card.writes) == ([(0, 0, b"here")], [(0, 0, b"there")])
    other.close()
    server.close()


def conversation(client: Client, memory: int, event: int) -> list[tuple[bytes, list[int]]]:
    """One message of each kind, with its descriptors."""
    write = MultiEntry(0, 0, 4, 0).pack()
    plan: list[tuple[int, bytes, list[int], int]] = [
        (Command.VERSION, Version(0, 0).pack() + b"{}\0", [], 0),
        (Command.DMA_MAP, DmaMap(32, 3, 0, 0, 0x1000).pack(), [memory], 0),
        (Command.DMA_MAP, DmaMap(32, 1, 0, 0x10000, 0x1000).pack(), [], 0),
        (Command.DEVICE_GET_INFO, DeviceInfo(16, 0, 0, 0).pack(), [], 0),
        (Command.DEVICE_GET_REGION_INFO, RegionInfo(32, 0, 0, 0, 0, 0).pack(), [], 0),
        (Command.DEVICE_GET_IRQ_INFO, IrqInfo(16, 0, 2, 0).pack(), [], 0),
        (Command.DEVICE_SET_IRQS, IrqSet(20, 0x24, 2, 0, 1).pack(), [event], 0),
        (Command.REGION_WRITE, RegionAccess(4, 7, 2).pack() + b"\x06\x00", [], 0),
        (Command.REGION_WRITE, RegionAccess(0x18, 0, 4).pack() + b"1234", [], 0x10),
        (Command.REGION_WRITE_MULTI, WriteMulti(2).pack() + write * 2, [], 0x10),
        (Command.REGION_READ, RegionAccess(0, 0, 8).pack(), [], 0),
        (Command.DEVICE_RESET, b"", [], 0),
        (Command.DMA_UNMAP, DmaUnmap(24, 0, 0, 0x1000).pack(), [], 0),
    ]
    return [(client.message(command, body, flags=flags), fds) for command, body, fds, flags in plan]


@pytest.mark.parametrize("reads_replies", [True, False])
def test_a_client_may_die_at_every_byte(rig: Rig, reads_replies: bool) -> None:
    memory, event = os.memfd_create("guest"), os.eventfd(0)
    os.truncate(memory, 0x1000)
    before = open_fds()
    total = sum(len(data) for data, _ in conversation(rig.client(negotiated=False), memory, event))
    rig.clients.pop().close()
    for end in range(total):
        client = Client(rig.loop, rig.path)
        left = end
        for data, fds in conversation(client, memory, event):
            if left > 0:
                client.send_raw(data[:left], fds)
                left -= len(data)
        if reads_replies:
            client.silent()
        client.close()
        client.pump(2)
        assert not rig.server.connected
        assert rig.card.resets[-1] is Reset.COLD
        if end % 16 == 0:
            assert open_fds() == before
    assert open_fds() == before
    rig.serves()
    os.close(memory)
    os.close(event)


def test_a_client_may_die_with_replies_on_the_way(rig: Rig) -> None:
    before = open_fds()
    client = rig.client()
    for _ in range(40):
        client.send(Command.REGION_READ, RegionAccess(0, 0, 0x10000).pack())
    client.pump(8)
    client.close()
    client.pump(8)
    assert not rig.server.connected
    assert open_fds() == before
    rig.serves()


def test_a_client_that_closes_one_half_is_gone(rig: Rig, client: Client) -> None:
    client.socket.shutdown(socket.SHUT_WR)
    client.pump()
    assert not rig.server.connected
    rig.serves()
