"""Packets on the wire (InfiniBand Architecture Specification, volume 1, chapters 5 to 9 and annexes A14 and A17)."""

from enum import IntEnum, unique

from softhca.prm.layout import Layout, bits, raw, u64

ICRC_BYTES = 4
VCRC_BYTES = 2

IP_VERSION = 6
"""GRH.IPVer (8.3)."""

NEXT_HEADER_IBA = 0x1B
"""GRH.NxtHdr: an IBA transport header follows (8.3)."""

PSN_MASK = 0xFFFFFF
"""Packet sequence numbers count modulo 2**24 (9.2)."""

DEFAULT_PKEY = 0xFFFF
"""The default partition, full member (10.9.1)."""

ROCE_V2_UDP_PORT = 4791
"""UDP destination port of RoCEv2 (annex A17.3)."""


@unique
class Lnh(IntEnum):
    """LRH.LNH: what follows the local route header (7.7.5)."""

    RAW = 0
    IPV6 = 1
    IBA_LOCAL = 2
    IBA_GLOBAL = 3


@unique
class Transport(IntEnum):
    """Bits 7:5 of the BTH opcode: the transport service (9.2.1)."""

    RC = 0x00
    UC = 0x20
    RD = 0x40
    UD = 0x60
    XRC = 0xA0


@unique
class Operation(IntEnum):
    """Bits 4:0 of the BTH opcode: the operation (9.2.1)."""

    SEND_FIRST = 0x00
    SEND_MIDDLE = 0x01
    SEND_LAST = 0x02
    SEND_LAST_IMM = 0x03
    SEND_ONLY = 0x04
    SEND_ONLY_IMM = 0x05
    WRITE_FIRST = 0x06
    WRITE_MIDDLE = 0x07
    WRITE_LAST = 0x08
    WRITE_LAST_IMM = 0x09
    WRITE_ONLY = 0x0A
    WRITE_ONLY_IMM = 0x0B
    READ_REQUEST = 0x0C
    READ_RESPONSE_FIRST = 0x0D
    READ_RESPONSE_MIDDLE = 0x0E
    READ_RESPONSE_LAST = 0x0F
    READ_RESPONSE_ONLY = 0x10
    ACKNOWLEDGE = 0x11
    ATOMIC_ACKNOWLEDGE = 0x12
    COMPARE_SWAP = 0x13
    FETCH_ADD = 0x14
    SEND_LAST_INVALIDATE = 0x16
    SEND_ONLY_INVALIDATE = 0x17


@unique
class BthOpcode(IntEnum):
    """BTH.OpCode: transport service and operation (9.2.1; XRC: annex A14; CNP: annex A17).

    The standard has no masked atomics, and no manual says what a ConnectX sends for them: these opcodes are ours, from
    the range that the standard leaves to manufacturers (bits 7:6 are 11).
    """

    RC_SEND_FIRST = 0x00
    RC_SEND_MIDDLE = 0x01
    RC_SEND_LAST = 0x02
    RC_SEND_LAST_IMM = 0x03
    RC_SEND_ONLY = 0x04
    RC_SEND_ONLY_IMM = 0x05
    RC_WRITE_FIRST = 0x06
    RC_WRITE_MIDDLE = 0x07
    RC_WRITE_LAST = 0x08
    RC_WRITE_LAST_IMM = 0x09
    RC_WRITE_ONLY = 0x0A
    RC_WRITE_ONLY_IMM = 0x0B
    RC_READ_REQUEST = 0x0C
    RC_READ_RESPONSE_FIRST = 0x0D
    RC_READ_RESPONSE_MIDDLE = 0x0E
    RC_READ_RESPONSE_LAST = 0x0F
    RC_READ_RESPONSE_ONLY = 0x10
    RC_ACKNOWLEDGE = 0x11
    RC_ATOMIC_ACKNOWLEDGE = 0x12
    RC_COMPARE_SWAP = 0x13
    RC_FETCH_ADD = 0x14
    RC_SEND_LAST_INVALIDATE = 0x16
    RC_SEND_ONLY_INVALIDATE = 0x17
    UC_SEND_FIRST = 0x20
    UC_SEND_MIDDLE = 0x21
    UC_SEND_LAST = 0x22
    UC_SEND_LAST_IMM = 0x23
    UC_SEND_ONLY = 0x24
    UC_SEND_ONLY_IMM = 0x25
    UC_WRITE_FIRST = 0x26
    UC_WRITE_MIDDLE = 0x27
    UC_WRITE_LAST = 0x28
    UC_WRITE_LAST_IMM = 0x29
    UC_WRITE_ONLY = 0x2A
    UC_WRITE_ONLY_IMM = 0x2B
    UD_SEND_ONLY = 0x64
    UD_SEND_ONLY_IMM = 0x65
    CNP = 0x81
    XRC_SEND_FIRST = 0xA0
    XRC_SEND_MIDDLE = 0xA1
    XRC_SEND_LAST = 0xA2
    XRC_SEND_LAST_IMM = 0xA3
    XRC_SEND_ONLY = 0xA4
    XRC_SEND_ONLY_IMM = 0xA5
    XRC_WRITE_FIRST = 0xA6
    XRC_WRITE_MIDDLE = 0xA7
    XRC_WRITE_LAST = 0xA8
    XRC_WRITE_LAST_IMM = 0xA9
    XRC_WRITE_ONLY = 0xAA
    XRC_WRITE_ONLY_IMM = 0xAB
    XRC_READ_REQUEST = 0xAC
    XRC_READ_RESPONSE_FIRST = 0xAD
    XRC_READ_RESPONSE_MIDDLE = 0xAE
    XRC_READ_RESPONSE_LAST = 0xAF
    XRC_READ_RESPONSE_ONLY = 0xB0
    XRC_ACKNOWLEDGE = 0xB1
    XRC_ATOMIC_ACKNOWLEDGE = 0xB2
    XRC_COMPARE_SWAP = 0xB3
    XRC_FETCH_ADD = 0xB4
    XRC_SEND_LAST_INVALIDATE = 0xB6
    XRC_SEND_ONLY_INVALIDATE = 0xB7
    MASKED_COMPARE_SWAP = 0xD3
    MASKED_FETCH_ADD = 0xD4
    XRC_MASKED_COMPARE_SWAP = 0xF3
    XRC_MASKED_FETCH_ADD = 0xF4


