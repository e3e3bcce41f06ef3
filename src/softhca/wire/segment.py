"""Messages as packets: first, middle, last or only, by the path MTU (IBTA volume 1, 9.7.2, 9.7.3, 9.4; UD: 9.8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from softhca.prm.ib_packet import (
    ACK,
    DEFAULT_PKEY,
    EXTENDED_HEADERS,
    PSN_MASK,
    Aeth,
    AtomicAckEth,
    AtomicEth,
    Bth,
    BthOpcode,
    Deth,
    Grh,
    Ieth,
    ImmDt,
    Lrh,
    MaskedAtomicEth,
    Operation,
    Reth,
    Transport,
    Xrceth,
)
from softhca.prm.layout import Buffer, Layout
from softhca.wire.packet import Packet, PacketError

MTUS = (256, 512, 1024, 2048, 4096)
"""Bytes of payload that a packet may have (7.7.8)."""

MAX_MESSAGE = 1 << 31
"""Bytes of the longest message (9.7.7)."""

Message = Buffer | Sequence[Buffer]
"""The bytes of a message, in one part or in several; they are read packet by packet."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What all packets from one QP to another have in common.

    Attributes:
        transport: service; RD is not supported.
        destination_qpn: number of the receiving QP, 24 bits.
        mtu: bytes of payload a packet, one of :data:`MTUS`.
        source_lid: of the sender's port.
        destination_lid: of the receiver's port, or the multicast LID.
        service_level: 0 to 15.
        virtual_lane: 0 to 14, 15 for subnet management.
        grh: global route header, or None (its lengths are found for each packet).
        pkey: partition key.
        migrated: BTH.MigReq, set unless the QP's path migration is armed.
        qkey: UD: queue key of the datagram.
        source_qpn: UD: number of the sending QP.
        xrc_srqn: XRC: number of the shared receive queue.

    Raises:
        PacketError: an MTU or transport that there is not.
    """

    transport: Transport
    destination_qpn: int
    mtu: int = 4096
    source_lid: int = 0
    destination_lid: int = 0
    service_level: int = 0
    virtual_lane: int = 0
    grh: Grh | None = None
    pkey: int = DEFAULT_PKEY
    migrated: bool = True
    qkey: int = 0
    source_qpn: int = 0
    xrc_srqn: int = 0

    def __post_init__(self) -> None:
        """Check what does not fail by itself."""
        if self.mtu not in MTUS:
            raise PacketError(f"Flow.mtu: {self.mtu} given, allowed are {MTUS}")
        if self.transport is Transport.RD:
            raise PacketError("Flow.transport: RD given, allowed are RC, UC, UD and XRC")

    def packet(
        self,
        operation: Operation,
        psn: int,
        *headers: Layout,
        payload: Buffer = b"",
        ack_request: bool = False,
        solicited: bool = False,
    ) -> Packet:
        """One packet; DETH and XRCETH are put before `headers` where the opcode has them.

        Raises:
            PacketError: the transport has no such operation, or it has other headers.
        """
        try:
            opcode = BthOpcode(self.transport | operation)
        except ValueError:
            raise PacketError(f"{self.transport.name}: has no {operation.name}") from None
        return self._packet(opcode, psn, *headers, payload=payload, ack_request=ack_request, solicited=solicited)

    def _packet(
        self,
        opcode: BthOpcode,
        psn: int,
        *headers: Layout,
        payload: Buffer = b"",
        ack_request: bool = False,
        solicited: bool = False,
    ) -> Packet:
        lrh = Lrh.new(
            virtual_lane=self.virtual_lane,
            service_level=self.service_level,
            destination_lid=self.destination_lid,
            source_lid=self.source_lid,
        )
        bth = Bth.new(
            opcode=opcode,
            solicited_event=int(solicited),
            migration_request=int(self.migrated),
            pkey=self.pkey,
            destination_qpn=self.destination_qpn,
            ack_request=int(ack_request),
            psn=psn & PSN_MASK,
        )
        return Packet(lrh, bth, (*self._own_headers(opcode), *headers), payload, self.grh)

    def masked(self, plain: BthOpcode, xrc: BthOpcode, psn: int, header: Layout) -> Packet:
        """A masked atomic: it has an opcode for RC, and one for XRC.

        Raises:
            PacketError: another transport.
        """
        if self.transport not in (Transport.RC, Transport.XRC):
            raise PacketError(f"{self.transport.name}: has no {plain.name}")
        return self._packet(xrc if self.transport is Transport.XRC else plain, psn, header, ack_request=True)

    def _own_headers(self, opcode: BthOpcode) -> tuple[Layout, ...]:
        kinds = EXTENDED_HEADERS[opcode]
        if kinds and kinds[0] is Deth:
            return (Deth.new(qkey=self.qkey, source_qpn=self.source_qpn),)
        if kinds and kinds[0] is Xrceth:
            return (Xrceth.new(xrc_srqn=self.xrc_srqn),)
        return ()


def packet_count(length: int, mtu: int) -> int:
    """Packets (and PSNs) of a message of `length` bytes: one at least."""
    return max(1, -(-length // mtu))


def send(
    flow: Flow,
    psn: int,
    message: Message,
    *,
    immediate: int | None = None,
    invalidate_rkey: int | None = None,
    solicited: bool = False,
    ack_request: bool = True,
) -> Iterator[Packet]:
    """A SEND, with immediate data or the invalidation of a key if there is one.

    Args:
        flow: sender and receiver.
        psn: of the first packet.
        message: its bytes, in one part or in several.
        immediate: 32 bits for the receiver's completion.
        invalidate_rkey: key that the receiver is to invalidate (RC, XRC).
        solicited: whether the last packet asks for an event.
        ack_request: whether the last packet asks for an acknowledge (never on UC and UD).

    Raises:
        PacketError: both `immediate` and `invalidate_rkey`; a datagram longer than the MTU; a message too long.
    """
    if immediate is not None and invalidate_rkey is not None:
        raise PacketError("SEND: immediate data and a key to invalidate given, one of them allowed")
    closing: tuple[Layout, ...] = ()
    last, only = Operation.SEND_LAST, Operation.SEND_ONLY
    if immediate is not None:
        closing = (ImmDt.new(immediate=immediate),)
        last, only = Operation.SEND_LAST_IMM, Operation.SEND_ONLY_IMM
    elif invalidate_rkey is not None:
        closing = (Ieth.new(rkey=invalidate_rkey),)
        last, only = Operation.SEND_LAST_INVALIDATE, Operation.SEND_ONLY_INVALIDATE
    if flow.transport is Transport.UD and _length(message) > flow.mtu:
        raise PacketError(f"UD SEND: {_length(message)} bytes, the MTU is {flow.mtu}")
    operations = (Operation.SEND_FIRST, Operation.SEND_MIDDLE, last, only)
    return _request(flow, psn, message, operations, (), closing, solicited, ack_request)


def write(
    flow: Flow,
    psn: int,
    message: Message,
    va: int,
    rkey: int,
    *,
    immediate: int | None = None,
    solicited: bool = False,
    ack_request: bool = True,
) -> Iterator[Packet]:
    """An RDMA WRITE to `va` of the receiver's key `rkey`, with immediate data if there is some.

    Arguments and errors are those of :func:`send`.
    """
    last, only = Operation.WRITE_LAST, Operation.WRITE_ONLY
    closing: tuple[Layout, ...] = ()
    if immediate is not None:
        closing = (ImmDt.new(immediate=immediate),)
        last, only = Operation.WRITE_LAST_IMM, Operation.WRITE_ONLY_IMM
    reth = Reth.new(va=va, rkey=rkey, dma_length=_length(message))
    operations = (Operation.WRITE_FIRST, Operation.WRITE_MIDDLE, last, only)
    return _request(flow, psn, message, operations, (reth,), closing, solicited, ack_request)


def read_request(flow: Flow, psn: int, va: int, rkey: int, length: int, *, solicited: bool = False) -> Packet:
    """The request of an RDMA READ of `length` bytes; it takes as many PSNs as its response has packets (9.7.3)."""
    if not 0 <= length <= MAX_MESSAGE:
        raise PacketError(f"RDMA READ: {length} bytes, allowed are 0 to {MAX_MESSAGE}")
    reth = Reth.new(va=va, rkey=rkey, dma_length=length)
    return flow.packet(Operation.READ_REQUEST, psn, reth, ack_request=True, solicited=solicited)


def read_response(flow: Flow, psn: int, message: Message, msn: int, syndrome: int = ACK) -> Iterator[Packet]:
    """The response to an RDMA READ, from the PSN of its request on; all but the middle packets acknowledge."""
    aeth = (Aeth.new(syndrome=syndrome, msn=msn & PSN_MASK),)
    for operation, number, piece in _pieces(message, flow.mtu, _READ_RESPONSE):
        headers = () if operation is Operation.READ_RESPONSE_MIDDLE else aeth
        yield flow.packet(operation, psn + number, *headers, payload=piece)


def compare_swap(flow: Flow, psn: int, va: int, rkey: int, compare: int, swap: int) -> Packet:
    """The request to put `swap` in place of `compare` (64 bits both)."""
    header = AtomicEth.new(va=va, rkey=rkey, swap_add_data=swap, compare_data=compare)
    return flow.packet(Operation.COMPARE_SWAP, psn, header, ack_request=True)


def fetch_add(flow: Flow, psn: int, va: int, rkey: int, add: int) -> Packet:
    """The request to add `add` (64 bits)."""
    header = AtomicEth.new(va=va, rkey=rkey, swap_add_data=add)
    return flow.packet(Operation.FETCH_ADD, psn, header, ack_request=True)


def masked_compare_swap(
    flow: Flow, psn: int, va: int, rkey: int, compare: int, swap: int, compare_mask: int, swap_mask: int
) -> Packet:
    """The request to put the bits of `swap_mask` of `swap` in place, if those of `compare_mask` are as in `compare`."""
    header = MaskedAtomicEth.new(
        va=va, rkey=rkey, swap_data=swap, compare_data=compare, swap_mask=swap_mask, compare_mask=compare_mask
    )
    return flow.masked(BthOpcode.MASKED_COMPARE_SWAP, BthOpcode.XRC_MASKED_COMPARE_SWAP, psn, header)


def masked_fetch_add(flow: Flow, psn: int, va: int, rkey: int, add: int, boundary: int) -> Packet:
    """The request to add in fields, of which `boundary` has the highest bits."""
    header = AtomicEth.new(va=va, rkey=rkey, swap_add_data=add, compare_data=boundary)
    return flow.masked(BthOpcode.MASKED_FETCH_ADD, BthOpcode.XRC_MASKED_FETCH_ADD, psn, header)


def atomic_acknowledge(flow: Flow, psn: int, original: int, msn: int, syndrome: int = ACK) -> Packet:
    """The response to an atomic request: what stood there before (64 bits)."""
    headers = (Aeth.new(syndrome=syndrome, msn=msn & PSN_MASK), AtomicAckEth.new(original_remote_data=original))
    return flow.packet(Operation.ATOMIC_ACKNOWLEDGE, psn, *headers)


def acknowledge(flow: Flow, psn: int, msn: int, syndrome: int = ACK) -> Packet:
    """An acknowledge, an RNR NAK or a NAK, by the syndrome (:func:`softhca.prm.ib_packet.syndrome`)."""
    return flow.packet(Operation.ACKNOWLEDGE, psn, Aeth.new(syndrome=syndrome, msn=msn & PSN_MASK))


_Operations = tuple[Operation, Operation, Operation, Operation]
"""First, middle, last, only."""

_READ_RESPONSE = (
    Operation.READ_RESPONSE_FIRST,
    Operation.READ_RESPONSE_MIDDLE,
    Operation.READ_RESPONSE_LAST,
    Operation.READ_RESPONSE_ONLY,
)


def _request(
    flow: Flow,
    psn: int,
    message: Message,
    operations: _Operations,
    opening: tuple[Layout, ...],
    closing: tuple[Layout, ...],
    solicited: bool,
    ack_request: bool,
) -> Iterator[Packet]:
    """The packets of a message: `opening` headers in the first, `closing` ones, event and acknowledge in the last."""
    if _length(message) > MAX_MESSAGE:
        raise PacketError(f"message: {_length(message)} bytes, {MAX_MESSAGE} at most")
    ask = ack_request and flow.transport in (Transport.RC, Transport.XRC)
    return _packets(flow, psn, message, operations, opening, closing, solicited, ask)


def _packets(
    flow: Flow,
    psn: int,
    message: Message,
    operations: _Operations,
    opening: tuple[Layout, ...],
    closing: tuple[Layout, ...],
    solicited: bool,
    ask: bool,
) -> Iterator[Packet]:
    final = packet_count(_length(message), flow.mtu) - 1
    for operation, number, piece in _pieces(message, flow.mtu, operations):
        headers = (*(opening if number == 0 else ()), *(closing if number == final else ()))
        yield flow.packet(
            operation,
            psn + number,
            *headers,
            payload=piece,
            ack_request=ask and number == final,
            solicited=solicited and number == final,
        )


def _pieces(message: Message, mtu: int, operations: _Operations) -> Iterator[tuple[Operation, int, Buffer]]:
    first, middle, last, only = operations
    final = packet_count(_length(message), mtu) - 1
    for number, piece in enumerate(_cut(message, mtu)):
        if final == 0:
            operation = only
        elif number == 0:
            operation = first
        else:
            operation = last if number == final else middle
        yield operation, number, piece


def _length(message: Message) -> int:
    return len(message) if isinstance(message, Buffer) else sum(map(len, message))


def _cut(message: Message, mtu: int) -> Iterator[Buffer]:
    """Pieces of at most `mtu` bytes; one that is empty if the message is."""
    rest: list[Buffer] = []
    missing = mtu
    empty = True
    for part in (message,) if isinstance(message, Buffer) else message:
        view = memoryview(part)
        while len(view) >= missing:
            yield b"".join((*rest, view[:missing])) if rest else view[:missing]
            view, rest, missing, empty = view[missing:], [], mtu, False
        if len(view):
            rest.append(view)
            missing -= len(view)
    if rest or empty:
        yield b"".join(rest)
