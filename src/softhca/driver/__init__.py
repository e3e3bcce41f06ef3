"""Our own driver of the HCA: small, and in the order of the source document, so that it can be read beside it.

It knows the programmer's reference (`softhca.prm`) and the bus (`softhca.bus`), and nothing of the device behind them.
Begin with :mod:`softhca.driver.bringup`.
"""

from softhca.driver.bringup import Stage, bring_up
from softhca.driver.close import Closed, close
from softhca.driver.driver import Driver, Reached
from softhca.driver.errors import DriverError
from softhca.driver.health import HealthWatch
from softhca.driver.recovery import recover, reset_function, roll_back

__all__ = [
    "Closed",
    "Driver",
    "DriverError",
    "HealthWatch",
    "Reached",
    "Stage",
    "bring_up",
    "close",
    "recover",
    "reset_function",
    "roll_back",
]