class Lrh(Layout, size=0x08, manual="IBTA volume 1, 7.7"):
    """Local route header. `packet_length` counts 4-byte words from the LRH to the ICRC, both included."""

    virtual_lane = bits(0x00, 31, 28)
    link_version = bits(0x00, 27, 24)
    service_level = bits(0x00, 23, 20)
    link_next_header = bits(0x00, 17, 16, Lnh)
    destination_lid = bits(0x00, 15, 0)
    packet_length = bits(0x04, 26, 16)
    source_lid = bits(0x04, 15, 0)


class Grh(Layout, size=0x28, manual="IBTA volume 1, 8.3"):
    """Global route header. `payload_length` counts bytes from behind the GRH to the ICRC, it included."""

    ip_version = bits(0x00, 31, 28)
    traffic_class = bits(0x00, 27, 20)
    flow_label = bits(0x00, 19, 0)
    payload_length = bits(0x04, 31, 16)
    next_header = bits(0x04, 15, 8)
    hop_limit = bits(0x04, 7, 0)
    source_gid = raw(0x08, 16)
    destination_gid = raw(0x18, 16)


class Bth(Layout, size=0x0C, manual="IBTA volume 1, 9.2"):
    """Base transport header."""

    opcode = bits(0x00, 31, 24, BthOpcode)
    solicited_event = bits(0x00, 23)
    migration_request = bits(0x00, 22)
    pad_count = bits(0x00, 21, 20)
    transport_header_version = bits(0x00, 19, 16)
    pkey = bits(0x00, 15, 0)
    fecn = bits(0x04, 31)
    becn = bits(0x04, 30)
    destination_qpn = bits(0x04, 23, 0)
    ack_request = bits(0x08, 31)
    psn = bits(0x08, 23, 0)


class Rdeth(Layout, size=0x04, manual="IBTA volume 1, 9.3"):
    """Reliable datagram extended transport header."""

    ee_context = bits(0x00, 23, 0)


class Deth(Layout, size=0x08, manual="IBTA volume 1, 9.3"):
    """Datagram extended transport header."""

    qkey = bits(0x00, 31, 0)
    source_qpn = bits(0x04, 23, 0)


class Xrceth(Layout, size=0x04, manual="IBTA volume 1, annex A14"):
    """Extended reliable connection extended transport header."""

    xrc_srqn = bits(0x00, 23, 0)


class Reth(Layout, size=0x10, manual="IBTA volume 1, 9.3"):
    """RDMA extended transport header."""

    va = u64(0x00)
    rkey = bits(0x08, 31, 0)
    dma_length = bits(0x0C, 31, 0)


class AtomicEth(Layout, size=0x1C, manual="IBTA volume 1, 9.3"):
    """Atomic extended transport header. `swap_add_data` is what FETCH_ADD adds.

    Of a masked FETCH_ADD, `compare_data` has the highest bit of each field set.
    """

    va = u64(0x00)
    rkey = bits(0x08, 31, 0)
    swap_add_data = u64(0x0C)
    compare_data = u64(0x14)


class MaskedAtomicEth(Layout, size=0x2C, manual="softhca"):
    """Operands of a masked compare and swap, in the order of its WQE: no manual has this header."""

    va = u64(0x00)
    rkey = bits(0x08, 31, 0)
    swap_data = u64(0x0C)
    compare_data = u64(0x14)
    swap_mask = u64(0x1C)
    compare_mask = u64(0x24)


class Aeth(Layout, size=0x04, manual="IBTA volume 1, 9.3"):
    """ACK extended transport header."""

    syndrome = bits(0x00, 31, 24)
    msn = bits(0x00, 23, 0)


class AtomicAckEth(Layout, size=0x08, manual="IBTA volume 1, 9.3"):
    """Atomic acknowledge extended transport header."""

    original_remote_data = u64(0x00)


