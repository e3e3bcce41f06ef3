"""Rows of the error table that the requester finds: its own keys, its WQEs, memory windows."""

from __future__ import annotations

import struct

from softhca.prm.mkey import MkeyMask
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import QpState
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import PAGE, data, inline, remote
from tests.hca.error_scene import SIZE, Scene, provokes
from tests.hca.test_indirect_keys import indirect
from tests.hca.test_umr import mtts, umr

PAST = SIZE + 1
LONG = 1 << 30 | 1
"""Bytes, more than 2^log_max_msg."""


# --- found by the requester -------------------------------------------------------------------------------------------


def _unknown_lkey(service: str) -> Scene:
    scene = Scene(service)
    scene.receive()
    scene.send(scene.lkey ^ 1)
    return scene


@provokes("lkey-unknown")
def _lkey_unknown() -> Scene:
    scene = Scene()
    scene.send(scene.lkey ^ 1)
    return scene


@provokes("lkey-uc")
def _lkey_uc() -> Scene:
    return _unknown_lkey("UC")


@provokes("lkey-ud")
def _lkey_ud() -> Scene:
    return _unknown_lkey("UD")


@provokes("lkey-gone")
def _lkey_gone() -> Scene:
    scene = Scene()
    scene.bench.call(Opcode.DESTROY_MKEY, mkey_index=scene.lkey >> 8)
    scene.send()
    return scene


@provokes("lkey-other-pd")
def _lkey_other_pd() -> Scene:
    scene = Scene()
    scene.send(scene.key(scene.source, pd=scene.other_pd()))
    return scene


@provokes("lkey-range")
def _lkey_range() -> Scene:
    scene = Scene()
    scene.send(length=PAST)
    return scene


@provokes("lkey-right")
def _lkey_right() -> Scene:
    scene = Scene()
    scene.read(into=scene.key(scene.source, lw=0))
    return scene


@provokes("lkey-free")
def _lkey_free() -> Scene:
    scene = Scene()
    scene.send(scene.window())
    return scene


@provokes("lkey-unmapped")
def _lkey_unmapped() -> Scene:
    scene = Scene()
    key = scene.key(scene.source, pages=[1 << 44], length=PAGE)
    scene.send(key)
    return scene


@provokes("lkey-too-deep")
def _lkey_too_deep() -> Scene:
    scene = Scene()
    key, address = scene.lkey, int(scene.source.iova)
    for _ in range(scene.bench.fn.caps.general.max_indirection + 1):
        key, address = indirect(scene.bench, [(PAGE, key, address)]), 0
    scene.left.post(WqeOpcode.SEND, data(key, 0, 64))
    return scene


@provokes("length-rc")
def _length_rc() -> Scene:
    scene = Scene()
    scene.write(length=LONG)
    return scene


@provokes("length-uc")
def _length_uc() -> Scene:
    scene = Scene("UC")
    scene.send(length=LONG)
    return scene


@provokes("length-ud")
def _length_ud() -> Scene:
    scene = Scene("UD")
    scene.send(length=4097)
    return scene


@provokes("opcode-unknown")
def _opcode_unknown() -> Scene:
    scene = Scene()
    scene.left.post(0xFF, data(scene.lkey, scene.source.iova, 64))
    return scene


@provokes("opcode-uc")
def _opcode_uc() -> Scene:
    scene = Scene("UC")
    scene.read()
    return scene


@provokes("opcode-ud")
def _opcode_ud() -> Scene:
    scene = Scene("UD")
    scene.write()
    return scene


@provokes("wqe-short")
def _wqe_short() -> Scene:
    scene = Scene()
    scene.left.post(WqeOpcode.RDMA_WRITE)
    return scene


@provokes("wqe-inline")
def _wqe_inline() -> Scene:
    scene = Scene()
    scene.left.post(WqeOpcode.SEND, struct.pack(">I12x", 1 << 31 | 32))
    return scene


@provokes("wqe-unposted")
def _wqe_unposted() -> Scene:
    scene = Scene()
    scene.left.post_raw(struct.pack(">IIII", WqeOpcode.SEND, scene.left.number << 8 | 0x3F, 8, 0))
    return scene


