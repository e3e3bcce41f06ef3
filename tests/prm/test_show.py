from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softhca.prm import show
from softhca.prm.catalogue import LAYOUTS
from softhca.prm.cqe import ErrCqe
from softhca.prm.device_registers import NodeDescReg
from softhca.prm.eq import CreateEqIn, Eqc
from softhca.prm.events import Eqe
from softhca.prm.function import SetDriverVersionIn
from softhca.prm.hca_cap import CapType, QueryHcaCapOut, SetHcaCapIn
from softhca.prm.layout import LayoutError
from softhca.prm.ppcnt import PpcntReg
from softhca.prm.qp import CreateQpIn, Rst2initQpIn
from softhca.prm.registers import McamReg
from softhca.prm.sample import sample

EQC = """\
eqc: 64 bytes. Event queue context.

offset  bits   name              width  content
0x000   31:28  status            4      0x0 OK, 0xa EQ_WRITE_FAILURE
0x000   18     ec                1
0x000   17     oi                1
0x000   11:8   st                4      0x9 ARMED, 0xa FIRED
0x008   11:6   page_offset       6
0x00c   28:24  log_eq_size       5
0x00c   23:0   uar_page          24
0x014   11:0   intr              12
0x018   28:24  log_page_size     5
0x028   23:0   consumer_counter  24
0x02c   23:0   producer_counter  24"""


def test_a_bit_table() -> None:
    assert show.table(Eqc) == EQC


def test_a_table_with_structures_and_arrays() -> None:
    rows = show.bit_table(CreateEqIn)
    assert rows[0] == ("0x000", "31:16", "opcode", "16", "Opcode, 200 names")
    assert rows[3:] == [
        ("0x010", "", "eq_context_entry", "512", "structure eqc"),
        ("0x058", "", "event_bitmask", "4 x 64", ""),
        ("0x110", "", "pas", "64 each", ""),
    ]
    assert show.summary(CreateEqIn) == "create_eq_in: 272 bytes and what follows. CREATE_EQ: input."
    assert show.summary(ErrCqe).endswith("(manual: Completion queue entry with error)")


def test_a_decoded_dump() -> None:
    data = bytes(35) + b"\x01" + bytes(16) + bytes.fromhex("9d005304 0800011b 0008d0d2")
    lines = show.dump(ErrCqe(data)).splitlines()
    assert lines[0].split() == ["offset", "bits", "name", "value"]
    assert [line.split() for line in lines[1:6]] == [
        ["0x020", "31:0", "srqn", "0x1"],
        ["0x034", "31:24", "hw_error_syndrome", "0x9d"],
        ["0x034", "23:20", "hw_syndrome_type", "0x0"],
        ["0x034", "15:8", "vendor_err_synd", "0x53"],
        ["0x034", "7:0", "syndrome", "0x4", "LOCAL_PROT_ERR"],
    ]


def named(rows: list[show.Decoded]) -> dict[str, show.Decoded]:
    return {row.name: row for row in rows}


def test_nested_fields_and_arrays_are_named_by_their_path() -> None:
    rows = named(show.decode(CreateQpIn.new(opcode=0x500, qpc={"mtu": 5}, pas=[0x1000, 0x2000])))
    assert rows["opcode"].meaning == "CREATE_QP"
    assert (rows["qpc.mtu"].value, rows["qpc.mtu"].meaning) == (5, "BYTES_4K")
    assert rows["qpc.mtu"].place == show.Place(0x20, 31, 29)
    assert rows["qpc.primary_address_path.rgid_rip"].place == show.Place(0x40, None, None)
    assert (rows["pas[1]"].value, rows["pas[1]"].place) == (0x2000, show.Place(0x118, None, None))
    assert "pas[2]" not in rows


