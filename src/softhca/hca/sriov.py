"""Single root I/O virtualisation: the capability of the PF, its VFs, and whom a command may name (B7, B11, F3).

A VF is a function with a place on the bus, a command interface, objects and an ICM account of its own. The physical
port, the firmware and the fabric are the card's. Pages of all VFs come from the host of the PF, which is asked for
them, and which may act for a VF by its function id or its vport number: both are its number, from 1 on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from softhca.bus.config_space import ConfigSpace, ExtendedCapability
from softhca.hca.errors import CommandError
from softhca.prm.syndromes import control, ports

if TYPE_CHECKING:
    from softhca.hca.device import VirtualFunction
    from softhca.hca.function import Function

FIRST_VF_OFFSET, VF_STRIDE = 1, 1
"""Routing ids: VF n has that of the PF plus n."""


def _none(number: int) -> VirtualFunction:
    raise ValueError(f"VF {number}: the function has none")


class VirtualFunctions:
    """The VFs of a function.

    Args:
        most: how many it can have.
        make: makes the VF with a number.

    Attributes:
        count: how many are on the bus.
        lent: they are on the bus because softhca serves them as devices of their own, not by the PF's capability: the
            driver of the PF does not know of them, so that they are enabled as soon as it serves page requests.
    """

    def __init__(self, most: int = 0, make: Callable[[int], VirtualFunction] = _none) -> None:
        self.most = most
        self.count = 0
        self.lent = False
        self._make = make
        self._made: dict[int, VirtualFunction] = {}

    def find(self, number: int) -> VirtualFunction | None:
        """A VF by its number, on the bus or not; None: there can be none."""
        if not 1 <= number <= self.most:
            return None
        vf = self._made.get(number)
        if vf is None:
            vf = self._made[number] = self._make(number)
        return vf

    def all(self) -> list[VirtualFunction]:
        """The VFs that anybody has named so far."""
        return list(self._made.values())

    def present(self) -> list[VirtualFunction]:
        """The VFs on the bus, in the order of their numbers."""
        return [self._made[number] for number in range(1, self.count + 1)]

    def appear(self, count: int) -> None:
        """Put the first VFs onto the bus.

        Raises:
            ValueError: there are not so many, or some are there already.
        """
        if self.count or not 1 <= count <= self.most:
            raise ValueError(f"{count} VFs: 1 to {self.most} can be had, {self.count} are there")
        for number in range(1, count + 1):
            vf = self.find(number)
            if vf is not None:
                vf.insert()
        self.count = count

    def lend(self, count: int) -> list[VirtualFunction]:
        """Put VFs onto the bus that do not depend on the PF's capability; they outlive resets of the PF.

        Raises:
            ValueError: as of :meth:`appear`.
        """
        self.appear(count)
        self.lent = True
        return self.present()

    def vanish(self) -> None:
        """VF Enable is off: the VFs are gone from the bus, and out of their machines."""
        if self.lent:
            return
        gone, self.count = self.present(), 0
        for vf in gone:
            vf.vanish()

    def remove(self) -> None:
        """The card is out of its slot, and its VFs with it."""
        self.vanish()
        for vf in self.present():
            vf.pull()

    def come_back(self) -> None:
        """The card has started cold; VFs that are lent are in their slots again."""
        for vf in self.present():
            if vf.pulled:
                vf.insert()

    def end(self, *, forget: bool = False) -> None:
        """The PF ends, and all VFs before it (F3); with `forget` the host of the PF has all their pages again."""
        for vf in self.all():
            vf.halt()
            if forget:
                vf.forget()

    def pages(self) -> int:
        """Pages that the VFs have."""
        return sum(len(vf.function.icm.pages) for vf in self.all())

    def serve(self, serves: bool) -> None:
        """The PF's host takes page requests from now on, or it does not any more."""
        for vf in self.all():
            if not serves:
                vf.function.icm.asked = False  # a request that was not answered has gone with its queue
                vf.commands.refuse()
            else:
                vf.settle_pages()
        if serves and self.lent:
            for vf in self.present():
                if not vf.function.enabled:
                    vf.enable()


