"""Where a connected QP's path leads: to a QP of this device or of another one of its fabric, or nowhere (G5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softhca.hca.function import Function
    from softhca.hca.qp_context import Path, Qp

_MEMBER = 0x8000
"""P_Key bit: full member of the partition."""


def peer_of(fn: Function, qp: Qp) -> Qp | None:
    """The QP at the end of a connected QP's path, or None when the path leads nowhere."""
    other = end_of(fn, qp.path)
    return None if other is None else other.qps.find(qp.remote_qpn)


def same_partition(own: int, other: int) -> bool:
    """Whether two P_Keys are of one partition, and one of them of a full member (10.9.3)."""
    return bool((own ^ other) & ~_MEMBER == 0 and own & ~_MEMBER and (own | other) & _MEMBER)


def share_partition(qp: Qp, peer: Qp) -> bool:
    """Whether both ends of a connection are in one partition: else the peer drops what comes."""
    own = qp.fn.device.port.pkey(qp.path.pkey_index)
    return same_partition(own, peer.fn.device.port.pkey(peer.path.pkey_index))


def end_of(fn: Function, path: Path) -> Function | None:
    """The function at the end of a path; None when there is none, or the link of either end is down.

    On Ethernet a path leads back to the function's own vport, or nowhere.
    """
    port = fn.device.port
    if not fn.vport.up(port):
        return None
    if port.infiniband:
        return fn.device.fabric.find(path.lid, path.gid if path.has_gid else None)
    return fn if fn.vport.is_own(port, path.lid, path.gid, path.mac) else None
