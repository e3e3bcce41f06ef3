"""Capabilities: the profile masked by what is implemented, what is current, and what software may select (C7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from softhca.hca.command import Stage, command
from softhca.hca.errors import CommandError
from softhca.hca.profile import PAGES, Figures, Profile
from softhca.prm.hca_cap import (
    AtomicCaps,
    CapType,
    CmdHcaCap,
    CmdifChecksum,
    HcaCapUnion,
    OdpCap,
    PerProtocolNetworkingOffloadCaps,
    QueryHcaCapIn,
    QueryHcaCapOut,
    RoceCap,
    SetHcaCapIn,
    SetHcaCapOut,
)
from softhca.prm.layout import Layout
from softhca.prm.opcodes import Opcode
from softhca.prm.syndromes import ports as syndromes

if TYPE_CHECKING:
    from softhca.hca.function import Function


@dataclass(frozen=True)
class Limit:
    """What the implementation makes of a profile's figure.

    Attributes:
        most: a larger figure becomes this; None: any.
        bits: of a set of bits, those that are implemented; None: all.
        always: the answer, whatever the profile says: for capabilities that say what does *not* work.
    """

    most: int | None = None
    bits: int | None = None
    always: int | None = None

    def apply(self, figure: int) -> int:
        """The figure that the device answers."""
        if self.always is not None:
            return self.always
        if self.bits is not None:
            figure &= self.bits
        return figure if self.most is None else min(figure, self.most)

    def __str__(self) -> str:
        if self.always is not None:
            return f"always {self.always}"
        if self.bits is not None:
            return f"of the bits {self.bits:#x}"
        return "as the profile says" if self.most is None else f"at most {self.most}"


AS_PROFILE = Limit()
FLAG = Limit(most=1)

_TRANSPORT = "transport_page_fault_scheme_cap"
_FAULTING = ("send", "receive", "write", "read", "atomic", "srq_receive")
_LATER = (*(f"{_TRANSPORT}.xrc_odp_caps.{name}" for name in _FAULTING), f"{_TRANSPORT}.rc_odp_caps.srq_receive")
"""What may fault only once software has selected it: Linux selects just these."""

IMPLEMENTED: Mapping[str, Mapping[str, Limit]] = {
    "general": {
        # Limits of objects and queues.
        "log_max_qp": Limit(most=23),
        "log_max_qp_sz": Limit(most=15),
        "log_max_srq": Limit(most=23),
        "log_max_srq_sz": Limit(most=15),
        "log_max_cq": Limit(most=24),
        "log_max_cq_sz": Limit(most=22),
        "log_max_eq": Limit(most=7),
        "log_max_eq_sz": Limit(most=22),
        "log_max_mkey": Limit(most=24),
        "log_max_mrw_sz": Limit(most=64),
        "max_indirection": Limit(most=8),
        "log_max_klm_list_size": Limit(most=16),
        "fixed_buffer_size": FLAG,
        "null_mkey": FLAG,
        "dump_fill_mkey": FLAG,
        "relaxed_ordering_write": FLAG,
        "relaxed_ordering_read": FLAG,
        "relaxed_ordering_write_umr": FLAG,
        "relaxed_ordering_read_umr": FLAG,
        "umr_extended_translation_offset": FLAG,
        "umr_fence": Limit(most=2),
        "umr_ptr_rlky": FLAG,
        "imaicl": FLAG,
        "atomic": FLAG,
        "pg": FLAG,
        "log_max_pd": Limit(most=24),
        "log_max_xrcd": Limit(most=24),
        "log_max_transport_domain": Limit(most=24),
        "log_max_rmp": Limit(most=23),
        "log_max_wq_sz": Limit(most=15),
        "log_max_msg": Limit(most=31),
        "log_max_ra_req_qp": Limit(most=4),
        "log_max_ra_res_qp": Limit(most=4),
        "max_wqe_sz_sq": Limit(most=1024),
        "max_wqe_sz_rq": Limit(most=512),
        # Transports.
        "rc": FLAG,
        "uc": FLAG,
        "ud": FLAG,
        "log_max_mcg": Limit(most=13),
        "max_qp_mcg": Limit(most=240),
        "xrc": FLAG,
        # Completion.
        "cqe_version": Limit(most=1),
        "cq_oi": FLAG,
        "cq_resize": FLAG,
        "sctr_data_cqe": FLAG,
        "cqe_128_always": FLAG,
        "cqe_compression": FLAG,
        "cqe_compression_128": FLAG,
        "cqe_compression_timeout": AS_PROFILE,
        "cqe_compression_max_num": Limit(most=64),
        "mini_cqe_resp_stride_index": FLAG,
        # Counters.
        "max_qp_cnt": Limit(most=255),
        "vport_counters": FLAG,
        "out_of_seq_cnt": FLAG,
        "retransmission_q_counters": FLAG,
        "cq_moderation": FLAG,
        "cq_period_start_from_cqe": FLAG,
        "cq_period_mode_modify": FLAG,
        # Device, command interface, UAR.
        "cmdif_checksum": Limit(most=3),
        "driver_version": FLAG,
        "fast_teardown": FLAG,
        "force_teardown": FLAG,
        "log_pg_sz": Limit(always=12),
        "uar_sz": Limit(most=5),
        "num_of_uars_per_page": Limit(most=1),
        "bf": FLAG,
        "log_bf_reg_size": Limit(most=9),
        "log_max_sq": Limit(most=20),
        "device_frequency_mhz": AS_PROFILE,
        "device_frequency_khz": AS_PROFILE,
        # Ports.
        "vport_group_manager": FLAG,
        "port_type": AS_PROFILE,
        "num_ports": Limit(most=1),
        "native_port_num": Limit(most=1),
        "ib_virt": FLAG,
        "gid_table_size": Limit(most=4),
        "pkey_table_size": Limit(most=5),
        "local_ca_ack_delay": AS_PROFILE,
        "roce": FLAG,
        "roce_rw_supported": FLAG,
        "log_max_current_uc_list": Limit(most=12),
        "log_max_current_uc_list_wr_supported": FLAG,
        "log_max_current_mc_list": Limit(most=12),
        "log_max_vlan_list": Limit(most=12),
        # What does not work.
        "umr_modify_entity_size_disabled": FLAG,
        "umr_modify_atomic_disabled": FLAG,
        "umr_indirect_mkey_disabled": FLAG,
        "repeated_block_disabled": Limit(always=1),
    },
    "ethernet": {},
    "odp": {
        **dict.fromkeys((f"{_TRANSPORT}.rc_odp_caps.{name}" for name in _FAULTING), FLAG),
        **dict.fromkeys((f"{_TRANSPORT}.xrc_odp_caps.{name}" for name in _FAULTING), FLAG),
        f"{_TRANSPORT}.ud_odp_caps.send": FLAG,
    },
    "atomic": {
        "atomic_req_8B_endianness_mode": Limit(most=1),
        "supported_atomic_req_8B_endianness_mode_1": FLAG,
        "atomic_operations": Limit(bits=0xF),
        "atomic_size_qp": Limit(bits=0x8),
    },
    "roce": {
        "sw_r_roce_src_udp_port": FLAG,
        "l3_type": Limit(bits=0x6),
        "roce_version": Limit(bits=0x5),
        "r_roce_dest_udp_port": AS_PROFILE,
        "r_roce_max_src_udp_port": AS_PROFILE,
        "r_roce_min_src_udp_port": AS_PROFILE,
        "roce_address_table_size": Limit(most=255),
    },
    "flow_table": {},
}
"""What is implemented, by page of the profile: a field that is not here answers 0, whatever the profile says. Dots lead
into structures.

