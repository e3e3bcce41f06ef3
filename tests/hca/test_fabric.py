"""The fabric: devices of one subnet by LID and GID, multicast across them, subnet administration."""

from __future__ import annotations

import struct

import pytest

from softhca.hca import subnet
from softhca.hca.fabric import Fabric
from softhca.hca.profile import RANGES
from softhca.hca.subnet import BROADCAST, SM_LID
from softhca.prm.cqe import CqeOpcode, CqeSyndrome
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import ServiceType
from softhca.prm.registers import PortAdminStatus
from softhca.prm.sa import (
    ClassPortInfo,
    McMemberRecord,
    MemberComponent,
    PathComponent,
    PathRecord,
    SaAttribute,
    SaMad,
    SaMethod,
    SaStatus,
)
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import SECOND, Bench, Buffer, Completions, Queue, data, inline, remote
from tests.hca.test_datagram import GSI_QKEY, QKEY, av, datagram_qp

JOIN = MemberComponent.MGID | MemberComponent.PORT_GID | MemberComponent.JOIN_STATE
CREATE = (
    JOIN
    | MemberComponent.QKEY
    | MemberComponent.TCLASS
    | MemberComponent.PKEY
    | MemberComponent.SL
    | MemberComponent.FLOW_LABEL
)
GROUP = bytes.fromhex("ff12401bffff00000000000000000042")


def benches(count: int) -> tuple[Fabric, list[Bench]]:
    fabric = Fabric()
    first = Bench(fabric=fabric)
    return fabric, [first, *(Bench(fabric=fabric, engine=first.card.engine) for _ in range(count - 1))]


