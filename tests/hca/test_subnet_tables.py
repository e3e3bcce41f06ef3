"""Tables of subnet administration in segments, and what the subnet manager says of itself."""

from __future__ import annotations

import pytest

from softhca.hca.sa_tables import MOST_TRANSFERS, Transfers
from softhca.hca.subnet import SM_GUID, SM_LID
from softhca.prm.cqe import CqeOpcode
from softhca.prm.qp import ServiceType
from softhca.prm.sa import (
    NodeComponent,
    NodeRecord,
    PathComponent,
    PathRecord,
    PortComponent,
    PortInfoRecord,
    RmppType,
    SaAttribute,
    SaMad,
    SaMethod,
    SaStatus,
    SmInfoRecord,
)
from softhca.prm.smp import NodeInfo, PortInfo, SmInfo, Smp
from tests.hca.bench import Bench
from tests.hca.test_datagram import datagram_qp
from tests.hca.test_fabric import Client, benches

TABLE = SaMethod.GET_TABLE
HEADER = 20
"""Bytes of a segment's payload that are no data."""


def whole_table(client: Client, attribute: int, record: bytes = b"", mask: int = 0, **header: int) -> list[bytes]:
    """Ask for a table and acknowledge each segment, as Linux does; its records."""
    answer = client.ask(TABLE, attribute, record, mask, **header)
    assert (answer.method, answer.status) == (SaMethod.GET_TABLE_RESP, 0)
    total = answer.rmpp_length
    data, segment = b"", 0
    while True:
        segment += 1
        last = bool(answer.rmpp_flags & 4)
        assert (answer.rmpp_version, answer.rmpp_type, answer.rmpp_segment) == (1, 1, segment)
        assert answer.rmpp_flags == 1 | (segment == 1) << 1 | last << 2
        data += answer.data[: answer.rmpp_length - HEADER if last else 200]
        if last:
            break
        answer = client.ask(TABLE, attribute, rmpp_version=1, rmpp_type=2, rmpp_flags=1, rmpp_segment=segment,
                            rmpp_length=segment + 1)  # fmt: skip
    assert total == len(data) + segment * HEADER
    length = answer.attribute_offset * 8
    return [data[at : at + length] for at in range(0, len(data), length)] if length else []


@pytest.mark.requirement("G5")
def test_all_nodes_in_several_segments() -> None:
    _, (here, *others) = benches(5)
    records = whole_table(Client(here), SaAttribute.NODE_RECORD)
    assert [len(record) for record in records] == [112] * 6
    nodes = [NodeRecord(record) for record in records]
    assert [node.lid for node in nodes] == [SM_LID, 1, 2, 3, 4, 5]
    guids = [bench.card.port.guid for bench in (here, *others)]
    assert [NodeInfo(node.node_info.ljust(64, b"\0")).node_guid for node in nodes] == [SM_GUID, *guids]
    assert nodes[1].node_description.rstrip(b"\0") == b"softhca connectx-6-ib"


@pytest.mark.requirement("G5")
def test_nodes_are_selected() -> None:
    _, (here, there, _) = benches(3)
    client = Client(here)
    chosen = whole_table(client, SaAttribute.NODE_RECORD, NodeRecord.pack(lid=2), NodeComponent.LID)
    assert [NodeRecord(record).lid for record in chosen] == [2]
    info = NodeInfo.pack(node_guid=there.card.port.guid)[:40]
    chosen = whole_table(client, SaAttribute.NODE_RECORD, NodeRecord.pack(node_info=info), NodeComponent.NODE_GUID)
    assert [NodeRecord(record).lid for record in chosen] == [2]
    assert whole_table(client, SaAttribute.NODE_RECORD, NodeRecord.pack(lid=9), NodeComponent.LID) == []
    refused = client.ask(TABLE, SaAttribute.NODE_RECORD, mask=1 << 14)
    assert refused.status == SaStatus.REQUEST_INVALID