Without `xrc` mlx5_ib does not load.
"""

INITIAL: Mapping[str, Mapping[str, int]] = {
    "general": {"cmdif_checksum": CmdifChecksum.INITIAL_STATE},
    "odp": dict.fromkeys(_LATER, 0),
    "atomic": {"atomic_req_8B_endianness_mode": 0},
    "roce": {"sw_r_roce_src_udp_port": 0},
}
"""Current value before software selects one, where that is not the maximum."""

SELECTABLE: Mapping[str, Mapping[str, tuple[int, ...] | None]] = {
    "general": {
        "log_max_qp": None,
        "pkey_table_size": None,
        "cmdif_checksum": (CmdifChecksum.DISABLED, CmdifChecksum.ENABLED),
        "roce": (0, 1),
        "log_max_current_uc_list": None,
    },
    "odp": dict.fromkeys(_LATER),
    "atomic": {"atomic_req_8B_endianness_mode": (0, 1)},
    "roce": {"sw_r_roce_src_udp_port": (0, 1)},
}
"""What SET_HCA_CAP may select, with the defined values (None: 0 to the maximum)."""

SPARSE = frozenset(("atomic",))
"""Pages that drivers write with nothing in them but what they select: a field that cannot be selected may be zero."""

TYPES: Mapping[CapType, str] = {
    CapType.GENERAL: "general",
    CapType.ETHERNET_OFFLOADS: "ethernet",
    CapType.ODP: "odp",
    CapType.ATOMIC: "atomic",
    CapType.ROCE: "roce",
    CapType.FLOW_TABLE: "flow_table",
}
"""The pages that QUERY_HCA_CAP reads, by type."""


def _figure(figures: Figures, path: str) -> int:
    """A profile's figure for a field; 0 when it has none."""
    found: Any = figures
    for name in path.split("."):
        found = found.get(name, {})
    return int(found or 0)


