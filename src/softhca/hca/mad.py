"""MAD_IFC: management datagrams that the host hands to the port's agents.

The subnet management agent answers Get of the attributes in :data:`READERS`; everything else it answers with the
status of the standard. What is for performance management goes to that agent (pma.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from softhca.hca import pma
from softhca.hca.command import command
from softhca.hca.errors import CommandError
from softhca.hca.hca_vport import gid_table_length, pkey_table_length
from softhca.hca.port import LINK_LOCAL_PREFIX, Port, highest_bit
from softhca.hca.profile import IB_MTUS
from softhca.prm.hca_vport import PhysicalState
from softhca.prm.mad import MadIfcIn, MadIfcOut
from softhca.prm.opcodes import Opcode
from softhca.prm.smp import (
    Attribute,
    GuidInfo,
    MadStatus,
    Method,
    MgmtClass,
    NodeInfo,
    PkeyTable,
    PortInfo,
    SlToVlMappingTable,
    Smp,
)
from softhca.prm.syndromes import ports as syndromes

if TYPE_CHECKING:
    from softhca.hca.function import Function

IGNORE_KEYS = (0, 1, 2, 3)
"""op_mod: bit 0 ignores the M_Key, bit 1 the B_Key. The port has neither, so every key is right."""
_BASE_VERSION = 1
_CLASS_VERSION = 1
_CHANNEL_ADAPTER = 1
_LANES_TO_CODE = {1: 1, 2: 2, 4: 3, 8: 4, 15: 5}
"""Virtual lanes of PVLC, as PortInfo.VLCap says them."""
_GUIDS_IN_BLOCK = 8
_PKEYS_IN_BLOCK = 32


class BadModifier(Exception):
    """The attribute modifier names nothing that there is."""


def _node_description(fn: Function, modifier: int) -> bytes:
    return fn.device.port.node_description


def _node_info(fn: Function, modifier: int) -> bytes:
    profile, port = fn.device.profile, fn.device.port
    return NodeInfo.pack(
        base_version=_BASE_VERSION,
        class_version=_CLASS_VERSION,
        node_type=_CHANNEL_ADAPTER,
        num_ports=1,
        system_image_guid=port.system_guid,
        node_guid=port.node_guid,
        port_guid=port.guid,
        partition_cap=pkey_table_length(fn.caps.general.pkey_table_size),
        device_id=profile.pci.device_id,
        revision=profile.pci.revision,
        local_port_num=port.number,
        vendor_id=profile.firmware.ieee_vendor_id,
    )


def _guid_info(fn: Function, modifier: int) -> bytes:
    """A block of GUIDs: those of the GID table; the first one is the port's."""
    if modifier * _GUIDS_IN_BLOCK >= gid_table_length(fn.caps.general.gid_table_size):
        raise BadModifier
    first = modifier * _GUIDS_IN_BLOCK
    gids = [fn.device.port.gid(first + index) for index in range(_GUIDS_IN_BLOCK)]
    return GuidInfo.pack(guid=[int.from_bytes(gid[8:], "big") for gid in gids])


def _pkey_table(fn: Function, modifier: int) -> bytes:
    block = modifier & 0xFFFF
    if block * _PKEYS_IN_BLOCK >= pkey_table_length(fn.caps.general.pkey_table_size):
        raise BadModifier
    first = block * _PKEYS_IN_BLOCK
    return PkeyTable.pack(pkey=[fn.device.port.pkey(first + index) for index in range(_PKEYS_IN_BLOCK)])


def _sl_to_vl(fn: Function, modifier: int) -> bytes:
    """Service levels go round the operational data lanes; an adapter's table does not depend on the ports named."""
    lanes = fn.device.port.figures.vl_hw_cap
    return SlToVlMappingTable.pack(pair=[level % lanes << 4 | (level + 1) % lanes for level in range(0, 16, 2)])


