"""On-demand paging: page fault events, PAGE_FAULT_RESUME, and what waits for it."""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass
from typing import Any

import pytest

from softhca.hca.errors import CommandError
from softhca.hca.mkey import NULL_MKEY
from softhca.hca.translation import KeyTable, PageTable
from softhca.prm.cqe import CqeOpcode, CqeSyndrome
from softhca.prm.events import Eqe, EqePageFaultRdma, EqePageFaultWqe, EventType
from softhca.prm.mkey import AccessMode, PageFaultType
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import QpState, RqType, ServiceType
from softhca.prm.syndromes import queues
from softhca.prm.syndromes.completion import VendorSyndrome
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import PAGE, Bench, Buffer, Completions, Events, Queue, data, inline, remote
from tests.hca.test_srq import Pool, rmp
from tests.hca.test_xrc import xrc, xrc_pool

RNR = 640_000
"""What min_rnr_nak 12 of the bench means (ns)."""
MESSAGE = bytes(range(200))
PRESENT = 3


@dataclass
class Scene:
    """A QP that is its own peer, and a region of two pages that are not there."""

    bench: Bench
    cq: Completions
    queue: Queue
    memory: Buffer
    key: int
    plain: Buffer
    plain_key: int
    faults: Events

    def bring(self, rights: int = PRESENT, key: int | None = None) -> None:
        """Bring all pages in, as the host does by UMR."""
        found = self.bench.fn.mkeys.find((key or self.key) >> 8)
        assert found is not None
        assert isinstance(found.table, PageTable)
        found.table.load(0, array("Q", (page | rights for page in self.bench.pages(self.memory))), keep=True)

    def fault(self) -> Eqe:
        event = self.faults.poll()
        assert event is not None, "no event"
        assert event.type == EventType.PAGE_FAULT
        return event

    def wqe_fault(self) -> EqePageFaultWqe:
        event = self.fault()
        assert event.sub_type == 0
        return event.data.page_fault.wqe

    def rdma_fault(self) -> EqePageFaultRdma:
        event = self.fault()
        assert event.sub_type == 1
        return event.data.page_fault.rdma

    def resume(self, token: int, number: int, kind: int, *, error: int = 0) -> None:
        info = {"error": error, "page_fault_type": kind, "wq_number": number, "fault_token": token}
        self.bench.call(Opcode.PAGE_FAULT_RESUME, page_fault_info={"trans_page_fault_info": info})
        self.bench.run()

    def resume_wqe(self, fault: EqePageFaultWqe, *, error: int = 0) -> None:
        self.resume(fault.token, fault.pftype_wq & 0xFF_FFFF, fault.pftype_wq >> 24, error=error)

    def resume_rdma(self, fault: EqePageFaultRdma, *, error: int = 0) -> None:
        token = fault.pftype_token & 0xFF_FFFF
        self.resume(token, token, fault.pftype_token >> 24, error=error)


@pytest.fixture
def scene() -> Scene:
    bench = Bench()
    caps = bench.fn.caps.odp.transport_page_fault_scheme_cap
    caps.rc_odp_caps.srq_receive = caps.rc_odp_caps.atomic = 1
    caps.xrc_odp_caps.send = caps.xrc_odp_caps.srq_receive = 1
    faults = bench.eq(mask=1 << EventType.PAGE_FAULT)
    cq = bench.cq()
    queue = bench.qp(cq)
    bench.connect(queue, queue)
    bench.call(Opcode.RTS2RTS_QP, qpn=queue.number, opt_param_mask=4, qpc={"rae": 1})
    memory, plain = bench.memory(2 * PAGE), bench.memory(PAGE)
    key = bench.mkey(memory, pages=[0, 0], pg_access=1, a=1)
    return Scene(bench, cq, queue, memory, key, plain, bench.mkey(plain, a=1, key=0x17), faults)


