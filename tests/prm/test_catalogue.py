"""Properties that hold for every declared structure."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softhca.prm.catalogue import COMMANDS, LAYOUTS
from softhca.prm.layout import Field, Layout
from softhca.prm.opcodes import Opcode
from softhca.prm.sample import sample

ALL = sorted(LAYOUTS)
names = st.sampled_from(ALL)
seeds = st.integers(0, 2**32 - 1)


@settings(deadline=None)
@given(names, seeds)
def test_a_sample_is_valid(name: str, seed: int) -> None:
    view = sample(LAYOUTS[name], Random(seed))
    assert view.reserved_bits() == 0
    check_names(view)


def check_names(view: Layout) -> None:
    """Every field that has names, and no field over it, holds one of them."""
    fields = list(view.FIELDS.values())
    for field in fields:
        if field.enum is not None and not any(overlap(field, other) for other in fields if other is not field):
            assert getattr(view, field.name) in {*field.enum, 0}, field


def overlap(one: Field, other: Field) -> bool:
    return one.bit < other.bit + other.bits and other.bit < one.bit + one.bits


@settings(deadline=None)
@given(names, seeds)
def test_a_sample_is_the_same_for_a_seed(name: str, seed: int) -> None:
    assert bytes(sample(LAYOUTS[name], Random(seed))) == bytes(sample(LAYOUTS[name], Random(seed)))


@settings(deadline=None)
@given(names, seeds)
def test_what_is_taken_apart_is_put_together_again(name: str, seed: int) -> None:
    view = sample(LAYOUTS[name], Random(seed))
    assert LAYOUTS[name].pack(**view.to_dict()) == bytes(view)


@settings(deadline=None)
@given(names, st.randoms(use_true_random=False))
def test_any_bytes_are_taken_apart_and_put_together(name: str, random: Random) -> None:
    layout = LAYOUTS[name]
    data = random.randbytes(layout.SIZE)
    view = layout(data)
    again = layout(bytearray(layout.pack(**view.to_dict())))
    mask = layout.declared_mask()
    assert int.from_bytes(bytes(again)[: layout.SIZE], "big") == int.from_bytes(data, "big") & mask
    assert again.reserved_bits() == 0


@settings(deadline=None)
@given(names, seeds, st.integers(0, 40))
def test_a_view_at_an_offset_leaves_what_is_around_it(name: str, seed: int, offset: int) -> None:
    layout = LAYOUTS[name]
    view = sample(layout, Random(seed), longest=0)
    buffer = bytearray(b"\xa5" * (offset + layout.SIZE))
    inside = layout(buffer, offset)
    inside.assign(bytes(layout.SIZE))
    inside.assign(view.to_dict())
    assert bytes(buffer[offset:]) == bytes(view)[: layout.SIZE]
    assert bytes(buffer[:offset]) == b"\xa5" * offset


def test_fields_that_are_no_alternatives_do_not_overlap() -> None:
    """Overlaps are unions: structures over each other, or one word under several names."""
    found: dict[str, set[tuple[str, str]]] = {}
    for name, layout in LAYOUTS.items():
        for one, other in combinations(layout.FIELDS.values(), 2):
            if overlap(one, other) and one.layout is None and other.layout is None:
                found.setdefault(name, set()).add((one.name, other.name))
    assert found == SEVERAL_NAMES


SEVERAL_NAMES = {
    "mini_cqe8": {("rx_hash_result", "checksum"), ("rx_hash_result", "stridx")},
    "base_av": {("dc_key", "qkey")},
    "cqe64": {("sop_drop_qpn", "qpn")},
    "err_cqe": {("s_wqe_opcode_qpn", "s_wqe_opcode"), ("s_wqe_opcode_qpn", "qpn")},
    "wqe_eth_seg": {
        ("inline_hdr_sz", "insert_type"),
        ("inline_hdr_sz", "trailer"),
        ("inline_hdr_start", "insert_vlan_tci"),
        ("inline_hdr_start", "trailer"),
        ("insert_type", "trailer"),
        ("insert_vlan_tci", "trailer"),
    },
}


def test_a_structure_says_what_it_is() -> None:
    for name, layout in LAYOUTS.items():
        assert name == layout.NAME
        assert layout.__doc__ is not None, name
        assert layout.__doc__ != Layout.__doc__, name


@pytest.mark.parametrize("opcode", sorted(COMMANDS))
def test_a_command_has_the_words_of_every_command(opcode: Opcode) -> None:
    request, reply = COMMANDS[opcode]
    assert (request.FIELDS["opcode"].bit, request.FIELDS["opcode"].width) == (0, 16)
    assert (request.FIELDS["op_mod"].bit, request.FIELDS["op_mod"].width) == (48, 16)
    assert (reply.FIELDS["status"].bit, reply.FIELDS["status"].width) == (0, 8)
    assert (reply.FIELDS["syndrome"].bit, reply.FIELDS["syndrome"].width) == (32, 32)
    view = sample(request, Random(int(opcode)))
    assert view.to_dict()["opcode"] == opcode


def test_all_commands_of_bring_up_and_verbs_are_there() -> None:
    needed = """
        ENABLE_HCA DISABLE_HCA QUERY_ISSI SET_ISSI QUERY_PAGES MANAGE_PAGES ACCESS_REG QUERY_HCA_CAP SET_HCA_CAP
        INIT_HCA TEARDOWN_HCA SET_DRIVER_VERSION QUERY_ADAPTER ALLOC_UAR DEALLOC_UAR CREATE_EQ DESTROY_EQ QUERY_EQ
        CREATE_CQ DESTROY_CQ QUERY_CQ MODIFY_CQ CREATE_MKEY DESTROY_MKEY QUERY_MKEY QUERY_SPECIAL_CONTEXTS ALLOC_PD
        DEALLOC_PD ALLOC_XRCD DEALLOC_XRCD ALLOC_TRANSPORT_DOMAIN DEALLOC_TRANSPORT_DOMAIN CREATE_QP DESTROY_QP
        QUERY_QP RST2INIT_QP INIT2RTR_QP RTR2RTS_QP RTS2RTS_QP INIT2INIT_QP SQERR2RTS_QP SQD_RTS_QP TO_ERR_QP
        TO_RST_QP CREATE_SRQ DESTROY_SRQ QUERY_SRQ ARM_RQ CREATE_XRC_SRQ DESTROY_XRC_SRQ QUERY_XRC_SRQ ARM_XRC_SRQ
        CREATE_RMP DESTROY_RMP QUERY_RMP MODIFY_RMP QUERY_VPORT_STATE MODIFY_VPORT_STATE QUERY_NIC_VPORT_CONTEXT
        MODIFY_NIC_VPORT_CONTEXT QUERY_VPORT_COUNTER SET_ROCE_ADDRESS QUERY_ROCE_ADDRESS QUERY_HCA_VPORT_CONTEXT
        MODIFY_HCA_VPORT_CONTEXT QUERY_HCA_VPORT_GID QUERY_HCA_VPORT_PKEY MAD_IFC ALLOC_Q_COUNTER DEALLOC_Q_COUNTER
        QUERY_Q_COUNTER ATTACH_TO_MCG DETACH_FROM_MCG CREATE_SQ MODIFY_SQ DESTROY_SQ QUERY_SQ PAGE_FAULT_RESUME
    """
    assert {Opcode[name] for name in needed.split()} == set(COMMANDS)
