"""Health: counter, syndrome, buffer (E3)."""

from __future__ import annotations

import pytest

from softhca.bus import VirtualClock
from softhca.hca.health import TICK, Health
from softhca.prm.init_segment import HealthBuffer, HealthSyndrome
from softhca.prm.opcodes import Opcode
from tests.hca.raw_host import RawHost


@pytest.mark.requirement("E3")
def test_counter_wraps_at_24_bits() -> None:
    clock = VirtualClock()
    health = Health(clock)
    health.start(1, 0x101B)
    clock.pass_time(0xFF_FFFF * TICK)
    assert health.counter == 0xFF_FFFF
    clock.pass_time(TICK)
    assert health.counter == 0


@pytest.mark.requirement("E3")
def test_report_fills_the_buffer_and_a_start_empties_it() -> None:
    clock = VirtualClock(7_000_000_000)
    buffer = HealthBuffer.new()
    health = Health(clock, buffer)
    health.start(0x10203, 0x101B)
    health.report(HealthSyndrome.EQ_IN_ERR, 0x12345)
    assert bytes(buffer)[0x2C:] == bytes.fromhex("00000007 00010203 0000101b 08000000 000d2345")
    assert health.syndrome is HealthSyndrome.EQ_IN_ERR
    health.start(0x10203, 0x101B)
    assert bytes(buffer)[0x38:] == bytes(8)


@pytest.mark.requirement("E3")
def test_dead_firmware_does_not_count() -> None:
    clock = VirtualClock()
    health = Health(clock)
    health.dead(HealthSyndrome.FW_CRC_ERR, 4, 0x101B)
    clock.pass_time(1000 * TICK)
    assert (health.counter, health.syndrome) == (0, HealthSyndrome.FW_CRC_ERR)


@pytest.mark.requirement("E3", "D8")
def test_overrun_of_an_eq_is_told(host: RawHost) -> None:
    host.initialize()
    host.create_eq(1 << 0x0A, log_size=1)
    for _ in range(3):
        host.command(Opcode.QUERY_ADAPTER, room=272)
    assert host.read(0x1010) >> 24 == 0xC
    assert host.hca.bar_read(0, 0x23D, 1) == b"\x0c"
    assert host.hca.bar_read(0, 0x238, 1)[0] & 0x80 == 0  # no reset is asked for
