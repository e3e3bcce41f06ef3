"""How a guest run ended, and what follows for the exit status."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from softhca.guest.complaints import Complaint

EXIT_TIMEOUT = 124
EXIT_LAB = 125
EXIT_KERNEL = 126


@dataclass
class Outcome:
    """What a run brought.

    Attributes:
        status: the command's exit status, None if it did not come to its end.
        lab_error: what failed in the lab, None if nothing did.
        timed_out: whether the command took longer than it may.
        complaints: of the guest's kernel.
        devices: each device's summary at the end.
    """

    status: int | None = None
    lab_error: str | None = None
    timed_out: bool = False
    complaints: list[Complaint] = field(default_factory=list)
    devices: list[dict[str, Any]] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """`lab`, `timeout`, `kernel`, `command` or `ok`: the first that applies."""
        if self.lab_error is not None:
            return "lab"
        if self.timed_out:
            return "timeout"
        if self.complaints:
            return "kernel"
        return "ok" if self.status == 0 else "command"

    @property
    def exit(self) -> int:
        """The exit status of the run."""
        special = {"lab": EXIT_LAB, "timeout": EXIT_TIMEOUT, "kernel": EXIT_KERNEL}
        if self.verdict in special:
            return special[self.verdict]
        return self.status if self.status is not None else EXIT_LAB

    def as_json(self) -> dict[str, Any]:
        """The verdict as the command line writes it."""
        return {
            "verdict": self.verdict,
            "exit": self.exit,
            "kernel_complaints": [complaint.as_json() for complaint in self.complaints],
            "devices": self.devices,
        }
