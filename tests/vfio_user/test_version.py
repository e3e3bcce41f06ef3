from __future__ import annotations

import errno

import pytest

from softhca.vfio_user.protocol import MAX_DATA, Command, RegionAccess, Version
from tests.vfio_user.client import Closed
from tests.vfio_user.conftest import Rig


def test_the_server_tells_what_it_can(rig: Rig) -> None:
    client = rig.client(negotiated=False)
    capabilities = client.negotiate()
    assert capabilities["write_multiple"] is True
    assert capabilities["max_data_xfer_size"] == MAX_DATA
    assert capabilities["max_msg_fds"] == 16


def test_capabilities_may_be_left_out(rig: Rig) -> None:
    client = rig.client(negotiated=False)
    client.ok(Command.VERSION, Version(0, 1).pack())
    assert client.read(7, 0, 2) == b"\xb3\x15"


def test_the_answer_is_0_0_whatever_the_minor_number(rig: Rig) -> None:
    client = rig.client(negotiated=False)
    assert client.ok(Command.VERSION, Version(0, 77).pack())[:4] == bytes(4)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0\0\0",
        Version(1, 0).pack(),
        Version(0, 0).pack() + b"{",
        Version(0, 0).pack() + b"[]\0",
        Version(0, 0).pack() + b'{"capabilities": 3}\0',
        Version(0, 0).pack() + b"\xff\0",
        Version(0, 0).pack() + b'{"capabilities": {"max_data_xfer_size": "x"}}\0',
        Version(0, 0).pack() + b'{"capabilities": {"max_data_xfer_size": 0}}\0',
        Version(0, 0).pack() + b"[" * 60000,
    ],
)
def test_bad_versions_are_refused_and_the_client_sent_away(rig: Rig, body: bytes) -> None:
    client = rig.client(negotiated=False)
    assert client.refused(Command.VERSION, body) == errno.EINVAL
    with pytest.raises(Closed):
        client.receive()
    rig.serves()


def test_version_comes_first(rig: Rig) -> None:
    client = rig.client(negotiated=False)
    assert client.refused(Command.REGION_READ, RegionAccess(0, 7, 4).pack()) == errno.EINVAL
    with pytest.raises(Closed):
        client.receive()


def test_a_posted_write_before_the_version_does_nothing(rig: Rig) -> None:
    client = rig.client(negotiated=False)
    client.post(0, 0, b"1234")
    with pytest.raises(Closed):
        client.receive()
    assert rig.card.writes == []


def test_version_comes_once(rig: Rig) -> None:
    client = rig.client()
    assert client.refused(Command.VERSION, Version(0, 0).pack()) == errno.EINVAL
    assert client.read(7, 0, 2) == b"\xb3\x15"


def test_no_reply_is_larger_than_the_client_takes(rig: Rig) -> None:
    client = rig.client(negotiated=False)
    client.negotiate({"max_data_xfer_size": 64})
    assert len(client.read(0, 0, 64)) == 64
    assert client.refused(Command.REGION_READ, RegionAccess(0, 0, 65).pack()) == errno.EINVAL
