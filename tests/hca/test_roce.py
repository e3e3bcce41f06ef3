"""The RoCE address table."""

from __future__ import annotations

from typing import Any

import pytest

from softhca.hca.command import COMMANDS, Stage
from softhca.prm.opcodes import Opcode
from softhca.prm.syndromes import Syndrome
from softhca.prm.syndromes import ports as syndromes
from tests.hca.ports_bench import ETH, IB, PortsBench

V1, V2 = 0, 2
IPV4, IPV6 = 0, 1
GID = bytes(10) + b"\xff\xff\x0a\x00\x00\x01"
ADDRESS: dict[str, Any] = {
    "source_l3_address": list(GID),
    "source_mac_47_32": 0x02CA,
    "source_mac_31_0": 0x7E000000,
    "roce_version": V2,
    "roce_l3_type": IPV4,
}


@pytest.fixture
def bench() -> PortsBench:
    bench = PortsBench(ETH)
    bench.fn.vport.roce_enabled = True
    return bench


def test_an_address_is_set_and_read(bench: PortsBench) -> None:
    bench.call(Opcode.SET_ROCE_ADDRESS, roce_address_index=3, vhca_port_num=1, roce_address=ADDRESS)
    reply = bytes(bench.call(Opcode.QUERY_ROCE_ADDRESS, roce_address_index=3))
    assert reply[0x10:] == GID + bytes.fromhex("0000 02ca 7e000000 00000002 00000000")
    assert not any(bytes(bench.call(Opcode.QUERY_ROCE_ADDRESS, roce_address_index=2)))


def test_an_address_is_removed(bench: PortsBench) -> None:
    bench.call(Opcode.SET_ROCE_ADDRESS, roce_address=ADDRESS)
    bench.call(Opcode.SET_ROCE_ADDRESS, roce_address={})
    assert not any(bytes(bench.call(Opcode.QUERY_ROCE_ADDRESS)))


def test_a_removed_address_leads_nowhere(bench: PortsBench) -> None:
    address = ADDRESS | {"source_mac_31_0": 0x42}
    bench.call(Opcode.SET_ROCE_ADDRESS, roce_address=address)
    assert bench.fn.vport.is_own(bench.port, 0, GID, 0x02CA_0000_0042)
    bench.call(Opcode.SET_ROCE_ADDRESS, roce_address=address | {"source_l3_address": [0] * 16})
    assert not bench.fn.vport.is_own(bench.port, 0, None, 0x02CA_0000_0042)
    assert not any(bytes(bench.call(Opcode.QUERY_ROCE_ADDRESS)))


def test_its_mac_leads_back(bench: PortsBench) -> None:
    other = 0x02CA_0000_0042
    assert not bench.fn.vport.is_own(bench.port, 0, None, other)
    address = ADDRESS | {"source_mac_31_0": 0x42}
    bench.call(Opcode.SET_ROCE_ADDRESS, roce_address_index=1, roce_address=address)
    assert bench.fn.vport.is_own(bench.port, 0, None, other)
    assert not bench.fn.vport.is_own(bench.port, 0, None, 0)


@pytest.mark.parametrize("index", [0, 254])
def test_ends_of_the_table(bench: PortsBench, index: int) -> None:
    bench.call(Opcode.SET_ROCE_ADDRESS, roce_address_index=index, roce_address=ADDRESS)


@pytest.mark.parametrize("opcode", [Opcode.SET_ROCE_ADDRESS, Opcode.QUERY_ROCE_ADDRESS])
@pytest.mark.parametrize("index", [255, 0xFFFF])
def test_beyond_the_table(bench: PortsBench, opcode: Opcode, index: int) -> None:
    assert bench.refusal(opcode, roce_address_index=index) is syndromes.ROCE_ADDRESS_INDEX


@pytest.mark.parametrize("opcode", [Opcode.SET_ROCE_ADDRESS, Opcode.QUERY_ROCE_ADDRESS])
def test_who_may_ask(bench: PortsBench, opcode: Opcode) -> None:
    assert PortsBench(IB).refusal(opcode) is syndromes.NOT_ETHERNET
    assert bench.refusal(opcode, vhca_port_num=2) is syndromes.NO_SUCH_PORT
    bench.fn.vport.roce_enabled = False
    assert bench.refusal(opcode) is syndromes.ROCE_NOT_ENABLED
    bench.fn.caps.general.roce = 0
    assert bench.refusal(opcode) is syndromes.ROCE_NOT_SUPPORTED
    assert COMMANDS[opcode].stages == {Stage.INITIALIZED}


@pytest.mark.parametrize(
    ("change", "syndrome"),
    [
        ({"roce_version": 1}, syndromes.BAD_ROCE_VERSION),
        ({"roce_version": 3}, syndromes.BAD_ROCE_VERSION),
        ({"roce_version": 255}, syndromes.BAD_ROCE_VERSION),
        ({"roce_l3_type": 2}, syndromes.BAD_ROCE_L3_TYPE),
        ({"roce_l3_type": 15}, syndromes.BAD_ROCE_L3_TYPE),
        ({"source_mac_47_32": 0x0100}, syndromes.BAD_ROCE_MAC),
        ({"source_mac_47_32": 0, "source_mac_31_0": 0}, syndromes.BAD_ROCE_MAC),
    ],
)
def test_an_address_that_is_wrong(bench: PortsBench, change: dict[str, int], syndrome: Syndrome) -> None:
    assert bench.refusal(Opcode.SET_ROCE_ADDRESS, roce_address=ADDRESS | change) is syndrome
    assert not any(bytes(bench.call(Opcode.QUERY_ROCE_ADDRESS)))


@pytest.mark.parametrize(("version", "l3_type"), [(V1, IPV4), (V1, IPV6), (V2, IPV4), (V2, IPV6)])
def test_versions_and_types(bench: PortsBench, version: int, l3_type: int) -> None:
    address = ADDRESS | {"roce_version": version, "roce_l3_type": l3_type}
    bench.call(Opcode.SET_ROCE_ADDRESS, roce_address=address)
    answer = bench.call(Opcode.QUERY_ROCE_ADDRESS).roce_address
    assert (answer.roce_version, answer.roce_l3_type) == (version, l3_type)
