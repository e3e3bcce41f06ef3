"""Commands of a trace: what was received and what completed, put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from softhca.prm.syndromes import SYNDROMES
from softhca.trace.reader import Event

RECEIVED = "command.received"
COMPLETED = "command.completed"


@dataclass
class Command:
    """A command.

    Attributes:
        card, function, slot: where.
        opcode: its name, or number.
        op_mod: its modifier.
        start, end: nanoseconds; None: it did not complete.
        delivery, status: names.
        syndrome: number.
        input, output: decoded fields.
        raw_input, raw_output: hexadecimal digits.
    """

    card: int
    function: int
    slot: int
    opcode: str
    op_mod: int
    start: int
    input: Mapping[str, Any]
    raw_input: str
    end: int | None = None
    delivery: str = ""
    status: str = ""
    syndrome: int = 0
    output: Mapping[str, Any] | None = None
    raw_output: str = ""

    @property
    def failed(self) -> bool:
        """Whether it completed without success."""
        return self.end is not None and (self.delivery != "OK" or self.status != "OK")

    @property
    def took(self) -> int | None:
        """Nanoseconds, or None while it has not completed."""
        return None if self.end is None else self.end - self.start

    @property
    def result(self) -> str:
        """In a word or two."""
        if self.end is None:
            return "never completed"
        return self.status if self.delivery == "OK" else f"not delivered: {self.delivery}"

    @property
    def why(self) -> str:
        """What its syndrome says, or "" when it has none that is known."""
        known = SYNDROMES.get(self.syndrome)
        return "" if known is None else known.text

    @property
    def cure(self) -> str:
        """What to look at, or ""."""
        known = SYNDROMES.get(self.syndrome)
        return "" if known is None else known.cure


class Pairing:
    """Puts completions to the commands of their slots, in the order of the trace."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int, int], Command] = {}

    def take(self, event: Event) -> Command | None:
        """The command that an event begins or ends; None when it is no event of a command.

        A completion without a beginning, as a malformed entry has, is a command of its own.
        """
        fields = event.fields
        slot = _number(fields, "slot")
        key = (event.card, event.function, slot)
        if event.point == RECEIVED:
            command = Command(*key, str(fields.get("command")), _number(fields, "op_mod"), event.time, *_input(fields))
            self._open[key] = command
            return command
        if event.point != COMPLETED:
            return None
        found = self._open.pop(key, None)
        if found is None:
            found = Command(*key, str(fields.get("command")), _number(fields, "op_mod"), event.time, {}, "")
        found.end = event.time
        found.delivery, found.status = str(fields.get("delivery")), str(fields.get("status"))
        found.syndrome = _number(fields, "syndrome")
        found.output = _fields(fields)
        found.raw_output = str(fields.get("output", ""))
        return found


def commands(events: Iterable[Event]) -> Iterator[Command]:
    """Every command, in the order in which they began; complete only when the trace has been read to its end."""
    pairing = Pairing()
    every = [(event, pairing.take(event)) for event in events]
    seen: set[int] = set()
    for _, command in every:
        if command is not None and id(command) not in seen:
            seen.add(id(command))
            yield command


def _number(fields: Mapping[str, Any], key: str) -> int:
    value = fields.get(key)
    return value if isinstance(value, int) else 0


def _fields(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    found = fields.get("decoded")
    return found if isinstance(found, dict) else {}


def _input(fields: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    return _fields(fields), str(fields.get("input", ""))
