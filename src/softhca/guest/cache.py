"""The lab's cache: finished artefacts, named by a hash of what they were made from.

An artefact is a folder. It is made under a temporary name and renamed when it is whole, under a lock that other
processes wait for, so that whoever finds it finds all of it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from softhca.guest.progress import Progress, silent


def key_of(*inputs: object) -> str:
    """A name for what is made from `inputs` (anything that JSON can say)."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:16]


def default_root() -> Path:
    """$XDG_CACHE_HOME/softhca, by default ~/.cache/softhca."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "softhca"


class Cache:
    """A folder of artefacts.

    Args:
        root: where it lies; made when it is missing.
        progress: told when another process is waited for.
    """

    def __init__(self, root: Path | None = None, progress: Progress = silent) -> None:
        self.root = (root if root is not None else default_root()).absolute()
        self.root.mkdir(parents=True, exist_ok=True)
        self._progress = progress

    def path(self, kind: str, key: str) -> Path:
        """Where the artefact lies or will lie."""
        return self.root / f"{kind}-{key}"

    def obtain(self, kind: str, key: str, make: Callable[[Path], None]) -> Path:
        """The artefact's folder; `make` fills it in a temporary place if it does not exist yet."""
        final = self.path(kind, key)
        if final.is_dir():
            return final
        with self.lock(final.name):
            if final.is_dir():
                return final
            for left in self.root.glob(f".{final.name}.*/"):
                remove_tree(left)  # of a process that was killed: nobody else works here while we hold the lock
            work = Path(tempfile.mkdtemp(prefix=f".{final.name}.", dir=self.root))
            try:
                work.chmod(0o755)
                make(work)
                work.rename(final)
            finally:
                remove_tree(work)
        return final

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold the lock `name` against other processes; waits for it and says so."""
        with (self.root / f".{name}.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._progress(f"waiting for {name}, which is in use")
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def artefacts(self) -> list[Path]:
        """The finished artefacts, by name."""
        return sorted(p for p in self.root.iterdir() if p.is_dir() and not p.name.startswith("."))

    def clean(self) -> int:
        """Remove everything in the cache; the number of artefacts removed."""
        gone = len(self.artefacts())
        for path in self.root.iterdir():
            if path.is_dir():
                remove_tree(path)
            else:
                path.unlink(missing_ok=True)
        return gone


def remove_tree(path: Path) -> None:
    """Remove a folder, also one that holds folders without write permission; nothing if it is not there."""
    if not path.is_dir():
        return
    for folder, _, _ in os.walk(path):
        os.chmod(folder, 0o755)
    shutil.rmtree(path)


def disk_usage(path: Path) -> int:
    """Bytes that a folder takes on the disk, while others may work in it."""
    total = 0
    for folder, _, files in os.walk(path):
        for file in files:
            try:
                total += os.lstat(os.path.join(folder, file)).st_blocks * 512
            except FileNotFoundError:
                continue  # renamed or removed since it was listed
    return total
