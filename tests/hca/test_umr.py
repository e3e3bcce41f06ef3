"""UMR WQEs: registration, indirect lists, windows, invalidation, and each way to refuse them."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass, field
from typing import Any

import pytest

from softhca.hca.mkey import MKey
from softhca.prm.cqe import CqeOpcode, CqeSyndrome
from softhca.prm.mkey import AccessMode, Mkc, MkeyMask
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import QpState, RqType, ServiceType
from softhca.prm.syndromes.completion import VendorSyndrome
from softhca.prm.wqe import UmrFlag, WqeOpcode
from tests.hca.bench import Bench, Buffer, Completions, Queue, data, remote

PAGE = 4096
PRESENT = 3
INLINE = UmrFlag.INLINE
RIGHTS = MkeyMask.LR | MkeyMask.LW | MkeyMask.RR | MkeyMask.RW | MkeyMask.A
PLACE = MkeyMask.LEN | MkeyMask.START_ADDR
WINDOW = PLACE | RIGHTS | MkeyMask.FREE | MkeyMask.KEY


def umr(
    mask: int,
    *,
    flags: int = INLINE,
    entries: bytes = b"",
    pointer: bytes = b"",
    first: int = 0,
    octwords: int | None = None,
    **context: Any,
) -> bytes:
    """The body of a UMR WQE."""
    padded = entries.ljust(-(-len(entries) // 64) * 64, b"\0")
    count = len(padded) // 16 if octwords is None else octwords
    control = struct.pack(">IHHQI", int(flags) << 24, count, first & 0xFFFF, int(mask), first >> 16).ljust(48, b"\0")
    return control + Mkc.pack(**context) + (pointer or padded)


def mtts(memory: Buffer, pages: list[int], present: int = PRESENT) -> bytes:
    return b"".join(struct.pack(">Q", memory.iova + page * PAGE | present) for page in pages)


def klms(*entries: tuple[int, int, int]) -> bytes:
    return b"".join(struct.pack(">IIQ", *entry) for entry in entries)


@dataclass
class Rig:
    """A connected pair, a kernel's UMR QP, and memory."""

    bench: Bench = field(default_factory=Bench)

    def __post_init__(self) -> None:
        bench = self.bench
        self.sent: Completions = bench.cq()
        self.received: Completions = bench.cq()
        self.left: Queue = bench.qp(self.sent)
        self.right: Queue = bench.qp(self.sent, self.received)
        bench.connect(self.left, self.right)
        self.done: Completions = bench.cq()
        self.kernel: Queue = bench.qp(
            self.done, st=ServiceType.REG_UMR, rq_type=RqType.ZERO_LEN_RQ, fre=1, rlky=1, pd=0, log_sq=5
        )
        bench.to_init(self.kernel)
        bench.to_rtr(self.kernel, 0)
        bench.to_rts(self.kernel)
        self.source: Buffer = bench.memory(8 * PAGE)
        self.target: Buffer = bench.memory(8 * PAGE)
        self.target.view[:] = os.urandom(8 * PAGE)
        self.lkey: int = bench.mkey(self.source)
        self.region: int = bench.mkey(self.target, key=0x77, rr=0, rw=0)

    def free_key(self, mode: AccessMode = AccessMode.MTT, *, octwords: int = 8, **context: Any) -> int:
        fields: dict[str, int] = {
            "access_mode_1_0": mode, "free": 1, "umr_en": 1, "lr": 1, "qpn": 0xFF_FFFF, "pd": self.bench.pd,
            "mkey_7_0": 0x10, "translations_octword_size": octwords,
        } | context  # fmt: skip
        reply = self.bench.call(Opcode.CREATE_MKEY, memory_key_mkey_entry=fields)
        return int(reply.mkey_index) << 8 | fields["mkey_7_0"]

    def key(self, key: int) -> MKey:
        found = self.bench.fn.mkeys.find(key >> 8)
        assert found is not None
        return found

    def run(self, queue: Queue, key: int, body: bytes) -> None:
        queue.post(WqeOpcode.UMR, body, immediate=key)

    def ok(self, queue: Queue, key: int, body: bytes) -> None:
        self.run(queue, key, body)
        cqe = (self.done if queue is self.kernel else self.sent).good(CqeOpcode.REQ)
        assert (cqe.sop_drop_qpn >> 24, cqe.byte_cnt) == (WqeOpcode.UMR, 0)

    def refused(self, queue: Queue, key: int, body: bytes) -> tuple[int, int]:
        found = self.bench.fn.mkeys.find(key >> 8)
        before = found.context() if found is not None else b""
        self.run(queue, key, body)
        error = (self.done if queue is self.kernel else self.sent).error()
        assert self.bench.state(queue) == QpState.ERR
        assert found is None or found.context() == before
        return error.syndrome, error.vendor_err_synd

    def read(self, rkey: int, address: int, length: int) -> bytes:
        self.left.post(WqeOpcode.RDMA_READ, remote(address, rkey), data(self.lkey, self.source.iova, length))
        self.sent.good(CqeOpcode.REQ)
        return bytes(self.source.view[:length])

    def read_error(self, rkey: int, address: int, length: int) -> int:
        self.left.post(WqeOpcode.RDMA_READ, remote(address, rkey), data(self.lkey, self.source.iova, length))
        error = self.sent.error()
        assert error.syndrome == CqeSyndrome.REMOTE_ACCESS_ERR
        return int(error.vendor_err_synd)

    def enable(self, pages: int, **context: Any) -> tuple[int, dict[str, Any]]:
        """Mask and context that enable a key to pages of the target."""
        mask = WINDOW | MkeyMask.PD | MkeyMask.PAGE_SIZE
        fields = {
            "lr": 1, "lw": 1, "rr": 1, "rw": 1, "pd": self.bench.pd, "qpn": 0xFF_FFFF, "mkey_7_0": 0x10,
            "start_addr": 0x5000_0000, "len": pages * PAGE, "log_page_size": 12,
        } | context  # fmt: skip
        return int(mask), fields


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.bench.fn.caps.general.umr_modify_entity_size_disabled = 0
    return rig