def _get(page: Any, path: str) -> Any:
    """A field of a page."""
    for name in path.split("."):
        page = getattr(page, name)
    return page


def _set(page: Any, path: str, value: int) -> None:
    """Set a field of a page."""
    *inside, last = path.split(".")
    for name in inside:
        page = getattr(page, name)
    setattr(page, last, value)


def masked(profile: Profile, name: str) -> Layout:
    """A page of `profile` as far as it is implemented."""
    page = PAGES[name].new()
    figures = profile.capabilities[name]
    for field, limit in IMPLEMENTED[name].items():
        _set(page, field, limit.apply(_figure(figures, field)))
    return page


class Capabilities:
    """The capability pages of a function: the maximum of each, and what is current.

    Args:
        profile: the model.
        manages: the function can have VFs; without them it is no group manager.
    """

    def __init__(self, profile: Profile, *, manages: bool = False) -> None:
        self._card = {name: masked(profile, name) for name in PAGES}
        if not manages:
            _set(self._card["general"], "vport_group_manager", 0)
        self._maximum = dict(self._card)
        self._current: dict[str, Any] = {}
        self.reset()

    def reset(self) -> None:
        """Forget what software selected: after reset, and when the function is enabled anew (F8)."""
        for name, layout in PAGES.items():
            page = layout(bytearray(bytes(self._maximum[name])))
            for field, value in INITIAL.get(name, {}).items():
                _set(page, field, min(value, _get(page, field)))
            self._current[name] = page

    @property
    def general(self) -> CmdHcaCap:
        """Current general capabilities."""
        page: CmdHcaCap = self._current["general"]
        return page

    @property
    def ethernet(self) -> PerProtocolNetworkingOffloadCaps:
        """Current Ethernet offloads."""
        page: PerProtocolNetworkingOffloadCaps = self._current["ethernet"]
        return page

    @property
    def odp(self) -> OdpCap:
        """Current on-demand paging capabilities."""
        page: OdpCap = self._current["odp"]
        return page

    @property
    def atomic(self) -> AtomicCaps:
        """Current atomic capabilities."""
        page: AtomicCaps = self._current["atomic"]
        return page

    @property
    def roce(self) -> RoceCap:
        """Current RoCE capabilities."""
        page: RoceCap = self._current["roce"]
        return page

    def page(self, name: str, *, current: bool) -> Layout:
        """A page of :data:`PAGES`: what is current, or the maximum."""
        found: Layout = self._current[name] if current else self._maximum[name]
        return found

    def select(self, name: str, wanted: bytes) -> None:
        """Make `wanted` (4096 bytes, a whole page) current.

        Raises:
            CommandError: it changes what may not be changed, or exceeds the maximum; nothing is changed then.
        """
        self._current[name] = self._checked(name, wanted, self._current[name], self._maximum[name])

    def grant(self, name: str, wanted: bytes) -> None:
        """Make `wanted` the maximum of a VF, as its PF says; what was selected is forgotten, the grant stays.

        Raises:
            CommandError: as of :meth:`select`; the card's own maximum is never exceeded.
        """
        self._maximum[name] = self._checked(name, wanted, self._maximum[name], self._card[name])
        self.reset()

    def ungrant(self) -> None:
        """The maximum is the card's own again."""
        self._maximum = dict(self._card)
        self.reset()

    def _checked(self, name: str, wanted: bytes, old: Any, maximum: Any) -> Any:
        layout = PAGES[name]
        new = layout(bytearray(wanted[: layout.SIZE]))
        if new.reserved_bits() or any(wanted[layout.SIZE :]):
            raise CommandError(syndromes.RESERVED_CAPABILITY, f"{name}: reserved bits are set")
        allowed = SELECTABLE.get(name, {})
        if name in SPARSE:
            new = _completed(old, new, allowed)
        for field in _changed(layout, old, new):
            if field not in allowed:
                raise CommandError(
                    syndromes.CAPABILITY_NOT_SELECTABLE, f"{name}.{field}: allowed are {', '.join(allowed) or 'none'}"
                )
            value, most, defined = _get(new, field), _get(maximum, field), allowed[field]
            if value > most:
                raise CommandError(syndromes.CAPABILITY_ABOVE_MAXIMUM, f"{name}.{field} = {value}, at most {most}")
            if defined is not None and value not in defined:
                raise CommandError(syndromes.BAD_CAPABILITY_VALUE, f"{name}.{field} = {value}, allowed are {defined}")
        return new


