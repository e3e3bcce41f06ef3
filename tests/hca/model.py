"""A model of two QPs that are each other's peers: two memories, the work that is posted, and what completes.

Written from the InfiniBand specification and the manual, not from the device: plain and slow, a byte at a time, no
queue memory, no translation. It knows nothing of `softhca.hca`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from softhca.prm.cqe import CqeOpcode, CqeSyndrome
from softhca.prm.qp import QpState, ServiceType
from softhca.prm.wqe import WqeOpcode

ALL = (1 << 64) - 1
GRH = 40
SENDS = {WqeOpcode.SEND, WqeOpcode.SEND_IMM, WqeOpcode.SEND_INVAL}
WRITES = {WqeOpcode.RDMA_WRITE, WqeOpcode.RDMA_WRITE_IMM}
ATOMICS = {WqeOpcode.ATOMIC_CS, WqeOpcode.ATOMIC_FA, WqeOpcode.ATOMIC_MASKED_CS, WqeOpcode.ATOMIC_MASKED_FA}
IMMEDIATE = {WqeOpcode.SEND_IMM, WqeOpcode.SEND_INVAL, WqeOpcode.RDMA_WRITE_IMM}
DATAGRAM = {WqeOpcode.SEND, WqeOpcode.SEND_IMM}
UNRELIABLE = DATAGRAM | WRITES
RELIABLE = SENDS | WRITES | ATOMICS | {WqeOpcode.RDMA_READ}
OPCODES = {
    ServiceType.RC: RELIABLE,
    ServiceType.XRC: RELIABLE,
    ServiceType.UC: UNRELIABLE,
    ServiceType.UD: DATAGRAM,
}
RECEIVED = {
    WqeOpcode.SEND: CqeOpcode.RESP_SEND,
    WqeOpcode.SEND_IMM: CqeOpcode.RESP_SEND_IMM,
    WqeOpcode.SEND_INVAL: CqeOpcode.RESP_SEND_INV,
    WqeOpcode.RDMA_WRITE_IMM: CqeOpcode.RESP_WR_IMM,
}
NOWHERE = -1
"""A place that is no memory: it reads as zero, and nobody sees what is written there."""
MTU = 4096

Places = Sequence[int]
"""Offsets in a side's memory, one for each byte."""


@dataclass
class Key:
    """A memory key: from `start` on, its bytes lie at `places`, for the `rights` lr, lw, rr, rw, a.

    Attributes:
        usable: not free, and of the QP's protection domain.
        revocable: a peer may invalidate it.
    """

    start: int
    places: Places
    rights: frozenset[str]
    usable: bool = True
    revocable: bool = False


@dataclass
class Part:
    """`length` bytes at `address` of a key; the key is what lkeys and rkeys are: index and key byte."""

    key: int
    address: int
    length: int


@dataclass
class Bind:
    """A window that is bound to a part of a key (None: it is invalidated), under a new number."""

    window: int
    target: Part | None = None
    number: int = 0
    rights: frozenset[str] = frozenset()


@dataclass
class Work:
    """A send work request; `route` is the destination QP, the Q_Key and the GRH (or None) of a datagram."""

    counter: int
    opcode: WqeOpcode
    local: Sequence[bytes | Part] = ()
    remote: Part | None = None
    immediate: int = 0
    operands: tuple[int, ...] = ()
    signalled: bool = True
    solicited: bool = False
    bind: Bind | None = None
    route: tuple[int, int, bytes | None] = (0, 0, None)


@dataclass
class Receive:
    """A receive work request."""

    counter: int
    parts: Sequence[Part]


@dataclass(frozen=True)
class Completion:
    """What a CQE says.

    Attributes:
        work: opcode of the send WQE.
        source: what the CQE of a datagram says of its sender.
        carried: the message itself, when the CQE carries it in place of memory.
    """

    opcode: CqeOpcode
    counter: int
    qpn: int
    work: int = 0
    syndrome: int = 0
    length: int = 0
    immediate: int = 0
    solicited: bool = False
    source: int = 0
    carried: bytes = b""


class Failed(Exception):
    """The work request ends with `syndrome`."""

    def __init__(self, syndrome: CqeSyndrome) -> None:
        super().__init__(syndrome.name)
        self.syndrome = syndrome


class NotReady(Exception):
    """The peer has no receive work request."""


