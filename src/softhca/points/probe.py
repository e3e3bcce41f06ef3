"""The probe: what a card's points talk to while somebody watches it, or disturbs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from softhca.points.point import Effect, Point

Value = int | str | bytes


@dataclass(frozen=True)
class Fault:
    """What a rule wants done at the point that was passed.

    Attributes:
        effect: which.
        value: of its key; True as 1, a name as its number, a time in nanoseconds.
        more: values of its further keys.
    """

    effect: Effect
    value: int
    more: dict[str, int] = field(default_factory=dict)


class Clock(Protocol):
    """What tells the time of events."""

    def now(self) -> int:
        """Nanoseconds."""
        ...


Recorder = Callable[[int, int, int, Point, tuple[Value, ...]], None]
"""Takes time (ns), card, function_id, point and the values of its fields."""


class Rules(Protocol):
    """Fault rules; `softhca.points.rules` has them."""

    def watches(self, point: Point) -> bool:
        """Whether one of them is for this point."""
        ...

    def match(self, card: int, function_id: int, point: Point, values: tuple[Value, ...]) -> Fault | None:
        """Count the hit, and tell what is to be done, if anything."""
        ...


class Probe:
    """Of one card.

    Args:
        clock: of the card's engine.
        card: its index among the cards of a process.
        record: takes every event, or None.
        rules: fault rules, or None.

    Attributes:
        record, rules: as given.
        on_card: does an effect on the whole card, by its name; the card puts its own in.
    """

    def __init__(self, clock: Clock, card: int = 0, record: Recorder | None = None, rules: Rules | None = None) -> None:
        self._now = clock.now
        self._card = card
        self.record = record
        self.rules = rules
        self.on_card: dict[str, Callable[[Fault], None]] = {}

    def hit(self, point: Point, function_id: int, *values: Value) -> Fault | None:
        """A point is passed.

        Args:
            point: which.
            function_id: in which function.
            values: of the point's fields, in their order.

        Returns:
            What the caller has to do wrong, or None. An effect on the whole card has been done already.
        """
        if self.record is not None:
            self.record(self._now(), self._card, function_id, point, values)
        if self.rules is None:
            return None
        fault = self.rules.match(self._card, function_id, point, values)
        if fault is not None and fault.effect.card:
            self.act(fault)
            return None
        return fault

    def watches(self, point: Point) -> bool:
        """Whether a rule is for a point that is not told of otherwise."""
        return self.rules is not None and self.rules.watches(point)

    def act(self, fault: Fault) -> None:
        """Do an effect on the whole card.

        Raises:
            KeyError: the card has put none of that name in.
        """
        self.on_card[fault.effect.name](fault)
