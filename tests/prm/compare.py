"""Compare declared structures with those of the Linux headers: what differs, what is missing on either side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from softhca.prm.layout import Field, Layout
from tests.prm.ifc_header import Header, Member, Structure, ifc

NAMES = {
    "eqe": ("mlx5_eqe",),
    "ev_data": ("ev_data",),
    "health_buffer": ("mlx5_ifc_health_buffer_bits", "health_buffer"),
    "initial_seg": ("mlx5_ifc_initial_seg_bits", "mlx5_init_seg"),
    "mcam_access_reg1": ("mlx5_ifc_mcam_access_reg_bits1",),
    "mcam_access_reg2": ("mlx5_ifc_mcam_access_reg_bits2",),
    "mcam_access_reg3": ("mlx5_ifc_mcam_access_reg_bits3",),
    "mtt": ("mlx5_ifc_mtt_bits",),
}
"""Structures whose C name is not `mlx5_ifc_` name `_bits` or `mlx5_` name, or that have several."""

WITHIN: dict[str, dict[str, tuple[str, ...]]] = {
    "mlx5_cmd_layout": {"status": ("status_own",), "ownership": ("status_own",)},
    "mlx5_cqe64": {
        "timestamp": ("timestamp_h", "timestamp_l"),
        "imm_inval_pkey": ("immediate", "inval_rkey", "pkey", "ft_metadata"),
        "qpn": ("sop_drop_qpn",),
        "signature": ("signature", "validity_iteration_count"),
        "opcode": ("op_own",),
        "format": ("op_own",),
        "solicited": ("op_own",),
        "owner": ("op_own",),
    },
    "mlx5_err_cqe": {
        "s_wqe_opcode": ("s_wqe_opcode_qpn",),
        "qpn": ("s_wqe_opcode_qpn",),
        "opcode": ("op_own",),
        "format": ("op_own",),
        "solicited": ("op_own",),
        "owner": ("op_own",),
    },
    "mlx5_sig_err_cqe": {"opcode": ("op_own",), "owner": ("op_own",)},
    "mlx5_cqe128": {"inline_data": ("inl_grh",)},
    "mlx5_eqe": {"owner": ("owner",)},
    "mlx5_eqe_pps": {"time_stamp": ("time_sec", "time_nsec", "time_stamp")},
    "mlx5_wqe_ctrl_seg": {
        "opmod": ("opmod_idx_opcode",),
        "wqe_index": ("opmod_idx_opcode",),
        "opcode": ("opmod_idx_opcode",),
        "qp_or_sq": ("qpn_ds",),
        "ds": ("qpn_ds",),
        "fm": ("fm_ce_se",),
        "ce": ("fm_ce_se",),
        "se": ("fm_ce_se",),
        "imm": ("general_id", "imm", "umr_mkey", "tis_tir_num"),
    },
    "mlx5_wqe_data_seg": {"inline_": ("byte_count",), "byte_count": ("byte_count",)},
    "mlx5_wqe_inline_seg": {"inline_": ("byte_count",), "byte_count": ("byte_count",)},
    "mlx5_base_av": {
        "dc_key": ("key.dc_key",),
        "qkey": ("key.qkey.qkey",),
        "rlid": ("rlid", "udp_sport"),
    },
    "mlx5_av": {
        "base": ("key.dc_key", "key.qkey.qkey", "dqp_dct", "stat_rate_sl", "fl_mlid", "rlid", "udp_sport"),
    },
    "mlx5_wqe_umr_ctrl_seg": {"xlt_offset": ("xlt_offset", "bsf_octowords")},
    "mlx5_wqe_eth_seg": {
        "inline_hdr_sz": ("inline_hdr.sz",),
        "inline_hdr_start": ("inline_hdr.start", "inline_hdr.data"),
        "insert_type": ("insert.type",),
        "insert_vlan_tci": ("insert.vlan_tci",),
    },
}
"""C structure -> field declared here -> members that it lies in, where C packs bits into an integer or unites names."""

DATA_FOLLOWS = {("mlx5_wqe_inline_seg", "data")}
"""Members of C structures that only mark where data begin."""


@dataclass
class Comparison:
    """What comparing one declaration gave.

    Attributes:
        problems: fields that differ, and members that are missing.
        beyond: fields that the header does not have.
        members: members of the header that were found declared.
        parts: names of nested declarations that were compared as a part.
    """

    problems: list[str] = field(default_factory=list)
    beyond: list[str] = field(default_factory=list)
    members: int = 0
    parts: set[str] = field(default_factory=set)


def header_names(layout: type[Layout], header: Header) -> list[str]:
    """The C names under which a header has this structure; the first one has to be declared completely."""
    names = NAMES.get(layout.NAME, (ifc(layout.NAME), f"mlx5_{layout.NAME}"))
    found = [name for name in names if header.has(name)]
    if not found and "__" in layout.NAME:
        owner, _, part = layout.NAME.partition("__")
        if header.has(ifc(owner)):
            header.structure(ifc(owner))
            found = [f"{ifc(owner)}__{part}"]
    return found


def compare(layout: type[Layout], header: Header, names: list[str] | None = None) -> Comparison:
    """Compare a declaration with the header's structures of these C names (by default those of its own name)."""
    names = header_names(layout, header) if names is None else names
    structures = [header.structure(name) for name in names]
    result = Comparison()
    first = structures[0]
    if not _size_fits(layout, first):
        result.problems.append(f"{layout.NAME}: {layout.SIZE} bytes declared, {first.bits / 8:g} in {first.name}")
    seen: set[str] = set()
    for path, item in _flat(layout, first, result):
        seen |= _one(layout, path, item, structures, result)
    for name in first.named().keys() - seen:
        if (first.name, name) not in DATA_FOLLOWS:
            result.problems.append(f"{layout.NAME}: {first.name}.{name} is not declared")
    result.members = len(seen)
    return result