@provokes("inline-read")
def _inline_read() -> Scene:
    scene = Scene()
    scene.left.post(WqeOpcode.RDMA_READ, remote(scene.target.iova, scene.rkey), inline(b"no place for it"))
    return scene


@provokes("atomic-length")
def _atomic_length() -> Scene:
    scene = Scene()
    scene.atomic(length=16)
    return scene


@provokes("sq-record")
def _sq_record() -> Scene:
    scene = Scene()
    scene.left.record.set_word(4, 0x1000)
    scene.bench.ring(scene.bench.uar, 0x800, struct.pack(">II", 0, scene.left.number << 8 | 1))
    return scene


@provokes("post-early")
def _post_early() -> Scene:
    scene = Scene(requester_state=QpState.RTR)
    scene.receive()
    scene.send()
    return scene


@provokes("post-late")
def _post_late() -> Scene:
    scene = Scene()
    scene.bench.call(Opcode.TO_ERR_QP, qpn=scene.left.number)
    scene.bench.run()
    scene.receive(queue=scene.left)
    scene.send()
    return scene


def _failing_and_more(service: str) -> Scene:
    scene = Scene(service)
    scene.receive()
    scene.receive(queue=scene.left)
    scene.send(scene.lkey ^ 1, ring=False)
    scene.send()
    return scene


@provokes("flush")
def _flush() -> Scene:
    return _failing_and_more("RC")


@provokes("flush-sqe")
def _flush_sqe() -> Scene:
    return _failing_and_more("UD")


# --- memory windows and other changes of keys by WQE ------------------------------------------------------------------


@provokes("bind-right")
def _bind_right() -> Scene:
    scene = Scene()
    scene.bind(scene.left, scene.window(), scene.key(scene.source, lw=0), scene.source)
    return scene


@provokes("bind-range")
def _bind_range() -> Scene:
    scene = Scene()
    scene.bind(scene.left, scene.window(), scene.lkey, scene.source, PAST)
    return scene


@provokes("bind-other-pd")
def _bind_other_pd() -> Scene:
    scene = Scene()
    scene.bind(scene.left, scene.window(), scene.key(scene.source, pd=scene.other_pd()), scene.source)
    return scene


@provokes("bind-window-other-pd")
def _bind_window_other_pd() -> Scene:
    scene = Scene()
    scene.bind(scene.left, scene.window(pd=scene.other_pd()), scene.lkey, scene.source)
    return scene


@provokes("bind-twice")
def _bind_twice() -> Scene:
    scene = Scene()
    window = scene.window()
    for _ in range(2):
        scene.bind(scene.left, window, scene.lkey, scene.source)
    return scene


@provokes("invalidate-unknown")
def _invalidate_unknown() -> Scene:
    scene = Scene()
    scene.invalidate(scene.left, 0x77_7777_00)
    return scene


@provokes("invalidate-region")
def _invalidate_region() -> Scene:
    scene = Scene()
    scene.invalidate(scene.left, scene.lkey)
    return scene


@provokes("invalidate-other-qp")
def _invalidate_other_qp() -> Scene:
    scene = Scene()
    window = scene.window()
    scene.bind(scene.right, window, scene.rkey, scene.target)
    scene.invalidate(scene.left, window)
    return scene


@provokes("umr-privilege")
def _umr_privilege() -> Scene:
    scene = Scene()
    scene.left.post(WqeOpcode.UMR, umr(0, entries=mtts(scene.target, [0])), immediate=scene.lkey)
    return scene


@provokes("umr-not-enabled")
def _umr_not_enabled() -> Scene:
    scene = Scene()
    scene.invalidate(scene.left, scene.key(scene.source, umr_en=0))
    return scene


@provokes("umr-mask")
def _umr_mask() -> Scene:
    scene = Scene()
    scene.left.post(WqeOpcode.UMR, umr(1 << 63 | MkeyMask.FREE, free=1), immediate=scene.lkey)
    return scene


@provokes("umr-short")
def _umr_short() -> Scene:
    scene = Scene()
    scene.left.post(WqeOpcode.UMR, bytes(48), immediate=scene.lkey)
    return scene
