from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softhca.bus.config_space import (
    CONFIG_SIZE,
    Capability,
    ConfigSpace,
    ExtendedCapability,
    Identity,
    MsiX,
    PciExpress,
    PowerManagement,
)

IDENTITY = Identity(0x15B3, 0x101B, 0x020700, revision=3, subsystem_vendor=0x15B3, subsystem=0x0007)


def make(flr: list[int] | None = None, bars: dict[int, int] | None = None) -> ConfigSpace:
    resets = [] if flr is None else flr
    capabilities = [PowerManagement(), PciExpress(lambda: resets.append(1)), MsiX(64, 0, 0x2000, 0x3000)]
    return ConfigSpace(IDENTITY, {0: 32 << 20} if bars is None else bars, capabilities)


def find(space: ConfigSpace, wanted: int) -> int:
    """Walk the list as an operating system does; the offset of a capability."""
    at = space.read(0x34, 1)[0]
    for _ in range(48):
        assert at % 4 == 0
        assert 0x40 <= at < 0x100
        kind, following = space.read(at, 2)
        if kind == wanted:
            return at
        at = following
    raise AssertionError(f"no capability {wanted:#x}")


def test_the_header_says_who_it_is() -> None:
    assert make().read(0, 0x40) == bytes.fromhex(
        "b3151b10 00001000 03000702 00000000"  # ids, command and status, class and revision
        "0c000000 00000000 00000000 00000000"  # BAR 0: 64 bits, prefetchable
        "00000000 00000000 00000000 b3150700"  # subsystem
        "00000000 40000000 00000000 00000000"  # list of capabilities; no interrupt pin
    )


def test_a_bar_tells_its_size() -> None:
    space = make(bars={0: 32 << 20, 2: 8 << 30})
    for at, size in ((0x10, 32 << 20), (0x18, 8 << 30)):
        space.write(at, b"\xff" * 8)
        assert int.from_bytes(space.read(at, 8), "little") == (2**64 - size) | 0xC
        space.write(at, (0xABCD_0000_0000_0000 + size).to_bytes(8, "little"))
        assert int.from_bytes(space.read(at, 8), "little") == (0xABCD_0000_0000_0000 + size) | 0xC


@pytest.mark.parametrize(("index", "size"), [(1, 4096), (6, 4096), (-2, 4096), (0, 2048), (0, 12288), (0, 0)])
def test_impossible_bars_are_named(index: int, size: int) -> None:
    with pytest.raises(ValueError, match=f"BAR {index}"):
        make(bars={index: size})


@pytest.mark.requirement("C2")
def test_the_command_register_opens_memory_and_bus_master() -> None:
    space = make()
    assert not space.bus_master
    assert not space.memory_enabled
    space.write(4, b"\xff\xff")
    assert space.read(4, 2) == b"\x46\x05"  # memory, bus master, parity, SERR, INTx disable
    assert space.bus_master
    assert space.memory_enabled
    space.write(4, b"\x02\x00")
    assert not space.bus_master


def test_capabilities_as_lspci_decodes_them() -> None:
    space = make()
    power = find(space, 0x01)
    assert space.read(power + 2, 2)[0] & 7 == 3
    express = find(space, 0x10)
    assert space.read(express + 2, 2) == b"\x02\x00"
    capabilities = int.from_bytes(space.read(express + 4, 4), "little")
    assert capabilities >> 28 & 1, "FLReset+"
    assert capabilities & 7 == 2, "MaxPayload 512"
    link = int.from_bytes(space.read(express + 0x12, 2), "little")
    assert (link & 15, link >> 4 & 0x3F) == (4, 16), "16 GT/s, x16"
    msix = find(space, 0x11)
    assert space.read(msix + 2, 10) == bytes.fromhex("3f00 00200000 00300000")


def test_msix_enable_and_mask_are_the_only_writable_bits() -> None:
    space = make()
    at = find(space, 0x11)
    space.write(at, b"\xff" * 12)
    assert space.read(at, 12)[2:] == bytes.fromhex("3fc0 00200000 00300000")