@pytest.mark.requirement("G5")
def test_ports_are_selected() -> None:
    _, (here, there) = benches(2)
    client = Client(here)
    ports = [PortInfoRecord(record) for record in whole_table(client, SaAttribute.PORT_INFO_RECORD)]
    assert [(port.lid, port.port_num, PortInfo(port.port_info).lid) for port in ports] == [(1, 1, 1), (2, 1, 2)]
    manager = PortInfoRecord.pack(port_info=PortInfo.pack(capability_mask=2))
    bits, mask = {"attribute_modifier": 1 << 31}, PortComponent.CAPABILITY_MASK
    assert whole_table(client, SaAttribute.PORT_INFO_RECORD, manager, mask, **bits) == []
    own = there.card.port.capability_mask
    both = PortInfoRecord.pack(port_info=PortInfo.pack(capability_mask=own & -own))
    assert len(whole_table(client, SaAttribute.PORT_INFO_RECORD, both, mask, **bits)) == 2
    assert whole_table(client, SaAttribute.PORT_INFO_RECORD, both, mask) == []
    first = PortInfoRecord.pack(lid=1)
    assert len(whole_table(client, SaAttribute.PORT_INFO_RECORD, first, PortComponent.LID)) == 1


@pytest.mark.requirement("G5")
def test_paths_to_all_ports_and_to_one() -> None:
    _, (here, _, _) = benches(3)
    client = Client(here)
    paths = [PathRecord(record) for record in whole_table(client, SaAttribute.PATH_RECORD)]
    assert [(path.slid, path.dlid) for path in paths] == [(1, 1), (1, 2), (1, 3)]
    wanted = PathRecord.pack(slid=3, dlid=2)
    mask = PathComponent.SLID | PathComponent.DLID
    paths = [PathRecord(record) for record in whole_table(client, SaAttribute.PATH_RECORD, wanted, mask)]
    assert [(path.slid, path.dlid) for path in paths] == [(3, 2)]


@pytest.mark.requirement("G5")
def test_the_manager_in_the_table_and_by_itself() -> None:
    bench = Bench()
    (record,) = [SmInfoRecord(item) for item in whole_table(Client(bench), SaAttribute.SM_INFO_RECORD)]
    assert (record.lid, record.sm_info.guid, record.sm_info.sm_state) == (SM_LID, SM_GUID, 3)


@pytest.mark.requirement("G5")
@pytest.mark.parametrize(("method", "attribute", "status"), [(1, 0x20, 0), (1, 0x16, 0x0C), (2, 0x20, 0x08)])
def test_what_the_manager_says_of_itself(method: int, attribute: int, status: int) -> None:
    bench = Bench()
    client = Client(bench)
    client.queue = datagram_qp(bench, client.cq, st=ServiceType.QP0, qkey=0)
    smp = Smp.pack(base_version=1, mgmt_class=1, class_version=1, method=method, attribute_id=attribute)
    client.send(smp, qpn=0, qkey=0)
    cqe = client.cq.good(CqeOpcode.RESP_SEND)
    answer = Smp(bytes(client.memory.view[40:296]))
    assert (cqe.slid, answer.method, answer.status) == (SM_LID, 0x81, status)
    if not status:
        assert SmInfo(answer.data).guid == SM_GUID


def test_segments_go_as_the_window_opens_and_are_forgotten() -> None:
    def heard(kind: int, segment: int, window: int) -> list[int]:
        mad = SaMad.new(transaction_id=7, rmpp_type=kind, rmpp_segment=segment, rmpp_length=window)
        return [SaMad(part).rmpp_segment for part in transfers.hear(1, mad)]

    transfers, head = Transfers(), SaMad.new(transaction_id=7)
    assert len(transfers.begin(1, head, [bytes(200)] * 9)) == 1
    assert heard(RmppType.ACK, 1, 4) == [2, 3, 4]
    assert heard(RmppType.ACK, 2, 3) == []
    assert heard(RmppType.ACK, 4, 1 << 31) == [5, 6, 7, 8, 9]
    assert heard(RmppType.ACK, 9, 99) == []
    assert heard(RmppType.ACK, 1, 99) == [], "it is over"
    transfers.begin(1, head, [bytes(200)] * 9)
    assert heard(RmppType.ABORT, 0, 0) == []
    assert heard(RmppType.ACK, 1, 4) == []
    transfers.begin(1, head, [bytes(200)] * 2)
    for lid in range(2, MOST_TRANSFERS + 2):
        transfers.begin(lid, head, [bytes(200)] * 2)
    assert heard(RmppType.ACK, 1, 2) == [], "the oldest made room"
