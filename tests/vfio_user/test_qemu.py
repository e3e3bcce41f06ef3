"""The messages of a real QEMU, recorded, all at once and one by one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from softhca.vfio_user.protocol import Command, DmaMap, Structure
from tests.vfio_user import test_fuzz
from tests.vfio_user.conftest import Rig, open_fds

RECORDING = Path(__file__).parent / "data" / "qemu_11_1.txt"
Recorded = tuple[int, int, int, bytes]


def recorded() -> list[Recorded]:
    messages = []
    for line in RECORDING.read_text().splitlines():
        if not line.startswith("#"):
            command, flags, fds, *body = line.split()
            messages.append((int(command), int(flags, 16), int(fds), bytes.fromhex("".join(body))))
    return messages


@pytest.mark.parametrize("burst", [False, True])
def test_every_message_is_accepted(rig: Rig, burst: bool) -> None:
    before = open_fds()
    memory = os.memfd_create("guest")
    os.truncate(memory, 1 << 30)
    client = rig.client(negotiated=False)
    expected = 0
    for command, flags, fds, body in recorded():
        client.send(command, body, [memory] * fds, flags=flags)
        expected += not flags
        if not burst and not flags:
            assert client.receive().error == 0
    if burst:
        replies = [client.receive() for _ in range(expected)]
        assert [reply.error for reply in replies] == [0] * expected
    assert client.silent()
    assert rig.server.connected
    os.close(memory)
    client.close()
    assert open_fds() == before


def test_our_structures_read_it() -> None:
    kinds: dict[int, type[Structure]] = dict(test_fuzz.BODIES)
    for command, _, _, body in recorded():
        kind = kinds.get(command)
        if kind is not None:
            assert kind.unpack(body).pack() == body[: kind.layout.size]
    [version] = [body for command, _, _, body in recorded() if command == Command.VERSION]
    assert json.loads(version[4:-1])["capabilities"]["max_msg_fds"] == 16
    maps = [DmaMap.unpack(body) for command, _, _, body in recorded() if command == Command.DMA_MAP]
    assert maps[0] == DmaMap(32, 3, 0, 0, 1 << 30)
