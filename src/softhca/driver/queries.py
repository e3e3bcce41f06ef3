"""Snapshots that the device gives of itself and of its objects; none of them pauses anything (source 5.6, B1, E6)."""

from __future__ import annotations

from dataclasses import dataclass

from softhca.driver.cmd import CommandChannel
from softhca.prm.adapter import QueryAdapterIn, QueryAdapterOut
from softhca.prm.cq import QueryCqIn, QueryCqOut
from softhca.prm.eq import QueryEqIn, QueryEqOut
from softhca.prm.mkey import QueryMkeyIn, QueryMkeyOut
from softhca.prm.opcodes import Opcode
from softhca.prm.q_counter import QueryQCounterIn, QueryQCounterOut
from softhca.prm.qp import QpState, QueryQpIn, QueryQpOut
from softhca.prm.special_contexts import QuerySpecialContextsIn, QuerySpecialContextsOut
from softhca.prm.vport import QueryVportStateIn, QueryVportStateOut, VportState


@dataclass(frozen=True)
class Adapter:
    """QUERY_ADAPTER: who it is.

    Attributes:
        vendor: IEEE vendor id, 24 bits.
        board: board id (PSID).
    """

    vendor: int
    board: str


@dataclass(frozen=True)
class EqSnapshot:
    """QUERY_EQ.

    Attributes:
        slots: EQEs of the queue.
        vector: its MSI-X vector.
        consumer, producer: 24-bit counters.
        events: types that it gets, as a bit mask.
    """

    slots: int
    vector: int
    consumer: int
    producer: int
    events: int


@dataclass(frozen=True)
class CqSnapshot:
    """QUERY_CQ.

    Attributes:
        slots: CQEs of the queue.
        eqn: where its events go.
        consumer, producer: 24-bit counters.
        status: 0 while it works.
    """

    slots: int
    eqn: int
    consumer: int
    producer: int
    status: int


@dataclass(frozen=True)
class QpSnapshot:
    """QUERY_QP.

    Attributes:
        state: of the QP.
        remote_qpn: its peer.
        send_psn, receive_psn: next packet sequence numbers.
        send_slots, receive_slots: 64-byte blocks, receive WQEs.
        pd, send_cqn, receive_cqn: what it refers to.
    """

    state: QpState
    remote_qpn: int
    send_psn: int
    receive_psn: int
    send_slots: int
    receive_slots: int
    pd: int
    send_cqn: int
    receive_cqn: int


@dataclass(frozen=True)
class KeySnapshot:
    """QUERY_MKEY.

    Attributes:
        start: HCA virtual address of the first byte.
        length: bytes.
        pd: its domain.
        free: it opens nothing now.
    """

    start: int
    length: int
    pd: int
    free: bool


def adapter(channel: CommandChannel) -> Adapter:
    """Who the adapter is.

    Raises:
        CommandError: as each of these functions.
    """
    found = channel.execute(Opcode.QUERY_ADAPTER, QueryAdapterIn.new(), QueryAdapterOut).query_adapter_struct
    return Adapter(found.ieee_vendor_id, bytes(found.vsd_contd_psid).rstrip(b"\0").decode("ascii", "replace"))


def reserved_key(channel: CommandChannel) -> int:
    """QUERY_SPECIAL_CONTEXTS: the lkey that opens all memory to a privileged QP."""
    return channel.execute(
        Opcode.QUERY_SPECIAL_CONTEXTS, QuerySpecialContextsIn.new(), QuerySpecialContextsOut
    ).resd_lkey


def eq(channel: CommandChannel, number: int) -> EqSnapshot:
    """An EQ."""
    reply = channel.execute(Opcode.QUERY_EQ, QueryEqIn.new(eq_number=number), QueryEqOut)
    context = reply.eq_context_entry
    return EqSnapshot(
        1 << context.log_eq_size,
        context.intr,
        context.consumer_counter,
        context.producer_counter,
        reply.event_bitmask,
    )


def cq(channel: CommandChannel, number: int) -> CqSnapshot:
    """A CQ."""
    context = channel.execute(Opcode.QUERY_CQ, QueryCqIn.new(cqn=number), QueryCqOut).cq_context
    return CqSnapshot(
        1 << context.log_cq_size,
        context.c_eqn_or_apu_element,
        context.consumer_counter,
        context.producer_counter,
        context.status,
    )


def qp(channel: CommandChannel, number: int) -> QpSnapshot:
    """A QP."""
    context = channel.execute(Opcode.QUERY_QP, QueryQpIn.new(qpn=number), QueryQpOut).qpc
    return QpSnapshot(
        QpState(context.state),
        context.remote_qpn,
        context.next_send_psn,
        context.next_rcv_psn,
        1 << context.log_sq_size,
        1 << context.log_rq_size,
        context.pd,
        context.cqn_snd,
        context.cqn_rcv,
    )


def key(channel: CommandChannel, mkey: int) -> KeySnapshot:
    """A key, by its 32 bits as lkey or rkey."""
    reply = channel.execute(Opcode.QUERY_MKEY, QueryMkeyIn.new(mkey_index=mkey >> 8), QueryMkeyOut)
    entry = reply.memory_key_mkey_entry
    return KeySnapshot(entry.start_addr, entry.len, entry.pd, bool(entry.free))


def vport_state(channel: CommandChannel) -> VportState:
    """The logical port's state; it is not the link's, and not a QP's (C11)."""
    reply = channel.execute(Opcode.QUERY_VPORT_STATE, QueryVportStateIn.new(), QueryVportStateOut)
    return VportState(reply.state)


def q_counters(channel: CommandChannel, counter_set: int = 0) -> dict[str, int]:
    """A set of queue counters, by name."""
    request = QueryQCounterIn.new(counter_set_id=counter_set)
    reply = channel.execute(Opcode.QUERY_Q_COUNTER, request, QueryQCounterOut)
    return {name: getattr(reply, name) for name in reply.FIELDS if name not in ("status", "syndrome")}
