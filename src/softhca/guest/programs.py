"""Programs of the distribution, run from their unpacked packages with the packages' own libraries."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from softhca.guest.apt import BACKPORTS, run_logged, shared_apt, unpack
from softhca.guest.cache import Cache, key_of, remove_tree
from softhca.guest.errors import LabError
from softhca.guest.progress import Progress, step

PACKAGES = ["qemu-system-x86", "erofs-utils", "kmod", "zstd", "busybox-static"]
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_RECIPE = 2


class Programs:
    """A tree of unpacked packages whose programs run on this host, whatever the host's C library is.

    Args:
        root: top of the tree.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def command(self, program: str, *arguments: str) -> list[str]:
        """The command line that runs `program` (a path below the tree) through the tree's own dynamic loader."""
        loader = [str(self.root / "usr/lib64/ld-linux-x86-64.so.2"), "--inhibit-cache"]
        libraries = ["--library-path", str(self.root / _LIBRARIES)]
        name = Path(program).name
        return [*loader, *libraries, "--argv0", name, str(self.root / program), *arguments]

    def run(self, program: str, *arguments: str, name: str | None = None) -> str:
        """Run a program to its end and return its output; `name` is what it sees as its own name.

        Raises:
            LabError: it failed.
        """
        command = self.command(program, *arguments)
        if name is not None:
            command[command.index("--argv0") + 1] = name
        return run_logged(command)

    def qemu(self, *arguments: str) -> list[str]:
        """The command line that runs QEMU."""
        data = ("usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu")
        folders = [part for folder in data for part in ("-L", str(self.root / folder))]
        return self.command("usr/bin/qemu-system-x86_64", *folders, *arguments)

    def environment(self) -> dict[str, str]:
        """The environment that QEMU needs."""
        return {**os.environ, "QEMU_MODULE_DIR": str(self.root / _LIBRARIES / "qemu")}

    def decompress_zstd(self, data: bytes) -> bytes:
        """Take one zstd frame apart.

        Raises:
            LabError: it is damaged.
        """
        command = self.command("usr/bin/zstd", "-q", "-d", "-c")
        done = subprocess.run(command, input=data, capture_output=True, check=False)
        if done.returncode:
            raise LabError(done.stderr.decode(errors="replace").strip() or f"zstd ended with status {done.returncode}")
        return done.stdout

    def make_image(self, tree: Path, image: Path) -> None:
        """Write an uncompressed erofs image of a tree, every file owned by root."""
        self.run("usr/bin/mkfs.erofs", "--quiet", "-x-1", "--all-root", "-T0", str(image), str(tree))

    def depmod(self, base: Path, version: str) -> None:
        """Write the dependency lists of base/lib/modules/version."""
        self.run("usr/bin/kmod", "-b", str(base), version, name="depmod")


def key() -> str:
    """The cache's key of the programs."""
    return key_of("programs", _RECIPE, PACKAGES)


def obtain(cache: Cache, mirror: str | None, progress: Progress) -> Programs:
    """The host's side of the lab: QEMU, the image writer, module tools.

    Raises:
        LabError: a package cannot be had or does not unpack; this machine is of another architecture.
    """
    if platform.machine() != "x86_64":
        raise LabError(f"the lab needs an x86_64 machine; this one is {platform.machine()}")

    def make(work: Path) -> None:
        with shared_apt(cache, mirror, progress) as apt:
            debs = apt.download(PACKAGES, work / "debs", BACKPORTS)
        with step(progress, "unpacking QEMU and tools"):
            unpack(debs, work)
        remove_tree(work / "debs")

    return Programs(cache.obtain("programs", key(), make))
