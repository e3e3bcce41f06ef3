"""QUERY_ADAPTER: the identity of the card (E6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softhca.hca.command import Stage, command
from softhca.prm.adapter import QueryAdapterIn, QueryAdapterOut
from softhca.prm.opcodes import Opcode

if TYPE_CHECKING:
    from softhca.hca.function import Function


@command(Opcode.QUERY_ADAPTER, QueryAdapterIn, QueryAdapterOut, stages=(Stage.READY, Stage.INITIALIZED))
def query_adapter(fn: Function, request: QueryAdapterIn, reply: QueryAdapterOut) -> None:
    """Vendor and board id; the vendor's own data (vsd) are empty, and their vendor id is the PCI one."""
    profile = fn.device.profile
    adapter = reply.query_adapter_struct
    adapter.ieee_vendor_id = profile.firmware.ieee_vendor_id
    adapter.vsd_vendor_id = profile.pci.vendor_id
    adapter.vsd_contd_psid.assign(profile.firmware.board_id.encode("ascii"))
