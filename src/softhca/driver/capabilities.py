"""Capabilities: what the device can do, and what of it this driver selects (source 3.4, C7)."""

from __future__ import annotations

from softhca.driver.cmd import CommandChannel
from softhca.prm.hca_cap import (
    CapType,
    CmdHcaCap,
    QueryHcaCapIn,
    QueryHcaCapOut,
    SetHcaCapIn,
    SetHcaCapOut,
)
from softhca.prm.opcodes import Opcode

MAXIMUM = 0
CURRENT = 1
LOG_UAR_PAGE = 0
"""log_uar_page_sz: UAR pages of 4 KiB."""
LOG_QPS = 18
"""Most QPs that this driver selects, log2."""


def query(channel: CommandChannel, kind: CapType, which: int) -> QueryHcaCapOut:
    """QUERY_HCA_CAP: one page of capabilities, what is possible (MAXIMUM) or what is set (CURRENT)."""
    request = QueryHcaCapIn.new(op_mod=kind << 1 | which)
    return channel.execute(Opcode.QUERY_HCA_CAP, request, QueryHcaCapOut)


def general(channel: CommandChannel) -> CmdHcaCap:
    """The general capabilities as they are set now."""
    return query(channel, CapType.GENERAL, CURRENT).capability.cmd_hca_cap


def select(channel: CommandChannel) -> CmdHcaCap:
    """Choose among what may be chosen, tell the device, and read back what is set; only before INIT_HCA.

    Signature checks on commands are turned on as far as the device has them, and RoCE where there is any.
    """
    most = query(channel, CapType.GENERAL, MAXIMUM).capability.cmd_hca_cap
    page = query(channel, CapType.GENERAL, CURRENT).capability
    wanted = page.cmd_hca_cap
    wanted.log_uar_page_sz = LOG_UAR_PAGE
    wanted.log_max_qp = min(most.log_max_qp, LOG_QPS)
    wanted.cmdif_checksum = most.cmdif_checksum
    wanted.roce = most.roce
    request = SetHcaCapIn.new(op_mod=CapType.GENERAL << 1, capability=page)
    channel.execute(Opcode.SET_HCA_CAP, request, SetHcaCapOut)
    return general(channel)
