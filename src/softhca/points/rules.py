"""Fault rules: where, when and what goes wrong (design "Faults and trace"; D7, D9, D10, E3, F5).

A rule is a table of keys, in a TOML file as ``[[fault]]``, or on one line::

    command=CREATE_CQ nth=3 status=NO_RESOURCES

It has one effect (`status`), may have values that the event of a point has to have (`command`), and may say which of
the events that have them it is for (`nth`, `count`, `probability`, `function`, `card`). The point need not be named
when only one has that effect and those fields. With `at` the rule acts by itself when that time has passed.
"""

from __future__ import annotations

import difflib
import random
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from softhca.points.catalogue import CARD_EFFECTS, POINTS, TIME
from softhca.points.point import Effect, Field, Kind, Point
from softhca.points.probe import Fault, Probe, Value

MOST_RULES = 1000
MOST_BYTES = 1 << 20
"""Most bytes of a rule file."""
MOST_NAMES = 40
"""Most names that a message lists."""

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TIME = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(ns|us|ms|s)")
_TRUE = ("true", "1", "yes")
_FALSE = ("false", "0", "no")
_MOST_UNNAMED = 0xFFFF

WHEN: dict[str, Field] = {
    field_.name: field_
    for field_ in (
        Field("point", Kind.TEXT, "name of the point, where the other keys leave it open"),
        Field("card", Kind.NUMBER, "index of the card among those of the process"),
        Field("function", Kind.NUMBER, "function_id"),
        Field("nth", Kind.NUMBER, "the first event that it is for, counted from 1", least=1),
        Field("count", Kind.NUMBER, "how many events from there on; 0: all (default 1)"),
        Field("probability", Kind.TEXT, "chance of each of these events, 0 to 1"),
        Field("seed", Kind.NUMBER, "of the draws of `probability`"),
        Field("at", Kind.TIME, "acts once, when this time has passed since the start"),
    )
}
"""Keys that every rule may have."""


class RuleError(ValueError):
    """A rule that is refused; the text names the place, the key and what is allowed."""


@dataclass
class Rule:
    """One rule.

    Attributes:
        source: where it stands, for messages.
        point: where it acts.
        match: index of a field of the point -> the value that it has to have.
        effect, value, more: what it does.
        card, function: whose events it is for; None: of any.
        nth, count: which of the events; count 0: all from `nth` on.
        probability: of each.
        at: nanoseconds after the start, of a rule that acts by itself.
        active: it has not been taken away.
        seen, fired: events that it was for so far, and how often it acted.
    """

    source: str
    point: Point
    match: tuple[tuple[int, Value], ...]
    effect: Effect
    value: int
    more: dict[str, int] = field(default_factory=dict)
    card: int | None = None
    function: int | None = None
    nth: int = 1
    count: int = 1
    probability: float = 1.0
    seed: int = 0
    at: int | None = None
    active: bool = True
    seen: int = 0
    fired: int = 0

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed).random
        self.fault = Fault(self.effect, self.value, self.more)

    def come(self) -> bool:
        """The time of a rule that acts by itself has come; tell whether it acts."""
        self.fired += self.active
        return self.active

    def takes(self, card: int, function_id: int, values: tuple[Value, ...]) -> bool:
        """Count an event of the point, and tell whether the rule acts on it."""
        if (self.card is not None and card != self.card) or (
            self.function is not None and function_id != self.function
        ):
            return False
        for index, value in self.match:
            if values[index] != value:
                return False
        self.seen += 1
        if self.seen < self.nth or (self.count and self.seen >= self.nth + self.count):
            return False
        if self.probability < 1 and self._draw() >= self.probability:
            return False
        self.fired += 1
        return True


class Rules:
    """The rules of a run. Of several that are for the same event, the first acts.

    Attributes:
        rules: in their order; change them with :meth:`add` and :meth:`clear` only.
    """

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.rules: list[Rule] = []
        self._by_point: dict[Point, list[Rule]] = {}
        self.add(rules)

    def add(self, rules: Iterable[Rule]) -> None:
        """Add rules behind those that are there.

        Raises:
            RuleError: there would be more than :data:`MOST_RULES`.
        """
        more = list(rules)
        if len(more) > MOST_RULES - len(self.rules):
            raise RuleError(f"{len(self.rules) + len(more)} rules, at most {MOST_RULES}")
        for rule in more:
            self.rules.append(rule)
            self._by_point.setdefault(rule.point, []).append(rule)

    def clear(self) -> None:
        """Take all away, those too whose time has not come yet."""
        for rule in self.rules:
            rule.active = False
        self.rules.clear()
        self._by_point.clear()

    def watches(self, point: Point) -> bool:
        """Whether a rule is for this point."""
        return point in self._by_point

    def match(self, card: int, function_id: int, point: Point, values: tuple[Value, ...]) -> Fault | None:
        """Count the event with the rules of its point; tell what is to be done, if anything."""
        found: Fault | None = None
        for rule in self._by_point.get(point, ()):
            if rule.at is None and rule.takes(card, function_id, values) and found is None:
                found = rule.fault
        return found


