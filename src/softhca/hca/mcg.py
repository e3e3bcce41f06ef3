"""Multicast groups of a function: which of its UD QPs take what is sent to a multicast GID."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softhca.hca.command import command
from softhca.hca.errors import CommandError
from softhca.prm.mcg import AttachToMcgIn, AttachToMcgOut, DetachFromMcgIn, DetachFromMcgOut
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import ServiceType
from softhca.prm.syndromes import fabric as syndromes

if TYPE_CHECKING:
    from softhca.hca.function import Function

_MULTICAST = 0xFF
"""First byte of a multicast GID."""


@command(Opcode.ATTACH_TO_MCG, AttachToMcgIn, AttachToMcgOut)
def attach_to_mcg(fn: Function, request: AttachToMcgIn, reply: AttachToMcgOut) -> None:
    """Put a QP into a group; while it is in one, it cannot be destroyed."""
    qp = fn.qps.get(request.qpn)
    gid = bytes(request.multicast_gid)
    if gid[0] != _MULTICAST:
        raise CommandError(syndromes.NOT_MULTICAST, f"multicast_gid {gid.hex()}, allowed begin with 0xff")
    if qp.service is not ServiceType.UD:
        raise CommandError(syndromes.NOT_A_DATAGRAM_QP, f"QP {qp.number:#x} is {qp.service.name}, allowed is UD")
    members = fn.multicast.get(gid, [])
    if qp in members:
        raise CommandError(syndromes.ALREADY_ATTACHED, f"QP {qp.number:#x}, group {gid.hex()}")
    caps = fn.caps.general
    if len(members) >= caps.max_qp_mcg:
        raise CommandError(syndromes.GROUP_FULL, f"group {gid.hex()}: {len(members)}, at most {caps.max_qp_mcg}")
    if not members and len(fn.multicast) >= 1 << caps.log_max_mcg:
        raise CommandError(syndromes.GROUPS_FULL, f"{len(fn.multicast)} groups, at most {1 << caps.log_max_mcg}")
    fn.multicast[gid] = [*members, qp]
    qp.references += 1


@command(Opcode.DETACH_FROM_MCG, DetachFromMcgIn, DetachFromMcgOut)
def detach_from_mcg(fn: Function, request: DetachFromMcgIn, reply: DetachFromMcgOut) -> None:
    """Take a QP out of a group."""
    qp = fn.qps.get(request.qpn)
    gid = bytes(request.multicast_gid)
    members = fn.multicast.get(gid, [])
    if qp not in members:
        raise CommandError(syndromes.NOT_ATTACHED, f"QP {qp.number:#x}, group {gid.hex()}")
    left = [member for member in members if member is not qp]
    if left:
        fn.multicast[gid] = left
    else:
        del fn.multicast[gid]
    qp.references -= 1
