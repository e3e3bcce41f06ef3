"""Receive queues: the receive WQE that an inbound request needs, from the QP's own queue or from its pool (A3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from softhca.bus import DmaFault
from softhca.hca.memory import Pointer
from softhca.prm.codec import codec
from softhca.prm.wqe import INVALID_LKEY, SEGMENT, WqeDataSeg

if TYPE_CHECKING:
    from softhca.hca.qp_context import Qp
    from softhca.hca.srq import ReceivePool
    from softhca.hca.wq import Store

DATA = codec(WqeDataSeg, 0x00, "lkey", "addr")
"""A data segment by pointer: first word, key, address."""
COUNT = WqeDataSeg.FIELDS["byte_count"].mask
WHOLE = 1 << 31
"""What a byte count of zero in a pointer segment means."""
Plain = tuple["Store", Sequence[int], Sequence[int]]
"""WQEs that may be read where they are: the memory, their indices, and the places of their data segments."""
NO_WQES: Plain = (memoryview(b""), (), ())
_INDEX = 0xFFFF


class QueueBroken(Exception):
    """A queue's WQEs or doorbell record cannot be read, or say what cannot be: a catastrophic error of the queue."""


@dataclass(frozen=True, slots=True)
class ReceiveWqe:
    """A receive WQE.

    Attributes:
        counter: its index, as the CQE names it.
        segments: where the message goes, in order.
    """

    counter: int
    segments: list[Pointer]


def scatter_list(wqe: bytes) -> list[Pointer]:
    """The data segments of a receive WQE; the list ends at the key that terminates it or at the WQE's end."""
    found = []
    for count, key, address in DATA.iter_unpack(wqe[: len(wqe) // SEGMENT * SEGMENT]):
        if key == INVALID_LKEY:
            break
        found.append(Pointer(key, address, count & COUNT or WHOLE))
    return found


def posted(qp: Qp) -> int:
    """Receive WQEs in the QP's own queue that are posted and not taken; the record is read when none is known of.

    Raises:
        QueueBroken: the doorbell record cannot be read, or counts more than the queue has slots.
    """
    if qp.rq_available:
        return qp.rq_available
    try:
        count = (qp.posted_receives() - qp.rq_head) & _INDEX
    except DmaFault as fault:
        raise QueueBroken(f"QP {qp.number:#x}: receive doorbell record") from fault
    if count > qp.rq_size:
        raise QueueBroken(f"QP {qp.number:#x}: {count} receive WQEs posted, the queue has {qp.rq_size} slots")
    qp.rq_available = count
    return count


def peek(qp: Qp, pool: ReceivePool | None) -> ReceiveWqe | None:
    """The receive WQE that is next, of the QP's own queue or of `pool`; None when none is posted.

    Raises:
        QueueBroken: the queue cannot be read.
    """
    if pool is not None:
        found = pool.peek()
        if pool.failed:
            raise QueueBroken(f"QP {qp.number:#x}: receive pool {pool.number:#x} has failed")
        return None if found is None else ReceiveWqe(found[0], scatter_list(found[1]))
    if not qp.rq_size or not posted(qp):
        return None
    at = (qp.rq_head & (qp.rq_size - 1)) * qp.rq_stride
    try:
        wqe = qp.buffer.read(qp.fn.dma, at, qp.rq_stride)
    except DmaFault as fault:
        raise QueueBroken(f"QP {qp.number:#x}: receive WQE {qp.rq_head}") from fault
    return ReceiveWqe(qp.rq_head, scatter_list(wqe))


def plain(qp: Qp, most: int) -> Plain:
    """Receive WQEs of the QP's own queue that may be read where they are: at most `most`, from the next one on."""
    try:
        count = qp.rq_available or (posted(qp) if qp.rq_size else 0)
    except QueueBroken:
        return NO_WQES
    head, size, stride = qp.rq_head, qp.rq_size, qp.rq_stride
    slot = head & (size - 1)
    wqes = qp.rq_wqes
    if not count or not wqes.find(qp.fn.device.dma, slot):
        return NO_WQES
    end = wqes.end if wqes.end < size else size
    if count > most:
        count = most
    if count > end - slot:
        count = end - slot
    first = wqes.base + slot * stride
    return wqes.mapping.store, range(head, head + count), range(first, first + count * stride, stride)


def took(qp: Qp, count: int) -> None:
    """Take `count` of the WQEs that :func:`plain` showed."""
    qp.rq_head = (qp.rq_head + count) & _INDEX
    qp.rq_available -= count


def take(qp: Qp, pool: ReceivePool | None) -> None:
    """Take the WQE that :func:`peek` showed."""
    if pool is not None:
        pool.take()
    else:
        qp.rq_head = (qp.rq_head + 1) & _INDEX
        qp.rq_available -= 1
