"""Runs in a guest: several processes move data with every operation over many queue pairs at once, and check each byte.

Each process has eight connections of its own: RC, RC that shares an SRQ, UC and UD. Every connection keeps a batch of
random operations of random sizes in flight; when a batch has come back, both memories, with guards around each piece of
data, are compared with what they should be. One line of JSON for each process; exit status 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import random
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import pyverbs.enums as e  # type: ignore[import-not-found]
from pyverbs.addr import AH, AHAttr  # type: ignore[import-not-found]
from pyverbs.cq import CQ  # type: ignore[import-not-found]
from pyverbs.device import Context, get_device_list  # type: ignore[import-not-found]
from pyverbs.mr import MR  # type: ignore[import-not-found]
from pyverbs.pd import PD  # type: ignore[import-not-found]
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr  # type: ignore[import-not-found]
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr  # type: ignore[import-not-found]
from pyverbs.wr import SGE, RecvWR, SendWR  # type: ignore[import-not-found]

BATCH = 4
"""Operations that a connection has in flight."""
GUARD, GRH = 64, 40
SLOT = 64 << 10
MOST = SLOT - 2 * GUARD
DATAGRAM = 4096
BUFFERS = 16
"""Receives of an SRQ: more than its connections have in flight."""
QKEY = 0x1111_1111
BEGIN = "@mixed begin"
"""Printed when every process has its connections."""
RESULT = "@mixed result "
REMOTE = e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
SUPPLY = random.Random(1).randbytes(1 << 20)
WORD = 1 << 64


class Wrong(Exception):
    """The card did something else than it should."""


@dataclass(frozen=True)
class Operation:
    """An operation, and where its data goes.

    Attributes:
        name: its opcode, without IBV_WR_.
        receives: whether it takes a receive at the other side.
        places: whether its data goes where the receive says, instead of where the request says.
        immediate: whether it carries one.
        pulls: whether the data flows towards the requester.
        atomic: whether it changes 8 bytes there and brings back what they were.
    """

    name: str
    receives: bool = False
    places: bool = False
    immediate: bool = False
    pulls: bool = False
    atomic: bool = False

    @property
    def opcode(self) -> int:
        """Of the work request."""
        value: int = getattr(e, f"IBV_WR_{self.name}")
        return value


WRITE, READ = Operation("RDMA_WRITE"), Operation("RDMA_READ", pulls=True)
WRITE_IMM = Operation("RDMA_WRITE_WITH_IMM", receives=True, immediate=True)
SEND = Operation("SEND", receives=True, places=True)
SEND_IMM = Operation("SEND_WITH_IMM", receives=True, places=True, immediate=True)
ADD, SWAP = Operation("ATOMIC_FETCH_AND_ADD", atomic=True), Operation("ATOMIC_CMP_AND_SWP", atomic=True)
CONNECTIONS = (
    *(("RC", False, (WRITE, WRITE_IMM, READ, SEND, SEND_IMM, ADD, SWAP)),) * 4,
    *(("RC", True, (WRITE, READ, SEND_IMM, ADD, SWAP)),) * 2,
    ("UC", False, (WRITE, WRITE_IMM, SEND, SEND_IMM)),
    ("UD", False, (SEND, SEND_IMM)),
)
"""Service, whether the responder takes from the SRQ, and operations, of each connection of a process."""


class Side:
    """A memory with its key, a CQ and a queue pair.

    Args:
        pd: protection domain.
        kind: of the queue pair.
        pool: where it takes receives from; None: its own queue.
    """

    def __init__(self, context: Any, pd: Any, kind: int, pool: Pool | None = None) -> None:
        self.memory = mmap.mmap(-1, BATCH * SLOT)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.mr = MR(pd, BATCH * SLOT, e.IBV_ACCESS_LOCAL_WRITE | REMOTE, address=self.address)
        self.cq = CQ(context, 4 * BATCH) if pool is None else pool.cq
        cap = QPCap(max_send_wr=2 * BATCH, max_recv_wr=2 * BATCH, max_send_sge=1, max_recv_sge=1)
        srq = None if pool is None else pool.srq
        self.qp = QP(pd, QPInitAttr(qp_type=kind, scq=self.cq, rcq=self.cq, srq=srq, cap=cap))

    def connect(self, kind: int, lid: int, other: int, mtu: int) -> None:
        """Bring the queue pair up."""
        attr = QPAttr(port_num=1)
        if kind == e.IBV_QPT_UD:
            attr.qkey = QKEY
        else:
            attr.qp_access_flags = REMOTE
            attr.path_mtu, attr.dest_qp_num = mtu, other
            attr.ah_attr = AHAttr(dlid=lid, port_num=1)
            attr.max_rd_atomic = attr.max_dest_rd_atomic = 4
            attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.min_rnr_timer = 18, 7, 7, 12
        self.qp.to_rts(attr)


class Pool:
    """An SRQ, its receives and the CQ of the queue pairs that take from it."""

    def __init__(self, context: Any, pd: Any) -> None:
        self.cq = CQ(context, 8 * BATCH)
        self.srq = SRQ(pd, SrqInitAttr(SrqAttr(max_wr=BUFFERS)))
        self.memory = mmap.mmap(-1, BUFFERS * SLOT)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.mr = MR(pd, BUFFERS * SLOT, e.IBV_ACCESS_LOCAL_WRITE, address=self.address)
        self.takers: dict[int, Connection] = {}
        for number in range(BUFFERS):
            self.post(number)

    def post(self, number: int) -> None:
        """Give a buffer to the SRQ."""
        piece = SGE(self.address + number * SLOT, SLOT, self.mr.lkey)
        self.srq.post_recv(RecvWR(wr_id=number, num_sge=1, sg=[piece]))

    def poll(self) -> None:
        """Hand messages that have arrived to their connections."""
        for done in poll(self.cq):
            at = done.wr_id * SLOT
            self.takers[done.qp_num].arrived(done, done.imm_data, self.memory[at : at + done.byte_len])
            self.post(done.wr_id)


def poll(cq: Any) -> list[Any]:
    """What has completed.

    Raises:
        Wrong: something has failed.
    """
    count, found = cq.poll(BATCH)
    if not count:
        return []
    for done in found:
        if done.status != e.IBV_WC_SUCCESS:
            raise Wrong(f"QP {done.qp_num:#x}: status {done.status}, vendor {done.vendor_err:#x}")
    return list(found)


@dataclass
class Flight:
    """An operation on its way.

    Attributes:
        operation: what.
        size: bytes of payload.
        near, far: what the slots of both memories are to hold from their start on.
        payload: what the SRQ's buffer is to hold; None when it takes none.
        waits: completions that are still to come.
    """

    operation: Operation
    size: int
    near: bytearray
    far: bytearray
    payload: bytes | None = None
    waits: int = 1


@dataclass
class Connection:
    """Two connected queue pairs of this process, and their operations."""

    context: Any
    pd: Any
    service: str
    pool: Pool | None
    operations: tuple[Operation, ...]
    generator: random.Random
    flights: list[Flight] = field(default_factory=list)
    moved: int = 0
    size: int = 0

    def __post_init__(self) -> None:
        port = self.context.query_port(1)
        kind = getattr(e, f"IBV_QPT_{self.service}")
        self.near, self.far = Side(self.context, self.pd, kind), Side(self.context, self.pd, kind, self.pool)
        self.near.connect(kind, port.lid, self.far.qp.qp_num, port.active_mtu)
        self.far.connect(kind, port.lid, self.near.qp.qp_num, port.active_mtu)
        self.ah = AH(self.pd, attr=AHAttr(dlid=port.lid, port_num=1)) if self.service == "UD" else None
        self.most = DATAGRAM if self.service == "UD" else MOST
        if self.pool is not None:
            self.pool.takers[self.far.qp.qp_num] = self

    def begin(self) -> None:
        """Post a batch."""
        self.flights = [self._prepare(slot) for slot in range(BATCH)]
        for slot, flight in enumerate(self.flights):
            if flight.operation.receives:
                flight.waits += 1
                if self.pool is None:
                    self._post_receive(slot, flight)
        for slot, flight in enumerate(self.flights):
            self.near.qp.post_send(self._request(slot, flight))

    def _noise(self, length: int) -> bytes:
        at = self.generator.randrange(len(SUPPLY) - length)
        return SUPPLY[at : at + length]

    def _prepare(self, slot: int) -> Flight:
        operation = self.generator.choice(self.operations)
        size = 8 if operation.atomic else 1 << self.generator.randrange(self.most.bit_length())
        size = size if operation.atomic else min(self.most, size + self.generator.randrange(size))
        used = size + 2 * GUARD
        flight = Flight(operation, size, bytearray(self._noise(used)), bytearray(self._noise(used)))
        for side, content in ((self.near, flight.near), (self.far, flight.far)):
            side.memory[slot * SLOT : slot * SLOT + used] = content
        inner = slice(GUARD, GUARD + size)
        if operation.pulls:
            flight.near[inner] = flight.far[inner]
        elif operation.places and self.pool is not None:
            flight.payload = bytes(flight.near[inner])
        elif not operation.atomic:
            flight.far[inner] = flight.near[inner]
        return flight

    def _post_receive(self, slot: int, flight: Flight) -> None:
        head = GRH if self.service == "UD" else 0
        place = self.far.address + slot * SLOT + GUARD - head
        piece = SGE(place, flight.size + head, self.far.mr.lkey)
        self.far.qp.post_recv(RecvWR(wr_id=slot, num_sge=1, sg=[piece]))

    def _request(self, slot: int, flight: Flight) -> Any:
        operation, at = flight.operation, slot * SLOT + GUARD
        piece = SGE(self.near.address + at, flight.size, self.near.mr.lkey)
        extra = {"imm_data": slot} if operation.immediate else {}
        request = SendWR(wr_id=slot, num_sge=1, sg=[piece], opcode=operation.opcode, **extra)
        if self.ah is not None:
            request.set_wr_ud(self.ah, self.far.qp.qp_num, QKEY)
        elif operation.atomic:
            request.set_wr_atomic(self.far.mr.rkey, self.far.address + at, *self._change(flight))
        elif not operation.places:
            request.set_wr_rdma(self.far.mr.rkey, self.far.address + at)
        return request

    def _change(self, flight: Flight) -> tuple[int, int]:
        """Operands of an atomic; notes what becomes of both memories."""
        inner = slice(GUARD, GUARD + 8)
        old = int.from_bytes(flight.far[inner], sys.byteorder)
        first, second = self.generator.getrandbits(64), self.generator.getrandbits(64)
        if flight.operation is SWAP:
            first = old if self.generator.random() < 0.5 else first
            new = second if first == old else old
        else:
            new = (old + first) % WORD
        flight.near[inner] = flight.far[inner]
        flight.far[inner] = new.to_bytes(8, sys.byteorder)
        return first, second

    def advance(self) -> bool:
        """Take completions; when the batch is complete, compare it and post the next. Tell whether it was."""
        for done in poll(self.near.cq):
            self.flights[done.wr_id].waits -= 1
        if self.pool is None:
            for done in poll(self.far.cq):
                self._received(done)
        if any(flight.waits for flight in self.flights):
            return False
        for slot, flight in enumerate(self.flights):
            self._compare(slot, flight)
        self.begin()
        return True

    def _received(self, done: Any) -> None:
        flight = self.flights[done.wr_id]
        flight.waits -= 1
        head = GRH if self.service == "UD" else 0
        if done.byte_len != flight.size + head or (flight.operation.immediate and done.imm_data != done.wr_id):
            raise Wrong(f"{flight.operation.name} of {flight.size}: byte_len {done.byte_len}, imm {done.imm_data:#x}")
        if head:  # whatever stands in front of a datagram
            at = done.wr_id * SLOT + GUARD - head
            flight.far[GUARD - head : GUARD] = self.far.memory[at : at + head]

    def arrived(self, done: Any, slot: int, payload: bytes) -> None:
        """A message has come through the SRQ."""
        flight = self.flights[slot]
        flight.waits -= 1
        if payload != flight.payload:
            raise Wrong(f"QP {done.qp_num:#x}: {flight.operation.name} of {flight.size} through the SRQ")

    def _compare(self, slot: int, flight: Flight) -> None:
        at, used = slot * SLOT, len(flight.near)
        for name, side, wanted in (("requester", self.near, flight.near), ("responder", self.far, flight.far)):
            if side.memory[at : at + used] != wanted:
                raise Wrong(f"{self.service} {flight.operation.name} of {flight.size}: memory of the {name}")
        self.moved += 1
        self.size += flight.size


def work(number: int, seconds: float) -> dict[str, Any]:
    """One process: connections until the time is over; what it did."""
    context = Context(name=get_device_list()[0].name.decode())
    pd = PD(context)
    pool = Pool(context, pd)
    generator = random.Random(number)
    connections = [
        Connection(context, pd, service, pool if shares else None, operations, generator)
        for service, shares, operations in CONNECTIONS
    ]
    print("ready", flush=True)
    sys.stdin.readline()
    end = time.monotonic() + seconds
    late = end
    for connection in connections:
        connection.begin()
    while (now := time.monotonic()) < end:
        pool.poll()
        ended = [connection.advance() for connection in connections]
        if any(ended):
            late = now + 20
        elif now > late:
            raise Wrong("no operation has ended for 20 s")
    return {
        "process": number,
        "queue_pairs": 2 * len(connections),
        "operations": sum(connection.moved for connection in connections),
        "bytes": sum(connection.size for connection in connections),
        "by_connection": [connection.moved for connection in connections],
    }


def main() -> None:
    """Start the processes, let them begin together, print what they say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        print(json.dumps(work(options.worker, options.seconds)), flush=True)
        return
    command = [sys.executable, __file__, f"--seconds={options.seconds}"]
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    workers = [
        subprocess.Popen([*command, f"--worker={number}"], text=True, **pipes) for number in range(options.processes)
    ]
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()
    print(BEGIN, flush=True)
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    good = True
    for number, worker in enumerate(workers):
        output, errors = worker.communicate()
        good &= worker.returncode == 0
        found = json.loads(output) if worker.returncode == 0 else {"process": number, "failure": errors.strip()[-800:]}
        print(RESULT + json.dumps(found), flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
