"""When something went wrong: undo a bring-up, reset the function, bring it up again (source 6, D10, F7, F8).

A time-out, a failed close or a dead device leave one question: does the device still access memory? A reset answers it.
"""

from __future__ import annotations

from collections.abc import Callable

from softhca.driver.bringup import START_TIMEOUT, Stage, bring_up
from softhca.driver.close import Closed, close
from softhca.driver.driver import Driver
from softhca.driver.errors import DriverError, NotReady
from softhca.driver.init_segment import SW_RESET


def roll_back(driver: Driver) -> Closed:
    """Undo what a bring-up has reached, by a close, or when that fails too by a reset (F7).

    Raises:
        NotReady: the function does not come back from the reset; everything stays allocated.
    """
    try:
        return close(driver)
    except DriverError:
        return reset_function(driver)


def reset_function(driver: Driver, *, software: bool = False) -> Closed:
    """Reset the function; then everything that it was given is free, and nothing that it gave means anything (F8).

    Args:
        driver: in any state.
        software: reset the whole card by nic_interface, as a dead firmware asks for; else a Function Level Reset. A
            function that is gone from the bus needs neither.

    Returns:
        How it ended: pages that the device had are `reclaimed`.

    Raises:
        NotReady: the device does not confirm; everything stays allocated.
    """
    if driver.pci.present:
        if software:
            driver.segment.disable_interface(SW_RESET, START_TIMEOUT)
            driver.pci.disable_msix()
            driver.pci.disable_bus_master()
        else:
            driver.pci.reset(START_TIMEOUT)
    pages = driver.forget()
    return Closed(torn_down=True, reclaimed=pages, outstanding=0)


def recover(driver: Driver, watch: Callable[[Stage], None] = lambda stage: None) -> list[Stage]:
    """Quiesce, reset, and bring up again: a new life, in which old numbers and keys are refused (F8).

    The firmware is reset when the health buffer asks for it; else the function alone is.

    Raises:
        NotReady: the function is gone, or does not come back.
        BringUpError: it cannot be brought up again.
    """
    if not driver.pci.present:
        driver.forget()
        raise NotReady("PCI: the function is gone; what it had is free, there is nothing to recover")
    reset_function(driver, software=bool(driver.segment.health_buffer().rfr))
    return bring_up(driver, watch)