class Sriov(ExtendedCapability):
    """The SR-IOV capability (PCI Express base specification, 9.3.3).

    Args:
        vfs: what VF Enable lets appear.
        device_id: of the VFs.
        bar_size: bytes of BAR 0 of each VF.
    """

    id = 0x10
    CONTROL = 0x08
    VF_ENABLE, VF_MEMORY = 0x1, 0x8
    INITIAL_VFS, TOTAL_VFS, NUM_VFS = 0x0C, 0x0E, 0x10
    _OFFSET, _STRIDE, _DEVICE_ID = 0x14, 0x16, 0x1A
    _PAGE_SIZES, _PAGE_SIZE, _BAR0 = 0x1C, 0x20, 0x24
    _END = 0x40
    _SUPPORTED_PAGES = 0x553
    """4, 8, 64, 256 KiB, 1 and 4 MiB: those that every device has to support."""

    def __init__(self, vfs: VirtualFunctions, device_id: int, bar_size: int) -> None:
        image, writable = bytearray(self._END), bytearray(self._END)
        for at, value, size in (
            (self.INITIAL_VFS, vfs.most, 2),
            (self.TOTAL_VFS, vfs.most, 2),
            (self._OFFSET, FIRST_VF_OFFSET, 2),
            (self._STRIDE, VF_STRIDE, 2),
            (self._DEVICE_ID, device_id, 2),
            (self._PAGE_SIZES, self._SUPPORTED_PAGES, 4),
            (self._PAGE_SIZE, 1, 4),
            (self._BAR0, 0xC, 8),  # 64-bit, prefetchable
        ):
            image[at : at + size] = value.to_bytes(size, "little")
        for at, value, size in (
            (self.CONTROL, self.VF_ENABLE | self.VF_MEMORY, 2),
            (self.NUM_VFS, 0xFFFF, 2),
            (self._PAGE_SIZE, self._SUPPORTED_PAGES, 4),
            (self._BAR0, 2**64 - bar_size, 8),
        ):
            writable[at : at + size] = value.to_bytes(size, "little")
        super().__init__(bytes(image[self.HEAD :]), bytes(writable[self.HEAD :]))
        self._vfs = vfs
        self._number = 0

    def written(self, space: ConfigSpace, first: int, last: int) -> None:
        """VFs come and go with VF Enable; meanwhile their number stays, and it is never more than there can be."""
        at = self.offset
        enabled = bool(space.get(at + self.CONTROL, 2) & self.VF_ENABLE)
        number = space.get(at + self.NUM_VFS, 2)
        if (self._vfs.count and enabled) or number > self._vfs.most:
            space.set(at + self.NUM_VFS, self._number, 2)
        else:
            self._number = number
        if enabled and self._number and not self._vfs.count:
            self._vfs.appear(self._number)
        elif not enabled and self._vfs.count:
            self._vfs.vanish()

    def reset(self) -> None:
        """VF Enable is off after each reset of the PF."""
        self._number = 0
        self._vfs.vanish()


def named_function(fn: Function, function_id: int, embedded_cpu: int = 0) -> Function:
    """The function that a command is about: itself (0), or one of its VFs (B7).

    Raises:
        CommandError: it may not act for this one.
    """
    if not embedded_cpu:
        if not function_id:
            return fn
        vf = fn.vfs.find(function_id)
        if vf is not None:
            return vf.function
    raise CommandError(
        control.NO_SUCH_FUNCTION,
        f"function_id {function_id:#x}, embedded_cpu_function {embedded_cpu}: allowed are 0 to {fn.vfs.most}, and 0",
    )


def named_vport(fn: Function, other_vport: int, vport_number: int) -> Function:
    """The function whose vport a command is about: its own, which is also vport 0 by number, or that of a VF.

    Raises:
        CommandError: there is no such vport, or the function does not manage it.
    """
    if not other_vport or not vport_number:
        return fn
    vf = fn.vfs.find(vport_number)
    if vf is None:
        raise CommandError(ports.NO_SUCH_VPORT, f"vport_number {vport_number:#x}, allowed are 0 to {fn.vfs.most}")
    return vf.function
