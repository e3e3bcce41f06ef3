"""The init segment: access rights, access sizes, the queue's address, nic_interface, timer and health (E1-E4, C4)."""

from __future__ import annotations

import pytest

from softhca.bus import Reset
from softhca.hca.command import Stage
from softhca.prm.opcodes import Opcode
from tests.hca.raw_host import MILLISECOND, PAGE, RawHost, words

LOW = 0x14
DISABLED, SW_RESET = 1 << 8, 7 << 8


@pytest.mark.requirement("E1")
def test_registers_after_reset(host: RawHost) -> None:
    assert host.hca.bar_read(0, 0x0, 8) == bytes.fromhex("001a0014 00050410")  # firmware 20.26.1040, revision 5
    assert host.hca.bar_read(0, 0x10, 12) == bytes.fromhex("00000000 00000056 00000000")
    assert host.read(0x1FC) == 1 << 30 | 3 << 24  # not initializing; the host may reset; full driver and disabled
    assert host.hca.bar_read(0, 0x200, 0x30) == bytes(0x30)
    assert host.read(0x230) == 20 << 24 | 26 << 16 | 1040
    assert host.read(0xFFC) == 0


@pytest.mark.requirement("E1")
@pytest.mark.parametrize("offset", [0x0, 0x4, 0x8, 0x1FC, 0x1000, 0x1004, 0x1010, 0xFFC, 0x240])
def test_read_only_words_ignore_writes(host: RawHost, offset: int) -> None:
    before = host.hca.bar_read(0, 0, 0x2000)
    host.write(offset, 0xFFFF_FFFF)
    assert host.hca.bar_read(0, 0, 0x2000) == before


@pytest.mark.requirement("E1")
@pytest.mark.parametrize("offset", [0x18, 0x100C])
def test_write_only_words_read_as_zero(host: RawHost, offset: int) -> None:
    host.start()
    host.write(offset, 0xFFFF_FFFF)
    assert host.read(offset) == 0


@pytest.mark.requirement("E1", "C4")
def test_queue_address_keeps_its_bits_and_not_the_geometry(host: RawHost) -> None:
    host.write(0x10, 0x1234_5678)
    host.write(LOW, 0x9ABC_D0FF)
    assert (host.read(0x10), host.read(LOW)) == (0x1234_5678, 0x9ABC_D056)
    assert host.hca.segment.queue_address == 0x1234_5678_9ABC_D000


@pytest.mark.requirement("E1")
def test_health_buffer_takes_writes(host: RawHost) -> None:
    host.hca.bar_write(0, 0x200, b"\x5a" * 0x40)
    assert host.hca.bar_read(0, 0x200, 0x40) == b"\x5a" * 0x40
    host.hca.bar_write(0, 0x1F0, b"\xff" * 0x60)
    assert host.read(0x1FC) == 1 << 30 | 3 << 24
    assert host.read(0x240) == 0
    assert host.hca.bar_read(0, 0x200, 0x40) == b"\xff" * 0x40


@pytest.mark.requirement("E1")
def test_bytes_and_long_words(host: RawHost) -> None:
    segment = host.hca.bar_read(0, 0, 0x40)
    assert [host.hca.bar_read(0, at, 1)[0] for at in range(0x40)] == list(segment)
    assert host.hca.bar_read(0, 3, 7) == segment[3:10]
    host.hca.bar_write(0, 0x10, bytes.fromhex("0000000200003000"))
    assert host.hca.segment.queue_address == 0x2_0000_3000
    host.hca.bar_write(0, 0x12, b"\x77")
    assert host.read(0x10) == 0x7702
    host.hca.bar_write(0, LOW + 1, b"\xff\xff\xff\xff")  # the geometry, and then the doorbell's highest byte
    assert host.read(LOW) == 0x00FF_F756 & ~0xF00 | SW_RESET


@pytest.mark.requirement("D7")
def test_doorbell_by_single_bytes(host: RawHost) -> None:
    host.start()
    message = host.message(words(Opcode.ENABLE_HCA << 16, 0, 0, 0), 12, slot=9)
    host.slot(9)[:] = message.entry
    host.hca.bar_write(0, 0x1A, b"\x02")
    host.settle()
    assert host.result(message).status == 0


