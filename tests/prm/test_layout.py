"""The layout engine, against literal bytes."""

from __future__ import annotations

from enum import IntEnum

import pytest

from softhca.prm.layout import LAYOUTS, Layout, LayoutError, array, bits, nested, raw, snake_case, u64, wide


class Colour(IntEnum):
    RED = 1
    BLUE = 2


class Inner(Layout, size=0x08, name="test_inner"):
    number = bits(0x00, 23, 0)
    flag = bits(0x04, 31)


class Thing(Layout, size=0x30, name="test_thing", manual="nowhere"):
    kind = bits(0x00, 31, 28, Colour)
    low = bits(0x00, 11, 6)
    whole = bits(0x04, 31, 0)
    long = u64(0x08)
    across = wide(0x10, 7, 24)
    text = raw(0x16, 6)
    inner = nested(0x1C, Inner)
    numbers = array(0x24, 2, 16)
    inners = array(0x28, 1, Inner)
    tail = array(0x30, None, 64)


class Outer(Layout, size=0x38, name="test_outer"):
    opcode = bits(0x00, 31, 16)
    thing = nested(0x08, Thing)


class Either(Layout, size=0x08, name="test_either"):
    one = nested(0x00, Inner)
    other = u64(0x00)


for _declared in (Inner, Thing, Outer, Either):
    del LAYOUTS[_declared.NAME]

DATA = bytes.fromhex(
    "20000840 deadbeef 01234567 89abcdef"
    "000000ab cdef3132 33343536 00123456"
    "80000000 0001ffff 00000007 00000000"
    "00000000 00001000"
)
VALUES = {
    "kind": 2,
    "low": 0x21,
    "whole": 0xDEADBEEF,
    "long": 0x0123456789ABCDEF,
    "across": 0xABCDEF,
    "text": b"123456",
    "inner": {"number": 0x123456, "flag": 1},
    "numbers": [1, 0xFFFF],
    "inners": [{"number": 7, "flag": 0}],
    "tail": [0x1000],
}


def test_taking_apart() -> None:
    assert Thing(DATA).to_dict() == VALUES


def test_putting_together() -> None:
    assert Thing.pack(**VALUES) == DATA


def test_a_view_is_the_buffer() -> None:
    buffer = bytearray(4) + bytearray(DATA)
    view = Thing(buffer, 4)
    view.low = 1
    view.across = 0x010203
    view.inner.flag = 0
    view.numbers[1] = 2
    view.inners[0].number = 9
    view.tail[0] = 0xFF
    view.text = b"abcdef"
    assert buffer[4:].hex(" ", 4) == (
        "20000040 deadbeef 01234567 89abcdef 00000001 02036162 63646566 00123456 "
        "00000000 00010002 00000009 00000000 00000000 000000ff"
    )


def test_a_view_of_a_memoryview_and_of_bytes() -> None:
    assert Thing(memoryview(DATA)).long == Thing(DATA).long == 0x0123456789ABCDEF
    with pytest.raises(TypeError):
        Thing(DATA).low = 1


def test_neighbours_stay() -> None:
    view = Thing(bytearray(b"\xff" * 0x30))
    view.low = 0
    view.kind = 0
    view.across = 0
    assert bytes(view)[:4] == bytes.fromhex("0ffff03f")
    assert bytes(view)[0x10:0x18] == bytes.fromhex("ffffff000000ffff")


def test_the_bytes_of_a_view_are_its_own() -> None:
    assert bytes(Thing(DATA).inner) == bytes.fromhex("0012345680000000")
    assert bytes(Thing(DATA)) == DATA


def test_an_array_at_the_end_takes_what_the_buffer_holds() -> None:
    assert len(Thing(DATA + bytes(8)).tail) == 2
    assert len(Thing(DATA + bytes(7)).tail) == 1
    assert len(Thing(DATA[:0x30]).tail) == 0


def test_an_array_at_the_end_of_a_nested_structure() -> None:
    view = Outer.new(opcode=1, thing={"tail": [1, 2, 3]})
    assert len(bytes(view)) == 0x38 + 24
    assert list(view.thing.tail) == [1, 2, 3]
    assert bytes(Outer.new(opcode=1, thing=view.thing)) == bytes(view)
    assert bytes(Outer.new(opcode=1, thing=bytes(view.thing))) == bytes(view)
    assert Outer.open_ended()
    assert not Inner.open_ended()


