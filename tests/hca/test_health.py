"""Health: counter, syndrome, buffer (E3)."""

from __future__ import annotations

import pytest

from softhca.bus import Reset, VirtualClock
from softhca.hca.health import TICK, Health
from softhca.points import Probe
from softhca.points.rules import Rules, parse_line
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
    assert bytes(buffer)[0x2C:] == bytes.fromhex("00000007 00010203 0000101b 0b000000 000d2345")
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


@pytest.mark.requirement("E3")
def test_a_counter_that_was_stopped_stands_until_the_next_start() -> None:
    clock = VirtualClock()
    health = Health(clock)
    health.start(1, 0x101B)
    clock.pass_time(5 * TICK)
    health.stop()
    clock.pass_time(5 * TICK)
    assert health.counter == 5
    health.start(1, 0x101B)
    clock.pass_time(2 * TICK)
    assert health.counter == 2


def disturb(host: RawHost, *rules: str) -> None:
    host.hca.probe = Probe(host.engine.clock, rules=Rules([parse_line(rule) for rule in rules]))


@pytest.mark.requirement("E3", "F1")
def test_a_dead_card_asks_for_a_reset_and_touches_nothing(host: RawHost) -> None:
    host.initialize()
    host.create_eq(1 << 0x0A)
    disturb(host, "command=ALLOC_PD raise=FW_INTERNAL_ERR fatal")
    host.command(Opcode.QUERY_ADAPTER, room=272)
    message = host.message(Opcode.ALLOC_PD.to_bytes(2, "big") + bytes(14), 16)
    host.ring(message)
    host.settle()
    assert host.owned(message)
    assert host.hca.bar_read(0, 0x23D, 1) == b"\x01"
    assert host.hca.bar_read(0, 0x238, 1) == b"\x8a"  # reset, valid, critical
    counter = host.read(0x1010)
    host.engine.wait(lambda: False, 100 * TICK)
    assert host.read(0x1010) == counter
    before = bytes(host.machine.dma.read(host.queue, 4096))
    host.write(0x18, 2)
    host.settle()
    assert host.machine.dma.read(host.queue, 4096) == before
    assert host.hca.summary()["pages_outstanding"] == 80


@pytest.mark.requirement("E2", "E3", "F8")
def test_a_software_reset_brings_a_dead_card_back(host: RawHost) -> None:
    host.initialize()
    assert host.read(0x1FC) >> 30 & 1 == 1  # the host may reset the firmware
    host.hca.die(HealthSyndrome.HW_FATAL_ERR)
    host.write(0x14, host.read(0x14) & 0xFFFF_F000 | 7 << 8)
    host.settle()
    assert host.read(0x14) >> 8 & 7 == 1
    assert host.hca.bar_read(0, 0x238, 8)[5] == 0
    assert host.hca.summary()["pages_outstanding"] == 0
    host.initialize()


@pytest.mark.requirement("E3")
def test_a_syndrome_that_is_not_fatal_leaves_the_card_working(host: RawHost) -> None:
    host.initialize()
    disturb(host, "command=ALLOC_PD raise=HIGH_TEMP_ERR")
    host.good(Opcode.ALLOC_PD)
    assert host.hca.bar_read(0, 0x23D, 1) == b"\x10"
    assert host.hca.bar_read(0, 0x238, 1) == b"\x0b"
    host.good(Opcode.ALLOC_PD)


@pytest.mark.requirement("E3")
def test_a_counter_stopped_by_a_rule(host: RawHost) -> None:
    host.initialize()
    disturb(host, "command=ALLOC_PD stop_counter")
    host.good(Opcode.ALLOC_PD)
    counter = host.read(0x1010)
    host.engine.wait(lambda: False, 100 * TICK)
    assert host.read(0x1010) == counter


@pytest.mark.requirement("A10", "F1")
def test_a_removed_card_reads_as_ones_until_it_is_plugged_again(host: RawHost) -> None:
    host.initialize()
    disturb(host, "command=ALLOC_PD remove")
    message = host.message(Opcode.ALLOC_PD.to_bytes(2, "big") + bytes(14), 16)
    host.ring(message)
    host.settle()
    assert host.owned(message)
    assert host.hca.config_read(0, 4) == host.hca.bar_read(0, 0x230, 4) == b"\xff" * 4
    host.bus_master()
    host.write(0x18, 1)
    host.hca.reset(Reset.FLR)
    host.settle()
    assert host.owned(message)
    assert host.read(0x1010) == 0xFFFF_FFFF
    host.hca.detach()
    host.machine.plug(host.hca)
    host.initialize()