def _completed(old: Any, new: Any, selectable: Mapping[str, object]) -> Any:
    """`new`, with what it leaves zero and cannot select taken from `old`."""
    for field in type(new).FIELDS:
        if field not in selectable and not getattr(new, field):
            setattr(new, field, getattr(old, field))
    return new


def _changed(layout: type[Layout], old: Layout, new: Layout) -> Iterator[str]:
    """Names of the fields that differ."""
    if bytes(old) == bytes(new):
        return
    for name, field in layout.FIELDS.items():
        before, after = getattr(old, name), getattr(new, name)
        if field.layout is not None and field.count is None:
            yield from (f"{name}.{inner}" for inner in _changed(field.layout, before, after))
            continue
        differs = list(before) != list(after) if field.count is not None else before != after
        if differs:
            yield name


def _page_of(op_mod: int) -> str:
    try:
        return TYPES[CapType(op_mod >> 1)]
    except (ValueError, KeyError):
        raise CommandError(
            syndromes.UNSUPPORTED_CAPABILITY_TYPE,
            f"type {op_mod >> 1:#x}: allowed are {', '.join(f'{kind:#x}' for kind in TYPES)}",
        ) from None


def _named(fn: Function, request: QueryHcaCapIn | SetHcaCapIn) -> Function:
    """The function whose capabilities a command is about: itself, or with other_function one of its VFs."""
    if not request.other_function and not request.ec_vf_function:
        return fn
    vf = None if request.ec_vf_function else fn.vfs.find(request.function_id)
    if vf is None:
        raise CommandError(
            syndromes.NO_OTHER_FUNCTION, f"function_id {request.function_id:#x}, allowed are 1 to {fn.vfs.most}"
        )
    return vf.function


@command(
    Opcode.QUERY_HCA_CAP,
    QueryHcaCapIn,
    QueryHcaCapOut,
    op_mods=None,
    stages=(Stage.READY, Stage.INITIALIZED),
    partial="pages general, Ethernet, ODP, atomic, RoCE, flow table",
)
def query_hca_cap(fn: Function, request: QueryHcaCapIn, reply: QueryHcaCapOut) -> None:
    """Read a page: op_mod [15:1] is its type, [0] tells whether the current values are wanted or the maximum."""
    page = _named(fn, request).caps.page(_page_of(request.op_mod), current=bool(request.op_mod & 1))
    reply.capability.assign(bytes(page).ljust(HcaCapUnion.SIZE, b"\0"))


@command(
    Opcode.SET_HCA_CAP,
    SetHcaCapIn,
    SetHcaCapOut,
    op_mods=None,
    stages=(Stage.READY, Stage.INITIALIZED),
)
def set_hca_cap(fn: Function, request: SetHcaCapIn, reply: SetHcaCapOut) -> None:
    """Select capabilities; the whole page is written, and only what may be selected may differ from the current one.

    A PF says in the same way what a VF can select, until the VF's driver has begun.
    """
    target = _named(fn, request)
    needed = Stage.READY if target is fn else Stage.DISABLED
    if target.stage is not needed:
        raise CommandError(syndromes.CAPABILITIES_FIXED, f"stage {target.stage.name}, allowed is {needed.name}")
    name = _page_of(request.op_mod)
    if request.op_mod & 1:
        raise CommandError(syndromes.UNSUPPORTED_CAPABILITY_TYPE, f"op_mod {request.op_mod:#x}: bit 0 must be clear")
    if target is fn:
        fn.caps.select(name, bytes(request.capability))
    else:
        target.caps.grant(name, bytes(request.capability))
