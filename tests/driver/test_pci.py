from __future__ import annotations

import pytest

from softhca.bus.config_space import BAR0, COMMAND
from softhca.driver.errors import NotReady
from softhca.driver.pci import FIRST_BAR_ADDRESS, PciFunction
from tests.driver.stub import StubDevice


@pytest.mark.requirement("C1", "C3")
def test_enumeration_sizes_bars_and_gives_them_addresses() -> None:
    device = StubDevice(bars={0: 1 << 25, 4: 1 << 13}, vectors=7)
    found = PciFunction(device).enumerate()
    assert (found.vendor, found.device, found.class_code, found.vectors) == (0x15B3, 0x101B, 0x020700, 7)
    assert found.bars == {0: (FIRST_BAR_ADDRESS, 1 << 25), 4: (FIRST_BAR_ADDRESS + (1 << 25), 1 << 13)}
    assert device.config.get(BAR0, 8) & ~0xF == FIRST_BAR_ADDRESS
    assert device.config.memory_enabled
    assert not device.config.bus_master


@pytest.mark.requirement("C2")
def test_bus_master_is_set_and_cleared_alone() -> None:
    device = StubDevice()
    pci = PciFunction(device)
    pci.enumerate()
    pci.enable_bus_master()
    assert device.config.bus_master
    assert device.config.memory_enabled
    pci.disable_bus_master()
    assert device.config.get(COMMAND, 2) == 0x2


def test_msix_is_enabled_and_disabled() -> None:
    device = StubDevice()
    pci = PciFunction(device)
    at = pci.capabilities()[0x11]
    pci.enable_msix()
    assert device.config.get(at + 2, 2) & 0xC000 == 0x8000
    pci.disable_msix()
    assert device.config.get(at + 2, 2) & 0xC000 == 0


@pytest.mark.requirement("C1")
def test_nobody_answers() -> None:
    device = StubDevice()
    device.present = False
    with pytest.raises(NotReady, match="no function answered within 3 s"):
        PciFunction(device).wait_until_present(3_000_000_000)
