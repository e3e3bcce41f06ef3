"""The structures of the Linux mlx5 headers, parsed, to compare declarations with. Facts only: names, bits, widths.

Two kinds of structure are understood: those of `mlx5_ifc.h`, where `u8 name[0x10]` is a field of 16 bits, and the C
structures of `device.h` and `qp.h`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

IFC_FILES = ("mlx5_ifc.h", "mlx5_ifc_fpga.h")
C_FILES = ("device.h", "qp.h")
CONSTANT_FILES = ("cq.h", "driver.h")
C_BITS = {"u8": 8, "char": 8, "__be16": 16, "u16": 16, "__be32": 32, "u32": 32, "__be64": 64, "u64": 64}
RESERVED = re.compile(r"reserved|resereved|rsvd")

_TOKEN = re.compile(r"[{};]|[^\s{};]+")
_NUMBER = re.compile(r"\b0[xX][0-9a-fA-F]+\b|\b\d+\b")


class HeaderError(ValueError):
    """A header has a form that this parser does not know."""


@dataclass(frozen=True)
class Member:
    """A field of a header's structure: `count` is None for no array, 0 for one without a length."""

    name: str
    bit: int
    width: int
    count: int | None = None
    structure: str | None = None

    @property
    def bits(self) -> int:
        """Bits in all."""
        return self.width * (1 if self.count is None else self.count)

    @property
    def reserved(self) -> bool:
        """Whether the header says that it has no meaning."""
        return RESERVED.match(self.name.rpartition(".")[2]) is not None


@dataclass(frozen=True)
class Structure:
    """A structure of a header."""

    name: str
    bits: int
    members: tuple[Member, ...]
    union: bool = False

    def named(self) -> dict[str, Member]:
        """Members that have a meaning, by name; those of inline structures by their path with dots."""
        return {member.name: member for member in self.members if not member.reserved}


@dataclass
class Statement:
    """A declaration, or the body of a structure with what stands behind it."""

    words: str
    kind: str = ""
    body: list[Statement] = field(default_factory=list)


class Header:
    """Structures and constants of header files, laid out when asked for."""

    def __init__(self, folder: Path) -> None:
        mlx5 = folder / "include/linux/mlx5"
        ifc = "\n".join(_clean((mlx5 / name).read_text()) for name in IFC_FILES)
        plain = "\n".join(_clean((mlx5 / name).read_text()) for name in C_FILES)
        more = "\n".join(_clean((mlx5 / name).read_text()) for name in CONSTANT_FILES)
        self.constants = _constants("\n".join((ifc, plain, more)))
        grh = _clean((folder / "include/rdma/ib_verbs.h").read_text())
        self._sources = {**_structures(ifc), **_structures(plain), **_structures(grh, "ib_gid|ib_grh")}
        self.ifc_names = sorted(name for name in self._sources if _of_bits(name))
        self._done: dict[str, Structure] = {}

    def has(self, name: str) -> bool:
        """Whether a structure of that C name is there."""
        return name in self._sources

    def structure(self, name: str) -> Structure:
        """The layout of a structure.

        Raises:
            KeyError: there is none.
            HeaderError: it is written in a way that is not understood.
        """
        if name not in self._done:
            body = self._sources[name]
            self._done[name] = self._lay_out(name, body.body, body.kind == "union")
        return self._done[name]

    def _lay_out(self, name: str, body: list[Statement], union: bool) -> Structure:
        at = end = 0
        members: list[Member] = []
        for statement in body:
            start = 0 if union else at
            if statement.kind and not statement.words:
                inner = self._lay_out(name, statement.body, statement.kind == "union")
                new, bits = [_moved(member, "", start) for member in inner.members], inner.bits
            elif statement.kind:
                new, bits = self._inline(name, statement, start)
            else:
                member = self._member(name, statement.words, start)
                new, bits = [member], member.bits
            members += new
            at = start + bits
            end = max(end, at)
        return Structure(name, end, tuple(members), union)

    def _inline(self, owner: str, statement: Statement, start: int) -> tuple[list[Member], int]:
        """A named structure inside: for mlx5_ifc.h a member with a structure of its own, else members by path."""
        name, count = self._dimension(statement.words)
        inner = self._lay_out(f"{owner}__{name}", statement.body, statement.kind == "union")
        if _of_bits(owner):
            self._done[inner.name] = inner
            return [Member(name, start, inner.bits, count, inner.name)], inner.bits * (1 if count is None else count)
        return [_moved(member, f"{name}.", start) for member in inner.members], inner.bits

    def _member(self, owner: str, words: str, start: int) -> Member:
        flexible = re.fullmatch(r"DECLARE_FLEX_ARRAY\((.+),\s*(\w+)\)", words)
        if flexible is not None:
            words = f"{flexible[1]} {flexible[2]}[]"
        found = re.fullmatch(r"(?:(struct|union)\s+)?(\w+)\s+(\w+(?:\s*\[[^]]*\])*|\w+:\d+)", words)
        if found is None:
            raise HeaderError(f"{owner}: declaration {words!r} is not understood")
        if ":" in found[3]:
            return self._bit_field(owner, found[3], start)
        if found[1]:
            inner = self.structure(found[2])
            name, count = self._dimension(found[3])
            return Member(name, start, inner.bits, count, inner.name)
        if _of_bits(owner):
            return self._ifc_member(owner, found[3], start)
        name, count = self._dimension(found[3])
        return Member(name, start, C_BITS[found[2]], count)

    def _ifc_member(self, owner: str, text: str, start: int) -> Member:
        """`x[8]` is 8 bits, `x[4][8]` an array of bytes, `x[][8]` one without a length."""
        name, *sizes = re.split(r"\s*\[", text)
        numbers = [self._number(size.rstrip("] ")) for size in sizes]
        if len(numbers) == 1 and numbers[0] is not None:
            return Member(name, start, numbers[0])
        if len(numbers) == 1:
            return Member(name, start, 8, 0)
        if len(numbers) != 2 or numbers[1] is None:
            raise HeaderError(f"{owner}.{text}: not one or two lengths")
        return Member(name, start, numbers[1], numbers[0] or 0)

    def _bit_field(self, owner: str, text: str, start: int) -> Member:
        """Of a byte, from its least significant bit; `start` counts bits in that order."""
        name, _, width = text.partition(":")
        low, size = start % 8, int(width)
        if low + size > 8:
            raise HeaderError(f"{owner}.{text}: a bit field over the end of a byte")
        return Member(name, start - low + 8 - low - size, size)

    def _dimension(self, text: str) -> tuple[str, int | None]:
        name, *sizes = re.split(r"\s*\[", text)
        if not sizes:
            return name, None
        numbers = [self._number(size.rstrip("] ")) or 0 for size in sizes]
        return name, numbers[0] if len(numbers) == 1 else numbers[0] * numbers[1]

    def _number(self, text: str) -> int | None:
        if not text:
            return None
        if _NUMBER.fullmatch(text):
            return int(text, 0)
        if text in self.constants:
            return self.constants[text]
        raise HeaderError(f"length {text!r} is not known")