def _size_fits(layout: type[Layout], structure: Structure) -> bool:
    """Events are declared with the size of the room that they lie in; all else has the header's size."""
    bits = -(-structure.bits // 8) * 8
    if layout.NAME.startswith("eqe_"):
        return bits <= layout.SIZE * 8
    return bits == layout.SIZE * 8


def _flat(layout: type[Layout], structure: Structure, result: Comparison) -> Iterator[tuple[str, Field]]:
    """Fields with their path and place; inside a nested declaration where C writes the structure in place."""
    for item in layout.FIELDS.values():
        name = item.name.rstrip("_")
        inside = any(member.name.startswith(f"{name}.") for member in structure.members)
        if item.layout is None or not inside:
            yield item.name, item
            continue
        result.parts.add(item.layout.NAME)
        for inner in item.layout.FIELDS.values():
            moved = Field(0, item.bit + inner.bit, inner.width, count=inner.count, layout=inner.layout, raw=inner.raw)
            yield f"{name}.{inner.name}", moved


def _one(layout: type[Layout], path: str, item: Field, structures: list[Structure], result: Comparison) -> set[str]:
    """Compare one field with the first structure that knows it; gives the members that it declares."""
    for structure in structures:
        members = structure.named()
        parts = WITHIN.get(structure.name, {}).get(path)
        if parts is not None:
            missing = [part for part in parts if part not in members]
            if missing:
                result.problems.append(f"{layout.NAME}.{path}: {structure.name} has no {', '.join(missing)}")
            elif not _inside(item, [members[part] for part in parts]):
                result.problems.append(f"{layout.NAME}.{path}: {item!r} is not in {' and '.join(parts)}")
            return set(parts)
        member = members.get(path) or members.get(path.rstrip("_"))
        if member is not None:
            difference = _difference(item, member)
            if difference:
                result.problems.append(f"{layout.NAME}.{path}: {difference}")
            return {member.name}
    result.beyond.append(f"{layout.NAME}.{path}")
    return set()


def _inside(item: Field, members: list[Member]) -> bool:
    room = 0
    for member in members:
        room |= (1 << member.bits) - 1 << member.bit
    extent = (1 << item.bits) - 1 << item.bit
    return extent & ~room == 0


def _difference(item: Field, member: Member) -> str:
    """How a field differs from the header's member; empty if it does not."""
    if item.bit != member.bit:
        return f"begins at bit {item.bit}, in the header at {member.bit}"
    if item.layout is not None and member.structure is not None:
        owner, _, part = item.layout.NAME.partition("__")
        known = {*NAMES.get(item.layout.NAME, ()), ifc(item.layout.NAME), f"mlx5_{item.layout.NAME}"}
        known.add(f"{ifc(owner)}__{part}")
        if member.structure not in known:
            return f"is a {item.layout.NAME}, in the header a {member.structure}"
        same = item.count == member.count and (item.width == member.width or item.layout.NAME.startswith("eqe_"))
        return "" if same else f"is {item.count} of {item.width} bits, in the header {member.count} of {member.width}"
    if 0 in (item.count, member.count):
        same = item.count == member.count and item.width == member.width
        return "" if same else f"is {item.count} of {item.width} bits, in the header {member.count} of {member.width}"
    return "" if item.bits == member.bits else f"has {item.bits} bits, in the header {member.bits}"
