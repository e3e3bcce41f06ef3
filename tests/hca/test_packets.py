"""What a tap shows of the data path: the packets that the counters count, with numbers that the QPs really have."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from scapy.utils import RawPcapNgReader

from softhca.hca.fabric import Fabric
from softhca.prm.ib_packet import AckKind, Aeth, BthOpcode, NakCode, syndrome
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import RqType, ServiceType
from softhca.prm.wqe import WqeOpcode
from softhca.wire.packet import Packet
from softhca.wire.pcapng import LinkType, PcapngWriter
from softhca.wire.tap import Tap
from tests.hca.bench import Bench, Queue, data, remote
from tests.hca.test_datagram import GROUP, MULTICAST_LID, av, datagram_qp
from tests.hca.test_xrc import xrc, xrc_pool
from tests.wire.test_pcapng import TSHARK

SIZES = (0, 1, 3, 64, 255, 256, 257, 1030)
"""At a path MTU of 256 bytes."""
_ERF_HEADER = 16


class Wire:
    """A card whose port has a tap."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bench = Bench()
        self.writer = PcapngWriter(path, link_type=LinkType.ERF)
        self.bench.card.port.tap = Tap(self.writer, "port", self.bench.card.engine.clock.now)
        self.memory = self.bench.memory(1 << 14)
        self.memory.view[:] = bytes(i * 7 & 0xFF for i in range(1 << 14))
        self.key = self.bench.mkey(self.memory, a=1)

    def pair(self, st: ServiceType = ServiceType.RC) -> tuple[Queue, Queue]:
        bench = self.bench
        left, right = (bench.qp(bench.cq(), log_sq=8, st=st) for _ in range(2))
        self.connect(left, right)
        return left, right

    def connect(self, left: Queue, right: Queue, **path: int) -> None:
        for queue, peer, psn in ((left, right, 0xFFFFFE), (right, left, 0x100)):
            self.bench.to_init(queue, rae=1)
            self.bench.to_rtr(queue, peer.number, mtu=1, next_rcv_psn=0xFFFFFE + 0x102 - psn & 0xFFFFFF)
            self.bench.to_rts(queue, next_send_psn=psn)

    def close(self) -> list[Packet]:
        """All packets; both CRCs of each are right, tshark finds none malformed, and the counters agree."""
        self.writer.close()
        with RawPcapNgReader(str(self.path)) as reader:
            raw = [data[_ERF_HEADER:] for data, _ in reader]
        traffic = self.bench.card.port.traffic
        flows = (traffic.sent, traffic.multicast_sent)
        assert sum(flow.packets for flow in flows) == len(raw)
        assert sum(flow.octets for flow in flows) == sum(len(packet) - 2 for packet in raw)
        filters = "_ws.malformed or _ws.short or _ws.expert.severity >= 0x600000"
        command = [*TSHARK, "-r", str(self.path), "-Y", filters]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""
        return [Packet.parse(packet) for packet in raw]


@pytest.fixture
def wire(tmp_path: Path) -> Wire:
    return Wire(tmp_path / "wire.pcapng")


def aeth(packet: Packet) -> Aeth:
    assert packet.aeth is not None
    return packet.aeth


def names(packets: list[Packet]) -> list[str]:
    return [packet.opcode.name for packet in packets]


Post = Callable[[Wire, Queue, int], None]


def send(opcode: int) -> Post:
    def post(wire: Wire, queue: Queue, size: int) -> None:
        queue.post(opcode, data(wire.key, wire.memory.iova, size) if size else b"", flags=0x0A, immediate=0x1234)

    return post


def rdma(opcode: int) -> Post:
    def post(wire: Wire, queue: Queue, size: int) -> None:
        place = remote(wire.memory.iova + 8192, wire.key)
        queue.post(opcode, place, data(wire.key, wire.memory.iova, size) if size else b"", immediate=0x1234)

    return post


