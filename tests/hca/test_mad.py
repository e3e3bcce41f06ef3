"""MAD_IFC: datagrams and their answers, by the bytes of the InfiniBand specification."""

from __future__ import annotations

import struct

import pytest

from softhca.hca.command import COMMANDS, Stage
from softhca.prm.opcodes import Opcode
from softhca.prm.registers import PortAdminStatus
from softhca.prm.smp import NodeInfo, PortInfo, Smp
from softhca.prm.syndromes import ports as syndromes
from tests.hca.ports_bench import ETH, IB, PortsBench

NODE_DESCRIPTION, NODE_INFO, SWITCH_INFO, GUID_INFO, PORT_INFO, PKEY_TABLE = 0x10, 0x11, 0x12, 0x14, 0x15, 0x16
GET, SET, GET_RESP = 0x01, 0x02, 0x81
LID_ROUTED, DIRECTED, PERFORMANCE = 0x01, 0x81, 0x04
GUID = bytes.fromhex("02ca060300000000")


@pytest.fixture
def bench() -> PortsBench:
    return PortsBench(IB)


def datagram(
    attribute: int, modifier: int = 0, *, method: int = GET, group: int = LID_ROUTED, version: int = 1
) -> bytes:
    head = struct.pack(">BBBBHHQHHI", 1, group, version, method, 0, 0, 0x1122334455667788, attribute, 0, modifier)
    return head.ljust(256, b"\0")


def ask(bench: PortsBench, mad: bytes, *, port: int = 1) -> bytes:
    """The answering datagram."""
    reply = bench.call(Opcode.MAD_IFC, op_mod=3, port=port, mad=list(mad))
    return bytes(reply)[16:]


def status(answer: bytes) -> int:
    return int.from_bytes(answer[4:6], "big")


@pytest.mark.parametrize("group", [LID_ROUTED, DIRECTED])
def test_an_answer_is_the_question_with_its_data(bench: PortsBench, group: int) -> None:
    question = datagram(NODE_DESCRIPTION, group=group)
    answer = ask(bench, question)
    assert answer[:3] == question[:3]
    assert answer[3] == GET_RESP
    assert answer[4:64] == question[4:64]
    assert answer[64:128] == b"softhca connectx-6-ib".ljust(64, b"\0")
    assert not any(answer[128:])


def test_node_info(bench: PortsBench) -> None:
    data = ask(bench, datagram(NODE_INFO))[64:128]
    assert data[:40] == bytes.fromhex("01010101") + GUID * 3 + bytes.fromhex("0080 101b 00000000 01 0002c9")
    assert NodeInfo(data).partition_cap == 128


def test_port_info_where_linux_reads_it(bench: PortsBench) -> None:
    data = ask(bench, datagram(PORT_INFO, 1))[64:128]
    assert data[8:16] == bytes.fromhex("fe80000000000000")
    assert (data[16:18], data[18:20]) == (b"\x00\x01", b"\xbf\xff")
    assert data[31] & 0xF == 2, "4x"
    assert data[32] & 0xF == 4, "ACTIVE"
    assert data[33] >> 4 == 5, "LINK_UP"
    assert data[36] >> 4 == 5, "4096"
    assert data[41] & 0xF == 5, "4096"
    assert data[37] >> 4 == 3, "VL0 to VL3"
    assert data[50] == 8, "GIDs"
    assert data[62] >> 4 == 4, "HDR"
    assert data[35] >> 4 == 4, "what stands in the old field beside an extended speed"


def test_port_info_of_a_port_that_is_down(bench: PortsBench) -> None:
    bench.port.set_admin(PortAdminStatus.DOWN)
    info = PortInfo(ask(bench, datagram(PORT_INFO))[64:128])
    assert (info.port_state, info.port_physical_state, info.link_width_active) == (1, 3, 0)
    assert (info.link_speed_active, info.link_speed_ext_active) == (0, 0)


def test_guid_info(bench: PortsBench) -> None:
    assert ask(bench, datagram(GUID_INFO))[64:128] == GUID + bytes(56)


def test_service_levels_go_round_the_lanes(bench: PortsBench) -> None:
    assert ask(bench, datagram(0x17))[64:128] == bytes.fromhex("0123012301230123") + bytes(56)


def test_pkey_table(bench: PortsBench) -> None:
    assert ask(bench, datagram(PKEY_TABLE))[64:128] == b"\xff\xff" + bytes(62)
    assert status(ask(bench, datagram(PKEY_TABLE, 3))) == 0


@pytest.mark.parametrize(
    ("mad", "wanted"),
    [
        (datagram(SWITCH_INFO), 0x0C),
        (datagram(0xFF90), 0x0C),
        (datagram(0x20, group=PERFORMANCE), 0x0C),
        (datagram(1, group=PERFORMANCE, method=0x05), 0x08),
        (datagram(PORT_INFO, 1, method=SET), 0x08),
        (datagram(NODE_INFO, version=2), 0x04),
        (b"\2" + datagram(NODE_INFO)[1:], 0x04),
        (datagram(PORT_INFO, 2), 0x1C),
        (datagram(GUID_INFO, 1), 0x1C),
        (datagram(PKEY_TABLE, 4), 0x1C),
    ],
)
def test_what_the_agent_does_not_do_has_its_status_and_no_data(bench: PortsBench, mad: bytes, wanted: int) -> None:
    answer = ask(bench, mad)
    assert status(answer) == wanted
    assert answer[3] == GET_RESP
    assert answer[64:] == mad[64:]


@pytest.mark.parametrize("group", [0x03, 0x07, 0x21, 0x00])
def test_a_class_without_an_agent(bench: PortsBench, group: int) -> None:
    mad = list(datagram(1, group=group))
    assert bench.refusal(Opcode.MAD_IFC, port=1, mad=mad) is syndromes.BAD_MAD_CLASS


@pytest.mark.parametrize("port", [0, 2])
def test_another_port(bench: PortsBench, port: int) -> None:
    assert bench.refusal(Opcode.MAD_IFC, port=port, mad=list(datagram(NODE_INFO))) is syndromes.NO_SUCH_PORT


def test_an_ethernet_port(bench: PortsBench) -> None:
    mad = list(datagram(NODE_INFO))
    assert PortsBench(ETH).refusal(Opcode.MAD_IFC, port=1, mad=mad) is syndromes.NOT_INFINIBAND


def test_when_and_how() -> None:
    entry = COMMANDS[Opcode.MAD_IFC]
    assert entry.stages == {Stage.INITIALIZED}
    assert entry.op_mods == frozenset({0, 1, 2, 3})
    assert Smp.SIZE == 256
