"""Datagrams: what the receiver sees, who takes one and who does not; errors stop the send queue alone."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import Any

import pytest

from softhca.hca.errors import CommandError
from softhca.hca.fabric import Fabric
from softhca.prm.cqe import CqeOpcode, CqeSyndrome
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import QpState, ServiceType
from softhca.prm.registers import PortAdminStatus
from softhca.prm.syndromes.completion import VendorSyndrome
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import Bench, Buffer, Completions, Queue, data, inline

QKEY = 0x1234_5678
GSI_QKEY = 0x8001_0000
GROUP = bytes.fromhex("ff12a01bfe8000000000000000000001")
MULTICAST_LID = 0xC001


def av(qpn: int, *, lid: int = 1, qkey: int = QKEY, level: int = 0, gid: bytes | None = None, index: int = 0) -> bytes:
    """An address vector of full size."""
    base = struct.pack(">IIIBBH", qkey, 0, 1 << 31 | qpn, level, 0, lid)
    if gid is None:
        return base + bytes(32)
    return base + bytes(8) + bytes((0, 0, 0xA5, 0x40)) + struct.pack(">I", 1 << 30 | index << 20 | 0xBCDEF) + gid


def datagram_qp(
    bench: Bench,
    cq: Completions,
    *,
    st: ServiceType = ServiceType.UD,
    qkey: int = QKEY,
    pkey_index: int = 0,
    **context: Any,
) -> Queue:
    queue = bench.qp(cq, st=st, **context)
    path = {"vhca_port_num": 1, "pkey_index": pkey_index}
    bench.call(Opcode.RST2INIT_QP, qpn=queue.number, qpc={"q_key": qkey, "primary_address_path": path})
    bench.call(Opcode.INIT2RTR_QP, qpn=queue.number, qpc={"mtu": 5, "log_msg_max": 12})
    bench.call(Opcode.RTR2RTS_QP, qpn=queue.number, qpc={})
    bench.run()
    return queue


@dataclass
class Two:
    """Two datagram QPs, each on a function of its own or both on one, and a buffer on the side of the second."""

    here: Bench
    there: Bench
    left: Queue
    right: Queue
    sent: Completions
    arrived: Completions
    target: Buffer
    key: int

    def lost(self) -> int:
        qp = self.here.fn.qps.find(self.left.number)
        assert qp is not None
        return qp.lost


def two(here: Bench, there: Bench, service: ServiceType = ServiceType.UD, qkey: int = QKEY, index: int = 0) -> Two:
    sent, arrived = here.cq(), there.cq()
    left = datagram_qp(here, sent, st=service, qkey=qkey)
    right = (
        left
        if here is there and service is not ServiceType.UD
        else datagram_qp(there, arrived, st=service, qkey=qkey, pkey_index=index)
    )
    target = there.memory(8192)
    target.view[:] = b"\xee" * 8192
    return Two(here, there, left, right, sent, arrived, target, there.mkey(target))


@pytest.fixture
def pair() -> Two:
    bench = Bench()
    return two(bench, bench)


@pytest.mark.requirement("G2", "G5")
def test_without_a_global_route(pair: Two) -> None:
    pair.right.receive((pair.key, pair.target.iova, 100), (pair.key, pair.target.iova + 1000, 100))
    payload = os.urandom(97)
    pair.left.post(WqeOpcode.SEND_IMM, av(pair.right.number, level=0x35), inline(payload), immediate=0xABCD, flags=0xA)
    cqe = pair.arrived.good(CqeOpcode.RESP_SEND_IMM)
    assert (cqe.byte_cnt, cqe.imm_inval_pkey, cqe.slid, cqe.solicited) == (137, 0xABCD, 1, 1)
    assert cqe.flags_rqpn == 5 << 24 | pair.left.number
    assert bytes(pair.target.view[:40]) == b"\xee" * 40
    assert bytes(pair.target.view[40:100]) == payload[:60]
    assert bytes(pair.target.view[1000:1037]) == payload[60:]
    assert pair.sent.good(CqeOpcode.REQ).byte_cnt == 97
    assert pair.lost() == 0


@pytest.mark.requirement("G2", "G5")
def test_with_a_global_route(pair: Two) -> None:
    gid = pair.here.card.port.gid(0)
    pair.right.receive((pair.key, pair.target.iova, 4096))
    pair.left.post(WqeOpcode.SEND, av(pair.right.number, gid=gid), inline(b"abcde"))
    cqe = pair.arrived.good(CqeOpcode.RESP_SEND)
    assert (cqe.byte_cnt, cqe.flags_rqpn) == (45, 1 << 28 | pair.left.number)
    length = 12 + 8 + 8 + 4  # BTH, DETH, payload with padding, ICRC
    header = struct.pack(">IHBB", 6 << 28 | 0xA5 << 20 | 0xBCDEF, length, 0x1B, 0x40)
    assert bytes(pair.target.view[:45]) == header + gid + gid + b"abcde"


@pytest.mark.requirement("G5")
def test_a_short_address_vector(pair: Two) -> None:
    pair.right.receive((pair.key, pair.target.iova, 100))
    base = struct.pack(">IIIBBH", QKEY, 0, pair.right.number, 0, 0, 1)
    pair.left.post(WqeOpcode.SEND, base, inline(b"abc"))
    assert pair.arrived.good(CqeOpcode.RESP_SEND).byte_cnt == 43


@pytest.mark.requirement("G5")
@pytest.mark.parametrize(
    "route",
    [
        {"qpn": 0xABCDEF},
        {"lid": 2},
        {"lid": 0},
        {"lid": 0xBFFF},
        {"lid": 0xFFFF},
        {"lid": 0xC000},
        {"qkey": QKEY + 1},
        {"gid": bytes(16)},
    ],
)
def test_what_nobody_takes_is_lost_without_a_word(pair: Two, route: dict[str, int]) -> None:
    pair.right.receive((pair.key, pair.target.iova, 4096))
    where = av(**({"qpn": pair.right.number} | route))  # type: ignore[arg-type]
    pair.left.post(WqeOpcode.SEND, where, inline(b"abc"))
    assert pair.sent.good(CqeOpcode.REQ)
    assert pair.arrived.poll() is None
    assert pair.lost() == 1
    context = pair.here.call(Opcode.QUERY_HCA_VPORT_CONTEXT).hca_vport_context
    assert context.qkey_violation_counter == ("qkey" in route)
    assert pair.here.state(pair.right) == pair.here.state(pair.left) == QpState.RTS


@pytest.mark.requirement("G5")
def test_no_receive_wqe_and_no_link(pair: Two) -> None:
    pair.left.post(WqeOpcode.SEND, av(pair.right.number), inline(b"abc"))
    pair.right.receive((pair.key, pair.target.iova, 4096))
    pair.here.card.port.set_admin(PortAdminStatus.DOWN)
    pair.left.post(WqeOpcode.SEND, av(pair.right.number), inline(b"abc"))
    assert pair.arrived.poll() is None
    assert pair.lost() == 2


@pytest.mark.requirement("B11", "G5")
def test_partitions() -> None:
    bench = Bench()
    bench.card.port.pkeys = [0xFFFF, 0x7FFF, 0x8005]
    for index, taken in ((0, True), (1, True), (2, False), (3, False)):
        pair = two(bench, bench, index=index)
        pair.right.receive((pair.key, pair.target.iova, 4096))
        pair.left.post(WqeOpcode.SEND, av(pair.right.number), inline(b"abc"))
        assert (pair.arrived.poll() is not None) is taken, index
    context = bench.call(Opcode.QUERY_HCA_VPORT_CONTEXT).hca_vport_context
    assert context.pkey_violation_counter == 2


@pytest.mark.requirement("G5")
def test_a_privileged_q_key_stands_for_the_qps_own(pair: Two) -> None:
    pair.right.receive((pair.key, pair.target.iova, 4096))
    pair.left.post(WqeOpcode.SEND, av(pair.right.number, qkey=1 << 31), inline(b"abc"))
    assert pair.arrived.good(CqeOpcode.RESP_SEND)


@pytest.mark.requirement("G3", "G4")
@pytest.mark.parametrize(
    ("length", "flip", "syndrome", "vendor"),
    [
        (42, 0, CqeSyndrome.LOCAL_LENGTH_ERR, VendorSyndrome.RECEIVE_TOO_SHORT),
        (4096, 1, CqeSyndrome.LOCAL_PROT_ERR, VendorSyndrome.NO_SUCH_KEY),
    ],
)
def test_a_wrong_receive_wqe_ends_the_receiver_alone(
    pair: Two, length: int, flip: int, syndrome: CqeSyndrome, vendor: VendorSyndrome
) -> None:
    pair.right.receive((pair.key ^ flip, pair.target.iova, length))
    pair.left.post(WqeOpcode.SEND, av(pair.right.number), inline(b"abc"))
    cqe = pair.arrived.error()
    assert (cqe.syndrome, cqe.vendor_err_synd) == (syndrome, vendor)
    assert pair.here.state(pair.right) == QpState.ERR
    assert pair.here.state(pair.left) == QpState.RTS
    assert pair.sent.good(CqeOpcode.REQ)


@pytest.mark.requirement("G3", "G5")
@pytest.mark.parametrize("service", [ServiceType.QP0, ServiceType.QP1])
def test_the_special_qps_of_two_devices(service: ServiceType) -> None:
    fabric = Fabric()
    here = Bench(fabric=fabric)
    there = Bench(fabric=fabric, engine=here.card.engine)
    pair = two(here, there, service, GSI_QKEY)
    number = service - ServiceType.QP0
    pair.right.receive((pair.key, pair.target.iova, 4096))
    pair.left.post(WqeOpcode.SEND, av(number, lid=2, qkey=GSI_QKEY), inline(b"m" * 200))
    cqe = pair.arrived.good(CqeOpcode.RESP_SEND)
    assert (cqe.slid, cqe.flags_rqpn, cqe.byte_cnt) == (1, number, 240)
    assert cqe.imm_inval_pkey == (0xFFFF if number else 0)
    there.call(Opcode.TO_RST_QP, qpn=pair.right.number)
    there.call(Opcode.DESTROY_QP, qpn=pair.right.number)
    pair.left.post(WqeOpcode.SEND, av(number, lid=2, qkey=GSI_QKEY), inline(b"m" * 200))
    assert pair.lost() == 1


@pytest.mark.requirement("G3")
@pytest.mark.parametrize("service", [ServiceType.UD, ServiceType.QP1])
@pytest.mark.parametrize(
    ("opcode", "segments", "syndrome"),
    [
        (WqeOpcode.SEND, [av(1)[:32]], CqeSyndrome.LOCAL_QP_OP_ERR),
        (WqeOpcode.SEND, [], CqeSyndrome.LOCAL_QP_OP_ERR),
        (WqeOpcode.RDMA_WRITE, [av(1)], CqeSyndrome.LOCAL_QP_OP_ERR),
        (WqeOpcode.SEND, [av(1), data(0x1234, 0, 8)], CqeSyndrome.LOCAL_PROT_ERR),
        (WqeOpcode.SEND, [av(1), data(0x1234, 0, 4097)], CqeSyndrome.LOCAL_LENGTH_ERR),
    ],
)
def test_an_error_stops_the_send_queue_alone(
    service: ServiceType, opcode: WqeOpcode, segments: list[bytes], syndrome: CqeSyndrome
) -> None:
    bench = Bench()
    cq = bench.cq()
    queue = datagram_qp(bench, cq, st=service)
    queue.post(opcode, *segments)
    assert cq.error().syndrome == syndrome
    assert bench.state(queue) == QpState.SQER
    queue.post(WqeOpcode.SEND, av(0x42))
    assert cq.error().syndrome == CqeSyndrome.WR_FLUSH_ERR
    bench.call(Opcode.SQERR2RTS_QP, qpn=queue.number, qpc={})
    queue.post(WqeOpcode.SEND, av(0x42))
    assert cq.good(CqeOpcode.REQ)


def test_on_ethernet_nobody_takes_a_datagram() -> None:
    bench = Bench("connectx-7-eth")
    cq = bench.cq()
    queue = datagram_qp(bench, cq)
    queue.receive()
    queue.post(WqeOpcode.SEND, av(queue.number), inline(b"x"))
    assert cq.good(CqeOpcode.REQ)
    assert cq.poll() is None


@pytest.mark.requirement("G5")
def test_multicast_reaches_each_member_once() -> None:
    bench = Bench()
    cq = bench.cq()
    sender = datagram_qp(bench, cq)
    target = bench.memory(4096)
    key = bench.mkey(target)
    members = [(datagram_qp(bench, arrived), arrived) for arrived in (bench.cq(), bench.cq(), bench.cq())]
    for queue, _ in members:
        queue.receive((key, target.iova, 4096))
        bench.call(Opcode.ATTACH_TO_MCG, qpn=queue.number, multicast_gid=list(GROUP))
    bench.call(Opcode.DETACH_FROM_MCG, qpn=members[1][0].number, multicast_gid=list(GROUP))
    sender.post(WqeOpcode.SEND, av(0xFF_FFFF, lid=MULTICAST_LID, gid=GROUP), inline(b"to all"))
    assert cq.good(CqeOpcode.REQ)
    assert [arrived.poll() is not None for _, arrived in members] == [True, False, True]
    assert bytes(target.view[24:46]) == GROUP + b"to all"


@pytest.mark.requirement("G5")
@pytest.mark.parametrize("blocked", [0, 1])
def test_loopback_of_multicast_to_its_own_sender(blocked: int) -> None:
    bench = Bench()
    cq = bench.cq()
    queue = datagram_qp(bench, cq, block_lb_mc=blocked)
    target = bench.memory(4096)
    queue.receive((bench.mkey(target), target.iova, 4096))
    bench.call(Opcode.ATTACH_TO_MCG, qpn=queue.number, multicast_gid=list(GROUP))
    queue.post(WqeOpcode.SEND, av(0xFF_FFFF, lid=MULTICAST_LID, gid=GROUP), inline(b"x"), flags=0)
    assert (cq.poll() is None) == bool(blocked)


@pytest.mark.requirement("A8")
def test_groups_and_their_members() -> None:
    bench = Bench()
    cq = bench.cq()
    queue, other = datagram_qp(bench, cq), bench.qp(cq)

    def attach(qpn: int, gid: bytes = GROUP) -> None:
        bench.call(Opcode.ATTACH_TO_MCG, qpn=qpn, multicast_gid=list(gid))

    attach(queue.number)
    for qpn, gid in ((queue.number, GROUP), (other.number, GROUP), (queue.number, bytes(16)), (0x999999, GROUP)):
        with pytest.raises(CommandError):
            attach(qpn, gid)
    with pytest.raises(CommandError):
        bench.call(Opcode.DESTROY_QP, qpn=queue.number)
    bench.call(Opcode.DETACH_FROM_MCG, qpn=queue.number, multicast_gid=list(GROUP))
    with pytest.raises(CommandError):
        bench.call(Opcode.DETACH_FROM_MCG, qpn=queue.number, multicast_gid=list(GROUP))
    bench.call(Opcode.DESTROY_QP, qpn=queue.number)
    assert bench.fn.multicast == {}


def test_a_group_has_room_for_max_qp_mcg() -> None:
    bench = Bench()
    cq = bench.cq()
    bench.fn.caps.general.max_qp_mcg = 2
    bench.fn.caps.general.log_max_mcg = 0
    queues = [datagram_qp(bench, cq) for _ in range(3)]
    for queue in queues[:2]:
        bench.call(Opcode.ATTACH_TO_MCG, qpn=queue.number, multicast_gid=list(GROUP))
    with pytest.raises(CommandError, match="at most 2"):
        bench.call(Opcode.ATTACH_TO_MCG, qpn=queues[2].number, multicast_gid=list(GROUP))
    with pytest.raises(CommandError, match="at most 1"):
        bench.call(Opcode.ATTACH_TO_MCG, qpn=queues[2].number, multicast_gid=list(GROUP[:-1] + b"\x02"))
