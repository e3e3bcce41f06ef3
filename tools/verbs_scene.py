"""Runs in a guest: a scene of the error table (error_table.py) made of verbs objects of one process of user space."""

from __future__ import annotations

import ctypes
import mmap
import os
import select
import struct
import tempfile
import time
from pathlib import Path
from typing import Any

import pyverbs.enums as e  # type: ignore[import-not-found]
import pyverbs.providers.mlx5.mlx5_enums as dve  # type: ignore[import-not-found]
from pyverbs.addr import AH, AHAttr  # type: ignore[import-not-found]
from pyverbs.cq import CQ  # type: ignore[import-not-found]
from pyverbs.device import Context  # type: ignore[import-not-found]
from pyverbs.mr import MR, MW, MWBindInfo  # type: ignore[import-not-found]
from pyverbs.pd import PD  # type: ignore[import-not-found]
from pyverbs.providers.mlx5.mlx5dv import Mlx5DVQPInitAttr, Mlx5QP, Wqe  # type: ignore[import-not-found]
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr, QPInitAttrEx  # type: ignore[import-not-found]
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr, SrqInitAttrEx  # type: ignore[import-not-found]
from pyverbs.wr import SGE, RecvWR, SendWR  # type: ignore[import-not-found]
from pyverbs.xrcd import XRCD, XRCDInitAttr  # type: ignore[import-not-found]

import verbs_behind
from error_table import PLAIN, SIZE, Row, Setting

QKEY = 0x1111_1111
ROOM = SIZE + 2 * mmap.PAGESIZE
ALL_RIGHTS = (
    e.IBV_ACCESS_LOCAL_WRITE
    | e.IBV_ACCESS_REMOTE_WRITE
    | e.IBV_ACCESS_REMOTE_READ
    | e.IBV_ACCESS_REMOTE_ATOMIC
    | e.IBV_ACCESS_MW_BIND
)
RIGHTS = {
    "": 0,
    "local write": e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_ATOMIC,
    "write": e.IBV_ACCESS_REMOTE_WRITE,
    "read": e.IBV_ACCESS_REMOTE_READ,
    "atomic": e.IBV_ACCESS_REMOTE_ATOMIC,
}
"""What goes with a right: without the local one, the kernel gives no remote one that changes memory."""
REMOTE_RIGHTS = e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
KINDS = {"RC": e.IBV_QPT_RC, "UC": e.IBV_QPT_UC, "UD": e.IBV_QPT_UD}
PATIENCE = 3.0
"""Seconds until what a row expects must be there."""
CALM = 0.03
"""Seconds in which nothing more may come."""
_CQ_UPDATE = 8
_PROT_NONE = 0


def _names(prefix: str, *names: str) -> dict[int, str]:
    return {getattr(e, prefix + name): name for name in names}


STATUSES = _names(
    "IBV_WC_", "SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR", "LOC_PROT_ERR", "WR_FLUSH_ERR", "MW_BIND_ERR",
    "BAD_RESP_ERR", "LOC_ACCESS_ERR", "REM_INV_REQ_ERR", "REM_ACCESS_ERR", "REM_OP_ERR", "RETRY_EXC_ERR",
    "RNR_RETRY_EXC_ERR", "REM_ABORT_ERR", "FATAL_ERR", "GENERAL_ERR",
)  # fmt: skip
EVENTS = _names(
    "IBV_EVENT_", "CQ_ERR", "QP_FATAL", "QP_REQ_ERR", "QP_ACCESS_ERR", "COMM_EST", "SQ_DRAINED", "SRQ_ERR",
    "SRQ_LIMIT_REACHED", "QP_LAST_WQE_REACHED", "DEVICE_FATAL", "PORT_ACTIVE", "PORT_ERR",
)  # fmt: skip
STATES = _names("IBV_QPS_", "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR")


_EVENT = struct.Struct("=QII")
"""struct ib_uverbs_async_event_desc: address of the object, as libibverbs knows it, and type."""
_CQ_CONTEXT, _QP_NUM = 16, 52
"""Bytes from the start of struct ibv_cq and struct ibv_qp."""


class _Event(ctypes.Structure):
    """struct ibv_async_event."""

    _fields_ = (("element", ctypes.c_uint64), ("event_type", ctypes.c_int))


