from __future__ import annotations

import pytest

from softhca.bus.local import LocalHost
from softhca.driver import Driver, bring_up
from softhca.driver.errors import BringUpError, NotReady, UnsupportedDevice
from softhca.driver.init_segment import InitSegment
from tests.driver.stub import DOORBELL, StubDevice


@pytest.mark.requirement("D1")
def test_geometry_is_computed_from_the_registers() -> None:
    shape = InitSegment(StubDevice(log_cmdq_size=3, log_cmdq_stride=7)).geometry()
    assert (shape.slots, shape.stride) == (8, 128)


@pytest.mark.requirement("D1")
@pytest.mark.parametrize(("size", "stride"), [(6, 7), (5, 8), (0, 13), (15, 15), (5, 5), (6, 6)])
def test_geometry_that_does_not_fit_is_refused(size: int, stride: int) -> None:
    with pytest.raises(UnsupportedDevice, match=f"{1 << size} command slots of {1 << stride} bytes"):
        InitSegment(StubDevice(log_cmdq_size=size, log_cmdq_stride=stride)).geometry()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("revision", [0, 4, 6, 0xFFFF])
def test_other_revision_stops_bring_up_before_the_queue_is_used(revision: int) -> None:
    device = StubDevice(cmd_interface_rev=revision)
    driver = Driver(device, LocalHost(1 << 20))
    with pytest.raises(BringUpError, match=f"cmd_interface_rev is {revision}, this driver speaks 5") as caught:
        bring_up(driver)
    assert caught.value.stage == "command queue"
    assert not device.writes


@pytest.mark.requirement("C3", "C4", "F7")
def test_initializing_that_stays_one_stops_bring_up_and_says_why() -> None:
    device = StubDevice(initializing=1, health_syndrome=0x10)
    driver = Driver(device, LocalHost(1 << 20))
    with pytest.raises(BringUpError, match=r"initializing stays 1.*health syndrome 0x10") as caught:
        bring_up(driver)
    assert isinstance(caught.value.__cause__, NotReady)
    assert caught.value.completed == ["firmware start", "enumeration", "bus master"]
    assert DOORBELL not in [at for at, _ in device.writes]


@pytest.mark.requirement("C4")
def test_queue_address_is_written_high_then_low_with_full_driver() -> None:
    device = StubDevice()
    InitSegment(device).set_command_queue(0x12_3456_7000)
    assert device.writes == [(0x10, 0x12), (0x14, 0x3456_7000)]


@pytest.mark.requirement("E4")
def test_timer_is_not_torn_by_a_wrap() -> None:
    class Wrapping(StubDevice):
        ticks = 0xFFFF_FFFF

        def bar_read(self, bar: int, offset: int, size: int) -> bytes:
            value = self.ticks >> 32 if offset == 0x1000 else self.ticks & 0xFFFF_FFFF
            self.ticks += 1
            return value.to_bytes(4, "big")

    device = Wrapping()
    before = device.ticks
    assert before <= InitSegment(device).timer() <= device.ticks


@pytest.mark.requirement("C6")
def test_firmware_version_is_apart_from_the_revision() -> None:
    segment = InitSegment(StubDevice(fw_rev_major=20, fw_rev_minor=43, fw_rev_subminor=1014))
    assert segment.firmware_version == "20.43.1014"
    segment.check_revision()