def test_arrays_are_sequences() -> None:
    view = Thing(DATA)
    assert list(view.numbers) == [1, 0xFFFF]
    assert view.numbers[:1] == [1]
    assert [item.number for item in view.inners] == [7]
    assert [item.number for item in view.inners[:5]] == [7]
    for index in (-1, 2):
        with pytest.raises(IndexError, match=f"index {index} of an array of 2"):
            view.numbers[index]
    with pytest.raises(IndexError, match="index 1 of an array of 1 Inner"):
        view.inners[1]


def test_reserved_bits() -> None:
    assert Thing(DATA).reserved_bits() == 0
    buffer = bytearray(DATA)
    buffer[3] |= 0x01
    buffer[0x1C] = 0x80
    assert Thing(buffer).reserved_bits() == 1 << (0x30 - 4) * 8 | 0x80 << (0x30 - 0x1D) * 8


def test_reserved_bits_of_a_union_are_those_of_no_alternative() -> None:
    assert Either(b"\xff" * 8).reserved_bits() == 0


def test_alternatives_share_their_bytes() -> None:
    view = Either.new(other=0x00ABCDEF80000000)
    assert view.one.to_dict() == {"number": 0xABCDEF, "flag": 1}


def test_a_buffer_that_is_too_short() -> None:
    with pytest.raises(LayoutError, match="test_thing: 48 bytes at 0 do not fit a buffer of 47"):
        Thing(bytes(47))
    with pytest.raises(LayoutError, match="48 bytes at 2 do not fit"):
        Thing(bytes(49), 2)
    with pytest.raises(LayoutError, match="at -1"):
        Thing(bytes(60), -1)


@pytest.mark.parametrize(("field", "value"), [("low", 64), ("low", -1), ("whole", 1 << 32), ("across", 1 << 24)])
def test_a_value_that_does_not_fit(field: str, value: int) -> None:
    view = Thing(bytearray(0x30))
    with pytest.raises(LayoutError, match=rf"Thing.{field}: {value} does not fit \d+ bits \(0 to 0x[f3]+\)"):
        setattr(view, field, value)
    assert not any(bytes(view))


def test_elements_bytes_and_names_that_do_not_fit() -> None:
    view = Thing(bytearray(DATA))
    with pytest.raises(LayoutError, match="element 0: 65536 does not fit 16 bits"):
        view.numbers[0] = 65536
    with pytest.raises(LayoutError, match="3 values for an array of 2"):
        view.numbers.assign([1, 2, 3])
    with pytest.raises(LayoutError, match="2 values for an array of 1 Inner"):
        view.inners.assign([{}, {}])
    with pytest.raises(LayoutError, match=r"test_thing\.text: 5 bytes given, 6 needed"):
        view.text = b"12345"
    with pytest.raises(LayoutError, match="no field 'colour'; it has kind, low, whole"):
        Thing.new(colour=1)
    with pytest.raises(LayoutError, match="test_inner: 7 bytes given, 8 needed"):
        view.inner.assign(bytes(7))
    with pytest.raises(LayoutError, match="test_thing: 47 bytes given, 48 to 56 needed"):
        view.assign(bytes(47))
    assert bytes(view) == DATA


def test_declarations_that_are_refused() -> None:
    with pytest.raises(LayoutError, match="a word offset and 31 >= high >= low >= 0 are needed"):
        bits(0x02, 3, 0)
    with pytest.raises(LayoutError, match=r"bits\(0x0, 3, 4\)"):
        bits(0x00, 3, 4)
    with pytest.raises(LayoutError, match="array of 12-bit integers"):
        array(0x00, 2, 12)
    with pytest.raises(LayoutError, match="`size`"):
        type("NoSize", (Layout,), {})
    with pytest.raises(LayoutError, match=r"TooLong.long: ends at bit 64, structure at 32"):

        class TooLong(Layout, size=4, name="test_too_long"):
            long = u64(0x00)

    LAYOUTS["test_twice"] = Inner
    try:
        with pytest.raises(LayoutError, match="a structure named test_twice is declared already"):

            class Twice(Layout, size=4, name="test_twice"):
                word = bits(0x00, 31, 0)

    finally:
        del LAYOUTS["test_twice"]


def test_names_follow_from_class_names() -> None:
    assert [snake_case(name) for name in ("CreateEqIn", "Cqe64", "Rst2initQpIn")] == [
        "create_eq_in",
        "cqe64",
        "rst2init_qp_in",
    ]


def test_what_a_structure_says_of_itself() -> None:
    assert (Thing.NAME, Thing.SIZE, Thing.MANUAL) == ("test_thing", 0x30, "nowhere")
    assert repr(Thing.FIELDS["low"]) == "<Field low at 0x0 bit 11 width 6>"
    assert repr(Inner(bytes(8))) == "<test_inner {'number': 0, 'flag': 0}>"
