"""The performance management agent, by the bytes of the InfiniBand specification."""

from __future__ import annotations

import struct

import pytest

from softhca.prm.cqe import CqeOpcode
from softhca.prm.opcodes import Opcode
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import Bench, inline
from tests.hca.test_datagram import GSI_QKEY, av, datagram_qp
from tests.hca.test_fabric import Client, benches

GET, SET, GET_RESP = 0x01, 0x02, 0x81
CLASS_PORT_INFO, PORT_COUNTERS, EXTENDED = 0x01, 0x12, 0x1D


def query(attribute: int, *, method: int = GET, port: int = 1, select: int = 0) -> bytes:
    head = struct.pack(">BBBBHHQHHI", 1, 4, 1, method, 0, 0, 0x77, attribute, 0, 0)
    return (head.ljust(64, b"\0") + struct.pack(">BBH", 0, port, select)).ljust(256, b"\0")


def busy(bench: Bench) -> None:
    """Traffic of a known size from and to the port: 4 packets, one of them to a group."""
    cq = bench.cq()
    queue = datagram_qp(bench, cq)
    for _ in range(3):
        queue.post(WqeOpcode.SEND, av(0x999), inline(b"x" * 100))
    gid = b"\xff" + bytes(15)
    queue.post(WqeOpcode.SEND, av(0xFF_FFFF, lid=0xC005, gid=gid), inline(b"x" * 100))


def ask(bench: Bench, mad: bytes) -> bytes:
    return bytes(bench.call(Opcode.MAD_IFC, op_mod=3, port=1, mad=list(mad)))[16:272]


@pytest.mark.requirement("E5")
def test_class_port_info() -> None:
    answer = ask(Bench(), query(CLASS_PORT_INFO))
    assert (answer[3], answer[4:6]) == (GET_RESP, b"\0\0")
    assert answer[64:72] == bytes((1, 1, 0x02, 0x00, 0, 0, 0, 18))


@pytest.mark.requirement("E5")
def test_counters_and_their_reset() -> None:
    bench = Bench()
    busy(bench)
    unicast, group = 132, 172  # LRH, BTH, DETH, 100 bytes, ICRC; and a GRH
    answer = ask(bench, query(PORT_COUNTERS, port=0xFF))
    words = (3 * unicast + group) // 4
    assert answer[64:68] == b"\0\xff\0\0"
    assert struct.unpack(">IIIII", answer[88:108]) == (words, 3 * unicast // 4, 4, 3, 0)
    assert not any(answer[68:88])
    long = struct.unpack(">8Q", ask(bench, query(EXTENDED))[72:136])
    assert long == (words, 3 * unicast // 4, 4, 3, 3, 3, 1, 0)
    answer = ask(bench, query(PORT_COUNTERS, method=SET, select=0x1000))
    assert struct.unpack(">IIII", answer[88:104]) == (0, 3 * unicast // 4, 0, 3)
    assert struct.unpack(">8Q", ask(bench, query(EXTENDED, method=SET, select=0x0A))[72:136]) == (0,) * 8


@pytest.mark.parametrize(
    ("mad", "status"),
    [
        (query(0x10), 0x0C),
        (query(CLASS_PORT_INFO, method=SET), 0x0C),
        (query(PORT_COUNTERS, port=2), 0x1C),
        (b"\2" + query(PORT_COUNTERS)[1:], 0x04),
    ],
)
def test_what_the_agent_does_not_do(mad: bytes, status: int) -> None:
    assert int.from_bytes(ask(Bench(), mad)[4:6], "big") == status


@pytest.mark.requirement("E5", "G5")
def test_the_agent_of_another_port_answers_without_its_host() -> None:
    _, (here, there) = benches(2)
    busy(there)
    client = Client(here)
    client.send(query(EXTENDED), lid=2)
    cqe = client.cq.good(CqeOpcode.RESP_SEND)
    assert (cqe.slid, cqe.byte_cnt, cqe.flags_rqpn & 0xFF_FFFF) == (2, 296, 1)
    answer = bytes(client.memory.view[40:296])
    assert (answer[3], answer[8:16]) == (GET_RESP, (0x77).to_bytes(8, "big"))
    assert int.from_bytes(answer[64 + 24 : 64 + 32], "big") == 4


def test_what_is_not_for_the_agent_goes_to_the_host() -> None:
    _, (here, there) = benches(2)
    client, host = Client(here), Client(there)
    for mad in (
        query(CLASS_PORT_INFO, method=GET_RESP),
        b"\1\x32" + query(CLASS_PORT_INFO)[2:],
        query(CLASS_PORT_INFO)[:100],
    ):
        host.queue.receive((host.key, host.memory.iova, 512))
        client.send(mad, lid=2, qkey=GSI_QKEY)
        assert client.cq.poll() is None
        assert host.cq.good(CqeOpcode.RESP_SEND)