@pytest.mark.requirement("G4", "G5")
def test_register_pages_inline(rig: Rig) -> None:
    key = rig.free_key()
    mask, context = rig.enable(4)
    rig.ok(
        rig.kernel,
        key,
        umr(mask, flags=INLINE | UmrFlag.CHECK_NOT_FREE, entries=mtts(rig.target, [2, 3, 0, 7]), **context),
    )
    whole = b"".join(bytes(rig.target.view[page * PAGE : (page + 1) * PAGE]) for page in (2, 3, 0, 7))
    assert rig.read(key, 0x5000_0000, 4 * PAGE) == whole
    assert rig.read(key, 0x5000_0000 + 2 * PAGE - 1, 2) == whole[2 * PAGE - 1 : 2 * PAGE + 1]
    assert rig.read_error(key, 0x5000_0000, 4 * PAGE + 1) == VendorSyndrome.KEY_RANGE


@pytest.mark.requirement("G4", "G5")
def test_register_pages_by_pointer_in_chunks(rig: Rig) -> None:
    bench = rig.bench
    dma = bench.mkey(bench.memory(PAGE), access_mode_1_0=0, length64=1, start=0, pd=bench.call(Opcode.ALLOC_PD).pd)
    chunks = bench.memory(128)
    chunks.view[:] = mtts(rig.target, [0, 1, 2, 3, 4, 5, 6, 7]).ljust(128, b"\0")
    chunks.view[64:128] = mtts(rig.target, [7, 6, 5, 4, 3, 2, 1, 0])
    key = rig.free_key(octwords=8)
    flags = UmrFlag.CHECK_NOT_FREE
    rig.ok(rig.kernel, key, umr(0, flags=flags, pointer=data(dma, chunks.iova, 64), octwords=4))
    assert rig.key(key).free
    mask, context = rig.enable(16)
    last = umr(
        mask, flags=flags | UmrFlag.TRANSLATION_OFFSET_EN, pointer=data(dma, chunks.iova + 64, 64), octwords=4, first=4,
        **context,
    )  # fmt: skip
    rig.ok(rig.kernel, key, last)
    order = [*range(8), *reversed(range(8))]
    whole = b"".join(bytes(rig.target.view[page * PAGE : (page + 1) * PAGE]) for page in order)
    assert rig.read(key, 0x5000_0000 + 5 * PAGE, 6 * PAGE) == whole[5 * PAGE : 11 * PAGE]


@pytest.mark.requirement("G4")
def test_a_new_list_forgets_the_old_one(rig: Rig) -> None:
    key = rig.free_key()
    mask, context = rig.enable(8)
    rig.ok(rig.kernel, key, umr(mask, entries=mtts(rig.target, list(range(8))), **context))
    rig.ok(rig.kernel, key, umr(MkeyMask.FREE, free=1))
    rig.ok(rig.kernel, key, umr(mask, entries=mtts(rig.target, [5]).ljust(64, b"\0"), **context))
    assert rig.read(key, 0x5000_0000, PAGE) == rig.target.view[5 * PAGE : 6 * PAGE]
    assert rig.read_error(key, 0x5000_0000 + PAGE, 1) == VendorSyndrome.KEY_NOT_PRESENT