class Card:
    """The opened device, and its asynchronous events.

    Args:
        name: of the device.
    """

    def __init__(self, name: str) -> None:
        before = _event_files()
        self.context = Context(name=name)
        (self._events,) = _event_files() - before
        self._verbs = ctypes.CDLL("libibverbs.so.1")
        port = self.context.query_port(1)
        self.lid, self.mtu = port.lid, port.active_mtu
        self._counters = Path(f"/sys/class/infiniband/{name}/ports/1/hw_counters")
        (self._counters / "lifespan").write_text("0")

    def event(self, seconds: float) -> tuple[int, str] | None:
        """The next asynchronous event; None if none comes in time.

        pyverbs does not tell what an event is about, so it is read as libibverbs does it.

        Returns:
            `id` of the CQ's context object or number of the QP, or 0 for others; and the event's name.
        """
        if not select.select([self._events], [], [], max(0.0, seconds))[0]:
            return None
        address, kind, _ = _EVENT.unpack(os.read(self._events, _EVENT.size))
        name = EVENTS.get(kind, str(kind))
        about = 0
        if name == "CQ_ERR":
            about = ctypes.c_uint64.from_address(address + _CQ_CONTEXT).value
        elif name.startswith("QP_"):
            about = ctypes.c_uint32.from_address(address + _QP_NUM).value
        self._verbs.ibv_ack_async_event(ctypes.byref(_Event(address, kind)))
        return about, name

    def counters(self) -> dict[str, int]:
        """The counters that the table names."""
        port = self.context.query_port(1)
        return {
            "qkey_violations": port.qkey_viol_cntr,
            "pkey_violations": port.bad_pkey_cntr,
            "out_of_buffer": int((self._counters / "out_of_buffer").read_text()),
        }


