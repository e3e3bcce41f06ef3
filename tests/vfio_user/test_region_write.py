from __future__ import annotations

import errno

import pytest

from softhca.vfio_user.protocol import Command, RegionAccess
from tests.vfio_user.client import Client
from tests.vfio_user.conftest import Rig


def test_write_reaches_the_bar_and_is_answered(rig: Rig, client: Client) -> None:
    client.write(0, 0x18, b"\x80\0\0\0")
    assert rig.card.writes == [(0, 0x18, b"\x80\0\0\0")]


def test_write_reaches_configuration_space(rig: Rig, client: Client) -> None:
    client.write(7, 4, b"\x06\x00")
    assert rig.card.config.bus_master
    assert client.read(7, 4, 2) == b"\x06\x00"


def test_posted_writes_are_not_answered_and_stay_in_order(rig: Rig, client: Client) -> None:
    for number in range(1000):
        client.post(0, 8 * number, number.to_bytes(8, "little"))
    assert client.silent()
    assert rig.card.writes == [(0, 8 * number, number.to_bytes(8, "little")) for number in range(1000)]


@pytest.mark.parametrize(
    ("offset", "region", "count", "data"),
    [
        (0x10000, 0, 4, b"1234"),
        (0xFFFE, 0, 4, b"1234"),
        (2**64 - 2, 0, 4, b"1234"),
        (0, 1, 4, b"1234"),
        (0, 6, 4, b"1234"),
        (0, 9, 4, b"1234"),
        (0, 2**32 - 1, 4, b"1234"),
        (0, 0, 0, b""),
        (0, 0, 8, b"1234"),
        (0, 0, 2, b"1234"),
        (4096, 7, 1, b"1"),
    ],
)
def test_bad_writes_are_refused(rig: Rig, client: Client, offset: int, region: int, count: int, data: bytes) -> None:
    assert client.refused(Command.REGION_WRITE, RegionAccess(offset, region, count).pack() + data) == errno.EINVAL
    client.send(Command.REGION_WRITE, RegionAccess(offset, region, count).pack() + data, flags=0x10)
    assert client.silent()
    assert rig.card.writes == []
    client.write(0, 0, b"good")


def test_short_body_is_refused(client: Client) -> None:
    assert client.refused(Command.REGION_WRITE, b"\0" * 15) == errno.EINVAL