@pytest.mark.requirement("G4")
def test_page_rights_count(rig: Rig) -> None:
    key = rig.free_key()
    mask, context = rig.enable(2)
    entries = mtts(rig.target, [0], PRESENT) + mtts(rig.target, [1], 1)
    rig.ok(rig.kernel, key, umr(mask, entries=entries, **context))
    assert rig.read(key, 0x5000_0000 + PAGE - 1, 2) == rig.target.view[PAGE - 1 : PAGE + 1]
    rig.left.post(WqeOpcode.RDMA_WRITE, remote(0x5000_0000 + PAGE - 1, key), data(rig.lkey, rig.source.iova, 2))
    assert rig.sent.error().vendor_err_synd == VendorSyndrome.KEY_NOT_PRESENT


@pytest.mark.requirement("G4")
def test_kernel_changes_rights_and_pd_and_revokes(rig: Rig) -> None:
    bench = rig.bench
    key = bench.mkey(rig.target, key=0x31, umr_en=1, rr=0)
    other = bench.call(Opcode.ALLOC_PD).pd
    check = INLINE | UmrFlag.CHECK_FREE
    rig.ok(rig.kernel, key, umr(RIGHTS, flags=check, lr=1, rr=1))
    assert rig.read(key, rig.target.iova, 8) == rig.target.view[:8]
    rig.ok(rig.kernel, key, umr(MkeyMask.PD, flags=check, pd=other))
    assert bench.fn.pds.get(other).references == 1
    rig.ok(rig.kernel, key, umr(MkeyMask.PD | MkeyMask.FREE, pd=bench.pd, free=1))
    assert bench.fn.pds.get(other).references == 0
    assert rig.read_error(key, rig.target.iova, 8) == VendorSyndrome.KEY_FREE


@pytest.mark.requirement("G4")
def test_indirect_list(rig: Rig) -> None:
    key = rig.free_key(AccessMode.KLMS, octwords=4)
    base = rig.target.iova
    entries = klms((10, rig.region, base + 5), (20, rig.region, base + 5000))
    rig.ok(rig.left, key, umr(WINDOW, entries=entries, lr=1, rr=1, len=30, mkey_7_0=0x22))
    key = key & ~0xFF | 0x22
    assert rig.read(key, 0, 30) == bytes(rig.target.view[5:15]) + bytes(rig.target.view[5000:5020])


def window(rig: Rig, **context: Any) -> int:
    """A type 2 window as the driver allocates it."""
    return rig.free_key(AccessMode.KLMS, octwords=4, en_rinval=1, **context)


def bind(rig: Rig, length: int = 100, *, queue: Queue | None = None, region: int = 0, **context: Any) -> bytes:
    """Bind a window to the region, as libmlx5 does for type 2."""
    address = rig.target.iova + 64
    fields = {
        "rr": 1, "rw": 1, "start_addr": address, "len": length, "mkey_7_0": 0x11,
        "qpn": (queue or rig.right).number,
    } | context  # fmt: skip
    mask = PLACE | MkeyMask.LW | MkeyMask.RR | MkeyMask.RW | MkeyMask.A | MkeyMask.FREE | MkeyMask.KEY | MkeyMask.QPN
    flags = INLINE | UmrFlag.TRANSLATION_OFFSET_EN | UmrFlag.CHECK_NOT_FREE
    return umr(mask, flags=flags, entries=klms((length, region or rig.region, address)), **fields)


@pytest.mark.requirement("G4", "G5", "B11")
def test_window_of_type_2(rig: Rig) -> None:
    mw = window(rig)
    rig.ok(rig.right, mw, bind(rig))
    rkey = mw & ~0xFF | 0x11
    assert rig.read(rkey, rig.target.iova + 64, 100) == rig.target.view[64:164]
    # another QP may not use it
    third, fourth = rig.bench.qp(rig.sent), rig.bench.qp(rig.sent)
    rig.bench.connect(third, fourth)
    third.post(WqeOpcode.RDMA_READ, remote(rig.target.iova + 64, rkey), data(rig.lkey, rig.source.iova, 4))
    assert rig.sent.error().vendor_err_synd == VendorSyndrome.KEY_QP
    assert rig.read_error(rkey, rig.target.iova + 64, 101) == VendorSyndrome.KEY_RANGE


