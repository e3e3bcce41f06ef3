from __future__ import annotations

import errno

import pytest

from softhca.vfio_user.protocol import MAX_WRITES, Command, MultiEntry, WriteMulti
from tests.vfio_user.client import Client
from tests.vfio_user.conftest import Rig


def test_all_writes_happen_in_order(rig: Rig, client: Client) -> None:
    writes = [(0, 0x18, b"\0\0\0\x01"), (2, 8, b"12345678"), (0, 0x18, b"\0\0\0\x02"), (2, 1, b"x")]
    client.write_multi(writes)
    assert client.silent()
    assert rig.card.writes == writes


def test_they_reach_configuration_space_too(rig: Rig, client: Client) -> None:
    client.write_multi([(7, 4, b"\x06\x00")])
    client.pump()
    assert rig.card.config.bus_master


def test_an_answer_counts_the_writes(client: Client) -> None:
    client.write_multi([(0, 0, b"1"), (0, 1, b"2")], flags=0)
    assert client.receive().body == WriteMulti(2).pack()


def test_as_many_as_fit(rig: Rig, client: Client) -> None:
    client.write_multi([(0, 8, b"12345678")] * MAX_WRITES)
    client.pump(8)
    assert len(rig.card.writes) == MAX_WRITES


GOOD = MultiEntry(0, 0, 4, 0).pack()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        bytes(7),
        WriteMulti(1).pack(),
        WriteMulti(2).pack() + GOOD,
        WriteMulti(1).pack() + GOOD + b"x",
        WriteMulti(0).pack() + GOOD,
        WriteMulti(2**64 - 1).pack() + GOOD,
        WriteMulti(2**61).pack(),
        WriteMulti(1).pack() + MultiEntry(0, 0, 9, 0).pack(),
        WriteMulti(1).pack() + MultiEntry(0, 0, 0, 0).pack(),
        WriteMulti(1).pack() + MultiEntry(0, 0, 2**32 - 1, 0).pack(),
        WriteMulti(1).pack() + MultiEntry(0xFFFD, 0, 4, 0).pack(),
        WriteMulti(1).pack() + MultiEntry(0, 1, 4, 0).pack(),
        WriteMulti(1).pack() + MultiEntry(0, 99, 4, 0).pack(),
    ],
)
def test_bad_ones_are_refused(rig: Rig, client: Client, body: bytes) -> None:
    assert client.refused(Command.REGION_WRITE_MULTI, body) == errno.EINVAL
    client.send(Command.REGION_WRITE_MULTI, body, flags=0x10)
    assert client.silent()
    assert rig.card.writes == []
