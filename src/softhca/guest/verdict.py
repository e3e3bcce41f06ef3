"""How a run of guests ended, and what follows for the exit status."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from softhca.guest.complaints import Complaint

EXIT_TIMEOUT = 124
EXIT_LAB = 125
EXIT_KERNEL = 126
VERDICTS = ("lab", "timeout", "kernel", "command", "stopped", "ok")
"""From the gravest on: a run's verdict is the first that one of its guests has."""


@dataclass
class Outcome:
    """What a run brought in one guest.

    Attributes:
        status: the command's exit status, None if it did not come to its end.
        lab_error: what failed in the lab, None if nothing did.
        timed_out: whether the command took longer than it may.
        stopped: why it was ended because of another guest, None if it was not.
        waited: what the command was waiting for when it took too long, as far as that is known.
        complaints: of the guest's kernel.
        devices: each device's summary at the end.
        output, error: what the command printed, of a long one the end.
    """

    status: int | None = None
    lab_error: str | None = None
    timed_out: bool = False
    stopped: str | None = None
    waited: str | None = None
    complaints: list[Complaint] = field(default_factory=list)
    devices: list[dict[str, Any]] = field(default_factory=list)
    output: bytes = b""
    error: bytes = b""

    @property
    def verdict(self) -> str:
        """The first of :data:`VERDICTS` that applies."""
        if self.lab_error is not None:
            return "lab"
        if self.timed_out:
            return "timeout"
        if self.complaints:
            return "kernel"
        if self.stopped is not None:
            return "stopped"
        return "ok" if self.status == 0 else "command"

    @property
    def exit(self) -> int:
        """The exit status that follows."""
        special = {"lab": EXIT_LAB, "timeout": EXIT_TIMEOUT, "kernel": EXIT_KERNEL, "stopped": EXIT_TIMEOUT}
        if self.verdict in special:
            return special[self.verdict]
        return self.status if self.status is not None else EXIT_LAB

    @property
    def reason(self) -> str | None:
        """A sentence on what went wrong outside of the command and the kernel; None if nothing did."""
        if self.lab_error is not None:
            return f"the lab failed: {self.lab_error}"
        if self.timed_out:
            return "the command took too long" + (f"; {self.waited}" if self.waited else "")
        return self.stopped

    def as_json(self) -> dict[str, Any]:
        """The guest's part of the verdict as the command line writes it."""
        return {
            "verdict": self.verdict,
            "exit": self.exit,
            "status": self.status,
            "reason": self.reason,
            "kernel_complaints": [complaint.as_json() for complaint in self.complaints],
            "devices": self.devices,
            "output": self.output.decode(errors="replace"),
            "error": self.error.decode(errors="replace"),
        }


@dataclass
class Verdict:
    """What a run brought in all its guests; they are numbered from 0."""

    guests: list[Outcome]

    @property
    def decisive(self) -> Outcome:
        """The guest that decides: the first one with the gravest verdict."""
        return min(self.guests, key=lambda outcome: VERDICTS.index(outcome.verdict))

    @property
    def verdict(self) -> str:
        """The gravest verdict of a guest."""
        return self.decisive.verdict

    @property
    def exit(self) -> int:
        """The exit status of the run: that of the guest that decides."""
        return self.decisive.exit

    def as_json(self) -> dict[str, Any]:
        """The verdict as the command line writes it; complaints and devices are those of all guests."""
        guests = [outcome.as_json() for outcome in self.guests]
        return {
            "verdict": self.verdict,
            "exit": self.exit,
            "kernel_complaints": [complaint for guest in guests for complaint in guest["kernel_complaints"]],
            "devices": [device for guest in guests for device in guest["devices"]],
            "guests": [{"guest": number, **guest} for number, guest in enumerate(guests)],
        }