@pytest.mark.requirement("G4", "G5")
def test_window_of_type_1_is_bound_again_and_unbound(rig: Rig) -> None:
    mw = rig.free_key(AccessMode.KLMS, octwords=4)
    mask = PLACE | MkeyMask.LW | MkeyMask.RR | MkeyMask.RW | MkeyMask.A | MkeyMask.FREE | MkeyMask.KEY
    flags = INLINE | UmrFlag.TRANSLATION_OFFSET_EN
    for turn in range(2):
        at = rig.target.iova + turn * PAGE
        body = umr(mask, flags=flags, entries=klms((64, rig.region, at)), rr=1, len=64, start_addr=0, mkey_7_0=turn + 1)
        rig.ok(rig.left, mw, body)
        mw = mw & ~0xFF | turn + 1
        assert rig.read(mw, 0, 64) == rig.target.view[turn * PAGE : turn * PAGE + 64]
    rig.ok(rig.left, mw, umr(MkeyMask.FREE | MkeyMask.KEY, flags=flags, free=1, mkey_7_0=2))
    assert rig.read_error(mw, 0, 64) == VendorSyndrome.KEY_FREE


@pytest.mark.requirement("G4", "G5")
def test_local_invalidation(rig: Rig) -> None:
    mw = window(rig)
    rig.ok(rig.right, mw, bind(rig))
    rkey = mw & ~0xFF | 0x11
    body = umr(MkeyMask.FREE | MkeyMask.KEY | MkeyMask.QPN, flags=INLINE | UmrFlag.CHECK_QPN, free=1, qpn=0xFF_FFFF)
    rig.ok(rig.right, rkey, body)
    assert rig.key(mw).free
    rig.ok(rig.right, rkey, bind(rig))
    assert rig.read(rkey, rig.target.iova + 64, 8) == rig.target.view[64:72]


@pytest.mark.requirement("G5")
def test_remote_invalidation(rig: Rig) -> None:
    mw = window(rig)
    rig.ok(rig.right, mw, bind(rig))
    rkey = mw & ~0xFF | 0x11
    inbox = rig.bench.memory(PAGE)
    rig.right.receive((rig.bench.mkey(inbox, key=0x66), inbox.iova, 64))
    rig.left.post(WqeOpcode.SEND_INVAL, data(rig.lkey, rig.source.iova, 16), immediate=rkey)
    rig.sent.good(CqeOpcode.REQ)
    cqe = rig.received.good(CqeOpcode.RESP_SEND_INV)
    assert (cqe.imm_inval_pkey, cqe.byte_cnt) == (rkey, 16)
    assert rig.key(mw).free
    assert rig.read_error(rkey, rig.target.iova + 64, 1) == VendorSyndrome.KEY_FREE


@pytest.mark.requirement("G5", "B11")
@pytest.mark.parametrize(
    ("case", "vendor"),
    [
        ("none", VendorSyndrome.NO_SUCH_KEY),
        ("byte", VendorSyndrome.NO_SUCH_KEY),
        ("free", VendorSyndrome.KEY_FREE),
        ("other qp", VendorSyndrome.KEY_QP),
        ("other pd", VendorSyndrome.KEY_PD),
        ("not enabled", VendorSyndrome.NOT_INVALIDATABLE),
    ],
)
def test_remote_invalidation_is_refused(rig: Rig, case: str, vendor: VendorSyndrome) -> None:
    mw = window(rig)
    if case not in ("free", "none"):
        rig.ok(rig.right, mw, bind(rig, qpn=rig.left.number if case == "other qp" else rig.right.number))
    rkey = {"none": 0xFFFF42, "byte": mw & ~0xFF | 0x12, "free": mw}.get(case, mw & ~0xFF | 0x11)
    if case == "other pd":
        rkey = rig.bench.mkey(rig.target, key=0x50, en_rinval=1, pd=rig.bench.call(Opcode.ALLOC_PD).pd)
    elif case == "not enabled":
        rkey = rig.region
    inbox = rig.bench.memory(PAGE)
    rig.right.receive((rig.bench.mkey(inbox, key=0x66), inbox.iova, 64))
    rig.left.post(WqeOpcode.SEND_INVAL, data(rig.lkey, rig.source.iova, 16), immediate=rkey)
    error = rig.sent.error()
    assert (error.syndrome, error.vendor_err_synd) == (CqeSyndrome.REMOTE_ACCESS_ERR, vendor)
    assert rig.bench.state(rig.right) == QpState.ERR
    assert rig.received.error().syndrome == CqeSyndrome.WR_FLUSH_ERR
    assert not any(inbox.view)


