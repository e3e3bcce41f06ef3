"""Profiles: a model's own figures, read from `profiles/*.toml` and checked strictly.

A profile says what the real model would say, each group of figures with where it comes from. What the device answers
is the profile masked by what is implemented (see :mod:`softhca.hca.caps`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from softhca.prm import hca_cap
from softhca.prm.hca_cap import PortType
from softhca.prm.layout import Layout, LayoutError

IB_MTUS = (256, 512, 1024, 2048, 4096)
"""Bytes; the order is that of their codes."""
FOLDER = Path(__file__).with_name("profiles")
DEFAULT = "connectx-6-ib"

PAGES: dict[str, type[Layout]] = {
    "general": hca_cap.CmdHcaCap,
    "ethernet": hca_cap.PerProtocolNetworkingOffloadCaps,
    "odp": hca_cap.OdpCap,
    "atomic": hca_cap.AtomicCaps,
    "roce": hca_cap.RoceCap,
    "flow_table": hca_cap.FlowTableNicCap,
}
"""The capability pages that a profile may hold, and their layouts."""

Figures = Mapping[str, Any]
"""Fields of a capability page by name: an integer, a list of integers, or a mapping for a structure within it."""


class ProfileError(ValueError):
    """A profile cannot be used: the message names the file, the key, and what is allowed."""


@dataclass(frozen=True)
class Pci:
    """Identity in configuration space.

    Attributes:
        vendor_id, device_id, subsystem_vendor_id, subsystem_id: 16 bits each.
        revision: 8 bits.
        class_code: 24 bits: base class, sub-class, interface.
        vectors: entries of the MSI-X table, 9 to 2048.
        vf_device_id: 16 bits, of its VFs.
        total_vfs: VFs that it can have; 0: it has no SR-IOV.
    """

    vendor_id: int
    device_id: int
    subsystem_vendor_id: int
    subsystem_id: int
    revision: int
    class_code: int
    vectors: int
    vf_device_id: int
    total_vfs: int


@dataclass(frozen=True)
class Firmware:
    """What the firmware says of itself.

    Attributes:
        major, minor, subminor: its version, 16 bits each.
        command_interface: revision of the command interface (`cmd_interface_rev`).
        board_id: the PSID, at most 16 ASCII characters.
        ieee_vendor_id: the vendor's OUI, 24 bits.
        issi: the highest interface step sequence id that it supports.
    """

    major: int
    minor: int
    subminor: int
    command_interface: int
    board_id: str
    ieee_vendor_id: int
    issi: int

    @property
    def version(self) -> str:
        """Major, minor and subminor with dots, as `ibv_devinfo` prints it."""
        return f"{self.major}.{self.minor}.{self.subminor:04}"


@dataclass(frozen=True)
class Addresses:
    """Addresses of the card.

    Attributes:
        mac: the port's permanent MAC address, 48 bits.
    """

    mac: int

    @property
    def guid(self) -> int:
        """Node, port and system image GUID of a card with one port: the MAC with 0x0300 in its middle, 64 bits."""
        return self.mac >> 24 << 40 | 0x0300 << 24 | self.mac & 0xFFFFFF


@dataclass(frozen=True)
class PortFigures:
    """The physical port.

    Attributes:
        type: "ib" or "eth".
        ib_link_width: mask of widths (1 = 1x, 2 = 2x, 4 = 4x), PTYS.
        ib_proto: mask of speeds (1 SDR .. 0x20 EDR, 0x40 HDR, 0x80 NDR), PTYS.
        eth_proto: mask of link modes, PTYS.
        ext_eth_proto: mask of extended link modes, PTYS.
        data_rate: speed of the link, in units of 10 Gb/s (PTYS data_rate_oper).
        max_mtu: bytes, PMTU.
        mtu: bytes, PMTU, until it is set.
        vl_hw_cap: virtual lanes: 1, 2, 4, 8 or 15, PVLC.
        lanes: electrical lanes of the module, PMLP.
    """

    type: str
    ib_link_width: int
    ib_proto: int
    eth_proto: int
    ext_eth_proto: int
    data_rate: int
    max_mtu: int
    mtu: int
    vl_hw_cap: int
    lanes: int

    @property
    def port_type(self) -> PortType:
        """The link layer."""
        return PortType[self.type.upper()]


@dataclass(frozen=True)
class Icm:
    """Bytes that one entry takes in ICM (B2)."""

    qpc: int
    srqc: int
    cqc: int
    eqc: int
    mkc: int
    mtt: int
    klm: int


@dataclass(frozen=True)
class Pages:
    """ICM pages of 4 KiB that the function needs before it has objects (B8).

    Attributes:
        boot: for QUERY_PAGES(boot).
        init: for QUERY_PAGES(init).
    """

    boot: int
    init: int


@dataclass(frozen=True)
class CommandQueue:
    """Geometry of the command queue (D1).

    Attributes:
        log_size: log2 of the number of slots, 0 to 5.
        log_stride: log2 of the bytes between two entries, at least 6.
    """

    log_size: int
    log_stride: int


@dataclass(frozen=True)
class Profile:
    """A model.

    Attributes:
        name: of its file.
        title: in words.
        pci, firmware, addresses, port, icm, pages, command_queue: groups of figures.
        capabilities: pages of :data:`PAGES`, as the model would say them.
        sources: where each group comes from, by the group's name.
    """

    name: str
    title: str
    pci: Pci
    firmware: Firmware
    addresses: Addresses
    port: PortFigures
    icm: Icm
    pages: Pages
    command_queue: CommandQueue
    capabilities: Mapping[str, Figures]
    sources: Mapping[str, str]

    def numbered(self, index: int) -> Profile:
        """The same model with the addresses of the `index`-th card (0 to 0xFFFF; 0 is the file's own)."""
        if not 0 <= index <= 0xFFFF:
            raise ProfileError(f"{self.name}: card {index}: 0 to 65535 are allowed")
        return replace(self, addresses=Addresses((self.addresses.mac + index * 0x10) & (1 << 48) - 1))

    def of_vf(self, number: int) -> Profile:
        """The same model as its VF with this number (1 to `pci.total_vfs`) is: a locally administered address."""
        mac = (self.addresses.mac | 1 << 41) + (number << 24) & (1 << 48) - 1
        pci = replace(self.pci, device_id=self.pci.vf_device_id, total_vfs=0)
        return replace(self, addresses=Addresses(mac), pci=pci)


GROUPS: dict[str, type[Any]] = {
    "pci": Pci,
    "firmware": Firmware,
    "addresses": Addresses,
    "port": PortFigures,
    "icm": Icm,
    "pages": Pages,
    "command_queue": CommandQueue,
}
TOP = ("title", "extends", *GROUPS, "capabilities")

RANGES: dict[str, tuple[int, int]] = {
    "pci.vendor_id": (0, 0xFFFF),
    "pci.device_id": (0, 0xFFFF),
    "pci.subsystem_vendor_id": (0, 0xFFFF),
    "pci.subsystem_id": (0, 0xFFFF),
    "pci.revision": (0, 0xFF),
    "pci.class_code": (0, 0xFFFFFF),
    "pci.vectors": (9, 2048),
    "pci.vf_device_id": (0, 0xFFFF),
    "pci.total_vfs": (0, 127),
    "firmware.major": (0, 0xFFFF),
    "firmware.minor": (0, 0xFFFF),
    "firmware.subminor": (0, 0xFFFF),
    "firmware.command_interface": (0, 0xFFFF),
    "firmware.ieee_vendor_id": (0, 0xFFFFFF),
    "firmware.issi": (0, 1),
    "addresses.mac": (1, (1 << 48) - 1),
    "port.ib_link_width": (0, 0x1F),
    "port.ib_proto": (0, 0xFF),
    "port.eth_proto": (0, 0xFFFFFFFF),
    "port.ext_eth_proto": (0, 0xFFFFFFFF),
    "port.data_rate": (0, 0xFFFF),
    "port.max_mtu": (256, 0xFFFF),
    "port.mtu": (256, 0xFFFF),
    "port.vl_hw_cap": (1, 15),
    "port.lanes": (1, 4),
    "pages.boot": (0, 1 << 16),
    "pages.init": (0, 1 << 15),
    "command_queue.log_size": (0, 5),
    "command_queue.log_stride": (6, 12),
}
"""Allowed values, both ends included; any other figure is 1 to 4096."""


def names() -> list[str]:
    """The profiles that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_profile(name_or_path: str | Path = DEFAULT) -> Profile:
    """Read a profile.

    Args:
        name_or_path: one of :func:`names`, or the path of a TOML file (it ends with `.toml`).

    Raises:
        ProfileError: there is no such profile, or it is not valid.
    """
    path = _locate(name_or_path)
    table = _read(path, ())
    _known(path, "the profile", table, TOP)
    title = table.get("title")
    if not isinstance(title, str):
        raise ProfileError(f"{path}: key title: a text is needed")
    groups = {key: _group(path, key, kind, _table(path, table, key)) for key, kind in GROUPS.items()}
    sources = {key: str(table[key]["source"]) for key in GROUPS}
    pages = _table(path, table, "capabilities")
    _known(path, "capabilities", pages, PAGES)
    capabilities: dict[str, Figures] = {}
    for key, layout in PAGES.items():
        figures = dict(_table(path, pages, key)) if key in pages else {}
        if figures:
            sources[f"capabilities.{key}"] = _source(path, f"capabilities.{key}", figures)
        capabilities[key] = _figures(path, f"capabilities.{key}", layout, figures)
    return _consistent(path, Profile(path.stem, title, capabilities=capabilities, sources=sources, **groups))


def _locate(name_or_path: str | Path) -> Path:
    path = Path(name_or_path)
    if path.suffix == ".toml":
        return path
    if str(name_or_path) not in names():
        raise ProfileError(f"profile {name_or_path}: there is none; allowed are {', '.join(names())}, or a .toml file")
    return FOLDER / f"{name_or_path}.toml"


def _read(path: Path, below: tuple[Path, ...]) -> dict[str, Any]:
    """The file's table over the one that it extends."""
    if path in below:
        raise ProfileError(f"{path}: key extends: the profile extends itself")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # also a number or a nesting that tomllib cannot take
        raise ProfileError(f"{path}: {error}") from error
    base = table.pop("extends", None)
    if base is None:
        return table
    if not isinstance(base, str):
        raise ProfileError(f"{path}: key extends: the name of a profile is needed")
    return _merged(path, "", _read(_locate(base), (*below, path)), table)


def _merged(path: Path, where: str, base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`over` on top of `base`; a group whose figures change brings its own source."""
    result = dict(base)
    for key, value in over.items():
        old = base.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            if "source" in old and "source" not in value:
                raise ProfileError(
                    f"{path}: {where}{key}: the key source is missing: where do these figures come from?"
                )
            result[key] = _merged(path, f"{where}{key}.", old, value)
        else:
            result[key] = value
    return result


def _known(path: Path, where: str, table: Figures, allowed: Iterable[str]) -> None:
    for key in table:
        if key not in allowed:
            raise ProfileError(f"{path}: {where}: unknown key {key}; allowed are {', '.join(allowed)}")


def _table(path: Path, table: Figures, key: str) -> dict[str, Any]:
    value = table.get(key)
    if not isinstance(value, dict):
        raise ProfileError(f"{path}: key {key}: a table [{key}] is needed")
    return value


def _source(path: Path, where: str, table: dict[str, Any]) -> str:
    source = table.pop("source", None)
    if not isinstance(source, str) or not source:
        raise ProfileError(f"{path}: {where}: the key source is missing: where do these figures come from?")
    return source


G = TypeVar("G")


def _group(path: Path, where: str, kind: type[G], table: dict[str, Any]) -> G:
    values = dict(table)
    _source(path, where, values)
    wanted = {item.name: item for item in fields(kind)}  # type: ignore[arg-type]
    _known(path, where, values, wanted)
    for name, item in wanted.items():
        if name not in values and item.default is MISSING:
            raise ProfileError(f"{path}: {where}: the key {name} is missing")
        text = item.type == "str"
        value = values[name]
        if text != isinstance(value, str) or (not text and type(value) is not int):
            raise ProfileError(f"{path}: {where}.{name} = {value!r}: {'a text' if text else 'an integer'} is needed")
        if not text:
            low, high = RANGES.get(f"{where}.{name}", (1, 4096))
            if not low <= value <= high:
                raise ProfileError(f"{path}: {where}.{name} = {value:#x}: {low:#x} to {high:#x} are allowed")
    return kind(**values)


def _figures(path: Path, where: str, layout: type[Layout], table: dict[str, Any]) -> Figures:
    """Check the fields of a capability page against its layout, and turn booleans into 0 and 1."""
    _known(path, where, table, layout.FIELDS)
    result: dict[str, Any] = {}
    for key, value in table.items():
        inner = layout.FIELDS[key].layout
        if inner is not None and isinstance(value, dict):
            result[key] = _figures(path, f"{where}.{key}", inner, value)
            continue
        result[key] = int(value) if isinstance(value, bool) else value
        try:
            layout.new(**{key: result[key]})
        except (LayoutError, TypeError, AttributeError) as error:
            raise ProfileError(f"{path}: {where}.{key} = {value!r}: {error}") from error
    return result


def _consistent(path: Path, profile: Profile) -> Profile:
    """Check what no single key can say."""
    port, queue = profile.port, profile.command_queue
    if port.type.upper() not in PortType.__members__:
        raise ProfileError(f"{path}: port.type = {port.type!r}: ib or eth are allowed")
    if port.vl_hw_cap not in (1, 2, 4, 8, 15):
        raise ProfileError(f"{path}: port.vl_hw_cap = {port.vl_hw_cap}: 1, 2, 4, 8 and 15 are allowed")
    if port.mtu > port.max_mtu:
        raise ProfileError(f"{path}: port.mtu = {port.mtu}: at most port.max_mtu, {port.max_mtu}, is allowed")
    if queue.log_size + queue.log_stride > 12:
        raise ProfileError(f"{path}: command_queue: slots times stride do not fit 4096 bytes")
    board = profile.firmware.board_id
    if not board.isascii() or not 1 <= len(board) <= 16:
        raise ProfileError(f"{path}: firmware.board_id = {board!r}: 1 to 16 ASCII characters are allowed")
    if port.port_type is PortType.IB and not {port.mtu, port.max_mtu} <= set(IB_MTUS):
        raise ProfileError(f"{path}: port.mtu, port.max_mtu of an ib port: {', '.join(map(str, IB_MTUS))} are allowed")
    if not profile.capabilities["general"].get("device_frequency_khz"):
        raise ProfileError(f"{path}: capabilities.general: the key device_frequency_khz is missing, or 0")
    claimed = profile.capabilities["general"].get("port_type")
    if claimed != port.port_type:
        raise ProfileError(f"{path}: capabilities.general.port_type = {claimed}: port.type says {port.type}")
    return profile
