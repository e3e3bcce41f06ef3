"""Vport state and NIC vport context."""

from __future__ import annotations

from typing import Any

import pytest

from softhca.hca.command import COMMANDS, Stage
from softhca.prm.opcodes import Opcode
from softhca.prm.registers import PortAdminStatus
from softhca.prm.syndromes import Syndrome
from softhca.prm.syndromes import ports as syndromes
from softhca.prm.vport import AllowedListType, VportAdminState
from tests.hca.ports_bench import ETH, IB, PortsBench

MAC = 0x02CA_7E00_0000
QUERY, MODIFY = Opcode.QUERY_NIC_VPORT_CONTEXT, Opcode.MODIFY_NIC_VPORT_CONTEXT


@pytest.fixture
def eth() -> PortsBench:
    return PortsBench(ETH)


@pytest.fixture
def ib() -> PortsBench:
    return PortsBench(IB)


def macs(*addresses: int) -> bytes:
    return b"".join(address.to_bytes(8, "big") for address in addresses)


def vlans(*ids: int) -> bytes:
    return b"".join((number << 32).to_bytes(8, "big") for number in ids)


def set_list(bench: PortsBench, kind: AllowedListType, payload: bytes, *, size: int | None = None) -> None:
    count = len(payload) // 8 if size is None else size
    bench.call(
        MODIFY,
        payload=payload,
        field_select={"addresses_list": 1},
        nic_vport_context={"allowed_list_type": kind, "allowed_list_size": count},
    )


@pytest.mark.requirement("C11", "E6")
def test_link_and_vport_are_two_conditions(ib: PortsBench) -> None:
    state = ib.call(Opcode.QUERY_VPORT_STATE)
    assert (state.state, state.admin_state) == (1, VportAdminState.AUTO)
    ib.call(Opcode.MODIFY_VPORT_STATE, admin_state=VportAdminState.DOWN)
    assert ib.call(Opcode.QUERY_VPORT_STATE).state == 0
    assert ib.port.up
    ib.call(Opcode.MODIFY_VPORT_STATE, admin_state=VportAdminState.UP)
    ib.port.set_admin(PortAdminStatus.DOWN)
    state = ib.call(Opcode.QUERY_VPORT_STATE)
    assert (state.state, state.admin_state) == (0, VportAdminState.UP)


def test_a_vport_state_that_is_none(ib: PortsBench) -> None:
    assert ib.refusal(Opcode.MODIFY_VPORT_STATE, admin_state=3) is syndromes.BAD_VPORT_STATE


@pytest.mark.parametrize("opcode", [Opcode.QUERY_VPORT_STATE, Opcode.MODIFY_VPORT_STATE, QUERY, MODIFY])
def test_another_vport(eth: PortsBench, opcode: Opcode) -> None:
    assert eth.refusal(opcode, other_vport=1, vport_number=1) is syndromes.NO_SUCH_VPORT
    eth.call(opcode, other_vport=1, vport_number=0)
    assert COMMANDS[opcode].stages == {Stage.INITIALIZED}
    assert COMMANDS[opcode].op_mods == frozenset({0})


@pytest.mark.parametrize("opcode", [QUERY, MODIFY])
def test_an_infiniband_port_has_no_nic_vport(ib: PortsBench, opcode: Opcode) -> None:
    assert ib.refusal(opcode) is syndromes.NOT_ETHERNET


@pytest.mark.requirement("C11")
def test_context_after_init_hca(eth: PortsBench) -> None:
    raw = bytes(eth.call(QUERY))
    context = eth.call(QUERY).nic_vport_context
    assert raw[0x10 + 0xF4 + 2 : 0x10 + 0xF4 + 8] == MAC.to_bytes(6, "big"), "where drivers read the MAC"
    assert (context.roce_en, context.mtu, context.allowed_list_size) == (0, 1522, 0)
    assert context.node_guid == context.port_guid == context.system_image_guid == eth.port.guid == 0x02CA7E0300000000
    assert (context.promisc_uc, context.promisc_mc, context.promisc_all) == (0, 0, 0)


def test_roce_is_enabled_and_disabled(eth: PortsBench) -> None:
    for on in (1, 0):
        eth.call(MODIFY, field_select={"roce_en": 1}, nic_vport_context={"roce_en": on})
        assert eth.call(QUERY).nic_vport_context.roce_en == on


def test_roce_that_was_not_selected(eth: PortsBench) -> None:
    eth.fn.caps.general.roce = 0
    fields: dict[str, Any] = {"field_select": {"roce_en": 1}, "nic_vport_context": {"roce_en": 1}}
    assert eth.refusal(MODIFY, **fields) is syndromes.ROCE_NOT_SUPPORTED


@pytest.mark.parametrize(("mtu", "allowed"), [(68, True), (9216, True), (67, False), (9217, False)])
def test_mtu(eth: PortsBench, mtu: int, allowed: bool) -> None:
    fields: dict[str, Any] = {"field_select": {"mtu": 1}, "nic_vport_context": {"mtu": mtu}}
    if allowed:
        eth.call(MODIFY, **fields)
        assert eth.call(QUERY).nic_vport_context.mtu == mtu
    else:
        assert eth.refusal(MODIFY, **fields) is syndromes.BAD_VPORT_MTU


def test_address(eth: PortsBench) -> None:
    address = {"mac_addr_47_32": 0x0202, "mac_addr_31_0": 0x03040506}
    eth.call(MODIFY, field_select={"permanent_address": 1}, nic_vport_context={"permanent_address": address})
    assert eth.fn.vport.mac == 0x020203040506
    assert eth.call(QUERY).nic_vport_context.permanent_address.to_dict() == address


