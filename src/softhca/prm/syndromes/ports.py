"""Syndromes of ports, vports, address tables and registers (area 03)."""

from softhca.prm.status import CommandStatus
from softhca.prm.syndromes.table import syndrome

UNKNOWN_REGISTER = syndrome(
    0xCA030001,
    CommandStatus.BAD_PARAM,
    "the register id is not one that this device has",
    "docs/conformance.md for the registers; PCAM and MCAM for what is announced",
)
