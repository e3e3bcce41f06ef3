"""ACCESS_REGISTER: each register by its own fields, and every way to ask wrongly."""

from __future__ import annotations

import pytest

from softhca.hca.command import COMMANDS, Stage
from softhca.hca.profile import names
from softhca.hca.registers import REGISTERS
from softhca.prm.device_registers import HostEndiannessReg, NodeDescReg
from softhca.prm.events import EventType, PortChangeSubtype
from softhca.prm.hca_vport import PortState
from softhca.prm.opcodes import Opcode
from softhca.prm.registers import (
    DtorReg,
    PaosReg,
    PmlpReg,
    PmtuReg,
    PortAdminStatus,
    PortEventMode,
    PortOperStatus,
    PtysReg,
    PvlcReg,
    RegisterAccess,
)
from softhca.prm.syndromes import Syndrome
from softhca.prm.syndromes import ports as syndromes
from tests.hca.ports_bench import ETH, IB, PortsBench

READ, WRITE = RegisterAccess.READ, RegisterAccess.WRITE
PMLP, PMTU, PTYS, PAOS, PVLC, NODE_DESC, HOST_ENDIANNESS = 0x5002, 0x5003, 0x5004, 0x5006, 0x500F, 0x6001, 0x7004
PORT_REGISTERS = (PMLP, PMTU, PTYS, PAOS, PVLC)


@pytest.fixture
def ib() -> PortsBench:
    return PortsBench(IB)


@pytest.fixture
def eth() -> PortsBench:
    return PortsBench(ETH)


def refusal(bench: PortsBench, number: int, op_mod: int, **fields: int) -> Syndrome:
    payload = REGISTERS[number].layout.pack(**fields)
    room = 16 + len(payload)
    return bench.refusal(Opcode.ACCESS_REG, room=room, payload=payload, op_mod=op_mod, register_id=number)


@pytest.mark.requirement("C11", "E5")
def test_ptys_of_an_infiniband_port(ib: PortsBench) -> None:
    ptys = ib.register(PTYS, PtysReg, READ, local_port=1, proto_mask=1)
    assert (ptys.local_port, ptys.proto_mask) == (1, 1)
    assert (ptys.ib_link_width_oper, ptys.ib_proto_oper) == (4, 0x40), "4x, HDR"
    assert ptys.ib_link_width_capability == ptys.ib_link_width_admin == 0x7
    assert ptys.ib_proto_capability == ptys.ib_proto_admin == 0x77
    assert (ptys.eth_proto_capability, ptys.eth_proto_oper) == (0, 0)


@pytest.mark.requirement("C11", "E5")
def test_ptys_of_an_ethernet_port(eth: PortsBench) -> None:
    ptys = eth.register(PTYS, PtysReg, READ, local_port=1, proto_mask=4)
    assert (ptys.eth_proto_oper, ptys.eth_proto_capability) == (0x00800000, 0x00F00000)
    assert (ptys.ib_link_width_oper, ptys.ib_proto_oper, ptys.data_rate_oper) == (0, 0, 10)


@pytest.mark.parametrize(
    ("profile", "speed"), [("connectx-5-ib", 0x20), ("connectx-6-ib", 0x40), ("connectx-7-ib", 0x80)]
)
def test_speed_of_each_model(profile: str, speed: int) -> None:
    assert PortsBench(profile).register(PTYS, PtysReg, READ, local_port=1, proto_mask=1).ib_proto_oper == speed


def test_ptys_for_another_protocol(ib: PortsBench, eth: PortsBench) -> None:
    assert refusal(ib, PTYS, READ, local_port=1, proto_mask=4) is syndromes.WRONG_PROTOCOL
    assert refusal(eth, PTYS, READ, local_port=1, proto_mask=1) is syndromes.WRONG_PROTOCOL
    assert refusal(eth, PTYS, READ, local_port=1) is syndromes.WRONG_PROTOCOL


def test_ptys_of_a_plane(ib: PortsBench) -> None:
    assert refusal(ib, PTYS, READ, local_port=1, proto_mask=1, plane_ind=1) is syndromes.BAD_PLANE


@pytest.mark.parametrize(("profile", "most", "now"), [(IB, 4096, 4096), (ETH, 9216, 1522)])
def test_pmtu(profile: str, most: int, now: int) -> None:
    pmtu = PortsBench(profile).register(PMTU, PmtuReg, READ, local_port=1)
    assert (pmtu.max_mtu, pmtu.admin_mtu, pmtu.oper_mtu) == (most, now, now)


