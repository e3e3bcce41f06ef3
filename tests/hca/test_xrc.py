"""XRC: an initiator's requests name the SRQ whose receive WQEs, protection domain and CQ they use."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pytest

from softhca.hca.errors import CommandError
from softhca.prm.cqe import CqeOpcode, CqeSyndrome
from softhca.prm.events import EventType
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import QpState, RqType, ServiceType
from softhca.prm.syndromes.completion import VendorSyndrome
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import Bench, Completions, Queue, data, inline, remote
from tests.hca.test_srq import LOG_SIZE, LOG_STRIDE, Pool


@dataclass
class Scene:
    """An initiator and a target of one XRC domain, and an SRQ in it that has a PD and a CQ of its own."""

    bench: Bench
    xrcd: int
    pd: int
    pool: Pool
    arrived: Completions
    sent: Completions
    initiator: Queue
    target: Queue


def xrc_pool(bench: Bench, xrcd: int, pd: int, cq: Completions, **context: int) -> Pool:
    memory, record = bench.memory(4096), bench.memory(8)
    fields = {
        "log_xrc_srq_size": LOG_SIZE,
        "log_rq_stride": LOG_STRIDE - 4,
        "pd": pd,
        "cqn": cq.number,
        "xrcd": xrcd,
        "db_record_addr_h": record.iova >> 32,
        "db_record_addr_l": record.iova >> 2 & 0x3FFF_FFFF,
        "user_index": 0xFF_FFFF,
    } | context
    number = bench.call(Opcode.CREATE_XRC_SRQ, xrc_srq_context_entry=fields, pas=[memory.iova]).xrc_srqn
    pool = Pool(number, memory, record)
    pool.prepare()
    return pool


def xrc(srqn: int) -> bytes:
    return struct.pack(">I12x", srqn)


@pytest.fixture
def scene() -> Scene:
    bench = Bench()
    xrcd = bench.call(Opcode.ALLOC_XRCD).xrcd
    pd = bench.call(Opcode.ALLOC_PD).pd
    sent, arrived = bench.cq(), bench.cq()
    pool = xrc_pool(bench, xrcd, pd, arrived)
    initiator = bench.qp(sent, st=ServiceType.XRC, xrcd=xrcd, rq_type=RqType.ZERO_LEN_RQ)
    target = bench.qp(
        sent, st=ServiceType.XRC, xrcd=xrcd, rq_type=RqType.SRQ_RQ, srqn_rmpn_xrqn=pool.number, no_sq=1, uar_page=0
    )
    bench.connect(initiator, target)
    return Scene(bench, xrcd, pd, pool, arrived, sent, initiator, target)


@pytest.mark.requirement("A7", "G5")
def test_a_send_takes_from_the_srq_that_it_names(scene: Scene) -> None:
    bench = scene.bench
    memory = bench.memory(4096)
    key = bench.mkey(memory, pd=scene.pd)
    other_cq = bench.cq()
    other = xrc_pool(bench, scene.xrcd, scene.pd, other_cq, user_index=0x77)
    other.post(0, key, memory.iova + 64, 64)
    scene.pool.post(0, key, memory.iova, 64)
    scene.initiator.post(WqeOpcode.SEND, xrc(scene.pool.number), inline(b"first"))
    cqe = scene.arrived.good(CqeOpcode.RESP_SEND)
    assert (cqe.srqn, cqe.qpn, cqe.byte_cnt) == (scene.pool.number, scene.target.number, 5)
    scene.initiator.post(WqeOpcode.SEND_IMM, xrc(other.number), inline(b"second"), immediate=7)
    cqe = other_cq.good(CqeOpcode.RESP_SEND_IMM)
    version_1 = bench.fn.caps.general.cqe_version
    assert (cqe.srqn, cqe.imm_inval_pkey) == (0x77 if version_1 else other.number, 7)
    assert (bytes(memory.view[:5]), bytes(memory.view[64:70])) == (b"first", b"second")
    assert [scene.sent.good(CqeOpcode.REQ).byte_cnt for _ in range(2)] == [5, 6]


@pytest.mark.requirement("B11", "G4", "G5")
def test_remote_keys_belong_to_the_pd_of_the_srq(scene: Scene) -> None:
    bench = scene.bench
    memory = bench.memory(4096)
    right, wrong = bench.mkey(memory, pd=scene.pd), bench.mkey(memory, key=0x55)
    name = xrc(scene.pool.number)
    scene.initiator.post(WqeOpcode.RDMA_WRITE, name, remote(memory.iova + 8, right), inline(b"payload"))
    assert bytes(memory.view[8:15]) == b"payload"
    scene.initiator.post(WqeOpcode.RDMA_READ, name, remote(memory.iova + 8, right), data(wrong, memory.iova + 100, 7))
    assert bytes(memory.view[100:107]) == b"payload"
    assert [scene.sent.good(CqeOpcode.REQ).byte_cnt for _ in range(2)] == [7, 7]
    scene.initiator.post(WqeOpcode.RDMA_WRITE, name, remote(memory.iova, wrong), inline(b"payload"))
    cqe = scene.sent.error()
    assert (cqe.syndrome, cqe.vendor_err_synd) == (CqeSyndrome.REMOTE_ACCESS_ERR, VendorSyndrome.KEY_PD)


@pytest.mark.requirement("B11", "G5")
@pytest.mark.parametrize("foreign", [True, False])
def test_an_srq_outside_of_the_domain_is_refused(scene: Scene, foreign: bool) -> None:
    bench = scene.bench
    number = 0x123456
    if foreign:
        number = xrc_pool(bench, bench.call(Opcode.ALLOC_XRCD).xrcd, scene.pd, scene.arrived).number
    scene.initiator.post(WqeOpcode.SEND, xrc(number), inline(b"x"))
    cqe = scene.sent.error()
    assert (cqe.syndrome, cqe.vendor_err_synd) == (CqeSyndrome.REMOTE_INVAL_REQ_ERR, VendorSyndrome.XRC_DOMAIN)
    assert bench.state(scene.initiator) == bench.state(scene.target) == QpState.ERR
    event = bench.events.poll()
    assert event is not None
    assert event.type == EventType.WQ_INVAL_REQ_ERROR


def test_a_request_without_its_xrc_segment(scene: Scene) -> None:
    scene.initiator.post(WqeOpcode.SEND)
    cqe = scene.sent.error()
    assert (cqe.syndrome, cqe.vendor_err_synd) == (CqeSyndrome.LOCAL_QP_OP_ERR, VendorSyndrome.WQE_SHORT)


@pytest.mark.requirement("A8")
def test_a_domain_in_use_stays(scene: Scene) -> None:
    with pytest.raises(CommandError):
        scene.bench.call(Opcode.DEALLOC_XRCD, xrcd=scene.xrcd)
