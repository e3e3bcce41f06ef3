"""The HCA vport context, GID table and P_Key table."""

from __future__ import annotations

import pytest

from softhca.hca.command import COMMANDS, Stage
from softhca.prm.opcodes import Opcode
from softhca.prm.registers import PortAdminStatus
from softhca.prm.smp import PortCapability
from softhca.prm.syndromes import ports as syndromes
from softhca.prm.vport import VportAdminState
from tests.hca.ports_bench import ETH, IB, PortsBench

GUID = bytes.fromhex("02ca060300000000")
CONTEXT, MODIFY = Opcode.QUERY_HCA_VPORT_CONTEXT, Opcode.MODIFY_HCA_VPORT_CONTEXT
GID, PKEY = Opcode.QUERY_HCA_VPORT_GID, Opcode.QUERY_HCA_VPORT_PKEY
CAPABILITIES = PortCapability.SYSTEM_IMAGE_GUID | PortCapability.EXTENDED_SPEEDS


@pytest.fixture
def bench() -> PortsBench:
    return PortsBench(IB)


@pytest.mark.requirement("C11")
def test_context_of_an_active_port(bench: PortsBench) -> None:
    raw = bytes(bench.call(CONTEXT))[0x10:]
    assert raw[0x20:0x24] == bytes.fromhex("40005244"), "SMI; physical state LINK_UP; as the port; ACTIVE twice"
    assert raw[0x28:0x40] == GUID * 3
    context = bench.call(CONTEXT).hca_vport_context
    assert (context.lid, context.sm_lid, context.lmc, context.grh_required) == (1, 0xBFFF, 0, 0)
    assert (context.cap_mask1, context.field_select) == (CAPABILITIES, 0)


@pytest.mark.requirement("C11")
def test_context_of_a_port_that_is_down(bench: PortsBench) -> None:
    bench.port.set_admin(PortAdminStatus.DOWN)
    context = bench.call(CONTEXT).hca_vport_context
    assert (context.port_physical_state, context.port_state, context.vport_state) == (3, 1, 1)


def test_a_vport_down_on_a_port_that_is_up(bench: PortsBench) -> None:
    bench.fn.vport.admin = VportAdminState.DOWN
    context = bench.call(CONTEXT).hca_vport_context
    assert (context.port_state, context.vport_state, context.vport_state_policy) == (4, 1, 0)


def test_the_software_above_says_that_it_is_there(bench: PortsBench) -> None:
    select = bench.call(CONTEXT).hca_vport_context.cap_mask1_field_select
    assert select & PortCapability.CM
    assert select & PortCapability.IS_SM
    change = {"cap_mask1": PortCapability.CM, "cap_mask1_field_select": PortCapability.CM | PortCapability.IS_SM}
    bench.call(MODIFY, hca_vport_context=change)
    assert bench.call(CONTEXT).hca_vport_context.cap_mask1 == CAPABILITIES | PortCapability.CM
    bench.call(MODIFY, hca_vport_context=change | {"cap_mask1": 0})
    assert bench.call(CONTEXT).hca_vport_context.cap_mask1 == CAPABILITIES


@pytest.mark.parametrize(
    "change",
    [{"cap_mask1_field_select": PortCapability.SYSTEM_IMAGE_GUID}, {"cap_mask2_field_select": 1}],
)
def test_a_capability_that_is_the_device_s_own(bench: PortsBench, change: dict[str, int]) -> None:
    assert bench.refusal(MODIFY, hca_vport_context=change) is syndromes.CAP_MASK_FIXED


@pytest.mark.parametrize("select", [1, 2, 4, 8])
def test_fields_that_the_function_may_not_change(bench: PortsBench, select: int) -> None:
    assert bench.refusal(MODIFY, hca_vport_context={"field_select": select}) is syndromes.HCA_VPORT_FIELD_FIXED


@pytest.mark.parametrize("opcode", [CONTEXT, MODIFY, GID, PKEY])
def test_who_may_ask(bench: PortsBench, opcode: Opcode) -> None:
    assert PortsBench(ETH).refusal(opcode) is syndromes.NOT_INFINIBAND
    assert bench.refusal(opcode, port_num=2) is syndromes.NO_SUCH_PORT
    assert bench.refusal(opcode, other_vport=1, vport_number=1) is syndromes.NO_SUCH_VPORT
    assert COMMANDS[opcode].stages == {Stage.INITIALIZED}
    assert COMMANDS[opcode].op_mods == frozenset({0})


def test_gid_table(bench: PortsBench) -> None:
    reply = bench.call(GID, room=32, gid_index=0)
    assert reply.gids_num == 1
    assert bytes(reply)[16:] == bytes.fromhex("fe80000000000000") + GUID
    assert bytes(bench.call(GID, room=32, gid_index=7))[16:] == bytes.fromhex("fe80") + bytes(14)


def test_whole_gid_table(bench: PortsBench) -> None:
    reply = bench.call(GID, room=16 + 8 * 16, gid_index=0xFFFF)
    assert reply.gids_num == 8
    assert bytes(reply)[16:32] == bench.port.gid(0)


@pytest.mark.parametrize("index", [8, 0xFFFE])
def test_beyond_the_gid_table(bench: PortsBench, index: int) -> None:
    assert bench.refusal(GID, room=32, gid_index=index) is syndromes.GID_INDEX


@pytest.mark.parametrize(("index", "room"), [(0, 16), (0, 31), (0xFFFF, 16 + 7 * 16)])
def test_gids_need_room(bench: PortsBench, index: int, room: int) -> None:
    assert bench.refusal(GID, room=room, gid_index=index) is syndromes.TABLE_NO_ROOM


def test_pkey_table(bench: PortsBench) -> None:
    assert bytes(bench.call(PKEY, room=20, pkey_index=0))[16:] == bytes.fromhex("0000ffff")
    assert not any(bytes(bench.call(PKEY, room=20, pkey_index=127))[16:])


def test_whole_pkey_table(bench: PortsBench) -> None:
    reply = bytes(bench.call(PKEY, room=16 + 128 * 4, pkey_index=0xFFFF))
    assert reply[16:] == bytes.fromhex("0000ffff") + bytes(127 * 4)


@pytest.mark.parametrize("index", [128, 0xFFFE])
def test_beyond_the_pkey_table(bench: PortsBench, index: int) -> None:
    assert bench.refusal(PKEY, room=20, pkey_index=index) is syndromes.PKEY_INDEX


@pytest.mark.parametrize(("index", "room"), [(0, 16), (0xFFFF, 16 + 127 * 4)])
def test_pkeys_need_room(bench: PortsBench, index: int, room: int) -> None:
    assert bench.refusal(PKEY, room=room, pkey_index=index) is syndromes.TABLE_NO_ROOM
