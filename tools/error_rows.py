"""What provokes each row of the error table (docs/errors.toml) that user space can provoke."""

from __future__ import annotations

import struct

from error_table import SIZE, Scene, Setting, provokes

PAST = SIZE + 1
LONG = 1 << 30 | 1
"""Bytes, more than max_msg_sz."""
MTU = 4096
GRH = 40
NULL_KEY, DUMP_FILL_KEY = 0x300, 0x400
"""As QUERY_SPECIAL_CONTEXTS of the card answers."""
NO_KEY = 0x77_7777_00
NO_QP = 0x77_7777
NO_SRQ = 0x12_3456
NO_LID = 0x1234
IMPOSSIBLE = 0x1000
"""More WQEs than any queue of a scene has."""
NOP, SEND, RDMA_WRITE, RDMA_READ, UMR, NO_OPCODE = 0x00, 0x0A, 0x08, 0x10, 0x25, 0x3F
"""Opcodes of raw WQEs."""
MASK_FREE = 1 << 29
"""UMR: the free state is to be set."""
UMR_INLINE = 0x80
UMR_CONTROL, MKC = 48, 64
"""Bytes of a UMR WQE's parts."""


def data(key: int, address: int, length: int) -> bytes:
    """A data segment."""
    return struct.pack(">IIQ", length, key, address)


def remote(address: int, key: int) -> bytes:
    """A remote address segment."""
    return struct.pack(">QII", address, key, 0)


