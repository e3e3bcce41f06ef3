"""Where a connected QP's path leads: to a QP of this device, or nowhere (G5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softhca.hca.function import Function
    from softhca.hca.qp_context import Path, Qp


def peer_of(fn: Function, qp: Qp) -> Qp | None:
    """The QP at the end of a connected QP's path, or None when the path leads nowhere."""
    peer = fn.qps.find(qp.remote_qpn)
    if peer is None or not leads_back(fn, qp.path):
        return None
    return peer


def leads_back(fn: Function, path: Path) -> bool:
    """Whether a path ends at this function's own vport, and the link is up."""
    port = fn.device.port
    gid = path.gid if path.has_gid or not port.infiniband else None
    return fn.vport.up(port) and fn.vport.is_own(port, path.lid, gid, path.mac)
