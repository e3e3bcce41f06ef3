"""Takes the kernel itself out of a bzImage, so that a virtual machine starts it without decompressing it."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable

from softhca.guest.errors import LabError

_ELF = b"\x7fELF"


def version_of(image: bytes) -> str | None:
    """The release string (`uname -r`) that a bzImage carries; None if it is none (Linux boot protocol, 0x20e)."""
    if image[0x202:0x206] != b"HdrS":
        return None
    at = int.from_bytes(image[0x20E:0x210], "little") + 0x200
    return image[at : at + 256].split(b"\0")[0].split(b" ")[0].decode(errors="replace")


def extract(image: bytes, decompress_zstd: Callable[[bytes], bytes]) -> bytes | None:
    """The ELF kernel within a bzImage, or the image itself if it is one; None if its compression is not known.

    Args:
        image: the file.
        decompress_zstd: takes a zstd frame apart.

    Raises:
        LabError: this is neither a bzImage nor an ELF file.
    """
    if image[:4] == _ELF:
        return image
    if image[0x202:0x206] != b"HdrS":
        raise LabError("the kernel is neither a bzImage nor an ELF file")
    setup = (image[0x1F1] or 4) + 1
    offset = int.from_bytes(image[0x248:0x24C], "little")
    length = int.from_bytes(image[0x24C:0x250], "little")
    payload = image[setup * 512 + offset :][:length]
    if payload[:4] == b"\x28\xb5\x2f\xfd":
        kernel = decompress_zstd(payload[:-4])
    elif payload[:2] == b"\x1f\x8b":
        kernel = gzip.decompress(payload[:-4])
    elif payload[:6] == b"\xfd7zXZ\x00":
        kernel = lzma.decompress(payload[:-4])
    else:
        return None
    return kernel if kernel[:4] == _ELF else None