@dataclass
class Side:
    """One of the QPs, with its memory and its keys.

    Attributes:
        shared: receive work requests are in a pool; they outlive the QP.
        allowed: what the peer may ask for: read, write, atomic.
        carries_received, carries_read: bytes of a message that a CQE carries.
        sent, received: completions that are to come.
    """

    qpn: int
    memory: bytearray
    keys: dict[int, Key] = field(default_factory=dict)
    state: QpState = QpState.RTS
    shared: bool = False
    allowed: frozenset[str] = frozenset(("read", "write", "atomic"))
    qkey: int = 0
    carries_received: int = 0
    carries_read: int = 0
    carried: bytes = b""
    posted: list[Work] = field(default_factory=list)
    receives: list[Receive] = field(default_factory=list)
    sent: list[Completion] = field(default_factory=list)
    received: list[Completion] = field(default_factory=list)

    def find(self, part: Part, right: str) -> Places | None:
        """Where the bytes of a part lie, or None: the key does not allow it."""
        key = self.keys.get(part.key)
        if key is None or not key.usable or right not in key.rights:
            return None
        at = part.address - key.start
        return key.places[at : at + part.length] if 0 <= at <= at + part.length <= len(key.places) else None

    def locate(self, part: Part, right: str, refusal: CqeSyndrome) -> Places:
        """As :meth:`find`; a refusal is `refusal`."""
        places = self.find(part, right)
        if places is None:
            raise Failed(refusal)
        return places

    def read(self, places: Places) -> bytes:
        """The bytes at places."""
        return bytes(0 if place == NOWHERE else self.memory[place] for place in places)

    def write(self, places: Places, data: bytes) -> None:
        """Put data to the first of places."""
        for place, byte in zip(places, data, strict=False):
            if place != NOWHERE:
                self.memory[place] = byte

    def enter_error(self) -> None:
        """What is posted is flushed."""
        self.state = QpState.ERR
        self.flush_sends()
        self.flush_receives()

    def flush_sends(self) -> None:
        """Complete what is posted to the send queue in error."""
        for work in self.posted:
            self.sent.append(self.error(work, CqeSyndrome.WR_FLUSH_ERR))
        self.posted.clear()

    def flush_receives(self) -> None:
        """The same for the receive queue, if it is the QP's own."""
        if self.shared:
            return
        for receive in self.receives:
            self.received.append(
                Completion(CqeOpcode.RESP_ERR, receive.counter, self.qpn, syndrome=CqeSyndrome.WR_FLUSH_ERR)
            )
        self.receives.clear()

    def error(self, work: Work, syndrome: CqeSyndrome) -> Completion:
        """The completion of a work request that failed."""
        return Completion(CqeOpcode.REQ_ERR, work.counter, self.qpn, work.opcode, syndrome)


def add_fields(old: int, add: int, boundary: int) -> int:
    """An adder, bit by bit: no carry leaves a bit that is set in `boundary`."""
    total = carry = 0
    for bit in range(64):
        here = (old >> bit & 1) + (add >> bit & 1) + carry
        total |= (here & 1) << bit
        carry = 0 if boundary >> bit & 1 else here >> 1
    return total


def compare_and_swap(old: int, swap: int, compare: int, swap_mask: int = ALL, compare_mask: int = ALL) -> int:
    """Bit by bit: the masked bits of `swap`, when all masked bits of `compare` are as in `old`."""
    bits = range(64)
    if any(compare_mask >> bit & 1 and (old ^ compare) >> bit & 1 for bit in bits):
        return old
    return sum((swap if swap_mask >> bit & 1 else old) & 1 << bit for bit in bits)


CHANGES: dict[WqeOpcode, Callable[..., int]] = {
    WqeOpcode.ATOMIC_CS: compare_and_swap,
    WqeOpcode.ATOMIC_FA: lambda old, add, _: add_fields(old, add, 0),
    WqeOpcode.ATOMIC_MASKED_CS: compare_and_swap,
    WqeOpcode.ATOMIC_MASKED_FA: add_fields,
}


