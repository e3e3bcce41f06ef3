"""What the device says of its own health (E3, C1): a counter that moves while it is alive, a syndrome, a buffer."""

from __future__ import annotations

from collections.abc import Callable

from softhca.bus import Clock
from softhca.prm.init_segment import HealthBuffer, HealthSyndrome

TICK = 10_000_000
"""Nanoseconds between two steps of the health counter."""
_COUNTER = 0xFF_FFFF
CRITICAL, ERROR = 2, 3
"""Severities of the health buffer, those of the system log."""


class Health:
    """The health registers of a card.

    The counter is computed from the clock when it is read: an idle device costs nothing.

    Args:
        clock: of the device's engine.
        buffer: the health buffer in the register image; by default one that nothing shows.
    """

    def __init__(self, clock: Clock, buffer: HealthBuffer | None = None) -> None:
        self._clock = clock
        self._buffer = HealthBuffer.new() if buffer is None else buffer
        self._born: int | None = None
        self._stands_at = 0
        self.syndrome = HealthSyndrome.OK
        self.on_report: Callable[[HealthSyndrome, int], None] | None = None
        """Told of each report: syndrome and details."""

    def start(self, firmware: int, hardware: int) -> None:
        """The firmware runs: the counter moves, the buffer is empty.

        Args:
            firmware: its version, packed (32 bits).
            hardware: PCI device id.
        """
        self._clear(firmware, hardware)
        self._born = self._clock.now()

    def dead(self, syndrome: HealthSyndrome, extended: int, hardware: int) -> None:
        """The firmware did not start: the counter stands, the buffer says why."""
        self._clear(0, hardware)
        self._born, self._stands_at = None, 0
        self.report(syndrome, extended)

    def stop(self) -> None:
        """The counter stands still from now on, until the firmware starts again."""
        self._born, self._stands_at = None, self.counter

    def _clear(self, firmware: int, hardware: int) -> None:
        self._buffer.assign(bytes(HealthBuffer.SIZE))
        self._buffer.fw_version = firmware
        self._buffer.hw_id = hardware
        self.syndrome = HealthSyndrome.OK

    def report(self, syndrome: HealthSyndrome, extended: int = 0, *, reset: bool = False) -> None:
        """Note a fault that the host should see.

        Args:
            syndrome: what.
            extended: details, 16 bits: the number of the object, or a fault code.
            reset: the device cannot go on and asks to be reset (rfr).
        """
        self.syndrome = syndrome
        self._buffer.synd = syndrome
        self._buffer.ext_synd = extended & 0xFFFF
        self._buffer.time = self._clock.now() // 1_000_000_000 & 0xFFFF_FFFF
        self._buffer.valid = 1
        self._buffer.severity = CRITICAL if reset else ERROR
        self._buffer.rfr = reset
        if self.on_report is not None:
            self.on_report(syndrome, extended & 0xFFFF)

    @property
    def counter(self) -> int:
        """The health counter, 24 bits."""
        return self._stands_at if self._born is None else (self._clock.now() - self._born) // TICK & _COUNTER
