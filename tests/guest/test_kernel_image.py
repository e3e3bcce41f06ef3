from __future__ import annotations

import gzip
import lzma
import struct
from collections.abc import Callable

import pytest

from softhca.guest.errors import LabError
from softhca.guest.kernel_image import extract, version_of


def _elf(notes: list[tuple[bytes, int, bytes]]) -> bytes:
    """An ELF file with one segment of notes (name, type, data)."""
    packed = b"".join(
        struct.pack("<III", len(name), len(data), kind) + name + bytes(-len(name) % 4) + data + bytes(-len(data) % 4)
        for name, kind, data in notes
    )
    header = b"\x7fELF".ljust(0x20, b"\0") + struct.pack("<QQIHHHHHH", 0x40, 0, 0, 0x40, 0x38, 2, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 0, 0, 0)
    note = struct.pack("<IIQQQQQQ", 4, 4, 0xB0, 0, 0, len(packed), len(packed), 4)
    return header + load + note + packed


_KERNEL = _elf([(b"GNU\0", 3, b"build"), (b"Xen\0", 6, b"linux"), (b"Xen\0", 18, bytes(8))])
_KERNEL_WITHOUT_PVH = _elf([(b"GNU\0", 18, bytes(8)), (b"Xen\0", 6, b"linux")])


def _bzimage(payload: bytes, setup_sectors: int = 4, version: bytes = b"6.1.0-test (me@here) #1\0") -> bytes:
    """A bzImage by Documentation/arch/x86/boot.rst."""
    image = bytearray((setup_sectors + 1) * 512)
    image[0x1F1] = setup_sectors
    image[0x202:0x206] = b"HdrS"
    image[0x20E:0x210] = (0x300).to_bytes(2, "little")
    image[0x500 : 0x500 + len(version)] = version
    image[0x248:0x24C] = (0x40).to_bytes(4, "little")
    payload += len(_KERNEL).to_bytes(4, "little")
    image[0x24C:0x250] = len(payload).to_bytes(4, "little")
    return bytes(image) + bytes(0x40) + payload


def _no_zstd(data: bytes) -> bytes:
    raise AssertionError(data[:4])


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_the_kernel_comes_out_of_a_bzimage(compress: Callable[[bytes], bytes]) -> None:
    assert extract(_bzimage(compress(_KERNEL)), _no_zstd) == _KERNEL


def test_zstd_is_left_to_its_program() -> None:
    frame = b"\x28\xb5\x2f\xfdframe"
    taken: list[bytes] = []

    def decompress(data: bytes) -> bytes:
        taken.append(data)
        return _KERNEL

    assert extract(_bzimage(frame), decompress) == _KERNEL
    assert taken == [frame]


def test_an_elf_file_stays_as_it_is() -> None:
    assert extract(_KERNEL, _no_zstd) == _KERNEL


def test_an_unknown_compression_is_left_to_the_boot_loader() -> None:
    assert extract(_bzimage(b"\x02\x21\x4c\x18lz4"), _no_zstd) is None


def test_something_else_is_refused() -> None:
    with pytest.raises(LabError, match="neither a bzImage nor an ELF"):
        extract(bytes(4096), _no_zstd)


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
@pytest.mark.parametrize(
    "damage", [lambda data: data[: len(data) // 2], lambda data: data[:12] + bytes(len(data) - 12)]
)
def test_a_damaged_kernel_is_refused(compress: Callable[[bytes], bytes], damage: Callable[[bytes], bytes]) -> None:
    with pytest.raises(LabError, match="the bzImage is damaged"):
        extract(_bzimage(damage(compress(_KERNEL))), _no_zstd)


def test_a_kernel_that_cannot_start_directly_keeps_its_boot_loader() -> None:
    assert extract(_bzimage(gzip.compress(_KERNEL_WITHOUT_PVH)), _no_zstd) is None
    with pytest.raises(LabError, match="CONFIG_PVH"):
        extract(_KERNEL_WITHOUT_PVH, _no_zstd)


def test_version() -> None:
    assert version_of(_bzimage(b"")) == "6.1.0-test"
    assert version_of(_KERNEL) is None
