from __future__ import annotations

import errno

import pytest

from softhca.vfio_user.protocol import MAX_DATA, Command, RegionAccess
from tests.vfio_user.client import Client
from tests.vfio_user.conftest import Rig


@pytest.mark.parametrize("size", [1, 2, 4, 8, 3, 4096, MAX_DATA])
def test_read_of_a_bar(rig: Rig, client: Client, size: int) -> None:
    rig.card.memory[0][:8] = b"01234567"
    assert client.read(0, 0, size) == bytes(rig.card.memory[0][:size])


@pytest.mark.parametrize("size", [1, 2, 4, 4096])
def test_read_of_configuration_space(rig: Rig, client: Client, size: int) -> None:
    data = client.read(7, 0, size)
    assert len(data) == size
    assert data[:2] == b"\xb3\x15"[:size]


def test_the_last_byte(client: Client) -> None:
    assert client.read(2, 0xFFF, 1) == b"\0"


@pytest.mark.parametrize(
    ("offset", "region", "count"),
    [
        (0x10000, 0, 1),
        (0xFFFF, 0, 2),
        (2**64 - 1, 0, 1),
        (0, 0, 0),
        (0, 0, MAX_DATA + 1),
        (0, 0, 2**32 - 1),
        (0, 1, 4),
        (0, 6, 4),
        (0, 8, 4),
        (0, 9, 4),
        (0, 2**32 - 1, 4),
        (4096, 7, 1),
    ],
)
def test_bad_reads_are_refused(client: Client, offset: int, region: int, count: int) -> None:
    assert client.refused(Command.REGION_READ, RegionAccess(offset, region, count).pack()) == errno.EINVAL
    assert client.read(7, 0, 2) == b"\xb3\x15"


def test_a_short_body_is_refused(client: Client) -> None:
    assert client.refused(Command.REGION_READ, bytes(15)) == errno.EINVAL


def test_a_reader_that_takes_no_replies_is_waited_for(rig: Rig, client: Client) -> None:
    """The server stops reading, answers what it has read later, in order, and keeps at most one reply."""
    request = RegionAccess(0, 0, MAX_DATA).pack()
    for _ in range(40):
        client.send(Command.REGION_READ, request)
    client.post(0, 0x18, b"last")
    client.pump(20)
    assert rig.card.writes == []
    for number in range(40):
        assert client.receive().id == number + 2
    client.pump(4)
    assert rig.card.writes == [(0, 0x18, b"last")]
