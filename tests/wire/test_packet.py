"""Packets against captured bytes, round trips, and hostile bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softhca.prm.ib_packet import BARE, EXTENDED_HEADERS, Aeth, Bth, BthOpcode, Deth, Grh, ImmDt, Lnh, Lrh, Reth
from softhca.prm.layout import Layout
from softhca.wire.crc import icrc_local, vcrc
from softhca.wire.packet import CrcError, Packet, PacketError
from tests.wire import captured


def test_parse_an_acknowledge() -> None:
    packet = Packet.parse(captured.IB_RC_ACKNOWLEDGE)
    assert packet.opcode is BthOpcode.RC_ACKNOWLEDGE
    assert (packet.lrh.source_lid, packet.lrh.destination_lid, packet.lrh.packet_length) == (1, 4, 7)
    assert (packet.bth.destination_qpn, packet.bth.psn, packet.bth.migration_request) == (0x870408, 0xD40A55, 1)
    aeth = packet.aeth
    assert aeth is not None
    assert (aeth.syndrome, aeth.msn) == (0x1F, 1)
    assert packet.payload == b""
    assert (packet.grh, packet.deth, packet.reth, packet.xrceth, packet.atomic_eth) == (None,) * 5
    assert (packet.atomic_ack_eth, packet.immediate, packet.invalidate_rkey) == (None,) * 3


def test_parse_a_multicast_datagram() -> None:
    packet = Packet.parse(captured.IB_ARP_MULTICAST)
    assert packet.opcode is BthOpcode.UD_SEND_ONLY
    assert packet.grh is not None
    assert packet.grh.destination_gid.hex() == "ff12401bffff000000000000ffffffff"
    assert packet.deth is not None
    assert (packet.deth.qkey, packet.deth.source_qpn) == (0xB1B, 0x405)
    assert packet.payload[:2] == b"\x08\x06"
    assert len(packet.payload) == 60


def test_put_an_acknowledge_together() -> None:
    lrh = Lrh.new(destination_lid=4, source_lid=1)
    bth = Bth.new(
        opcode=BthOpcode.RC_ACKNOWLEDGE, migration_request=1, pkey=0xFFFF, destination_qpn=0x870408, psn=0xD40A55
    )
    assert Packet(lrh, bth, (Aeth.new(syndrome=0x1F, msn=1),)).build() == captured.IB_RC_ACKNOWLEDGE


@pytest.mark.parametrize("data", captured.WHOLE, ids=range(len(captured.WHOLE)))
def test_captured_packets_are_built_again(data: bytes) -> None:
    assert Packet.parse(data).build() == data


@pytest.mark.parametrize("data", captured.WHOLE, ids=range(len(captured.WHOLE)))
def test_truncated_at_every_byte(data: bytes) -> None:
    for length in range(len(data)):
        with pytest.raises(PacketError):
            Packet.parse(data[:length])


@pytest.mark.parametrize("opcode", [opcode for opcode in BthOpcode if EXTENDED_HEADERS[opcode]], ids=lambda x: x.name)
def test_extended_headers_cut_short(opcode: BthOpcode) -> None:
    headers = Lrh.pack(link_next_header=Lnh.IBA_LOCAL) + Bth.pack(opcode=opcode)
    for words in range(sum(kind.SIZE for kind in EXTENDED_HEADERS[opcode]) // 4):
        with pytest.raises(PacketError, match=r"do not fit before the CRCs at"):
            Packet.parse(finished(headers + bytes(words * 4)))


@pytest.mark.parametrize("data", captured.WHOLE, ids=range(len(captured.WHOLE)))
def test_every_damaged_byte_is_seen(data: bytes) -> None:
    for offset in range(len(data)):
        damaged = bytearray(data)
        damaged[offset] ^= 0x10
        with pytest.raises(PacketError):
            Packet.parse(damaged)


def test_a_wrong_icrc_behind_a_right_vcrc() -> None:
    data = bytearray(captured.IB_RC_ACKNOWLEDGE)
    data[-3] ^= 1
    data[-2:] = vcrc(data[:-2])
    with pytest.raises(CrcError, match=r"^ICRC: a8035551 given, a8035550 is right$"):
        Packet.parse(data)


def test_a_wrong_vcrc() -> None:
    with pytest.raises(CrcError, match=r"^VCRC: 3080 given, 3081 is right$"):
        Packet.parse(captured.IB_RC_ACKNOWLEDGE[:-1] + b"\x80")


def finished(body: bytes | bytearray) -> bytes:
    """A local packet with right CRCs and length around these bytes."""
    out = bytearray(body)
    Lrh(out).packet_length = len(out) // 4 + 1
    out += icrc_local(out)
    return bytes(out + vcrc(out))


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (0, 0x11, r"LRH.link_version: 1 given, 0 allowed"),
        (1, 0x01, r"LRH.link_next_header: 1 given, allowed are 2 and 3"),
        (8, 0x15, r"BTH.opcode: 0x15 is none of RC, UC, UD, XRC and CNP"),
        (8, 0x44, r"BTH.opcode: 0x44"),
        (9, 0x01, r"BTH.transport_header_version: 1 given, 0 allowed"),
        (9, 0x20, r"RC_ACKNOWLEDGE|BTH.pad_count: 2 with 0 bytes"),
        (8, 0x13, r"atomic_eth: 28 bytes at 20 do not fit before the CRCs at 24"),
    ],
)
def test_fields_that_no_packet_has(offset: int, value: int, message: str) -> None:
    body = bytearray(captured.IB_RC_ACKNOWLEDGE[:-6])
    body[offset] = value
    with pytest.raises(PacketError, match=message):
        Packet.parse(finished(body))


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (8, 0x40, "GRH.ip_version: 4 given, 6 allowed"),
        (14, 0x11, "GRH.next_header: 0x11 given, 0x1b allowed"),
        (13, 0x50, "GRH.payload_length: 80 bytes, but 84 follow"),
    ],
)
def test_fields_that_no_grh_has(offset: int, value: int, message: str) -> None:
    data = bytearray(captured.IB_ARP_MULTICAST)
    data[offset] = value
    with pytest.raises(PacketError, match=message):
        Packet.parse(data)


def test_a_payload_where_none_may_be() -> None:
    with pytest.raises(PacketError, match="RC_ACKNOWLEDGE: a payload of 4 bytes, none allowed"):
        Packet.parse(finished(captured.IB_RC_ACKNOWLEDGE[:-6] + bytes(4)))
    bth = Bth.new(opcode=BthOpcode.RC_ACKNOWLEDGE)
    with pytest.raises(PacketError, match="RC_ACKNOWLEDGE: a payload of 1 bytes given, none allowed"):
        Packet(Lrh.new(), bth, (Aeth.new(),), b"x").build()


def test_headers_must_be_those_of_the_opcode() -> None:
    bth = Bth.new(opcode=BthOpcode.RC_WRITE_ONLY_IMM)
    with pytest.raises(
        PacketError, match=r"RC_WRITE_ONLY_IMM: extended headers \['imm_dt'\] given, \['reth', 'imm_dt'\]"
    ):
        Packet(Lrh.new(), bth, (ImmDt.new(),))
    with pytest.raises(PacketError, match="0xff"):
        Packet(Lrh.new(), Bth.new(opcode=0xFF))


def test_a_packet_has_a_greatest_length() -> None:
    bth = Bth.new(opcode=BthOpcode.RC_SEND_ONLY)
    longest = 2047 * 4 - 24
    assert len(Packet(Lrh.new(), bth, (), bytes(longest)).build()) == 2047 * 4 + 2
    with pytest.raises(PacketError, match=r"LRH.packet_length: 2048 words, 2047 at most"):
        Packet(Lrh.new(), bth, (), bytes(longest + 1)).build()


def test_building_changes_no_header() -> None:
    lrh, bth, grh = Lrh.new(), Bth.new(opcode=BthOpcode.RC_SEND_ONLY), Grh.new()
    Packet(lrh, bth, (), b"123", grh).build()
    assert (lrh.packet_length, bth.pad_count, grh.payload_length) == (0, 0, 0)


def filled(kind: type[Layout], data: st.DataObject) -> Layout:
    view = kind.new()
    mask = kind.declared_mask()
    view.assign((data.draw(st.integers(0, (1 << kind.SIZE * 8) - 1)) & mask).to_bytes(kind.SIZE, "big"))
    return view


@settings(deadline=None)
@given(st.data(), st.sampled_from(list(BthOpcode)), st.binary(max_size=300), st.booleans())
def test_round_trip(data: st.DataObject, opcode: BthOpcode, payload: bytes, global_: bool) -> None:
    lrh, bth = filled(Lrh, data), filled(Bth, data)
    assert isinstance(lrh, Lrh)
    assert isinstance(bth, Bth)
    lrh.link_version = bth.transport_header_version = 0
    bth.opcode = opcode
    grh = filled(Grh, data) if global_ else None
    assert grh is None or isinstance(grh, Grh)
    extended = tuple(filled(kind, data) for kind in EXTENDED_HEADERS[opcode])
    payload = b"" if opcode in BARE else payload
    built = Packet(lrh, bth, extended, payload, grh).build()
    parsed = Packet.parse(built)
    assert parsed.build() == built
    assert parsed.payload == payload
    assert parsed.bth.pad_count == -len(payload) % 4
    assert [bytes(header) for header in parsed.extended] == [bytes(header) for header in extended]
    assert (parsed.grh is None) == (grh is None)
    assert parsed.bth.psn == bth.psn


@settings(deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_bytes_at_random_never_raise_anything_else(data: bytes, finish: bool) -> None:
    body = data[: len(data) // 4 * 4]
    if finish and len(body) >= 20:
        body = bytes([body[0] & 0xF0, body[1] & 0xFC | 2]) + body[2:]
        data = finished(body)
    try:
        packet = Packet.parse(data)
    except PacketError:
        return
    assert len(packet.build()) == len(data)


def test_headers_by_kind() -> None:
    packet = Packet(
        Lrh.new(),
        Bth.new(opcode=BthOpcode.RC_WRITE_ONLY_IMM),
        (Reth.new(va=1 << 40, rkey=5, dma_length=3), ImmDt.new(immediate=0xAABBCCDD)),
        b"abc",
    )
    assert packet.reth is not None
    assert packet.reth.va == 1 << 40
    assert packet.immediate == 0xAABBCCDD
    assert packet.find(Deth) is None
