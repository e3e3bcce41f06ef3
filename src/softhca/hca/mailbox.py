"""Mailboxes: the chains that carry what of a message does not fit its entry (D4, D5)."""

from __future__ import annotations

from struct import Struct

from softhca.bus import DmaFault, DmaSpace, Iova
from softhca.prm.cmd import INLINE, MAILBOX_DATA, CmdProtBlock, mailboxes, xor8
from softhca.prm.status import DeliveryStatus

BLOCK = CmdProtBlock.SIZE
MOST_BLOCKS = 16384
"""Longest chain that is followed: a message of 8 MiB."""
_CONTROL = MAILBOX_DATA
_CONTROL_BYTES = BLOCK - MAILBOX_DATA
_TAIL = Struct(">48sQIBBBB")
"""The control area: reserved, next, block number, reserved, token, ctrl_signature, signature."""
_RESERVED = bytes(48)
_NEXT_ALIGNMENT = 0x3FF
_SIGNATURES = BLOCK - 2


class DeliveryError(Exception):
    """The entry ends with a delivery status; the command was not carried out (D9)."""

    def __init__(self, status: DeliveryStatus) -> None:
        super().__init__(status.name)
        self.status = status


def read_chain(dma: DmaSpace, pointer: int, length: int, token: int, *, signed: bool) -> bytes:
    """The part of an input message that lies in mailboxes, read once.

    Args:
        dma: where they lie.
        pointer: from the entry.
        length: of the whole message.
        token: of the entry.
        signed: check signatures.

    Raises:
        DeliveryError: the chain is malformed.
    """
    count = mailboxes(length)
    parts = []
    for number in range(count):
        block = _read(dma, pointer, 0, BLOCK, DeliveryStatus.BAD_INPUT_POINTER)
        pointer = _check(block[_CONTROL:], number, token, DeliveryStatus.BAD_INPUT_POINTER, signed=signed)
        if signed and xor8(block) != 0xFF:
            raise DeliveryError(DeliveryStatus.SIGNATURE_ERR)
        parts.append(block)
    _check_end(dma, pointer, count, DeliveryStatus.BAD_INPUT_POINTER)
    if count == 1:
        return parts[0][: length - INLINE]
    return b"".join(part[:MAILBOX_DATA] for part in parts)[: length - INLINE]


def check_output_chain(dma: DmaSpace, pointer: int, room: int, token: int, *, signed: bool) -> list[tuple[Iova, bytes]]:
    """Check the chain that an output goes to: address and control area of each mailbox.

    Raises:
        DeliveryError: the chain is malformed, or cannot be written.
    """
    bad = DeliveryStatus.BAD_OUTPUT_POINTER
    count = mailboxes(room)
    chain = []
    for number in range(count):
        if not pointer:
            raise DeliveryError(bad)
        try:
            control = b"".join(dma.views(pointer, BLOCK, write=True))[_CONTROL:]
        except DmaFault:
            raise DeliveryError(bad) from None
        address = Iova(pointer)
        pointer = _check(control, number, token, bad, signed=signed)
        chain.append((address, control))
    _check_end(dma, pointer, count, bad)
    return chain


def write_chain(dma: DmaSpace, chain: list[tuple[Iova, bytes]], data: bytes) -> None:
    """Write an output and its signatures.

    Args:
        dma: where the mailboxes lie.
        chain: from :func:`check_output_chain`.
        data: the output after its first 16 bytes; what is missing of the last block is zero.

    Raises:
        DmaFault: a mailbox is not mapped any more.
    """
    at = 0
    for address, control in chain:
        body = data[at : at + MAILBOX_DATA].ljust(MAILBOX_DATA, b"\0")
        at += MAILBOX_DATA
        head = control[:-2]
        ctrl_signature = ~xor8(head) & 0xFF
        # The control area without the last byte is 0xFF by this: the whole block needs what its data leave.
        signature = xor8(body)
        dma.write(address, b"".join((body, head, bytes((ctrl_signature, signature)))))


def _read(dma: DmaSpace, pointer: int, offset: int, length: int, bad: DeliveryStatus) -> bytes:
    if not pointer:
        raise DeliveryError(bad)
    try:
        return dma.read(pointer + offset, length)
    except DmaFault:
        raise DeliveryError(bad) from None


def _check(control: bytes, number: int, token: int, bad: DeliveryStatus, *, signed: bool) -> int:
    """Check a control area; return its next pointer."""
    reserved, following, block_number, spare, block_token, _, signature = _TAIL.unpack(control)
    if signed and xor8(control) ^ signature != 0xFF:
        raise DeliveryError(DeliveryStatus.SIGNATURE_ERR)
    if spare or reserved != _RESERVED:
        raise DeliveryError(DeliveryStatus.RESERVED_NOT_ZERO)
    if block_token != token:
        raise DeliveryError(DeliveryStatus.TOKEN_ERR)
    if block_number != number:
        raise DeliveryError(DeliveryStatus.BAD_BLOCK_NUMBER)
    if following & _NEXT_ALIGNMENT:
        raise DeliveryError(bad)
    return int(following)


def _check_end(dma: DmaSpace, pointer: int, number: int, bad: DeliveryStatus) -> None:
    """The chain ends with a zero pointer, here or after surplus blocks.

    Linux takes the mailboxes of a command from a cache of ready chains, which may be longer than the message. Surplus
    blocks are numbered on, but carry the token of nobody.
    """
    while pointer:
        if number >= MOST_BLOCKS:
            raise DeliveryError(bad)
        control = _read(dma, pointer, _CONTROL, _CONTROL_BYTES, bad)
        _, following, block_number, _, _, _, _ = _TAIL.unpack(control)
        if block_number != number or following & _NEXT_ALIGNMENT:
            raise DeliveryError(bad)
        pointer, number = following, number + 1
