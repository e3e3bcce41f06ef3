"""The PCI vendor-specific capability: a gateway to address spaces that no BAR shows (E7).

Its registers are little-endian words of configuration space, counted from the capability's id.
"""

from enum import IntEnum, unique

CONTROL = 0x04
COUNTER = 0x08
SEMAPHORE = 0x0C
ADDRESS = 0x10
DATA = 0x14
SIZE = 0x18
"""Bytes of the capability."""

SPACE_MASK = 0xFFFF
"""CONTROL [15:0]: the selected space."""
SIZE_VALID = 1 << 28
"""CONTROL [28]: ADDRESS tells the size of the space that was just selected."""
STATUS_SUPPORTED = 1 << 29
"""CONTROL [31:29]: not zero when the space exists."""
FLAG = 1 << 31
"""ADDRESS [31]: set by the host to write, cleared by the device when it is done; the other way round to read."""
SYNDROME = 1 << 30
"""ADDRESS [30]: the access failed."""
ADDRESS_MASK = (1 << 30) - 1

SW_RESET_SEMAPHORE = 0x20
"""Address in the semaphore space: who may reset the firmware."""


@unique
class Space(IntEnum):
    """Address spaces."""

    CR_SPACE = 0x2
    ICMD = 0x3
    SCAN_CR_SPACE = 0x7
    SEMAPHORES = 0xA
