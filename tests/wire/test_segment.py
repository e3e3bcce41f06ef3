"""Messages as packets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softhca.prm.ib_packet import BARE, PSN_MASK, Transport
from softhca.prm.layout import LayoutError
from softhca.wire import segment
from softhca.wire.packet import Packet, PacketError
from softhca.wire.segment import MTUS, Flow, packet_count
from tests.wire.messages import flows, messages

RC = Flow(Transport.RC, destination_qpn=0x48, mtu=256)
UC = Flow(Transport.UC, destination_qpn=0x48, mtu=256)
UD = Flow(Transport.UD, destination_qpn=1, mtu=256, qkey=0x80010000, source_qpn=1)
XRC = Flow(Transport.XRC, destination_qpn=0x48, mtu=256, xrc_srqn=0x61)


def names(packets: list[Packet]) -> list[str]:
    return [packet.opcode.name for packet in packets]


@pytest.mark.requirement("G5")
@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (0, ["RC_SEND_ONLY_IMM"]),
        (256, ["RC_SEND_ONLY_IMM"]),
        (257, ["RC_SEND_FIRST", "RC_SEND_LAST_IMM"]),
        (1024, ["RC_SEND_FIRST", "RC_SEND_MIDDLE", "RC_SEND_MIDDLE", "RC_SEND_LAST_IMM"]),
    ],
)
def test_send_with_immediate(length: int, expected: list[str]) -> None:
    data = bytes(i & 0xFF for i in range(length))
    packets = list(segment.send(RC, 0xFFFFFF, data, immediate=5, solicited=True))
    assert names(packets) == expected
    assert b"".join(packet.payload for packet in packets) == data
    assert [packet.bth.psn for packet in packets] == [(0xFFFFFF + i) & PSN_MASK for i in range(len(packets))]
    for packet in packets[:-1]:
        assert (packet.bth.ack_request, packet.bth.solicited_event, packet.immediate) == (0, 0, None)
    assert (packets[-1].bth.ack_request, packets[-1].bth.solicited_event, packets[-1].immediate) == (1, 1, 5)


@pytest.mark.requirement("G5")
def test_write_names_its_place_once() -> None:
    packets = list(segment.write(XRC, 7, bytes(600), 1 << 40, 0x99, immediate=1))
    assert names(packets) == ["XRC_WRITE_FIRST", "XRC_WRITE_MIDDLE", "XRC_WRITE_LAST_IMM"]
    reth = packets[0].reth
    assert reth is not None
    assert (reth.va, reth.rkey, reth.dma_length) == (1 << 40, 0x99, 600)
    assert packets[1].reth is None
    assert packets[2].reth is None
    for packet in packets:
        assert packet.xrceth is not None
        assert packet.xrceth.xrc_srqn == 0x61


@pytest.mark.requirement("G5")
def test_write_of_one_packet() -> None:
    (packet,) = segment.write(UC, 7, b"abc", 4096, 0x99, immediate=1)
    assert packet.opcode.name == "UC_WRITE_ONLY_IMM"
    assert packet.reth is not None
    assert packet.immediate == 1
    assert packet.bth.ack_request == 0


def test_send_with_invalidate() -> None:
    first, last = segment.send(RC, 7, bytes(300), invalidate_rkey=0x99)
    assert (first.invalidate_rkey, last.invalidate_rkey) == (None, 0x99)
    assert last.opcode.name == "RC_SEND_LAST_INVALIDATE"


@pytest.mark.requirement("G5")
def test_a_read_and_its_response() -> None:
    request = segment.read_request(RC, 7, 4096, 0x99, 600)
    assert request.reth is not None
    assert request.reth.dma_length == 600
    packets = list(segment.read_response(RC, 7, bytes(600), msn=3))
    assert names(packets) == ["RC_READ_RESPONSE_FIRST", "RC_READ_RESPONSE_MIDDLE", "RC_READ_RESPONSE_LAST"]
    assert [packet.bth.psn for packet in packets] == [7, 8, 9]
    assert [packet.aeth is not None for packet in packets] == [True, False, True]
    (only,) = segment.read_response(XRC, 7, b"", msn=3)
    assert only.opcode.name == "XRC_READ_RESPONSE_ONLY"
    assert only.xrceth is None


def test_atomics() -> None:
    swap = segment.compare_swap(RC, 7, 8, 9, compare=10, swap=11).atomic_eth
    add = segment.fetch_add(RC, 7, 8, 9, 12).atomic_eth
    answer = segment.atomic_acknowledge(RC, 7, 13, msn=14)
    assert swap is not None
    assert add is not None
    assert answer.atomic_ack_eth is not None
    assert answer.aeth is not None
    assert (swap.va, swap.rkey, swap.compare_data, swap.swap_add_data) == (8, 9, 10, 11)
    assert (add.compare_data, add.swap_add_data) == (0, 12)
    assert (answer.atomic_ack_eth.original_remote_data, answer.aeth.msn) == (13, 14)


def test_a_datagram_is_one_packet() -> None:
    (packet,) = segment.send(UD, 7, bytes(256))
    assert packet.deth is not None
    assert (packet.deth.qkey, packet.deth.source_qpn, packet.bth.ack_request) == (0x80010000, 1, 0)
    with pytest.raises(PacketError, match="UD SEND: 257 bytes, the MTU is 256"):
        segment.send(UD, 7, bytes(257))


def test_what_a_transport_has_not() -> None:
    with pytest.raises(PacketError, match="UD: has no WRITE_ONLY"):
        list(segment.write(UD, 7, b"", 0, 0))
    with pytest.raises(PacketError, match="UC: has no READ_REQUEST"):
        segment.read_request(UC, 7, 0, 0, 1)
    with pytest.raises(PacketError, match="UC: has no SEND_ONLY_INVALIDATE"):
        list(segment.send(UC, 7, b"", invalidate_rkey=1))
    with pytest.raises(PacketError, match="one of them allowed"):
        segment.send(RC, 7, b"", immediate=1, invalidate_rkey=1)
    with pytest.raises(PacketError, match="RD given"):
        Flow(Transport.RD, 1)
    with pytest.raises(PacketError, match=r"Flow.mtu: 1500 given"):
        Flow(Transport.RC, 1, mtu=1500)
    with pytest.raises(PacketError, match="RDMA READ: 2147483649 bytes"):
        segment.read_request(RC, 7, 0, 0, (1 << 31) + 1)
    with pytest.raises(LayoutError, match="destination_qpn"):
        segment.acknowledge(Flow(Transport.RC, 1 << 24), 7, 1)


def test_no_more_than_asked_for_is_made() -> None:
    packets = segment.send(RC, 0, bytes(1 << 24))
    assert next(packets).opcode.name == "RC_SEND_FIRST"


@settings(deadline=None, max_examples=30)
@given(st.binary(max_size=1100), st.sampled_from(MTUS[:3]), st.integers(0, PSN_MASK))
def test_all_messages_survive_the_wire(data: bytes, mtu: int, psn: int) -> None:
    assert packet_count(len(data), mtu) == max(1, (len(data) + mtu - 1) // mtu)
    for flow in flows(mtu):
        for packet in messages(flow, data, psn):
            again = Packet.parse(packet.build())
            assert again.opcode is packet.opcode
            assert again.payload == packet.payload
            assert not again.payload or again.opcode not in BARE
            assert len(again.payload) <= mtu
            assert (again.bth.psn - psn & PSN_MASK) < packet_count(len(data), mtu)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=700), max_size=6))
def test_a_message_in_parts_is_the_same_message(parts: list[bytes]) -> None:
    whole = list(segment.write(RC, 7, b"".join(parts), 4096, 0x99))
    assert [packet.build() for packet in segment.write(RC, 7, parts, 4096, 0x99)] == [
        packet.build() for packet in whole
    ]
    assert [len(packet.payload) for packet in whole[:-1]] == [256] * (len(whole) - 1)


def test_masked_atomics_have_opcodes_of_a_manufacturer() -> None:
    swap = segment.masked_compare_swap(RC, 7, 8, 9, compare=1, swap=2, compare_mask=3, swap_mask=4)
    assert bytes(swap.extended[0]) == b"".join(
        number.to_bytes(size, "big") for number, size in ((8, 8), (9, 4), (2, 8), (1, 8), (4, 8), (3, 8))
    )
    assert swap.opcode == 0xD3
    add = segment.masked_fetch_add(XRC, 7, 8, 9, 12, boundary=1 << 63)
    assert (add.opcode, add.bth.ack_request) == (0xF4, 1)
    assert add.atomic_eth is not None
    assert (add.atomic_eth.swap_add_data, add.atomic_eth.compare_data) == (12, 1 << 63)
    with pytest.raises(PacketError, match="UC: has no MASKED_FETCH_ADD"):
        segment.masked_fetch_add(UC, 7, 8, 9, 12, 0)