def start(rules: Iterable[Rule], card: int, probe: Probe, after: Callable[[int, Callable[[], None]], object]) -> None:
    """Set the timers of the rules that act by themselves on a card, from now on.

    Args:
        rules: those without a time are left out.
        card: its index.
        probe: of the card.
        after: as of an engine: does something after nanoseconds.
    """
    for rule in rules:
        if rule.at is not None and rule.card in (None, card):
            after(rule.at, partial(_act, rule, probe))


def _act(rule: Rule, probe: Probe) -> None:
    if rule.come():
        probe.act(rule.fault)


def parse_line(text: str, source: str = "rule") -> Rule:
    """A rule from ``key=value`` words.

    Raises:
        RuleError: it is wrong.
    """
    keys: dict[str, object] = {}
    for word in text.split():
        key, equals, value = word.partition("=")
        if not key or (equals and not value):
            raise RuleError(f"{source}: {word!r} is not key=value")
        if key in keys:
            raise RuleError(f"{source}: key {key!r} stands twice")
        keys[key] = value if equals else "true"
    return parse_keys(keys, source)


def parse_file(path: Path) -> list[Rule]:
    """The rules of a TOML file.

    Raises:
        RuleError: it cannot be read, or a rule is wrong; the text names file, line and key.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise RuleError(f"{path}: {error.strerror or error}") from error
    if len(data) > MOST_BYTES:
        raise RuleError(f"{path}: more than {MOST_BYTES} bytes")
    try:
        text = data.decode("utf-8")
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise RuleError(f"{path}: {error}") from error
    return _from_document(document, str(path), _table_lines(text))


def _table_lines(text: str) -> list[int]:
    return [number for number, line in enumerate(text.splitlines(), 1) if re.match(r"\s*\[\[\s*fault\s*\]\]", line)]


def _from_document(document: Mapping[str, object], path: str, lines: list[int]) -> list[Rule]:
    strange = [key for key in document if key != "fault"]
    if strange:
        raise RuleError(f"{path}: key {strange[0]!r}: a rule file has [[fault]] tables and nothing else")
    tables = document.get("fault", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise RuleError(f"{path}: fault has to be a list of tables, [[fault]]")
    if len(tables) > MOST_RULES:
        raise RuleError(f"{path}: {len(tables)} rules, at most {MOST_RULES}")
    found = len(lines) == len(tables)
    return [
        parse_keys(table, f"{path}, line {lines[at]}" if found else f"{path}, rule {at + 1}")
        for at, table in enumerate(tables)
    ]


def parse_keys(keys: Mapping[str, object], source: str) -> Rule:
    """A rule from its keys.

    Raises:
        RuleError: it is wrong.
    """
    effect = _effect(keys, source)
    extra = {field_.name: field_ for field_ in effect.more}
    when = {key: keys[key] for key in keys if key in WHEN}
    fields = [key for key in keys if key not in when and key != effect.name and key not in extra]
    point = _point(when, effect, fields, source)
    match = tuple(_matched(point, key, keys[key], source) for key in fields)
    value = _number(effect.value, keys[effect.name], source)
    more = {key: _number(extra[key], keys[key], source) for key in keys if key in extra}
    rule = Rule(source, point, match, effect, value, more)
    for key, given in when.items():
        if key != "point":
            setattr(rule, key, _when(WHEN[key], given, source))
    rule.__post_init__()
    return rule


def _effect(keys: Mapping[str, object], source: str) -> Effect:
    every = {effect.name: effect for point in POINTS.values() for effect in point.effects}
    every |= {effect.name: effect for effect in CARD_EFFECTS}
    named = keys.get("point")
    matched = {field_.name for field_ in POINTS[named].fields} if isinstance(named, str) and named in POINTS else set()
    found = [name for name in keys if name in every and name not in matched]
    if len(found) == 1:
        return every[found[0]]
    if found:
        raise RuleError(f"{source}: keys {', '.join(found)}: a rule has one effect")
    known = {*every, *WHEN, *(field_.name for point in POINTS.values() for field_ in point.fields)}
    for key in keys:
        if key not in known:
            raise RuleError(f"{source}: key {key!r}: {_instead(key, known)}")
    raise RuleError(f"{source}: no effect; allowed are {', '.join(sorted(every))}")


def _point(when: Mapping[str, object], effect: Effect, fields: list[str], source: str) -> Point:
    """The point that is named, or the first that has the effect and all of the fields."""
    named = when.get("point")
    if "at" in when:
        if not effect.card or fields or named not in (None, TIME.name):
            raise RuleError(f"{source}: key 'at' goes with an effect on the card ({_names(CARD_EFFECTS)}) alone")
        return TIME
    if named is not None:
        if not isinstance(named, str) or named not in POINTS:
            raise RuleError(f"{source}: key 'point': {named!r}: {_instead(str(named), POINTS)}")
        point = POINTS[named]
        if not effect.card and effect not in point.effects:
            allowed = _names([*point.effects, *CARD_EFFECTS])
            raise RuleError(f"{source}: point {named} has no effect {effect.name!r}; allowed are {allowed}")
        return point
    able = [point for point in POINTS.values() if effect.card or effect in point.effects]
    having = [point for point in able if set(fields) <= {field_.name for field_ in point.fields}]
    if not having:
        known = {field_.name for point in able for field_ in point.fields} | set(WHEN)
        wrong = next((key for key in fields if key not in known), fields[0])
        raise RuleError(f"{source}: key {wrong!r}: {_instead(wrong, known)}")
    if effect.card and not fields:
        raise RuleError(f"{source}: {effect.name} needs a point, or the time `at` which it happens")
    if len(having) > 1 and not effect.card and not fields:
        raise RuleError(f"{source}: key 'point' is needed, one of {', '.join(point.name for point in having)}")
    return having[0]


def _names(effects: Iterable[Effect]) -> str:
    return ", ".join(effect.name for effect in effects)


def _matched(point: Point, key: str, given: object, source: str) -> tuple[int, Value]:
    for index, field_ in enumerate(point.fields):
        if field_.name == key:
            if field_.kind is Kind.BYTES:
                raise RuleError(f"{source}: key {key!r}: no rule matches on bytes")
            if field_.kind is Kind.TEXT:
                return index, str(given)
            if field_.kind is Kind.FLAG and str(given).lower() in _FALSE:
                return index, 0
            number = _integer(given) if field_.kind is Kind.NAME else None
            if number is not None and 0 <= number <= _MOST_UNNAMED:
                return index, number  # a driver may meet numbers that have no name
            return index, _number(field_, given, source)
    known = {field_.name for field_ in point.fields} | set(WHEN)
    raise RuleError(f"{source}: key {key!r}: point {point.name} has no such field; {_instead(key, known)}")


def _instead(word: str, known: Iterable[str]) -> str:
    names = sorted(known)
    close = difflib.get_close_matches(word[:64], names, 3)
    if len(names) > MOST_NAMES:
        more = "; softhca fault --list has all"
        return f"did you mean {' or '.join(close)}?{more}" if close else f"no such name{more}"
    return f"{f'did you mean {close[0]!r}? ' if close else ''}allowed are {', '.join(names)}"


def _when(field_: Field, given: object, source: str) -> int | float:
    if field_.name != "probability":
        return _number(field_, given, source)
    try:
        chance = float(str(given))
    except ValueError:
        chance = -1.0
    if not 0 <= chance <= 1:
        raise RuleError(f"{source}: key 'probability': {given!r}, allowed is 0 to 1")
    return chance


def _number(field_: Field, given: object, source: str) -> int:
    """The number that stands for a value, by the field's kind."""
    wrong = f"{source}: key {field_.name!r}: {given!r:.80}"
    if field_.kind is Kind.FLAG:
        if given is True or str(given).lower() in _TRUE:
            return 1
        raise RuleError(f"{wrong}, allowed is true")
    if field_.kind is Kind.NAME:
        return _member(field_, given, wrong)
    if field_.kind is Kind.TIME:
        parts = _TIME.fullmatch(str(given))
        if parts is None:
            raise RuleError(f"{wrong}, allowed is a number with ns, us, ms or s behind it")
        return round(float(parts[1]) * _UNITS[parts[2]])
    number = _integer(given)
    if number is None:
        raise RuleError(f"{wrong}, allowed is a number, decimal or 0x hexadecimal")
    if not field_.least <= number <= field_.most:
        raise RuleError(f"{wrong}, allowed is {field_.least:#x} to {field_.most:#x}")
    return number


def _member(field_: Field, given: object, wrong: str) -> int:
    """A member by its name, or by its number."""
    if field_.names is None:
        raise TypeError(f"field {field_.name}: of kind NAME without names")
    members: Mapping[str, int] = {name: int(member) for name, member in field_.names.__members__.items()}
    if isinstance(given, str) and given in members:
        return members[given]
    number = _integer(given)
    if number in members.values():
        return number or 0
    raise RuleError(f"{wrong}: {_instead(str(given), members)}")


def _integer(given: object) -> int | None:
    """A number as TOML or a word has it, or None."""
    if isinstance(given, bool):
        return None
    if isinstance(given, int):
        return given if given.bit_length() <= 64 else None
    text = str(given)
    try:
        return int(text, 0) if len(text) <= 20 else None
    except ValueError:
        return None
