"""QUERY_ADAPTER and QUERY_SPECIAL_CONTEXTS."""

from __future__ import annotations

import pytest

from softhca.hca.mkey import RESERVED_LKEY
from softhca.prm.opcodes import Opcode
from tests.hca.ports_bench import PortsBench


@pytest.mark.requirement("E6")
def test_identity() -> None:
    reply = bytes(PortsBench("connectx-6-ib").call(Opcode.QUERY_ADAPTER))
    assert len(reply) == 0x110
    assert reply[0x28:0x2C] == bytes.fromhex("000002c9")
    assert reply[0x2C:0x30] == bytes.fromhex("000015b3")
    assert reply[0x100:0x110] == b"MT_0000000222\0\0\0"
    assert not any(reply[:0x28])
    assert not any(reply[0x30:0x100])


def test_reserved_lkey() -> None:
    reply = PortsBench().call(Opcode.QUERY_SPECIAL_CONTEXTS)
    assert reply.resd_lkey == RESERVED_LKEY
    assert (reply.terminate_scatter_list_mkey, reply.repeated_mkey) == (0, 0)
