"""Which lines of the guest's kernel log are complaints, in two classes."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib.resources import files

from softhca.guest.agent import KernelLine

FATAL = re.compile(
    r"""\bWARNING:\s | \bBUG:\s | \bkernel\ BUG\ at\b | \bOops\b | \bKernel\ panic\b
    | \bKASAN:\s | \bKFENCE:\s | \bUBSAN:\s | \bODEBUG:\s | \brefcount_t:\s | \blist_(?:add|del)\ corruption\b
    | \bgeneral\ protection\ fault\b | \bunable\ to\ handle\b | \bUnable\ to\ handle\b
    | \bINFO:\ task\ .*\ blocked\ for\ more\ than\b | \bdetected\ stalls?\b | \bdetected\ expedited\ stalls\b
    | \bINFO:\ possible\ | \bpossible\ recursive\ locking\b | \bDEBUG_LOCKS_WARN_ON\b
    | \b(?:divide\ error|invalid\ opcode|double\ fault|stack\ segment):\s
    | \b[Ii]nconsistent\ lock\b""",
    re.X,
)
"""What the kernel prints when it has found itself broken: WARN, BUG, oops, hung task, stall, KASAN, lockdep."""
DRIVER = re.compile(r"mlx5|infiniband|\bib_\w+|\brdma\w*|\biw_cm\b", re.I)
"""What stands in lines of the driver and of the RDMA core."""
_ERROR_LEVEL = 3


@dataclass(frozen=True)
class Complaint:
    """A line of the kernel log that fails a run.

    Attributes:
        kind: `fatal` or `driver`.
        line: as dmesg prints it.
    """

    kind: str
    line: str

    def as_json(self) -> dict[str, str]:
        """The form that the verdict has."""
        return {"class": self.kind, "line": self.line}


@dataclass(frozen=True)
class Harmless:
    """A pattern of lines that are no complaint, and why."""

    pattern: re.Pattern[str]
    reason: str


def known_harmless() -> list[Harmless]:
    """The committed list."""
    text = files("softhca.guest").joinpath("data/harmless.toml").read_text()
    return [Harmless(re.compile(e["pattern"]), e["reason"]) for e in tomllib.loads(text).get("line", [])]


def classify(line: KernelLine) -> str | None:
    """`fatal`, `driver` or None. A program's own lines in the kernel log are never complaints."""
    if line.facility != 0:
        return None
    if FATAL.search(line.text):
        return "fatal"
    if line.level is not None and line.level <= _ERROR_LEVEL and DRIVER.search(line.text):
        return "driver"
    return None


def find(lines: list[KernelLine], allowed: list[str]) -> list[Complaint]:
    """The complaints among `lines`.

    Args:
        lines: the kernel log.
        allowed: `driver` or `fatal` allow the whole class, anything else is a regular expression for lines.

    Raises:
        ValueError: an entry of `allowed` is no regular expression.
    """
    classes = {entry for entry in allowed if entry in ("driver", "fatal")}
    patterns = [harmless.pattern for harmless in known_harmless()]
    for entry in allowed:
        if entry not in classes:
            try:
                patterns.append(re.compile(entry))
            except re.error as error:
                raise ValueError(f"--allow-kernel {entry}: not a regular expression: {error}") from None
    found = []
    for line in lines:
        kind = classify(line)
        if kind is not None and kind not in classes and not any(p.search(line.text) for p in patterns):
            found.append(Complaint(kind, str(line)))
    return found


def read_console(text: str, after: float) -> list[KernelLine]:
    """Kernel lines of a console, from those later than `after` seconds: what a guest said that died of it."""
    lines = [KernelLine(None, float(m[1]), m[2]) for m in re.finditer(r"\[ *(\d+\.\d+)\] ([^\r\n]*)", text)]
    return [line for line in lines if line.seconds > after]