class Client:
    """QP1 of a device, asking subnet administration."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.cq: Completions = bench.cq()
        self.queue: Queue = datagram_qp(bench, self.cq, st=ServiceType.QP1, qkey=GSI_QKEY)
        self.memory: Buffer = bench.memory(4096)
        self.key = bench.mkey(self.memory)

    def send(self, mad: bytes, *, qpn: int = 1, lid: int = SM_LID, qkey: int = GSI_QKEY) -> None:
        self.queue.receive((self.key, self.memory.iova, 512))
        self.queue.post(WqeOpcode.SEND, av(qpn, lid=lid, qkey=qkey), inline(mad), flags=0)

    def ask(self, method: int, attribute: int, record: bytes = b"", mask: int = 0, **header: int) -> SaMad:
        """Send a query; the answer."""
        fields = {"base_version": 1, "mgmt_class": 3, "class_version": 2, "transaction_id": 0x1234_5678_9ABC} | header
        self.send(
            SaMad.pack(
                method=method, attribute_id=attribute, component_mask=mask, data=record.ljust(200, b"\0"), **fields
            )
        )
        cqe = self.cq.good(CqeOpcode.RESP_SEND)
        assert (cqe.slid, cqe.flags_rqpn & 0xFF_FFFF, cqe.byte_cnt) == (SM_LID, 1, 296)
        answer = SaMad(bytes(self.memory.view[40:296]))
        assert answer.transaction_id == 0x1234_5678_9ABC
        return answer

    def member(self, method: int, gid: bytes, mask: int, **fields: int) -> tuple[int, McMemberRecord]:
        record = McMemberRecord.pack(mgid=gid, port_gid=self.bench.card.port.gid(0), **fields)
        answer = self.ask(method, SaAttribute.MC_MEMBER_RECORD, record, mask)
        return answer.status, McMemberRecord(answer.data[: McMemberRecord.SIZE])


@pytest.mark.requirement("G5")
def test_lids_are_given_in_order() -> None:
    fabric, cards = benches(3)
    assert [bench.card.port.lid for bench in cards] == [1, 2, 3]
    assert [device.port.guid for device in fabric.devices()] == [bench.card.port.guid for bench in cards]
    with pytest.raises(ValueError, match="GUID"):
        fabric.join(fabric.devices()[0])


@pytest.mark.requirement("G5", "B11")
def test_rc_between_two_devices() -> None:
    _, (here, there) = benches(2)
    sent, arrived = here.cq(), there.cq()
    left, right = here.qp(sent), there.qp(arrived)
    for bench, queue, peer, lid in ((here, left, right, 2), (there, right, left, 1)):
        bench.to_init(queue)
        bench.to_rtr(queue, peer.number, rlid=lid)
        bench.to_rts(queue)
    source, target = here.memory(4096), there.memory(4096)
    source.view[:5] = b"bytes"
    lkey, rkey = here.mkey(source), there.mkey(target, key=0x77)
    right.receive((rkey, target.iova + 100, 10))
    left.post(WqeOpcode.SEND, data(lkey, source.iova, 5))
    left.post(WqeOpcode.RDMA_WRITE, remote(target.iova + 200, rkey), data(lkey, source.iova, 5))
    left.post(WqeOpcode.RDMA_READ, remote(target.iova + 200, rkey), data(lkey, source.iova + 50, 5))
    assert [sent.good(CqeOpcode.REQ).byte_cnt for _ in range(3)] == [5, 5, 5]
    assert arrived.good(CqeOpcode.RESP_SEND).byte_cnt == 5
    assert bytes(target.view[100:105]) == bytes(target.view[200:205]) == bytes(source.view[50:55]) == b"bytes"
    assert here.card.port.traffic.sent.packets > 0
    assert there.card.port.traffic.received.packets == here.card.port.traffic.sent.packets
    there.card.port.set_admin(PortAdminStatus.DOWN)
    left.post(WqeOpcode.NOP)
    assert sent.good(CqeOpcode.REQ)
    left.post(WqeOpcode.SEND)
    here.wait(10 * SECOND)
    assert sent.error().syndrome == CqeSyndrome.TRANSPORT_RETRY_EXC_ERR


@pytest.mark.requirement("G5")
def test_a_gid_that_is_not_the_ports_leads_nowhere() -> None:
    fabric, (here, there) = benches(2)
    assert fabric.find(2, there.card.port.gid(0)) is there.fn
    assert fabric.find(2, here.card.port.gid(0)) is None
    assert fabric.by_gid(there.card.port.gid(0)) is there.fn
    assert fabric.by_gid(bytes(16)) is None


@pytest.mark.requirement("G5")
def test_class_port_info_and_what_is_not_there() -> None:
    client = Client(Bench())
    answer = client.ask(SaMethod.GET, SaAttribute.CLASS_PORT_INFO)
    assert (answer.method, answer.status) == (SaMethod.GET_RESP, SaStatus.OK)
    assert ClassPortInfo(answer.data[: ClassPortInfo.SIZE]).class_version == 2
    for method, attribute in ((SaMethod.SET, SaAttribute.PATH_RECORD), (SaMethod.GET, 0x11), (0x7F, 1)):
        assert client.ask(method, attribute).status == SaStatus.METHOD_UNSUPPORTED
    assert client.ask(SaMethod.GET, SaAttribute.CLASS_PORT_INFO, class_version=1).status != 0


@pytest.mark.parametrize(
    ("change", "where"),
    [({3: 0x81}, {}), ({1: 4}, {}), ({}, {"qkey": 5}), ({}, {"qpn": 0}), ({}, {"lid": 0xFFFF})],
)
def test_what_is_no_query_gets_no_answer(change: dict[int, int], where: dict[str, int]) -> None:
    client = Client(Bench())
    mad = bytearray(SaMad.pack(base_version=1, mgmt_class=3, class_version=2, method=1, attribute_id=1))
    for at, value in change.items():
        mad[at] = value
    client.send(bytes(mad), **where)
    assert client.cq.poll() is None
    client.send(bytes(mad[:100]))
    assert client.cq.poll() is None


@pytest.mark.requirement("G5")
def test_path_records() -> None:
    _, (here, there) = benches(2)
    client = Client(here)
    mine, other = here.card.port.gid(0), there.card.port.gid(0)
    question = PathRecord.pack(dgid=other, sgid=mine, number_of_paths=1)
    answer = client.ask(SaMethod.GET, SaAttribute.PATH_RECORD, question, PathComponent.DGID | PathComponent.SGID)
    assert answer.status == SaStatus.OK
    raw = bytes(answer.data[:64])
    assert raw[8:40] == other + mine
    assert struct.unpack(">HH", raw[40:44]) == (2, 1)
    assert raw[50:52] == b"\xff\xff"
    assert (raw[54], raw[55]) == (2 << 6 | 5, 2 << 6 | 17), "4096 bytes, 200 Gbit/s"
    by_lid = client.ask(SaMethod.GET, SaAttribute.PATH_RECORD, PathRecord.pack(dlid=2), PathComponent.DLID)
    assert PathRecord(by_lid.data[:64]).dgid == other
    for record, mask, status in (
        (PathRecord.pack(dlid=3), PathComponent.DLID, SaStatus.NO_RECORDS),
        (PathRecord.pack(dgid=bytes(16)), PathComponent.DGID, SaStatus.NO_RECORDS),
        (PathRecord.pack(), 0, SaStatus.REQUEST_INVALID),
        (PathRecord.pack(dlid=2, pkey=0x8123), PathComponent.DLID | PathComponent.PKEY, SaStatus.NO_RECORDS),
    ):
        assert client.ask(SaMethod.GET, SaAttribute.PATH_RECORD, record, mask).status == status


@pytest.mark.requirement("G5")
def test_multicast_across_devices_needs_a_join() -> None:
    _, (here, there) = benches(2)
    clients = Client(here), Client(there)
    status, record = clients[0].member(SaMethod.SET, BROADCAST, JOIN, join_state=1)
    assert (status, record.mlid, record.qkey, record.mtu, record.join_state) == (0, 0xC000, 0x0B1B, 4, 1)
    sender = datagram_qp(here, here.cq())
    arrived = there.cq()
    member = datagram_qp(there, arrived)
    target = there.memory(4096)
    for _ in range(2):
        member.receive((there.mkey(target), target.iova, 4096))
    there.call(Opcode.ATTACH_TO_MCG, qpn=member.number, multicast_gid=list(BROADCAST))
    where = av(0xFF_FFFF, lid=0xC000, gid=BROADCAST, qkey=QKEY)
    sender.post(WqeOpcode.SEND, where, inline(b"hello"))
    assert arrived.poll() is None
    assert clients[1].member(SaMethod.SET, BROADCAST, JOIN, join_state=1)[0] == 0
    sender.post(WqeOpcode.SEND, where, inline(b"hello"))
    assert arrived.good(CqeOpcode.RESP_SEND).byte_cnt == 45
    assert there.card.port.traffic.multicast_received.packets == 1
    assert clients[1].member(SaMethod.DELETE, BROADCAST, JOIN, join_state=1)[0] == 0
    sender.post(WqeOpcode.SEND, where, inline(b"hello"))
    assert arrived.poll() is None


@pytest.mark.requirement("G5")
def test_groups_come_and_go() -> None:
    fabric, (here, there) = benches(2)
    one, two = Client(here), Client(there)
    assert one.member(SaMethod.GET, GROUP, JOIN)[0] == SaStatus.NO_RECORDS
    assert one.member(SaMethod.SET, GROUP, JOIN, join_state=1)[0] == SaStatus.REQUEST_INVALID
    status, record = one.member(SaMethod.SET, GROUP, CREATE, join_state=1, qkey=5, pkey=0xFFFF)
    assert (status, record.mlid, record.scope, record.rate) == (0, 0xC001, 2, 17)
    assert two.member(SaMethod.SET, GROUP, CREATE, join_state=1, qkey=6, pkey=0xFFFF)[0] == SaStatus.REQUEST_INVALID
    assert two.member(SaMethod.SET, GROUP, JOIN, join_state=4)[0] == 0
    assert two.member(SaMethod.GET, GROUP, JOIN)[1].join_state == 4
    assert one.member(SaMethod.DELETE, GROUP, JOIN, join_state=1)[0] == 0
    assert one.member(SaMethod.DELETE, GROUP, JOIN, join_state=1)[0] == SaStatus.REQUEST_INVALID
    assert GROUP in fabric.manager.groups
    fabric.forget(fabric.devices()[1])
    assert set(fabric.manager.groups) == {BROADCAST}


def test_every_speed_and_width_of_a_port_has_a_rate_code() -> None:
    lanes, widths = subnet._LANE_GBPS, subnet._LANES
    codes = {subnet._GBPS_TO_RATE[int(lane * width)] for lane in lanes for width in widths}
    assert codes <= set(range(2, 25))
    assert subnet._GBPS_TO_RATE[1200] == 24
    assert RANGES["port.ib_proto"][1].bit_length() == len(lanes)
    assert RANGES["port.ib_link_width"][1].bit_length() == len(widths)
