"""On-demand paging, transport scheme: page faults as events, and PAGE_FAULT_RESUME (G4).

A work request that meets a page that is not there waits: the device gives a page fault event with a token and goes on
with nothing else of that queue. The host brings the pages in (by UMR) and resumes the fault, and the work request is
tried again from its start; or it resumes with an error, and the work request ends as with a key that does not allow
the access. A responder that waits answers "receiver not ready", so that the requester tries again.

At a QP that waits no second event is given for the same side. What may fault is a matter of the capabilities; all else,
and all when no EQ is mapped for the event, ends as without paging.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from softhca.hca.command import command
from softhca.hca.errors import CommandError, KeyViolation
from softhca.hca.mkey import Right
from softhca.prm.events import EqePageFaultRdma, EqePageFaultWqe, EventType
from softhca.prm.mkey import PageFaultFlag, PageFaultResumeIn, PageFaultResumeOut, PageFaultSubtype, PageFaultType
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import ServiceType
from softhca.prm.syndromes import queues
from softhca.prm.syndromes.completion import VendorSyndrome
from softhca.prm.wqe import WqeOpcode

if TYPE_CHECKING:
    from softhca.hca.function import Function
    from softhca.hca.memory import Pointer
    from softhca.hca.qp_context import Inbound, Qp

TOKENS = 1 << 24
_SERVICES = {ServiceType.RC: "rc_odp_caps", ServiceType.XRC: "xrc_odp_caps", ServiceType.UD: "ud_odp_caps"}
_OPERATIONS = {Right.REMOTE_WRITE: "write", Right.REMOTE_READ: "read", Right.REMOTE_ATOMIC: "atomic"}
_READS = frozenset((WqeOpcode.RDMA_READ,))
_SENDS = frozenset((WqeOpcode.SEND, WqeOpcode.SEND_IMM, WqeOpcode.SEND_INVAL))
_WRITES = frozenset((WqeOpcode.RDMA_WRITE, WqeOpcode.RDMA_WRITE_IMM))


@dataclass(slots=True, eq=False)
class Fault:
    """A page fault that waits for the host, or that the host has refused to resolve.

    Attributes:
        qp: who waits.
        token: names it to the host, 24 bits.
        number: of the queue that the event named; of an RDMA fault the token.
        kind: page_fault_type.
        refused: it was resumed with an error.
    """

    qp: Qp
    token: int
    number: int
    kind: int
    refused: bool = False


def _may(qp: Qp, operation: str) -> bool:
    """Whether an operation of the QP's service may fault."""
    name = _SERVICES.get(qp.service)
    caps = qp.fn.caps
    return bool(
        name and caps.general.pg and getattr(getattr(caps.odp.transport_page_fault_scheme_cap, name), operation)
    )


def _token(fn: Function) -> int:
    """A token that no fault has; they are used in turn, so that an old one is not soon right again."""
    token = fn.next_fault
    while token in fn.faults:
        token = (token + 1) % TOKENS
    fn.next_fault = (token + 1) % TOKENS
    return token


def _wqe_fault(qp: Qp, kind: PageFaultType, number: int, index: int, length: int = 0) -> Fault | None:
    """Tell the host of a fault at a WQE; None when nobody listens."""
    fn = qp.fn
    token = _token(fn)
    event = EqePageFaultWqe.pack(wqe_index=index, packet_length=length, token=token, pftype_wq=kind << 24 | number)
    if not fn.event(EventType.PAGE_FAULT, event, PageFaultSubtype.WQE):
        return None
    fault = fn.faults[token] = Fault(qp, token, number, kind)
    return fault