@pytest.mark.requirement("G4")
def test_a_send_waits_for_its_memory(scene: Scene) -> None:
    scene.memory.view[PAGE - 100 : PAGE + 100] = MESSAGE
    scene.queue.receive((scene.plain_key, scene.plain.iova, 200))
    scene.queue.post(WqeOpcode.NOP)
    scene.queue.post(WqeOpcode.SEND, data(scene.key, scene.memory.iova + PAGE - 100, 200))
    scene.cq.good(CqeOpcode.REQ)
    event = scene.fault()
    assert (event.type, event.sub_type) == (0x0C, 0)
    token = event.data.page_fault.wqe.token
    expected = struct.pack(">IHHHHIQI", 0, 0, 1, 0, 0, token, 0, 1 << 24 | scene.queue.number)
    assert bytes(event.data)[:28] == expected
    scene.bench.wait(10 * RNR)
    assert scene.cq.raw() is None
    scene.queue.post(WqeOpcode.NOP)
    assert scene.faults.poll() is None, "one event for one fault"
    scene.bring()
    scene.resume_wqe(event.data.page_fault.wqe)
    assert scene.cq.good(CqeOpcode.RESP_SEND).byte_cnt == 200
    assert [scene.cq.good(CqeOpcode.REQ).wqe_counter for _ in range(2)] == [1, 2]
    assert bytes(scene.plain.view[:200]) == MESSAGE


@pytest.mark.requirement("G4")
def test_a_page_that_is_still_absent_faults_again(scene: Scene) -> None:
    scene.queue.receive((scene.plain_key, scene.plain.iova, 200))
    scene.queue.post(WqeOpcode.SEND, data(scene.key, scene.memory.iova, 8))
    first = scene.wqe_fault()
    scene.resume_wqe(first)
    second = scene.wqe_fault()
    assert second.token != first.token
    scene.bring()
    scene.resume_wqe(second)
    scene.cq.good(CqeOpcode.RESP_SEND)


@pytest.mark.requirement("G4")
@pytest.mark.parametrize(
    ("opcode", "kind", "operands", "length"),
    [
        (WqeOpcode.RDMA_WRITE, PageFaultType.REQ_SEND_OR_WRITE, b"", 100),
        (WqeOpcode.RDMA_READ, PageFaultType.REQ_READ_OR_ATOMIC, b"", 100),
        (WqeOpcode.ATOMIC_FA, PageFaultType.REQ_READ_OR_ATOMIC, struct.pack(">QQ", 1, 0), 8),
    ],
)
def test_kinds_of_a_requester(
    scene: Scene, opcode: WqeOpcode, kind: PageFaultType, operands: bytes, length: int
) -> None:
    target = remote(scene.plain.iova, scene.plain_key)
    scene.bring(rights=1 if opcode != WqeOpcode.RDMA_WRITE else 0)
    scene.queue.post(opcode, target, operands, data(scene.key, scene.memory.iova, length))
    fault = scene.wqe_fault()
    assert fault.pftype_wq >> 24 == kind
    scene.bring()
    scene.resume_wqe(fault)
    scene.cq.good(CqeOpcode.REQ)


@pytest.mark.requirement("G4")
@pytest.mark.parametrize(
    ("opcode", "kind", "operands", "length"),
    [
        (WqeOpcode.RDMA_WRITE, 6, b"", 6000),
        (WqeOpcode.RDMA_READ, 4, b"", 6000),
        (WqeOpcode.ATOMIC_FA, 6, struct.pack(">QQ", 1, 0), 8),
    ],
)
def test_a_responder_waits_for_what_a_request_names(
    scene: Scene, opcode: WqeOpcode, kind: int, operands: bytes, length: int
) -> None:
    local = scene.bench.memory(2 * PAGE)
    address = scene.memory.iova + 8
    scene.queue.post(
        opcode, remote(address, scene.key), operands, data(scene.bench.mkey(local, key=0x55), local.iova, length)
    )
    fault = scene.rdma_fault()
    assert (fault.r_key, fault.rdma_va, fault.rdma_op_len) == (scene.key, address, length)
    assert (fault.bytes_committed, fault.packet_length) == (0, min(length, 4096))
    assert fault.pftype_token >> 24 == kind
    scene.bench.wait(20 * RNR)
    assert scene.cq.raw() is None
    assert scene.faults.poll() is None, "retries give no further event"
    scene.bring()
    scene.resume_rdma(fault)
    assert scene.cq.raw() is None, "the requester tries again by its timer"
    scene.bench.wait(RNR)
    assert scene.cq.good(CqeOpcode.REQ).byte_cnt == length


@pytest.mark.requirement("G4")
def test_a_responder_waits_for_the_memory_of_its_receive_wqe(scene: Scene) -> None:
    scene.queue.receive((scene.plain_key, scene.plain.iova, 8), (scene.key, scene.memory.iova, 300))
    scene.queue.post(WqeOpcode.SEND, inline(MESSAGE))
    fault = scene.wqe_fault()
    assert (fault.pftype_wq, fault.wqe_index, fault.packet_length) == (2 << 24 | scene.queue.number, 0, 200)
    scene.bring()
    scene.resume_wqe(fault)
    scene.bench.wait(RNR)
    scene.cq.good(CqeOpcode.RESP_SEND)
    assert bytes(scene.memory.view[:192]) == MESSAGE[8:]


