"""Whole packets: from headers to bytes and back (InfiniBand Architecture Specification, volume 1, chapters 5 to 9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from softhca.prm.ib_packet import (
    BARE,
    EXTENDED_HEADERS,
    ICRC_BYTES,
    IP_VERSION,
    NEXT_HEADER_IBA,
    VCRC_BYTES,
    Aeth,
    AtomicAckEth,
    AtomicEth,
    Bth,
    BthOpcode,
    Deth,
    Grh,
    Ieth,
    ImmDt,
    Lnh,
    Lrh,
    Reth,
    Xrceth,
)
from softhca.prm.layout import Buffer, Layout
from softhca.wire.crc import icrc_global, icrc_local, vcrc

H = TypeVar("H", bound=Layout)

_TRAILER = ICRC_BYTES + VCRC_BYTES
_MAX_WORDS = 0x7FF


class PacketError(ValueError):
    """Headers that make no packet, or bytes that are none."""


class CrcError(PacketError):
    """The packet was damaged on its way."""


@dataclass(eq=False, slots=True)
class Packet:
    """A packet of the IBA transport.

    Lengths, pad count, next header and both CRCs are found when it is built; what the headers hold there is not looked
    at.

    Attributes:
        lrh: local route header.
        grh: global route header, or None in the own subnet.
        bth: base transport header; its opcode says which extended headers there are.
        extended: the extended headers, in their order on the wire.
        payload: without its padding.
    """

    lrh: Lrh
    bth: Bth
    extended: tuple[Layout, ...] = ()
    payload: Buffer = b""
    grh: Grh | None = None
    _opcode: BthOpcode = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check that the headers are those of the opcode.

        Raises:
            PacketError: an unknown opcode, or other extended headers than it has.
        """
        self._opcode = _opcode(self.bth)
        needed = EXTENDED_HEADERS[self._opcode]
        if tuple(map(type, self.extended)) != needed:
            given = [header.NAME for header in self.extended]
            raise PacketError(
                f"{self._opcode.name}: extended headers {given} given, {[header.NAME for header in needed]} needed"
            )

    @property
    def opcode(self) -> BthOpcode:
        """BTH.OpCode."""
        return self._opcode

    def find(self, header: type[H]) -> H | None:
        """The extended header of this kind, or None."""
        for item in self.extended:
            if type(item) is header:
                return item
        return None

    @property
    def deth(self) -> Deth | None:
        """Datagram extended transport header."""
        return self.find(Deth)

    @property
    def xrceth(self) -> Xrceth | None:
        """XRC extended transport header."""
        return self.find(Xrceth)

    @property
    def reth(self) -> Reth | None:
        """RDMA extended transport header."""
        return self.find(Reth)

    @property
    def aeth(self) -> Aeth | None:
        """ACK extended transport header."""
        return self.find(Aeth)

    @property
    def atomic_eth(self) -> AtomicEth | None:
        """Atomic extended transport header."""
        return self.find(AtomicEth)

    @property
    def atomic_ack_eth(self) -> AtomicAckEth | None:
        """Atomic acknowledge extended transport header."""
        return self.find(AtomicAckEth)

    @property
    def immediate(self) -> int | None:
        """Immediate data, or None."""
        header = self.find(ImmDt)
        return None if header is None else header.immediate

    @property
    def invalidate_rkey(self) -> int | None:
        """The key that the receiver is to invalidate, or None."""
        header = self.find(Ieth)
        return None if header is None else header.rkey

    def build(self) -> bytes:
        """The packet's bytes, from the LRH to the VCRC.

        Raises:
            PacketError: a payload with an opcode that has none, or one that is too long.
        """
        if self.payload and self._opcode in BARE:
            raise PacketError(f"{self._opcode.name}: a payload of {len(self.payload)} bytes given, none allowed")
        pad = -len(self.payload) % 4
        headers = [self.lrh, self.bth] if self.grh is None else [self.lrh, self.grh, self.bth]
        out = bytearray().join(map(bytes, (*headers, *self.extended)))
        out += self.payload
        out += bytes(pad)
        words = (len(out) + ICRC_BYTES) // 4
        if words > _MAX_WORDS:
            raise PacketError(f"LRH.packet_length: {words} words, {_MAX_WORDS} at most")
        lrh = Lrh(out)
        lrh.packet_length = words
        lrh.link_next_header = Lnh.IBA_LOCAL if self.grh is None else Lnh.IBA_GLOBAL
        if self.grh is None:
            Bth(out, Lrh.SIZE).pad_count = pad
            out += icrc_local(out)
        else:
            _finish_grh(Grh(out, Lrh.SIZE), len(out) + ICRC_BYTES - Lrh.SIZE - Grh.SIZE)
            Bth(out, Lrh.SIZE + Grh.SIZE).pad_count = pad
            out += icrc_global(memoryview(out)[Lrh.SIZE :])
        out += vcrc(out)
        return bytes(out)

    @classmethod
    def parse(cls, data: Buffer) -> Packet:
        """The packet of these bytes; headers are views over a copy of them.

        Args:
            data: from the LRH to the VCRC.

        Raises:
            CrcError: one of the CRCs is wrong.
            PacketError: the bytes are no packet of the IBA transport with a known opcode.
        """
        data = bytes(data)
        lrh = _parse_lrh(data)
        body = memoryview(data)[:-_TRAILER]
        at = Lrh.SIZE
        grh = None
        if lrh.link_next_header == Lnh.IBA_GLOBAL:
            grh = _parse_grh(body, len(data) - VCRC_BYTES)
            at += Grh.SIZE
        bth = _take(Bth, body, at)
        _check_crcs(data, body, grh is not None)
        if bth.transport_header_version:
            raise PacketError(f"BTH.transport_header_version: {bth.transport_header_version} given, 0 allowed")
        opcode = _opcode(bth)
        at += Bth.SIZE
        extended = []
        for kind in EXTENDED_HEADERS[opcode]:
            extended.append(_take(kind, body, at))
            at += kind.SIZE
        payload = body[at:]
        if payload and opcode in BARE:
            raise PacketError(f"{opcode.name}: a payload of {len(payload)} bytes, none allowed")
        if bth.pad_count > len(payload):
            raise PacketError(f"BTH.pad_count: {bth.pad_count} with {len(payload)} bytes behind the headers")
        return cls(lrh, bth, tuple(extended), bytes(payload[: len(payload) - bth.pad_count]), grh)