@pytest.mark.parametrize(
    ("profile", "mtu", "allowed"),
    [(IB, 2048, True), (IB, 1500, False), (IB, 0, False), (ETH, 9216, True), (ETH, 9217, False), (ETH, 67, False)],
)
def test_pmtu_is_set(profile: str, mtu: int, allowed: bool) -> None:
    bench = PortsBench(profile)
    if allowed:
        answer = bench.register(PMTU, PmtuReg, WRITE, local_port=1, admin_mtu=mtu)
        assert (answer.admin_mtu, answer.oper_mtu, bench.port.mtu) == (mtu, mtu, mtu)
    else:
        before = bench.port.mtu
        assert refusal(bench, PMTU, WRITE, local_port=1, admin_mtu=mtu) is syndromes.BAD_PORT_MTU
        assert bench.port.mtu == before


def test_pvlc_says_lanes_that_the_driver_knows(ib: PortsBench) -> None:
    pvlc = ib.register(PVLC, PvlcReg, READ, local_port=1)
    assert pvlc.vl_hw_cap == pvlc.vl_admin == pvlc.vl_operational == 4


def test_pmlp(ib: PortsBench) -> None:
    pmlp = ib.register(PMLP, PmlpReg, READ, local_port=1)
    assert pmlp.width == 4
    assert [pmlp.lane0_module_mapping, pmlp.lane3_module_mapping] == [0, 0x03030000]


def test_paos(ib: PortsBench) -> None:
    paos = ib.register(PAOS, PaosReg, READ, local_port=1)
    assert (paos.admin_status, paos.oper_status, paos.e) == (
        PortAdminStatus.UP,
        PortOperStatus.UP,
        PortEventMode.ALWAYS,
    )


@pytest.mark.requirement("C11")
def test_a_port_goes_down_and_up_again(ib: PortsBench) -> None:
    answer = ib.register(PAOS, PaosReg, WRITE, local_port=1, admin_status=PortAdminStatus.DOWN, ase=1)
    assert (answer.admin_status, answer.oper_status) == (PortAdminStatus.DOWN, PortOperStatus.DOWN)
    assert not ib.port.up
    ptys = ib.register(PTYS, PtysReg, READ, local_port=1, proto_mask=1)
    assert (ptys.ib_proto_oper, ptys.ib_link_width_oper) == (0, 0)
    ib.register(PAOS, PaosReg, WRITE, local_port=1, admin_status=PortAdminStatus.UP, ase=1)
    assert ib.port.state is PortState.ACTIVE
    port_1 = bytes(8) + b"\x10" + bytes(19)
    assert ib.recorder.events == [
        (EventType.PORT_CHANGE, port_1, PortChangeSubtype.DOWN),
        (EventType.PORT_CHANGE, port_1, PortChangeSubtype.ACTIVE),
    ]


def test_paos_changes_only_what_is_enabled(ib: PortsBench) -> None:
    ib.register(PAOS, PaosReg, WRITE, local_port=1, admin_status=PortAdminStatus.DOWN, e=PortEventMode.NONE)
    assert (ib.port.link.admin, ib.port.link.event_mode) == (PortAdminStatus.UP, PortEventMode.ALWAYS)
    ib.register(PAOS, PaosReg, WRITE, local_port=1, admin_status=PortAdminStatus.UP, ase=1)
    assert ib.recorder.events == []


@pytest.mark.parametrize(
    ("mode", "events"), [(PortEventMode.NONE, 0), (PortEventMode.ONCE, 1), (PortEventMode.ALWAYS, 2)]
)
def test_event_modes(ib: PortsBench, mode: PortEventMode, events: int) -> None:
    ib.register(PAOS, PaosReg, WRITE, local_port=1, ee=1, e=mode)
    for status in (PortAdminStatus.DOWN, PortAdminStatus.UP):
        ib.register(PAOS, PaosReg, WRITE, local_port=1, admin_status=status, ase=1)
    assert len(ib.recorder.events) == events


@pytest.mark.parametrize(
    ("fields", "syndrome"),
    [
        ({"ase": 1, "admin_status": 0}, syndromes.BAD_ADMIN_STATUS),
        ({"ase": 1, "admin_status": 3}, syndromes.BAD_ADMIN_STATUS),
        ({"ee": 1, "e": 3}, syndromes.BAD_EVENT_MODE),
        ({"swid": 1}, syndromes.BAD_SWID),
    ],
)
def test_bad_paos(ib: PortsBench, fields: dict[str, int], syndrome: Syndrome) -> None:
    assert refusal(ib, PAOS, WRITE, local_port=1, **fields) is syndrome
    assert ib.port.up


def test_swid_of_a_read(ib: PortsBench) -> None:
    assert refusal(ib, PAOS, READ, local_port=1, swid=1) is syndromes.BAD_SWID


