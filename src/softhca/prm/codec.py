"""Precompiled structs for the data path, taken from the layouts: field access by name is too slow for each WQE."""

from __future__ import annotations

from struct import Struct

from softhca.prm.layout import Layout, LayoutError

_CODES = {8: "B", 16: "H", 32: "I", 64: "Q"}


def codec(layout: type[Layout], *items: str | int, length: int | None = None) -> Struct:
    """A struct that packs and unpacks parts of `layout`, which are named in the order of their offsets.

    Args:
        layout: the structure.
        items: names of fields of 8, 16, 32 or 64 bits at whole bytes; or an offset (bytes) for the 32-bit word there.
        length: bytes of the struct; by default all of the structure.

    Raises:
        LayoutError: an item cannot be taken in this way, or items overlap or do not fit.
    """
    shape, at = ">", 0
    for item in items:
        field = None if isinstance(item, int) else layout.FIELDS[item]
        bit, width = (item * 8, 32) if isinstance(item, int) else (0, 0)
        if field is not None:
            bit, width = field.bit, field.width
        if bit % 8 or width not in _CODES or bit // 8 < at:
            raise LayoutError(f"{layout.NAME}.{item}: no whole integer of 8 to 64 bits behind the one before it")
        shape += f"{bit // 8 - at}x{_CODES[width]}"
        at = (bit + width) // 8
    end = layout.SIZE if length is None else length
    if end < at or end > layout.SIZE:
        raise LayoutError(f"{layout.NAME}: {end} bytes, but the last item ends at {at}")
    return Struct(f"{shape}{end - at}x")


def joined(*parts: Struct, length: int) -> Struct:
    """A struct for structures that follow each other, padded to `length` bytes.

    Raises:
        LayoutError: they are longer.
    """
    left = length - sum(part.size for part in parts)
    if left < 0:
        raise LayoutError(f"structures of {length - left} bytes in {length}")
    return Struct(">" + "".join(part.format.removeprefix(">") for part in parts) + f"{left}x")
