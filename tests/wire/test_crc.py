"""Both CRCs against captured packets, scapy and a bit-by-bit computation."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Raw

from softhca.wire.crc import icrc_global, icrc_local, icrc_rocev2, vcrc
from tests.wire import captured


def remainder(data: bytes | bytearray, polynomial: int, width: int) -> bytes:
    """The CRC as chapter 7.8 words it: one shift a bit, most significant coefficient first, both ends inverted."""
    ones = (1 << width) - 1
    register = ones
    for byte in data:
        for bit in range(8):
            top = register >> (width - 1) ^ byte >> bit & 1
            register = register << 1 & ones ^ (polynomial if top else 0)
    out = bytearray(width // 8)
    for bit in range(width):
        out[bit // 8] |= ((register ^ ones) >> (width - 1 - bit) & 1) << bit % 8
    return bytes(out)


@pytest.mark.parametrize("packet", captured.WHOLE, ids=range(len(captured.WHOLE)))
def test_captured_packets(packet: bytes) -> None:
    assert vcrc(packet[:-2]) == packet[-2:]
    has_grh = packet[1] & 3 == 3
    assert (icrc_global(packet[8:-6]) if has_grh else icrc_local(packet[:-6])) == packet[-6:-2]


def test_the_example_of_the_standard() -> None:
    assert icrc_local(captured.IBTA_LOCAL) == captured.IBTA_LOCAL_ICRC


def test_captured_rocev2_packets() -> None:
    assert icrc_rocev2(captured.ROCE_UC_SEND) == captured.ROCE_UC_SEND_ICRC
    assert icrc_rocev2(captured.ROCE_CNP) == captured.ROCE_CNP_ICRC


@settings(deadline=None)
@given(st.binary(min_size=2, max_size=400))
def test_vcrc_bit_by_bit(data: bytes) -> None:
    assert vcrc(data) == remainder(data, 0x100B, 16)


@pytest.mark.parametrize("length", [47, 58, 59, 60, 105, 106, 107, 211, 1024, 4158, 8188])
def test_vcrc_of_long_packets(length: int) -> None:
    data = bytes(i * i + i >> 3 & 0xFF for i in range(length))
    assert vcrc(data) == remainder(data, 0x100B, 16)
    assert vcrc(bytes(length)) == remainder(bytes(length), 0x100B, 16)


@settings(deadline=None)
@given(st.binary(min_size=20, max_size=200))
def test_icrc_bit_by_bit(packet: bytes) -> None:
    masked = bytearray(packet)
    masked[0] |= 0xF0
    masked[12] = 0xFF
    assert icrc_local(packet) == remainder(masked, 0x04C11DB7, 32)


@settings(deadline=None)
@given(st.binary(min_size=52, max_size=200))
def test_icrc_with_grh_bit_by_bit(packet: bytes) -> None:
    masked = bytearray(packet)
    masked[0] |= 0x0F
    masked[1:4] = b"\xff" * 3
    masked[7] = 0xFF
    masked[44] = 0xFF
    assert icrc_global(packet) == remainder(b"\xff" * 8 + masked, 0x04C11DB7, 32)


@settings(deadline=None, max_examples=40)
@given(st.binary(max_size=64), st.integers(0, 255), st.integers(0, 0xFFFFFF), st.booleans())
def test_rocev2_by_scapy(payload: bytes, tos: int, psn: int, newer: bool) -> None:
    payload += bytes(-len(payload) % 4)
    ip = IPv6(src="fd00::1", dst="fd00::2", tc=tos, fl=77) if newer else IP(src="10.0.0.1", dst="10.0.0.2", tos=tos)
    packet = bytes(ip / UDP(sport=49152, dport=4791) / BTH(opcode=0x24, dqpn=17, psn=psn, fecn=1) / Raw(payload))
    assert icrc_rocev2(packet[:-4]) == packet[-4:]


def test_rocev2_needs_ip() -> None:
    with pytest.raises(ValueError, match="IP version is 5, allowed are 4 and 6"):
        icrc_rocev2(b"\x50" + bytes(60))
