"""Headers that are wrong, commands that do not exist, resets."""

from __future__ import annotations

import errno

import pytest

from softhca.bus.protocol import Reset
from softhca.vfio_user.protocol import MAX_MESSAGE, Command, RegionAccess
from tests.vfio_user.client import Client, Closed
from tests.vfio_user.conftest import Rig


@pytest.mark.parametrize("command", [0, 6, 11, 12, 14, 16, 17, 0xFFFF])
def test_unknown_commands_are_refused(client: Client, command: int) -> None:
    assert client.refused(command, bytes(16)) == errno.EOPNOTSUPP
    assert client.read(7, 0, 2) == b"\xb3\x15"


@pytest.mark.parametrize("size", [0, 1, 15, MAX_MESSAGE + 1, 2**32 - 1])
def test_impossible_sizes_send_the_client_away(rig: Rig, client: Client, size: int) -> None:
    client.send_raw(client.message(Command.REGION_READ, RegionAccess(0, 7, 4).pack(), size=size))
    assert client.receive().error == errno.EMSGSIZE
    with pytest.raises(Closed):
        client.receive()
    rig.serves()


@pytest.mark.parametrize("flags", [0x1, 0x2, 0xF, 0x21])
def test_only_commands_are_expected(client: Client, flags: int) -> None:
    assert client.call(Command.REGION_READ, RegionAccess(0, 7, 4).pack(), flags=flags).error == errno.EINVAL


def test_an_answer_carries_the_number_of_its_question(client: Client) -> None:
    for _ in range(3):
        client.send(Command.REGION_READ, RegionAccess(0, 7, 4).pack())
    client.send(99)
    assert [client.receive().id for _ in range(4)] == [2, 3, 4, 5]


def test_no_reply_means_none(client: Client) -> None:
    client.send(Command.REGION_READ, RegionAccess(0, 7, 4).pack(), flags=0x10)
    client.send(99, flags=0x10)
    assert client.silent()


@pytest.mark.parametrize("command", [Command.REGION_READ, Command.REGION_WRITE, Command.DEVICE_RESET, 99])
@pytest.mark.parametrize("flags", [0, 0x10])
def test_descriptors_that_nobody_asked_for_are_closed(rig: Rig, client: Client, command: int, flags: int) -> None:
    with open("/dev/null") as null:
        body = RegionAccess(0, 0, 4).pack() + b"1234"
        client.send(command, body, [null.fileno()] * 3, flags=flags)
    if not flags:
        assert client.receive().error in (errno.EINVAL, errno.EOPNOTSUPP)
    assert client.silent()
    assert rig.card.writes == []
    assert rig.card.resets == [Reset.COLD]


def test_reset_is_cold(rig: Rig, client: Client) -> None:
    client.write(7, 4, b"\x06\x00")
    assert client.ok(Command.DEVICE_RESET) == b""
    assert rig.card.resets[-1] is Reset.COLD
    assert client.read(7, 4, 2) == b"\0\0"


def test_flr_arrives_through_configuration_space(rig: Rig, client: Client) -> None:
    at = client.read(7, 0x34, 1)[0]
    while client.read(7, at, 1) != b"\x10":
        at = client.read(7, at + 1, 1)[0]
    client.write(7, at + 8, b"\x30\xa9")
    assert rig.card.resets[-1] is Reset.FLR
    assert client.read(7, at + 9, 1)[0] & 0x80 == 0