def _opcode(bth: Bth) -> BthOpcode:
    try:
        return BthOpcode(bth.opcode)
    except ValueError:
        raise PacketError(f"BTH.opcode: {bth.opcode:#04x} is none of RC, UC, UD, XRC and CNP") from None


def _finish_grh(grh: Grh, length: int) -> None:
    grh.ip_version = IP_VERSION
    grh.next_header = NEXT_HEADER_IBA
    grh.payload_length = length


def _take(kind: type[H], body: memoryview, at: int) -> H:
    if at + kind.SIZE > len(body):
        raise PacketError(f"{kind.NAME}: {kind.SIZE} bytes at {at} do not fit before the CRCs at {len(body)}")
    return kind(body, at)


def _parse_lrh(data: bytes) -> Lrh:
    least = Lrh.SIZE + Bth.SIZE + _TRAILER
    if len(data) < least:
        raise PacketError(f"packet: {len(data)} bytes, {least} at least")
    lrh = Lrh(data)
    if lrh.link_version:
        raise PacketError(f"LRH.link_version: {lrh.link_version} given, 0 allowed")
    if lrh.link_next_header not in (Lnh.IBA_LOCAL, Lnh.IBA_GLOBAL):
        raise PacketError(f"LRH.link_next_header: {lrh.link_next_header} given, allowed are 2 and 3 (IBA transport)")
    if lrh.packet_length * 4 + VCRC_BYTES != len(data):
        raise PacketError(
            f"LRH.packet_length: {lrh.packet_length} words and the VCRC are "
            f"{lrh.packet_length * 4 + VCRC_BYTES} bytes, the packet has {len(data)}"
        )
    return lrh


def _parse_grh(body: memoryview, end: int) -> Grh:
    grh = _take(Grh, body, Lrh.SIZE)
    if grh.ip_version != IP_VERSION:
        raise PacketError(f"GRH.ip_version: {grh.ip_version} given, {IP_VERSION} allowed")
    if grh.next_header != NEXT_HEADER_IBA:
        raise PacketError(f"GRH.next_header: {grh.next_header:#04x} given, {NEXT_HEADER_IBA:#04x} allowed")
    behind = end - Lrh.SIZE - Grh.SIZE
    if grh.payload_length != behind:
        raise PacketError(f"GRH.payload_length: {grh.payload_length} bytes, but {behind} follow")
    return grh


def _check_crcs(data: bytes, body: memoryview, has_grh: bool) -> None:
    given = data[-VCRC_BYTES:]
    right = vcrc(memoryview(data)[:-VCRC_BYTES])
    if given != right:
        raise CrcError(f"VCRC: {given.hex()} given, {right.hex()} is right")
    given = data[-_TRAILER:-VCRC_BYTES]
    right = icrc_global(body[Lrh.SIZE :]) if has_grh else icrc_local(body)
    if given != right:
        raise CrcError(f"ICRC: {given.hex()} given, {right.hex()} is right")