def _port_info(fn: Function, modifier: int) -> bytes:
    port = fn.device.port
    if modifier not in (0, port.number):
        raise BadModifier
    widths, lanes = port.figures.ib_link_width, _LANES_TO_CODE[port.figures.vl_hw_cap]
    basic, extended = _speeds(port.figures.ib_proto)
    active_basic, active_extended = _speeds(port.ib_speed)
    return PortInfo.pack(
        gid_prefix=LINK_LOCAL_PREFIX,
        lid=port.lid,
        master_sm_lid=port.sm_lid,
        capability_mask=port.capability_mask,
        local_port_num=port.number,
        link_width_enabled=_widths(widths),
        link_width_supported=_widths(widths),
        link_width_active=_widths(port.link_width),
        link_speed_supported=basic,
        port_state=port.state,
        port_physical_state=port.physical_state,
        link_down_default_state=PhysicalState.POLLING,
        link_speed_active=active_basic or (highest_bit(basic) if port.up else 0),
        link_speed_enabled=basic,
        neighbor_mtu=_mtu(port.mtu),
        vl_cap=lanes,
        mtu_cap=_mtu(port.max_mtu),
        operational_vls=lanes,
        guid_cap=gid_table_length(fn.caps.general.gid_table_size),
        link_speed_ext_active=active_extended,
        link_speed_ext_supported=extended,
        link_speed_ext_enabled=extended,
    )


def _widths(mask: int) -> int:
    """Widths of PTYS (1x, 2x, 4x, 8x, 12x from bit 0 on) as PortInfo says them (1x, 4x, 8x, 12x, 2x)."""
    return (mask & 1) | (mask >> 2 & 1) << 1 | (mask >> 3 & 1) << 2 | (mask >> 4 & 1) << 3 | (mask >> 1 & 1) << 4


def _speeds(mask: int) -> tuple[int, int]:
    """Speeds of PTYS as PortInfo says them: SDR, DDR, QDR; and, extended, FDR, EDR, HDR, NDR."""
    return mask & 0x7, mask >> 4 & 0xF


def _mtu(mtu: int) -> int:
    """Code of an MTU: 1 for 256 bytes to 5 for 4096."""
    return IB_MTUS.index(mtu) + 1


READERS: Mapping[int, Callable[[Function, int], bytes]] = {
    Attribute.NODE_DESCRIPTION: _node_description,
    Attribute.NODE_INFO: _node_info,
    Attribute.GUID_INFO: _guid_info,
    Attribute.PORT_INFO: _port_info,
    Attribute.PKEY_TABLE: _pkey_table,
    Attribute.SL_TO_VL_MAPPING_TABLE: _sl_to_vl,
}
"""What Get answers, by attribute of the subnet management classes."""


def answer(fn: Function, smp: Smp) -> MadStatus:
    """Fill the data of a datagram that asks for something; tell the status of the answer."""
    if smp.base_version != _BASE_VERSION or smp.class_version != _CLASS_VERSION:
        return MadStatus.BAD_VERSION
    if smp.method != Method.GET:
        return MadStatus.METHOD_UNSUPPORTED
    reader = READERS.get(smp.attribute_id)
    if reader is None:
        return MadStatus.ATTRIBUTE_UNSUPPORTED
    try:
        smp.data = reader(fn, smp.attribute_modifier).ljust(len(smp.data), b"\0")
    except BadModifier:
        return MadStatus.BAD_VALUE
    return MadStatus.OK


@command(
    Opcode.MAD_IFC,
    MadIfcIn,
    MadIfcOut,
    op_mods=IGNORE_KEYS,
    partial="SubnGet of NodeDescription, NodeInfo, GUIDInfo, PortInfo, P_KeyTable, SLtoVL; performance "
    "management; all else answers its MAD status",
)
def mad_ifc(fn: Function, request: MadIfcIn, reply: MadIfcOut) -> None:
    """Give a datagram to the agent of its class; the answer is the datagram with method GetResp, status and data."""
    port: Port = fn.device.port
    if not port.infiniband:
        raise CommandError(syndromes.NOT_INFINIBAND)
    if request.port != port.number:
        raise CommandError(syndromes.NO_SUCH_PORT, f"port {request.port}, allowed is {port.number}")
    smp = Smp(bytearray(request.mad))
    if smp.mgmt_class not in list(MgmtClass):
        raise CommandError(
            syndromes.BAD_MAD_CLASS, f"mgmt_class {smp.mgmt_class:#x}, allowed are {', '.join(map(hex, MgmtClass))}"
        )
    counters = pma.answer(port, bytes(smp))
    if counters is not None:
        reply.response_mad_packet.assign(counters)
        return
    smp.status = MadStatus.METHOD_UNSUPPORTED if smp.mgmt_class == MgmtClass.PERF else answer(fn, smp)
    smp.method = Method.GET_RESP
    reply.response_mad_packet.assign(bytes(smp))