def test_runs_of_bytes_are_shown_by_rows() -> None:
    rows = named(show.decode(SetDriverVersionIn.new(driver_version=b"Linux,mlx5_core,6.12.117")))
    assert rows["driver_version[0:16]"].value == b"Linux,mlx5_core,"
    assert rows["driver_version[16:32]"].value == b"6.12.117" + bytes(8)
    assert rows["driver_version[16:32]"].place.offset == 0x20
    assert show.text_of(rows["driver_version[0:16]"]) == "4c696e75 782c6d6c 78355f63 6f72652c"
    (row,) = show.decode(NodeDescReg(b"a" * 64))[:1]
    assert row.name == "desc[0:16]"


def test_reserved_bits_that_are_set_are_listed() -> None:
    data = bytearray(64)
    data[4] = 0xC1
    data[63] = 0x01
    reserved = [row for row in show.decode(Eqc(data)) if row.name == "(reserved)"]
    assert [(str(row.place), row.place.offset, row.value) for row in reserved] == [
        ("31:30", 4, 3),
        ("24", 4, 1),
        ("0", 60, 1),
    ]


def test_a_value_without_a_name_says_so() -> None:
    assert named(show.decode(Eqc.new(st=3)))["st"].meaning == "no known name"


def test_the_type_selects_the_alternative_of_an_event() -> None:
    rows = named(show.decode(Eqe.new(type=0x0A, data={"cmd": {"vector": 5}})))
    assert [name for name in rows if name.startswith("data.")] == ["data.cmd.vector"]
    rows = named(show.decode(Eqe.new(type=0xF0)))
    assert "data.raw[6]" in rows
    assert rows["data.(union)"].meaning.startswith("one of eqe_cmd, eqe_comp")


def test_the_group_selects_the_counters_of_a_port() -> None:
    rows = named(show.decode(PpcntReg.new(grp=0x20)))
    assert "counter_set.ib_port_cntrs_grp_data_layout.symbol_error_counter" in rows
    assert not any("802_3" in name for name in rows)
    assert "counter_set.(union)" in named(show.decode(PpcntReg.new(grp=0x3F)))


def test_the_group_selects_the_mask_of_registers() -> None:
    rows = named(show.decode(McamReg.new(access_reg_group=3)))
    assert "mng_access_reg_cap_mask.access_regs3.mtptm" in rows
    assert "mng_access_reg_cap_mask.access_regs2.mirc" not in rows


def test_a_capability_page_names_the_structures_to_decode_it_with() -> None:
    rows = named(show.decode(QueryHcaCapOut.new(status=3)))
    assert rows["status"].meaning == "BAD_PARAM"
    assert "cmd_hca_cap" in rows["capability.(union)"].meaning


def test_the_type_in_op_mod_selects_the_page_that_is_set() -> None:
    rows = named(show.decode(SetHcaCapIn.new(op_mod=CapType.ROCE << 1, capability={"roce_cap": {"l3_type": 6}})))
    assert rows["capability.roce_cap.l3_type"].value == 6
    assert "capability.(union)" not in rows


def test_several_structures_in_a_row() -> None:
    assert [view.to_dict()["intr"] for view in show.views(Eqc, Eqc.pack(intr=1) + Eqc.pack(intr=2))] == [1, 2]


def test_a_command_may_leave_out_the_reserved_words_at_its_end() -> None:
    (view,) = show.views(Rst2initQpIn, bytes(256))
    assert len(bytes(view)) == Rst2initQpIn.SIZE


@pytest.mark.parametrize(("length", "message"), [(0, "0 bytes given"), (65, "65 bytes given, 48 to 64")])
def test_lengths_that_fit_no_structure(length: int, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        show.views(Eqc, bytes(length))


def test_a_short_open_ended_structure() -> None:
    with pytest.raises(LayoutError, match="create_eq_in: 16 bytes given, 120 to 272 or more needed"):
        show.views(CreateEqIn, bytes(16))


@settings(deadline=None)
@given(st.sampled_from(sorted(LAYOUTS)), st.integers(0, 2**32 - 1))
def test_every_structure_is_printed_and_decoded(name: str, seed: int) -> None:
    layout = LAYOUTS[name]
    view = sample(layout, Random(seed))
    assert show.table(layout).startswith(f"{name}: {layout.SIZE} bytes")
    assert "(reserved)" not in show.dump(view)
