"""The health watch: several signals, one verdict (source 5.3, E3).

One equal reading of the counter proves nothing. A verdict comes from repeated readings, the syndrome, the interface's
state, whether PCI answers at all, and whether commands complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from softhca.driver.driver import Driver
from softhca.prm.init_segment import HealthSyndrome, NicInterface

MISSES = 3
"""Equal readings in a row that make a counter stand."""
INTERVAL = 2_000_000_000
"""Nanoseconds between two readings; the counter steps a hundred times a second."""


class Verdict(Enum):
    """What is to be thought of a device."""

    ALIVE = "alive"
    UNWELL = "unwell: it reports a fault that it can live with"
    SUSPECT = "suspect: its counter did not move, but not often enough to prove anything"
    STUCK = "stuck: its counter stands"
    DEAD = "dead: its firmware asks for a reset"
    DISABLED = "disabled: the interface is not this driver's any more"
    GONE = "gone: nobody answers on the bus"

    @property
    def needs_recovery(self) -> bool:
        """Whether the function has to be brought up anew."""
        return self in (Verdict.STUCK, Verdict.DEAD, Verdict.DISABLED, Verdict.GONE)


@dataclass(frozen=True)
class HealthReport:
    """What was seen.

    Attributes:
        verdict: the conclusion.
        counter: the health counter, 24 bits.
        misses: equal readings in a row.
        syndrome: from the health buffer, a HealthSyndrome's name or a number.
        extended: its details.
        firmware, hardware: versions that the buffer tells.
        time: when the fault was reported (device seconds).
        assert_var: for who knows the firmware.
        quarantined: commands that timed out and have not completed.
    """

    verdict: Verdict
    counter: int
    misses: int
    syndrome: str
    extended: int
    firmware: int
    hardware: int
    time: int
    assert_var: tuple[int, ...]
    quarantined: int

    def __str__(self) -> str:
        text = f"{self.verdict.value}; counter {self.counter:#x}, {self.misses} misses, syndrome {self.syndrome}"
        if self.quarantined:
            text += f", {self.quarantined} commands in quarantine"
        return text


class HealthWatch:
    """Looks at a function from time to time.

    Args:
        driver: of the function.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._last: int | None = None
        self._misses = 0

    def look(self) -> HealthReport:
        """Read once, and judge by this reading and those before it."""
        driver = self._driver
        segment = driver.segment
        counter = segment.read("health_counter")
        self._misses = self._misses + 1 if counter == self._last else 0
        self._last = counter
        buffer = segment.health_buffer()
        quarantined = driver.channel.recover() if driver.has_channel else 0
        return HealthReport(
            verdict=self._judge(bool(buffer.rfr) and bool(buffer.synd), buffer.synd),
            counter=counter,
            misses=self._misses,
            syndrome=_name(buffer.synd),
            extended=buffer.ext_synd,
            firmware=buffer.fw_version,
            hardware=buffer.hw_id,
            time=buffer.time,
            assert_var=tuple(buffer.assert_var),
            quarantined=quarantined,
        )

    def observe(self, times: int = MISSES + 1) -> HealthReport:
        """Look several times, :data:`INTERVAL` apart, until the verdict needs a recovery."""
        report = self.look()
        for _ in range(times - 1):
            if report.verdict.needs_recovery:
                break
            self._driver.engine.wait(lambda: False, INTERVAL)
            report = self.look()
        return report

    def _judge(self, asks_for_reset: bool, syndrome: int) -> Verdict:
        if not self._driver.pci.present:
            return Verdict.GONE
        if asks_for_reset:
            return Verdict.DEAD
        if self._driver.has_channel and self._driver.segment.nic_interface != NicInterface.FULL_DRIVER:
            return Verdict.DISABLED
        if self._misses >= MISSES:
            return Verdict.STUCK
        if self._misses:
            return Verdict.SUSPECT
        return Verdict.UNWELL if syndrome else Verdict.ALIVE


def _name(syndrome: int) -> str:
    try:
        return HealthSyndrome(syndrome).name
    except ValueError:
        return f"{syndrome:#x}"
