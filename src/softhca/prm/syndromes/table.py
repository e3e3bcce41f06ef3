"""The table of syndromes and the way to declare one."""

from __future__ import annotations

from dataclasses import dataclass

from softhca.prm.status import CommandStatus


@dataclass(frozen=True)
class Syndrome:
    """Why a command failed.

    Attributes:
        number: 32 bits, unique.
        status: the command status that goes with it.
        text: what is wrong, in a sentence without a full stop.
        cure: what to look at next.
    """

    number: int
    status: CommandStatus
    text: str
    cure: str


SYNDROMES: dict[int, Syndrome] = {}
"""Every syndrome by its number."""


def syndrome(number: int, status: CommandStatus, text: str, cure: str) -> Syndrome:
    """Declare a syndrome.

    Raises:
        ValueError: the number is taken or outside 0xCA000000..0xCAFFFFFF.
    """
    if number in SYNDROMES or number >> 24 != 0xCA:
        raise ValueError(f"syndrome {number:#x}: taken already, or not in 0xCA000000..0xCAFFFFFF")
    SYNDROMES[number] = Syndrome(number, status, text, cure)
    return SYNDROMES[number]
