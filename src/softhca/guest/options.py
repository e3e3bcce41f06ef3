"""How a run of guests is to be, and what its guests get."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softhca.bus import Device
from softhca.guest.agent import Sink
from softhca.guest.machine import DEFAULT_MEMORY

MAX_DEVICES = 16
"""Devices of one guest."""
MAX_GUESTS = 16


@dataclass(frozen=True)
class Served:
    """A device that a guest gets.

    Attributes:
        device: what is served.
        summary: says what became of it, as JSON.
    """

    device: Device
    summary: Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Options:
    """How a run is to be.

    Attributes:
        kernel: `stable`, `newest` or `VMLINUZ:MODULES_DIR`.
        packages: more packages for the image.
        memory: MiB of each guest.
        boot: boot really, even if a saved state would do.
        mirror: URI of a package mirror; None takes the host's.
        timeout: seconds that the command may take.
        grace: seconds that the other guests may go on when one has failed.
        keep: folder that the logs are copied to.
        copy_in: files for the command's working folder, in each guest.
        copy_out: (file in the guest, file here); with several guests each file here gets the guest's number as suffix.
        load_modules: whether the driver is loaded before the command starts.
        allow_kernel: complaints that do not fail the run, see :func:`complaints.find`.
    """

    kernel: str = "stable"
    packages: list[str] = field(default_factory=list)
    memory: int = DEFAULT_MEMORY
    boot: bool = False
    mirror: str | None = None
    timeout: float = 300.0
    grace: float = 30.0
    keep: Path | None = None
    copy_in: list[Path] = field(default_factory=list)
    copy_out: list[tuple[str, Path]] = field(default_factory=list)
    load_modules: bool = True
    allow_kernel: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Streams:
    """Where a command's output goes."""

    output: Sink
    error: Sink
