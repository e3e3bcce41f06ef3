"""Where the guests of a run meet: what softhca-barrier in a guest asks, over a port of its own.

A guest waits with ``wait ID NAME`` (NAME may be empty), and is answered with ``ok ID`` when all wait with the same
NAME, or with ``fail ID WHY`` as soon as they cannot meet any more. ``leave ID`` takes a question back that has not been
answered; its answer, ``fail ID WHY``, says who was missing. A guest's new question replaces its old one: that one's
asker is gone. Lines of another form are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_LINE = re.compile(r"(wait|leave) ([\w.-]{1,64})(?: ([\w.-]{0,64}))?$", re.ASCII)
MAX_LINE = 256
"""Bytes that a line has at most; a guest that sends more without an end of line is not listened to any further."""


@dataclass(frozen=True)
class _Waiting:
    """The question of a guest that waits."""

    number: str
    name: str

    def __str__(self) -> str:
        return f"at {self.name!r}" if self.name else "at a barrier without a name"


class Barrier:
    """The meeting place of `count` guests, numbered from 0.

    Args:
        count: guests.
        send: takes a guest's number and the line (without its end) that answers it.
    """

    def __init__(self, count: int, send: Callable[[int, str], None]) -> None:
        self._count = count
        self._send = send
        self._waiting: dict[int, _Waiting] = {}
        self._ended: dict[int, str] = {}

    def heard(self, guest: int, line: str) -> None:
        """Take a line that a guest sent."""
        match = _LINE.match(line)
        if match is None:
            return
        word, number, name = match.groups()
        if word == "wait":
            self._waiting[guest] = _Waiting(number, name or "")
            self._settle()
        elif guest in self._waiting and self._waiting[guest].number == number:
            del self._waiting[guest]
            self._send(guest, f"fail {number} waited too long for {self._names(self._missing() - {guest})}")

    def ended(self, guest: int, why: str) -> None:
        """A guest will come no more; `why` completes the sentence "guest 1 ..."."""
        self._ended.setdefault(guest, why)
        self._waiting.pop(guest, None)
        self._settle()

    def describe(self, guest: int) -> str | None:
        """Where a guest waits and for whom, for messages; None if it does not."""
        waiting = self._waiting.get(guest)
        return None if waiting is None else f"it waited {waiting} for {self._names(self._missing())}"

    def _missing(self) -> set[int]:
        return set(range(self._count)) - set(self._waiting)

    @staticmethod
    def _names(guests: set[int]) -> str:
        return ("guest " if len(guests) == 1 else "guests ") + ", ".join(map(str, sorted(guests)))

    def _settle(self) -> None:
        """Let all go on if they have met, or say why they never will."""
        waiting = self._waiting
        if not waiting:
            return
        if self._ended:
            reasons = [f"guest {guest} {why}" for guest, why in sorted(self._ended.items())]
            self._answer_all(f"fail {{}} {'; '.join(reasons)}, and cannot come")
        elif len(waiting) == self._count:
            if len({w.name for w in waiting.values()}) == 1:
                self._answer_all("ok {}")
            else:
                where = "; ".join(f"guest {guest} waits {waiting[guest]}" for guest in sorted(waiting))
                self._answer_all(f"fail {{}} {where}: they never meet")

    def _answer_all(self, answer: str) -> None:
        waiting, self._waiting = self._waiting, {}
        for guest, question in waiting.items():
            self._send(guest, answer.replace("{}", question.number, 1))
