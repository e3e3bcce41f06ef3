"""The subnet manager of a fabric: it has given the LIDs, and answers queries of subnet administration.

It answers Get of ClassPortInfo and PathRecord, Get, Set and Delete of MCMemberRecord, and GetTable of NodeRecord,
PortInfoRecord, SMInfoRecord and PathRecord; as a manager, Get of SMInfo; everything else with the status of the
standard. Its LID is the switch's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from softhca.hca import datagram, packets
from softhca.hca.datagram import FIRST_MULTICAST_LID, PERMISSIVE_LID, Datagram
from softhca.hca.mad import READERS
from softhca.hca.port import DEFAULT_PKEY, Port
from softhca.hca.profile import IB_MTUS
from softhca.hca.sa_tables import Transfers
from softhca.hca.switch import Switch
from softhca.prm.sa import (
    GSI_QKEY,
    SA_CLASS,
    SA_CLASS_VERSION,
    ClassPortInfo,
    McMemberRecord,
    MemberComponent,
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
from softhca.prm.smp import Attribute, Method, MgmtClass, NodeInfo, PortInfo, SmInfo, Smp

if TYPE_CHECKING:
    from softhca.hca.fabric import Fabric
    from softhca.hca.function import Function

SM_LID = 0xBFFF
"""The last LID that is not a multicast LID."""
_LAST_MULTICAST_LID = 0xFFFE
_BASE_VERSION = 1
_SMI_QPN, _GSI_QPN = 0, 1
SM_GUID = 0x02CA_00FF_FE00_0001
"""Of the switch; softhca's choice, locally administered."""
_PRIORITY, _MASTER = 0, 3
"""Of SMInfo."""
_RESPONSE_TIME = 18
"""ClassPortInfo: 4.096 us << 18, a second."""
_EXACTLY = 2
"""Selector of an MTU or a rate."""
_LIFE_TIME = 18
_CREATE = (
    MemberComponent.QKEY | MemberComponent.TCLASS | MemberComponent.PKEY | MemberComponent.SL
    | MemberComponent.FLOW_LABEL
)  # fmt: skip
"""Who wants a group that does not exist must say these (15.2.5.17)."""
_GBPS_TO_RATE = {
    2: 2, 5: 5, 10: 3, 14: 11, 20: 6, 25: 15, 28: 19, 30: 4, 40: 7, 50: 20, 56: 12, 60: 8, 80: 9, 100: 16, 112: 13,
    120: 10, 168: 14, 200: 17, 300: 18, 400: 21, 600: 22, 800: 23, 1200: 24,
}  # fmt: skip
"""Rate codes of records (15.2.5.16), by Gbit/s."""
_LANE_GBPS = (2.5, 5, 10, 10, 14, 25, 50, 100)
"""By bit of PTYS ib_proto."""
_LANES = (1, 2, 4, 8, 12)
"""By bit of PTYS ib_link_width."""
BROADCAST = bytes.fromhex("ff12401bffff00000000000000000000")[:12] + b"\xff\xff\xff\xff"
"""MGID of the IPv4 broadcast group of IPoIB in the default partition, which always exists (RFC 4391)."""
_IPOIB_QKEY = 0x0B1B
_BROADCAST_MTU, _BROADCAST_RATE = 4, 3
"""2048 bytes and 10 Gbit/s."""


class Refused(Exception):
    """A query ends with a status other than OK.

    Args:
        status: of the answer.
    """

    def __init__(self, status: SaStatus) -> None:
        super().__init__(status.name)
        self.status = status


@dataclass
class Group:
    """A multicast group.

    Attributes:
        record: what all members share.
        members: LID of a member -> its join state.
        lasting: it stays when its last member leaves.
    """

    record: McMemberRecord
    members: dict[int, int] = field(default_factory=dict)
    lasting: bool = False


def _rate(port: Port) -> int:
    """Code of a port's rate, as records say it."""
    lane, lanes = port.ib_speed.bit_length() - 1, port.link_width.bit_length() - 1
    if lane < 0 or lanes < 0:
        return 0
    return _GBPS_TO_RATE[int(_LANE_GBPS[lane] * _LANES[lanes])]


def _slower(left: int, right: int) -> int:
    """The lower one of two rate codes."""
    gbps = {code: speed for speed, code in _GBPS_TO_RATE.items()}
    return min(left, right, key=lambda code: gbps.get(code, 0))


