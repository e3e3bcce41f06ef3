"""Datagrams of the special QPs (QP0, QP1): they leave the card checked, and reach nobody (G3).

The fabric behind the port has no other end yet, and a datagram that finds nobody is lost without a word: the sender's
work request ends well, as the standard has it for unreliable datagrams.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from softhca.hca.rc import RequestFailed, gather, segments
from softhca.prm.cqe import CqeSyndrome
from softhca.prm.syndromes.completion import VendorSyndrome
from softhca.prm.wqe import Av, BaseAv, WqeOpcode

if TYPE_CHECKING:
    from softhca.hca.function import Function
    from softhca.hca.qp_context import Qp

_EXTENDED = 1 << 31
"""In dqp_dct: the address vector has its full size."""


def send(fn: Function, qp: Qp, opcode: int, body: bytes) -> int:
    """Send a datagram.

    Args:
        fn: the QP's function.
        qp: the sender.
        opcode: of the WQE.
        body: the WQE after its control segment: address vector, then data.

    Returns:
        Bytes sent.

    Raises:
        RequestFailed: the WQE is malformed, or its data are not what the QP may send.
    """
    if opcode not in (WqeOpcode.SEND, WqeOpcode.SEND_IMM):
        raise RequestFailed(CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.OPCODE)
    if len(body) < BaseAv.SIZE:
        raise RequestFailed(CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.WQE_SHORT)
    size = Av.SIZE if BaseAv(body).dqp_dct & _EXTENDED else BaseAv.SIZE
    if len(body) < size:
        raise RequestFailed(CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.WQE_SHORT)
    length = sum(len(piece) for piece in gather(fn, qp, segments(body, size)))
    if length > qp.mtu:
        raise RequestFailed(CqeSyndrome.LOCAL_LENGTH_ERR, VendorSyndrome.MESSAGE_TOO_LONG)
    return length
