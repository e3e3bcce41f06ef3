"""Random valid structures: named values only where there are names, reserved bits zero, one alternative of a union."""

from __future__ import annotations

from random import Random
from typing import TypeVar

from softhca.prm.catalogue import COMMANDS
from softhca.prm.layout import Field, Layout, Value

L = TypeVar("L", bound=Layout)

_OPCODES = {request: opcode for opcode, (request, _) in COMMANDS.items()}


def sample(layout: type[L], random: Random, longest: int = 4) -> L:
    """A random instance over its own memory.

    Args:
        layout: the structure.
        random: source of chance; the same state gives the same instance.
        longest: most elements of an array that ends with the buffer.
    """
    return layout.new(**values(layout, random, longest))


def values(layout: type[Layout], random: Random, longest: int = 4) -> dict[str, Value]:
    """Random valid values for the fields of a structure; of fields that lie over each other one is chosen."""
    fields = list(layout.FIELDS.values())
    random.shuffle(fields)
    taken = 0
    chosen: dict[str, Value] = {}
    for field in fields:
        extent = (1 << field.bits) - 1 << field.bit
        if taken & extent:
            continue
        taken |= extent
        chosen[field.name] = _value(field, random, longest)
    if layout in _OPCODES and "opcode" in chosen:
        chosen["opcode"] = _OPCODES[layout]
    return chosen


def _value(field: Field, random: Random, longest: int) -> Value:
    if field.count is None:
        return _element(field, random, longest)
    count = field.count or random.randint(0, longest)
    return [_element(field, random, longest) for _ in range(count)]


def _element(field: Field, random: Random, longest: int) -> Value:
    if field.layout is not None:
        return values(field.layout, random, longest)
    if field.raw:
        return random.randbytes(field.width // 8)
    if field.enum is not None:
        fitting = [item.value for item in field.enum if item.value >> field.width == 0]
        return random.choice(fitting)
    return random.getrandbits(field.width)