class SubnetManager:
    """Subnet management and administration of a fabric.

    Attributes:
        groups: multicast groups by MGID (16 bytes).
        switch: what the ports hang on; the manager is at its port 0.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._sent = 0
        self._transfers = Transfers()
        self.switch = Switch(fabric, SM_GUID, SM_LID)
        record = McMemberRecord.new(
            mgid=BROADCAST, qkey=_IPOIB_QKEY, mlid=FIRST_MULTICAST_LID, pkey=DEFAULT_PKEY, scope=2,
            mtu_selector=_EXACTLY, mtu=_BROADCAST_MTU, rate_selector=_EXACTLY, rate=_BROADCAST_RATE,
            packet_life_time_selector=_EXACTLY, packet_life_time=_LIFE_TIME,
        )  # fmt: skip
        self.groups: dict[bytes, Group] = {BROADCAST: Group(record, lasting=True)}

    def members(self, gid: bytes, lid: int) -> set[int]:
        """LIDs of the ports that joined a group, if its multicast LID is `lid`."""
        group = self.groups.get(gid)
        return set() if group is None or group.record.mlid != lid else set(group.members)

    def forget(self, lid: int) -> None:
        """A port is in no group any more."""
        for gid in list(self.groups):
            self._leave(gid, lid)

    def _leave(self, gid: bytes, lid: int) -> None:
        group = self.groups[gid]
        group.members.pop(lid, None)
        if not group.members and not group.lasting:
            del self.groups[gid]

    def take(self, sender: Function, packet: Datagram) -> bool:
        """Take a datagram that was sent to the manager; its answer, if it deserves one, comes a little later."""
        if packet.qpn == _SMI_QPN:
            return self._manage(sender, packet)
        if packet.dlid == PERMISSIVE_LID or packet.qpn != _GSI_QPN or packet.qkey != GSI_QKEY:
            return False
        if packet.length != SaMad.SIZE:
            return False
        mad = SaMad(bytearray(b"".join(bytes(piece) for piece in packet.pieces)))
        if mad.mgmt_class != SA_CLASS or mad.method & 0x80:
            return False
        for part in self._answers(sender, packet.slid, mad):
            self._reply(sender, packet, part)
        return True

    def _reply(self, sender: Function, packet: Datagram, payload: bytes) -> None:
        """Send something back to who sent a datagram, a little later."""
        answer = packet.answer(SM_LID, self._sent, payload)
        self._sent += 1

        def reply() -> None:
            target = self._fabric.find(answer.dlid, answer.destination_gid)
            if target is not None:
                packets.pass_datagram(None, [target.device.port], answer)
                datagram.receive(target, answer)

        sender.device.engine.post(reply)

    def _manage(self, sender: Function, packet: Datagram) -> bool:
        """Take a subnet management datagram: for the switch, through it, or for the manager there."""
        if packet.length != Smp.SIZE:
            return False
        smp = Smp(bytearray(b"".join(bytes(piece) for piece in packet.pieces)))
        if packet.dlid == PERMISSIVE_LID:
            return smp.mgmt_class == MgmtClass.SUBN_DIRECTED_ROUTE and self._direct(sender, packet, smp)
        if smp.mgmt_class != MgmtClass.SUBN_LID_ROUTED or smp.method & 0x80:
            return False
        if smp.method == Method.GET and smp.attribute_id == Attribute.SM_INFO:
            smp.data = self._sm_info().ljust(len(smp.data), b"\0")
            smp.method = Method.GET_RESP
        else:
            self.switch.answer(smp, self.switch.port_of(sender))
        self._reply(sender, packet, bytes(smp))
        return True

    def _direct(self, sender: Function, packet: Datagram, smp: Smp) -> bool:
        """Pass a datagram with a directed route on, or its answer back."""
        target = self.switch.route(sender, smp)
        if target is None:
            return False
        onward = replace(packet, slid=PERMISSIVE_LID, pieces=[bytes(smp)])

        def go_on() -> None:
            packets.pass_datagram(None, [target.device.port], onward)
            datagram.receive(target, onward)

        sender.device.engine.post(go_on)
        return True

    def _sm_info(self) -> bytes:
        return SmInfo.pack(guid=SM_GUID, act_count=self._sent, priority=_PRIORITY, sm_state=_MASTER)

    def _answers(self, sender: Function, lid: int, mad: SaMad) -> list[bytes]:
        """The datagrams that go back at once for one that came: an answer, or more of a table."""
        if mad.rmpp_type > RmppType.DATA:
            return self._transfers.hear(lid, mad)
        right = mad.base_version == _BASE_VERSION and mad.class_version == SA_CLASS_VERSION
        records = TABLES.get(mad.attribute_id) if right and mad.method == SaMethod.GET_TABLE else None
        if records is None:
            self._answer(sender, mad)
            return [bytes(mad)]
        try:
            found = records(self, sender, mad)
        except Refused as refusal:
            if refusal.status is not SaStatus.NO_RECORDS:
                mad.status = refusal.status
            found = []
        mad.method = SaMethod.GET_TABLE_RESP
        return self._transfers.begin(lid, mad, found)

    def node_records(self, sender: Function, mad: SaMad) -> list[bytes]:
        """The nodes that a query selects by LID, type or GUID; all, when it selects none."""
        if mad.component_mask & ~int(sum(_NODE_COMPONENTS) | NodeComponent.LID):
            raise Refused(SaStatus.REQUEST_INVALID)
        wanted = NodeRecord(mad.data[: NodeRecord.SIZE])
        inside = NodeInfo(bytes(wanted.node_info).ljust(NodeInfo.SIZE, b"\0"))
        nodes = [(SM_LID, self.switch.node_info(), self.switch.node_description())]
        for device in self._fabric.devices():
            info = READERS[Attribute.NODE_INFO](device.function, 0)
            nodes.append((device.port.lid, info, device.port.node_description))
        found = []
        for lid, info, description in nodes:
            record = NodeRecord.new(lid=lid, node_info=info[:40], node_description=description.ljust(64, b"\0"))
            own = NodeInfo(bytes(record.node_info).ljust(NodeInfo.SIZE, b"\0"))
            fits = not mad.component_mask & NodeComponent.LID or record.lid == wanted.lid
            for bit, name in _NODE_COMPONENTS.items():
                fits = fits and (not mad.component_mask & bit or getattr(own, name) == getattr(inside, name))
            if fits:
                found.append(bytes(record))
        return found

    def port_info_records(self, sender: Function, mad: SaMad) -> list[bytes]:
        """The ports that a query selects by LID, number or capabilities.

        With bit 31 of the attribute modifier a port has at least the capabilities asked for, else just these.
        """
        wanted, mask = PortInfoRecord(mad.data[: PortInfoRecord.SIZE]), mad.component_mask
        if mask & ~sum(PortComponent):
            raise Refused(SaStatus.REQUEST_INVALID)
        asked = PortInfo(wanted.port_info).capability_mask
        found = []
        for device in self._fabric.devices():
            port, info = device.port, READERS[Attribute.PORT_INFO](device.function, 0)
            has = PortInfo(info).capability_mask
            fits = asked & ~has == 0 if mad.attribute_modifier >> 31 else asked == has
            if (
                (not mask & PortComponent.LID or wanted.lid == port.lid)
                and (not mask & PortComponent.PORT_NUM or wanted.port_num == port.number)
                and (not mask & PortComponent.CAPABILITY_MASK or fits)
            ):
                found.append(PortInfoRecord.pack(lid=port.lid, port_num=port.number, port_info=info))
        return found

    def sm_info_records(self, sender: Function, mad: SaMad) -> list[bytes]:
        """The one manager."""
        record = SmInfoRecord.new(lid=SM_LID)
        record.sm_info.assign(self._sm_info())
        return [bytes(record)]

    def path_records(self, sender: Function, mad: SaMad) -> list[bytes]:
        """The paths from the asker, or the source that it names, to one port or to all."""
        wanted, mask = PathRecord(bytearray(mad.data[: PathRecord.SIZE])), mad.component_mask
        if mask & (PathComponent.DGID | PathComponent.DLID):
            return [self.path_record(sender, mad)]
        found = []
        for device in self._fabric.devices():
            one = SaMad(bytearray(bytes(mad)))
            wanted.dlid = device.port.lid
            one.data = bytes(wanted).ljust(len(one.data), b"\0")
            one.component_mask = mask | PathComponent.DLID
            try:
                found.append(self.path_record(sender, one))
            except Refused:
                continue
        return found

    def _answer(self, sender: Function, mad: SaMad) -> None:
        """Turn a query into its answer."""
        right = mad.base_version == _BASE_VERSION and mad.class_version == SA_CLASS_VERSION
        handler = HANDLERS.get((mad.method, mad.attribute_id)) if right else None
        if handler is None:
            mad.status = SaStatus.METHOD_UNSUPPORTED
        else:
            try:
                mad.data = handler(self, sender, mad).ljust(len(mad.data), b"\0")
            except Refused as refusal:
                mad.status = refusal.status
        mad.method = _RESPONSES.get(mad.method, SaMethod.GET_RESP)

    def class_port_info(self, sender: Function, mad: SaMad) -> bytes:
        """What the administration can do."""
        return ClassPortInfo.pack(
            base_version=_BASE_VERSION, class_version=SA_CLASS_VERSION, response_time=_RESPONSE_TIME
        )

    def path_record(self, sender: Function, mad: SaMad) -> bytes:
        """The path between two ports, the asker's own as source unless it names another."""
        wanted, mask = PathRecord(mad.data[: PathRecord.SIZE]), PathComponent(mad.component_mask & sum(PathComponent))
        source = self._end(
            wanted.sgid if PathComponent.SGID in mask else None, wanted.slid if PathComponent.SLID in mask else None
        )
        source = sender if source is None else source
        target = self._end(
            wanted.dgid if PathComponent.DGID in mask else None, wanted.dlid if PathComponent.DLID in mask else None
        )
        if target is None:
            raise Refused(SaStatus.REQUEST_INVALID)
        here, there = source.device.port, target.device.port
        pkey = wanted.pkey if PathComponent.PKEY in mask else DEFAULT_PKEY
        if not all(any((key ^ pkey) & 0x7FFF == 0 for key in port.pkeys) for port in (here, there)):
            raise Refused(SaStatus.NO_RECORDS)
        return PathRecord.pack(
            service_id=wanted.service_id,
            dgid=there.gid(0),
            sgid=here.gid(0),
            dlid=there.lid,
            slid=here.lid,
            reversible=1,
            number_of_paths=1,
            pkey=pkey,
            mtu_selector=_EXACTLY,
            mtu=IB_MTUS.index(min(here.mtu, there.mtu)) + 1,
            rate_selector=_EXACTLY,
            rate=_slower(_rate(here), _rate(there)),
            packet_life_time_selector=_EXACTLY,
            packet_life_time=_LIFE_TIME,
        )

    def _end(self, gid: bytes | None, lid: int | None) -> Function | None:
        """The port that a query names by GID, LID or both; None when it names none.

        Raises:
            Refused: there is no such port.
        """
        if gid is None and lid is None:
            return None
        found = self._fabric.find(lid, gid) if lid is not None else self._fabric.by_gid(gid or b"")
        if found is None:
            raise Refused(SaStatus.NO_RECORDS)
        return found

    def _member(self, mad: SaMad) -> tuple[bytes, McMemberRecord, MemberComponent]:
        wanted = McMemberRecord(mad.data[: McMemberRecord.SIZE])
        mask = MemberComponent(mad.component_mask & sum(MemberComponent))
        if MemberComponent.MGID not in mask:
            raise Refused(SaStatus.REQUEST_INVALID)
        return bytes(wanted.mgid), wanted, mask

    def _of(self, group: Group, port: Port) -> bytes:
        record = McMemberRecord(bytearray(bytes(group.record)))
        record.port_gid = port.gid(0)
        record.join_state = group.members.get(port.lid, 0)
        return bytes(record)

    def get_member(self, sender: Function, mad: SaMad) -> bytes:
        """What a group is like."""
        gid, _, _ = self._member(mad)
        if gid not in self.groups:
            raise Refused(SaStatus.NO_RECORDS)
        return self._of(self.groups[gid], sender.device.port)

    def join_group(self, sender: Function, mad: SaMad) -> bytes:
        """Join the asker's port to a group, which is made if the query says how it is to be."""
        gid, wanted, mask = self._member(mad)
        port = sender.device.port
        if MemberComponent.JOIN_STATE not in mask or not wanted.join_state or gid[0] != 0xFF:
            raise Refused(SaStatus.REQUEST_INVALID)
        if MemberComponent.PORT_GID in mask and wanted.port_gid != port.gid(0):
            raise Refused(SaStatus.REQUEST_INVALID)
        group = self.groups.get(gid)
        if group is None:
            group = self._make_group(gid, wanted, mask, port)
        for bit, name in ((MemberComponent.QKEY, "qkey"), (MemberComponent.PKEY, "pkey"), (MemberComponent.SL, "sl")):
            if bit in mask and getattr(wanted, name) != getattr(group.record, name):
                raise Refused(SaStatus.REQUEST_INVALID)
        group.members[port.lid] = group.members.get(port.lid, 0) | wanted.join_state
        return self._of(group, port)

    def _make_group(self, gid: bytes, wanted: McMemberRecord, mask: MemberComponent, port: Port) -> Group:
        if mask & _CREATE != _CREATE or not wanted.join_state & 1:
            raise Refused(SaStatus.REQUEST_INVALID)
        used = {group.record.mlid for group in self.groups.values()}
        mlid = next((lid for lid in range(FIRST_MULTICAST_LID, _LAST_MULTICAST_LID + 1) if lid not in used), None)
        if mlid is None:
            raise Refused(SaStatus.NO_RESOURCES)
        record = McMemberRecord(bytearray(bytes(wanted)))
        record.mlid = mlid
        record.mtu_selector = record.rate_selector = record.packet_life_time_selector = _EXACTLY
        if MemberComponent.MTU not in mask:
            record.mtu = IB_MTUS.index(port.mtu) + 1
        if MemberComponent.RATE not in mask:
            record.rate = _rate(port)
        record.packet_life_time = _LIFE_TIME
        record.scope = gid[1] & 0xF
        self.groups[gid] = group = Group(record)
        return group

    def leave_group(self, sender: Function, mad: SaMad) -> bytes:
        """Take the asker's port out of a group, as far as its join state says."""
        gid, wanted, _ = self._member(mad)
        port = sender.device.port
        group = self.groups.get(gid)
        if group is None or not group.members.get(port.lid, 0) & wanted.join_state:
            raise Refused(SaStatus.REQUEST_INVALID)
        answer = McMemberRecord(bytearray(self._of(group, port)))
        left = group.members[port.lid] & ~wanted.join_state
        answer.join_state = left
        if left:
            group.members[port.lid] = left
        else:
            self._leave(gid, port.lid)
        return bytes(answer)


