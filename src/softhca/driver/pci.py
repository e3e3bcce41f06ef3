"""The device as a citizen of the PCI bus: who it is, its BARs, Bus Master, MSI-X (source 3.1, C1, C2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from softhca.bus import Device
from softhca.bus.config_space import (
    BAR0,
    CAPABILITIES_POINTER,
    COMMAND,
    COMMAND_BUS_MASTER,
    COMMAND_MEMORY,
    STATUS,
    STATUS_CAPABILITIES,
    MsiX,
    PciExpress,
)
from softhca.driver.errors import NotReady

FIRST_BAR_ADDRESS = 0x40_0000_0000
"""Where the first BAR is put, in the machine's PCI address space."""
NOBODY = 0xFFFF
"""The vendor id that is read when nobody answers."""

FLR_TIME = 100_000_000
"""How long a function may take for a Function Level Reset (ns), by the PCIe specification."""

_DEVICE_CONTROL = 8
_INITIATE_FLR = 0x8000
_BAR_IO = 0x1
_BAR_64 = 0x4
_MSIX_ENABLE = 0x8000
_MSIX_MASKED = 0x4000


@dataclass(frozen=True)
class Enumeration:
    """What enumeration found.

    Attributes:
        vendor, device, class_code: from the header.
        bars: BAR index -> (address given to it, size in bytes).
        vectors: MSI-X vectors.
    """

    vendor: int
    device: int
    class_code: int
    bars: dict[int, tuple[int, int]]
    vectors: int


class PciFunction:
    """Configuration space of a device, as the host's PCI layer uses it.

    Args:
        device: the function.
    """

    def __init__(self, device: Device) -> None:
        self._device = device

    def read(self, offset: int, size: int) -> int:
        """A little-endian value of configuration space."""
        return int.from_bytes(self._device.config_read(offset, size), "little")

    def write(self, offset: int, value: int, size: int) -> None:
        """Write a little-endian value to configuration space."""
        self._device.config_write(offset, value.to_bytes(size, "little"))

    def wait_until_present(self, timeout: int) -> None:
        """Wait until the function answers, which it does after it has loaded its firmware (C1).

        Args:
            timeout: nanoseconds of the device's clock.

        Raises:
            NotReady: nobody answers.
        """
        if not self._device.engine.wait(lambda: self.read(0, 2) != NOBODY, timeout):
            raise NotReady(f"PCI: no function answered within {timeout / 1e9:g} s of reset")

    def enumerate(self) -> Enumeration:
        """Read the header, size each BAR and give it an address."""
        bars: dict[int, tuple[int, int]] = {}
        address = FIRST_BAR_ADDRESS
        for index, size in self._sized_bars():
            address = (address + size - 1) & ~(size - 1)
            self._assign(index, address)
            bars[index] = (address, size)
            address += size
        self._set_command(COMMAND_MEMORY)
        return Enumeration(
            vendor=self.read(0, 2),
            device=self.read(2, 2),
            class_code=self.read(9, 3),
            bars=bars,
            vectors=self._msix_vectors(),
        )

    def _sized_bars(self) -> Iterator[tuple[int, int]]:
        """Write ones, read back which bits stick: the lowest that does is the size. Only 64-bit memory BARs count."""
        index = 0
        while index < 6:
            at = BAR0 + 4 * index
            kind = self.read(at, 4)
            if kind & _BAR_IO or not kind & _BAR_64:
                index += 1
                continue
            self.write(at, 0xFFFF_FFFF, 4)
            self.write(at + 4, 0xFFFF_FFFF, 4)
            sticking = (self.read(at + 4, 4) << 32 | self.read(at, 4)) & ~0xF
            if sticking:
                yield index, sticking & -sticking
            index += 2

    def _assign(self, index: int, address: int) -> None:
        self.write(BAR0 + 4 * index, address & 0xFFFF_FFFF, 4)
        self.write(BAR0 + 4 * index + 4, address >> 32, 4)

    def enable_bus_master(self) -> None:
        """Let the device start transactions; before this it does no DMA and raises no interrupt (C2)."""
        self._set_command(COMMAND_BUS_MASTER)

    def disable_bus_master(self) -> None:
        """From now on the device can start no transaction."""
        self.write(COMMAND, self.read(COMMAND, 2) & ~COMMAND_BUS_MASTER, 2)

    @property
    def present(self) -> bool:
        """Whether a function answers in configuration space at all."""
        return self.read(0, 2) != NOBODY

    def reset(self, timeout: int) -> None:
        """Function Level Reset through the PCIe capability: afterwards the device accesses nothing (F1, F7).

        Args:
            timeout: nanoseconds of the device's clock until the function must answer again.

        Raises:
            NotReady: it has no PCIe capability, or does not answer.
        """
        at = self.capabilities().get(PciExpress.id)
        if at is None:
            raise NotReady("PCI: the function has no PCIe capability, and so no way to be reset")
        self.write(at + _DEVICE_CONTROL, self.read(at + _DEVICE_CONTROL, 2) | _INITIATE_FLR, 2)
        self._device.engine.wait(lambda: False, FLR_TIME)
        self.wait_until_present(timeout)

    def enable_msix(self) -> None:
        """Turn MSI-X on, unmasked. Where a vector leads is the machine's matter."""
        at = self._msix()
        if at is not None:
            self.write(at + 2, self.read(at + 2, 2) & ~_MSIX_MASKED | _MSIX_ENABLE, 2)

    def disable_msix(self) -> None:
        """Turn MSI-X off."""
        at = self._msix()
        if at is not None:
            self.write(at + 2, self.read(at + 2, 2) & ~_MSIX_ENABLE, 2)

    def capabilities(self) -> dict[int, int]:
        """Capability id -> offset. The list is bounded by the room that it can take."""
        found: dict[int, int] = {}
        if not self.read(STATUS, 2) & STATUS_CAPABILITIES:
            return found
        at = self.read(CAPABILITIES_POINTER, 1) & ~3
        while at and len(found) < 48:
            found.setdefault(self.read(at, 1), at)
            at = self.read(at + 1, 1) & ~3
        return found

    def _set_command(self, bits: int) -> None:
        self.write(COMMAND, self.read(COMMAND, 2) | bits, 2)

    def _msix(self) -> int | None:
        return self.capabilities().get(MsiX.id)

    def _msix_vectors(self) -> int:
        at = self._msix()
        return 0 if at is None else (self.read(at + 2, 2) & 0x7FF) + 1