def shared(scene: Scene) -> tuple[Pool, Queue]:
    pool = rmp(scene.bench)
    queue = scene.bench.qp(scene.cq, rq_type=RqType.SRQ_RQ, srqn_rmpn_xrqn=pool.number)
    scene.bench.connect(queue, queue)
    return pool, queue


@pytest.mark.requirement("A3", "G4")
def test_a_pool_is_named_by_its_own_number(scene: Scene) -> None:
    pool, queue = shared(scene)
    pool.post(0, scene.key, scene.memory.iova, 64)
    queue.post(WqeOpcode.SEND, inline(b"abc"))
    fault = scene.wqe_fault()
    assert (fault.pftype_wq, fault.wqe_index) == (pool.number, 0)
    scene.bring()
    scene.resume_wqe(fault)
    scene.bench.wait(RNR)
    scene.cq.good(CqeOpcode.RESP_SEND)
    assert bytes(scene.memory.view[:3]) == b"abc"


@pytest.mark.requirement("A3", "G4", "G5")
def test_an_xrc_srq(scene: Scene) -> None:
    bench = scene.bench
    xrcd = bench.call(Opcode.ALLOC_XRCD).xrcd
    arrived = bench.cq()
    pool = xrc_pool(bench, xrcd, bench.pd, arrived)
    initiator = bench.qp(scene.cq, st=ServiceType.XRC, xrcd=xrcd, rq_type=RqType.ZERO_LEN_RQ)
    target = bench.qp(
        scene.cq, st=ServiceType.XRC, xrcd=xrcd, rq_type=RqType.SRQ_RQ, srqn_rmpn_xrqn=pool.number, no_sq=1, uar_page=0
    )
    bench.connect(initiator, target)
    pool.post(0, scene.key, scene.memory.iova, 64)
    initiator.post(WqeOpcode.SEND, xrc(pool.number), inline(b"abc"))
    fault = scene.wqe_fault()
    assert fault.pftype_wq == pool.number
    scene.bring()
    scene.resume_wqe(fault)
    bench.wait(RNR)
    arrived.good(CqeOpcode.RESP_SEND)


@pytest.mark.requirement("A6", "G4")
def test_a_refusal_ends_the_send(scene: Scene) -> None:
    scene.queue.post(WqeOpcode.SEND, data(scene.key, scene.memory.iova, 8))
    scene.queue.post(WqeOpcode.NOP)
    fault = scene.wqe_fault()
    scene.bring()
    scene.resume_wqe(fault, error=1)
    cqe = scene.cq.error()
    assert (cqe.syndrome, cqe.wqe_counter) == (CqeSyndrome.LOCAL_PROT_ERR, 0)
    assert cqe.vendor_err_synd == VendorSyndrome.KEY_NOT_PRESENT
    assert scene.cq.error().syndrome == CqeSyndrome.WR_FLUSH_ERR
    assert scene.bench.state(scene.queue) == QpState.ERR


@pytest.mark.requirement("A6", "G4")
def test_a_refusal_ends_the_request(scene: Scene) -> None:
    scene.queue.post(
        WqeOpcode.RDMA_WRITE, remote(scene.memory.iova, scene.key), data(scene.plain_key, scene.plain.iova, 8)
    )
    fault = scene.rdma_fault()
    scene.bring()
    scene.resume_rdma(fault, error=1)
    scene.bench.wait(RNR)
    assert scene.cq.error().syndrome == CqeSyndrome.REMOTE_ACCESS_ERR
    event = scene.bench.events.poll()
    assert event is not None
    assert event.type == EventType.WQ_ACCESS_ERROR


@pytest.mark.requirement("A6", "G4")
def test_a_refusal_ends_the_receive(scene: Scene) -> None:
    scene.queue.receive((scene.key, scene.memory.iova, 300))
    scene.queue.post(WqeOpcode.SEND, inline(MESSAGE))
    scene.resume_wqe(scene.wqe_fault(), error=1)
    scene.bench.wait(RNR)
    assert scene.cq.error().syndrome == CqeSyndrome.LOCAL_PROT_ERR
    assert scene.cq.error().syndrome == CqeSyndrome.REMOTE_OP_ERR