@pytest.mark.requirement("E1")
@pytest.mark.parametrize(("offset", "size"), [(0x1FFE, 4), (0x1FFF, 8), (0xFFD, 40), (0, 1 << 16), (0x0, 0)])
def test_odd_accesses_are_bounded(host: RawHost, offset: int, size: int) -> None:
    assert len(host.hca.bar_read(0, offset, size)) == size
    host.hca.bar_write(0, offset, b"\xff" * size)
    assert host.read(0) == 0x001A0014


@pytest.mark.requirement("E2")
def test_queue_address_is_fixed_between_init_and_teardown(host: RawHost) -> None:
    host.initialize()
    high, low = host.read(0x10), host.read(LOW)
    host.write(0x10, 0xFFFF)
    host.write(LOW, 0x5555_0000)
    assert (host.read(0x10), host.read(LOW)) == (high, low)
    assert host.hca.segment.refused == 2
    host.good(Opcode.TEARDOWN_HCA)
    host.write(0x10, 0xFFFF)
    assert host.read(0x10) == 0xFFFF


@pytest.mark.requirement("E2", "F6", "F8")
def test_disabled_ends_the_function_and_keeps_the_address(host: RawHost) -> None:
    host.initialize()
    host.write(LOW, host.read(LOW) & 0xFFFF_F000 | DISABLED)
    assert host.read(LOW) & 0xFFFF_FF00 == host.queue & 0xFFFF_F000 | DISABLED
    function = host.hca.function
    assert (function.stage, len(function.icm.pages), function.objects()) == (Stage.DISABLED, 0, {})
    message = host.message(words(Opcode.ENABLE_HCA << 16, 0, 0, 0), 12)
    host.ring(message)
    host.settle()
    assert host.owned(message)
    host.place_queue()  # full driver
    assert host.submit(message).status == 0


@pytest.mark.requirement("E2")
def test_sw_reset_starts_the_firmware_anew_and_leaves_the_function_disabled(host: RawHost) -> None:
    host.initialize()
    host.write(LOW, host.read(LOW) & 0xFFFF_F000 | SW_RESET)
    assert host.read(LOW) & 0x700 == SW_RESET
    host.settle()
    assert host.read(LOW) == DISABLED | 0x56
    assert host.hca.function.stage is Stage.DISABLED
    host.initialize()


@pytest.mark.requirement("E2")
@pytest.mark.parametrize("interface", [2, 3, 4, 5, 6])
def test_other_interfaces_are_refused(host: RawHost, interface: int) -> None:
    host.enable()
    host.write(LOW, host.read(LOW) & 0xFFFF_F000 | interface << 8)
    assert host.read(LOW) == host.queue & 0xFFFF_F000 | 0x56
    host.good(Opcode.QUERY_ISSI, room=112)


@pytest.mark.requirement("E4")
def test_timer_counts_ticks_and_is_not_torn(host: RawHost) -> None:
    before = int.from_bytes(host.hca.bar_read(0, 0x1000, 8), "big")
    host.engine.clock.pass_time(30_000_000_000)
    after = int.from_bytes(host.hca.bar_read(0, 0x1000, 8), "big")
    assert after - before == 30_000_000_000 * 156_250 // 1_000_000  # device_frequency_khz 156250
    assert host.read(0x1000) == after >> 32 == 1
    assert host.read(0x1004) == after & 0xFFFF_FFFF


@pytest.mark.requirement("E3")
def test_health_counter_moves_by_the_clock_alone(host: RawHost) -> None:
    first = host.read(0x1010)
    assert host.read(0x1010) == first
    host.engine.clock.pass_time(100 * MILLISECOND)
    assert host.read(0x1010) == first + 10
    assert host.engine.next_deadline() is None


@pytest.mark.requirement("C4")
def test_queue_may_lie_anywhere_that_is_mapped(host: RawHost) -> None:
    for _ in range(3):
        host.queue, host.slots = host.machine.allocate(PAGE)
        host.start()
        host.good(Opcode.ENABLE_HCA, room=12)
        host.good(Opcode.DISABLE_HCA, room=12)


@pytest.mark.requirement("E1")
def test_timeouts_stay_over_a_reset(host: RawHost) -> None:
    assert host.read(0xFF8) == host.read(0xFFC) == 0
    host.hca.segment.use_timeouts(1500, 2000)
    host.hca.reset(Reset.FLR)
    assert (host.read(0xFF8), host.read(0xFFC)) == (1500, 2000)
    with pytest.raises(ValueError, match="timeout start: 1048576 ms"):
        host.hca.segment.use_timeouts(0, 1 << 20)
