"""What the standard says of packets, by its own figures."""

from __future__ import annotations

import pytest

from softhca.prm.ib_packet import (
    ACK,
    BARE,
    EXTENDED_HEADERS,
    RNR_TIMER_NS,
    AckKind,
    BthOpcode,
    NakCode,
    Operation,
    Transport,
    syndrome,
    syndrome_kind,
)

MANUFACTURER = 0xC0
"""Opcodes from here on are left to manufacturers."""


def test_opcodes_are_named_by_their_two_parts() -> None:
    for opcode in BthOpcode:
        if opcode is BthOpcode.CNP or opcode >= MANUFACTURER:
            continue
        assert opcode.name == f"{Transport(opcode & 0xE0).name}_{Operation(opcode & 0x1F).name}"
    for transport, count in ((Transport.RC, 23), (Transport.UC, 12), (Transport.UD, 2), (Transport.XRC, 23)):
        assert sum(opcode & 0xE0 == transport for opcode in BthOpcode) == count


@pytest.mark.parametrize(
    ("opcode", "length"),
    [
        (BthOpcode.RC_SEND_FIRST, 0),
        (BthOpcode.RC_WRITE_ONLY_IMM, 20),
        (BthOpcode.RC_READ_RESPONSE_MIDDLE, 0),
        (BthOpcode.RC_ATOMIC_ACKNOWLEDGE, 12),
        (BthOpcode.RC_COMPARE_SWAP, 28),
        (BthOpcode.RC_SEND_ONLY_INVALIDATE, 4),
        (BthOpcode.UC_WRITE_FIRST, 16),
        (BthOpcode.UD_SEND_ONLY_IMM, 12),
        (BthOpcode.XRC_SEND_MIDDLE, 4),
        (BthOpcode.XRC_FETCH_ADD, 32),
        (BthOpcode.XRC_ACKNOWLEDGE, 4),
        (BthOpcode.CNP, 0),
        (BthOpcode.MASKED_COMPARE_SWAP, 44),
        (BthOpcode.XRC_MASKED_FETCH_ADD, 32),
    ],
)
def test_bytes_of_extended_headers(opcode: BthOpcode, length: int) -> None:
    assert sum(kind.SIZE for kind in EXTENDED_HEADERS[opcode]) == length


def test_packets_without_payload() -> None:
    assert {opcode & 0x1F for opcode in BARE} == {0x0C, 0x11, 0x12, 0x13, 0x14}


def test_syndromes() -> None:
    assert ACK == 0x1F
    assert syndrome(AckKind.RNR_NAK, 12) == 0x2C
    assert syndrome(AckKind.NAK, NakCode.REMOTE_ACCESS_ERROR) == 0x62
    assert [syndrome_kind(value) for value in (0x1F, 0x2C, 0x62)] == [AckKind.ACK, AckKind.RNR_NAK, AckKind.NAK]
    with pytest.raises(ValueError, match="32 is not in 0 to 31"):
        syndrome(AckKind.ACK, 32)


def test_rnr_timers() -> None:
    assert len(RNR_TIMER_NS) == 32
    assert (RNR_TIMER_NS[0], RNR_TIMER_NS[1], RNR_TIMER_NS[12], RNR_TIMER_NS[31]) == (
        655_360_000,
        10_000,
        640_000,
        491_520_000,
    )
