"""A queue pair: its context, its state, and what the data path needs at hand (A7, B1, G3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from softhca.bus import Timer
from softhca.hca.mkey import KeyUser
from softhca.hca.objects import HcaObject
from softhca.hca.q_counter import counters_of
from softhca.hca.srq import VERSION_0_INDEX
from softhca.hca.wq import QueueBuffer, Slots, Word
from softhca.prm.events import EqeQpSrq, EventType
from softhca.prm.qp import (
    Ads,
    Qpc,
    QpState,
    RqType,
    ScatterToCqeRequester,
    ScatterToCqeResponder,
    ServiceType,
)
from softhca.prm.wqe import WQEBB

if TYPE_CHECKING:
    from softhca.hca.cq import Cq
    from softhca.hca.fast import Link
    from softhca.hca.function import Function
    from softhca.hca.odp import Fault
    from softhca.hca.request import Request
    from softhca.hca.srq import ReceivePool

_COUNTER = 0xFFFF
_RECEIVE_WORD, _SEND_WORD = 0, 4
"""Words of the doorbell record (bytes)."""


_RST = QpState.RST
CONNECTED = frozenset((ServiceType.RC, ServiceType.UC, ServiceType.XRC))
"""Services whose QPs have a peer."""
DATAGRAM = frozenset((ServiceType.UD, ServiceType.QP0, ServiceType.QP1))
"""Services whose work requests say where they go."""
SERVICES = (
    ServiceType.RC,
    ServiceType.UC,
    ServiceType.XRC,
    ServiceType.UD,
    ServiceType.QP0,
    ServiceType.QP1,
    ServiceType.REG_UMR,
)
"""The transport services that the device has."""
RQ_TYPES = (RqType.NON_ZERO_RQ, RqType.SRQ_RQ, RqType.ZERO_LEN_RQ)
"""Where its receive work requests may come from: the QP's own queue, a receive pool, nowhere."""
WIDE = 64
"""So many bytes of a message are carried by the first half of a CQE of 128 bytes; less by one of 64 bytes."""
RECEIVE_INLINE: dict[int, int] = {
    ScatterToCqeResponder.DISABLE: 0,
    ScatterToCqeResponder.UP_TO_32B: 32,
    ScatterToCqeResponder.UP_TO_64B: WIDE,
}
"""cs_res: bytes of a received message that its CQE carries, instead of memory."""
SEND_INLINE: dict[int, int] = {
    ScatterToCqeRequester.DISABLE: 0,
    ScatterToCqeRequester.UP_TO_32B: 32,
    ScatterToCqeRequester.UP_TO_64B: WIDE,
}
"""cs_req: the same for what a requester reads."""
MOST_PUSHED = 256
"""WQEs of a QP that are kept from BlueFlame; further ones are read from the queue."""
RECEIVING = frozenset((QpState.RTR, QpState.RTS, QpState.SQD, QpState.SQER))
"""States in which requests of the peer are taken."""
UNLIMITED_RETRIES = 7
"""rnr_retry of this value never ends."""


class Path:
    """Where a connected QP sends to.

    Attributes:
        lid: the peer's LID (InfiniBand).
        gid: the peer's GID (16 bytes); on InfiniBand looked at when `has_gid` alone.
        has_gid: a global route header is sent (InfiniBand).
        mac: the peer's MAC (RoCE).
        pkey_index: of the P_Key that it sends and takes.
    """

    __slots__ = ("gid", "has_gid", "lid", "mac", "pkey_index")

    def __init__(self, ads: Ads) -> None:
        self.lid = ads.rlid
        self.has_gid = bool(ads.grh)
        self.gid = bytes(ads.rgid_rip)
        self.mac = ads.rmac_47_32 << 32 | ads.rmac_31_0
        self.pkey_index = ads.pkey_index


@dataclass(frozen=True, slots=True)
class Inbound:
    """How a QP takes a request of its peer.

    Attributes:
        qp: the responder.
        pool: where receive WQEs come from; None: its own queue.
        cq: where they are completed.
        index: what their CQEs carry in the srqn word: the pool's number, or the user index (CQE version 1).
        local_user, remote_user: what the keys of receive WQEs, and those that requests name, are checked against.
    """

    qp: Qp
    pool: ReceivePool | None
    cq: Cq | None
    index: int
    local_user: KeyUser
    remote_user: KeyUser


