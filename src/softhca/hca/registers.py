"""ACCESS_REGISTER and the registers that it reaches (E5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from softhca.hca.command import Stage, command
from softhca.hca.errors import CommandError
from softhca.hca.port import Port
from softhca.hca.traffic import read_ppcnt
from softhca.prm.device_registers import HostEndiannessReg, NodeDescReg
from softhca.prm.layout import Layout
from softhca.prm.opcodes import Opcode
from softhca.prm.ppcnt import PpcntReg
from softhca.prm.registers import (
    AccessRegisterIn,
    AccessRegisterOut,
    DtorReg,
    PaosReg,
    PmlpReg,
    PmtuReg,
    PortAdminStatus,
    PortEventMode,
    PortOperStatus,
    ProtoMask,
    PtysReg,
    PvlcReg,
    RegisterAccess,
    RegisterId,
)
from softhca.prm.syndromes import ports as syndromes

if TYPE_CHECKING:
    from softhca.hca.function import Function

ADMIN_STATUSES = (PortAdminStatus.UP, PortAdminStatus.DOWN)
"""What of PAOS admin_status can be set."""
TIMEOUTS = {
    "pcie_toggle_to": 2_000,
    "health_poll_to": 2_000,
    "full_crdump_to": 60_000,
    "fw_reset_to": 60_000,
    "flush_on_err_to": 2_000,
    "pci_sync_update_to": 5_000,
    "tear_down_to": 3_000,
    "fsm_reactivate_to": 5_000,
    "reclaim_pages_to": 5_000,
    "reclaim_vfs_pages_to": 120_000,
    "reset_unload_to": 300_000,
}
"""DTOR: milliseconds that a host should wait; those that Linux mlx5_core takes by itself (lib/tout.c)."""
_ENDIANNESS = (0x00, 0x80)

R = TypeVar("R", bound=Layout)
Handler = Callable[["Function", R], None]
"""Takes the register as the host sent it. A read fills it; a write acts on it and leaves the new contents in it."""


@dataclass(frozen=True)
class Register:
    """A register.

    Attributes:
        id: its number; not a BAR offset.
        layout: its fields; the payload has exactly its size.
        read, write: handlers, or None when that cannot be done.
        partial: what of the manual's register is missing, or "".
        physical: writes change the physical port, which is not a VF's to change.
    """

    id: RegisterId
    layout: type[Layout]
    read: Handler[Any] | None
    write: Handler[Any] | None
    partial: str = ""
    physical: bool = False

    @property
    def access(self) -> str:
        """The methods, in words."""
        return ", ".join(word for word, handler in (("read", self.read), ("write", self.write)) if handler is not None)


def _port(fn: Function, local_port: int) -> Port:
    port: Port = fn.device.port
    if local_port != port.number:
        raise CommandError(syndromes.BAD_LOCAL_PORT, f"local_port {local_port}, allowed is {port.number}")
    return port


def _write_endianness(fn: Function, register: HostEndiannessReg) -> None:
    """Nothing depends on it: what the device writes to memory has a defined order."""
    if register.he not in _ENDIANNESS:
        raise CommandError(syndromes.BAD_ENDIANNESS, f"he {register.he:#x}, allowed are 0x0 and 0x80")


def _read_node_desc(fn: Function, register: NodeDescReg) -> None:
    register.desc = fn.device.port.node_description


def _write_node_desc(fn: Function, register: NodeDescReg) -> None:
    fn.device.port.node_description = register.desc


def _read_ptys(fn: Function, register: PtysReg) -> None:
    """Speeds and widths: capability, what software wants (all of it), and what is in use."""
    port = _port(fn, register.local_port)
    if register.plane_ind:
        raise CommandError(syndromes.BAD_PLANE, f"plane_ind {register.plane_ind}, allowed is 0")
    if not register.proto_mask & (ProtoMask.IB if port.infiniband else ProtoMask.EN):
        raise CommandError(syndromes.WRONG_PROTOCOL, f"proto_mask {register.proto_mask}, port is {port.kind.name}")
    figures = port.figures
    register.data_rate_oper = figures.data_rate if port.up else 0
    register.ib_link_width_capability = register.ib_link_width_admin = figures.ib_link_width
    register.ib_link_width_oper = port.link_width
    register.ib_proto_capability = register.ib_proto_admin = figures.ib_proto
    register.ib_proto_oper = port.ib_speed
    register.eth_proto_capability = register.eth_proto_admin = figures.eth_proto
    register.eth_proto_oper = port.eth_mode
    register.ext_eth_proto_capability = register.ext_eth_proto_admin = figures.ext_eth_proto
    register.ext_eth_proto_oper = port.ext_eth_mode


def _read_pmtu(fn: Function, register: PmtuReg) -> None:
    port = _port(fn, register.local_port)
    register.max_mtu = port.max_mtu
    register.admin_mtu = register.oper_mtu = port.mtu


def _write_pmtu(fn: Function, register: PmtuReg) -> None:
    port = _port(fn, register.local_port)
    if not port.allows_mtu(register.admin_mtu):
        raise CommandError(syndromes.BAD_PORT_MTU, f"admin_mtu {register.admin_mtu}, at most {port.max_mtu}")
    port.link.mtu = register.admin_mtu
    _read_pmtu(fn, register)


def _read_pvlc(fn: Function, register: PvlcReg) -> None:
    port = _port(fn, register.local_port)
    register.vl_hw_cap = register.vl_admin = port.figures.vl_hw_cap
    register.vl_operational = port.figures.vl_hw_cap if port.up else 0


def _swid(register: PaosReg) -> None:
    if register.swid:
        raise CommandError(syndromes.BAD_SWID, f"swid {register.swid}, allowed is 0")


def _read_paos(fn: Function, register: PaosReg) -> None:
    port = _port(fn, register.local_port)
    _swid(register)
    register.admin_status = port.link.admin
    register.oper_status = PortOperStatus.UP if port.up else PortOperStatus.DOWN
    register.e = port.link.event_mode


def _write_paos(fn: Function, register: PaosReg) -> None:
    """Set what is enabled: admin_status by ase, the event mode by ee."""
    port = _port(fn, register.local_port)
    _swid(register)
    if register.ase and register.admin_status not in ADMIN_STATUSES:
        raise CommandError(syndromes.BAD_ADMIN_STATUS, f"admin_status {register.admin_status}, allowed are 1 and 2")
    if register.ee and register.e not in list(PortEventMode):
        raise CommandError(syndromes.BAD_EVENT_MODE, f"e {register.e}, allowed are 0, 1 and 2")
    if register.ee:
        port.link.event_mode = PortEventMode(register.e)
    if register.ase:
        port.set_admin(PortAdminStatus(register.admin_status))
    _read_paos(fn, register)


def _read_pmlp(fn: Function, register: PmlpReg) -> None:
    """Lane n of the port is lane n of module 0."""
    port = _port(fn, register.local_port)
    register.width = port.figures.lanes
    for lane in range(port.figures.lanes):
        setattr(register, f"lane{lane}_module_mapping", lane << 24 | lane << 16)


def _read_ppcnt(fn: Function, register: PpcntReg) -> None:
    read_ppcnt(fn.device.port, register)


def _read_dtor(fn: Function, register: DtorReg) -> None:
    del fn
    for name, value in TIMEOUTS.items():
        getattr(register, name).to_value = value


REGISTERS: dict[int, Register] = {
    register.id: register
    for register in (
        Register(RegisterId.PMLP, PmlpReg, _read_pmlp, None, "not writable"),
        Register(RegisterId.PMTU, PmtuReg, _read_pmtu, _write_pmtu, physical=True),
        Register(RegisterId.PTYS, PtysReg, _read_ptys, None, "not writable: the port takes its highest speed"),
        Register(RegisterId.PAOS, PaosReg, _read_paos, _write_paos, "admin_status 1 and 2", physical=True),
        Register(RegisterId.PPCNT, PpcntReg, _read_ppcnt, None, "groups 0x20 and 0x21; not writable"),
        Register(RegisterId.PVLC, PvlcReg, _read_pvlc, None, "not writable"),
        Register(RegisterId.NODE_DESC, NodeDescReg, _read_node_desc, _write_node_desc),
        Register(RegisterId.DTOR, DtorReg, _read_dtor, None),
        Register(RegisterId.HOST_ENDIANNESS, HostEndiannessReg, None, _write_endianness),
    )
}
"""Every register by its id."""


@command(
    Opcode.ACCESS_REG,
    AccessRegisterIn,
    AccessRegisterOut,
    op_mods=tuple(RegisterAccess),
    stages=(Stage.READY, Stage.INITIALIZED),
    partial="the registers of the table below",
)
def access_register(fn: Function, request: AccessRegisterIn, reply: AccessRegisterOut) -> None:
    """Read or write a register; a write answers the new contents, as far as the output has room for them."""
    method = RegisterAccess.READ if request.op_mod == RegisterAccess.READ else RegisterAccess.WRITE
    register = _register(request.register_id, method)
    room, size = len(reply.register_data) * 4, register.layout.SIZE
    if method is RegisterAccess.READ and room < size:
        raise CommandError(syndromes.REGISTER_NO_ROOM, f"{register.id.name}: {room} bytes, {size} needed")
    contents = access(fn, register.id, method, bytes(request)[AccessRegisterIn.SIZE :])
    data = contents[: room - room % 4]
    reply.register_data.assign([int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4)])


def _register(number: int, method: RegisterAccess) -> Register:
    register = REGISTERS.get(number)
    if register is None:
        raise CommandError(syndromes.UNKNOWN_REGISTER, f"register_id {number:#x}")
    reading = method is RegisterAccess.READ
    if (register.read if reading else register.write) is None:
        missing = syndromes.REGISTER_NOT_READABLE if reading else syndromes.REGISTER_NOT_WRITABLE
        raise CommandError(missing, f"{register.id.name}: it has {register.access}")
    return register


def access(fn: Function, number: int, method: RegisterAccess, payload: bytes) -> bytes:
    """Read or write a register, however the host reaches it (E5, E7).

    Args:
        fn: the function that asks.
        number: of the register.
        method: read or write.
        payload: the register as the host sent it.

    Returns:
        Its contents after that.

    Raises:
        CommandError: there is no such register, it does not allow that, or the payload is not of its size.
    """
    register = _register(number, method)
    size = register.layout.SIZE
    if len(payload) != size:
        raise CommandError(syndromes.REGISTER_SHORT, f"{register.id.name}: {len(payload)} bytes, {size} needed")
    if method is RegisterAccess.WRITE and register.physical and fn.manager is not None:
        raise CommandError(syndromes.PHYSICAL_PORT, f"{register.id.name}: function_id {fn.function_id}")
    handler = register.read if method is RegisterAccess.READ else register.write
    assert handler is not None, "checked above"
    contents = register.layout(bytearray(payload))
    handler(fn, contents)
    return bytes(contents)
