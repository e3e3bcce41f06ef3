"""The flash and the firmware image in it (C1).

A real image is megabytes of code; of ours only the head counts: what the firmware says of itself, and a checksum
without which the device does not start. Big-endian: magic (8 bytes), length of the whole image, CRC-32 of what follows
it, then the figures of :class:`Image`.
"""

from __future__ import annotations

import zlib
from dataclasses import astuple, dataclass
from enum import IntEnum
from struct import Struct

from softhca.hca.profile import Profile

MAGIC = b"SOFTHCA\x01"
_HEAD = Struct(">8sII")
_BODY = Struct(">HHHHHBB16s")
MOST_ISSI = 1
"""The highest interface step that is implemented."""
QUEUE_BLOCK_LOG = 12
"""log2 of the command queue's block: slots times stride fit 4 KiB (D1)."""


class FlashFault(IntEnum):
    """Why an image is not loaded; the health buffer's `ext_synd` shows it."""

    TOO_SHORT = 1
    BAD_MAGIC = 2
    BAD_LENGTH = 3
    BAD_CHECKSUM = 4
    BAD_CONTENTS = 5


class FlashError(ValueError):
    """The flash holds no image that can be started.

    Args:
        fault: why.
        text: found and wanted values.
    """

    def __init__(self, fault: FlashFault, text: str) -> None:
        super().__init__(f"flash: {text}")
        self.fault = fault


@dataclass(frozen=True)
class Image:
    """What the firmware image says.

    Attributes:
        major, minor, subminor: firmware version, 16 bits each.
        command_interface: revision of the command interface.
        issi: the highest interface step.
        log_size, log_stride: geometry of the command queue (D1).
        board_id: the PSID, 16 bytes padded with zeros.
    """

    major: int
    minor: int
    subminor: int
    command_interface: int
    issi: int
    log_size: int
    log_stride: int
    board_id: bytes


def build(profile: Profile) -> bytes:
    """The image of a model's firmware."""
    firmware, queue = profile.firmware, profile.command_queue
    return pack(
        Image(
            firmware.major,
            firmware.minor,
            firmware.subminor,
            firmware.command_interface,
            firmware.issi,
            queue.log_size,
            queue.log_stride,
            firmware.board_id.encode("ascii"),
        )
    )


def pack(image: Image) -> bytes:
    """An image with these figures and a right checksum, whether or not a device could start with it."""
    body = _BODY.pack(*astuple(image))
    return _HEAD.pack(MAGIC, _HEAD.size + len(body), zlib.crc32(body)) + body


def load(flash: bytes) -> Image:
    """Check an image and read it.

    Raises:
        FlashError: it cannot be started.
    """
    if len(flash) < _HEAD.size:
        raise FlashError(FlashFault.TOO_SHORT, f"{len(flash)} bytes, an image has at least {_HEAD.size}")
    magic, length, checksum = _HEAD.unpack_from(flash)
    if magic != MAGIC:
        raise FlashError(FlashFault.BAD_MAGIC, f"magic {magic.hex()}, wanted {MAGIC.hex()}")
    if not _HEAD.size + _BODY.size <= length <= len(flash):
        raise FlashError(FlashFault.BAD_LENGTH, f"the image says {length} bytes, the flash has {len(flash)}")
    body = flash[_HEAD.size : length]
    if zlib.crc32(body) != checksum:
        raise FlashError(FlashFault.BAD_CHECKSUM, f"checksum {zlib.crc32(body):#010x}, the image says {checksum:#010x}")
    image = Image(*_BODY.unpack_from(body))
    if image.issi > MOST_ISSI:
        raise FlashError(FlashFault.BAD_CONTENTS, f"issi {image.issi}, allowed up to {MOST_ISSI}")
    if image.log_size > 5 or image.log_stride < 6 or image.log_size + image.log_stride > QUEUE_BLOCK_LOG:
        raise FlashError(
            FlashFault.BAD_CONTENTS,
            f"command queue of 2^{image.log_size} slots, 2^{image.log_stride} bytes apart: does not fit 4 KiB",
        )
    return image