def test_node_description(ib: PortsBench) -> None:
    assert ib.register(NODE_DESC, NodeDescReg, READ).desc == b"softhca connectx-6-ib".ljust(64, b"\0")
    ib.register(NODE_DESC, NodeDescReg, WRITE, desc=b"mine".ljust(64, b"\0"))
    assert ib.register(NODE_DESC, NodeDescReg, READ).desc == b"mine".ljust(64, b"\0")


@pytest.mark.requirement("E5")
def test_default_timeouts(ib: PortsBench) -> None:
    register = ib.register(0xC00E, DtorReg, READ)
    assert (register.tear_down_to.to_multiplier, register.tear_down_to.to_value) == (0, 3000)
    assert register.reset_unload_to.to_value == 300_000
    assert bytes(register)[0x28:0x2C] == (3000).to_bytes(4, "big")


@pytest.mark.parametrize("endianness", [0x00, 0x80])
def test_host_endianness(ib: PortsBench, endianness: int) -> None:
    assert ib.register(HOST_ENDIANNESS, HostEndiannessReg, WRITE, he=endianness).he == endianness


def test_host_endianness_that_is_none(ib: PortsBench) -> None:
    assert refusal(ib, HOST_ENDIANNESS, WRITE, he=1) is syndromes.BAD_ENDIANNESS


@pytest.mark.parametrize("local_port", [0, 2, 255])
@pytest.mark.parametrize("number", PORT_REGISTERS)
def test_another_port(ib: PortsBench, number: int, local_port: int) -> None:
    assert refusal(ib, number, READ, local_port=local_port) is syndromes.BAD_LOCAL_PORT


@pytest.mark.parametrize("number", [PMTU, PAOS])
def test_another_port_is_not_written(ib: PortsBench, number: int) -> None:
    assert refusal(ib, number, WRITE, local_port=2) is syndromes.BAD_LOCAL_PORT


@pytest.mark.requirement("E5")
@pytest.mark.parametrize("number", sorted(REGISTERS))
def test_methods_that_a_register_has_not(ib: PortsBench, number: int) -> None:
    register = REGISTERS[number]
    assert register.access in ("read", "write", "read, write")
    if register.read is None:
        assert refusal(ib, number, READ) is syndromes.REGISTER_NOT_READABLE
    if register.write is None:
        assert refusal(ib, number, WRITE) is syndromes.REGISTER_NOT_WRITABLE


@pytest.mark.parametrize("number", [0x0000, 0x5007, 0x500E, 0x507F, 0x907F, 0xC00F, 0xFFFF])
def test_registers_that_the_device_has_not(ib: PortsBench, number: int) -> None:
    fields = {"op_mod": READ, "register_id": number}
    assert ib.refusal(Opcode.ACCESS_REG, room=272, payload=bytes(256), **fields) is syndromes.UNKNOWN_REGISTER


@pytest.mark.requirement("E5")
@pytest.mark.parametrize("difference", [-4, 4, -1])
def test_a_payload_that_is_not_as_long_as_the_register(ib: PortsBench, difference: int) -> None:
    payload = bytes(PtysReg.SIZE + difference)
    fields = {"op_mod": READ, "register_id": PTYS}
    assert ib.refusal(Opcode.ACCESS_REG, room=80, payload=payload, **fields) is syndromes.REGISTER_SHORT


def test_a_read_needs_room(ib: PortsBench) -> None:
    payload = PmtuReg.pack(local_port=1)
    fields = {"op_mod": READ, "register_id": PMTU}
    assert ib.refusal(Opcode.ACCESS_REG, room=16 + 12, payload=payload, **fields) is syndromes.REGISTER_NO_ROOM
    assert len(bytes(ib.call(Opcode.ACCESS_REG, room=64, payload=payload, **fields))) == 64


@pytest.mark.parametrize("room", [16, 18, 20, 32])
def test_a_write_answers_as_much_as_there_is_room_for(ib: PortsBench, room: int) -> None:
    payload = HostEndiannessReg.pack(he=0x80)
    reply = ib.call(Opcode.ACCESS_REG, room=room, payload=payload, op_mod=WRITE, register_id=HOST_ENDIANNESS)
    assert bytes(reply)[16:] == payload[: (room - 16) // 4 * 4].ljust(room - 16, b"\0")


def test_registers_are_there_before_init_hca() -> None:
    assert COMMANDS[Opcode.ACCESS_REG].stages == {Stage.READY, Stage.INITIALIZED}


@pytest.mark.parametrize("profile", names())
def test_lanes_and_mtu_of_every_model_are_ones_that_linux_takes(profile: str) -> None:
    bench = PortsBench(profile)
    assert bench.register(PVLC, PvlcReg, READ, local_port=1).vl_hw_cap in (1, 2, 4, 8, 15)
    if bench.port.infiniband:
        assert bench.register(PMTU, PmtuReg, READ, local_port=1).max_mtu in (256, 512, 1024, 2048, 4096)