@pytest.mark.requirement("G5")
@pytest.mark.parametrize("st", [ServiceType.RC, ServiceType.UC], ids=["RC", "UC"])
def test_messages_at_eight_sizes(wire: Wire, st: ServiceType) -> None:
    left, right = wire.pair(st)
    posts = [send(WqeOpcode.SEND), send(WqeOpcode.SEND_IMM), rdma(WqeOpcode.RDMA_WRITE), rdma(WqeOpcode.RDMA_WRITE_IMM)]
    posts += [rdma(WqeOpcode.RDMA_READ)] if st is ServiceType.RC else []
    for post in posts:
        for size in SIZES:
            right.receive((wire.key, wire.memory.iova + 4096, 2048))
            post(wire, left, size)
            right.receives = right.receives if post in (posts[0], posts[1], posts[3]) else right.receives - 1
    packets = wire.close()
    psns = [packet.bth.psn for packet in packets if packet.bth.destination_qpn == right.number]
    requests = [packet for packet in packets if packet.bth.destination_qpn == right.number]
    expected = 0xFFFFFE
    for packet in requests:
        assert packet.bth.psn == expected & 0xFFFFFF
        reads = packet.opcode is BthOpcode.RC_READ_REQUEST and packet.reth is not None
        expected += max(1, -(-packet.reth.dma_length // 256)) if reads and packet.reth is not None else 1
    assert psns
    answers = [packet for packet in packets if packet.bth.destination_qpn == left.number]
    if st is ServiceType.UC:
        assert answers == []
        return
    assert [aeth(packet).msn for packet in answers if packet.opcode is BthOpcode.RC_ACKNOWLEDGE] == list(range(1, 33))
    responses = [packet.payload for packet in answers if "READ_RESPONSE" in packet.opcode.name]
    assert sum(map(len, responses)) == sum(SIZES)
    solicited = [packet.opcode.name for packet in requests if packet.bth.solicited_event]
    assert {name.removesuffix("_IMM") for name in solicited} == {"RC_SEND_ONLY", "RC_SEND_LAST"}


@pytest.mark.requirement("G5")
@pytest.mark.parametrize(
    ("opcode", "operands", "request_name"),
    [
        (WqeOpcode.ATOMIC_CS, (5, 6), "RC_COMPARE_SWAP"),
        (WqeOpcode.ATOMIC_FA, (5, 0), "RC_FETCH_ADD"),
        (WqeOpcode.ATOMIC_MASKED_CS, (5, 6, 7, 8), "MASKED_COMPARE_SWAP"),
        (WqeOpcode.ATOMIC_MASKED_FA, (5, 1 << 63), "MASKED_FETCH_ADD"),
    ],
)
def test_atomics(wire: Wire, opcode: int, operands: tuple[int, ...], request_name: str) -> None:
    left, _ = wire.pair()
    place = wire.memory.iova + 4096
    found = int.from_bytes(wire.memory.view[4096:4104], "little")
    operand = struct.pack(f">{len(operands)}Q", *operands)
    left.post(opcode, remote(place, wire.key), operand, data(wire.key, wire.memory.iova, 8))
    request, answer = wire.close()
    assert names([request, answer]) == [request_name, "RC_ATOMIC_ACKNOWLEDGE"]
    assert answer.atomic_ack_eth is not None
    assert answer.atomic_ack_eth.original_remote_data == found
    assert (answer.bth.psn, aeth(answer).msn) == (request.bth.psn, 1)


def test_a_receiver_that_is_not_ready(wire: Wire) -> None:
    left, right = wire.pair()
    send(WqeOpcode.SEND)(wire, left, 300)
    right.receive((wire.key, wire.memory.iova + 4096, 2048))
    wire.bench.wait(10_000_000)
    packets = wire.close()
    first = ["RC_SEND_FIRST", "RC_SEND_LAST", "RC_ACKNOWLEDGE"]
    assert names(packets) == first * 2
    assert (aeth(packets[2]).syndrome, packets[2].bth.psn, aeth(packets[2]).msn) == (
        syndrome(AckKind.RNR_NAK, 12), 0xFFFFFE, 0,
    )  # fmt: skip
    assert (aeth(packets[5]).syndrome, packets[5].bth.psn, aeth(packets[5]).msn) == (0, 0xFFFFFF, 1)


@pytest.mark.parametrize(
    ("post", "code"),
    [
        (lambda wire, queue: queue.post(WqeOpcode.RDMA_WRITE, remote(0, 0x77), data(wire.key, wire.memory.iova, 8)),
         NakCode.REMOTE_ACCESS_ERROR),
        (lambda wire, queue: send(WqeOpcode.SEND)(wire, queue, 1030), NakCode.INVALID_REQUEST),
    ],
)  # fmt: skip
def test_refusals(wire: Wire, post: Callable[[Wire, Queue], None], code: NakCode) -> None:
    left, right = wire.pair()
    right.receive((wire.key, wire.memory.iova + 4096, 100))
    post(wire, left)
    packets = wire.close()
    assert aeth(packets[-1]).syndrome == syndrome(AckKind.NAK, code)
    assert packets[-1].bth.psn == 0xFFFFFE


def test_credits_are_receive_wqes(wire: Wire) -> None:
    left, right = wire.pair()
    for _ in range(6):
        right.receive((wire.key, wire.memory.iova + 4096, 2048))
    send(WqeOpcode.SEND)(wire, left, 8)
    send(WqeOpcode.SEND)(wire, left, 8)
    assert [aeth(packet).syndrome for packet in wire.close()[1::2]] == [4, 4]  # 5 and 4 are left; 4 tells of both


def test_xrc_names_its_srq(wire: Wire) -> None:
    bench = wire.bench
    xrcd = bench.call(Opcode.ALLOC_XRCD).xrcd
    pool = xrc_pool(bench, xrcd, bench.pd, bench.cq())
    pool.post(0, wire.key, wire.memory.iova + 4096, 2048)
    left = bench.qp(bench.cq(), st=ServiceType.XRC, xrcd=xrcd, rq_type=RqType.ZERO_LEN_RQ)
    right = bench.qp(
        bench.cq(),
        st=ServiceType.XRC,
        xrcd=xrcd,
        rq_type=RqType.SRQ_RQ,
        srqn_rmpn_xrqn=pool.number,
        no_sq=1,
        uar_page=0,
    )
    wire.connect(left, right)
    left.post(WqeOpcode.SEND, xrc(pool.number), data(wire.key, wire.memory.iova, 300))
    left.post(WqeOpcode.SEND, xrc(0x77), data(wire.key, wire.memory.iova, 3))
    packets = wire.close()
    assert names(packets) == ["XRC_SEND_FIRST", "XRC_SEND_LAST", "XRC_ACKNOWLEDGE", "XRC_SEND_ONLY", "XRC_ACKNOWLEDGE"]
    assert [packet.xrceth and packet.xrceth.xrc_srqn for packet in packets] == [pool.number] * 2 + [None, 0x77, None]
    assert [aeth(packets[at]).syndrome for at in (2, 4)] == [0x1F, syndrome(AckKind.NAK, NakCode.INVALID_REQUEST)]


@pytest.mark.requirement("G5")
@pytest.mark.parametrize("opcode", [WqeOpcode.SEND, WqeOpcode.SEND_IMM])
def test_datagrams_at_eight_sizes(wire: Wire, opcode: int) -> None:
    bench = wire.bench
    queue = datagram_qp(bench, bench.cq(), log_sq=6)
    gid = bench.card.port.gid(0)
    for size in SIZES:
        for route in (None, gid):
            queue.post(
                opcode, av(queue.number, gid=route, level=5), data(wire.key, wire.memory.iova, size) if size else b""
            )
    queue.post(opcode, av(0xFFFFFF, lid=MULTICAST_LID, gid=GROUP), data(wire.key, wire.memory.iova, 9))
    packets = wire.close()
    assert [packet.bth.psn for packet in packets] == list(range(17))
    assert [packet.grh is not None for packet in packets] == [False, True] * 8 + [True]
    lanes = bench.card.port.figures.vl_hw_cap
    assert {(p.lrh.service_level, p.lrh.virtual_lane) for p in packets[:16]} == {(5, 5 % lanes)}
    assert packets[-1].lrh.destination_lid == MULTICAST_LID
    assert packets[0].deth is not None
    assert packets[0].deth.source_qpn == queue.number


def test_a_port_without_a_tap_is_seen_by_the_one_that_has_it(tmp_path: Path) -> None:
    fabric = Fabric()
    here = Bench(fabric=fabric)
    there = Bench(fabric=fabric, engine=here.card.engine)
    path = tmp_path / "one.pcapng"
    with PcapngWriter(path, link_type=LinkType.ERF) as writer:
        there.card.port.tap = Tap(writer, "there", there.card.engine.clock.now)
        sender, receiver = datagram_qp(here, here.cq()), datagram_qp(there, there.cq())
        sender.post(WqeOpcode.SEND, av(receiver.number, lid=there.card.port.lid))
        sender.post(WqeOpcode.SEND, av(receiver.number, lid=0x99))
        assert writer.written == 1
