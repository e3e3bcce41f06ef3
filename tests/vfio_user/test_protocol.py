"""Against the layouts of linux/vfio.h and of the vfio-user specification, written out as bytes."""

from __future__ import annotations

import errno

import pytest

from softhca.vfio_user import protocol
from softhca.vfio_user.protocol import (
    DeviceInfo,
    DmaMap,
    DmaUnmap,
    Header,
    IrqInfo,
    IrqSet,
    MultiEntry,
    ProtocolError,
    RegionAccess,
    RegionInfo,
    Structure,
    Version,
    WriteMulti,
)

LITERAL: list[tuple[Structure, str]] = [
    (Header(0x1234, 10, 40, 0x10, 0), "3412 0a00 28000000 10000000 00000000"),
    (Header(2, 5, 16, 0x21, 22), "0200 0500 10000000 21000000 16000000"),
    (Version(0, 1), "0000 0100"),
    (
        DmaMap(32, 3, 0x80000000, 0x1_0000_0000, 0x1_0000_0000),
        "20000000 03000000 0000008000000000 0000000001000000 0000000001000000",
    ),
    (DmaUnmap(24, 2, 0xC0000, 0x4000), "18000000 02000000 00000c0000000000 0040000000000000"),
    (DeviceInfo(16, 3, 9, 5), "10000000 03000000 09000000 05000000"),
    (
        RegionInfo(32, 3, 7, 0, 4096, 0),
        "20000000 03000000 07000000 00000000 0010000000000000 0000000000000000",
    ),
    (IrqInfo(16, 1, 2, 64), "10000000 01000000 02000000 40000000"),
    (IrqSet(20, 0x24, 2, 1, 1), "14000000 24000000 02000000 01000000 01000000"),
    (RegionAccess(0x18, 0, 4), "1800000000000000 00000000 04000000"),
    (WriteMulti(2), "0200000000000000"),
    (MultiEntry(0x800, 0, 8, 0x1122334455667788), "0008000000000000 00000000 08000000 8877665544332211"),
]


@pytest.mark.parametrize(("structure", "text"), LITERAL)
def test_bytes_and_fields_agree(structure: Structure, text: str) -> None:
    literal = bytes.fromhex(text)
    assert structure.pack() == literal
    assert type(structure).unpack(literal) == structure
    assert type(structure).unpack(literal + b"more") == structure
    assert structure.layout.size == len(literal)


@pytest.mark.parametrize(("structure", "text"), LITERAL)
def test_each_byte_too_few_is_refused(structure: Structure, text: str) -> None:
    literal = bytes.fromhex(text)
    for length in range(len(literal)):
        with pytest.raises(ProtocolError, match=type(structure).__name__) as caught:
            type(structure).unpack(literal[:length])
        assert caught.value.errno == errno.EINVAL


def test_every_structure_is_tested() -> None:
    declared = {kind for kind in vars(protocol).values() if isinstance(kind, type) and issubclass(kind, Structure)}
    assert declared - {Structure} == {type(structure) for structure, _ in LITERAL}
