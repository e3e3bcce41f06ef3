"""Packages without root: a private apt that shares nothing with the host's, and `dpkg-deb -x`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from softhca.guest.cache import Cache, disk_usage
from softhca.guest.errors import LabError
from softhca.guest.mirror import find_mirror
from softhca.guest.progress import Progress, step

SUITE = "trixie"
BACKPORTS = "trixie-backports"
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_LISTS_GOOD_FOR = 86400.0
"""Seconds after which the package lists are fetched anew."""
_TICK = 5.0
"""Seconds between two words about a long step."""
_PROVIDERS = {"apt-get": "apt", "dpkg-deb": "dpkg", "apt-config": "apt"}

_CONFIG = """\
Dir "/";
Dir::Etc "{root}/etc";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "{root}/etc/apt.conf.d";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "{root}/etc/sources.list.d";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "{root}/etc/preferences.d";
Dir::Etc::trusted "/dev/null";
Dir::Etc::trustedparts "/dev/null";
Dir::State "{root}/state";
Dir::State::status "{root}/state/status";
Dir::Cache "{root}/cache";
Dir::Log "{root}/log";
APT::Architecture "amd64";
APT::Architectures {{ "amd64"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "";
APT::Get::Assume-Yes "true";
Acquire::Languages "none";
Acquire::Check-Valid-Until "false";
Acquire::Retries "3";
pkgCacheGen::Essential "none";
"""

_SOURCES = """\
Types: deb
URIs: {mirror}
Suites: {suites}
Components: main
Architectures: amd64
Signed-By: {keyring}
"""


def need_program(name: str) -> str:
    """Path of a program of the host.

    Raises:
        LabError: it is missing; says which package brings it.
    """
    path = shutil.which(name)
    if path is None:
        raise LabError(f"{name} is missing on this machine: apt-get install {_PROVIDERS.get(name, name)}")
    return path


def run_logged(
    command: list[str],
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    while_waiting: Callable[[], None] = lambda: None,
) -> str:
    """Run a host program and return its output.

    Args:
        command: its words.
        env: its environment; None passes this process's on.
        cwd: its working folder.
        while_waiting: called every few seconds.

    Raises:
        LabError: it failed; with the end of what it printed.
    """
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=printed, stderr=complaints
        )
        while True:
            try:
                process.wait(_TICK)
                break
            except subprocess.TimeoutExpired:
                while_waiting()
            except BaseException:
                process.kill()
                raise
        texts = []
        for file in (printed, complaints):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    if process.returncode:
        tail = "\n".join("".join(texts).strip().splitlines()[-15:])
        raise LabError(f"{' '.join(command[:6])} ... ended with status {process.returncode}:\n{tail}")
    return texts[0]


def _host_network_settings() -> str:
    """Proxies and certificates of the host's apt, which the private one needs too."""
    dump = run_logged([need_program("apt-config"), "dump"])
    wanted = re.compile(r'^Acquire::(?:http|https)(?:::[^ ]+)* ".+";$', re.M)
    return "\n".join(wanted.findall(dump)) + "\n"


class PrivateApt:
    """An apt of our own below `root`, with the lab's suites at `mirror`.

    Args:
        root: its folder.
        mirror: URI of a mirror of the distribution.
        progress: told about long steps.

    Raises:
        LabError: a program or the archive's keyring is missing on this machine.
    """

    def __init__(self, root: Path, mirror: str, progress: Progress) -> None:
        self._root = root
        self._mirror = mirror
        self._progress = progress
        self._apt_get = need_program("apt-get")
        if not _KEYRING.exists():
            raise LabError(f"{_KEYRING} is missing on this machine: apt-get install debian-archive-keyring")
        for folder in ("etc/apt.conf.d", "etc/sources.list.d", "etc/preferences.d", "state", "cache", "log"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        (root / "state/status").touch()
        (root / "apt.conf").write_text(_CONFIG.format(root=root) + _host_network_settings())
        sources = _SOURCES.format(mirror=mirror, suites=f"{SUITE} {BACKPORTS}", keyring=_KEYRING)
        (root / "etc/sources.list.d/lab.sources").write_text(sources)
        self._env = {
            **os.environ,
            "APT_CONFIG": str(root / "apt.conf"),
            "LC_ALL": "C",
            "DEBIAN_FRONTEND": "noninteractive",
        }

    def update(self) -> None:
        """Fetch the package lists."""
        with step(self._progress, f"package lists from {self._mirror}"):
            run_logged([self._apt_get, "-q", "update", "-o", "APT::Update::Error-Mode=any"], self._env)

    def resolve(self, packages: list[str], suite: str | None = None) -> dict[str, str]:
        """Name -> version of what would be installed for `packages`, dependencies included."""
        target = ["-t", suite] if suite else []
        output = run_logged([self._apt_get, "-s", *target, "install", *packages], self._env)
        return dict(re.findall(r"^Inst (\S+) \((\S+)", output, re.M))

    def download(self, packages: list[str], folder: Path, suite: str | None = None) -> list[Path]:
        """Download `packages` and all they depend on into `folder`; the package files."""
        (folder / "partial").mkdir(parents=True, exist_ok=True)
        target = ["-t", suite] if suite else []
        archives = ["-o", f"Dir::Cache::archives={folder}/", "--download-only"]
        with step(self._progress, f"downloading {_short(packages)}"):
            command = [self._apt_get, "-q", *target, *archives, "install", *packages]
            run_logged(command, self._env, while_waiting=lambda: self._tell_size(folder))
        return sorted(folder.glob("*.deb"))

    def download_only_these(self, packages: list[str], folder: Path) -> list[Path]:
        """Download exactly these packages (NAME or NAME=VERSION) into `folder`; the package files."""
        folder.mkdir(parents=True, exist_ok=True)
        with step(self._progress, f"downloading {_short(packages)}"):
            command = [self._apt_get, "-q", "download", *packages]
            run_logged(command, self._env, cwd=folder, while_waiting=lambda: self._tell_size(folder))
        return sorted(folder.glob("*.deb"))

    def _tell_size(self, folder: Path) -> None:
        self._progress(f"{disk_usage(folder) / 1e6:.0f} MB so far")


@contextmanager
def shared_apt(cache: Cache, mirror: str | None, progress: Progress) -> Iterator[PrivateApt]:
    """The cache's apt with lists of today, held against other processes; `mirror` None takes the host's.

    Raises:
        LabError: no mirror is known, or it cannot be reached.
    """
    root = cache.root / ".apt"
    stamp = root / "updated"
    with cache.lock("package-lists"):
        mirror = mirror.rstrip("/") if mirror else find_mirror()
        fresh = (
            stamp.is_file() and stamp.read_text() == mirror and time.time() - stamp.stat().st_mtime < _LISTS_GOOD_FOR
        )
        apt = PrivateApt(root, mirror, progress)
        if not fresh:
            apt.update()
            stamp.write_text(mirror)
        yield apt


def _short(packages: list[str]) -> str:
    return " ".join(packages[:3]) + (f" and {len(packages) - 3} more" if len(packages) > 3 else "")


def unpack(debs: list[Path], root: Path) -> None:
    """Unpack package files into a tree with merged /usr, as an ordinary user.

    Raises:
        LabError: a package does not unpack.
    """
    dpkg_deb = need_program("dpkg-deb")
    for folder in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / folder).mkdir(parents=True, exist_ok=True)
        if not (root / folder).is_symlink():
            (root / folder).symlink_to(f"usr/{folder}")

    def one(deb: Path) -> None:
        run_logged([dpkg_deb, "-x", str(deb), str(root)])

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(one, debs))
