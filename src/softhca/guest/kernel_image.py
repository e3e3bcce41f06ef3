"""Takes the kernel itself out of a bzImage, so that a virtual machine starts it without decompressing it."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Callable

from softhca.guest.errors import LabError

_ELF = b"\x7fELF"


_PT_NOTE = 4
_PVH_ENTRY = 18
"""Type of the note `Xen` that holds the entry point of a direct start (include/xen/interface/elfnote.h)."""


def starts_directly(kernel: bytes) -> bool:
    """Whether an ELF kernel has the note that a virtual machine needs to start it without a boot loader (PVH)."""
    table = int.from_bytes(kernel[0x20:0x28], "little")
    size, count = (int.from_bytes(kernel[at : at + 2], "little") for at in (0x36, 0x38))
    for number in range(count):
        entry = kernel[table + number * size :][:size]
        if int.from_bytes(entry[:4], "little") == _PT_NOTE:
            offset, length = (int.from_bytes(entry[at : at + 8], "little") for at in (0x08, 0x20))
            if _has_note(kernel[offset : offset + length], b"Xen\0", _PVH_ENTRY):
                return True
    return False


def _has_note(notes: bytes, name: bytes, kind: int) -> bool:
    at = 0
    while at + 12 <= len(notes):
        name_size, data_size, found = (int.from_bytes(notes[at + i : at + i + 4], "little") for i in (0, 4, 8))
        if found == kind and notes[at + 12 : at + 12 + name_size] == name:
            return True
        at += 12 + (name_size + 3 & ~3) + (data_size + 3 & ~3)
    return False


def version_of(image: bytes) -> str | None:
    """The release string (`uname -r`) that a bzImage carries; None if it is none (Linux boot protocol, 0x20e)."""
    if image[0x202:0x206] != b"HdrS":
        return None
    at = int.from_bytes(image[0x20E:0x210], "little") + 0x200
    return image[at : at + 256].split(b"\0")[0].split(b" ")[0].decode(errors="replace")


def extract(image: bytes, decompress_zstd: Callable[[bytes], bytes]) -> bytes | None:
    """The ELF kernel within a bzImage, or the image itself if it is one.

    None if the bzImage itself has to be started: its compression is not known, or its kernel cannot start directly.

    Args:
        image: the file.
        decompress_zstd: takes a zstd frame apart.

    Raises:
        LabError: this is neither a bzImage nor an ELF file, an ELF file that cannot start directly, or damaged.
    """
    if image[:4] == _ELF:
        if not starts_directly(image):
            raise LabError("the kernel is an ELF file without CONFIG_PVH; name its bzImage instead")
        return image
    if image[0x202:0x206] != b"HdrS":
        raise LabError("the kernel is neither a bzImage nor an ELF file")
    setup = (image[0x1F1] or 4) + 1
    offset = int.from_bytes(image[0x248:0x24C], "little")
    length = int.from_bytes(image[0x24C:0x250], "little")
    payload = image[setup * 512 + offset :][:length]
    if payload[:4] == b"\x28\xb5\x2f\xfd":
        decompress = decompress_zstd
    elif payload[:2] == b"\x1f\x8b":
        decompress = gzip.decompress
    elif payload[:6] == b"\xfd7zXZ\x00":
        decompress = lzma.decompress
    else:
        return None
    try:
        kernel = decompress(payload[:-4])
    except (OSError, EOFError, zlib.error, lzma.LZMAError, LabError) as error:
        raise LabError(f"the bzImage is damaged: what it holds does not decompress: {error}") from error
    return kernel if kernel[:4] == _ELF and starts_directly(kernel) else None