@pytest.mark.requirement("G4", "B11")
@pytest.mark.parametrize(
    ("case", "vendor"),
    [
        ("bound already", VendorSyndrome.UMR_KEY_IN_USE),
        ("no such window", VendorSyndrome.NO_SUCH_KEY),
        ("window of another pd", VendorSyndrome.KEY_PD),
        ("region of another pd", VendorSyndrome.BIND_TARGET),
        ("region that is too short", VendorSyndrome.BIND_TARGET),
        ("region without write", VendorSyndrome.BIND_TARGET),
        ("no such region", VendorSyndrome.BIND_TARGET),
        ("umr not enabled", VendorSyndrome.UMR_NOT_ENABLED),
        ("no such qp", VendorSyndrome.UMR_KEY_QP),
    ],
)
def test_bind_is_refused(rig: Rig, case: str, vendor: VendorSyndrome) -> None:
    bench = rig.bench
    other = bench.call(Opcode.ALLOC_PD).pd
    mw = window(rig)
    body = bind(rig)
    if case == "bound already":
        rig.ok(rig.right, mw, body)
    elif case == "no such window":
        mw = 0xFFFF10
    elif case == "window of another pd":
        mw = window(rig, pd=other)
    elif case == "region of another pd":
        body = bind(rig, region=bench.mkey(rig.target, key=0x51, pd=other))
    elif case == "region that is too short":
        body = bind(rig, length=8 * PAGE)
    elif case == "region without write":
        body = bind(rig, region=bench.mkey(rig.target, key=0x51, lw=0))
    elif case == "no such region":
        body = bind(rig, region=0xFFFF33)
    elif case == "umr not enabled":
        mw = window(rig, umr_en=0)
    else:
        body = bind(rig, qpn=0xABCDE)
    assert rig.refused(rig.right, mw, body) == (CqeSyndrome.MW_BIND_ERR, vendor)


@pytest.mark.requirement("G4")
def test_binding_to_very_many_pieces_is_refused(rig: Rig) -> None:
    scattered = rig.free_key(AccessMode.KLMS, octwords=1 << 12, mkey_7_0=0x40)
    lists = rig.bench.memory(1 << 16)
    lists.view[:] = klms(*[(1, rig.region, rig.target.iova)] * (1 << 12))
    pointer = data(rig.bench.mkey(lists, key=0x41), lists.iova, 1 << 16)
    mask = WINDOW & ~MkeyMask.KEY
    rig.ok(rig.left, scattered, umr(mask, flags=0, octwords=1 << 12, pointer=pointer, lr=1, rr=1, len=1 << 12))
    mw = rig.free_key(AccessMode.KLMS, octwords=20)
    body = umr(mask, entries=klms(*[(1 << 12, scattered, 0)] * 20), lr=1, rr=1, len=20 << 12)
    assert rig.refused(rig.left, mw, body) == (CqeSyndrome.MW_BIND_ERR, VendorSyndrome.KEY_TOO_SCATTERED)


@pytest.mark.requirement("G5")
def test_many_updates_in_one_go_all_happen(rig: Rig) -> None:
    key = rig.free_key(AccessMode.KLMS, octwords=4)
    for turn in range(6):
        body = umr(MkeyMask.EN_RINVAL, en_rinval=turn & 1)
        rig.kernel.post(WqeOpcode.UMR, body, immediate=key, ring=turn == 5)
    assert [rig.done.good(CqeOpcode.REQ).wqe_counter for _ in range(6)] == [0, 2, 4, 6, 8, 10]
    assert rig.key(key).invalidatable


@pytest.mark.requirement("G4", "B11")
@pytest.mark.parametrize(
    ("case", "vendor"),
    [
        ("free already", VendorSyndrome.UMR_KEY_FREE),
        ("wrong byte", VendorSyndrome.UMR_KEY_BYTE),
        ("bound to no qp", VendorSyndrome.UMR_KEY_QP),
    ],
)
def test_local_invalidation_is_refused(rig: Rig, case: str, vendor: VendorSyndrome) -> None:
    mw = window(rig)
    flags = INLINE | (UmrFlag.CHECK_FREE if case == "free already" else UmrFlag.CHECK_QPN)
    if case == "wrong byte":
        rig.ok(rig.right, mw, bind(rig))
    key = mw & ~0xFF | 0x99 if case == "wrong byte" else mw
    body = umr(MkeyMask.FREE | MkeyMask.KEY | MkeyMask.QPN, flags=flags, free=1, qpn=0xFF_FFFF)
    assert rig.refused(rig.right, key, body) == (CqeSyndrome.MW_BIND_ERR, vendor)


