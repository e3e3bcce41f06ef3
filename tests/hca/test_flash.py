"""Firmware start: the image in flash, and what the device is without a good one (C1, C3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from softhca.bus import Reset
from softhca.hca import flash
from softhca.hca.flash import FlashError, FlashFault
from softhca.hca.profile import load_profile
from softhca.prm.opcodes import Opcode
from tests.hca.raw_host import RawHost, words

GOOD = flash.build(load_profile())
CONNECTX_6 = bytes.fromhex(
    "534f465448434101 0000002c"  # magic, length
    "e02dfffd"  # CRC-32
    "0014 001a 0410 0005 0001 05 06"
    "4d545f30303030303030323232000000"
)


def test_image_of_literal_bytes() -> None:
    assert GOOD == CONNECTX_6


def test_image_is_read_as_it_was_built() -> None:
    image = flash.load(GOOD)
    assert (image.major, image.minor, image.subminor) == (20, 26, 1040)
    assert flash.pack(image) == GOOD
    assert image.board_id == b"MT_0000000222\0\0\0"


def broken() -> dict[FlashFault, bytes]:
    image = flash.load(GOOD)
    return {
        FlashFault.TOO_SHORT: GOOD[:15],
        FlashFault.BAD_MAGIC: b"X" + GOOD[1:],
        FlashFault.BAD_LENGTH: GOOD[:-1],
        FlashFault.BAD_CHECKSUM: GOOD[:-1] + b"\x01",
        FlashFault.BAD_CONTENTS: flash.pack(replace(image, log_stride=8)),
    }


@pytest.mark.requirement("C1")
@pytest.mark.parametrize("fault", list(FlashFault))
def test_bad_image_is_refused(fault: FlashFault) -> None:
    with pytest.raises(FlashError, match=r"^flash: .*\d") as error:
        flash.load(broken()[fault])
    assert error.value.fault is fault


@pytest.mark.requirement("C1", "C3")
@pytest.mark.parametrize("fault", list(FlashFault))
def test_card_with_a_bad_image_enumerates_and_is_not_ready(fault: FlashFault) -> None:
    host = RawHost(flash=broken()[fault])
    assert host.hca.config_read(0, 4) == bytes.fromhex("b3151b10")
    assert host.read(0x1FC) == 0x8003_0000  # initializing, aborted
    assert host.read(0x23C) == 0x09 << 16 | fault  # FW_CRC_ERR
    assert host.read(0x1010) == 0x09 << 24
    host.engine.clock.pass_time(10_000_000_000)
    assert host.read(0x1010) == 0x09 << 24  # the counter stands
    host.start()
    message = host.message(words(Opcode.ENABLE_HCA << 16, 0, 0, 0), 12)
    host.ring(message)
    host.settle()
    assert host.owned(message)
    host.write(0x14, 7 << 8)
    host.settle()
    assert host.read(0x1FC) >> 31 == 1


@pytest.mark.requirement("C1")
def test_new_flash_is_loaded_by_the_next_reset() -> None:
    host = RawHost(flash=b"")
    assert host.read(0x1FC) >> 31 == 1
    host.hca.flash = GOOD
    host.hca.reset(Reset.FLR)
    assert host.read(0x1FC) >> 31 == 0
    assert host.read(0x1010) >> 24 == 0
    host.start().good(Opcode.ENABLE_HCA, room=12)


def test_an_interface_step_that_is_not_implemented_is_not_started() -> None:
    image = replace(flash.load(GOOD), issi=2)
    with pytest.raises(FlashError, match="issi 2, allowed up to 1") as refusal:
        flash.load(flash.pack(image))
    assert refusal.value.fault is FlashFault.BAD_CONTENTS


def test_any_version_can_be_started() -> None:
    host = RawHost(flash=flash.pack(replace(flash.load(GOOD), major=0xFFFF, minor=0xFFFF, subminor=0xFFFF)))
    assert host.read(0) == 0xFFFF_FFFF
    host.hca.reset(Reset.FLR)
    assert host.hca.ready
