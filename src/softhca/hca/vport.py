"""The logical port of a function: vport state and NIC vport context (C11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softhca.hca.command import command
from softhca.hca.errors import CommandError
from softhca.hca.port import ETHERNET_MIN_MTU, Port, VirtualPort
from softhca.hca.roce import RoceTable
from softhca.hca.sriov import named_vport
from softhca.prm.opcodes import Opcode
from softhca.prm.syndromes import ports as syndromes
from softhca.prm.vport import (
    AllowedListType,
    MacAddressLayout,
    ModifyNicVportContextIn,
    ModifyNicVportContextOut,
    ModifyNicVportFieldSelect,
    ModifyVportStateIn,
    ModifyVportStateOut,
    NicVportContext,
    QueryNicVportContextIn,
    QueryNicVportContextOut,
    QueryVportStateIn,
    QueryVportStateOut,
    VportAdminState,
)

if TYPE_CHECKING:
    from softhca.hca.function import Function

GROUP_BIT = 1 << 40
"""First bit on the wire of a 48-bit MAC address: set for group addresses."""
_VLAN_IDS = 1 << 12
_DOWN = VportAdminState.DOWN


class Vport:
    """State of a function's vport, as it is after INIT_HCA.

    Attributes:
        admin: what software wants it to be.
        mac: permanent address, 48 bits.
        mtu: bytes.
        roce_enabled: roce_en of the NIC vport context.
        promisc_uc, promisc_mc, promisc_all: what it receives beyond its lists.
        lists: addresses (MACs, VLAN ids) by type.
        roce: the RoCE address table.
        counted_from: what had passed the port when this vport's counters began.
    """

    def __init__(self, port: Port) -> None:
        self.admin = VportAdminState.AUTO
        self.mac = port.mac
        self.mtu = port.mtu
        self.roce_enabled = False
        self.promisc_uc = False
        self.promisc_mc = False
        self.promisc_all = False
        self.lists: dict[AllowedListType, list[int]] = {kind: [] for kind in AllowedListType}
        self.roce = RoceTable()
        self.counted_from = port.traffic.copy()

    def up(self, port: Port) -> bool:
        """Whether the vport is up: it is not when its port is not."""
        return port.up and self.admin is not _DOWN

    def is_own(self, port: Port, lid: int, gid: bytes | None, mac: int) -> bool:
        """Whether an address is this vport's own, so that what is sent there comes back.

        Args:
            port: the port that the vport is on.
            lid: destination LID (InfiniBand).
            gid: destination GID (16 bytes), or None when there is none to look at.
            mac: destination MAC address, 48 bits (RoCE).
        """
        if port.infiniband:
            return lid == port.lid != 0 and (gid is None or gid == port.gid(0))
        return (mac == self.mac or mac in self.roce.macs()) and (gid is None or gid in self.roce.gids())


def _ethernet(fn: Function) -> None:
    if fn.device.port.infiniband:
        raise CommandError(syndromes.NOT_ETHERNET)


@command(Opcode.QUERY_VPORT_STATE, QueryVportStateIn, QueryVportStateOut, partial="op_mod 0 (vNIC vport) only")
def query_vport_state(fn: Function, request: QueryVportStateIn, reply: QueryVportStateOut) -> None:
    """Whether the vport is up (1) or down (0), and what software wants."""
    target = named_vport(fn, request.other_vport, request.vport_number)
    port = target.device.port
    reply.admin_state = target.vport.admin if target is fn else policy(target)
    reply.state = target.vport.up(port)


def policy(target: Function) -> VportAdminState:
    """What its PF wants a VF's port to be; a port of a PF is what its own software wants."""
    port = target.device.port
    return port.policy if isinstance(port, VirtualPort) else target.vport.admin


def admin_state(number: int) -> VportAdminState:
    """A state that software may want.

    Raises:
        CommandError: there is none with this number.
    """
    try:
        return VportAdminState(number)
    except ValueError:
        raise CommandError(syndromes.BAD_VPORT_STATE, f"admin_state {number}, allowed are 0, 1, 2") from None


@command(Opcode.MODIFY_VPORT_STATE, ModifyVportStateIn, ModifyVportStateOut, partial="op_mod 0 (vNIC vport) only")
def modify_vport_state(fn: Function, request: ModifyVportStateIn, reply: ModifyVportStateOut) -> None:
    """Want the vport up, down, or as its port is. What a PF wants of a VF outlives what the VF's own driver does."""
    target = named_vport(fn, request.other_vport, request.vport_number)
    wanted, port = admin_state(request.admin_state), target.device.port
    if target is not fn and isinstance(port, VirtualPort):
        port.set_policy(wanted)
    else:
        target.vport.admin = wanted


def _list_type(number: int) -> AllowedListType:
    try:
        return AllowedListType(number)
    except ValueError:
        raise CommandError(syndromes.BAD_LIST_TYPE, f"allowed_list_type {number}, allowed are 0, 1, 2") from None


def _mac(layout: MacAddressLayout) -> int:
    return layout.mac_addr_47_32 << 32 | layout.mac_addr_31_0


