"""Every declared structure, field, offset, width and value against the headers of the distribution's kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum

import pytest

from softhca.prm import (
    cq,
    cqe,
    eq,
    events,
    function,
    hca_cap,
    init_segment,
    mkey,
    opcodes,
    pages,
    qp,
    registers,
    sq,
    srq,
    status,
    vport,
    wqe,
)
from softhca.prm.catalogue import LAYOUTS
from softhca.prm.layout import Layout, array, bits, nested
from softhca.prm.qp import Ads
from tests.prm.compare import Comparison, compare, header_names
from tests.prm.ifc_header import Header, ifc


@pytest.fixture(scope="module")
def comparisons(header: Header) -> dict[str, Comparison]:
    return {name: compare(layout, header) for name, layout in LAYOUTS.items() if header_names(layout, header)}


@pytest.fixture
def forget() -> Iterator[None]:
    """Take structures that a test declares out of the catalogue again."""
    known = set(LAYOUTS)
    yield
    for name in LAYOUTS.keys() - known:
        del LAYOUTS[name]


def test_every_field_is_where_the_header_has_it(comparisons: dict[str, Comparison]) -> None:
    assert [problem for result in comparisons.values() for problem in result.problems] == []


def test_what_the_header_does_not_have_names_its_manual(comparisons: dict[str, Comparison]) -> None:
    parts = set().union(*(result.parts for result in comparisons.values()))
    alone = {name for name in LAYOUTS.keys() - comparisons.keys() if name not in parts}
    beyond = {path.partition(".")[0] for result in comparisons.values() for path in result.beyond}
    assert {name for name in alone | beyond if not LAYOUTS[name].MANUAL} == set()


def test_coverage_of_the_header_is_reported(
    header: Header, comparisons: dict[str, Comparison], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = list(coverage(header, comparisons))
    with capsys.disabled():
        print("", *lines, sep="\n")
    assert len(comparisons) >= 260


def coverage(header: Header, comparisons: dict[str, Comparison]) -> Iterator[str]:
    """How much of the header is declared, and what is declared that the header does not have."""
    declared = [ifc(name) for name in LAYOUTS if header.has(ifc(name))]
    fields = sum(len(header.structure(name).named()) for name in declared)
    total = 0
    for name in header.ifc_names:
        total += len(header.structure(name).named())
    yield f"mlx5_ifc.h: {len(declared)} of {len(header.ifc_names)} structures, {fields} of {total} fields"
    yield f"device.h, qp.h: {len(comparisons) - len(declared)} structures"
    parts = set().union(*(result.parts for result in comparisons.values()))
    for name, layout in LAYOUTS.items():
        if name not in comparisons and name not in parts:
            yield f"declared here only: {name} (manual: {layout.MANUAL})"
    for name, result in comparisons.items():
        if result.beyond:
            yield f"declared here only: {', '.join(result.beyond)} (manual: {LAYOUTS[name].MANUAL})"


@pytest.mark.usefixtures("forget")
def test_a_shifted_field_fails(header: Header) -> None:
    class Shifted(Layout, size=0x10, name="shifted"):
        opcode = bits(0x00, 31, 16)
        op_mod = bits(0x04, 16, 1)
        eq_number = bits(0x08, 7, 0)

    assert compare(Shifted, header, [ifc("destroy_eq_in")]).problems == [
        "shifted.op_mod: begins at bit 47, in the header at 48"
    ]


@pytest.mark.usefixtures("forget")
def test_a_width_a_missing_field_and_a_size_fail(header: Header) -> None:
    class Wrong(Layout, size=0x14, name="wrong"):
        opcode = bits(0x00, 31, 16)
        eq_number = bits(0x08, 7, 1)

    assert sorted(compare(Wrong, header, [ifc("destroy_eq_in")]).problems) == [
        "wrong.eq_number: has 7 bits, in the header 8",
        "wrong: 20 bytes declared, 16 in mlx5_ifc_destroy_eq_in_bits",
        "wrong: mlx5_ifc_destroy_eq_in_bits.op_mod is not declared",
    ]


@pytest.mark.usefixtures("forget")
def test_another_structure_and_another_array_fail(header: Header) -> None:
    class Other(Layout, size=0x110, name="other"):
        opcode = bits(0x00, 31, 16)
        uid = bits(0x00, 15, 0)
        op_mod = bits(0x04, 15, 0)
        eq_context_entry = nested(0x10, Ads)
        event_bitmask = array(0x58, 4, 64)
        pas = array(0x110, None, 32)

    assert compare(Other, header, [ifc("create_eq_in")]).problems == [
        "other.eq_context_entry: is a ads, in the header a mlx5_ifc_eqc_bits",
        "other.pas: is 0 of 32 bits, in the header 0 of 64",
    ]


@pytest.mark.usefixtures("forget")
def test_an_unknown_field_is_said_to_be_beyond_the_header(header: Header) -> None:
    class More(Layout, size=0x10, name="more"):
        opcode = bits(0x00, 31, 16)
        op_mod = bits(0x04, 15, 0)
        eq_number = bits(0x08, 7, 0)
        invented = bits(0x0C, 31, 0)

    assert compare(More, header, [ifc("destroy_eq_in")]).beyond == ["more.invented"]


@pytest.mark.usefixtures("forget")
def test_a_shifted_part_of_a_c_integer_fails(header: Header) -> None:
    class Ctrl(Layout, size=0x10, name="ctrl"):
        opmod = bits(0x00, 31, 24)
        wqe_index = bits(0x04, 23, 8)

    problems = compare(Ctrl, header, ["mlx5_wqe_ctrl_seg"]).problems
    assert "ctrl.wqe_index: <Field wqe_index at 0x4 bit 23 width 16> is not in opmod_idx_opcode" in problems


VALUES: list[tuple[type[IntEnum], str, dict[str, str]]] = [
    (opcodes.Opcode, "MLX5_CMD_OP_", {"TO_ERR_QP": "2ERR_QP", "TO_RST_QP": "2RST_QP", "QUERY_VUID": ""}),
    (events.EventType, "MLX5_EVENT_TYPE_", {}),
    (events.PortChangeSubtype, "MLX5_PORT_CHANGE_SUBTYPE_", {}),
    (wqe.WqeOpcode, "MLX5_OPCODE_", {}),
    (cqe.CqeOpcode, "MLX5_CQE_", {"RESIZE_CQ": "", "NO_PACKET": ""}),
    (cqe.CqeSyndrome, "MLX5_CQE_SYNDROME_", {}),
    (
        status.CommandStatus,
        "MLX5_CMD_STAT_",
        {
            "INTERNAL_ERR": "INT_ERR",
            "BAD_OP": "BAD_OP_ERR",
            "BAD_PARAM": "BAD_PARAM_ERR",
            "BAD_SYS_STATE": "BAD_SYS_STATE_ERR",
            "BAD_RESOURCE": "BAD_RES_ERR",
            "RESOURCE_BUSY": "RES_BUSY",
            "EXCEED_LIM": "LIM_ERR",
            "BAD_RES_STATE": "BAD_RES_STATE_ERR",
            "BAD_INDEX": "IX_ERR",
            "NO_RESOURCES": "NO_RES_ERR",
            "BAD_QP_STATE": "BAD_QP_STATE_ERR",
            "BAD_PKT": "BAD_PKT_ERR",
            "BAD_SIZE": "BAD_SIZE_OUTS_CQES_ERR",
            "BAD_INPUT_LEN": "BAD_INP_LEN_ERR",
            "BAD_OUTPUT_LEN": "BAD_OUTP_LEN_ERR",
        },
    ),
    (eq.EqStatus, "MLX5_EQC_STATUS_", {}),
    (eq.EqState, "MLX5_EQC_ST_", {}),
    (cq.CqStatus, "MLX5_CQC_STATUS_", {}),
    (cq.CqState, "MLX5_CQC_ST_", {}),
    (cq.CqeSize, "MLX5_CQC_CQE_SZ_", {"BYTES_64": "64_BYTES", "BYTES_128": "128_BYTES", "BYTES_128_PADDED": ""}),
    (cq.CqPeriodMode, "MLX5_CQ_PERIOD_MODE_", {}),
    (cq.CqErrorSyndrome, "MLX5_CQ_ERROR_SYNDROME_", {}),
    (cq.ModifyCqOperation, "MLX5_MODIFY_CQ_IN_OP_MOD_", {}),
    (mkey.AccessMode, "MLX5_MKC_ACCESS_MODE_", {}),
    (qp.QpState, "MLX5_QP_STATE_", {}),
    (qp.ServiceType, "MLX5_QP_ST_", {}),
    (qp.PathMigration, "MLX5_QPC_PM_STATE_", {}),
    (qp.RqType, "MLX5_", {}),
    (qp.AtomicMode, "MLX5_QPC_ATOMIC_MODE_", {"NONE": ""}),
    (qp.EndPaddingMode, "MLX5_QPC_END_PADDING_MODE_", {}),
    (qp.TimestampFormat, "MLX5_TIMESTAMP_FORMAT_", {}),
    (qp.ScatterToCqeRequester, "MLX5_QPC_CS_REQ_", {}),
    (qp.ScatterToCqeResponder, "MLX5_QPC_CS_RES_", {}),
    (sq.SqState, "MLX5_SQC_STATE_", {}),
    (srq.SrqState, "MLX5_SRQC_STATE_", {}),
    (srq.RmpState, "MLX5_RMPC_STATE_", {}),
    (srq.WqType, "MLX5_WQ_TYPE_", {}),
    (srq.EndPadMode, "MLX5_WQ_END_PAD_MODE_", {}),
    (srq.ArmRqOperation, "MLX5_ARM_RQ_IN_OP_MOD_", {}),
    (function.TeardownProfile, "MLX5_TEARDOWN_HCA_IN_PROFILE_", {}),
    (function.ForceState, "MLX5_TEARDOWN_HCA_OUT_FORCE_STATE_", {}),
    (pages.PagesNeed, "MLX5_QUERY_PAGES_IN_OP_MOD_", {}),
    (pages.PagesTransfer, "MLX5_MANAGE_PAGES_IN_OP_MOD_", {}),
    (init_segment.NicInterface, "MLX5_INITIAL_SEG_NIC_INTERFACE_", {}),
    (init_segment.HealthSyndrome, "MLX5_INITIAL_SEG_HEALTH_SYNDROME_", {"OK": ""}),
    (vport.VportState, "MLX5_QUERY_VPORT_STATE_OUT_STATE_", {}),
    (vport.VportAdminState, "MLX5_VPORT_ADMIN_STATE_", {}),
    (vport.VportKind, "MLX5_VPORT_STATE_OP_MOD_", {}),
    (hca_cap.PortType, "MLX5_CAP_PORT_TYPE_", {}),
    (hca_cap.CmdifChecksum, "MLX5_CMD_HCA_CAP_CMDIF_CHECKSUM_", {}),
    (hca_cap.UmrFence, "MLX5_CAP_UMR_FENCE_", {}),
    (hca_cap.TimestampFormatCap, "MLX5_TIMESTAMP_FORMAT_CAP_", {}),
    (hca_cap.SteeringFormat, "MLX5_STEERING_FORMAT_", {}),
    (registers.RegisterAccess, "MLX5_ACCESS_REGISTER_IN_OP_MOD_", {}),
    (registers.RegisterId, "MLX5_REG_", {}),
    (registers.BufferOwnership, "MLX5_BUF_OWNERSHIP_", {}),
]
"""Enum, prefix in the header, names that differ there ('': the header does not have it)."""


@pytest.mark.parametrize(("values", "prefix", "names"), VALUES, ids=[values.__name__ for values, _, _ in VALUES])
def test_values_have_the_number_of_the_header(
    header: Header, values: type[IntEnum], prefix: str, names: dict[str, str]
) -> None:
    for item in values:
        name = names.get(item.name, item.name)
        if name:
            assert header.constants[prefix + name] == item.value, f"{values.__name__}.{item.name}"


def test_every_opcode_of_the_header_is_there(header: Header) -> None:
    pattern = re.compile(r"MLX5_CMD_OP(?:CODE)?_(\w+)")
    known = {item.value for item in opcodes.Opcode}
    bounds = {"MAX", "GENERAL_START", "GENERAL_END", "MOD_UPDATE_HEADER_MODIFY_ARGUMENT"}
    found = {match[1]: value for name, value in header.constants.items() if (match := pattern.fullmatch(name))}
    assert {name for name, value in found.items() if name not in bounds and value not in known} == set()