@dataclass
class Model:
    """Two sides and the connection between them.

    Attributes:
        patient: a work request waits for as long as its peer is not ready (rnr_retry 7); else it fails at last.
        host_order: results of atomics are numbers of the host, which is little-endian; else they are big-endian.
        longest: most bytes of a message.
    """

    service: ServiceType
    left: Side
    right: Side
    patient: bool = False
    host_order: bool = False
    longest: int = 1 << 12

    def run(self, side: Side) -> None:
        """Carry out what is posted to a side's send queue, as far as it goes."""
        while side.posted and side.state is QpState.RTS:
            work, side.carried = side.posted[0], b""
            try:
                length = self._carry_out(side, work)
            except NotReady:
                if self.patient:
                    return
                self._fail(side, CqeSyndrome.RNR_RETRY_EXC_ERR)
            except Failed as failure:
                self._fail(side, failure.syndrome)
            else:
                side.posted.pop(0)
                if work.signalled:
                    done = Completion(CqeOpcode.REQ, work.counter, side.qpn, work.opcode, length=length)
                    side.sent.append(replace(done, carried=side.carried))
        if side.state is not QpState.RTS:
            side.flush_sends()
        if side.state is QpState.ERR:
            side.flush_receives()

    def _fail(self, side: Side, syndrome: CqeSyndrome) -> None:
        """The first work request fails: a reliable QP is over, of an unreliable one the send queue alone."""
        side.sent.append(side.error(side.posted.pop(0), syndrome))
        if self.service in (ServiceType.RC, ServiceType.XRC):
            side.enter_error()
        else:
            side.state = QpState.SQER

    def _carry_out(self, side: Side, work: Work) -> int:
        """The bytes that a work request moves."""
        peer = self.right if side is self.left else self.left
        if work.opcode is WqeOpcode.NOP:
            return 0
        if work.bind is not None:
            self._bind(side, work.bind)
            return 0
        if work.opcode not in OPCODES[self.service]:
            raise Failed(CqeSyndrome.LOCAL_QP_OP_ERR)
        if work.opcode is WqeOpcode.RDMA_READ or work.opcode in ATOMICS:
            return self._fetch(side, peer, work)
        payload = self._gather(side, work)
        if self.service is ServiceType.UD:
            self._datagram(side, peer, work, payload)
        else:
            try:
                self._deliver(peer, work, payload)
            except (Failed, NotReady):
                if self.service is not ServiceType.UC:
                    raise
        return len(payload)

    def _length(self, work: Work) -> int:
        length = sum(len(part) if isinstance(part, bytes) else part.length for part in work.local)
        if length > self.longest:
            raise Failed(CqeSyndrome.LOCAL_LENGTH_ERR)
        return length

    def _gather(self, side: Side, work: Work) -> bytes:
        self._length(work)
        data = b""
        for part in work.local:
            if isinstance(part, bytes):
                data += part
            else:
                data += side.read(side.locate(part, "lr", CqeSyndrome.LOCAL_PROT_ERR))
        return data

    def _reach(self, peer: Side) -> None:
        """A peer in error answers nothing."""
        if peer.state is QpState.ERR:
            raise Failed(CqeSyndrome.TRANSPORT_RETRY_EXC_ERR)

    def _refuse(self, peer: Side, syndrome: CqeSyndrome) -> Failed:
        """The responder refuses for good: that is the end of a reliable connection."""
        if self.service is not ServiceType.UC:
            peer.enter_error()
        return Failed(syndrome)

    def _permit(self, peer: Side, what: str) -> None:
        if what not in peer.allowed:
            raise self._refuse(peer, CqeSyndrome.REMOTE_INVAL_REQ_ERR)

    def _remote(self, peer: Side, part: Part, length: int, right: str) -> Places:
        """Places at the peer; the key of no bytes is not looked at."""
        if not length:
            return ()
        places = peer.find(Part(part.key, part.address, length), right)
        if places is None:
            raise self._refuse(peer, CqeSyndrome.REMOTE_ACCESS_ERR)
        return places

    def _fetch(self, side: Side, peer: Side, work: Work) -> int:
        """RDMA READ and atomics: what the peer's memory holds comes back."""
        assert work.remote is not None
        if any(isinstance(part, bytes) for part in work.local):
            raise Failed(CqeSyndrome.LOCAL_QP_OP_ERR)
        length = self._length(work)
        atomic = work.opcode in ATOMICS
        if atomic and length != 8:
            raise Failed(CqeSyndrome.LOCAL_LENGTH_ERR)
        targets: list[int] = []
        for part in work.local:
            assert isinstance(part, Part)
            targets += side.locate(part, "lw", CqeSyndrome.LOCAL_PROT_ERR)
        self._reach(peer)
        self._permit(peer, "atomic" if atomic else "read")
        if atomic and work.remote.address % 8:
            raise self._refuse(peer, CqeSyndrome.REMOTE_INVAL_REQ_ERR)
        places = self._remote(peer, work.remote, length, "a" if atomic else "rr")
        data = peer.read(places)
        if atomic:
            old = int.from_bytes(data, "little")
            peer.write(places, CHANGES[work.opcode](old, *work.operands).to_bytes(8, "little"))
            data = old.to_bytes(8, "little" if self.host_order else "big")
        if work.signalled and not atomic and length <= side.carries_read:
            side.carried = data
        else:
            side.write(targets, data)
        return length

    def _deliver(self, peer: Side, work: Work, payload: bytes) -> None:
        """SEND and RDMA WRITE."""
        self._reach(peer)
        if work.opcode in WRITES:
            assert work.remote is not None
            self._permit(peer, "write")
            places = self._remote(peer, work.remote, len(payload), "rw")
            if work.opcode is WqeOpcode.RDMA_WRITE_IMM:
                self._receive(peer, work, len(payload))
            peer.write(places, payload)
            return
        if not peer.receives:
            raise NotReady
        if work.opcode is WqeOpcode.SEND_INVAL:
            key = peer.keys.get(work.immediate)
            if key is None or not key.usable or not key.revocable:
                raise self._refuse(peer, CqeSyndrome.REMOTE_ACCESS_ERR)
            places = self._scatter(peer, len(payload))
            key.usable = False
        else:
            places = self._scatter(peer, len(payload))
        carried = work.opcode is not WqeOpcode.SEND_INVAL and len(payload) <= peer.carries_received
        if not carried:
            peer.write(places, payload)
        self._receive(peer, work, len(payload), carried=payload if carried else b"")

    def _scatter(self, peer: Side, length: int) -> Places:
        """Where the next receive work request puts a message."""
        places: list[int] = []
        for part in peer.receives[0].parts:
            step = min(part.length, length - len(places))
            found = peer.find(Part(part.key, part.address, step), "lw") if step else ()
            if found is None:
                raise self._spoiled(peer, CqeSyndrome.LOCAL_PROT_ERR, CqeSyndrome.REMOTE_OP_ERR)
            places += found
        if len(places) < length and self.service is ServiceType.UC:
            raise Failed(CqeSyndrome.REMOTE_INVAL_REQ_ERR)
        if len(places) < length:
            raise self._spoiled(peer, CqeSyndrome.LOCAL_LENGTH_ERR, CqeSyndrome.REMOTE_INVAL_REQ_ERR)
        return places

    def _spoiled(self, peer: Side, local: CqeSyndrome, remote: CqeSyndrome) -> Failed:
        """The receive work request is wrong: both ends learn of it."""
        receive = peer.receives.pop(0)
        peer.received.append(Completion(CqeOpcode.RESP_ERR, receive.counter, peer.qpn, syndrome=local))
        peer.enter_error()
        return Failed(remote)

    def _receive(self, peer: Side, work: Work, length: int, source: int = 0, carried: bytes = b"") -> None:
        """Complete the next receive work request."""
        if not peer.receives:
            raise NotReady
        immediate = work.immediate if work.opcode in IMMEDIATE else 0
        peer.received.append(
            Completion(
                RECEIVED[work.opcode],
                peer.receives.pop(0).counter,
                peer.qpn,
                length=length,
                immediate=immediate,
                solicited=work.solicited,
                source=source,
                carried=carried,
            )
        )

    def _datagram(self, side: Side, peer: Side, work: Work, payload: bytes) -> None:
        """A datagram is lost unless its QP is there, has the Q_Key, and has a receive work request."""
        qpn, qkey, grh = work.route
        if len(payload) > MTU:
            raise Failed(CqeSyndrome.LOCAL_LENGTH_ERR)
        if qpn != peer.qpn or qkey != peer.qkey or peer.state is QpState.ERR or not peer.receives:
            return
        try:
            places = self._scatter(peer, GRH + len(payload))
        except Failed:
            return
        peer.write(places[:GRH], grh or b"")
        peer.write(places[GRH:], payload)
        self._receive(peer, work, GRH + len(payload), (grh is not None) << 28 | side.qpn)

    def _bind(self, side: Side, bind: Bind) -> None:
        """Bind a window to a part of a key of the same QP's protection domain, or invalidate it."""
        key = side.keys.get(bind.window)
        if bind.target is None:
            if key is None or not key.usable:
                raise Failed(CqeSyndrome.MW_BIND_ERR)
            key.usable = False
            return
        if key is None or key.usable:
            raise Failed(CqeSyndrome.MW_BIND_ERR)
        if bind.target.address + bind.target.length > ALL + 1:
            raise Failed(CqeSyndrome.LOCAL_QP_OP_ERR)  # no such range, in whatever key
        needed = ["lr", *(["lw"] if bind.rights & {"rw", "a"} else [])]
        places = [side.find(bind.target, right) for right in needed]
        if None in places:
            raise Failed(CqeSyndrome.MW_BIND_ERR)
        del side.keys[bind.window]
        side.keys[bind.number] = Key(bind.target.address, places[0] or (), bind.rights, revocable=True)


def global_route(source: bytes, destination: bytes, length: int, *, immediate: bool, hops: int, flow: int) -> bytes:
    """The GRH of a datagram of `length` bytes: BTH, DETH, perhaps ImmDt, padding and ICRC count as payload."""
    words = 12 + 8 + 4 * immediate + (length + 3) // 4 * 4 + 4
    return struct.pack(">IHBB", 6 << 28 | flow, words, 0x1B, hops) + source + destination
