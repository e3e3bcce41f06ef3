"""Structures for people: the bit table that the manual prints, and a dump decoded field by field. Plain text only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from softhca.prm.layout import Field, Layout, LayoutArray, LayoutError, ScalarArray, Value

MANY = 4
"""Alternatives of a union that are all decoded when nothing tells which of them holds."""

ROW = 16
"""Bytes of a run in a row of a dump."""
LONG = 24
"""Names of values that a table lists."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a field is: byte offset of its 32-bit word, and its bits there (None: it is no part of one word)."""

    offset: int
    high: int | None
    low: int | None

    def __str__(self) -> str:
        if self.high is None:
            return ""
        return f"{self.high}" if self.high == self.low else f"{self.high}:{self.low}"


@dataclass(frozen=True, slots=True)
class Decoded:
    """A field of a dump: `value` is an integer, or bytes; `meaning` is its name if it has one, or a remark."""

    place: Place
    name: str
    width: int
    value: int | bytes | None
    meaning: str = ""


def place(bit: int, width: int) -> Place:
    """The place of `width` bits that begin `bit` bits into a structure."""
    high = 31 - bit % 32
    if high - width + 1 < 0:
        return Place(bit // 8, None, None)
    return Place(bit // 32 * 4, high, high - width + 1)


def width_of(field: Field) -> str:
    """Bits of a field: `8`, `4 x 64`, `64 each` for an array that ends with the buffer."""
    if field.count is None:
        return f"{field.width}"
    return f"{field.count} x {field.width}" if field.count else f"{field.width} each"


def content_of(field: Field) -> str:
    """What a field may hold: its structure, or the names of its values."""
    if field.layout is not None:
        return f"structure {field.layout.NAME}"
    if field.enum is None:
        return ""
    if len(field.enum) > LONG:
        return f"{field.enum.__name__}, {len(field.enum)} names"
    return ", ".join(f"{item.value:#x} {item.name}" for item in field.enum)


def bit_table(layout: type[Layout]) -> list[tuple[str, str, str, str, str]]:
    """Offset, bits, name, width and content of each field."""
    rows = []
    for field in layout.FIELDS.values():
        where = place(field.bit, field.bits or field.width)
        rows.append((f"{where.offset:#05x}", str(where), field.name, width_of(field), content_of(field)))
    return rows


def summary(layout: type[Layout]) -> str:
    """One line: name, size, what it is, where it is described."""
    what = (layout.__doc__ or "").strip().splitlines()[0]
    more = " and what follows" if layout.open_ended() else ""
    source = f" (manual: {layout.MANUAL})" if layout.MANUAL else ""
    return f"{layout.NAME}: {layout.SIZE} bytes{more}. {what}{source}"


def views(layout: type[Layout], data: bytes) -> list[Layout]:
    """The structures in a dump: several of them in a row if it is longer than one.

    A dump may leave out what is reserved at the end, as drivers do with commands.

    Raises:
        LayoutError: the length of the dump fits no number of structures.
    """
    mask = layout.declared_mask()
    least = layout.SIZE - ((mask & -mask).bit_length() - 1) // 8 if mask else layout.SIZE
    if least <= len(data) < layout.SIZE:
        data = data.ljust(layout.SIZE, b"\0")
    if layout.open_ended() and len(data) >= layout.SIZE:
        return [layout(data)]
    if not data or len(data) % layout.SIZE:
        needed = f"{least} to {layout.SIZE}" if least < layout.SIZE else f"{layout.SIZE}"
        rule = " or more" if layout.open_ended() else ", or a multiple of the size,"
        raise LayoutError(f"{layout.NAME}: {len(data)} bytes given, {needed}{rule} needed")
    return [layout(data, at) for at in range(0, len(data), layout.SIZE)]


def decode(view: Layout) -> list[Decoded]:
    """Every field of a structure, those of nested structures by their path; then the reserved bits that are set."""
    return [*_fields(view, "", 0, None), *_reserved(view)]


def _fields(view: Layout, prefix: str, base: int, chosen: str | None) -> Iterator[Decoded]:
    """The fields of `view`, which begins `base` bits into what is shown; `chosen` is the alternative that holds."""
    structures = [field for field in view.FIELDS.values() if field.layout is not None and field.count is None]
    starts = [field.bit for field in structures]
    union = {field.bit for field in structures if starts.count(field.bit) > 1}
    unknown = chosen is None and len(structures) > MANY
    for field in view.FIELDS.values():
        if field.bit in union and ((unknown and field.layout is not None) or chosen not in (None, field.name)):
            continue
        yield from _field(view, field, prefix, base)
    if union and unknown:
        names = ", ".join(sorted({field.layout.NAME for field in structures if field.layout is not None}))
        yield Decoded(place(base, view.SIZE * 8), f"{prefix}(union)", view.SIZE * 8, None, f"one of {names}")


def _field(view: Layout, field: Field, prefix: str, base: int) -> Iterator[Decoded]:
    value: Value = getattr(view, field.name)
    name, bit = f"{prefix}{field.name}", base + field.bit
    if isinstance(value, Layout):
        yield from _fields(value, f"{name}.", bit, view.alternative(field.name))
    elif isinstance(value, LayoutArray):
        for index, item in enumerate(value):
            yield from _fields(item, f"{name}[{index}].", bit + index * field.width, None)
    elif isinstance(value, bytes) or (isinstance(value, ScalarArray) and field.width == 8):
        yield from _run(bytes(value), name, bit)
    elif isinstance(value, ScalarArray):
        for index, number in enumerate(value):
            at = bit + index * field.width
            yield Decoded(place(at, field.width), f"{name}[{index}]", field.width, number)
    else:
        yield Decoded(place(bit, field.width), name, field.width, value, _meaning(field, value))


def _run(data: bytes, name: str, bit: int) -> Iterator[Decoded]:
    """A run of bytes, by rows."""
    for at in range(0, len(data), ROW):
        part = data[at : at + ROW]
        label = name if len(data) <= ROW else f"{name}[{at}:{at + len(part)}]"
        yield Decoded(Place(bit // 8 + at, None, None), label, len(part) * 8, part)


def _meaning(field: Field, value: Value) -> str:
    if field.enum is None:
        return ""
    names = {item.value: item.name for item in field.enum}
    return names.get(value, "no known name")


def _reserved(view: Layout) -> Iterator[Decoded]:
    bits = view.reserved_bits()
    for offset in range(0, view.SIZE, 4):
        word = bits >> (view.SIZE - offset) * 8 - 32 & 0xFFFFFFFF if offset + 4 <= view.SIZE else 0
        while word:
            high = word.bit_length() - 1
            low = high
            while low and word >> low - 1 & 1:
                low -= 1
            part = (1 << high - low + 1) - 1
            yield Decoded(Place(offset, high, low), "(reserved)", high - low + 1, word >> low & part, "is to be 0")
            word &= ~(part << low)


def text_of(item: Decoded) -> str:
    """The value as text: hex, bytes in hex."""
    if item.value is None:
        return ""
    return item.value.hex(" ", -4) if isinstance(item.value, bytes) else f"{item.value:#x}"


def columns(rows: list[tuple[str, ...]]) -> str:
    """Rows as aligned columns; the last is not padded."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def table(layout: type[Layout]) -> str:
    """The bit table of a structure as text."""
    head = ("offset", "bits", "name", "width", "content")
    return f"{summary(layout)}\n\n{columns([head, *bit_table(layout)])}"


def dump(view: Layout) -> str:
    """A structure decoded, as text."""
    rows = [
        (f"{item.place.offset:#05x}", str(item.place), item.name, text_of(item), item.meaning) for item in decode(view)
    ]
    return columns([("offset", "bits", "name", "value", ""), *rows])