@command(
    Opcode.QUERY_NIC_VPORT_CONTEXT,
    QueryNicVportContextIn,
    QueryNicVportContextOut,
    partial="no change events, affiliation, inline mode, loopback bits",
)
def query_nic_vport_context(fn: Function, request: QueryNicVportContextIn, reply: QueryNicVportContextOut) -> None:
    """The NIC vport context with the list that is asked for, as far as the output has room for it."""
    target = named_vport(fn, request.other_vport, request.vport_number)
    _ethernet(fn)
    kind = _list_type(request.allowed_list_type)
    port, vport, context = target.device.port, target.vport, reply.nic_vport_context
    context.roce_en = vport.roce_enabled
    context.mtu = vport.mtu
    context.system_image_guid, context.node_guid, context.port_guid = port.system_guid, port.node_guid, port.guid
    context.promisc_uc = vport.promisc_uc
    context.promisc_mc = vport.promisc_mc
    context.promisc_all = vport.promisc_all
    context.permanent_address.mac_addr_47_32 = vport.mac >> 32
    context.permanent_address.mac_addr_31_0 = vport.mac & 0xFFFFFFFF
    entries = vport.lists[kind]
    context.allowed_list_type = kind
    context.allowed_list_size = len(entries)
    shift = 32 if kind is AllowedListType.VLAN else 0
    room = context.current_uc_mac_address
    room.assign([entry << shift for entry in entries[: len(room)]])


SUPPORTED_FIELDS = ModifyNicVportFieldSelect.pack(mtu=1, promisc=1, permanent_address=1, addresses_list=1, roce_en=1)


@command(
    Opcode.MODIFY_NIC_VPORT_CONTEXT,
    ModifyNicVportContextIn,
    ModifyNicVportContextOut,
    partial="MTU, promiscuity, address, address lists and roce_en",
)
def modify_nic_vport_context(fn: Function, request: ModifyNicVportContextIn, reply: ModifyNicVportContextOut) -> None:
    """Change the fields that field_select names: all of them, or none when one is wrong."""
    target = named_vport(fn, request.other_vport, request.vport_number)
    _ethernet(fn)
    select, context = request.field_select, request.nic_vport_context
    wrong = int.from_bytes(bytes(select), "big") & ~int.from_bytes(SUPPORTED_FIELDS, "big")
    if wrong:
        raise CommandError(
            syndromes.NIC_VPORT_FIELD_FIXED, f"field_select bits {wrong:#x}; allowed are 0x{SUPPORTED_FIELDS.hex()}"
        )
    if select.roce_en and not fn.caps.general.roce:
        raise CommandError(syndromes.ROCE_NOT_SUPPORTED)
    if select.mtu and not ETHERNET_MIN_MTU <= context.mtu <= fn.device.port.max_mtu:
        raise CommandError(
            syndromes.BAD_VPORT_MTU, f"mtu {context.mtu}, allowed are {ETHERNET_MIN_MTU} to {fn.device.port.max_mtu}"
        )
    mac = _mac(context.permanent_address)
    if select.permanent_address and (not mac or mac & GROUP_BIT):
        raise CommandError(syndromes.BAD_MAC, f"permanent_address {mac:012x}")
    entries = _entries(fn, context) if select.addresses_list else []
    _apply(target.vport, select, context, mac, entries)


def _apply(
    vport: Vport, select: ModifyNicVportFieldSelect, context: NicVportContext, mac: int, entries: list[int]
) -> None:
    if select.roce_en:
        vport.roce_enabled = bool(context.roce_en)
    if select.mtu:
        vport.mtu = context.mtu
    if select.permanent_address:
        vport.mac = mac
    if select.promisc:
        vport.promisc_uc = bool(context.promisc_uc)
        vport.promisc_mc = bool(context.promisc_mc)
        vport.promisc_all = bool(context.promisc_all)
    if select.addresses_list:
        vport.lists[AllowedListType(context.allowed_list_type)] = entries


def _entries(fn: Function, context: NicVportContext) -> list[int]:
    """The list of a context, checked: MAC addresses, or VLAN ids."""
    kind, count, general = _list_type(context.allowed_list_type), context.allowed_list_size, fn.caps.general
    log_limit = {
        AllowedListType.UC: general.log_max_current_uc_list,
        AllowedListType.MC: general.log_max_current_mc_list,
        AllowedListType.VLAN: general.log_max_vlan_list,
    }[kind]
    if count > 1 << log_limit:
        raise CommandError(syndromes.LIST_TOO_LONG, f"{kind.name}: {count} entries, at most {1 << log_limit}")
    given = context.current_uc_mac_address
    if count > len(given):
        raise CommandError(syndromes.LIST_SHORT, f"{kind.name}: {count} entries, the message holds {len(given)}")
    entries = [given[index] for index in range(count)]
    for entry in entries:
        if not _fits(kind, entry):
            raise CommandError(syndromes.BAD_LIST_ENTRY, f"{kind.name}: {entry:#x}")
    return [entry >> 32 for entry in entries] if kind is AllowedListType.VLAN else entries


def _fits(kind: AllowedListType, entry: int) -> bool:
    if kind is AllowedListType.VLAN:
        return entry >> 32 < _VLAN_IDS and not entry & 0xFFFFFFFF
    group = bool(entry & GROUP_BIT)
    return 0 < entry < 1 << 48 and group == (kind is AllowedListType.MC)
