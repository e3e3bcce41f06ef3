"""What a connected QP asks of its peer: a work request whose own side has been checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from softhca.hca.memory import Piece, Pointer

NOWHERE = Pointer(0, 0, 0)
"""Of a request that names no memory of the responder."""


@dataclass(slots=True)
class Request:
    """A request on its way to the responder.

    Attributes:
        opcode: of the WQE.
        length: bytes that it moves.
        pieces: what a SEND or an RDMA WRITE carries.
        immediate: immediate data, or the rkey to invalidate; or None.
        solicited: the sender asks for a solicited event.
        remote: the responder's memory that RDMA and atomics are for.
        operands: of an atomic, in the order of its segment.
        targets: where what is read goes.
        big_endian: what an atomic found goes there big-endian.
        srqn: the SRQ that an XRC request names.
        original: what an atomic found, once it is carried out.
    """

    opcode: int
    length: int
    pieces: Sequence[Piece] = ()
    immediate: int | None = None
    solicited: bool = False
    remote: Pointer = NOWHERE
    operands: tuple[int, ...] = ()
    targets: Sequence[memoryview] = ()
    big_endian: bool = False
    srqn: int = 0
    original: int = 0
