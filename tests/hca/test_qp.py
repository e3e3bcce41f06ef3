"""Queue pairs: create, transitions, references, query."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from softhca.hca.errors import CommandError
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import QpState, ServiceType
from softhca.prm.syndromes import objects as syndromes
from softhca.prm.syndromes.table import Syndrome
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import Bench, Queue


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.requirement("G3", "C9")
def test_life_of_a_qp(bench: Bench) -> None:
    queue = bench.qp(bench.cq())
    assert bench.state(queue) == QpState.RST
    bench.to_init(queue)
    assert bench.state(queue) == QpState.INIT
    bench.to_rtr(queue, queue.number)
    assert bench.state(queue) == QpState.RTR
    bench.to_rts(queue)
    assert bench.state(queue) == QpState.RTS
    bench.call(Opcode.TO_ERR_QP, qpn=queue.number)
    assert bench.state(queue) == QpState.ERR
    bench.call(Opcode.TO_RST_QP, qpn=queue.number)
    assert bench.state(queue) == QpState.RST
    bench.to_init(queue)


TABLE: dict[Opcode, tuple[set[QpState], QpState]] = {
    Opcode.RST2INIT_QP: ({QpState.RST}, QpState.INIT),
    Opcode.INIT2INIT_QP: ({QpState.INIT}, QpState.INIT),
    Opcode.INIT2RTR_QP: ({QpState.INIT}, QpState.RTR),
    Opcode.RTR2RTS_QP: ({QpState.RTR}, QpState.RTS),
    Opcode.RTS2RTS_QP: ({QpState.RTS}, QpState.RTS),
    Opcode.SQERR2RTS_QP: ({QpState.SQER}, QpState.RTS),
    Opcode.SQD_RTS_QP: ({QpState.SQD}, QpState.RTS),
    Opcode.TO_ERR_QP: (set(QpState), QpState.ERR),
    Opcode.TO_RST_QP: (set(QpState), QpState.RST),
}
CONTEXT: dict[str, Any] = {"mtu": 3, "log_msg_max": 20, "primary_address_path": {"vhca_port_num": 1}}


def transit(bench: Bench, queue: Queue, opcode: Opcode, **fields: Any) -> None:
    if opcode in (Opcode.TO_ERR_QP, Opcode.TO_RST_QP):
        bench.call(opcode, qpn=queue.number)
    else:
        bench.call(opcode, qpn=queue.number, qpc=CONTEXT, **fields)


@pytest.mark.requirement("G3")
@pytest.mark.parametrize("opcode", TABLE)
@pytest.mark.parametrize("state", list(QpState))
def test_every_transition_from_every_state(bench: Bench, opcode: Opcode, state: QpState) -> None:
    queue = bench.qp(bench.cq())
    bench.fn.qps.get(queue.number).become(state)
    sources, target = TABLE[opcode]
    if state in sources:
        transit(bench, queue, opcode)
        assert bench.state(queue) == target
        return
    with pytest.raises(CommandError) as refusal:
        transit(bench, queue, opcode)
    assert refusal.value.syndrome is syndromes.ILLEGAL_TRANSITION
    assert bench.state(queue) == state


class Transitions(RuleBasedStateMachine):
    """Any order of transitions: the device follows the table, and a refusal changes nothing."""

    @initialize()
    def start(self) -> None:
        self.bench = Bench()
        self.queue = self.bench.qp(self.bench.cq())
        self.state = QpState.RST

    @rule(opcode=st.sampled_from(list(TABLE)), mask=st.sampled_from([0, 0, 0, 2, 1 << 10, 1 << 31]))
    def move(self, opcode: Opcode, mask: int) -> None:
        sources, target = TABLE[opcode]
        plain = opcode in (Opcode.TO_ERR_QP, Opcode.TO_RST_QP)
        try:
            transit(self.bench, self.queue, opcode, **({} if plain else {"opt_param_mask": mask}))
        except CommandError:
            assert self.state not in sources or mask
            return
        assert self.state in sources
        self.state = target

    @rule()
    def post(self) -> None:
        self.queue.post(WqeOpcode.NOP, flags=0)

    @invariant()
    def agrees(self) -> None:
        assert self.bench.state(self.queue) == self.state
        self.bench.run()


TestTransitions = Transitions.TestCase
TestTransitions.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)


@pytest.mark.requirement("G3")
def test_optional_fields_are_taken_by_their_bit_alone(bench: Bench) -> None:
    queue = bench.qp(bench.cq())
    bench.to_init(queue, rre=0, rwe=0)
    given = {"mtu": 3, "log_msg_max": 20, "rre": 1, "rwe": 1}
    bench.call(Opcode.INIT2RTR_QP, qpn=queue.number, qpc=given, opt_param_mask=1 << 3)
    context = bench.call(Opcode.QUERY_QP, qpn=queue.number).qpc
    assert (context.rre, context.rwe, context.mtu) == (0, 1, 3)


@pytest.mark.requirement("G3")
def test_path_keeps_port_and_pkey_of_init(bench: Bench) -> None:
    queue = bench.qp(bench.cq())
    bench.to_init(queue, primary_address_path={"vhca_port_num": 1, "pkey_index": 5})
    path = {"rlid": 7, "grh": 1, "hop_limit": 64, "rgid_rip": list(range(16))}
    bench.call(Opcode.INIT2RTR_QP, qpn=queue.number, qpc={"mtu": 1, "primary_address_path": path})
    bench.call(Opcode.RTR2RTS_QP, qpn=queue.number, qpc={"primary_address_path": {"ack_timeout": 9, "rlid": 99}})
    ads = bench.call(Opcode.QUERY_QP, qpn=queue.number).qpc.primary_address_path
    assert (ads.vhca_port_num, ads.pkey_index, ads.rlid, ads.ack_timeout) == (1, 5, 7, 9)
    assert list(ads.rgid_rip) == list(range(16))


@pytest.mark.requirement("G3")
@pytest.mark.parametrize(
    ("opcode", "state", "context", "mask", "expected"),
    [
        (Opcode.RST2INIT_QP, QpState.RST, {"primary_address_path": {"vhca_port_num": 0}}, 0, syndromes.PORT_INVALID),
        (Opcode.RST2INIT_QP, QpState.RST, {"primary_address_path": {"vhca_port_num": 2}}, 0, syndromes.PORT_INVALID),
        (
            Opcode.RST2INIT_QP,
            QpState.RST,
            {"primary_address_path": {"vhca_port_num": 1, "pkey_index": 0xFFFF}},
            0,
            syndromes.PKEY_INDEX_INVALID,
        ),
        (Opcode.INIT2RTR_QP, QpState.INIT, {"mtu": 0}, 0, syndromes.MTU_INVALID),
        (Opcode.INIT2RTR_QP, QpState.INIT, {"mtu": 6}, 0, syndromes.MTU_INVALID),
        (Opcode.INIT2RTR_QP, QpState.INIT, {"mtu": 1, "log_msg_max": 31}, 0, syndromes.MESSAGE_SIZE_INVALID),
        (Opcode.INIT2RTR_QP, QpState.INIT, {"mtu": 1, "log_rra_max": 7}, 0, syndromes.READ_DEPTH_INVALID),
        (Opcode.RTR2RTS_QP, QpState.RTR, {"log_sra_max": 7}, 0, syndromes.READ_DEPTH_INVALID),
        (Opcode.INIT2RTR_QP, QpState.INIT, {"mtu": 1}, 1, syndromes.OPTIONAL_NOT_ALLOWED),
        (Opcode.RTS2RTS_QP, QpState.RTS, {}, 1 << 25, syndromes.OPTIONAL_NOT_ALLOWED),
        (Opcode.RTS2RTS_QP, QpState.RTS, {"pm_state": 0}, 1 << 10, syndromes.PATH_MIGRATION_UNSUPPORTED),
        (Opcode.INIT2INIT_QP, QpState.INIT, {}, 1 << 16, syndromes.PORT_INVALID),
    ],
)
def test_transition_is_refused_and_changes_nothing(
    bench: Bench, opcode: Opcode, state: QpState, context: dict[str, Any], mask: int, expected: Syndrome
) -> None:
    queue = bench.qp(bench.cq())
    bench.fn.qps.get(queue.number).become(state)
    before = bytes(bench.call(Opcode.QUERY_QP, qpn=queue.number).qpc)
    with pytest.raises(CommandError) as refusal:
        bench.call(opcode, qpn=queue.number, qpc=context, opt_param_mask=mask)
    assert refusal.value.syndrome is expected
    assert bytes(bench.call(Opcode.QUERY_QP, qpn=queue.number).qpc) == before


@pytest.mark.parametrize("service", [ServiceType.QP0, ServiceType.QP1, ServiceType.REG_UMR])
def test_special_qps_come_up(bench: Bench, service: ServiceType) -> None:
    context: dict[str, Any] = {"pd": 0, "rq_type": 3} if service is ServiceType.REG_UMR else {}
    queue = bench.qp(bench.cq(), st=service, **context)
    bench.to_init(queue, q_key=0x8001_0000)
    bench.call(Opcode.INIT2RTR_QP, qpn=queue.number, qpc={"mtu": 1, "log_msg_max": 8})
    bench.call(Opcode.RTR2RTS_QP, qpn=queue.number, qpc={"next_send_psn": 5})
    qpc = bench.call(Opcode.QUERY_QP, qpn=queue.number).qpc
    assert (qpc.state, qpc.next_send_psn, qpc.q_key) == (QpState.RTS, 5, 0x8001_0000)


@pytest.mark.requirement("A7", "A8", "F2")
def test_order_of_destruction(bench: Bench) -> None:
    cq = bench.cq()
    queue = bench.qp(cq)

    def refused(opcode: Opcode, **number: Any) -> bool:
        try:
            bench.call(opcode, **number)
        except CommandError as refusal:
            return refusal.syndrome is syndromes.STILL_REFERENCED
        return False

    assert refused(Opcode.DESTROY_CQ, cqn=cq.number)
    assert refused(Opcode.DEALLOC_PD, pd=bench.pd)
    assert refused(Opcode.DEALLOC_UAR, uar=bench.uar)
    bench.to_init(queue)
    assert bench.state(queue) == QpState.INIT, "usable after the refusals"
    bench.call(Opcode.DESTROY_QP, qpn=queue.number)
    bench.call(Opcode.DESTROY_CQ, cqn=cq.number)
    bench.call(Opcode.DESTROY_EQ, eq_number=bench.events.number)
    bench.call(Opcode.DEALLOC_PD, pd=bench.pd)
    bench.call(Opcode.DEALLOC_UAR, uar=bench.uar)
    assert bench.fn.icm.used == 0


@pytest.mark.requirement("A8", "B3", "B5")
@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({"st": 0x6}, syndromes.SERVICE_UNSUPPORTED),
        ({"st": 0xFF}, syndromes.SERVICE_UNSUPPORTED),
        ({"rq_type": 2}, syndromes.RQ_TYPE_INVALID),
        ({"rq_type": 7}, syndromes.RQ_TYPE_INVALID),
        ({"wq_signature": 1}, syndromes.QP_FEATURE_UNSUPPORTED),
        ({"cd_master": 1}, syndromes.QP_FEATURE_UNSUPPORTED),
        ({"dbr_umem_valid": 1}, syndromes.UMEM_UNSUPPORTED),
        ({"pd": 0x999}, syndromes.NO_SUCH_REFERENCE),
        ({"cqn_snd": 0x999}, syndromes.NO_SUCH_REFERENCE),
        ({"cqn_rcv": 0x999}, syndromes.NO_SUCH_REFERENCE),
        ({"uar_page": 0x1FFF}, syndromes.NO_SUCH_REFERENCE),
        ({"rq_type": 1, "srqn_rmpn_xrqn": 0x999}, syndromes.NO_SUCH_REFERENCE),
        ({"dbr_addr": 0}, syndromes.BAD_DOORBELL_RECORD),
        ({"log_page_size": 31}, syndromes.BAD_PAGE_SIZE),
        ({"page_offset": 63}, syndromes.PAGE_LIST_SHORT),
    ],
)
def test_create_is_refused(bench: Bench, context: dict[str, Any], expected: Syndrome) -> None:
    cq = bench.cq()
    used = bench.fn.icm.used
    with pytest.raises(CommandError) as refusal:
        bench.qp(cq, **context)
    assert refusal.value.syndrome is expected
    assert (bench.fn.icm.used, len(bench.fn.qps)) == (used, 0)


@pytest.mark.requirement("B1", "E6")
def test_query_shows_counters_and_pages(bench: Bench) -> None:
    queue = bench.qp(bench.cq())
    bench.connect(queue, queue)
    queue.post(WqeOpcode.NOP, ring=False)
    queue.receive((1, 2, 3))
    reply = bench.call(Opcode.QUERY_QP, qpn=queue.number)
    context = reply.qpc
    assert (context.hw_sq_wqebb_counter, context.sw_sq_wqebb_counter, context.sw_rq_counter) == (0, 1, 1)
    page = reply.qp_pas_or_qpc_ext_and_pas.qp_pas_list.pas[0]
    assert page.pa_h << 32 | page.pa_l << 12 == queue.memory.iova


@pytest.mark.requirement("F1", "F8")
def test_reset_forgets_what_was_posted(bench: Bench) -> None:
    cq = bench.cq()
    queue = bench.qp(cq)
    bench.connect(queue, queue)
    queue.post(WqeOpcode.NOP, ring=False)
    bench.call(Opcode.TO_RST_QP, qpn=queue.number)
    bench.ring(bench.uar, 0x800, bytes(4) + (queue.number << 8).to_bytes(4, "big"))
    assert cq.poll() is None


@pytest.mark.requirement("F1")
def test_destroyed_qp_does_nothing_more(bench: Bench) -> None:
    cq = bench.cq()
    queue = bench.qp(cq)
    bench.connect(queue, queue)
    queue.post(WqeOpcode.NOP, ring=False)
    bench.ring(bench.uar, 0x800, bytes(4) + (queue.number << 8).to_bytes(4, "big"), run=False)
    bench.call(Opcode.DESTROY_QP, qpn=queue.number)
    bench.run()
    bench.wait(10_000_000_000)
    assert cq.poll() is None


def test_wqes_posted_before_rts_go_out_with_it(bench: Bench) -> None:
    cq = bench.cq()
    queue = bench.qp(cq)
    bench.to_init(queue)
    bench.to_rtr(queue, queue.number)
    queue.post(WqeOpcode.NOP)
    assert cq.poll() is None
    bench.to_rts(queue)
    bench.run()
    assert cq.poll() is not None


def test_cqes_of_version_1_carry_the_user_index(bench: Bench) -> None:
    assert bench.fn.caps.general.cqe_version == 1
    cq = bench.cq()
    queue = bench.qp(cq, user_index=0x123456)
    bench.connect(queue, queue)
    queue.post(WqeOpcode.NOP)
    cqe = cq.poll()
    assert cqe is not None
    assert cqe.srqn == 0x123456


def test_memory_that_many_queues_take(bench: Bench) -> None:
    """A sixteenth of the figure that `make bench-memory` measures: 16,384 QPs and 32,768 CQs in 1 GiB."""
    tracemalloc.start()
    cq_memory, record = bench.memory(4096), bench.memory(8)
    qp_memory = bench.memory(8192)
    cq_fields = {
        "log_cq_size": 6,
        "uar_page": bench.uar,
        "c_eqn_or_apu_element": bench.events.number,
        "dbr_addr": record.iova,
    }
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(1024):
        cqs = [bench.call(Opcode.CREATE_CQ, cq_context=cq_fields, pas=[cq_memory.iova]).cqn for _ in range(2)]
        qpc = {
            "pd": bench.pd,
            "uar_page": bench.uar,
            "cqn_snd": cqs[0],
            "cqn_rcv": cqs[1],
            "log_sq_size": 6,
            "log_rq_size": 6,
            "log_rq_stride": 2,
            "dbr_addr": record.iova,
        }
        bench.call(Opcode.CREATE_QP, qpc=qpc, pas=bench.pages(qp_memory))
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert taken < (1 << 30) // 16
