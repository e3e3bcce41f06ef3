"""The two checksums of a packet (InfiniBand Architecture Specification, volume 1, 7.8; RoCEv2: annex A17).

Both functions of a packet return the bytes as they stand on the wire.
"""

from __future__ import annotations

from itertools import accumulate, repeat
from zlib import crc32

from softhca.prm.ib_packet import Grh, Lrh
from softhca.prm.layout import Buffer

_BTH_VARIANT = 4
"""Offset in the BTH of the byte that switches may change (FECN, BECN, reserved)."""

_LRH_OF_ONES = b"\xff" * Lrh.SIZE

_UDP_CHECKSUM = slice(6, 8)


def icrc_local(packet: Buffer) -> bytes:
    """ICRC of a packet without GRH (7.8.1).

    Args:
        packet: from the LRH to the end of the padding.
    """
    return _icrc(_ones(packet[: Lrh.SIZE + 5], {0: 0xF0, Lrh.SIZE + _BTH_VARIANT: 0xFF}), b"", packet[Lrh.SIZE + 5 :])


def icrc_global(packet: Buffer) -> bytes:
    """ICRC of a packet with GRH, which does not cover the LRH (7.8.1).

    Args:
        packet: from the GRH to the end of the padding.
    """
    covered = Grh.SIZE + _BTH_VARIANT + 1
    masks = {0: 0x0F, 1: 0xFF, 2: 0xFF, 3: 0xFF, 7: 0xFF, Grh.SIZE + _BTH_VARIANT: 0xFF}
    return _icrc(_LRH_OF_ONES, _ones(packet[:covered], masks), packet[covered:])


def icrc_rocev2(packet: Buffer) -> bytes:
    """ICRC of a RoCEv2 packet (annex A17.3.3).

    Args:
        packet: from the IPv4 or IPv6 header to the end of the padding.

    Raises:
        ValueError: neither IPv4 nor IPv6.
    """
    version = packet[0] >> 4
    if version == 4:
        header = (packet[0] & 0xF) * 4
        masks = dict.fromkeys((1, 8, 10, 11), 0xFF)
    elif version == 6:
        header = 40
        masks = {0: 0x0F, 1: 0xFF, 2: 0xFF, 3: 0xFF, 7: 0xFF}
    else:
        raise ValueError(f"RoCEv2 packet: IP version is {version}, allowed are 4 and 6")
    masks |= dict.fromkeys(range(header + _UDP_CHECKSUM.start, header + _UDP_CHECKSUM.stop), 0xFF)
    bth = header + 8
    masks[bth + _BTH_VARIANT] = 0xFF
    covered = bth + _BTH_VARIANT + 1
    return _icrc(_LRH_OF_ONES, _ones(packet[:covered], masks), packet[covered:])


def _ones(header: Buffer, masks: dict[int, int]) -> bytearray:
    """A copy of the header with the fields that may change on the way set to ones."""
    copy = bytearray(header)
    for offset, mask in masks.items():
        copy[offset] |= mask
    return copy


def _icrc(link: Buffer, headers: Buffer, rest: Buffer) -> bytes:
    return crc32(rest, crc32(headers, crc32(link))).to_bytes(4, "little")


_POLYNOMIAL = 0xD008
"""x**16 + x**12 + x**3 + x + 1 (0x100B), least significant bit first (7.8.2)."""


def _step(register: int, _: object) -> int:
    return register >> 1 ^ (_POLYNOMIAL if register & 1 else 0)


_TABLE = tuple(list(accumulate(repeat(None, 8), _step, initial=byte))[-1] for byte in range(256))

_DEGREE, _MIDDLE = 469, 93
"""x**469 + x**93 + 1 is a multiple of the VCRC's polynomial; so is its square, which has three terms too."""

_LEVELS = tuple((_DEGREE << level, (_DEGREE - _MIDDLE) << level) for level in range(10, -1, -1))


def vcrc(packet: Buffer) -> bytes:
    """VCRC (7.8.2).

    The sum of a long packet is that of a shorter one, which a few shifts of a long integer find: its first bits can be
    cancelled by adding a multiple of the polynomial that has few terms.

    Args:
        packet: from the LRH to the ICRC, it included; 2 bytes or more.
    """
    value = int.from_bytes(packet, "little") ^ 0xFFFF
    length = len(packet) * 8 + 16
    for degree, most in _LEVELS:
        while (cancelled := min(most, (length - degree) & ~7)) > 0 and (cancelled == most or degree == _DEGREE):
            first = value & ((1 << cancelled) - 1)
            value = (value ^ first << most ^ first << degree) >> cancelled
            length -= cancelled
    register = 0
    for byte in value.to_bytes(length // 8, "little")[:-2]:
        register = register >> 8 ^ _TABLE[(register ^ byte) & 0xFF]
    return (register ^ value >> (length - 16) ^ 0xFFFF).to_bytes(2, "little")