HANDLERS: Mapping[tuple[int, int], Callable[[SubnetManager, Function, SaMad], bytes]] = {
    (SaMethod.GET, SaAttribute.CLASS_PORT_INFO): SubnetManager.class_port_info,
    (SaMethod.GET, SaAttribute.PATH_RECORD): SubnetManager.path_record,
    (SaMethod.GET, SaAttribute.MC_MEMBER_RECORD): SubnetManager.get_member,
    (SaMethod.SET, SaAttribute.MC_MEMBER_RECORD): SubnetManager.join_group,
    (SaMethod.DELETE, SaAttribute.MC_MEMBER_RECORD): SubnetManager.leave_group,
}
"""What is answered, by method and attribute."""
TABLES: Mapping[int, Callable[[SubnetManager, Function, SaMad], list[bytes]]] = {
    SaAttribute.NODE_RECORD: SubnetManager.node_records,
    SaAttribute.PORT_INFO_RECORD: SubnetManager.port_info_records,
    SaAttribute.SM_INFO_RECORD: SubnetManager.sm_info_records,
    SaAttribute.PATH_RECORD: SubnetManager.path_records,
}
"""What is answered as a table, by attribute."""
_NODE_COMPONENTS = {
    NodeComponent.NODE_TYPE: "node_type",
    NodeComponent.SYSTEM_IMAGE_GUID: "system_image_guid",
    NodeComponent.NODE_GUID: "node_guid",
    NodeComponent.PORT_GUID: "port_guid",
}
_RESPONSES: Mapping[int, SaMethod] = {
    SaMethod.DELETE: SaMethod.DELETE_RESP,
    SaMethod.GET_TABLE: SaMethod.GET_TABLE_RESP,
}
