"""The seam between a PCI device and the machine it sits in.

A :class:`Device` is what a card implements, a :class:`Host` what a machine offers to it. Both NICs and both
kinds of host (a Python process, a virtual machine monitor) meet here and nowhere else.
"""

from softhca.bus.dma import DmaFault, DmaSpace, Iova, Mapping
from softhca.bus.engine import Clock, Engine, RealClock, Timer, VirtualClock
from softhca.bus.protocol import Device, Host, Reset

__all__ = [
    "Clock",
    "Device",
    "DmaFault",
    "DmaSpace",
    "Engine",
    "Host",
    "Iova",
    "Mapping",
    "RealClock",
    "Reset",
    "Timer",
    "VirtualClock",
]
