"""The switch of a fabric: directed routes, and its own agent."""

from __future__ import annotations

import pytest

from softhca.hca.fabric import Fabric
from softhca.hca.subnet import SM_GUID, SM_LID
from softhca.hca.switch import Switch
from softhca.prm.smp import NodeInfo, PortInfo, Smp, SwitchInfo
from tests.hca.bench import Bench
from tests.hca.test_fabric import benches

NODE_INFO, SWITCH_INFO, PORT_INFO, PKEY_TABLE = 0x11, 0x12, 0x15, 0x16


@pytest.fixture
def scene() -> tuple[Fabric, list[Bench], Switch]:
    fabric, cards = benches(3)
    return fabric, cards, fabric.manager.switch


def smp(*ports: int, pointer: int = 1, attribute: int = NODE_INFO, status: int = 0, method: int = 1) -> Smp:
    """A datagram as its first node sends it: over these ports, the first one its own."""
    return Smp.new(
        base_version=1, mgmt_class=0x81, class_version=1, method=method, status=status, attribute_id=attribute,
        class_specific=pointer << 8 | len(ports), dr_slid=0xFFFF, dr_dlid=0xFFFF,
        path=bytes((0, *ports)).ljust(128, b"\0"),
    )  # fmt: skip


@pytest.mark.requirement("G5")
def test_it_answers_what_ends_at_it(scene: tuple[Fabric, list[Bench], Switch]) -> None:
    _, cards, switch = scene
    mad = smp(1)
    assert switch.route(cards[1].fn, mad) is cards[1].fn
    assert (mad.method, mad.status, mad.class_specific) == (0x81, 0x8000, 0x0101)
    assert mad.path[64:66] == b"\0\2"
    node = NodeInfo(mad.data)
    assert (node.node_type, node.num_ports, node.node_guid, node.local_port_num) == (2, 3, SM_GUID, 2)


@pytest.mark.requirement("G5")
def test_a_query_and_its_answer_pass(scene: tuple[Fabric, list[Bench], Switch]) -> None:
    _, cards, switch = scene
    mad = smp(1, 3)
    assert switch.route(cards[0].fn, mad) is cards[2].fn
    assert (mad.status, mad.class_specific, mad.path[64:67]) == (0, 0x0202, b"\0\1\0")
    mad.status = 0x8000  # the end of the route has answered, and sent it off with the pointer at the last hop
    assert switch.route(cards[2].fn, mad) is cards[0].fn
    assert mad.class_specific == 0x0102


@pytest.mark.requirement("G5")
@pytest.mark.parametrize(
    "mad",
    [smp(1, 9), smp(1, 0), smp(1, pointer=0), smp(1, pointer=2), smp(1, 3, pointer=1, status=0x8000), smp(*[1] * 64)],
    ids=["no such port", "port 0", "not begun", "beyond its end", "back at its start", "too many hops"],
)
def test_what_has_no_way_is_dropped(scene: tuple[Fabric, list[Bench], Switch], mad: Smp) -> None:
    assert scene[2].route(scene[1][0].fn, mad) is None


@pytest.mark.requirement("G5")
def test_a_route_that_begins_or_ends_at_a_lid_is_dropped(scene: tuple[Fabric, list[Bench], Switch]) -> None:
    for name in ("dr_slid", "dr_dlid"):
        mad = smp(1)
        setattr(mad, name, 1)
        assert scene[2].route(scene[1][0].fn, mad) is None


def answered(switch: Switch, attribute: int, modifier: int = 0, method: int = 1) -> Smp:
    mad = Smp.new(method=method, attribute_id=attribute, attribute_modifier=modifier)
    switch.answer(mad, 1)
    return mad


@pytest.mark.requirement("G5")
def test_its_ports(scene: tuple[Fabric, list[Bench], Switch]) -> None:
    _, cards, switch = scene
    own = PortInfo(answered(switch, PORT_INFO).data)
    assert (own.lid, own.port_state, own.capability_mask) == (SM_LID, 4, 0x4002)
    for number, bench in enumerate(cards, 1):
        port = PortInfo(answered(switch, PORT_INFO, number).data)
        assert (port.lid, port.port_state, port.local_port_num) == (0, bench.card.port.state, 1)
        assert port.link_width_active == 2, "4x"
    assert answered(switch, PORT_INFO, 4).status == 0x1C
    assert SwitchInfo(answered(switch, SWITCH_INFO).data).linear_fdb_top == SM_LID
    assert answered(switch, 0x10).data.rstrip(b"\0") == b"softhca fabric"


@pytest.mark.requirement("G5")
@pytest.mark.parametrize(("attribute", "method", "status"), [(PKEY_TABLE, 1, 0x0C), (NODE_INFO, 2, 0x08)])
def test_what_it_does_not_answer(
    scene: tuple[Fabric, list[Bench], Switch], attribute: int, method: int, status: int
) -> None:
    mad = answered(scene[2], attribute, method=method)
    assert (mad.status, mad.method) == (status, 0x81)
