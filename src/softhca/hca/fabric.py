"""The fabric: InfiniBand ports of one subnet, which reach each other by LID and GID, and its subnet manager.

All devices of a fabric share an engine and this process: what one sends is a copy into another's memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from softhca.bus.engine import Timer
from softhca.hca import datagram, packets
from softhca.hca.datagram import FIRST_MULTICAST_LID, PERMISSIVE_LID, Datagram
from softhca.hca.subnet import SM_LID, SubnetManager
from softhca.points import Fault
from softhca.points import catalogue as points

if TYPE_CHECKING:
    from softhca.hca.device import Hca
    from softhca.hca.function import Function


OVERTAKEN = 1_000_000
"""Nanoseconds after which a datagram that nothing overtakes arrives all the same."""


class Fabric:
    """A subnet.

    Attributes:
        manager: its subnet manager.
    """

    def __init__(self) -> None:
        self._devices: dict[int, Hca] = {}
        self.manager = SubnetManager(self)
        self._overtaken: Timer | None = None

    def join(self, device: Hca) -> None:
        """Give the InfiniBand port of a device a LID: the lowest that is free, from 1 on.

        Raises:
            ValueError: a port with the same GUID is there already.
        """
        port = device.port
        if any(other.port.guid == port.guid for other in self._devices.values()):
            raise ValueError(f"port GUID {port.guid:#018x} is in the fabric already")
        lid = next(lid for lid in range(1, SM_LID) if lid not in self._devices)
        self._devices[lid] = device
        port.assign(lid, SM_LID)

    def can_rename(self, device: Hca, guid: int) -> bool:
        """Whether the port of a device can have this GUID: one that is none, or another port's, it cannot."""
        return bool(guid) and all(other is device or other.port.guid != guid for other in self._devices.values())

    def devices(self) -> list[Hca]:
        """The devices in the order of their LIDs."""
        return [self._devices[lid] for lid in sorted(self._devices)]

    def find(self, lid: int, gid: bytes | None = None) -> Function | None:
        """The function at a LID whose link is up, if the GID that is asked for (16 bytes) is its own."""
        device = self._devices.get(lid)
        if device is None or (gid is not None and gid != device.port.gid(0)):
            return None
        return device.function if device.function.vport.up(device.port) else None

    def by_gid(self, gid: bytes) -> Function | None:
        """The function whose port GID this is (16 bytes), if its link is up."""
        for lid, device in self._devices.items():
            if device.port.gid(0) == gid:
                return self.find(lid)
        return None

    def deliver(self, sender: Function, packet: Datagram) -> bool:
        """Bring a datagram to where it goes; whether anybody took it."""
        if packet.dlid in (SM_LID, PERMISSIVE_LID):
            self._pass(sender, packet, [])
            return self.manager.take(sender, packet)
        if packet.dlid >= FIRST_MULTICAST_LID:
            return self._replicate(sender, packet)
        target = self.find(packet.dlid, packet.destination_gid)
        self._pass(sender, packet, [] if target is None else [target])
        fault = packets.datagram_fault(sender, packet)
        if target is None:
            return False
        return self._disturb(target, packet, fault) if fault is not None else self._arrive(target, packet)

    def _arrive(self, target: Function, packet: Datagram) -> bool:
        """A datagram arrives, and one that it has overtaken behind it."""
        taken = datagram.receive(target, packet)
        overtaken, self._overtaken = self._overtaken, None
        if overtaken is not None:
            overtaken.run()
        return taken

    def _disturb(self, target: Function, packet: Datagram, fault: Fault) -> bool:
        """A datagram that is lost, comes twice, or is overtaken by the next one (or comes late, when there is none)."""
        if fault.effect is points.DUPLICATE:
            self._arrive(target, packet)
            return self._arrive(target, packet)
        if fault.effect is not points.REORDER:
            return False
        if self._overtaken is not None:
            self._overtaken.run()
        whole = replace(packet, pieces=[bytes(piece) for piece in packet.pieces])
        engine = target.device.engine
        self._overtaken = engine.after(OVERTAKEN, lambda: _receive(target, whole))
        return True

    @staticmethod
    def _pass(sender: Function, packet: Datagram, targets: list[Function], *, multicast: bool = False) -> None:
        ports = [target.device.port for target in targets]
        packets.pass_datagram(sender.device.port, ports, packet, multicast=multicast)

    def _replicate(self, sender: Function, packet: Datagram) -> bool:
        """Bring a multicast datagram to each QP of its group, on the sender's port and on those that have joined."""
        gid = packet.destination_gid
        if gid is None:
            self._pass(sender, packet, [], multicast=True)
            return False
        lids = sorted({sender.device.port.lid} | self.manager.members(gid, packet.dlid))
        ends = [target for lid in lids if (target := self.find(lid)) is not None and gid in target.multicast]
        self._pass(sender, packet, ends, multicast=True)
        taken = False
        for target in ends:
            for qp in target.multicast[gid]:
                own = target is sender and qp.number == packet.source_qpn
                if not (own and qp.context.block_lb_mc):
                    taken = datagram.take(qp, packet) or taken
        return taken

    def forget(self, device: Hca) -> None:
        """A port has started anew: it is in no multicast group any more."""
        self.manager.forget(device.port.lid)


def _receive(target: Function, packet: Datagram) -> None:
    datagram.receive(target, packet)
