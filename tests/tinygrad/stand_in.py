"""What tinygrad's mlx5 driver takes for its PCI device: a card of ours in a machine of ours, and nothing else."""

from __future__ import annotations

import ctypes
from typing import Any

from tinygrad.runtime.support.hcq import MMIOInterface

from softhca.bus import Device
from softhca.bus.local import LocalHost

PUMP = 1_000_000
PAGE = 4096


class BarWindow:
    """Part of a BAR, read and written in words as an MMIO mapping would be.

    Args:
        device: whose BAR.
        bar: which one.
        start: first byte.
        width: bytes of a word.
    """

    def __init__(self, device: Device, bar: int, start: int, width: int) -> None:
        self._device = device
        self._bar = bar
        self._start = start
        self._width = width

    def __getitem__(self, index: int) -> int:
        self._pump()
        data = self._device.bar_read(self._bar, self._start + index * self._width, self._width)
        return int.from_bytes(data, "little")

    def __setitem__(self, index: int, value: int) -> None:
        self._device.bar_write(self._bar, self._start + index * self._width, value.to_bytes(self._width, "little"))
        self._pump()

    def _pump(self) -> None:
        """A real card works while the driver looks at memory; ours works at each access of a register."""
        self._device.engine.wait(lambda: False, PUMP)


class StandInPciDevice:
    """The members of tinygrad's PCIDevice that its mlx5 driver uses.

    Args:
        device: the card; it is put into a machine of its own.
    """

    pcibus = "0000:00:00.0"

    def __init__(self, device: Device) -> None:
        self._device = device
        self.host = LocalHost(32 << 20)
        self.host.plug(device)
        device.config_write(4, b"\x02\x00")  # the kernel has enabled memory space

    def map_bar(self, bar: int, off: int = 0, addr: int = 0, size: int | None = None, fmt: str = "B") -> BarWindow:
        return BarWindow(self._device, bar, off, ctypes.sizeof({"I": ctypes.c_uint32, "Q": ctypes.c_uint64}[fmt]))

    def read_config(self, offset: int, size: int) -> int:
        return int.from_bytes(self._device.config_read(offset, size), "little")

    def write_config(self, offset: int, value: int, size: int) -> None:
        self._device.config_write(offset, value.to_bytes(size, "little"))

    def alloc_sysmem(self, size: int, vaddr: int = 0, contiguous: bool = False) -> tuple[Any, list[int]]:
        """Memory by its CPU address, as tinygrad views it, and the DMA addresses of its pages."""
        iova, view = self.host.allocate(size)
        address = ctypes.addressof(ctypes.c_char.from_buffer(view))
        return MMIOInterface(address, size), list(range(iova, iova + size, PAGE))
