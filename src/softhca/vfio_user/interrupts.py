"""MSI-X vectors delivered through eventfds, as DEVICE_SET_IRQS installs them."""

from __future__ import annotations

import errno
import os

from softhca.vfio_user.protocol import IRQ_ACTION, IRQ_DATA, Irq, IrqSet, IrqSetFlags, ProtocolError

_ONE = (1).to_bytes(8, "little")


class Interrupts:
    """The vectors of one device.

    A vector without an eventfd stays pending and is delivered when one is installed: a VMM installs vectors only when
    the guest unmasks them, and replaces eventfds while interrupts arrive.

    Args:
        vectors: how many the device has.
    """

    def __init__(self, vectors: int) -> None:
        self._vectors = vectors
        self._eventfds: dict[int, int] = {}
        self._pending: set[int] = set()

    def fire(self, vector: int) -> None:
        """Raise a vector.

        Raises:
            ValueError: the device has no such vector.
        """
        eventfd = self._eventfds.get(vector)
        if eventfd is None:
            if not 0 <= vector < self._vectors:
                raise ValueError(f"interrupt vector {vector}: allowed are 0 to {self._vectors - 1}")
            self._pending.add(vector)
            return
        try:
            os.write(eventfd, _ONE)
        except BlockingIOError:
            return  # its counter is full: the client has interrupts enough to see

    def set(self, request: IrqSet, data: bytes, fds: list[int]) -> None:
        """Carry out a DEVICE_SET_IRQS; descriptors that are kept are taken out of `fds`.

        Raises:
            ProtocolError: EINVAL.
        """
        if request.index not in (Irq.MSIX, Irq.ERR) or request.flags & ~(IRQ_DATA | IRQ_ACTION):
            raise ProtocolError(errno.EINVAL, f"{request}: allowed are index MSIX (2) and ERR (3), flags to 0x20")
        vectors = self._vectors if request.index == Irq.MSIX else 0
        if request.start + request.count > vectors:
            raise ProtocolError(errno.EINVAL, f"{request}: the index has {vectors} interrupts")
        if request.flags & IRQ_ACTION != IrqSetFlags.ACTION_TRIGGER:
            raise ProtocolError(errno.EINVAL, f"{request}: the only action possible is TRIGGER (0x20)")
        kind = request.flags & IRQ_DATA
        numbers = range(request.start, request.start + request.count)
        if kind == IrqSetFlags.DATA_EVENTFD:
            self._install(request, numbers, fds)
        elif kind == IrqSetFlags.DATA_NONE:
            if request.count == 0 and request.index == Irq.MSIX:
                self.disable()
            for vector in numbers:
                self.fire(vector)
        elif kind == IrqSetFlags.DATA_BOOL and len(data) >= request.count:
            for vector, wanted in zip(numbers, data, strict=False):
                if wanted:
                    self.fire(vector)
        else:
            raise ProtocolError(errno.EINVAL, f"{request}: one kind of data, and all of it, is needed")

    def _install(self, request: IrqSet, numbers: range, fds: list[int]) -> None:
        if fds and len(fds) != len(numbers):
            raise ProtocolError(errno.EINVAL, f"{request}: {len(fds)} descriptors; allowed are 0 and {len(numbers)}")
        for fd in fds:
            if os.readlink(f"/proc/self/fd/{fd}") != "anon_inode:[eventfd]":
                raise ProtocolError(errno.EINVAL, f"{request}: a descriptor is no eventfd")
        for vector in numbers:
            self._remove(vector)
        for vector in numbers[: len(fds)]:
            fd = fds.pop(0)
            os.set_blocking(fd, False)
            self._eventfds[vector] = fd
            if vector in self._pending:
                self._pending.discard(vector)
                self.fire(vector)

    def _remove(self, vector: int) -> None:
        fd = self._eventfds.pop(vector, None)
        if fd is not None:
            os.close(fd)

    def disable(self) -> None:
        """Take every eventfd away; what is pending stays pending."""
        for vector in list(self._eventfds):
            self._remove(vector)

    def clear_pending(self) -> None:
        """Forget what is pending: the device was reset."""
        self._pending.clear()