class ImmDt(Layout, size=0x04, manual="IBTA volume 1, 9.3"):
    """Immediate data."""

    immediate = bits(0x00, 31, 0)


class Ieth(Layout, size=0x04, manual="IBTA volume 1, 9.3"):
    """Invalidate extended transport header."""

    rkey = bits(0x00, 31, 0)


class AckKind(IntEnum):
    """AETH.Syndrome bits 6:5 (9.7.5.2)."""

    ACK = 0
    RNR_NAK = 1
    RESERVED = 2
    NAK = 3


@unique
class NakCode(IntEnum):
    """AETH.Syndrome bits 4:0 of a NAK (9.7.5.2)."""

    PSN_SEQUENCE_ERROR = 0
    INVALID_REQUEST = 1
    REMOTE_ACCESS_ERROR = 2
    REMOTE_OPERATIONAL_ERROR = 3
    INVALID_RD_REQUEST = 4


NO_CREDITS = 0x1F
"""AETH.Syndrome bits 4:0 of an ACK whose sender gives no end-to-end credits (9.7.7.2)."""

RNR_TIMER_NS = tuple(
    10_000 * units
    for units in (
        *(65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192),
        *(256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152),
    )
)
"""Nanoseconds to wait after an RNR NAK, by AETH.Syndrome bits 4:0 (9.7.5.2.8)."""


def syndrome(kind: AckKind, value: int) -> int:
    """AETH.Syndrome.

    Args:
        kind: of the acknowledge.
        value: credits (ACK), index of the timer (RNR NAK) or :class:`NakCode` (NAK), 0 to 31.

    Raises:
        ValueError: `value` does not fit.
    """
    if not 0 <= value <= 31:
        raise ValueError(f"AETH.syndrome bits 4:0: {value} is not in 0 to 31")
    return kind << 5 | value


def syndrome_kind(value: int) -> AckKind:
    """What kind of acknowledge an AETH.Syndrome is."""
    return AckKind(value >> 5 & 3)


ACK = syndrome(AckKind.ACK, NO_CREDITS)
"""AETH.Syndrome of a plain acknowledge."""


_OPERATION_HEADERS: dict[Operation, tuple[type[Layout], ...]] = {
    Operation.SEND_LAST_IMM: (ImmDt,),
    Operation.SEND_ONLY_IMM: (ImmDt,),
    Operation.WRITE_FIRST: (Reth,),
    Operation.WRITE_LAST_IMM: (ImmDt,),
    Operation.WRITE_ONLY: (Reth,),
    Operation.WRITE_ONLY_IMM: (Reth, ImmDt),
    Operation.READ_REQUEST: (Reth,),
    Operation.READ_RESPONSE_FIRST: (Aeth,),
    Operation.READ_RESPONSE_LAST: (Aeth,),
    Operation.READ_RESPONSE_ONLY: (Aeth,),
    Operation.ACKNOWLEDGE: (Aeth,),
    Operation.ATOMIC_ACKNOWLEDGE: (Aeth, AtomicAckEth),
    Operation.COMPARE_SWAP: (AtomicEth,),
    Operation.FETCH_ADD: (AtomicEth,),
    Operation.SEND_LAST_INVALIDATE: (Ieth,),
    Operation.SEND_ONLY_INVALIDATE: (Ieth,),
}

_MASKED: dict[BthOpcode, tuple[type[Layout], ...]] = {
    BthOpcode.MASKED_COMPARE_SWAP: (MaskedAtomicEth,),
    BthOpcode.MASKED_FETCH_ADD: (AtomicEth,),
    BthOpcode.XRC_MASKED_COMPARE_SWAP: (Xrceth, MaskedAtomicEth),
    BthOpcode.XRC_MASKED_FETCH_ADD: (Xrceth, AtomicEth),
}

_RESPONSES = range(Operation.READ_RESPONSE_FIRST, Operation.ATOMIC_ACKNOWLEDGE + 1)


def _extended_headers(opcode: BthOpcode) -> tuple[type[Layout], ...]:
    if opcode is BthOpcode.CNP:
        return ()
    if opcode in _MASKED:
        return _MASKED[opcode]
    transport, operation = Transport(opcode & 0xE0), Operation(opcode & 0x1F)
    own = _OPERATION_HEADERS.get(operation, ())
    if transport is Transport.UD:
        return (Deth, *own)
    if transport is Transport.XRC and operation not in _RESPONSES:
        return (Xrceth, *own)
    return own


EXTENDED_HEADERS = {opcode: _extended_headers(opcode) for opcode in BthOpcode}
"""The headers between BTH and payload, in their order on the wire (9.3, table of OpCodes in 9.2.1; XRC: annex A14)."""

BARE = frozenset(
    opcode
    for opcode in BthOpcode
    if opcode is not BthOpcode.CNP
    and opcode & 0x1F
    in (
        Operation.READ_REQUEST,
        Operation.ACKNOWLEDGE,
        Operation.ATOMIC_ACKNOWLEDGE,
        Operation.COMPARE_SWAP,
        Operation.FETCH_ADD,
    )
)
"""Opcodes of packets that carry no payload."""