class Qp(HcaObject):
    """A queue pair.

    Attributes:
        context: the QP context, as software set it (kept up to date in what a query shows).
        state: its state.
        path: where it sends to.
        key_user: what its own keys are checked against.
        send_psn, receive_psn: packet sequence numbers, next to be sent and next expected (24 bits).
        receive_msn: requests of the peer that were carried out, modulo 2^24: what an acknowledge carries.
        send_cq, recv_cq, pool: what it reports to and takes receive WQEs from; None where it has none.
        uar: number of the UAR page whose send doorbells it hears.
        sq_head, rq_head: index of the next WQE of the send and the receive queue (16 bits, in WQEBBs and in slots).
        sq_size, rq_size: slots; 0 when it has no such queue.
        sq_wqes, rq_wqes: where they are in memory.
        link: what the fast loop knows of the connection.
        timer: while it runs, the send queue waits (for a retry).
        retries, rnr_retries: what is left of them for the message in work.
        counters: the set that it counts in.
        receive_inline, send_inline: bytes of a message that a CQE carries, for the responder and the requester.
        pushed: WQEs that came through BlueFlame and are not carried out, by index.
        carried: what the CQE of the work request in work carries; None: nothing.
        rq_available: receive WQEs that are known to be posted and not taken.
        inbound: how it takes requests; an XRC request names an SRQ instead.
        takes_requests: it is not the initiator's end of an XRC connection.
        established: the event that a peer speaks has been given.
        unanswered: the request that was carried out, but whose answer was lost on its way.
        lost: messages of this unreliable QP that nobody took.
        fault, inbound_fault: the page faults that its send queue, and its end as a responder, waits for.
        flush_pause: nanoseconds until receive WQEs that are posted in error are looked for again.
    """

    __slots__ = (
        "_posted_receives",
        "_posted_sends",
        "_room",
        "_scheduled",
        "_work",
        "atomic_enabled",
        "buffer",
        "carried",
        "context",
        "counters",
        "established",
        "fault",
        "flush_pause",
        "fn",
        "inbound",
        "inbound_fault",
        "key_user",
        "link",
        "lost",
        "max_message",
        "mtu",
        "path",
        "pd",
        "pool",
        "pushed",
        "read_enabled",
        "receive_inline",
        "receive_msn",
        "receive_psn",
        "recv_cq",
        "remote_qpn",
        "retries",
        "retry_count",
        "rnr_retries",
        "rnr_retry",
        "rq_available",
        "rq_head",
        "rq_size",
        "rq_stride",
        "rq_wqes",
        "send_cq",
        "send_index",
        "send_inline",
        "send_psn",
        "service",
        "sq_head",
        "sq_offset",
        "sq_size",
        "sq_wqes",
        "state",
        "takes_requests",
        "timer",
        "uar",
        "unanswered",
        "write_enabled",
    )
    # More than 30 attributes: without slots, each access is a search in a dictionary.

    KIND = "QP"

    def __init__(
        self,
        fn: Function,
        context: Qpc,
        buffer: QueueBuffer,
        *,
        send_cq: Cq | None,
        recv_cq: Cq | None,
        pool: ReceivePool | None,
        work: Callable[[Function, Qp], None],
    ) -> None:
        super().__init__()
        self.fn = fn
        self.context = Qpc(bytearray(bytes(context)))
        self.context.rmsn = 0
        self.buffer = buffer
        figures = fn.device.profile.icm
        self._room = figures.qpc + figures.mtt * buffer.page_count
        self.send_cq = send_cq
        self.recv_cq = recv_cq
        self.pool = pool
        self._work = work
        self._scheduled = False
        self.service = ServiceType(context.st)
        self.state = QpState.RST
        self.pd = context.pd
        self.uar = context.uar_page
        self._posted_receives = Word(context.dbr_addr + _RECEIVE_WORD)
        self._posted_sends = Word(context.dbr_addr + _SEND_WORD)
        self.rq_size = 1 << context.log_rq_size if context.rq_type == RqType.NON_ZERO_RQ else 0
        self.rq_stride = 16 << context.log_rq_stride
        self.sq_offset = self.rq_size * self.rq_stride
        self.sq_size = 0 if context.no_sq else 1 << context.log_sq_size
        self.sq_wqes = Slots(buffer, self.sq_offset, WQEBB, write=False)
        self.rq_wqes = Slots(buffer, 0, self.rq_stride, write=False)
        self.link: Link | None = None
        self.sq_head = 0
        self.rq_head = 0
        self.rq_available = 0
        self.timer: Timer | None = None
        self.retries = 0
        self.rnr_retries = 0
        self.flush_pause = 0
        self.pushed: dict[int, bytes] = {}
        self.receive_inline = RECEIVE_INLINE[context.cs_res]
        self.send_inline = SEND_INLINE[context.cs_req]
        self.carried: bytearray | None = None
        self.takes_requests = self.service is not ServiceType.XRC or context.rq_type == RqType.SRQ_RQ
        self.established = False
        self.lost = 0
        self.unanswered: Request | None = None
        self.fault: Fault | None = None
        self.inbound_fault: Fault | None = None
        self.refresh()

    def icm_bytes(self) -> int:
        """Room of the context and its translation (bytes)."""
        return self._room

    def settle(self) -> None:
        """Write what the data path keeps at hand back into the context."""
        context = self.context
        context.next_send_psn = self.send_psn
        context.next_rcv_psn = self.receive_psn
        context.rmsn = self.receive_msn
        context.last_acked_psn = (self.send_psn - 1) & 0xFF_FFFF

    def refresh(self) -> None:
        """Take over from the context what the data path looks at."""
        context = self.context
        context.state = self.state
        self.remote_qpn = context.remote_qpn
        self.write_enabled = bool(context.rwe)
        self.read_enabled = bool(context.rre)
        self.atomic_enabled = bool(context.rae)
        self.max_message = 1 << context.log_msg_max
        self.mtu = 128 << context.mtu
        self.retry_count = self.retries = context.retry_count
        self.rnr_retry = self.rnr_retries = context.rnr_retry
        self.send_psn = context.next_send_psn
        self.unanswered = None
        self.receive_psn = context.next_rcv_psn
        self.receive_msn = context.rmsn
        self.path = Path(context.primary_address_path)
        self.key_user = KeyUser(self.pd, self.number, bool(context.rlky))
        version_0 = context.user_index == VERSION_0_INDEX or not self.fn.caps.general.cqe_version
        index = (self.pool.number if self.pool else 0) if version_0 else context.user_index
        local_user = KeyUser(self.pool.pd, self.number, bool(context.rlky)) if self.pool else self.key_user
        self.inbound = Inbound(self, self.pool, self.recv_cq, index, local_user, self.key_user)
        self.send_index = 0 if version_0 else context.user_index
        self.counters = counters_of(self.fn, context.counter_set_id)

    @property
    def receive_index(self) -> int:
        """What a responder's CQE carries in its srqn word: the pool's number, or the user index (CQE version 1)."""
        return self.inbound.index

    def ring(self) -> None:
        """Let the engine look at the queues soon; more calls until then cost nothing."""
        if not self._scheduled:
            self._scheduled = True
            self.fn.device.engine.post(self._run)

    def push(self, wqe: bytes) -> None:
        """Take a WQE that was written through a BlueFlame buffer; it is used instead of the queue's copy.

        One that is not among the next to be carried out is left alone: the queue holds it, or it has been.
        """
        index = int.from_bytes(wqe[1:3], "big")
        if (index - self.sq_head) & _COUNTER < self.sq_size and len(self.pushed) < MOST_PUSHED:
            self.pushed[index] = wqe

    def _run(self) -> None:
        self._scheduled = False
        if self.state is not _RST:  # of a queue that is gone, too
            self._work(self.fn, self)

    def pause(self, nanoseconds: int, then: Callable[[], None] | None = None) -> None:
        """Let the queues rest for a while, then ring, or call `then`."""
        self.rest()
        self.timer = self.fn.device.engine.after(nanoseconds, then if then is not None else self.ring)

    def rest(self) -> None:
        """Cancel the timer."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    @property
    def waiting(self) -> bool:
        """Whether the send queue waits for a timer."""
        return self.timer is not None and self.timer.active

    def posted_sends(self) -> int:
        """The send queue's producer index (16 bits), from the doorbell record; may raise DmaFault."""
        return self._posted_sends.read(self.fn.device.dma) & _COUNTER

    def posted_receives(self) -> int:
        """The receive queue's producer index (16 bits), from the doorbell record; may raise DmaFault."""
        return self._posted_receives.read(self.fn.device.dma) & _COUNTER

    def become(self, state: QpState) -> None:
        """Enter a state."""
        self.state = state
        self.context.state = state
        self.rest()
        self.flush_pause = 0
        if state in (QpState.RST, QpState.SQER, QpState.ERR):
            self.fault = None
            self.inbound_fault = self.inbound_fault if state is QpState.SQER else None
        if state is QpState.RST:
            self._write_out()
            self.receive_msn = self.context.rmsn = 0
            self.established = False
            self.pushed.clear()
            self.sq_head = 0
            self.rq_head = 0
            self.rq_available = 0
        if state in (QpState.RTS, QpState.SQER, QpState.ERR):
            self.ring()

    def _write_out(self) -> None:
        """No CQE of this QP is to come after this."""
        for cq in (self.send_cq, self.recv_cq):
            if cq is not None:
                cq.write_out()

    def enter_error(self, event: EventType | None = None) -> None:
        """Go into ERR: what is posted is flushed; give an event about it if there is one to give.

        A QP that takes from a receive pool says that it has taken its last WQE.
        """
        if self.state in (QpState.ERR, QpState.RST):
            return
        self.become(QpState.ERR)
        if event is not None:
            self.report(event)
        if self.pool is not None:
            self.report(EventType.SRQ_LAST_WQE)

    def report(self, event: EventType) -> None:
        """Give an event that carries this QP's number."""
        self.fn.event(event, EqeQpSrq.pack(qp_srq_n=self.number))

    def end(self) -> None:
        """No timer of this QP fires after this, and its queues are not looked at any more."""
        self._write_out()
        self.rest()
        self.link = None
        self.state = QpState.RST
        self.fn.faults = {token: fault for token, fault in self.fn.faults.items() if fault.qp is not self}
        self.fn.special = {number: qp for number, qp in self.fn.special.items() if qp is not self}
