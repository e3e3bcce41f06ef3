"""Datagrams of QP0 and QP1: checked, then lost; errors stop the send queue alone."""

from __future__ import annotations

import struct

import pytest

from softhca.prm.cqe import CqeOpcode, CqeSyndrome
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import QpState, ServiceType
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import Bench, Completions, Queue, data, inline

AV = struct.pack(">IIIBBH", 0x8001_0000, 0, 1 << 31 | 1, 0, 0, 1) + bytes(32)


def special(bench: Bench, service: ServiceType = ServiceType.QP1) -> tuple[Queue, Completions]:
    cq = bench.cq()
    queue = bench.qp(cq, st=service)
    bench.to_init(queue)
    bench.call(Opcode.INIT2RTR_QP, qpn=queue.number, qpc={"mtu": 1, "log_msg_max": 8})
    bench.call(Opcode.RTR2RTS_QP, qpn=queue.number, qpc={})
    bench.run()
    return queue, cq


@pytest.mark.requirement("G3")
@pytest.mark.parametrize("service", [ServiceType.QP0, ServiceType.QP1])
def test_a_datagram_to_nobody_ends_well(service: ServiceType) -> None:
    bench = Bench()
    queue, cq = special(bench, service)
    memory = bench.memory(4096)
    key = bench.mkey(memory)
    queue.post(WqeOpcode.SEND, AV, data(key, memory.iova, 256))
    assert cq.good(CqeOpcode.REQ).byte_cnt == 256


@pytest.mark.parametrize(
    ("opcode", "segments", "syndrome"),
    [
        (WqeOpcode.SEND, [AV[:32]], CqeSyndrome.LOCAL_QP_OP_ERR),
        (WqeOpcode.SEND, [], CqeSyndrome.LOCAL_QP_OP_ERR),
        (WqeOpcode.RDMA_WRITE, [AV], CqeSyndrome.LOCAL_QP_OP_ERR),
        (WqeOpcode.SEND, [AV, data(0x1234, 0, 8)], CqeSyndrome.LOCAL_PROT_ERR),
        (WqeOpcode.SEND, [AV, inline(bytes(257))], CqeSyndrome.LOCAL_LENGTH_ERR),
    ],
)
def test_an_error_stops_the_send_queue_alone(opcode: WqeOpcode, segments: list[bytes], syndrome: CqeSyndrome) -> None:
    bench = Bench()
    queue, cq = special(bench)
    queue.post(opcode, *segments)
    assert cq.error().syndrome == syndrome
    assert bench.state(queue) == QpState.SQER
    queue.post(WqeOpcode.SEND, AV)
    assert cq.error().syndrome == CqeSyndrome.WR_FLUSH_ERR
    bench.call(Opcode.SQERR2RTS_QP, qpn=queue.number, qpc={})
    queue.post(WqeOpcode.SEND, AV)
    assert cq.good(CqeOpcode.REQ)