def ifc(name: str) -> str:
    """The C name of a structure of mlx5_ifc.h."""
    return f"mlx5_ifc_{name}_bits"


def _of_bits(name: str) -> bool:
    return name.startswith("mlx5_ifc_")


def _moved(member: Member, prefix: str, start: int) -> Member:
    return Member(prefix + member.name, member.bit + start, member.width, member.count, member.structure)


def _clean(text: str) -> str:
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    text = re.sub(r"//[^\n]*", " ", text)
    text = re.sub(r"struct_group\(\s*\w+\s*,(.*?)\)\s*;", r"\1", text, flags=re.DOTALL)
    return re.sub(r"\b__packed\b|\b____cacheline_aligned\w*", " ", text)


def _constants(text: str) -> dict[str, int]:
    found = {}
    for name, value in re.findall(r"(?m)^\s*(?:#define\s+)?(\w+)\s*[=\s]\s*\(?(0[xX]\w+|\d+)\)?\s*,?\s*$", text):
        found[name] = int(value, 0)
    for name, one, other in re.findall(r"#define\s+(\w+)\s+\((\w+)\s*\+\s*\\?\s*(\w+)\)", text):
        found[name] = found[one] + found[other]
    return found


def _structures(text: str, names: str = r"\w+") -> dict[str, Statement]:
    found = {}
    for match in re.finditer(rf"(?m)^(struct|union)\s+({names})\s*\{{", text):
        found[match[2]] = Statement("", match[1], list(_statements(_TOKEN.finditer(text, match.end()))))
    return found


def _statements(tokens: Iterator[re.Match[str]]) -> Iterator[Statement]:
    """Statements up to the brace that closes the body."""
    words: list[str] = []
    pending: Statement | None = None
    for match in tokens:
        token = match[0]
        if token == "}":
            return
        if token == "{":
            if not words or words[0] not in ("struct", "union"):
                raise HeaderError(f"a body behind {' '.join(words)!r}")
            pending = Statement("", words[0], list(_statements(tokens)))
            words = []
        elif token == ";":
            if pending is not None:
                yield Statement(" ".join(words), pending.kind, pending.body)
            elif words:
                yield Statement(" ".join(words))
            pending, words = None, []
        else:
            words.append(token)
    raise HeaderError("a body without an end")