def refusal(scene: Scene, *numbers: int) -> Any:
    with pytest.raises(CommandError) as caught:
        scene.resume(*numbers)
    return caught.value.syndrome


@pytest.mark.requirement("B3", "G4")
def test_a_token_is_good_once_and_for_its_queue(scene: Scene) -> None:
    assert refusal(scene, 0, scene.queue.number, 1) is queues.PAGE_FAULT_TOKEN
    scene.queue.post(WqeOpcode.SEND, data(scene.key, scene.memory.iova, 8))
    fault = scene.wqe_fault()
    assert refusal(scene, fault.token, scene.queue.number + 1, 1) is queues.PAGE_FAULT_OTHER
    assert refusal(scene, fault.token, scene.queue.number, 2) is queues.PAGE_FAULT_OTHER
    assert refusal(scene, fault.token + 1, scene.queue.number, 1) is queues.PAGE_FAULT_TOKEN
    scene.bring()
    scene.resume_wqe(fault)
    assert refusal(scene, fault.token, scene.queue.number, 1) is queues.PAGE_FAULT_TOKEN


@pytest.mark.requirement("A7", "G4")
def test_the_fault_of_a_qp_that_is_reset_is_resumed_without_effect(scene: Scene) -> None:
    scene.queue.post(WqeOpcode.SEND, data(scene.key, scene.memory.iova, 8))
    fault = scene.wqe_fault()
    scene.bench.call(Opcode.TO_RST_QP, qpn=scene.queue.number)
    scene.resume_wqe(fault, error=1)
    assert scene.bench.state(scene.queue) == QpState.RST
    assert scene.cq.raw() is None


@pytest.mark.requirement("A7", "G4")
def test_the_fault_of_a_qp_that_is_gone_is_stale(scene: Scene) -> None:
    scene.queue.post(WqeOpcode.SEND, data(scene.key, scene.memory.iova, 8))
    fault = scene.wqe_fault()
    scene.bench.call(Opcode.DESTROY_QP, qpn=scene.queue.number)
    assert refusal(scene, fault.token, scene.queue.number, 1) is queues.PAGE_FAULT_TOKEN


@pytest.mark.requirement("G4")
@pytest.mark.parametrize("why", ["not in the capabilities", "no EQ"])
def test_what_may_not_fault_ends_in_error(scene: Scene, why: str) -> None:
    if why == "no EQ":
        del scene.bench.fn.event_map[EventType.PAGE_FAULT]
    else:
        scene.bench.fn.caps.odp.transport_page_fault_scheme_cap.rc_odp_caps.send = 0
    scene.queue.post(WqeOpcode.SEND, data(scene.key, scene.memory.iova, 8))
    cqe = scene.cq.error()
    assert (cqe.syndrome, cqe.vendor_err_synd) == (CqeSyndrome.LOCAL_PROT_ERR, VendorSyndrome.KEY_NOT_PRESENT)


@pytest.mark.requirement("G4")
def test_a_part_of_an_implicit_region_that_is_not_there(scene: Scene) -> None:
    bench = scene.bench
    fields = {
        "access_mode_1_0": AccessMode.KSM, "lr": 1, "lw": 1, "rr": 1, "rw": 1, "qpn": 0xFF_FFFF,
        "mkey_7_0": 0x33, "pd": bench.pd, "length64": 1, "log_page_size": 13, "translations_octword_size": 4,
    }  # fmt: skip
    words = [0x2000, NULL_MKEY, 0, 0] * 4
    reply = bench.call(
        Opcode.CREATE_MKEY, memory_key_mkey_entry=fields, translations_octword_actual_size=4, klm_pas_mtt=words
    )
    region = reply.mkey_index << 8 | 0x33
    scene.queue.receive((scene.plain_key, scene.plain.iova, 300))
    scene.memory.view[:200] = MESSAGE
    scene.queue.post(WqeOpcode.SEND, data(region, 0x4000, 200))
    fault = scene.wqe_fault()
    child = bench.mkey(scene.memory, start=0, pages=[0, 0], pg_access=1, key=0x44)
    table = bench.fn.mkeys.get(reply.mkey_index).table
    assert isinstance(table, KeyTable)
    table.load(2, struct.pack(">IIQ", 0x2000, child, 0), keep=True)
    scene.resume_wqe(fault)
    fault = scene.wqe_fault()
    scene.bring(key=child)
    scene.resume_wqe(fault)
    scene.cq.good(CqeOpcode.RESP_SEND)
    assert bytes(scene.plain.view[:200]) == MESSAGE
