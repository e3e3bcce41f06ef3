"""Rows of the error table that the responder finds, or nobody, and those of queues and of keys over nothing."""

from __future__ import annotations

import struct

from softhca.hca.mkey import DUMP_FILL_MKEY, NULL_MKEY
from softhca.prm.opcodes import Opcode
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import PAGE, data
from tests.hca.error_scene import SIZE, Scene, provokes
from tests.hca.test_datagram import QKEY
from tests.hca.test_xrc import xrc_pool

# --- found by the responder: keys and rights --------------------------------------------------------------------------


@provokes("rkey-unknown")
def _rkey_unknown() -> Scene:
    scene = Scene()
    scene.write(scene.rkey ^ 1)
    return scene


@provokes("rkey-uc")
def _rkey_uc() -> Scene:
    scene = Scene("UC")
    scene.write(scene.rkey ^ 1)
    assert not any(scene.target.view)
    return scene


@provokes("rkey-gone")
def _rkey_gone() -> Scene:
    scene = Scene()
    scene.bench.call(Opcode.DESTROY_MKEY, mkey_index=scene.rkey >> 8)
    scene.read()
    return scene


@provokes("rkey-other-pd")
def _rkey_other_pd() -> Scene:
    scene = Scene()
    scene.write(scene.key(scene.target, pd=scene.other_pd()))
    return scene


@provokes("rkey-range")
def _rkey_range() -> Scene:
    scene = Scene()
    scene.write(scene.key(scene.target, length=SIZE - 1), SIZE)
    assert not any(scene.target.view)
    return scene


@provokes("rkey-no-write")
def _rkey_no_write() -> Scene:
    scene = Scene()
    scene.write(scene.key(scene.target, rw=0))
    return scene


@provokes("rkey-no-read")
def _rkey_no_read() -> Scene:
    scene = Scene()
    scene.read(scene.key(scene.target, rr=0))
    return scene


@provokes("rkey-no-atomic")
def _rkey_no_atomic() -> Scene:
    scene = Scene()
    scene.atomic(scene.key(scene.target, a=0))
    return scene


@provokes("rkey-invalidated")
def _rkey_invalidated() -> Scene:
    scene = Scene()
    window = scene.window()
    scene.bind(scene.right, window, scene.rkey, scene.target)
    scene.invalidate(scene.right, window)
    scene.write(window)
    return scene


@provokes("rkey-other-qp")
def _rkey_other_qp() -> Scene:
    scene = Scene()
    window = scene.window()
    scene.bind(scene.left, window, scene.rkey, scene.target)
    scene.write(window)
    return scene


@provokes("rkey-imm")
def _rkey_imm() -> Scene:
    scene = Scene()
    scene.receive()
    scene.write(scene.rkey ^ 1, opcode=WqeOpcode.RDMA_WRITE_IMM)
    return scene


@provokes("rkey-unmapped")
def _rkey_unmapped() -> Scene:
    scene = Scene()
    scene.write(scene.key(scene.target, pages=[1 << 44], length=PAGE))
    return scene


@provokes("qp-no-write")
def _qp_no_write() -> Scene:
    scene = Scene(rights={"rwe": 0})
    scene.write()
    return scene


@provokes("qp-no-read")
def _qp_no_read() -> Scene:
    scene = Scene(rights={"rre": 0})
    scene.read()
    return scene


@provokes("qp-no-atomic")
def _qp_no_atomic() -> Scene:
    scene = Scene(rights={"rae": 0})
    scene.atomic()
    return scene


@provokes("atomic-misaligned")
def _atomic_misaligned() -> Scene:
    scene = Scene()
    scene.atomic(at=4)
    return scene


def _send_invalidating(key: int, scene: Scene) -> Scene:
    scene.receive()
    scene.left.post(WqeOpcode.SEND_INVAL, data(scene.lkey, scene.source.iova, 64), immediate=key)
    assert not any(scene.target.view)
    return scene


@provokes("send-inval-unknown")
def _send_inval_unknown() -> Scene:
    return _send_invalidating(0x77_7777_00, Scene())


@provokes("send-inval-region")
def _send_inval_region() -> Scene:
    scene = Scene()
    return _send_invalidating(scene.rkey, scene)


# --- found by the responder: receives ---------------------------------------------------------------------------------


def _short_receive(service: str) -> Scene:
    scene = Scene(service)
    scene.receive(length=63 + 40 * (service == "UD"))
    scene.send()
    assert not any(scene.target.view)
    return scene


@provokes("receive-short")
def _receive_short() -> Scene:
    return _short_receive("RC")


@provokes("receive-short-uc")
def _receive_short_uc() -> Scene:
    return _short_receive("UC")


@provokes("receive-short-ud")
def _receive_short_ud() -> Scene:
    return _short_receive("UD")


def _bad_receive(service: str) -> Scene:
    scene = Scene(service)
    scene.receive(scene.rkey ^ 1)
    scene.send()
    return scene


@provokes("receive-lkey")
def _receive_lkey() -> Scene:
    return _bad_receive("RC")


