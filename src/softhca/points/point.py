"""What a named point is: what it tells, and what can be made to go wrong there."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum


class Kind(Enum):
    """How a value of an event is written in a trace and given in a rule."""

    NUMBER = "number"
    """Decimal."""
    HEX = "hexadecimal number"
    FLAG = "true or false"
    NAME = "name"
    """A member of :attr:`Field.names`, by name."""
    TEXT = "text"
    BYTES = "bytes"
    """Raw; hexadecimal digits in a trace. No rule matches on it."""
    TIME = "time"
    """Nanoseconds; in a rule a number with ns, us, ms or s behind it."""


@dataclass(frozen=True)
class Field:
    """A value that an event carries, or that an effect takes.

    Attributes:
        name: as events and rules have it.
        kind: how it is written.
        text: what it is.
        names: of :attr:`Kind.NAME`.
        least, most: of a number.
    """

    name: str
    kind: Kind
    text: str
    names: type[IntEnum] | None = None
    least: int = 0
    most: int = (1 << 64) - 1


@dataclass(frozen=True)
class Effect:
    """Something that a rule can do.

    Attributes:
        name: the key in a rule.
        text: what it does.
        value: what the key is given.
        more: further keys that go with it.
        card: the card as a whole does it, so that any point can set it off; else the point where it is listed does.
    """

    name: str
    text: str
    value: Field
    more: tuple[Field, ...] = ()
    card: bool = False


@dataclass(frozen=True, eq=False)
class Point:
    """A place in the device that is told of. Points are compared by identity.

    Attributes:
        name: dotted.
        text: when it is passed.
        fields: what its events carry, in the order of :meth:`softhca.points.probe.Probe.hit`.
        effects: what a rule can do there, beside the effects on the whole card.
    """

    name: str
    text: str
    fields: tuple[Field, ...] = ()
    effects: tuple[Effect, ...] = field(default=())