@pytest.mark.parametrize("vectors", [0, 2049])
def test_msix_has_1_to_2048_vectors(vectors: int) -> None:
    with pytest.raises(ValueError, match=f"{vectors} vectors"):
        MsiX(vectors, 0, 0, 0x800)


@pytest.mark.parametrize("write", [(8, "30a9"), (9, "a9"), (8, "30a90000"), (4, "ffffffff30a9")])
def test_flr_is_started_by_bit_15_of_device_control(write: tuple[int, str]) -> None:
    resets: list[int] = []
    space = make(resets)
    at = find(space, 0x10)
    space.write(at + 8, b"\x30\x29")
    assert resets == []
    offset, data = write
    space.write(at + offset, bytes.fromhex(data))
    assert resets == [1]
    assert space.read(at + 9, 1)[0] & 0x80 == 0
    space.write(at + 8, b"\x30\x29")
    assert resets == [1]


def test_reset_brings_back_power_on_values() -> None:
    space, cold = make(), make().read(0, CONFIG_SIZE)
    space.write(0, b"\xff" * 0x100)
    assert space.read(0, CONFIG_SIZE) != cold
    space.reset(keep_bars=False)
    assert space.read(0, CONFIG_SIZE) == cold


def test_a_function_level_reset_keeps_its_place_on_the_bus() -> None:
    space = make()
    space.write(0x10, (0xFE00_0000).to_bytes(8, "little"))
    space.write(0x3C, b"\x0b")
    space.write(4, b"\x06\x00")
    space.reset(keep_bars=True)
    assert space.read(0x10, 8) == (0xFE00_000C).to_bytes(8, "little")
    assert space.read(0x3C, 1) == b"\x0b"
    assert not space.bus_master


def test_outside_reads_as_ones_and_ignores_writes() -> None:
    space = make()
    assert space.read(4094, 4) == b"\0\0\xff\xff"
    assert space.read(4096, 2) == b"\xff\xff"
    assert space.read(-1, 1) == b"\xff"
    before = space.read(0, CONFIG_SIZE)
    space.write(4096, b"x")
    space.write(-4, b"1234")
    space.write(4094, b"1234")
    assert space.read(0, CONFIG_SIZE) == before


def test_capabilities_have_to_fit() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        ConfigSpace(IDENTITY, {}, [PciExpress(lambda: None) for _ in range(4)])

    class Odd(Capability):
        id = 9

    with pytest.raises(ValueError, match="mask of 3"):
        Odd(b"1234", b"123")


@given(st.lists(st.tuples(st.integers(-8, CONFIG_SIZE + 8), st.binary(max_size=64)), max_size=20))
def test_writes_change_writable_bits_only(writes: list[tuple[int, bytes]]) -> None:
    space, ones, zeros = make(), make(), make()
    ones.write(0, b"\xff" * CONFIG_SIZE)
    zeros.write(0, bytes(CONFIG_SIZE))
    for offset, data in writes:
        space.write(offset, data)
    fixed = zip(ones.read(0, CONFIG_SIZE), zeros.read(0, CONFIG_SIZE), strict=True)
    for at, ((one, zero), byte) in enumerate(zip(fixed, space.read(0, CONFIG_SIZE), strict=True)):
        assert byte & ~(one ^ zero) == zero & ~(one ^ zero), hex(at)


def test_extended_capabilities_have_a_list_of_their_own() -> None:
    class Serial(ExtendedCapability):
        id = 0x03

    class Vendor(ExtendedCapability):
        id = 0x0B
        version = 2

    space = ConfigSpace(
        IDENTITY, {0: 4096}, [Serial(b"\x11" * 8, bytes(8)), PowerManagement(), Vendor(b"ab", b"\xff\0")]
    )
    assert space.read(0x100, 16) == bytes.fromhex("0300c110 11111111 11111111 0b000200")
    assert find(space, 0x01) == 0x40
    space.write(0x110, b"\0\0")
    assert space.read(0x110, 2) == b"\0b"
    with pytest.raises(ValueError, match="capability 0x3: does not fit before 0x1000"):
        ConfigSpace(IDENTITY, {}, [Serial(bytes(4000), bytes(4000))])