def _event_files() -> set[int]:
    """Open files that give events."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            if "infinibandevent" in os.readlink(entry):
                found.add(int(entry.name))
        except FileNotFoundError:
            continue
    return found


class VerbsScene:
    """A scene of user space. See :class:`error_table.Scene`.

    Args:
        card: where.
        setting: what it is made of.
    """

    def __init__(self, card: Card, setting: Setting = PLAIN) -> None:
        self.card, self.setting = card, setting
        self.pd = PD(card.context)
        self._keep: list[Any] = []
        self._others: list[Any] = []
        self._windows: dict[int, Any] = {}
        self._regions: dict[int, Any] = {}
        self._memories = {side: mmap.mmap(-1, ROOM) for side in (True, False)}
        starts = {side: ctypes.addressof(ctypes.c_char.from_buffer(self._memories[side])) for side in (True, False)}
        self.source, self.target = starts[True], starts[False]
        self._memories[True][:SIZE] = bytes(range(1, 129)) * (SIZE // 128)
        self.lkey, self.rkey = self.key(near=True), self.key(near=False)
        self._marks = {side: object() for side in ("near", "far")}
        self._cqs = {
            side: CQ(card.context, 1 if setting.short_cq == side else 63, mark) for side, mark in self._marks.items()
        }
        self.srq: Any = None
        self._make_queues()
        self._pending: Any = None
        self._found: dict[str, list[str]] = {"requester": [], "responder": [], "events": []}
        self._changes = {"requester": 0, "responder": 0}
        self._expected: list[tuple[bool, bytes]] = []
        self._before = card.counters()

    # --- set-up -------------------------------------------------------------------------------------------------------

    def _make_queues(self) -> None:
        service = self.setting.service
        if service == "XRC":
            self._make_xrc()
        else:
            self.far = self._plain("far")
            self.near = self._with_raw() if service == "RC" else self._plain("near")
        if service == "UD":
            self.ah = AH(self.pd, attr=AHAttr(dlid=self.setting.lid or self.card.lid, port_num=1))
            self._others.append(self.ah)
        for near in (False, True):
            self._connect(near=near)

    def _cap(self) -> Any:
        return QPCap(max_send_wr=64, max_recv_wr=16, max_send_sge=4, max_recv_sge=2)

    def _plain(self, side: str) -> Any:
        if side == "far" and self.setting.pooled:
            self.srq = SRQ(self.pd, SrqInitAttr(SrqAttr(max_wr=8)))
        cq = self._cqs[side]
        srq = self.srq if side == "far" else None
        return QP(self.pd, QPInitAttr(KINDS[self.setting.service], scq=cq, rcq=cq, srq=srq, cap=self._cap()))

    def _with_raw(self) -> Any:
        """An RC queue pair that takes whole WQEs too."""
        cq = self._cqs["near"]
        flags = e.IBV_QP_EX_WITH_SEND | e.IBV_QP_EX_WITH_BIND_MW | e.IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD
        attr = QPInitAttrEx(
            qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=self._cap(), pd=self.pd, send_ops_flags=flags,
            comp_mask=e.IBV_QP_INIT_ATTR_PD | e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        )  # fmt: skip
        raw = Mlx5DVQPInitAttr(
            comp_mask=dve.MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS, send_ops_flags=dve.MLX5DV_QP_EX_WITH_RAW_WQE
        )
        return Mlx5QP(self.card.context, attr, raw)

    def _domain(self) -> Any:
        """An XRC domain of a file of its own."""
        file = tempfile.NamedTemporaryFile()  # noqa: SIM115 - it lives as long as the domain
        mask = e.IBV_XRCD_INIT_ATTR_FD | e.IBV_XRCD_INIT_ATTR_OFLAGS
        domain = XRCD(self.card.context, XRCDInitAttr(mask, os.O_CREAT, file.fileno()))
        self._keep.append(file)
        return domain

    def _pool(self, domain: Any) -> Any:
        attr = SrqInitAttrEx(max_wr=8)
        attr.srq_type, attr.pd, attr.xrcd, attr.cq = e.IBV_SRQT_XRC, self.pd, domain, self._cqs["far"]
        attr.comp_mask = (
            e.IBV_SRQ_INIT_ATTR_TYPE | e.IBV_SRQ_INIT_ATTR_PD | e.IBV_SRQ_INIT_ATTR_CQ | e.IBV_SRQ_INIT_ATTR_XRCD
        )
        return SRQ(self.card.context, attr)

    def _make_xrc(self) -> None:
        context, domain = self.card.context, self._domain()
        mask = e.IBV_QP_INIT_ATTR_XRCD
        self.far = QP(context, QPInitAttrEx(qp_type=e.IBV_QPT_XRC_RECV, comp_mask=mask, xrcd=domain))
        attr = QPInitAttrEx(
            qp_type=e.IBV_QPT_XRC_SEND, comp_mask=e.IBV_QP_INIT_ATTR_PD, pd=self.pd, scq=self._cqs["near"],
            cap=QPCap(max_send_wr=8, max_recv_wr=0, max_recv_sge=0),
        )  # fmt: skip
        self.near = QP(context, attr)
        self.srq = self._pool(domain)
        self._others.append(domain)

    def _connect(self, *, near: bool) -> None:
        """Without retries: what is not answered at once has failed."""
        setting, queue, peer = self.setting, *((self.near, self.far) if near else (self.far, self.near))
        attr = QPAttr(port_num=1)
        attr.pkey_index = setting.pkey_index if near else 0
        if setting.service == "UD":
            attr.qkey = QKEY
        else:
            attr.qp_access_flags = REMOTE_RIGHTS & ~(0 if near else RIGHTS[setting.without])
            attr.path_mtu = self.card.mtu
            attr.dest_qp_num = (near and setting.peer) or peer.qp_num
            attr.ah_attr = AHAttr(dlid=(near and setting.lid) or self.card.lid, port_num=1)
            attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
            attr.timeout, attr.retry_cnt, attr.min_rnr_timer = 10, 0, 1
            attr.rnr_retry = 7 if setting.patient else 0
        if near and setting.early:
            queue.to_rtr(attr)
        else:
            queue.to_rts(attr)

    # --- keys ---------------------------------------------------------------------------------------------------------

    def key(self, *, near: bool, without: str = "", length: int = SIZE, other_pd: bool = False) -> int:
        address = self.source if near else self.target
        mr = MR(self._pd(other_pd), length, ALL_RIGHTS & ~RIGHTS[without], address=address)
        self._regions[mr.lkey] = mr
        key: int = mr.lkey
        return key

    def _pd(self, other: bool) -> Any:
        if not other:
            return self.pd
        pd = PD(self.card.context)
        self._others.append(pd)
        return pd

    def vanished(self, *, near: bool) -> int:
        address = self.source if near else self.target
        rights = ALL_RIGHTS & ~e.IBV_ACCESS_MW_BIND | e.IBV_ACCESS_ON_DEMAND
        region = MR(self.pd, SIZE, rights, address=address)
        self._regions[region.lkey] = region
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(SIZE), _PROT_NONE):
            raise OSError(ctypes.get_errno(), "mprotect")
        key: int = region.lkey
        return key

    def drop(self, key: int) -> None:
        self._regions.pop(key).close()

    def window(self, *, other_pd: bool = False) -> int:
        window = MW(self._pd(other_pd), e.IBV_MW_TYPE_2)
        self._windows[window.rkey] = window
        key: int = window.rkey
        return key

    def bind(self, window: int, region: int, *, near: bool, length: int = SIZE) -> int:
        start = self.source if near else self.target
        rights = e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
        request = SendWR(opcode=e.IBV_WR_BIND_MW)
        request.set_bind_wr(self._windows[window], MWBindInfo(self._regions[region], start, length, rights))
        self._change(request, near=near)
        key: int = request.rkey
        return key

    def invalidate(self, key: int, *, near: bool) -> None:
        self._change(SendWR(opcode=e.IBV_WR_LOCAL_INV, imm_data=key), near=near)

    def _change(self, request: Any, *, near: bool) -> None:
        self._changes["requester" if near else "responder"] += 1
        self._queue(near).post_send(request)

    # --- work requests ------------------------------------------------------------------------------------------------

    def _queue(self, near: bool) -> Any:
        return self.near if near else self.far

    def _request(self, opcode: int, *pieces: Any, **options: Any) -> Any:
        return SendWR(opcode=opcode, num_sge=len(pieces), sg=list(pieces), **options)

    def _piece(self, key: int | None = None, length: int = 64, at: int = 0) -> Any:
        return SGE(self.source + at, length, self.lkey if key is None else key)

    def send(
        self, key: int | None = None, length: int = 64, *, wrong_qkey: bool = False, srqn: int = 0, ring: bool = True
    ) -> None:
        half = -(-length // 2) if length > 1 << 30 else 0  # more than one segment is to hold
        pieces = [self._piece(key, half), self._piece(key, length - half)] if half else [self._piece(key, length)]
        request = self._request(e.IBV_WR_SEND, *pieces)
        if self.setting.service == "UD":
            request.set_wr_ud(self.ah, self.setting.peer or self.far.qp_num, QKEY ^ wrong_qkey)
        elif self.setting.service == "XRC":
            request.set_qp_type_xrc(srqn)
        if not ring:
            self._pending = request
        elif self._pending is not None:
            self._pending.next_wr = request
            self.near.post_send(self._pending)
        else:
            self.near.post_send(request)

    def send_invalidating(self, key: int) -> None:
        self.near.post_send(self._request(e.IBV_WR_SEND_WITH_INV, self._piece(), imm_data=key))

    def write(self, key: int | None = None, length: int = 64, *, immediate: bool = False) -> None:
        opcode = e.IBV_WR_RDMA_WRITE_WITH_IMM if immediate else e.IBV_WR_RDMA_WRITE
        self._post_remote(self._request(opcode, self._piece(None, length)), key)

    def read(self, key: int | None = None, into: int | None = None) -> None:
        self._post_remote(self._request(e.IBV_WR_RDMA_READ, self._piece(into)), key)

    def _post_remote(self, request: Any, key: int | None) -> None:
        if self.setting.service == "UD":  # the opcode is wrong, but there is an address vector
            request.set_wr_ud(self.ah, self.far.qp_num, QKEY)
        else:
            request.set_wr_rdma(self.rkey if key is None else key, self.target)
        self.near.post_send(request)

    def atomic(self, key: int | None = None, *, at: int = 0, pieces: int = 1) -> None:
        results = [self._piece(None, 8, 8 * piece) for piece in range(pieces)]
        request = self._request(e.IBV_WR_ATOMIC_FETCH_AND_ADD, *results)
        request.set_wr_atomic(self.rkey if key is None else key, self.target + at, 1)
        self.near.post_send(request)

    def raw(self, opcode: int, *segments: bytes, immediate: int = 0) -> None:
        body = b"".join(segments)
        control = struct.pack(">IIII", opcode, self.near.qp_num << 8 | 1 + len(body) // 16, _CQ_UPDATE, immediate)
        self.near.wr_start()
        self.near.wr_raw_wqe(Wqe([control + body]))
        self.near.wr_complete()

    def post_behind(self, opcode: int, *segments: bytes, ds: int = 0, count: int = 1) -> None:
        body = b"".join(segments)
        size = ds or 1 + len(body) // 16
        control = struct.pack(">IIII", opcode, self.near.qp_num << 8 | size, _CQ_UPDATE, 0)
        verbs_behind.post(self.near, control + body, count)

    def count_receives(self, count: int) -> None:
        verbs_behind.count_receives(self.far, self.srq, count)

    def receive(self, key: int | None = None, length: int = SIZE, *, near: bool = False) -> None:
        piece = SGE(self.target, length, self.rkey if key is None else key)
        queue = self.srq if self.srq is not None and not near else self._queue(near)
        queue.post_recv(RecvWR(num_sge=1, sg=[piece]))

    # --- queues and memories ------------------------------------------------------------------------------------------

    def _enter(self, state: int, *, near: bool) -> None:
        self._queue(near).modify(QPAttr(qp_state=state), e.IBV_QP_STATE)

    def to_error(self, *, near: bool) -> None:
        self._enter(e.IBV_QPS_ERR, near=near)

    def reset_responder(self) -> None:
        self._enter(e.IBV_QPS_RESET, near=False)

    def destroy_responder(self) -> None:
        self.far.close()
        self.far = None

    def arm_srq(self, limit: int) -> None:
        self.srq.modify(SrqAttr(srq_limit=limit), e.IBV_SRQ_LIMIT)

    def other_srq(self) -> int:
        domain = self._domain()
        pool = self._pool(domain)
        self._others += [domain, pool]
        number: int = pool.get_srq_num()
        return number

    def settle(self) -> None:
        end = time.monotonic() + PATIENCE
        while any(len(self._found[side]) < count for side, count in self._changes.items()):
            if time.monotonic() > end:
                raise TimeoutError("binding and invalidation have not ended")
            self._poll()

    def fill(self, *, near: bool, byte: int) -> None:
        self._memories[near][:SIZE] = bytes([byte]) * SIZE

    def expect(self, *, near: bool, begins: bytes) -> None:
        self._expected.append((near, begins))

    # --- what became of it --------------------------------------------------------------------------------------------

    def _poll(self) -> None:
        """Take what the CQs hold; the vendor's part stays a number."""
        for name, cq in (("requester", self._cqs["near"]), ("responder", self._cqs["far"])):
            for entry in cq.poll(16)[1]:
                status = STATUSES.get(entry.status, str(entry.status))
                self._found[name].append(status if status == "SUCCESS" else f"{status} {entry.vendor_err:#04x}")

    def _event(self, seconds: float) -> list[str]:
        found = self.card.event(seconds)
        if found is None:
            return []
        about, name = found
        owners = {id(self._marks["near"]): "requester", id(self._marks["far"]): "responder"}
        owners[self.near.qp_num] = "requester"
        if self.far is not None:
            owners[self.far.qp_num] = "responder"
        if self.srq is not None:
            owners[0] = "responder"
        return [f"{owners.get(about, 'nobody')} {name}"]

    def _state(self, queue: Any) -> str:
        return "" if queue is None else STATES[queue.query(e.IBV_QP_STATE)[0].qp_state]

    def outcome(self, row: Row) -> dict[str, Any]:
        """Wait for what the row says, and for what it does not say; what there was, as a row."""
        found = self._found
        end = time.monotonic() + PATIENCE
        calm = None
        while time.monotonic() < (calm or end):
            found["events"] += self._event(0.002)
            if not self.setting.short_cq or len(found["events"]) >= len(row.events):  # a CQ that is read has room
                self._poll()
            if calm is None and all(len(found[name]) >= len(getattr(row, name)) for name in found):
                calm = time.monotonic() + CALM
        now = self.card.counters()
        memory = [bytes(self._memories[near][: len(begins)]) == begins for near, begins in self._expected]
        return {
            **found,
            "states": [self._state(self.near), self._state(self.far)],
            "counter": " ".join(name for name, before in self._before.items() if now[name] == before + 1),
            "memory": all(memory),
        }

    def close(self) -> None:
        """Give everything back."""
        for item in (*self._windows.values(), self.near, self.far, self.srq):
            if item is not None:
                item.close()
        for kind in (AH, SRQ, MR, CQ, XRCD, PD):
            for item in (*self._others, *self._regions.values(), *self._cqs.values(), self.pd):
                if isinstance(item, kind):
                    item.close()
        for file in self._keep:
            file.close()
