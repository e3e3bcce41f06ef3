"""Bytes from the text of a dump: plain hex, xxd, hexdump, the kernel's print_hex_dump, mlx5's four words a line."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_BYTES = 1 << 20
"""A dump is not larger: repeated lines (`*`) of a hostile file stay bounded."""
MAX_TEXT = 16 * MAX_BYTES
"""Characters that the text of a dump has at most."""

WORD = 8
"""Characters that data behind a prefix have at least; what is shorter is a figure in a title."""

_TIME_STAMP = re.compile(r"^(?:<\d+>)?\[\s*\d+\.\d+\]\s*")
_OFFSET = re.compile(r"(?:^|\s)([0-9a-fA-F]{3,16}):\s+(?=[0-9a-fA-F]{2})")
_BARE_OFFSET = re.compile(r"^([0-9a-fA-F]{7}\s|[0-9a-fA-F]{8,16}\s\s)\s*(?=(?:[0-9a-fA-F]{2}|[0-9a-fA-F]{4})(?:\s|$))")
_GROUP = re.compile(r"(?:0[xX])?((?:[0-9a-fA-F]{2})+)$")


class HexError(ValueError):
    """A text is no dump."""


def parse_hex(text: str) -> bytes:
    """The bytes that a dump shows.

    A line is groups of hex digits, whole bytes in the order of memory (words are big-endian). Before them may stand a
    kernel time stamp, a prefix and an offset; behind them an ASCII column. Lines that are mostly not hex are titles and
    are passed over. Plain `hexdump` (offsets of seven digits, two bytes a group) shows little-endian words: they are
    swapped. A `*` repeats the line before it up to the next offset.

    Raises:
        HexError: nothing was found, a line is broken, its offset does not follow the line before, or it is too much.
    """
    if len(text) > MAX_TEXT:
        raise HexError(f"more than {MAX_TEXT} characters")
    data = bytearray()
    base: int | None = None
    row, repeat = b"", False
    for number, line in _lines(text):
        if line == "*":
            repeat = True
            continue
        if base is not None and re.fullmatch("[0-9a-fA-F]{7,16}", line):
            _continue(data, int(line, 16) - base, row if repeat else b"", number)
            repeat = False
            continue
        offset, digits, body = _split(line)
        if offset is None and not _mostly_hex(body):
            continue
        if offset is not None:
            base = offset - len(data) if base is None else base
            _continue(data, offset - base, row if repeat else b"", number)
        elif repeat:
            raise HexError(f"line {number}: no offset behind a *, so that the repeats cannot be counted")
        repeat = False
        row = _row(body, digits, number)
        data += row
        if len(data) > MAX_BYTES:
            raise HexError(f"line {number}: the dump has more than {MAX_BYTES} bytes")
    if repeat:
        raise HexError("no offset behind the last *, so that the repeats cannot be counted")
    if not data:
        raise HexError("no line of hex digits was found")
    return bytes(data)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        line = _TIME_STAMP.sub("", line).strip()
        if line and not line.startswith("#"):
            yield number, line


def _split(line: str) -> tuple[int | None, int, str]:
    """Offset (None: there is none), its digits (negative: no colon behind it), and the rest of a line."""
    found = _OFFSET.search(line)
    if found is not None:
        return int(found[1], 16), len(found[1]), line[found.end() :]
    found = _BARE_OFFSET.match(line)
    if found is not None:
        digits = found[1].strip()
        return int(digits, 16), -len(digits), line[found.end() :]
    _, prefix, body = line.rpartition(": ")
    return None, 0, line if prefix and len(body) < WORD else body


def _mostly_hex(body: str) -> bool:
    words = [word.rstrip(",") for word in body.split()]
    return 2 * sum(_GROUP.match(word) is not None for word in words) >= len(words)


def _continue(data: bytearray, at: int, repeated: bytes, number: int) -> None:
    """Check that a line is at byte `at`, where the dump has come to; before it fill in the repeats of the last line."""
    missing = at - len(data)
    if repeated and 0 <= missing <= MAX_BYTES and missing % len(repeated) == 0:
        data += repeated * (missing // len(repeated))
    if at != len(data):
        raise HexError(f"line {number}: its offset is {at:#x} bytes into the dump, {len(data):#x} was expected")


def _row(body: str, digits: int, number: int) -> bytes:
    """The bytes of a line; behind an offset the line may end with an ASCII column, after a gap or between bars."""
    body, bar, _ = body.partition("|")
    groups: list[str] = []
    for gap, word in re.findall(r"(\s*)(\S+)", body):
        if digits and groups and not bar and len(gap) > 1:
            break
        match = _GROUP.match(word.rstrip(","))
        if match is None:
            raise HexError(f"line {number}: {word!r} is not a group of whole bytes in hex")
        groups.append(match[1])
    if digits == -7 and all(len(group) == 4 for group in groups):
        return b"".join(bytes.fromhex(group)[::-1] for group in groups)
    return bytes.fromhex("".join(groups))
