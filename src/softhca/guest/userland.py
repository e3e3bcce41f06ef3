"""The guest's userland: a read-only image of the distribution's packages, without a kernel."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

from softhca.guest.apt import run_logged, shared_apt, unpack
from softhca.guest.cache import Cache, key_of, remove_tree
from softhca.guest.errors import LabError
from softhca.guest.programs import Programs
from softhca.guest.progress import Progress, step

PACKAGES = """
base-files base-passwd bash dash coreutils sed grep gawk util-linux bsdutils mount procps hostname findutils diffutils
gzip tar libc-bin zstd ncurses-base rdma-core ibverbs-utils ibverbs-providers rdmacm-utils python3-pyverbs perftest
infiniband-diags pciutils iproute2 iputils-ping kmod ethtool
""".split()  # noqa: SIM905

REQUIRED_PROGRAMS = """
awk base64 bash cat chmod cmp cut date dd devlink diff dmesg env ethtool false find free gawk grep gzip head
hostname ib_read_bw ib_read_lat ib_send_bw ib_send_lat ib_write_bw ib_write_lat ibstat ibstatus ibv_asyncwatch
ibv_devices ibv_devinfo ibv_rc_pingpong ibv_srq_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_xsrq_pingpong
insmod ip kill ls lsmod lspci mkdir modinfo modprobe mount nproc nsenter od perl pgrep ping pkill ps python3
rdma rmmod rping script sed seq setpci setsid sh sha256sum sleep sort ss stat stty sysctl tail tar taskset tc
tee test timeout touch tr true udaddy ucmatose umount uname unshare vmstat watch wc xargs
""".split()  # noqa: SIM905

PYVERBS_TESTS = "usr/share/doc/rdma-core/tests"
"""Where python3-pyverbs has rdma-core's own test suite (run `python3 tests/run_tests.py` in its parent folder)."""

_UNNEEDED = (
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/bash-completion",
    "usr/share/zsh",
    "usr/lib/systemd",
    "usr/lib/udev",
    "var/cache",
)
_RECIPE = 3


def packages_of(extra: list[str]) -> list[str]:
    """The packages asked for: the standard ones and `extra`."""
    return sorted({*PACKAGES, *extra})


def key(extra: list[str]) -> str:
    """The cache's key of the image."""
    return key_of("userland", _RECIPE, packages_of(extra), REQUIRED_PROGRAMS)


def obtain(cache: Cache, mirror: str | None, extra: list[str], programs: Programs, progress: Progress) -> Path:
    """The image's path.

    Args:
        cache: where it is kept.
        mirror: URI of a package mirror; None takes the host's.
        extra: more packages that the image shall have.
        programs: the tools that write it.
        progress: told about long steps.

    Raises:
        LabError: a package cannot be had, or the image lacks a program that it must have.
    """

    def make(work: Path) -> None:
        with shared_apt(cache, mirror, progress) as apt:
            debs = apt.download(packages_of(extra), work / "debs")
        tree = work / "tree"
        with step(progress, f"unpacking {len(debs)} packages of the guest"):
            unpack(debs, tree)
        remove_tree(work / "debs")
        with step(progress, "writing the guest's image"):
            _configure(tree)
            check(tree)
            _trim(tree)
            _compile_python(tree)
            programs.make_image(tree, work / "userland.erofs")
        remove_tree(tree)

    return cache.obtain("userland", key(extra), make) / "userland.erofs"


def _configure(tree: Path) -> None:
    """What maintainer scripts would do, as far as it matters here."""
    for name in ("passwd", "group"):
        shutil.copyfile(tree / f"usr/share/base-passwd/{name}.master", tree / "etc" / name)
    awk = tree / "usr/bin/awk"
    if not awk.is_symlink():
        awk.symlink_to("gawk")
    for packed in (tree / PYVERBS_TESTS).glob("*.py.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    (tree / "etc/hostname").write_text("softhca\n")
    (tree / "etc/hosts").write_text("127.0.0.1 localhost softhca\n::1 localhost\n")
    for folder in ("proc", "sys", "dev", "run", "tmp", "root", "mnt", "var/tmp", "usr/lib/modules"):
        (tree / folder).mkdir(parents=True, exist_ok=True)


def check(tree: Path) -> None:
    """Look for everything that the image must have.

    Raises:
        LabError: names what is missing.
    """
    folders = [tree / "usr/bin", tree / "usr/sbin"]
    missing = [p for p in REQUIRED_PROGRAMS if not any((f / p).is_symlink() or (f / p).is_file() for f in folders)]
    if not (tree / PYVERBS_TESTS / "test_cq.py").is_file():
        missing.append(f"{PYVERBS_TESTS}/test_cq.py")
    if missing:
        raise LabError(f"the guest's image lacks {', '.join(missing)}: the packages no longer bring them")


def _trim(tree: Path) -> None:
    for folder in _UNNEEDED:
        remove_tree(tree / folder)
    documentation = tree / "usr/share/doc"
    for package in documentation.iterdir():
        if package.is_dir() and not package.is_symlink() and package.name != "rdma-core":
            remove_tree(package)


def _compile_python(tree: Path) -> None:
    """Byte-compile; by unchecked hash, since the image's writer changes the sources' times."""
    interpreter = next(p for p in sorted((tree / "usr/bin").glob("python3.*")) if p.name.count(".") == 1)
    library = tree / "usr/lib" / interpreter.name
    guest = Programs(tree)
    folders = [str(library), str(tree / "usr/lib/python3/dist-packages"), str(tree / PYVERBS_TESTS)]
    options = ["-q", "--invalidation-mode", "unchecked-hash", "-s", str(tree), "-p", "/"]
    command = guest.command(f"usr/bin/{interpreter.name}", "-m", "compileall", *options, *folders)
    run_logged(command, {"PYTHONHOME": str(tree / "usr"), "PATH": "/usr/bin:/bin"})
