"""The gateway of the vendor-specific capability: semaphore, spaces, address and data (E7).

Linux uses it for the semaphore of software reset, tools use it for ICMD. Who holds the semaphore has the gateway; an
access by nobody fails, so that two who do not know of each other cannot mix their addresses and data.
"""

from __future__ import annotations

from typing import Protocol

from softhca.bus.config_space import Capability, ConfigSpace
from softhca.prm import vsc

_WORD = 0xFFFF_FFFF
MOST_SEMAPHORES = 64
"""Words of the semaphore space."""


class AddressSpace(Protocol):
    """A space behind the gateway; addresses are multiples of 4."""

    @property
    def size(self) -> int:
        """Bytes, or 0 when it is not told."""
        ...

    def read(self, address: int) -> int | None:
        """A word, or None when there is none."""
        ...

    def write(self, address: int, value: int) -> bool:
        """Write a word; tell whether there is one."""
        ...


class Semaphores:
    """The semaphore space: each word is free (0) or has the ticket of its owner."""

    size = MOST_SEMAPHORES * 4

    def __init__(self) -> None:
        self._owners: dict[int, int] = {}

    def read(self, address: int) -> int | None:
        """The owner's ticket, 0 for nobody's."""
        return self._owners.get(address, 0) if address < self.size else None

    def write(self, address: int, value: int) -> bool:
        """Take a semaphore that is free, or (0) give it back; what another one holds stays."""
        if address >= self.size:
            return False
        if not value:
            self._owners.pop(address, None)
        else:
            self._owners.setdefault(address, value)
        return True

    def reset(self) -> None:
        """All are free."""
        self._owners.clear()


class VendorSpecific(Capability):
    """The capability.

    Args:
        spaces: what is behind it, by number.
    """

    id = 0x09

    def __init__(self, spaces: dict[int, AddressSpace]) -> None:
        body, writable = bytearray(vsc.SIZE - 2), bytearray(vsc.SIZE - 2)
        body[0] = vsc.SIZE
        for register in (vsc.CONTROL, vsc.SEMAPHORE, vsc.ADDRESS, vsc.DATA):
            writable[register - 2 : register + 2] = b"\xff" * 4
        super().__init__(bytes(body), bytes(writable))
        self._spaces = spaces
        self._ticket = 0
        self._owner = 0

    def reset(self) -> None:
        """As after power on; the words in configuration space are reset with it."""
        self._owner = 0

    def reading(self, space: ConfigSpace, first: int, last: int) -> None:
        """Each reading of the counter gives another ticket, so that two readers never have the same."""
        if first < vsc.COUNTER + 4 and last > vsc.COUNTER:
            self._ticket = self._ticket % _WORD + 1
            space.set(self.offset + vsc.COUNTER, self._ticket, 4)

    def written(self, space: ConfigSpace, first: int, last: int) -> None:
        """Act on the registers that a write touched; a register acts when its last byte is written."""
        for register, act in (
            (vsc.SEMAPHORE, self._semaphore),
            (vsc.CONTROL, self._select),
            (vsc.ADDRESS, self._access),
        ):
            if first < register + 4 and last >= register + 4:
                act(space, self.offset + register)

    def _semaphore(self, space: ConfigSpace, at: int) -> None:
        value = space.get(at, 4)
        self._owner = self._owner if value and self._owner else value
        space.set(at, self._owner, 4)

    def _select(self, space: ConfigSpace, at: int) -> None:
        number = space.get(at, 4) & vsc.SPACE_MASK
        behind = self._spaces.get(number)
        status = 0
        if behind is not None:
            status = vsc.STATUS_SUPPORTED | (vsc.SIZE_VALID if behind.size else 0)
            space.set(self.offset + vsc.ADDRESS, behind.size, 4)
        space.set(at, number | status, 4)

    def _access(self, space: ConfigSpace, at: int) -> None:
        """Carry out the access at once, and turn the flag."""
        word = space.get(at, 4)
        address, writing = word & vsc.ADDRESS_MASK, bool(word & vsc.FLAG)
        control = space.get(self.offset + vsc.CONTROL, 4)
        behind = self._spaces.get(control & vsc.SPACE_MASK)
        data = self.offset + vsc.DATA
        done = False
        if self._owner and behind is not None and not address % 4:
            if writing:
                done = behind.write(address, space.get(data, 4))
            else:
                found = behind.read(address)
                done = found is not None
                space.set(data, found or 0, 4)
        space.set(at, address | (0 if writing else vsc.FLAG) | (0 if done else vsc.SYNDROME), 4)