def requester_waits(qp: Qp, index: int, opcode: int) -> bool:
    """A send WQE has met a page that is not there: let the QP wait for the host, if that may be.

    Args:
        qp: the requester.
        index: of the WQE.
        opcode: of the WQE.
    """
    if opcode in _SENDS:
        operation, kind = "send", PageFaultType.REQ_SEND_OR_WRITE
    elif opcode in _WRITES:
        operation, kind = "write", PageFaultType.REQ_SEND_OR_WRITE
    else:
        operation, kind = "read" if opcode in _READS else "atomic", PageFaultType.REQ_READ_OR_ATOMIC
    if not _may(qp, operation):
        return False
    qp.fault = _wqe_fault(qp, kind, qp.number, index)
    return qp.fault is not None


def check_refusal(qp: Qp) -> None:
    """Look whether the host has refused to resolve the fault that the responder waited for; this is told once.

    Raises:
        KeyViolation: it has.
    """
    fault = qp.inbound_fault
    if fault is not None and fault.refused:
        qp.inbound_fault = None
        raise KeyViolation(VendorSyndrome.KEY_NOT_PRESENT)


def receiver_waits(inbound: Inbound, index: int, length: int) -> bool:
    """A message has met a receive WQE whose memory is not there: let the responder wait, if that may be.

    Args:
        inbound: the responder.
        index: of the receive WQE.
        length: bytes of the message.
    """
    qp, pool = inbound.qp, inbound.pool
    if qp.inbound_fault is not None:
        return True
    if not _may(qp, "receive" if pool is None else "srq_receive"):
        return False
    kind, number = (PageFaultType.RESP, qp.number) if pool is None else (PageFaultType.RMP, pool.number)
    qp.inbound_fault = _wqe_fault(qp, kind, number, index, min(length, qp.mtu))
    return qp.inbound_fault is not None


def responder_waits(inbound: Inbound, pointer: Pointer, right: Right) -> bool:
    """A request has met a page that is not there: let the responder wait, if that may be.

    Args:
        inbound: the responder.
        pointer: what the request names.
        right: what is to be done there.
    """
    qp, operation = inbound.qp, _OPERATIONS[right]
    if qp.inbound_fault is not None:
        return True
    if not _may(qp, operation):
        return False
    fn = qp.fn
    token = _token(fn)
    kind = PageFaultFlag.RDMA | (PageFaultFlag(0) if operation == "read" else PageFaultFlag.WRITE)
    event = EqePageFaultRdma.pack(
        r_key=pointer.key,
        packet_length=min(pointer.length, qp.mtu),
        rdma_op_len=pointer.length,
        rdma_va=pointer.address,
        pftype_token=kind << 24 | token,
    )
    if not fn.event(EventType.PAGE_FAULT, event, PageFaultSubtype.RDMA):
        return False
    qp.inbound_fault = fn.faults[token] = Fault(qp, token, token, kind)
    return True


@command(Opcode.PAGE_FAULT_RESUME, PageFaultResumeIn, PageFaultResumeOut, partial="transport scheme")
def page_fault_resume(fn: Function, request: PageFaultResumeIn, reply: PageFaultResumeOut) -> None:
    """Let the QP of a page fault try again; or, with the error bit, end its work request in error.

    A QP that has left the state in which it met the fault takes this without effect.
    """
    info = request.page_fault_info.trans_page_fault_info
    fault = fn.faults.get(info.fault_token)
    if fault is None:
        raise CommandError(queues.PAGE_FAULT_TOKEN, f"fault_token {info.fault_token:#x}, {len(fn.faults)} wait")
    if info.wq_number != fault.number or info.page_fault_type != fault.kind:
        raise CommandError(
            queues.PAGE_FAULT_OTHER,
            f"wq_number {info.wq_number:#x} ({fault.number:#x}), type {info.page_fault_type} ({fault.kind})",
        )
    del fn.faults[fault.token]
    qp = fault.qp
    fault.refused = bool(info.error)
    if qp.fault is fault:
        qp.fault = fault if fault.refused else None
        qp.ring()
    elif qp.inbound_fault is fault and not fault.refused:
        qp.inbound_fault = None
