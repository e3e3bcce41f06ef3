"""The layout engine: one declaration of a structure serves pack, unpack, views, printing, checks and samples.

A structure is a class whose body is its table in the manual: byte offset of a 32-bit big-endian word, and the bits
of it. An instance is a zero-copy view over a buffer::

    class Eqc(Layout, size=0x40):
        status = bits(0x00, 31, 28)
        log_eq_size = bits(0x0C, 28, 24)

    eqc = Eqc(buffer, offset)
    eqc.log_eq_size = 8
    data = Eqc.pack(log_eq_size=8)

Accessors are compiled at their first use. The declared type of a field is what reading it gives (as with
`dataclasses.field`): that is why :func:`bits` says that it returns `int`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cache
from struct import Struct
from typing import Any, ClassVar, Generic, Self, TypeVar, cast, overload

Buffer = bytes | bytearray | memoryview
Value = Any
"""What a field may be set from: int, bytes, a Layout, a mapping of field names, or a sequence of these."""

SCALARS = {8: Struct(">B"), 16: Struct(">H"), 32: Struct(">I"), 64: Struct(">Q")}


class LayoutError(ValueError):
    """A structure does not fit its buffer, or a field does not take a value."""


class Field:
    """One row of a structure's table.

    Attributes:
        name: as in Linux mlx5_ifc.h where the structure is there.
        bit: position of its first (most significant) bit, counted from the structure's start.
        width: bits of one element.
        count: number of elements of an array; 0: as many as the buffer holds; None: not an array.
        layout: structure of one element, or None for an integer.
        enum: names of the values, or None.
        raw: the field is a run of bytes.
    """

    def __init__(
        self,
        offset: int,
        bit: int,
        width: int,
        *,
        count: int | None = None,
        layout: type[Layout] | None = None,
        enum: type[IntEnum] | None = None,
        raw: bool = False,
    ) -> None:
        self.name = ""
        self.bit = offset * 8 + bit
        self.width = width
        self.count = count
        self.layout = layout
        self.enum = enum
        self.raw = raw

    @property
    def offset(self) -> int:
        """Byte offset of the first bit."""
        return self.bit // 8

    @property
    def word(self) -> int:
        """Byte offset of the 32-bit word that it begins in."""
        return self.bit // 32 * 4

    @property
    def mask(self) -> int:
        """Its bits in that word, for a field that does not leave it."""
        return (1 << self.width) - 1 << 32 - self.bit % 32 - self.width

    @property
    def bits(self) -> int:
        """Bits in all (a flexible array counts as none)."""
        return self.width * (1 if self.count is None else self.count)

    def __repr__(self) -> str:
        return f"<Field {self.name} at {self.word:#x} bit {31 - self.bit % 32} width {self.bits}>"


def bits(offset: int, high: int, low: int | None = None, enum: type[IntEnum] | None = None) -> int:
    """Bits [high:low] (or bit `high` alone) of the 32-bit word at byte `offset`."""
    low = high if low is None else low
    if offset % 4 or not 0 <= low <= high <= 31:
        raise LayoutError(f"bits({offset:#x}, {high}, {low}): a word offset and 31 >= high >= low >= 0 are needed")
    return cast(int, Field(offset, 31 - high, high - low + 1, enum=enum))


def u64(offset: int) -> int:
    """A 64-bit integer at byte `offset`."""
    return cast(int, Field(offset, 0, 64))


def wide(offset: int, high: int, width: int) -> int:
    """An integer of `width` bits that begins at bit `high` of the word at `offset` and runs over its end."""
    return cast(int, Field(offset, 31 - high, width))


def raw(offset: int, length: int) -> bytes:
    """A run of `length` bytes at byte `offset`."""
    return cast(bytes, Field(offset, 0, length * 8, raw=True))


L = TypeVar("L", bound="Layout")


def nested(offset: int, layout: type[L]) -> L:
    """A structure at byte `offset`."""
    return cast(L, Field(offset, 0, layout.SIZE * 8, layout=layout))


@overload
def array(offset: int, count: int | None, element: type[L]) -> LayoutArray[L]: ...
@overload
def array(offset: int, count: int | None, element: int) -> ScalarArray: ...
def array(offset: int, count: int | None, element: type[L] | int) -> LayoutArray[L] | ScalarArray:
    """`count` elements (None: as many as the buffer holds) at byte `offset`: structures, or integers of 8..64 bits."""
    number = 0 if count is None else count
    if isinstance(element, int):
        if element not in SCALARS:
            raise LayoutError(f"array of {element}-bit integers: allowed are {sorted(SCALARS)}")
        return cast(ScalarArray, Field(offset, 0, element, count=number))
    return cast("LayoutArray[L]", Field(offset, 0, element.SIZE * 8, count=number, layout=element))


class ScalarArray(Sequence[int]):
    """A view of an array of big-endian integers."""

    __slots__ = ("_at", "_buffer", "_codec", "_count", "_step")

    def __init__(self, buffer: Buffer, at: int, count: int, width: int) -> None:
        self._buffer = buffer
        self._at = at
        self._count = count
        self._codec = SCALARS[width]
        self._step = width // 8

    def __len__(self) -> int:
        return self._count

    def _where(self, index: int) -> int:
        if not 0 <= index < self._count:
            raise IndexError(f"index {index} of an array of {self._count}")
        return self._at + index * self._step

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, slice):
            return list(self)[index]
        return cast(int, self._codec.unpack_from(self._buffer, self._where(index))[0])

    def __setitem__(self, index: int, value: int) -> None:
        if value >> self._step * 8:
            raise LayoutError(f"element {index}: {value!r} does not fit {self._step * 8} bits")
        self._codec.pack_into(self._buffer, self._where(index), value)

    def __iter__(self) -> Iterator[int]:
        end = self._at + self._count * self._step
        for (value,) in self._codec.iter_unpack(memoryview(self._buffer)[self._at : end]):
            yield value

    def assign(self, values: Sequence[int]) -> None:
        """Set the first elements; the rest stays."""
        if len(values) > self._count:
            raise LayoutError(f"{len(values)} values for an array of {self._count}")
        try:
            shape = f">{len(values)}{self._codec.format[-1]}"
            struct.pack_into(shape, cast(bytearray, self._buffer), self._at, *values)
        except struct.error:
            for index, value in enumerate(values):
                self[index] = value  # names the element that does not fit


class LayoutArray(Sequence[L], Generic[L]):
    """A view of an array of structures."""

    __slots__ = ("_at", "_buffer", "_count", "_layout")

    def __init__(self, buffer: Buffer, at: int, count: int, layout: type[L]) -> None:
        self._buffer = buffer
        self._at = at
        self._count = count
        self._layout = layout

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> L: ...
    @overload
    def __getitem__(self, index: slice) -> list[L]: ...
    def __getitem__(self, index: int | slice) -> L | list[L]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._count))]
        if not 0 <= index < self._count:
            raise IndexError(f"index {index} of an array of {self._count} {self._layout.__name__}")
        return self._layout(self._buffer, self._at + index * self._layout.SIZE)

    def assign(self, values: Sequence[Value]) -> None:
        """Set the first elements from structures, mappings or bytes; the rest stays."""
        if len(values) > self._count:
            raise LayoutError(f"{len(values)} values for an array of {self._count} {self._layout.__name__}")
        for index, value in enumerate(values):
            self[index].assign(value)


LAYOUTS: dict[str, type[Layout]] = {}
"""Every declared structure by its name in snake case, which is its Linux name where it has one."""


def snake_case(name: str) -> str:
    """`CreateEqIn` -> `create_eq_in`, `Cqe64` -> `cqe64`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class Layout:
    """A view of a structure over a buffer (zero-copy), and the base of all declarations.

    Class keywords:
        size: bytes of the fixed part.
        name: name in snake case when it does not follow from the class name (`mlx5_ifc_<name>_bits` in Linux).
        manual: where it is described, for a structure that mlx5_ifc.h does not have.
        abstract: no table of its own.
    """

    SIZE: ClassVar[int] = 0
    NAME: ClassVar[str] = ""
    MANUAL: ClassVar[str | None] = None
    FIELDS: ClassVar[dict[str, Field]] = {}
    _declared: ClassVar[int | None] = None

    def __init_subclass__(
        cls,
        *,
        size: int | None = None,
        name: str | None = None,
        manual: str | None = None,
        abstract: bool = False,
    ) -> None:
        super().__init_subclass__()
        if abstract:
            return
        if size is None:
            raise LayoutError(f"{cls.__name__}: the class keyword `size` (bytes) is missing")
        cls.SIZE = size
        cls.NAME = snake_case(cls.__name__) if name is None else name
        cls.MANUAL = manual
        cls._declared = None
        cls.FIELDS = {key: item for key, item in vars(cls).items() if isinstance(item, Field)}
        for key, field in cls.FIELDS.items():
            field.name = key
            if field.bit + field.bits > size * 8:
                raise LayoutError(
                    f"{cls.__name__}.{key}: ends at bit {field.bit + field.bits}, structure at {size * 8}"
                )
            setattr(cls, key, _Uncompiled(cls, field))
        if cls.NAME in LAYOUTS:
            raise LayoutError(f"{cls.__name__}: a structure named {cls.NAME} is declared already")
        LAYOUTS[cls.NAME] = cls

    def __init__(self, buffer: Buffer, offset: int = 0) -> None:
        if not 0 <= offset <= len(buffer) or len(buffer) - offset < self.SIZE:
            raise LayoutError(f"{self.NAME}: {self.SIZE} bytes at {offset} do not fit a buffer of {len(buffer)}")
        self._buffer = buffer
        self._at = offset

    @classmethod
    def flexible(cls) -> Field | None:
        """The trailing array that takes as many elements as the buffer holds, if there is one."""
        for field in cls.FIELDS.values():
            if field.count == 0:
                return field
        return None

    @classmethod
    def open_ended(cls) -> bool:
        """Whether a flexible array follows the fixed part: its own, or that of the structure it ends with."""
        if cls.flexible() is not None:
            return True
        ends = (field for field in cls.FIELDS.values() if field.bit + field.bits == cls.SIZE * 8)
        return any(field.layout is not None and field.count is None and field.layout.open_ended() for field in ends)

    @classmethod
    def _extent(cls, values: Mapping[str, Value]) -> int:
        """Bytes that a structure with these values takes, its flexible array included."""
        end = cls.SIZE
        for name, value in values.items():
            field = cls.FIELDS.get(name)
            if field is None:
                continue
            if field.count == 0:
                end = max(end, field.offset + len(value) * field.width // 8)
            elif field.layout is not None and field.count is None:
                inner = field.layout._extent(value) if isinstance(value, Mapping) else len(bytes(value))
                end = max(end, field.offset + inner)
        return end

    @classmethod
    def new(cls, **values: Value) -> Self:
        """A view over fresh zeroed memory with these fields set.

        Raises:
            LayoutError: an unknown field, or a value that does not fit it.
        """
        view = cls(bytearray(cls._extent(values)))
        view.assign(values)
        return view

    @classmethod
    def pack(cls, **values: Value) -> bytes:
        """The bytes of a structure with these fields set and all else zero (errors as :meth:`new`)."""
        return bytes(cls.new(**values)._buffer)

    def assign(self, value: Value) -> None:
        """Set fields from a mapping, or all from a structure or its bytes.

        Raises:
            LayoutError: an unknown field, or a value that does not fit it.
        """
        if isinstance(value, Layout):
            value = bytes(value)
        if isinstance(value, bytes | bytearray | memoryview):
            room = len(self._buffer) - self._at if self.open_ended() else self.SIZE
            if not self.SIZE <= len(value) <= room:
                needed = f"{self.SIZE} to {room}" if room > self.SIZE else f"{self.SIZE}"
                raise LayoutError(f"{self.NAME}: {len(value)} bytes given, {needed} needed")
            memoryview(cast(bytearray, self._buffer))[self._at : self._at + len(value)] = value
            return
        for key, item in cast(Mapping[str, Value], value).items():
            field = self.FIELDS.get(key)
            if field is None:
                raise LayoutError(f"{self.NAME}: no field {key!r}; it has {', '.join(self.FIELDS)}")
            if field.count is not None or field.layout is not None:
                getattr(self, key).assign(item)
            else:
                setattr(self, key, item)

    def __bytes__(self) -> bytes:
        end = len(self._buffer) if self.open_ended() else self._at + self.SIZE
        return bytes(memoryview(self._buffer)[self._at : end])

    def to_dict(self) -> dict[str, Value]:
        """All fields by name: integers, bytes, nested mappings and lists."""
        return {name: _plain(getattr(self, name)) for name in self.FIELDS}

    @classmethod
    def declared_mask(cls) -> int:
        """An integer of SIZE bytes (big-endian) whose ones are the declared bits of the fixed part."""
        if cls._declared is None:
            cls._declared = cls._mask(cls.SIZE)
        return cls._declared

    @classmethod
    def _mask(cls, size: int) -> int:
        """The declared bits of `size` bytes: a flexible array fills what it has of them."""
        mask = 0
        for field in cls.FIELDS.values():
            if field.layout is not None and field.count is None and field.layout.open_ended():
                mask |= field.layout._mask(size - field.offset)
                continue
            element = (1 << field.width) - 1 if field.layout is None else field.layout.declared_mask()
            count = 1 if field.count is None else field.count or (size * 8 - field.bit) // field.width
            for index in range(count):
                mask |= element << (size * 8 - field.bit - field.width * (index + 1))
        return mask

    def reserved_bits(self) -> int:
        """The reserved bits that are set, as an integer of SIZE bytes; 0 when all are zero as they must be."""
        whole = memoryview(self._buffer)[self._at : self._at + self.SIZE]
        return int.from_bytes(whole, "big") & ~self.declared_mask()

    def alternative(self, name: str) -> str | None:
        """Which alternative of the union `name` the fields beside it select; None: they do not tell."""
        del name
        return None

    def __repr__(self) -> str:
        return f"<{self.NAME} {self.to_dict()}>"


def _plain(value: Value) -> Value:
    if isinstance(value, Layout):
        return value.to_dict()
    if isinstance(value, ScalarArray | LayoutArray):
        return [_plain(item) for item in value]
    return value


class _Uncompiled:
    """Stands for the accessor of a field until its first use compiles it: most programs use few of all fields."""

    def __init__(self, owner: type[Layout], field: Field) -> None:
        self._owner = owner
        self._field = field

    def _compile(self) -> property:
        made = _accessor(self._owner.__name__, self._field)
        setattr(self._owner, self._field.name, made)
        return made

    def __get__(self, view: Layout | None, owner: type[Layout]) -> Value:
        return self if view is None else self._compile().__get__(view, owner)

    def __set__(self, view: Layout, value: Value) -> None:
        self._compile().__set__(view, value)


def _accessor(owner: str, field: Field) -> property:
    if field.layout is not None or field.count is not None:
        return _compound_accessor(field)
    if field.raw:
        return _raw_accessor(field)
    return _integer_accessor(owner, field)


def _compound_accessor(field: Field) -> property:
    offset, layout, count, width = field.offset, field.layout, field.count, field.width

    def room(view: Layout) -> int:
        if count:
            return count
        return max(0, (len(view._buffer) - view._at - offset) * 8 // width)

    if layout is not None and count is None:
        return property(lambda view: layout(view._buffer, view._at + offset))
    if layout is not None:
        return property(lambda view: LayoutArray(view._buffer, view._at + offset, room(view), layout))
    return property(lambda view: ScalarArray(view._buffer, view._at + offset, room(view), width))


def _raw_accessor(field: Field) -> property:
    offset, length = field.offset, field.width // 8

    def read(view: Layout) -> bytes:
        at = view._at + offset
        return bytes(view._buffer[at : at + length])

    def write(view: Layout, value: Buffer) -> None:
        if len(value) != length:
            raise LayoutError(f"{view.NAME}.{field.name}: {len(value)} bytes given, {length} needed")
        at = view._at + offset
        cast(bytearray, view._buffer)[at : at + length] = value

    return property(read, write)


def _integer_accessor(owner: str, field: Field) -> property:
    """The smallest aligned access that holds the field, a shift and a mask."""
    first, last = field.bit // 8, (field.bit + field.width - 1) // 8
    size = next((n for n in (1, 2, 4, 8) if first // n == last // n), 0)
    start, length = (first // size * size, size) if size else (first, last - first + 1)
    shift = (start + length) * 8 - field.bit - field.width
    mask = (1 << field.width) - 1
    limit = f"{owner}.{field.name}: %r does not fit {field.width} bits (0 to {mask:#x})"
    make = _shape(size, shift == 0 and field.width == length * 8)
    return make(start, start + length, field.width, shift, mask, ~(mask << shift), limit)


@cache
def _shape(size: int, whole: bool) -> Callable[..., property]:
    """Compile what makes the accessors of one shape: fields of a shape share their code, which is quick to bring up.

    Args:
        size: bytes of the aligned access; 0: any run of bytes.
        whole: the field fills what is accessed.
    """
    namespace: dict[str, Any] = {"Bad": LayoutError}
    if size == 1:
        load, store = "view._buffer[view._at + start]", "view._buffer[view._at + start] = word"
    elif size:
        namespace |= {"unpack": SCALARS[size * 8].unpack_from, "pack": SCALARS[size * 8].pack_into}
        load, store = "unpack(view._buffer, view._at + start)[0]", "pack(view._buffer, view._at + start, word)"
    else:
        where = "view._buffer[view._at + start:view._at + end]"
        load, store = f"int.from_bytes({where}, 'big')", f"{where} = word.to_bytes(end - start, 'big')"
    source = (
        "def make(start, end, width, shift, mask, others, limit):\n"
        f"    def read(view):\n        return {load if whole else f'{load} >> shift & mask'}\n"
        "    def write(view, value):\n"
        "        if value >> width:\n            raise Bad(limit % (value,))\n"
        f"        word = {'value' if whole else f'{load} & others | value << shift'}\n        {store}\n"
        "    return property(read, write)\n"
    )
    exec(source, namespace)
    return cast(Callable[..., property], namespace["make"])