@provokes("receive-lkey-ud")
def _receive_lkey_ud() -> Scene:
    return _bad_receive("UD")


@provokes("rnr")
def _rnr() -> Scene:
    scene = Scene()
    scene.send()
    return scene


@provokes("rnr-imm")
def _rnr_imm() -> Scene:
    scene = Scene()
    scene.write(opcode=WqeOpcode.RDMA_WRITE_IMM)
    return scene


@provokes("rq-record")
def _rq_record() -> Scene:
    scene = Scene()
    scene.right.record.set_word(0, 0x1000)
    scene.send()
    return scene


@provokes("xrc-domain")
def _xrc_domain() -> Scene:
    scene = Scene("XRC")
    bench = scene.bench
    scene.send_xrc(xrc_pool(bench, bench.call(Opcode.ALLOC_XRCD).xrcd, bench.pd, scene.received).number)
    return scene


@provokes("xrc-unknown")
def _xrc_unknown() -> Scene:
    scene = Scene("XRC")
    scene.send_xrc(0x12_3456)
    return scene


@provokes("ud-qkey")
def _ud_qkey() -> Scene:
    scene = Scene("UD")
    scene.receive()
    scene.send(qkey=QKEY ^ 1)
    return scene


@provokes("ud-pkey")
def _ud_pkey() -> Scene:
    scene = Scene("UD", pkey_index=1)
    scene.receive()
    scene.send()
    return scene


@provokes("ud-no-receive")
def _ud_no_receive() -> Scene:
    scene = Scene("UD")
    scene.send()
    return scene


# --- nobody answers ---------------------------------------------------------------------------------------------------


@provokes("retry-reset")
def _retry_reset() -> Scene:
    scene = Scene()
    scene.bench.call(Opcode.TO_RST_QP, qpn=scene.right.number)
    scene.send()
    return scene


@provokes("retry-error")
def _retry_error() -> Scene:
    scene = Scene()
    scene.bench.call(Opcode.TO_ERR_QP, qpn=scene.right.number)
    scene.send()
    return scene


@provokes("retry-gone")
def _retry_gone() -> Scene:
    scene = Scene()
    scene.bench.call(Opcode.DESTROY_QP, qpn=scene.right.number)
    scene.send()
    return scene


@provokes("retry-number")
def _retry_number() -> Scene:
    scene = Scene(path={"peer": 0x77_7777})
    scene.send()
    return scene


@provokes("retry-lid")
def _retry_lid() -> Scene:
    scene = Scene(path={"rlid": 0x1234})
    scene.send()
    return scene


# --- queues -----------------------------------------------------------------------------------------------------------


@provokes("cq-overrun-requester")
def _cq_overrun_requester() -> Scene:
    scene = Scene(cqs=(1, 6))
    for _ in range(3):
        scene.write()
    return scene


@provokes("cq-overrun-responder")
def _cq_overrun_responder() -> Scene:
    scene = Scene(cqs=(6, 1))
    for _ in range(3):
        scene.receive()
        scene.send()
    return scene


@provokes("eq-overrun")
def _eq_overrun() -> Scene:
    scene = Scene(completion_events=0)
    for cq in (scene.sent, scene.received):
        scene.bench.ring(scene.bench.uar, 0x20, struct.pack(">II", 0, cq.number))
    scene.receive()
    scene.send()
    return scene


@provokes("srq-limit")
def _srq_limit() -> Scene:
    scene = Scene(pooled=True)
    assert scene.pool is not None
    for index in range(2):
        scene.pool.post(index, scene.rkey, scene.target.iova, SIZE)
    scene.bench.call(Opcode.ARM_RQ, op_mod=1, srq_number=scene.pool.number, lwm=2)
    scene.send()
    return scene


@provokes("srq-last-wqe")
def _srq_last_wqe() -> Scene:
    scene = Scene(pooled=True)
    scene.bench.call(Opcode.TO_ERR_QP, qpn=scene.right.number)
    return scene


@provokes("srq-broken")
def _srq_broken() -> Scene:
    scene = Scene(pooled=True)
    assert scene.pool is not None
    scene.pool.record.set_word(0, 0x1000)
    scene.send()
    return scene


# --- keys over nothing ------------------------------------------------------------------------------------------------


@provokes("null-read")
def _null_read() -> Scene:
    scene = Scene()
    scene.target.view[:] = b"\xee" * SIZE
    scene.receive()
    scene.send(NULL_MKEY)
    assert bytes(scene.target.view[:65]) == bytes(64) + b"\xee"
    return scene


@provokes("null-write")
def _null_write() -> Scene:
    scene = Scene()
    scene.receive(NULL_MKEY)
    scene.send()
    assert not any(scene.target.view)
    return scene


@provokes("null-remote")
def _null_remote() -> Scene:
    scene = Scene()
    scene.write(NULL_MKEY)
    return scene


@provokes("dump-fill-read")
def _dump_fill_read() -> Scene:
    scene = Scene()
    before = bytes(scene.source.view)
    scene.read(into=DUMP_FILL_MKEY)
    assert bytes(scene.source.view) == before
    return scene
