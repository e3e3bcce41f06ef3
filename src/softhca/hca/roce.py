"""The RoCE address table of a vport (C11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softhca.hca.command import command
from softhca.hca.errors import CommandError
from softhca.prm.opcodes import Opcode
from softhca.prm.roce import (
    QueryRoceAddressIn,
    QueryRoceAddressOut,
    RoceAddrLayout,
    SetRoceAddressIn,
    SetRoceAddressOut,
)
from softhca.prm.syndromes import ports as syndromes

if TYPE_CHECKING:
    from softhca.hca.function import Function

_GROUP = 1 << 8
"""The group bit in the upper 16 bits of a MAC address."""
_L3_CAPABILITY_SHIFT = 1
"""l3_type of the capabilities: bit 1 for IPv4 (type 0), bit 2 for IPv6 (type 1)."""


class RoceTable:
    """Source addresses by index; an index that was not set holds zeros."""

    def __init__(self) -> None:
        self._entries: dict[int, bytes] = {}
        self._gids: frozenset[bytes] = frozenset()
        self._macs: frozenset[int] = frozenset()

    def get(self, index: int) -> bytes:
        """An entry, as `roce_addr_layout`."""
        return self._entries.get(index, bytes(RoceAddrLayout.SIZE))

    def put(self, index: int, entry: bytes) -> None:
        """Set an entry, or remove it when its layer 3 address is zero; the caller checked index and entry."""
        self._entries.pop(index, None)
        if any(RoceAddrLayout(entry).source_l3_address):
            self._entries[index] = entry
        views = [RoceAddrLayout(item) for item in self._entries.values()]
        self._gids = frozenset(bytes(view.source_l3_address) for view in views)
        self._macs = frozenset(view.source_mac_47_32 << 32 | view.source_mac_31_0 for view in views)

    def gids(self) -> frozenset[bytes]:
        """The layer 3 addresses of the entries (GIDs, 16 bytes each)."""
        return self._gids

    def macs(self) -> frozenset[int]:
        """The MAC addresses of the entries, 48 bits each."""
        return self._macs


def _check_access(fn: Function, index: int, port: int) -> None:
    if fn.device.port.infiniband:
        raise CommandError(syndromes.NOT_ETHERNET)
    if not fn.caps.general.roce:
        raise CommandError(syndromes.ROCE_NOT_SUPPORTED)
    if not fn.vport.roce_enabled:
        raise CommandError(syndromes.ROCE_NOT_ENABLED)
    if port not in (0, fn.device.port.number):
        raise CommandError(syndromes.NO_SUCH_PORT, f"vhca_port_num {port}, allowed are 0 and {fn.device.port.number}")
    size = fn.caps.roce.roce_address_table_size
    if index >= size:
        raise CommandError(syndromes.ROCE_ADDRESS_INDEX, f"roce_address_index {index}, table of {size}")


@command(Opcode.SET_ROCE_ADDRESS, SetRoceAddressIn, SetRoceAddressOut)
def set_roce_address(fn: Function, request: SetRoceAddressIn, reply: SetRoceAddressOut) -> None:
    """Set a source address; one whose layer 3 address is zero is removed."""
    _check_access(fn, request.roce_address_index, request.vhca_port_num)
    address, caps = request.roce_address, fn.caps.roce
    if address.roce_version > 7 or not caps.roce_version >> address.roce_version & 1:
        raise CommandError(
            syndromes.BAD_ROCE_VERSION, f"roce_version {address.roce_version}, allowed by mask {caps.roce_version:#x}"
        )
    if not caps.l3_type >> (address.roce_l3_type + _L3_CAPABILITY_SHIFT) & 1:
        raise CommandError(
            syndromes.BAD_ROCE_L3_TYPE, f"roce_l3_type {address.roce_l3_type}, allowed by mask {caps.l3_type:#x}"
        )
    high, low = address.source_mac_47_32, address.source_mac_31_0
    if any(address.source_l3_address) and (high & _GROUP or not high | low):
        raise CommandError(syndromes.BAD_ROCE_MAC, f"source_mac {high:04x}{low:08x}")
    fn.vport.roce.put(request.roce_address_index, bytes(address))


@command(Opcode.QUERY_ROCE_ADDRESS, QueryRoceAddressIn, QueryRoceAddressOut)
def query_roce_address(fn: Function, request: QueryRoceAddressIn, reply: QueryRoceAddressOut) -> None:
    """Read a source address; zeros when the index holds none."""
    _check_access(fn, request.roce_address_index, request.vhca_port_num)
    reply.roce_address.assign(fn.vport.roce.get(request.roce_address_index))
