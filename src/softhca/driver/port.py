"""Ports: the physical one by registers, the logical one by vport commands (source 3.7, C11, E5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from softhca.driver.cmd import CommandChannel
from softhca.prm.hca_vport import (
    QueryHcaVportContextIn,
    QueryHcaVportContextOut,
    QueryHcaVportGidIn,
    QueryHcaVportGidOut,
)
from softhca.prm.layout import Layout
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import Mtu
from softhca.prm.registers import (
    AccessRegisterIn,
    AccessRegisterOut,
    PmtuReg,
    ProtoMask,
    PtysReg,
    RegisterAccess,
    RegisterId,
)
from softhca.prm.roce import RoceL3Type, RoceVersion, SetRoceAddressIn, SetRoceAddressOut
from softhca.prm.vport import (
    ModifyNicVportContextIn,
    ModifyNicVportContextOut,
    QueryNicVportContextIn,
    QueryNicVportContextOut,
    QueryVportStateIn,
    QueryVportStateOut,
    VportState,
)

Register = TypeVar("Register", bound=Layout)


@dataclass(frozen=True)
class Port:
    """A port as bring-up found it. Link, vport state and QP state are three conditions (C11).

    Attributes:
        number: from 1.
        ethernet: RoCE when true, else InfiniBand.
        link_up: physical: the port has an operational protocol (PTYS).
        vport_up: logical: state of the function's vport.
        lid: InfiniBand address, 0 on Ethernet.
        mac: Ethernet address, 0 on InfiniBand.
        gid: 16 bytes.
        mtu: code of the path MTU (1: 256 bytes to 5: 4096).
        speed: the protocol bits that PTYS calls operational.
    """

    number: int
    ethernet: bool
    link_up: bool
    vport_up: bool
    lid: int
    mac: int
    gid: bytes
    mtu: int
    speed: int


def read_register(channel: CommandChannel, register: RegisterId, layout: type[Register], **index: int) -> Register:
    """ACCESS_REGISTER(read).

    Args:
        channel: runs the command.
        register: which register.
        layout: its fields.
        index: fields that select what is read (local_port, proto_mask).
    """
    payload = layout.pack(**index)
    words = [int.from_bytes(payload[at : at + 4], "big") for at in range(0, len(payload), 4)]
    request = AccessRegisterIn.new(op_mod=RegisterAccess.READ, register_id=register, register_data=words)
    reply = channel.execute(Opcode.ACCESS_REG, request, AccessRegisterOut, room=AccessRegisterOut.SIZE + len(payload))
    return layout(bytearray(bytes(reply)[AccessRegisterOut.SIZE :]))


def set_up(channel: CommandChannel, *, ethernet: bool, roce: bool, number: int = 1) -> Port:
    """Query a port and give it what its transport needs: on Ethernet RoCE enabled and an address (C11)."""
    protocol = ProtoMask.EN if ethernet else ProtoMask.IB
    link = read_register(channel, RegisterId.PTYS, PtysReg, local_port=number, proto_mask=protocol)
    vport = channel.execute(Opcode.QUERY_VPORT_STATE, QueryVportStateIn.new(), QueryVportStateOut)
    up = vport.state == VportState.UP
    if ethernet:
        mac = _mac(channel)
        gid = _link_local(mac)
        if roce:
            _enable_roce(channel, mac, gid, number)
        return Port(number, True, link.eth_proto_oper != 0, up, 0, mac, gid, Mtu.BYTES_1K, link.eth_proto_oper)
    reply = channel.execute(Opcode.QUERY_HCA_VPORT_CONTEXT, QueryHcaVportContextIn.new(), QueryHcaVportContextOut)
    lid = reply.hca_vport_context.lid
    mtu = _mtu(channel, number)
    return Port(number, False, link.ib_proto_oper != 0, up, lid, 0, _gid(channel), mtu, link.ib_proto_oper)


def _mtu(channel: CommandChannel, number: int) -> int:
    """The code of the port's operational MTU (InfiniBand: 256 to 4096 bytes)."""
    pmtu = read_register(channel, RegisterId.PMTU, PmtuReg, local_port=number)
    return min(Mtu.BYTES_4K, max(1, pmtu.oper_mtu.bit_length() - 8))


def _gid(channel: CommandChannel) -> bytes:
    """QUERY_HCA_VPORT_GID: entry 0 of the port's GID table."""
    room = QueryHcaVportGidOut.SIZE + 16
    reply = channel.execute(Opcode.QUERY_HCA_VPORT_GID, QueryHcaVportGidIn.new(), QueryHcaVportGidOut, room=room)
    return bytes(reply.gid[0])


def _mac(channel: CommandChannel) -> int:
    """The permanent address of the NIC vport."""
    reply = channel.execute(Opcode.QUERY_NIC_VPORT_CONTEXT, QueryNicVportContextIn.new(), QueryNicVportContextOut)
    address = reply.nic_vport_context.permanent_address
    return address.mac_addr_47_32 << 32 | address.mac_addr_31_0


def _link_local(mac: int) -> bytes:
    """The IPv6 link-local address of an Ethernet address (RFC 4291, modified EUI-64), which RoCE uses as GID."""
    octets = mac.to_bytes(6, "big")
    return bytes.fromhex("fe80") + bytes(6) + bytes([octets[0] ^ 2]) + octets[1:3] + b"\xff\xfe" + octets[3:]


def _enable_roce(channel: CommandChannel, mac: int, gid: bytes, number: int) -> None:
    """Enable RoCE on the vport and write the first entry of its address table."""
    enable = ModifyNicVportContextIn.new(field_select={"roce_en": 1}, nic_vport_context={"roce_en": 1})
    channel.execute(Opcode.MODIFY_NIC_VPORT_CONTEXT, enable, ModifyNicVportContextOut)
    address = SetRoceAddressIn.new(
        roce_address_index=0,
        vhca_port_num=number,
        roce_address={
            "source_l3_address": list(gid),
            "source_mac_47_32": mac >> 32,
            "source_mac_31_0": mac & 0xFFFF_FFFF,
            "roce_l3_type": RoceL3Type.IPV6,
            "roce_version": RoceVersion.V2,
        },
    )
    channel.execute(Opcode.SET_ROCE_ADDRESS, address, SetRoceAddressOut)
