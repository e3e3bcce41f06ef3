"""Kernel modules for a guest: which ones, decompressed, and in which order the first ones are loaded."""

from __future__ import annotations

import gzip
import lzma
import os
import re
import shutil
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from softhca.guest.errors import LabError
from softhca.guest.programs import Programs

KEPT_FOLDERS = (
    "arch/x86/crypto",
    "crypto",
    "drivers/block/virtio_blk",
    "drivers/char/hw_random/virtio-rng",
    "drivers/infiniband",
    "drivers/net/bonding",
    "drivers/net/dummy",
    "drivers/net/ethernet/mellanox",
    "drivers/net/macvlan",
    "drivers/net/tun",
    "drivers/net/veth",
    "drivers/net/virtio_net",
    "drivers/net/vxlan",
    "drivers/nvme",
    "drivers/pci",
    "drivers/vfio",
    "drivers/virtio",
    "drivers/char/virtio_console",
    "fs/erofs",
    "fs/nls",
    "fs/overlayfs",
    "kernel",
    "lib",
    "net/8021q",
    "net/bridge",
    "net/rds",
    "net/sched",
    "net/smc",
    "net/sunrpc",
)
"""Below `kernel/` of a modules folder, with all that these depend on. Modules elsewhere (updates/, extra/) are kept."""

STARTING = ("virtio_pci", "virtio_console", "crc32c_generic", "libcrc32c", "virtio_blk", "erofs", "overlay")
"""What the first root needs, in this order (6.12 asks for crc32c_generic without naming it as a dependency)."""
_OPTIONAL = frozenset({"crc32c_generic", "libcrc32c"})
_SUFFIX = re.compile(r"\.ko(\.xz|\.zst|\.gz)?$")


def name_of(path: str) -> str:
    """A module's name, from the path of its file."""
    return _SUFFIX.sub("", path.rsplit("/", 1)[-1]).replace("-", "_")


def read_dependencies(folder: Path) -> dict[str, list[str]]:
    """Path -> paths that it depends on, from modules.dep."""
    table: dict[str, list[str]] = {}
    for line in (folder / "modules.dep").read_text().splitlines():
        path, _, rest = line.partition(":")
        table[path] = rest.split()
    return table


def read_builtin(folder: Path) -> set[str] | None:
    """Names of the modules that are part of the kernel itself; None if the folder does not tell."""
    listing = folder / "modules.builtin"
    return {name_of(line) for line in listing.read_text().split()} if listing.is_file() else None


def kept(path: str) -> bool:
    """Whether a guest gets this module (a path below the modules folder) for its own sake."""
    below = path.removeprefix("kernel/")
    return below == path or any(below.startswith((f"{f}/", f"{f}.ko")) for f in KEPT_FOLDERS)


def depends_of(module: bytes) -> list[str]:
    """Names of the modules that a module says it depends on (`depends=` and `softdep=` of its .modinfo)."""
    found: list[str] = []
    for _, value in re.findall(rb"(?:^|\0)(depends|softdep)=([^\0]*)", module):
        names = value.decode().replace("pre:", " ").replace("post:", " ").replace(",", " ").split()
        found.extend(name_of(name) for name in names)
    return found


def starting_order(table: dict[str, list[str]], builtin: set[str] | None) -> list[str]:
    """Paths of the modules that the first root loads, dependencies first.

    Args:
        table: of :func:`read_dependencies`.
        builtin: of :func:`read_builtin`; None takes what is not there for built in.

    Raises:
        LabError: the kernel lacks a driver that the lab needs.
    """
    by_name = {name_of(path): path for path in table}
    order: list[str] = []
    for name in STARTING:
        path = by_name.get(name)
        if path is None:
            if builtin is not None and name not in builtin and name not in _OPTIONAL:
                raise LabError(f"the kernel has no {name}, neither built in nor as a module; the lab needs it")
            continue
        # modules.dep lists a module's dependencies so that the last one is to be loaded first
        order.extend(p for p in [*reversed(table[path]), path] if p not in order)
    return order


def copy(source: Path, target: Path, programs: Programs) -> None:
    """Copy the modules that a guest needs from a modules folder (`/lib/modules/VERSION`), decompressed.

    Args:
        source: the modules folder.
        target: BASE/lib/modules/VERSION, where VERSION is the kernel's release string; made.
        programs: for depmod and zstd.

    Raises:
        LabError: there are no modules in `source`.
    """
    every = sorted(
        os.path.relpath(os.path.join(folder, name), source)
        for folder, _, names in os.walk(source)
        for name in names
        if _SUFFIX.search(name)
    )
    if not every:
        raise LabError(f"{source}: no kernel module (*.ko, *.ko.xz, *.ko.zst, *.ko.gz) lies below it")
    by_name = {name_of(path): path for path in every}

    def one(path: str) -> list[str]:
        data = _decompressed(source / path, programs)
        plain = target / _SUFFIX.sub(".ko", path)
        plain.parent.mkdir(parents=True, exist_ok=True)
        plain.write_bytes(data)
        return [by_name[name] for name in depends_of(data) if name in by_name]

    done: set[str] = set()
    todo = {path for path in every if kept(path)}
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        while todo:
            done |= todo
            todo = {path for needed in pool.map(one, sorted(todo)) for path in needed} - done
    for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)
    programs.depmod(target.parent.parent.parent, target.name)


def _decompressed(path: Path, programs: Programs) -> bytes:
    data = path.read_bytes()
    try:
        match path.suffix:
            case ".xz":
                return lzma.decompress(data)
            case ".gz":
                return gzip.decompress(data)
            case ".zst":
                return programs.decompress_zstd(data)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, LabError) as error:
        raise LabError(f"{path}: the module does not decompress: {error}") from error
    return data
