"""What the lab raises when it cannot do its work."""

from __future__ import annotations


class LabError(Exception):
    """The lab itself failed (not the guest's command, not its kernel): building, starting or talking to the guest."""


class LabTimeout(LabError):
    """A step of the lab took longer than it may."""