@pytest.mark.parametrize("upper", [0x0000, 0x0100])
def test_an_address_that_no_port_has(eth: PortsBench, upper: int) -> None:
    address = {"mac_addr_47_32": upper}
    fields: dict[str, Any] = {
        "field_select": {"permanent_address": 1},
        "nic_vport_context": {"permanent_address": address},
    }
    assert eth.refusal(MODIFY, **fields) is syndromes.BAD_MAC


def test_promiscuity(eth: PortsBench) -> None:
    eth.call(MODIFY, field_select={"promisc": 1}, nic_vport_context={"promisc_uc": 1, "promisc_all": 1})
    context = eth.call(QUERY).nic_vport_context
    assert (context.promisc_uc, context.promisc_mc, context.promisc_all) == (1, 0, 1)


@pytest.mark.parametrize(
    "field",
    [
        "affiliation", "disable_uc_local_lb", "disable_mc_local_lb", "node_guid", "port_guid", "min_inline",
        "change_event",
    ],
)  # fmt: skip
def test_a_field_that_may_not_be_changed(eth: PortsBench, field: str) -> None:
    fields: dict[str, Any] = {"field_select": {field: 1, "roce_en": 1}, "nic_vport_context": {"roce_en": 1}}
    assert eth.refusal(MODIFY, **fields) is syndromes.NIC_VPORT_FIELD_FIXED
    assert not eth.fn.vport.roce_enabled, "nothing of it has taken effect"


def test_a_reserved_bit_of_field_select(eth: PortsBench) -> None:
    fields: dict[str, Any] = {"field_select": (1).to_bytes(4, "big")}
    assert eth.refusal(MODIFY, **fields) is syndromes.NIC_VPORT_FIELD_FIXED


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (AllowedListType.UC, macs(0x020000000001, 0x020000000002)),
        (AllowedListType.MC, macs(0x01005E000001, 0x333300000001, 0xFFFFFFFFFFFF)),
        (AllowedListType.VLAN, vlans(0, 1, 4095)),
    ],
)
def test_lists(eth: PortsBench, kind: AllowedListType, payload: bytes) -> None:
    set_list(eth, kind, payload)
    count = len(payload) // 8
    reply = eth.call(QUERY, room=0x110 + len(payload), allowed_list_type=kind)
    context = reply.nic_vport_context
    assert (context.allowed_list_type, context.allowed_list_size) == (kind, count)
    assert bytes(reply)[0x110:] == payload
    short = eth.call(QUERY, room=0x110 + 8, allowed_list_type=kind)
    assert short.nic_vport_context.allowed_list_size == count
    assert bytes(short)[0x110:] == payload[:8]
    set_list(eth, kind, b"")
    assert eth.call(QUERY, allowed_list_type=kind).nic_vport_context.allowed_list_size == 0


def refused_list(bench: PortsBench, kind: int, payload: bytes, size: int) -> Syndrome:
    context = {"allowed_list_type": kind, "allowed_list_size": size}
    return bench.refusal(MODIFY, payload=payload, field_select={"addresses_list": 1}, nic_vport_context=context)


@pytest.mark.parametrize(
    ("kind", "entry"),
    [
        (AllowedListType.UC, 0),
        (AllowedListType.UC, 0x01005E000001),
        (AllowedListType.UC, 1 << 48),
        (AllowedListType.MC, 0x020000000001),
        (AllowedListType.VLAN, 4096 << 32),
        (AllowedListType.VLAN, 1),
    ],
)
def test_an_entry_of_another_kind(eth: PortsBench, kind: AllowedListType, entry: int) -> None:
    assert refused_list(eth, kind, entry.to_bytes(8, "big"), 1) is syndromes.BAD_LIST_ENTRY


@pytest.mark.parametrize("kind", [AllowedListType.UC, AllowedListType.MC])
def test_a_list_is_bounded(eth: PortsBench, kind: AllowedListType) -> None:
    payload = macs(*(0x020000000000 + (kind << 40) + index + 1 for index in range(129)))
    assert refused_list(eth, kind, payload, 129) is syndromes.LIST_TOO_LONG
    set_list(eth, kind, payload[: 128 * 8])


def test_a_list_that_the_message_does_not_hold(eth: PortsBench) -> None:
    assert refused_list(eth, AllowedListType.UC, macs(0x020000000001), 2) is syndromes.LIST_SHORT


@pytest.mark.parametrize("kind", [3, 7])
def test_a_list_that_is_none(eth: PortsBench, kind: int) -> None:
    assert refused_list(eth, kind, b"", 0) is syndromes.BAD_LIST_TYPE
    assert eth.refusal(QUERY, allowed_list_type=kind) is syndromes.BAD_LIST_TYPE


@pytest.mark.requirement("F8")
def test_a_vport_is_new_after_init_hca(eth: PortsBench) -> None:
    eth.call(MODIFY, field_select={"roce_en": 1}, nic_vport_context={"roce_en": 1})
    eth.fn.forget_objects()
    assert eth.call(QUERY).nic_vport_context.roce_en == 0


def test_what_comes_back(ib: PortsBench, eth: PortsBench) -> None:
    vport, port = ib.fn.vport, ib.port
    assert vport.is_own(port, 1, None, 0)
    assert not vport.is_own(port, 2, None, 0)
    assert vport.is_own(port, 1, port.gid(0), 0)
    assert not vport.is_own(port, 1, bytes(16), 0)
    assert eth.fn.vport.is_own(eth.port, 0, None, MAC)
    assert not eth.fn.vport.is_own(eth.port, 0, None, MAC + 1)
