"""Runs in a guest: moves data with every operation of each transport and compares every byte of both memories.

Two queue pairs of one process are connected through the card. Sizes go from 1 byte to 8 MiB, and the data of both sides
lies in 1 to 16 segments with gaps of a few bytes between them, which have to stay as they were. One line of output for
each operation of a transport; exit status 1 if a byte, a completion or a status was wrong.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyverbs.enums as e  # type: ignore[import-not-found]
from pyverbs.addr import AH, AHAttr  # type: ignore[import-not-found]
from pyverbs.cq import CQ  # type: ignore[import-not-found]
from pyverbs.device import Context, get_device_list  # type: ignore[import-not-found]
from pyverbs.mr import MR  # type: ignore[import-not-found]
from pyverbs.pd import PD  # type: ignore[import-not-found]
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr  # type: ignore[import-not-found]
from pyverbs.wr import SGE, RecvWR, SendWR  # type: ignore[import-not-found]

ROOM = 10 << 20
GAP = 24
GRH = 40
QKEY = 0x1111_1111
IMMEDIATE = 0x1234_5678
SIZES = (1, 2, 3, 7, 8, 63, 64, 65, 255, 1024, 4095, 4096, 4097, 16384, 65536, 1 << 20, 3_333_333, 8 << 20)
SEGMENTS = (1, 2, 3, 8, 16)
ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
MTUS = {e.IBV_MTU_256: 256, e.IBV_MTU_512: 512, e.IBV_MTU_1024: 1024, e.IBV_MTU_2048: 2048, e.IBV_MTU_4096: 4096}
SUPPLY = random.Random(1).randbytes(ROOM)
Spans = list[tuple[int, int]]


class Wrong(Exception):
    """The card did something else than it should."""


class Side:
    """A memory with its key, a completion queue and a queue pair."""

    def __init__(self, context: Any, pd: Any, kind: int, segments: int) -> None:
        has_atomics = context.query_device().atomic_caps != e.IBV_ATOMIC_NONE
        self.access = ACCESS | (e.IBV_ACCESS_REMOTE_ATOMIC if has_atomics else 0)
        self.memory = mmap.mmap(-1, ROOM)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.mr = MR(pd, ROOM, self.access, address=self.address)
        self.cq = CQ(context, 64, None, None, 0)
        cap = QPCap(max_send_wr=8, max_recv_wr=8, max_send_sge=segments, max_recv_sge=segments)
        self.qp = QP(pd, QPInitAttr(qp_type=kind, scq=self.cq, rcq=self.cq, cap=cap))

    def connect(self, kind: int, lid: int, other: int, mtu: int) -> None:
        """Bring the queue pair up."""
        attr = QPAttr(port_num=1)
        if kind == e.IBV_QPT_UD:
            attr.qkey = QKEY
        else:
            attr.qp_access_flags = self.access
            attr.path_mtu, attr.dest_qp_num = mtu, other
            attr.ah_attr = AHAttr(dlid=lid, port_num=1)
            attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
            attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.min_rnr_timer = 14, 7, 7, 12
        self.qp.to_rts(attr)

    def pieces(self, spans: Spans) -> list[Any]:
        """Scatter-gather entries."""
        return [SGE(self.address + at, length, self.mr.lkey) for at, length in spans]

    def gather(self, spans: Spans) -> bytes:
        """What stands in spans of the memory."""
        return b"".join(self.memory[at : at + length] for at, length in spans)

    def completion(self, what: str) -> Any:
        """The next completion.

        Raises:
            Wrong: none comes, or it is an error.
        """
        end = time.monotonic() + 20
        while time.monotonic() < end:
            count, found = self.cq.poll(1)
            if count:
                if found[0].status != e.IBV_WC_SUCCESS:
                    raise Wrong(f"{what}: status {found[0].status}, vendor {found[0].vendor_err:#x}")
                return found[0]
        raise Wrong(f"{what}: no completion in 20 s")


@dataclass(frozen=True)
class Operation:
    """An operation, and where its data goes.

    Attributes:
        name: as printed.
        opcode: of the work request.
        receives: whether it takes a receive at the other side.
        places: whether its data goes where the receive says, instead of where the request says.
        immediate: whether it carries one.
        pulls: whether the data flows towards the requester.
    """

    name: str
    opcode: int
    receives: bool = False
    places: bool = False
    immediate: bool = False
    pulls: bool = False


SEND = Operation("SEND", e.IBV_WR_SEND, receives=True, places=True)
SEND_IMM = Operation("SEND_WITH_IMM", e.IBV_WR_SEND_WITH_IMM, receives=True, places=True, immediate=True)
WRITE = Operation("RDMA_WRITE", e.IBV_WR_RDMA_WRITE)
WRITE_IMM = Operation("RDMA_WRITE_WITH_IMM", e.IBV_WR_RDMA_WRITE_WITH_IMM, receives=True, immediate=True)
READ = Operation("RDMA_READ", e.IBV_WR_RDMA_READ, pulls=True)
TRANSPORTS = {
    "RC": (e.IBV_QPT_RC, (SEND, SEND_IMM, WRITE, WRITE_IMM, READ)),
    "UC": (e.IBV_QPT_UC, (SEND, SEND_IMM, WRITE, WRITE_IMM)),
    "UD": (e.IBV_QPT_UD, (SEND, SEND_IMM)),
}


def noise(generator: random.Random, size: int) -> bytes:
    """`size` bytes that follow no pattern; cut out of a supply, since making them anew takes long in a guest."""
    at = generator.randrange(len(SUPPLY) - size)
    return SUPPLY[at : at + size]


def spread(generator: random.Random, size: int, count: int) -> Spans:
    """Cut `size` bytes into `count` spans of a memory, with gaps of random length between them."""
    cuts = sorted(generator.sample(range(1, size), count - 1))
    at, spans = generator.randrange(1, GAP), []
    for begin, end in zip([0, *cuts], [*cuts, size], strict=True):
        spans.append((at, end - begin))
        at += end - begin + generator.randrange(1, GAP)
    return spans


def compare(what: str, have: bytes, wanted: bytearray) -> None:
    """Check a memory.

    Raises:
        Wrong: a byte differs.
    """
    if have != wanted:
        at = next(i for i, (a, b) in enumerate(zip(have, wanted, strict=True)) if a != b)
        count = sum(a != b for a, b in zip(have, wanted, strict=True))
        raise Wrong(f"{what}: {count} bytes differ, the first at {at:#x}: {have[at]:#x}, not {wanted[at]:#x}")


class Pair:
    """Two connected sides of a transport.

    Args:
        context: the opened device.
        kind: of the queue pairs.
        segments: that a work request may have.
    """

    def __init__(self, context: Any, kind: int, segments: int) -> None:
        pd = PD(context)
        port = context.query_port(1)
        self.kind = kind
        self.mtu = MTUS[port.active_mtu]
        self.near, self.far = Side(context, pd, kind, segments), Side(context, pd, kind, segments)
        self.near.connect(kind, port.lid, self.far.qp.qp_num, port.active_mtu)
        self.far.connect(kind, port.lid, self.near.qp.qp_num, port.active_mtu)
        self.ah = AH(pd, attr=AHAttr(dlid=port.lid, port_num=1)) if kind == e.IBV_QPT_UD else None

    def move(self, operation: Operation, size: int, count: int, generator: random.Random) -> None:
        """Do one operation, compare all that both memories hold.

        Raises:
            Wrong: see :class:`Wrong`.
        """
        what = f"{operation.name} of {size} bytes in {count} segments"
        near, far = self.near, self.far
        used = size + (count + 3) * GAP + GRH
        for side in (near, far):
            side.memory[:used] = noise(generator, used)
        before = [bytearray(side.memory[:used]) for side in (near, far)]
        local = spread(generator, size, min(count, size))
        header: Spans = [(0, GRH)] if self.kind == e.IBV_QPT_UD else []
        remote = self._remote(operation, size, count, generator)
        if operation.receives:
            far.qp.post_recv(RecvWR(sg=far.pieces(header + remote), num_sge=len(header + remote)))
        near.qp.post_send(self._request(operation, local, remote))
        near.completion(f"{what}, requester")
        if operation.receives:
            done = far.completion(f"{what}, responder")
            if operation.immediate and done.imm_data != IMMEDIATE:
                raise Wrong(f"{what}: immediate data {done.imm_data:#x}, not {IMMEDIATE:#x}")
            if operation.places and done.byte_len != size + sum(length for _, length in header):
                raise Wrong(f"{what}: byte_len {done.byte_len}")
        source, sink = (far, near) if operation.pulls else (near, far)
        from_spans, to_spans = (remote, local) if operation.pulls else (local, remote)
        wanted = {id(near): before[0], id(far): before[1]}
        self._place(wanted[id(sink)], to_spans, source.gather(from_spans))
        for at, length in header:
            wanted[id(far)][at : at + length] = far.memory[at : at + length]
        compare(f"{what}, requester's memory", near.memory[:used], wanted[id(near)])
        compare(f"{what}, responder's memory", far.memory[:used], wanted[id(far)])

    def _remote(self, operation: Operation, size: int, count: int, generator: random.Random) -> Spans:
        if not operation.places:
            return [(generator.randrange(1, GAP), size)]
        room = count - 1 if self.kind == e.IBV_QPT_UD and count > 1 else count
        return [(at + GRH, length) for at, length in spread(generator, size, min(room, size))]

    def _request(self, operation: Operation, local: Spans, remote: Spans) -> Any:
        pieces = self.near.pieces(local)
        imm = {"imm_data": IMMEDIATE} if operation.immediate else {}
        flags = e.IBV_SEND_SIGNALED
        request = SendWR(num_sge=len(pieces), sg=pieces, opcode=operation.opcode, send_flags=flags, **imm)
        if self.ah is not None:
            request.set_wr_ud(self.ah, self.far.qp.qp_num, QKEY)
        elif not operation.places:
            request.set_wr_rdma(self.far.mr.rkey, self.far.address + remote[0][0])
        return request

    @staticmethod
    def _place(memory: bytearray, spans: Spans, data: bytes) -> None:
        taken = 0
        for at, length in spans:
            memory[at : at + length] = data[taken : taken + length]
            taken += length

    def atomic(self, opcode: int, generator: random.Random) -> None:
        """Do one atomic operation of 8 bytes, compare.

        Raises:
            Wrong: see :class:`Wrong`.
        """
        near, far, at, back = self.near, self.far, 8 * generator.randrange(1, 8), generator.randrange(1, 50)
        for side in (near, far):
            side.memory[:128] = generator.randbytes(128)
        wanted_near, wanted_far = bytearray(near.memory[:128]), bytearray(far.memory[:128])
        old = int.from_bytes(far.memory[at : at + 8], sys.byteorder)
        first = old if generator.random() < 0.5 else generator.getrandbits(64)
        second = generator.getrandbits(64)
        request = SendWR(sg=near.pieces([(back, 8)]), num_sge=1, opcode=opcode, send_flags=e.IBV_SEND_SIGNALED)
        request.set_wr_atomic(far.mr.rkey, far.address + at, first, second)
        near.qp.post_send(request)
        near.completion("atomic")
        swapped = second if first == old else old
        new = (old + first) % (1 << 64) if opcode == e.IBV_WR_ATOMIC_FETCH_AND_ADD else swapped
        wanted_near[back : back + 8] = old.to_bytes(8, sys.byteorder)
        wanted_far[at : at + 8] = new.to_bytes(8, sys.byteorder)
        compare("atomic, requester's memory", near.memory[:128], wanted_near)
        compare("atomic, responder's memory", far.memory[:128], wanted_far)


def run_operation(connect: Callable[[], Pair], operation: Operation, sizes: list[int], segments: list[int]) -> int:
    """Do an operation with all sizes and numbers of segments; how many that were.

    Raises:
        Wrong: see :class:`Wrong`.
    """
    pair, generator, moved = connect(), random.Random(operation.name), 0
    for size in sizes:
        if pair.kind == e.IBV_QPT_UD and size > pair.mtu:
            continue
        for count in segments:
            pair.move(operation, size, count, generator)
            moved += 1
    return moved


def attempt(transport: str, name: str, work: Callable[[], int]) -> bool:
    """Run `work`, print a line, tell whether it went well."""
    try:
        print(f"{transport:<3} {name:<20} ok      {work()} transfers", flush=True)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is this line's result; the next line starts anew
        print(f"{transport:<3} {name:<20} failed  {type(error).__name__}: {error}", flush=True)
        return False
    return True


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transports", default="RC,UC,UD", help="with commas between")
    parser.add_argument("--short", action="store_true", help="fewer sizes and numbers of segments")
    options = parser.parse_args()
    context = Context(name=get_device_list()[0].name.decode())
    limits = context.query_device()
    sizes = [size for size in SIZES if not options.short or size in (1, 63, 4097, 1 << 20)]
    segments = [n for n in SEGMENTS if n <= limits.max_sge and (not options.short or n in (1, 16))]
    good = True
    for transport in options.transports.split(","):
        kind, operations = TRANSPORTS[transport]
        fresh = partial(Pair, context, kind, max(segments))
        for operation in operations:
            good &= attempt(transport, operation.name, partial(run_operation, fresh, operation, sizes, segments))
        if transport == "RC" and limits.atomic_caps != e.IBV_ATOMIC_NONE:
            for name in ("FETCH_AND_ADD", "CMP_AND_SWP"):
                good &= attempt(transport, name, partial(run_atomics, fresh, getattr(e, f"IBV_WR_ATOMIC_{name}")))
    sys.exit(0 if good else 1)


def run_atomics(connect: Callable[[], Pair], opcode: int, count: int = 50) -> int:
    """Do `count` atomic operations.

    Raises:
        Wrong: see :class:`Wrong`.
    """
    pair, generator = connect(), random.Random(opcode)
    for _ in range(count):
        pair.atomic(opcode, generator)
    return count


if __name__ == "__main__":
    main()
