"""Q counters: sets of counters that QPs count in, as their counter_set_id says (C11, G5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softhca.hca.command import command
from softhca.hca.errors import CommandError
from softhca.hca.objects import HcaObject
from softhca.prm.cqe import CqeOpcode, CqeSyndrome
from softhca.prm.opcodes import Opcode
from softhca.prm.q_counter import (
    AllocQCounterIn,
    AllocQCounterOut,
    DeallocQCounterIn,
    DeallocQCounterOut,
    QueryQCounterIn,
    QueryQCounterOut,
)
from softhca.prm.syndromes import queues

if TYPE_CHECKING:
    from softhca.hca.function import Function

_WORD = 0xFFFF_FFFF
MOST_SETS = 256
"""Numbers of counter sets have 8 bits."""


class QCounter(HcaObject):
    """A set of counters. Set 0 exists always; QPs that name no other count there.

    Attributes:
        rx_write_requests, rx_read_requests, rx_atomic_requests: requests that were carried out as the responder.
        out_of_buffer: messages that found no receive WQE.
        rnr_nak_retry_err: RNR NAKs that came back to the requester.
        local_ack_timeout_err: times that no answer came before the timeout.
        duplicate_request, out_of_sequence: requests that came again, or before an earlier one, to the responder.
        packet_seq_err: NAKs for a sequence error that came back to the requester.
        cq_overflow: CQEs that found their CQ full.
        resp_remote_access_errors, resp_remote_invalid_request: requests that were refused as the responder.
        errors: error CQEs, by the counter's name.
    """

    KIND = "Q counter"
    ICM_BYTES = QueryQCounterOut.SIZE

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        """All counters to 0."""
        self.rx_write_requests = 0
        self.rx_read_requests = 0
        self.rx_atomic_requests = 0
        self.out_of_buffer = 0
        self.rnr_nak_retry_err = 0
        self.local_ack_timeout_err = 0
        self.cq_overflow = 0
        self.duplicate_request = 0
        self.out_of_sequence = 0
        self.packet_seq_err = 0
        self.resp_remote_access_errors = 0
        self.resp_remote_invalid_request = 0
        self.errors = dict.fromkeys({*_REQUESTER.values(), *_RESPONDER.values(), *_ALL.values()}, 0)

    def error_cqe(self, opcode: CqeOpcode, syndrome: CqeSyndrome) -> None:
        """Count an error CQE: in what all of its side count in, and in its syndrome's own counter if it has one."""
        self.errors[_ALL[opcode]] += 1
        own = (_REQUESTER if opcode is CqeOpcode.REQ_ERR else _RESPONDER).get(syndrome)
        if own is not None:
            self.errors[own] += 1

    def show(self, reply: QueryQCounterOut) -> None:
        """Fill a reply: 32 bits of each counter."""
        for name in _PLAIN:
            setattr(reply, name, getattr(self, name) & _WORD)
        for name, count in self.errors.items():
            setattr(reply, name, count & _WORD)


_PLAIN = (
    "rx_write_requests",
    "rx_read_requests",
    "rx_atomic_requests",
    "out_of_buffer",
    "rnr_nak_retry_err",
    "local_ack_timeout_err",
    "cq_overflow",
    "duplicate_request",
    "out_of_sequence",
    "packet_seq_err",
    "resp_remote_access_errors",
    "resp_remote_invalid_request",
)
_ALL = {CqeOpcode.REQ_ERR: "req_cqe_error", CqeOpcode.RESP_ERR: "resp_cqe_error"}
_REQUESTER = {
    CqeSyndrome.LOCAL_LENGTH_ERR: "req_local_length_error",
    CqeSyndrome.LOCAL_QP_OP_ERR: "local_operation_error",
    CqeSyndrome.LOCAL_PROT_ERR: "req_local_protection",
    CqeSyndrome.WR_FLUSH_ERR: "req_cqe_flush_error",
    CqeSyndrome.MW_BIND_ERR: "req_mw_binding",
    CqeSyndrome.BAD_RESP_ERR: "req_bad_response",
    CqeSyndrome.REMOTE_INVAL_REQ_ERR: "req_remote_invalid_request",
    CqeSyndrome.REMOTE_ACCESS_ERR: "req_remote_access_errors",
    CqeSyndrome.REMOTE_OP_ERR: "req_remote_operation_errors",
    CqeSyndrome.TRANSPORT_RETRY_EXC_ERR: "req_transport_retries_exceeded",
    CqeSyndrome.RNR_RETRY_EXC_ERR: "req_rnr_retries_exceeded",
}
_RESPONDER = {
    CqeSyndrome.LOCAL_LENGTH_ERR: "resp_local_length_error",
    CqeSyndrome.LOCAL_QP_OP_ERR: "resp_local_qp_error",
    CqeSyndrome.LOCAL_PROT_ERR: "resp_local_protection",
    CqeSyndrome.WR_FLUSH_ERR: "resp_cqe_flush_error",
}


def counters_of(fn: Function, number: int) -> QCounter:
    """The set that a QP with this counter_set_id counts in; one that is gone counts in set 0."""
    return fn.q_counters.find(number) or fn.default_counters


def _set(fn: Function, number: int) -> QCounter:
    return fn.q_counters.get(number) if number else fn.default_counters


@command(Opcode.ALLOC_Q_COUNTER, AllocQCounterIn, AllocQCounterOut)
def alloc_q_counter(fn: Function, request: AllocQCounterIn, reply: AllocQCounterOut) -> None:
    """Give a set of counters, all 0."""
    reply.counter_set_id = fn.q_counters.add(QCounter())


@command(Opcode.DEALLOC_Q_COUNTER, DeallocQCounterIn, DeallocQCounterOut)
def dealloc_q_counter(fn: Function, request: DeallocQCounterIn, reply: DeallocQCounterOut) -> None:
    """Take a set of counters back; QPs that name it count in set 0 from their next transition on."""
    fn.q_counters.remove(request.counter_set_id)


@command(Opcode.QUERY_Q_COUNTER, QueryQCounterIn, QueryQCounterOut, partial="own vport, no aggregation")
def query_q_counter(fn: Function, request: QueryQCounterIn, reply: QueryQCounterOut) -> None:
    """Read a set of counters, and clear it if wanted."""
    if request.other_vport or request.aggregate:
        raise CommandError(
            queues.Q_COUNTER_VPORT, f"other_vport {request.other_vport}, aggregate {request.aggregate}; allowed is 0"
        )
    counters = _set(fn, request.counter_set_id)
    counters.show(reply)
    if request.clear:
        counters.clear()
