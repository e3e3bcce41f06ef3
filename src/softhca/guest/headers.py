"""Header files of the distribution, unpacked from its packages into the cache; nothing is installed on the host."""

from __future__ import annotations

import re
from pathlib import Path

from softhca.guest.apt import PrivateApt, shared_apt, unpack
from softhca.guest.cache import Cache, key_of, remove_tree
from softhca.guest.errors import LabError
from softhca.guest.progress import Progress, silent


def header_folder(mirror: str | None = None, progress: Progress = silent) -> Path:
    """Folder of the stable kernel's headers, which has `include/linux/mlx5/mlx5_ifc.h` below it.

    Raises:
        LabError: the package cannot be had.
    """

    def make(work: Path) -> None:
        with shared_apt(cache, mirror, progress) as apt:
            image = next(name for name in apt.resolve(["linux-image-amd64"]) if re.match(r"linux-image-\d", name))
            version = image.removeprefix("linux-image-").removesuffix("-amd64")
            _unpack_one(apt, f"linux-headers-{version}-common", work)

    cache = Cache(progress=progress)
    root = cache.obtain("headers", key_of("linux-headers-common", 1), make)
    return _only(root, "usr/src/linux-headers-*-common")


def _unpack_one(apt: PrivateApt, package: str, work: Path) -> None:
    debs = apt.download_only_these([package], work / "debs")
    unpack(debs, work)
    remove_tree(work / "debs")


def _only(root: Path, pattern: str) -> Path:
    found = list(root.glob(pattern))
    if len(found) != 1:
        raise LabError(f"{root}: {len(found)} folders match {pattern}, one was expected; softhca guest clean helps")
    return found[0]
