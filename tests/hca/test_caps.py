"""Capabilities: what is masked, what is current, and what SET_HCA_CAP takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from softhca.hca.caps import IMPLEMENTED, TYPES, Capabilities, Limit
from softhca.hca.command import COMMANDS, Stage
from softhca.hca.profile import PAGES, load_profile, names
from softhca.prm.hca_cap import CapType, CmdHcaCap, HcaCapUnion, RoceCap
from softhca.prm.layout import Layout
from softhca.prm.opcodes import Opcode
from softhca.prm.syndromes import ports as syndromes
from tests.hca.ports_bench import ETH, IB, PortsBench

MAXIMUM, CURRENT = 0, 1


@pytest.fixture
def ib() -> PortsBench:
    return PortsBench(IB, Stage.READY)


@pytest.fixture
def eth() -> PortsBench:
    return PortsBench(ETH, Stage.READY)


def query(bench: PortsBench, kind: CapType, which: int) -> HcaCapUnion:
    reply = bench.call(Opcode.QUERY_HCA_CAP, op_mod=kind << 1 | which)
    page: HcaCapUnion = reply.capability
    return page


def select(bench: PortsBench, kind: CapType, page: bytes | HcaCapUnion) -> None:
    bench.call(Opcode.SET_HCA_CAP, op_mod=kind << 1, capability=bytes(page).ljust(4096, b"\0"))


def general(bench: PortsBench, which: int = CURRENT) -> CmdHcaCap:
    return query(bench, CapType.GENERAL, which).cmd_hca_cap


def leaves(page: Layout) -> Iterator[tuple[str, Any]]:
    """Each field that is no structure, with the way to it."""
    for name, field in page.FIELDS.items():
        value = getattr(page, name)
        if field.layout is not None and field.count is None:
            yield from ((f"{name}.{inner}", found) for inner, found in leaves(value))
        else:
            yield name, value


@pytest.mark.parametrize("profile", names())
@pytest.mark.parametrize("page", sorted(PAGES))
def test_nothing_is_claimed_beyond_the_mask(profile: str, page: str) -> None:
    claimed = Capabilities(load_profile(profile)).page(page, current=False)
    for field, value in leaves(claimed):
        if field not in IMPLEMENTED[page]:
            assert not value if isinstance(value, int) else not any(value), field


@pytest.mark.parametrize("field", ["dct", "tag_matching", "eswitch_manager", "log_max_uctx"])
def test_what_the_model_has_and_the_device_has_not(ib: PortsBench, field: str) -> None:
    assert ib.profile.capabilities["general"][field]
    assert getattr(general(ib, MAXIMUM), field) == 0


@pytest.mark.parametrize(
    "field",
    [
        "umr_modify_entity_size_disabled",
        "repeated_block_disabled",
    ],
)
def test_what_says_that_something_does_not_work_is_set(ib: PortsBench, field: str) -> None:
    assert getattr(general(ib, MAXIMUM), field) == 1


def test_limits() -> None:
    assert Limit(most=4).apply(9) == 4
    assert Limit(most=4).apply(3) == 3
    assert Limit(bits=0x5).apply(0x7) == 0x5
    assert Limit(always=1).apply(0) == 1
    assert Limit().apply(77) == 77
    words = [str(limit) for limit in (Limit(most=4), Limit(bits=5), Limit(always=1), Limit())]
    assert words == ["at most 4", "of the bits 0x5", "always 1", "as the profile says"]


@pytest.mark.requirement("C7", "E6")
def test_maximum_and_current_are_asked_for_apart(ib: PortsBench) -> None:
    assert general(ib, MAXIMUM).cmdif_checksum == 3
    assert general(ib, CURRENT).cmdif_checksum == 1
    assert general(ib, MAXIMUM).log_max_qp == general(ib, CURRENT).log_max_qp == 18


@pytest.mark.requirement("C7")
@pytest.mark.parametrize("kind", sorted(TYPES))
def test_every_page_of_the_device_is_read(eth: PortsBench, kind: CapType) -> None:
    page = bytes(query(eth, kind, CURRENT))
    assert page == bytes(eth.fn.caps.page(TYPES[kind], current=True)).ljust(4096, b"\0")


def test_roce_page(eth: PortsBench, ib: PortsBench) -> None:
    page = query(eth, CapType.ROCE, CURRENT).roce_cap
    assert (page.roce_version, page.l3_type, page.roce_address_table_size) == (0x5, 0x6, 255)
    assert page.sw_r_roce_src_udp_port == 0
    assert not any(bytes(query(ib, CapType.ROCE, CURRENT)))


@pytest.mark.parametrize("kind", [CapType.QOS, CapType.ESWITCH, CapType.GENERAL_2, 0x7F])
def test_a_page_that_the_device_has_not(ib: PortsBench, kind: int) -> None:
    for opcode in (Opcode.QUERY_HCA_CAP, Opcode.SET_HCA_CAP):
        assert ib.refusal(opcode, op_mod=kind << 1) is syndromes.UNSUPPORTED_CAPABILITY_TYPE


@pytest.mark.parametrize("field", ["other_function", "ec_vf_function"])
def test_another_function(ib: PortsBench, field: str) -> None:
    fields: dict[str, Any] = {field: 1}
    for opcode in (Opcode.QUERY_HCA_CAP, Opcode.SET_HCA_CAP):
        assert ib.refusal(opcode, **fields) is syndromes.NO_OTHER_FUNCTION


@pytest.mark.requirement("C7")
def test_what_linux_sends(ib: PortsBench) -> None:
    page = query(ib, CapType.GENERAL, CURRENT)
    wanted = page.cmd_hca_cap
    wanted.pkey_table_size = 0
    wanted.log_max_qp = min(18, general(ib, MAXIMUM).log_max_qp)
    wanted.cmdif_checksum = 0
    wanted.log_uar_page_sz = 0
    select(ib, CapType.GENERAL, page)
    assert general(ib).cmdif_checksum == 0
    assert ib.fn.caps.general.log_max_qp == 18


@pytest.mark.requirement("C7")
def test_what_tinygrad_sends(eth: PortsBench) -> None:
    page = query(eth, CapType.GENERAL, CURRENT)
    wanted = page.cmd_hca_cap
    wanted.pkey_table_size, wanted.cmdif_checksum, wanted.log_uar_page_sz = 0, 0, 0
    wanted.log_max_qp, wanted.roce = 18, 1
    select(eth, CapType.GENERAL, page)
    roce = query(eth, CapType.ROCE, CURRENT)
    roce.roce_cap.sw_r_roce_src_udp_port = 1
    select(eth, CapType.ROCE, roce)
    assert eth.fn.caps.general.log_max_qp == 18
    assert eth.fn.caps.roce.sw_r_roce_src_udp_port == 1


@pytest.mark.requirement("C7")
@pytest.mark.parametrize(
    ("field", "value", "syndrome"),
    [
        ("log_max_qp", 19, syndromes.CAPABILITY_ABOVE_MAXIMUM),
        ("pkey_table_size", 1, syndromes.CAPABILITY_ABOVE_MAXIMUM),
        ("cmdif_checksum", 2, syndromes.BAD_CAPABILITY_VALUE),
        ("roce", 1, syndromes.CAPABILITY_ABOVE_MAXIMUM),
        ("log_max_cq", 10, syndromes.CAPABILITY_NOT_SELECTABLE),
        ("log_uar_page_sz", 4, syndromes.CAPABILITY_NOT_SELECTABLE),
        ("dct", 1, syndromes.CAPABILITY_NOT_SELECTABLE),
        ("general_obj_types", 1 << 63, syndromes.CAPABILITY_NOT_SELECTABLE),
    ],
)
def test_what_may_not_be_selected(ib: PortsBench, field: str, value: int, syndrome: object) -> None:
    before = bytes(ib.fn.caps.general)
    page = query(ib, CapType.GENERAL, CURRENT)
    setattr(page.cmd_hca_cap, field, value)
    page.cmd_hca_cap.log_max_qp = page.cmd_hca_cap.log_max_qp if field == "log_max_qp" else 4
    refused = ib.refusal(Opcode.SET_HCA_CAP, op_mod=0, capability=bytes(page))
    assert refused is syndrome
    assert bytes(ib.fn.caps.general) == before, "nothing of it has taken effect"


@pytest.mark.parametrize("at", [0x08, 0x100, 0xFFF])
def test_reserved_bits_of_a_page(ib: PortsBench, at: int) -> None:
    page = bytearray(bytes(query(ib, CapType.GENERAL, CURRENT)))
    page[at] |= 1
    assert ib.refusal(Opcode.SET_HCA_CAP, op_mod=0, capability=bytes(page)) is syndromes.RESERVED_CAPABILITY


def test_a_structure_and_an_array_within_a_page(eth: PortsBench) -> None:
    page = query(eth, CapType.ODP, CURRENT)
    page.odp_cap.transport_page_fault_scheme_cap.rc_odp_caps.send = 0
    refused = eth.refusal(Opcode.SET_HCA_CAP, op_mod=CapType.ODP << 1, capability=bytes(page))
    assert refused is syndromes.CAPABILITY_NOT_SELECTABLE
    page = query(eth, CapType.ETHERNET_OFFLOADS, CURRENT)
    page.per_protocol_networking_offload_caps.lro_timer_supported_periods[2] = 8
    refused = eth.refusal(Opcode.SET_HCA_CAP, op_mod=CapType.ETHERNET_OFFLOADS << 1, capability=bytes(page))
    assert refused is syndromes.CAPABILITY_NOT_SELECTABLE


@pytest.mark.requirement("C7", "G4")
def test_what_faults_is_selected(ib: PortsBench) -> None:
    def faulting(which: int) -> list[int]:
        scheme = query(ib, CapType.ODP, which).odp_cap.transport_page_fault_scheme_cap
        return [int.from_bytes(bytes(part)[:1], "big") for part in (scheme.rc_odp_caps, scheme.xrc_odp_caps)]

    assert faulting(MAXIMUM) == [0b1111_0100, 0b1011_0100]
    assert faulting(CURRENT) == [0b1111_0000, 0]
    page = query(ib, CapType.ODP, CURRENT)
    scheme = page.odp_cap.transport_page_fault_scheme_cap
    scheme.rc_odp_caps.srq_receive = scheme.xrc_odp_caps.send = scheme.xrc_odp_caps.read = 1
    select(ib, CapType.ODP, page)
    assert faulting(CURRENT) == [0b1111_0100, 0b1001_0000]
    scheme.xrc_odp_caps.receive = 1
    refused = ib.refusal(Opcode.SET_HCA_CAP, op_mod=CapType.ODP << 1, capability=bytes(page))
    assert refused is syndromes.CAPABILITY_ABOVE_MAXIMUM


def test_a_page_written_back_as_it_is(eth: PortsBench) -> None:
    for kind in TYPES:
        select(eth, kind, query(eth, kind, CURRENT))


def test_op_mod_of_set_has_no_lowest_bit(ib: PortsBench) -> None:
    page = bytes(query(ib, CapType.GENERAL, CURRENT))
    assert ib.refusal(Opcode.SET_HCA_CAP, op_mod=1, capability=page) is syndromes.UNSUPPORTED_CAPABILITY_TYPE


@pytest.mark.requirement("C7")
def test_after_init_hca_capabilities_are_fixed(ib: PortsBench) -> None:
    page = bytes(query(ib, CapType.GENERAL, CURRENT))
    ib.fn.stage = Stage.INITIALIZED
    assert ib.refusal(Opcode.SET_HCA_CAP, op_mod=0, capability=page) is syndromes.CAPABILITIES_FIXED
    assert general(ib).log_max_qp == 18


@pytest.mark.requirement("C5")
def test_stages_of_the_commands() -> None:
    for opcode in (Opcode.QUERY_HCA_CAP, Opcode.SET_HCA_CAP, Opcode.QUERY_ADAPTER):
        assert COMMANDS[opcode].stages == {Stage.READY, Stage.INITIALIZED}


@pytest.mark.requirement("F8")
def test_a_selection_is_forgotten(eth: PortsBench) -> None:
    page = query(eth, CapType.GENERAL, CURRENT)
    page.cmd_hca_cap.roce = 0
    select(eth, CapType.GENERAL, page)
    assert not eth.fn.caps.general.roce
    eth.fn.caps.reset()
    assert eth.fn.caps.general.roce
    assert eth.fn.caps.general.cmdif_checksum == 1


@pytest.mark.parametrize(
    ("field", "least"),
    [
        ("num_ports", 1), ("ib_virt", 1), ("xrc", 1), ("log_max_eq", 7), ("log_max_qp_sz", 15), ("log_max_cq_sz", 16),
        ("log_max_srq_sz", 15), ("max_wqe_sz_sq", 1024), ("max_wqe_sz_rq", 512), ("device_frequency_khz", 1),
        ("umr_modify_entity_size_disabled", 1), ("log_max_transport_domain", 1), ("log_pg_sz", 12),
    ],
)  # fmt: skip
@pytest.mark.parametrize("profile", [name for name in names() if name.endswith("-ib")])
def test_what_mlx5_ib_needs(profile: str, field: str, least: int) -> None:
    assert getattr(Capabilities(load_profile(profile)).general, field) >= least


def test_typed_pages() -> None:
    caps = Capabilities(load_profile(ETH))
    assert isinstance(caps.roce, RoceCap)
    for name in ("general", "ethernet", "roce"):
        assert getattr(caps, name) is caps.page(name, current=True)
