"""The kernels that a guest can run: the distribution's stable and newest ones, or one given by path."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from softhca.guest import cpio, kernel_image, modules
from softhca.guest.apt import BACKPORTS, shared_apt, unpack
from softhca.guest.cache import Cache, key_of, remove_tree
from softhca.guest.errors import LabError
from softhca.guest.programs import Programs
from softhca.guest.progress import Progress, silent, step

_RECIPE = 3
_PARTS = re.compile(r"linux-(image|binary|modules|base)-\d")
DISTRIBUTED = {"stable": None, "newest": BACKPORTS}
"""Name -> suite that the distribution's kernel is taken from (None: the release itself)."""


@dataclass(frozen=True)
class Kernel:
    """A kernel, ready to boot.

    Attributes:
        folder: where its files lie.
        version: its release string (`uname -r`).
    """

    folder: Path
    version: str

    @property
    def kernel(self) -> Path:
        """What the virtual machine starts."""
        return self.folder / "kernel"

    def initrd(self) -> bytes:
        """Its first root, with the programs that run first in a guest."""
        programs = [cpio.file(name, text.encode(), 0o755) for name, text in guest_programs().items()]
        return (self.folder / "starting.cpio").read_bytes() + cpio.archive(programs)

    @property
    def modules(self) -> Path:
        """Image with its modules."""
        return self.folder / "modules.erofs"


def parse(choice: str) -> tuple[Path, Path] | None:
    """Paths of a `VMLINUZ:MODULES_DIR` choice; None for a name of :data:`DISTRIBUTED`.

    Raises:
        LabError: it is neither, or a path does not exist.
    """
    if choice in DISTRIBUTED:
        return None
    image, separator, folder = choice.rpartition(":")
    if not separator:
        raise LabError(f"--kernel {choice}: allowed are {', '.join(DISTRIBUTED)} or VMLINUZ:MODULES_DIR")
    if not Path(image).is_file():
        raise LabError(f"--kernel {choice}: there is no file {image}")
    if not Path(folder).is_dir():
        raise LabError(f"--kernel {choice}: there is no folder {folder}")
    return Path(image).absolute(), Path(folder).resolve()


def key(choice: str) -> str:
    """The cache's key of a kernel; for one given by path it changes with its files."""
    common = [_RECIPE, modules.KEPT_FOLDERS, modules.STARTING]
    paths = parse(choice)
    if paths is None:
        return key_of("kernel", choice, *common)
    stamps = [(str(paths[0]), *_stamp(paths[0]))]
    for folder, _, names in os.walk(paths[1]):
        stamps.extend((os.path.join(folder, name), *_stamp(Path(folder, name))) for name in names)
    return key_of("kernel", sorted(stamps), *common)


def _stamp(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_size, status.st_mtime_ns


def obtain(cache: Cache, mirror: str | None, choice: str, programs: Programs, progress: Progress) -> Kernel:
    """The kernel of a choice.

    Args:
        cache: where it is kept.
        mirror: URI of a package mirror; None takes the host's.
        choice: `stable`, `newest` or `VMLINUZ:MODULES_DIR`.
        programs: the tools that prepare it.
        progress: told about long steps.

    Raises:
        LabError: it cannot be had or does not fit together.
    """
    paths = parse(choice)

    def make(work: Path) -> None:
        if paths is not None:
            _prepare(work, *paths, programs, progress)
            return
        _fetch(cache, mirror, "linux-image-amd64", DISTRIBUTED[choice], work, progress)
        _prepare(work, *_find(work / "tree"), programs, progress)
        remove_tree(work / "tree")

    folder = cache.obtain("kernel", key(choice), make)
    return Kernel(folder, json.loads((folder / "info.json").read_text())["version"])


def unpacked(package: str, mirror: str | None = None, progress: Progress = silent) -> tuple[Path, Path]:
    """Kernel and modules folder of another kernel package of the distribution, as `VMLINUZ:MODULES_DIR` takes them.

    Args:
        package: for instance `linux-image-cloud-amd64`.
        mirror: URI of a package mirror; None takes the host's.
        progress: told about long steps.

    Raises:
        LabError: the package cannot be had.
    """

    def make(work: Path) -> None:
        _fetch(cache, mirror, package, None, work, progress)

    cache = Cache(progress=progress)
    return _find(cache.obtain("kernel-package", key_of(_RECIPE, package), make) / "tree")


def _fetch(cache: Cache, mirror: str | None, package: str, suite: str | None, work: Path, progress: Progress) -> None:
    """Unpack a kernel package, without what it depends on otherwise, into work/tree."""
    with shared_apt(cache, mirror, progress) as apt:
        parts = [f"{name}={version}" for name, version in apt.resolve([package], suite).items() if _PARTS.match(name)]
        debs = apt.download_only_these(parts, work / "debs")
    with step(progress, f"unpacking {package}"):
        unpack(debs, work / "tree")
    remove_tree(work / "debs")


def _find(tree: Path) -> tuple[Path, Path]:
    """Kernel and modules folder in an unpacked kernel package (the newer packages have both in one folder)."""
    folders = [p for p in (tree / "usr/lib/modules").iterdir() if (p / "kernel").is_dir()]
    if len(folders) != 1:
        raise LabError(f"the kernel's packages hold {len(folders)} modules folders, one was expected")
    for image in (tree / "boot" / f"vmlinuz-{folders[0].name}", folders[0] / "vmlinuz"):
        if image.is_file():
            return image, folders[0]
    raise LabError(f"the kernel's packages hold no vmlinuz of {folders[0].name}")


def _prepare(work: Path, image: Path, folder: Path, programs: Programs, progress: Progress) -> None:
    data = image.read_bytes()
    version = kernel_image.version_of(data) or folder.name
    if version != folder.name:
        raise LabError(
            f"kernel {image} is of version {version}, but its modules folder is named {folder.name}: "
            "the folder must bear the kernel's version, as /lib/modules/VERSION does"
        )
    with step(progress, f"preparing kernel {version}"):
        (work / "kernel").write_bytes(kernel_image.extract(data, programs.decompress_zstd) or data)
        base = work / "modules"
        (base / "usr/lib").mkdir(parents=True)
        (base / "lib").symlink_to("usr/lib")
        target = base / "usr/lib/modules" / version
        modules.copy(folder, target, programs)
        (work / "starting.cpio").write_bytes(_starting(target, programs))
        (base / "lib").unlink()
        programs.make_image(base, work / "modules.erofs")
        remove_tree(base)
    (work / "info.json").write_text(json.dumps({"version": version}))


def guest_programs() -> dict[str, str]:
    """The scripts of ours that run in a guest: name in the first root -> text."""
    data = files("softhca.guest").joinpath("data")
    programs = {"init": "first.sh", "agent": "agent.sh", "softhca-barrier": "barrier.sh"}
    return {name: data.joinpath(file).read_text() for name, file in programs.items()}


def _starting(folder: Path, programs: Programs) -> bytes:
    order = modules.starting_order(modules.read_dependencies(folder), modules.read_builtin(folder))
    entries = [cpio.folder(name) for name in ("bin", "dev", "proc", "sys", "modules", "mnt")]
    entries.append(cpio.character_device("dev/console", 5, 1))
    entries.append(cpio.file("bin/busybox", (programs.root / "usr/bin/busybox").read_bytes(), 0o755))
    for number, path in enumerate(order):
        entries.append(cpio.file(f"modules/{number:03}-{path.rsplit('/', 1)[-1]}", (folder / path).read_bytes()))
    return cpio.archive(entries)