def umr(mask: int, entries: bytes = b"") -> bytes:
    """A UMR control segment, a context of zeros, and a list."""
    control = struct.pack(">IHHQ", UMR_INLINE << 24, len(entries) // 16, 0, mask).ljust(UMR_CONTROL, b"\0")
    return control + bytes(MKC) + entries


UC, UD, XRC = Setting("UC"), Setting("UD"), Setting("XRC")


# --- found by the requester -------------------------------------------------------------------------------------------


@provokes("lkey-unknown")
def _lkey_unknown(scene: Scene) -> None:
    scene.send(scene.lkey ^ 1)


@provokes("lkey-uc", UC)
def _lkey_uc(scene: Scene) -> None:
    scene.send(scene.lkey ^ 1)


@provokes("lkey-ud", UD)
def _lkey_ud(scene: Scene) -> None:
    scene.send(scene.lkey ^ 1)


@provokes("lkey-gone")
def _lkey_gone(scene: Scene) -> None:
    key = scene.key(near=True)
    scene.drop(key)
    scene.send(key)


@provokes("lkey-other-pd")
def _lkey_other_pd(scene: Scene) -> None:
    scene.send(scene.key(near=True, other_pd=True))


@provokes("lkey-range")
def _lkey_range(scene: Scene) -> None:
    scene.send(length=PAST)


@provokes("lkey-right")
def _lkey_right(scene: Scene) -> None:
    scene.read(into=scene.key(near=True, without="local write"))


@provokes("lkey-free")
def _lkey_free(scene: Scene) -> None:
    scene.send(scene.window())


@provokes("length-rc")
def _length_rc(scene: Scene) -> None:
    scene.write(length=LONG)


@provokes("length-uc", UC)
def _length_uc(scene: Scene) -> None:
    scene.send(length=LONG)


@provokes("length-ud", UD)
def _length_ud(scene: Scene) -> None:
    scene.send(length=MTU + 1)


@provokes("opcode-unknown")
def _opcode_unknown(scene: Scene) -> None:
    scene.raw(NO_OPCODE, data(scene.lkey, scene.source, 64))


@provokes("opcode-uc", UC)
def _opcode_uc(scene: Scene) -> None:
    scene.read()


@provokes("opcode-uc-inval", UC)
def _opcode_uc_inval(scene: Scene) -> None:
    scene.send_invalidating(scene.rkey)


@provokes("opcode-ud", UD)
def _opcode_ud(scene: Scene) -> None:
    scene.write()


@provokes("wqe-short")
def _wqe_short(scene: Scene) -> None:
    scene.raw(RDMA_WRITE)


@provokes("wqe-inline")
def _wqe_inline(scene: Scene) -> None:
    scene.raw(SEND, struct.pack(">I12x", 1 << 31 | 32))


@provokes("wqe-unposted")
def _wqe_unposted(scene: Scene) -> None:
    scene.post_behind(SEND, ds=0x3F)


@provokes("inline-read")
def _inline_read(scene: Scene) -> None:
    scene.raw(RDMA_READ, remote(scene.target, scene.rkey), struct.pack(">I12x", 1 << 31 | 12))


@provokes("atomic-length")
def _atomic_length(scene: Scene) -> None:
    scene.atomic(pieces=2)


@provokes("sq-record")
def _sq_record(scene: Scene) -> None:
    scene.post_behind(NOP, count=IMPOSSIBLE)


@provokes("post-early", Setting(early=True))
def _post_early(scene: Scene) -> None:
    scene.receive()
    scene.post_behind(SEND, data(scene.lkey, scene.source, 64))
    scene.expect(near=False, begins=bytes(64))


@provokes("post-late")
def _post_late(scene: Scene) -> None:
    scene.to_error(near=True)
    scene.receive(near=True)
    scene.send()


@provokes("flush")
def _flush(scene: Scene) -> None:
    scene.receive(near=True)
    scene.send(scene.lkey ^ 1, ring=False)
    scene.send()


@provokes("flush-sqe", UD)
def _flush_sqe(scene: Scene) -> None:
    scene.receive(near=True)
    scene.send(scene.lkey ^ 1, ring=False)
    scene.send()


# --- memory windows and other changes of keys by WQE ------------------------------------------------------------------


@provokes("bind-right")
def _bind_right(scene: Scene) -> None:
    scene.bind(scene.window(), scene.key(near=True, without="local write"), near=True)


@provokes("bind-range")
def _bind_range(scene: Scene) -> None:
    scene.bind(scene.window(), scene.lkey, near=True, length=PAST)


@provokes("bind-other-pd")
def _bind_other_pd(scene: Scene) -> None:
    scene.bind(scene.window(), scene.key(near=True, other_pd=True), near=True)


@provokes("bind-window-other-pd")
def _bind_window_other_pd(scene: Scene) -> None:
    scene.bind(scene.window(other_pd=True), scene.lkey, near=True)


@provokes("bind-twice")
def _bind_twice(scene: Scene) -> None:
    window = scene.window()
    for _ in range(2):
        scene.bind(window, scene.lkey, near=True)


@provokes("invalidate-unknown")
def _invalidate_unknown(scene: Scene) -> None:
    scene.invalidate(NO_KEY, near=True)


@provokes("invalidate-region")
def _invalidate_region(scene: Scene) -> None:
    scene.invalidate(scene.lkey, near=True)


@provokes("invalidate-other-qp")
def _invalidate_other_qp(scene: Scene) -> None:
    window = scene.bind(scene.window(), scene.rkey, near=False)
    scene.settle()
    scene.invalidate(window, near=True)


@provokes("umr-privilege")
def _umr_privilege(scene: Scene) -> None:
    scene.raw(UMR, umr(0, bytes(64)), immediate=scene.lkey)


@provokes("umr-mask")
def _umr_mask(scene: Scene) -> None:
    scene.raw(UMR, umr(1 << 63 | MASK_FREE), immediate=scene.lkey)


@provokes("umr-short")
def _umr_short(scene: Scene) -> None:
    scene.raw(UMR, bytes(UMR_CONTROL), immediate=scene.lkey)


# --- found by the responder: keys and rights --------------------------------------------------------------------------


@provokes("rkey-unknown")
def _rkey_unknown(scene: Scene) -> None:
    scene.write(scene.rkey ^ 1)
    scene.expect(near=False, begins=bytes(64))


@provokes("rkey-uc", UC)
def _rkey_uc(scene: Scene) -> None:
    scene.write(scene.rkey ^ 1)
    scene.expect(near=False, begins=bytes(64))


@provokes("rkey-gone")
def _rkey_gone(scene: Scene) -> None:
    key = scene.key(near=False)
    scene.drop(key)
    scene.read(key)


@provokes("rkey-other-pd")
def _rkey_other_pd(scene: Scene) -> None:
    scene.write(scene.key(near=False, other_pd=True))
    scene.expect(near=False, begins=bytes(64))


@provokes("rkey-range")
def _rkey_range(scene: Scene) -> None:
    scene.write(scene.key(near=False, length=SIZE - 1), SIZE)
    scene.expect(near=False, begins=bytes(64))


@provokes("rkey-no-write")
def _rkey_no_write(scene: Scene) -> None:
    scene.write(scene.key(near=False, without="write"))
    scene.expect(near=False, begins=bytes(64))


@provokes("rkey-no-read")
def _rkey_no_read(scene: Scene) -> None:
    scene.read(scene.key(near=False, without="read"))


@provokes("rkey-no-atomic")
def _rkey_no_atomic(scene: Scene) -> None:
    scene.atomic(scene.key(near=False, without="atomic"))
    scene.expect(near=False, begins=bytes(8))


@provokes("rkey-invalidated")
def _rkey_invalidated(scene: Scene) -> None:
    window = scene.bind(scene.window(), scene.rkey, near=False)
    scene.invalidate(window, near=False)
    scene.settle()
    scene.write(window)
    scene.expect(near=False, begins=bytes(64))


@provokes("rkey-under-window")
def _rkey_under_window(scene: Scene) -> None:
    region = scene.key(near=False)
    window = scene.bind(scene.window(), region, near=False)
    scene.settle()
    scene.drop(region)
    scene.write(window)
    scene.expect(near=False, begins=bytes(64))


@provokes("rkey-other-qp")
def _rkey_other_qp(scene: Scene) -> None:
    scene.write(scene.bind(scene.window(), scene.lkey, near=True))


@provokes("rkey-free")
def _rkey_free(scene: Scene) -> None:
    scene.write(scene.window())


@provokes("rkey-empty")
def _rkey_empty(scene: Scene) -> None:
    scene.write(NO_KEY, 0)


@provokes("rkey-imm")
def _rkey_imm(scene: Scene) -> None:
    scene.receive()
    scene.write(scene.rkey ^ 1, immediate=True)


@provokes("qp-no-write", Setting(without="write"))
def _qp_no_write(scene: Scene) -> None:
    scene.write()


@provokes("qp-no-read", Setting(without="read"))
def _qp_no_read(scene: Scene) -> None:
    scene.read()


@provokes("qp-no-atomic", Setting(without="atomic"))
def _qp_no_atomic(scene: Scene) -> None:
    scene.atomic()


@provokes("atomic-misaligned")
def _atomic_misaligned(scene: Scene) -> None:
    scene.atomic(at=4)


@provokes("send-inval-unknown")
def _send_inval_unknown(scene: Scene) -> None:
    scene.receive()
    scene.send_invalidating(NO_KEY)
    scene.expect(near=False, begins=bytes(64))


@provokes("send-inval-region")
def _send_inval_region(scene: Scene) -> None:
    scene.receive()
    scene.send_invalidating(scene.rkey)
    scene.expect(near=False, begins=bytes(64))


# --- on-demand paging: the kernel resumes with an error ---------------------------------------------------------------


@provokes("odp-requester")
def _odp_requester(scene: Scene) -> None:
    scene.send(scene.vanished(near=True))


@provokes("odp-responder", Setting(patient=True))
def _odp_responder(scene: Scene) -> None:
    scene.write(scene.vanished(near=False))


@provokes("odp-receive", Setting(patient=True))
def _odp_receive(scene: Scene) -> None:
    scene.receive(scene.vanished(near=False))
    scene.send()


# --- found by the responder: receives ---------------------------------------------------------------------------------


@provokes("receive-short")
def _receive_short(scene: Scene) -> None:
    scene.receive(length=63)
    scene.send()
    scene.expect(near=False, begins=bytes(64))


@provokes("receive-short-uc", UC)
def _receive_short_uc(scene: Scene) -> None:
    scene.receive(length=63)
    scene.send()
    scene.expect(near=False, begins=bytes(64))


@provokes("receive-short-ud", UD)
def _receive_short_ud(scene: Scene) -> None:
    scene.receive(length=GRH + 63)
    scene.send()
    scene.expect(near=False, begins=bytes(GRH + 63))


@provokes("receive-lkey")
def _receive_lkey(scene: Scene) -> None:
    scene.receive(scene.rkey ^ 1)
    scene.send()


@provokes("receive-right")
def _receive_right(scene: Scene) -> None:
    scene.receive(scene.key(near=False, without="local write"))
    scene.send()
    scene.expect(near=False, begins=bytes(64))


@provokes("receive-lkey-ud", UD)
def _receive_lkey_ud(scene: Scene) -> None:
    scene.receive(scene.rkey ^ 1)
    scene.send()


@provokes("rnr")
def _rnr(scene: Scene) -> None:
    scene.send()


@provokes("rnr-imm")
def _rnr_imm(scene: Scene) -> None:
    scene.write(immediate=True)


@provokes("rq-record")
def _rq_record(scene: Scene) -> None:
    scene.count_receives(IMPOSSIBLE)
    scene.send()


@provokes("xrc-domain", XRC)
def _xrc_domain(scene: Scene) -> None:
    scene.send(srqn=scene.other_srq())


@provokes("xrc-unknown", XRC)
def _xrc_unknown(scene: Scene) -> None:
    scene.send(srqn=NO_SRQ)


@provokes("ud-qkey", UD)
def _ud_qkey(scene: Scene) -> None:
    scene.receive()
    scene.send(wrong_qkey=True)
    scene.expect(near=False, begins=bytes(GRH + 64))


@provokes("ud-pkey", Setting("UD", pkey_index=1))
def _ud_pkey(scene: Scene) -> None:
    scene.receive()
    scene.send()
    scene.expect(near=False, begins=bytes(GRH + 64))


@provokes("ud-no-receive", UD)
def _ud_no_receive(scene: Scene) -> None:
    scene.send()


@provokes("ud-number", Setting("UD", peer=NO_QP))
def _ud_number(scene: Scene) -> None:
    scene.receive()
    scene.send()


@provokes("ud-lid", Setting("UD", lid=NO_LID))
def _ud_lid(scene: Scene) -> None:
    scene.receive()
    scene.send()


# --- nobody answers ---------------------------------------------------------------------------------------------------


@provokes("retry-reset")
def _retry_reset(scene: Scene) -> None:
    scene.reset_responder()
    scene.send()


@provokes("retry-error")
def _retry_error(scene: Scene) -> None:
    scene.to_error(near=False)
    scene.send()


@provokes("retry-gone")
def _retry_gone(scene: Scene) -> None:
    scene.destroy_responder()
    scene.send()


@provokes("retry-number", Setting(peer=NO_QP))
def _retry_number(scene: Scene) -> None:
    scene.send()


@provokes("retry-lid", Setting(lid=NO_LID))
def _retry_lid(scene: Scene) -> None:
    scene.send()


@provokes("retry-pkey", Setting(pkey_index=1))
def _retry_pkey(scene: Scene) -> None:
    scene.receive()
    scene.send()


@provokes("uc-pkey", Setting("UC", pkey_index=1))
def _uc_pkey(scene: Scene) -> None:
    scene.receive()
    scene.send()


# --- queues -----------------------------------------------------------------------------------------------------------


@provokes("cq-overrun-requester", Setting(short_cq="near"))
def _cq_overrun_requester(scene: Scene) -> None:
    for _ in range(3):
        scene.write()


@provokes("cq-overrun-responder", Setting(short_cq="far"))
def _cq_overrun_responder(scene: Scene) -> None:
    for _ in range(3):
        scene.receive()
        scene.send()


@provokes("srq-broken", Setting(pooled=True))
def _srq_broken(scene: Scene) -> None:
    scene.count_receives(IMPOSSIBLE)
    scene.send()


@provokes("srq-limit", Setting(pooled=True))
def _srq_limit(scene: Scene) -> None:
    scene.receive()
    scene.receive()
    scene.arm_srq(2)
    scene.send()


@provokes("srq-last-wqe", Setting(pooled=True))
def _srq_last_wqe(scene: Scene) -> None:
    scene.to_error(near=False)


# --- keys over nothing ------------------------------------------------------------------------------------------------


@provokes("null-read")
def _null_read(scene: Scene) -> None:
    scene.fill(near=False, byte=0xEE)
    scene.receive()
    scene.send(NULL_KEY)
    scene.expect(near=False, begins=bytes(64) + b"\xee")


@provokes("null-write")
def _null_write(scene: Scene) -> None:
    scene.receive(NULL_KEY)
    scene.send()
    scene.expect(near=False, begins=bytes(64))


@provokes("null-remote")
def _null_remote(scene: Scene) -> None:
    scene.write(NULL_KEY)


@provokes("dump-fill-read")
def _dump_fill_read(scene: Scene) -> None:
    scene.fill(near=True, byte=0xEE)
    scene.read(into=DUMP_FILL_KEY)
    scene.expect(near=True, begins=b"\xee" * 64)