@pytest.mark.requirement("B11")
@pytest.mark.parametrize("mask", [MkeyMask.LW, MkeyMask.START_ADDR, MkeyMask.LEN, MkeyMask.PAGE_SIZE, MkeyMask.PD])
def test_an_application_changes_nothing_of_its_regions(rig: Rig, mask: MkeyMask) -> None:
    region = rig.bench.mkey(rig.target, key=0x31, umr_en=1)
    body = umr(mask, lw=1, start_addr=0, len=1 << 40, log_page_size=30, pd=rig.bench.pd)
    assert rig.refused(rig.left, region, body) == (CqeSyndrome.MW_BIND_ERR, VendorSyndrome.UMR_PRIVILEGE)


@pytest.mark.requirement("B11")
def test_an_application_names_no_pages(rig: Rig) -> None:
    key = rig.free_key()
    body = umr(MkeyMask.FREE, entries=mtts(rig.target, [0]))
    assert rig.refused(rig.left, key, body) == (CqeSyndrome.MW_BIND_ERR, VendorSyndrome.UMR_PRIVILEGE)


@pytest.mark.requirement("G4")
@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("short", (CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.WQE_SHORT)),
        ("list cut off", (CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.WQE_SHORT)),
        ("no pointer", (CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.WQE_SHORT)),
        ("pointer too short", (CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.WQE_SHORT)),
        ("bad pointer", (CqeSyndrome.LOCAL_PROT_ERR, VendorSyndrome.NO_SUCH_KEY)),
        ("signature", (CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.UMR_MASK)),
        ("unknown flag", (CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.UMR_MASK)),
        ("list too long", (CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.UMR_LIST)),
        ("list behind the room", (CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.UMR_LIST)),
        ("page size", (CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.UMR_VALUE)),
        ("range", (CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.UMR_VALUE)),
        ("pd", (CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.UMR_VALUE)),
        ("entity size masked", (CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.UMR_MASK)),
    ],
)
def test_malformed(rig: Rig, case: str, expected: tuple[int, int]) -> None:
    key = rig.free_key()
    mask, context = rig.enable(2)
    entries = mtts(rig.target, [0, 1])
    body = umr(mask, entries=entries, **context)
    if case == "short":
        body = body[:96]
    elif case == "list cut off":
        body = umr(mask, entries=entries, octwords=8, **context)
    elif case == "no pointer":
        body = umr(mask, flags=0, octwords=4, **context)
    elif case == "pointer too short":
        body = umr(mask, flags=0, octwords=4, pointer=data(rig.lkey, rig.source.iova, 32), **context)
    elif case == "bad pointer":
        body = umr(mask, flags=0, octwords=4, pointer=data(0xFFFF99, rig.source.iova, 64), **context)
    elif case == "signature":
        body = umr(mask | MkeyMask.BSF_EN, entries=entries, **context)
    elif case == "unknown flag":
        body = umr(mask, flags=INLINE | 1, entries=entries, **context)
    elif case == "list too long":
        body = umr(mask, entries=mtts(rig.target, [0] * 24), **context)
    elif case == "list behind the room":
        body = umr(mask, flags=INLINE | UmrFlag.TRANSLATION_OFFSET_EN, first=1 << 20, entries=entries, **context)
    elif case == "entity size masked":
        rig.bench.fn.caps.general.umr_modify_entity_size_disabled = 1
    else:
        wrong = {"page size": {"log_page_size": 11}, "range": {"start_addr": (1 << 64) - 1}, "pd": {"pd": 0x777}}[case]
        body = umr(mask, entries=entries, **(context | wrong))
    assert rig.refused(rig.kernel, key, body) == expected


@pytest.mark.requirement("G4")
def test_queues_of_datagrams_have_no_umr() -> None:
    bench = Bench()
    done = bench.cq()
    queue = bench.qp(done, st=ServiceType.QP1)
    bench.to_init(queue)
    bench.to_rtr(queue, 0)
    bench.to_rts(queue)
    queue.post(WqeOpcode.UMR, umr(MkeyMask.FREE, free=1), immediate=0x1000)
    assert done.error().syndrome == CqeSyndrome.LOCAL_QP_OP_ERR
