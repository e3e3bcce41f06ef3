"""The switch that the ports of a fabric hang on: directed routes through it, and what its own agent answers (14.2).

A datagram with a directed route names the ports that it leaves switches by, and collects those that it came in by; its
answer goes back that way. Port n of the switch is the n-th device by LID, port 0 the switch's own, where the subnet
manager is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from softhca.hca.datagram import PERMISSIVE_LID
from softhca.hca.mad import READERS
from softhca.prm.smp import Attribute, MadStatus, Method, NodeInfo, PortCapability, PortInfo, Smp, SwitchInfo

if TYPE_CHECKING:
    from softhca.hca.fabric import Fabric
    from softhca.hca.function import Function

_VERSION = 1
_NODE_TYPE = 2
_MOST_HOPS = 63
_RETURN_PATH = 64
"""Where the return path begins behind the initial path (bytes)."""
_DIRECTION = 0x8000
"""Status bit of a datagram on its way back."""
_ACTIVE, _LINK_UP = 4, 5
_MTU_4096 = 5
_UNICAST_LIDS = 0xC000


class _NoSuchPort(Exception):
    """The attribute modifier names no port of the switch."""


class Switch:
    """A fabric's switch.

    Args:
        fabric: whose ports hang on it.
        guid: of the node, 64 bits.
        lid: of port 0.
    """

    def __init__(self, fabric: Fabric, guid: int, lid: int) -> None:
        self._fabric = fabric
        self._guid = guid
        self._lid = lid

    def port_of(self, function: Function) -> int:
        """The port that a device hangs on."""
        return self._fabric.devices().index(function.device) + 1

    def route(self, sender: Function, smp: Smp) -> Function | None:
        """Let a directed-route datagram of `sender` pass, or answer it here; who gets it next, None: it is dropped.

        Its hop pointer, path and, when it is answered, data are changed.
        """
        pointer, count = smp.class_specific >> 8, smp.class_specific & 0xFF
        path = bytearray(smp.path)
        if count > _MOST_HOPS or smp.dr_slid != PERMISSIVE_LID or smp.dr_dlid != PERMISSIVE_LID:
            return None
        if smp.status & _DIRECTION:
            if not 2 <= pointer <= count:
                return None
            pointer -= 1
            way_out = path[_RETURN_PATH + pointer]
        elif not 1 <= pointer <= count:
            return None
        else:
            path[_RETURN_PATH + pointer] = self.port_of(sender)
            if pointer < count:
                pointer += 1
                way_out = path[pointer]
            else:
                way_out = path[_RETURN_PATH + pointer]
                self.answer(smp, way_out)
                smp.status |= _DIRECTION
        smp.class_specific, smp.path = pointer << 8 | count, bytes(path)
        devices = self._fabric.devices()
        return self._fabric.find(devices[way_out - 1].port.lid) if 1 <= way_out <= len(devices) else None

    def answer(self, smp: Smp, way_in: int) -> None:
        """Turn a query into its answer; `way_in` is the port that it came in by."""
        reader = self._READERS.get(smp.attribute_id)
        if smp.method != Method.GET:
            smp.status = MadStatus.METHOD_UNSUPPORTED
        elif reader is None:
            smp.status = MadStatus.ATTRIBUTE_UNSUPPORTED
        else:
            try:
                smp.data = reader(self, smp.attribute_modifier, way_in).ljust(len(smp.data), b"\0")
            except _NoSuchPort:
                smp.status = MadStatus.BAD_VALUE
        smp.method = Method.GET_RESP

    def node_description(self, modifier: int = 0, way_in: int = 0) -> bytes:
        """NodeDescription, 64 bytes."""
        return b"softhca fabric".ljust(64, b"\0")

    def node_info(self, modifier: int = 0, way_in: int = 0) -> bytes:
        """NodeInfo."""
        return NodeInfo.pack(
            base_version=_VERSION,
            class_version=_VERSION,
            node_type=_NODE_TYPE,
            num_ports=len(self._fabric.devices()),
            system_image_guid=self._guid,
            node_guid=self._guid,
            port_guid=self._guid,
            partition_cap=1,
            local_port_num=way_in,
        )

    def _switch_info(self, modifier: int, way_in: int) -> bytes:
        return SwitchInfo.pack(linear_fdb_cap=_UNICAST_LIDS, linear_fdb_top=_UNICAST_LIDS - 1)

    def _port_info(self, modifier: int, way_in: int) -> bytes:
        """Port 0; or the other end of a device's link, which has the width and speed of that port."""
        devices = self._fabric.devices()
        if modifier > len(devices):
            raise _NoSuchPort
        if not modifier:
            return PortInfo.pack(
                lid=self._lid, master_sm_lid=self._lid, local_port_num=way_in,
                capability_mask=PortCapability.IS_SM | PortCapability.EXTENDED_SPEEDS,
                port_state=_ACTIVE, port_physical_state=_LINK_UP, neighbor_mtu=_MTU_4096, mtu_cap=_MTU_4096,
            )  # fmt: skip
        info = PortInfo(bytearray(READERS[Attribute.PORT_INFO](devices[modifier - 1].function, 0)))
        info.gid_prefix = info.lid = info.master_sm_lid = info.capability_mask = info.guid_cap = 0
        info.local_port_num = way_in
        return bytes(info)

    _READERS: Mapping[int, Callable[[Switch, int, int], bytes]] = {
        Attribute.NODE_DESCRIPTION: node_description,
        Attribute.NODE_INFO: node_info,
        Attribute.SWITCH_INFO: _switch_info,
        Attribute.PORT_INFO: _port_info,
    }
