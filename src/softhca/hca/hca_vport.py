"""The InfiniBand side of a function's vport: context, GID table, P_Key table (C11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softhca.hca.command import command
from softhca.hca.errors import CommandError
from softhca.hca.port import VirtualPort
from softhca.hca.sriov import named_vport
from softhca.hca.vport import admin_state, policy
from softhca.prm.hca_vport import (
    HcaVportContext,
    ModifyHcaVportContextIn,
    ModifyHcaVportContextOut,
    PortState,
    QueryHcaVportContextIn,
    QueryHcaVportContextOut,
    QueryHcaVportGidIn,
    QueryHcaVportGidOut,
    QueryHcaVportPkeyIn,
    QueryHcaVportPkeyOut,
)
from softhca.prm.opcodes import Opcode
from softhca.prm.smp import PortCapability
from softhca.prm.syndromes import Syndrome
from softhca.prm.syndromes import ports as syndromes
from softhca.prm.vport import VportAdminState

if TYPE_CHECKING:
    from softhca.hca.function import Function

WHOLE_TABLE = 0xFFFF
SELECT_PORT_GUID, SELECT_NODE_GUID, SELECT_STATE_POLICY = 0x1, 0x2, 0x4
"""Bits of field_select; the names of Linux are MLX5_HCA_VPORT_SEL_*."""
_OF_A_VF = SELECT_PORT_GUID | SELECT_NODE_GUID | SELECT_STATE_POLICY


def gid_table_length(gid_table_size: int) -> int:
    """Entries of the GID table, from the capability."""
    return 8 << gid_table_size


def pkey_table_length(pkey_table_size: int) -> int:
    """Entries of the P_Key table, from the capability."""
    return 128 << pkey_table_size


Request = QueryHcaVportContextIn | ModifyHcaVportContextIn | QueryHcaVportGidIn | QueryHcaVportPkeyIn


def _target(fn: Function, request: Request) -> Function:
    """The function whose vport on the InfiniBand port the command is about."""
    target = named_vport(fn, request.other_vport, request.vport_number)
    port = target.device.port
    if not port.infiniband:
        raise CommandError(syndromes.NOT_INFINIBAND)
    if request.port_num not in (0, port.number):
        raise CommandError(syndromes.NO_SUCH_PORT, f"port_num {request.port_num}, allowed are 0 and {port.number}")
    return target


@command(
    Opcode.QUERY_HCA_VPORT_CONTEXT,
    QueryHcaVportContextIn,
    QueryHcaVportContextOut,
    partial="no M_Key violation counter",
)
def query_hca_vport_context(fn: Function, request: QueryHcaVportContextIn, reply: QueryHcaVportContextOut) -> None:
    """State and addresses of the vport."""
    target, context = _target(fn, request), reply.hca_vport_context
    port, vport = target.device.port, target.vport
    context.has_smi = 1
    context.port_physical_state = port.physical_state
    context.port_state = port.state
    context.vport_state = PortState.DOWN if vport.admin is VportAdminState.DOWN else port.state
    context.vport_state_policy = vport.admin if target is fn else policy(target)
    context.system_image_guid, context.node_guid, context.port_guid = port.system_guid, port.node_guid, port.guid
    context.cap_mask1 = port.capability_mask
    context.cap_mask1_field_select = port.CHANGEABLE_CAPABILITIES
    context.lid = port.lid
    context.sm_lid = port.sm_lid
    context.pkey_violation_counter = port.pkey_violations
    context.qkey_violation_counter = port.qkey_violations


@command(
    Opcode.MODIFY_HCA_VPORT_CONTEXT,
    ModifyHcaVportContextIn,
    ModifyHcaVportContextOut,
    partial="capability mask; of a VF its GUIDs and its state",
)
def modify_hca_vport_context(fn: Function, request: ModifyHcaVportContextIn, reply: ModifyHcaVportContextOut) -> None:
    """Change bits of the capability mask, those that cap_mask1_field_select names; a PF sets more of its VFs."""
    target, context = _target(fn, request), request.hca_vport_context
    port = target.device.port
    allowed = _OF_A_VF if target is not fn else 0
    if context.field_select & ~allowed:
        raise CommandError(
            syndromes.HCA_VPORT_FIELD_FIXED, f"field_select {context.field_select:#x}, allowed is {allowed:#x}"
        )
    select = context.cap_mask1_field_select
    if select & ~port.CHANGEABLE_CAPABILITIES or context.cap_mask2_field_select:
        raise CommandError(
            syndromes.CAP_MASK_FIXED,
            f"cap_mask1_field_select {select:#x}, cap_mask2_field_select {context.cap_mask2_field_select:#x}; "
            f"allowed are {port.CHANGEABLE_CAPABILITIES:#x} and 0",
        )
    if target is not fn and isinstance(port, VirtualPort):
        _set_vf(target, port, context)
    port.capability_mask = PortCapability(port.capability_mask & ~select | context.cap_mask1 & select)


def _set_vf(vf: Function, port: VirtualPort, context: HcaVportContext) -> None:
    """What a PF sets of a VF: GUIDs and state; all that field_select names, or nothing when one is wrong."""
    select = context.field_select
    state = admin_state(context.vport_state_policy) if select & SELECT_STATE_POLICY else port.policy
    if select & SELECT_PORT_GUID and not vf.device.fabric.can_rename(vf.device, context.port_guid):
        raise CommandError(syndromes.BAD_PORT_GUID, f"port_guid {context.port_guid:#018x}")
    if select & SELECT_NODE_GUID:
        port.node_guid = context.node_guid
    if select & SELECT_PORT_GUID:
        port.guid = context.port_guid
    port.set_policy(state)


def _indices(index: int, length: int, room: int, beyond: Syndrome, field: str) -> range:
    """The entries that a query asks for."""
    wanted = range(length) if index == WHOLE_TABLE else range(index, index + 1)
    if wanted.stop > length:
        raise CommandError(beyond, f"{field} {index}, table of {length}")
    if len(wanted) > room:
        raise CommandError(syndromes.TABLE_NO_ROOM, f"{field} {index:#x}: room for {room} of {len(wanted)} entries")
    return wanted


@command(Opcode.QUERY_HCA_VPORT_GID, QueryHcaVportGidIn, QueryHcaVportGidOut)
def query_hca_vport_gid(fn: Function, request: QueryHcaVportGidIn, reply: QueryHcaVportGidOut) -> None:
    """An entry of the GID table, or the whole table (index 0xffff)."""
    port = _target(fn, request).device.port
    length = gid_table_length(fn.caps.general.gid_table_size)
    wanted = _indices(request.gid_index, length, len(reply.gid), syndromes.GID_INDEX, "gid_index")
    reply.gids_num = len(wanted)
    reply.gid.assign([port.gid(index) for index in wanted])


@command(Opcode.QUERY_HCA_VPORT_PKEY, QueryHcaVportPkeyIn, QueryHcaVportPkeyOut)
def query_hca_vport_pkey(fn: Function, request: QueryHcaVportPkeyIn, reply: QueryHcaVportPkeyOut) -> None:
    """An entry of the P_Key table, or the whole table (index 0xffff)."""
    port = _target(fn, request).device.port
    length = pkey_table_length(fn.caps.general.pkey_table_size)
    wanted = _indices(request.pkey_index, length, len(reply.pkey), syndromes.PKEY_INDEX, "pkey_index")
    reply.pkey.assign([{"pkey": port.pkey(index)} for index in wanted])
