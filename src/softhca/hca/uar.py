"""UAR pages and their doorbells (A3, B11, G1).

A doorbell acts on a queue only through the UAR page that the queue's context names. The first 8 bytes that are
written to a BlueFlame buffer are a doorbell. When the rest of the WQE follows, in order and whole, the queue takes it
from there; if it does not, or comes too late, the WQE is read from the queue, where it lies in any case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from softhca.hca.command import command
from softhca.hca.objects import HcaObject
from softhca.prm.opcodes import Opcode
from softhca.prm.uar import (
    CQ_ARM,
    EQ_ARM,
    EQ_UPDATE,
    SEND_FIRST,
    SEND_STEP,
    AllocUarIn,
    AllocUarOut,
    DeallocUarIn,
    DeallocUarOut,
)
from softhca.prm.wqe import SEGMENT, WQEBB

if TYPE_CHECKING:
    from softhca.hca.function import Function
    from softhca.hca.qp_context import Qp

_DS = 0x3F
"""Segments of a WQE, in the last byte of a doorbell."""


Flame = tuple["Qp", int, bytes]
"""A WQE that is being written: whose it is, bytes that it has in whole WQEBBs, what is there of it."""


class Uar(HcaObject):
    """A UAR page: 4 KiB of BAR0 at number * 4096.

    Attributes:
        flames: WQEs that are being written to BlueFlame buffers, by the offset where the next part belongs.
        halves: first words of 8-byte doorbells that arrive as two 4-byte writes, by offset.
        ignored: writes that were no doorbell of a queue of this page.
    """

    KIND = "UAR"

    def __init__(self) -> None:
        super().__init__()
        self.flames: dict[int, Flame] = {}
        self.halves: dict[int, bytes] = {}
        self.ignored = 0


def doorbell(fn: Function, page: int, offset: int, data: bytes | memoryview) -> None:
    """Take a write to a UAR page. Never fails: what is no doorbell of a queue of this page is ignored and counted.

    Args:
        fn: the function whose BAR was written.
        page: number of the UAR page.
        offset: in the page, 0 to 4095.
        data: the bytes as they lie on the bus.
    """
    uar = fn.uars.find(page)
    if uar is None:
        return
    flame = uar.flames.pop(offset, None) if uar.flames else None
    if flame is not None:
        _go_on(uar, flame, offset, data)
        return
    if offset >= SEND_FIRST:
        known = _send(fn, uar, offset, data)
    elif offset & ~7 == CQ_ARM:
        known = _arm_cq(fn, uar, offset, data)
    elif offset in (EQ_ARM, EQ_UPDATE) and len(data) >= 4:
        known = _update_eq(fn, uar, data, arm=offset == EQ_ARM)
    else:
        known = False
    if not known:
        uar.ignored += 1


def _whole(uar: Uar, offset: int, data: bytes | memoryview) -> bytes | None:
    """The 8 bytes of a doorbell, once both halves are there; None before."""
    at = offset & ~7
    if offset == at and len(data) >= 8:
        return bytes(data[:8])
    if len(data) != 4:
        return b""
    if offset == at:
        uar.halves[at] = bytes(data)
        return None
    first = uar.halves.pop(at, None)
    return b"" if first is None else first + bytes(data)


def _send(fn: Function, uar: Uar, offset: int, data: bytes | memoryview) -> bool:
    if offset % SEND_STEP & ~7:
        return False
    control = bytes(data) if len(data) == 8 and not offset & 7 else _whole(uar, offset, data)
    if control is None:
        return True
    number = int.from_bytes(control[4:7], "big")
    qp = fn.qps.find(number) or fn.send_queues.find(number)
    if qp is None or qp.uar != uar.number:
        return False
    qp.ring()
    length = -(-(control[7] & _DS) * SEGMENT // WQEBB) * WQEBB
    if 0 < length <= SEND_STEP:
        first = offset // SEND_STEP * SEND_STEP + 8
        if len(data) <= 8:
            uar.flames[first] = qp, length, control
        else:
            _go_on(uar, (qp, length, control), first, data[8:])
    return True


def _go_on(uar: Uar, flame: Flame, offset: int, data: bytes | memoryview) -> None:
    """Take a further part of a WQE. Once it is whole, its queue has it."""
    queue, length, wqe = flame
    wqe += bytes(data)
    if len(wqe) < length:
        uar.flames[offset + len(data)] = queue, length, wqe
    else:
        queue.push(wqe[:length])


def _arm_cq(fn: Function, uar: Uar, offset: int, data: bytes | memoryview) -> bool:
    request = _whole(uar, offset, data)
    if request is None:
        return True
    cq = fn.cqs.find(int.from_bytes(request[5:8], "big")) if request else None
    if cq is None or cq.uar != uar.number:
        return False
    cq.arm(int.from_bytes(request[:4], "big"))
    return True


def _update_eq(fn: Function, uar: Uar, data: bytes | memoryview, *, arm: bool) -> bool:
    eq = fn.eqs.find(data[0])
    if eq is None or eq.uar != uar.number:
        return False
    return eq.update(int.from_bytes(data[1:4], "big"), arm=arm)


@command(Opcode.ALLOC_UAR, AllocUarIn, AllocUarOut)
def alloc_uar(fn: Function, request: AllocUarIn, reply: AllocUarOut) -> None:
    """Give a UAR page."""
    reply.uar = fn.uars.add(Uar())


@command(Opcode.DEALLOC_UAR, DeallocUarIn, DeallocUarOut)
def dealloc_uar(fn: Function, request: DeallocUarIn, reply: DeallocUarOut) -> None:
    """Take a UAR page back that no queue refers to."""
    fn.uars.remove(request.uar)
