"""Traffic counters: the packets that messages are, in QUERY_VPORT_COUNTER and in PPCNT."""

from __future__ import annotations

from typing import Any

import pytest

from softhca.hca.errors import CommandError
from softhca.hca.port import Port
from softhca.hca.traffic import Traffic, count_datagram, read_ppcnt
from softhca.prm.opcodes import Opcode
from softhca.prm.ppcnt import IbExtPortCntrsGrpDataLayout, PpcntReg
from softhca.prm.syndromes import ports, queues
from softhca.prm.syndromes.table import Syndrome
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import Bench, Queue, data, remote

BASE, ACK = 24, 28


@pytest.fixture
def bench() -> Bench:
    return Bench()


def vport(bench: Bench, **fields: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    """Packets and octets that were sent, and that were received."""
    reply = bench.call(Opcode.QUERY_VPORT_COUNTER, **fields)
    sent, received = reply.transmitted_ib_unicast, reply.received_ib_unicast
    return (sent.packets, sent.octets), (received.packets, received.octets)


def loop(bench: Bench) -> tuple[Queue, int, int]:
    """A QP that is its own peer, and a key with its address."""
    queue = bench.qp(bench.cq())
    bench.connect(queue, queue)
    memory = bench.memory(1 << 16)
    return queue, bench.mkey(memory), memory.iova


@pytest.mark.requirement("C11")
@pytest.mark.parametrize(
    ("opcode", "length", "packets", "octets"),
    [
        (WqeOpcode.RDMA_WRITE, 1, 2, BASE + 16 + 4 + ACK),
        (WqeOpcode.RDMA_WRITE, 4096, 2, BASE + 16 + 4096 + ACK),
        (WqeOpcode.RDMA_WRITE, 4097, 3, 2 * BASE + 16 + 4100 + ACK),
        (WqeOpcode.RDMA_WRITE_IMM, 8, 2, BASE + 20 + 8 + ACK),
        (WqeOpcode.RDMA_READ, 8, 2, BASE + 16 + ACK + 8),
        (WqeOpcode.RDMA_READ, 8193, 4, BASE + 16 + 3 * BASE + 8 + 8196),
    ],
)
def test_a_message_counts_as_its_packets(bench: Bench, opcode: int, length: int, packets: int, octets: int) -> None:
    queue, key, address = loop(bench)
    queue.receive((key, address, length))
    queue.post(opcode, remote(address, key), data(key, address, length))
    assert vport(bench) == ((packets, octets), (packets, octets))


@pytest.mark.requirement("C11")
@pytest.mark.parametrize(("opcode", "operands"), [(WqeOpcode.ATOMIC_CS, 28), (WqeOpcode.ATOMIC_FA, 28)])
def test_an_atomic_counts_as_two_packets(bench: Bench, opcode: int, operands: int) -> None:
    queue = bench.qp(bench.cq())
    bench.to_init(queue, rae=1)
    bench.to_rtr(queue, queue.number)
    bench.to_rts(queue)
    memory = bench.memory(4096)
    key = bench.mkey(memory, a=1)
    queue.post(opcode, remote(memory.iova, key), bytes(16), data(key, memory.iova + 8, 8))
    packets = (2, BASE + operands + ACK + 8)
    assert vport(bench) == (packets, packets)
    assert bench.call(Opcode.QUERY_Q_COUNTER).rx_atomic_requests == 1


@pytest.mark.requirement("C11")
def test_a_send_and_its_retries(bench: Bench) -> None:
    queue, key, address = loop(bench)
    queue.post(WqeOpcode.SEND, data(key, address, 4))
    refused = (2, BASE + 4 + ACK)
    assert vport(bench) == (refused, refused)
    queue.receive((key, address, 4))
    bench.wait(10_000_000)
    assert vport(bench)[0] == (4, 2 * (BASE + 4 + ACK))


def test_a_message_to_nobody_is_sent_and_not_received(bench: Bench) -> None:
    queue = bench.qp(bench.cq())
    bench.to_init(queue)
    bench.to_rtr(queue, 0x9999)
    bench.to_rts(queue)
    queue.post(WqeOpcode.SEND)
    assert vport(bench) == ((1, BASE), (0, 0))


def test_clearing_the_vport_leaves_the_port(bench: Bench) -> None:
    queue, key, address = loop(bench)
    queue.post(WqeOpcode.RDMA_WRITE, remote(address, key), data(key, address, 4))
    assert vport(bench, clear=1)[0][0] == 2
    assert vport(bench) == ((0, 0), (0, 0))
    assert ppcnt(bench.card.port).port_xmit_pkts_low == 2


def ppcnt(port: Port, **fields: int) -> IbExtPortCntrsGrpDataLayout:
    register = PpcntReg.new(**({"local_port": 1, "grp": 0x21} | fields))
    read_ppcnt(port, register)
    return IbExtPortCntrsGrpDataLayout(bytearray(bytes(register)[8:]))


@pytest.mark.requirement("E5")
def test_ppcnt_sums_unicast_and_multicast_in_64_bits(bench: Bench) -> None:
    port = bench.card.port
    port.traffic.sent.octets = 1 << 40
    count_datagram(port, [port, port], 5, grh=True, multicast=True)
    count_datagram(port, [port], 5, grh=False)
    octets = BASE + 8 + 8
    counters = ppcnt(port)
    assert counters.port_xmit_data_high << 32 | counters.port_xmit_data_low == (1 << 40) + 2 * octets + 40
    assert (counters.port_xmit_pkts_low, counters.port_rcv_pkts_low) == (2, 3)
    assert (counters.port_unicast_xmit_pkts_low, counters.port_multicast_rcv_pkts_low) == (1, 2)
    assert not any(bytes(ppcnt(port, grp=0x20)))
    ppcnt(port, clr=1)
    assert ppcnt(port).port_xmit_pkts_low == 0


@pytest.mark.requirement("E5")
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"local_port": 2}, ports.BAD_LOCAL_PORT),
        ({"plane_ind": 1}, ports.BAD_PLANE),
        ({"grp": 0}, queues.PPCNT_GROUP),
    ],
)
def test_what_ppcnt_refuses(bench: Bench, fields: dict[str, int], expected: Syndrome) -> None:
    with pytest.raises(CommandError) as refusal:
        ppcnt(bench.card.port, **fields)
    assert refusal.value.syndrome is expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({"other_vport": 1, "vport_number": 1}, ports.NO_SUCH_VPORT), ({"port_num": 2}, queues.VPORT_COUNTER_PORT)],
)
def test_other_vports_and_ports_are_refused(bench: Bench, fields: dict[str, int], expected: Syndrome) -> None:
    with pytest.raises(CommandError) as refusal:
        vport(bench, **fields)
    assert refusal.value.syndrome is expected


def test_a_reset_forgets(bench: Bench) -> None:
    count_datagram(bench.card.port, [], 5, grh=False)
    bench.card.port.reset()
    assert bench.card.port.traffic == Traffic()
