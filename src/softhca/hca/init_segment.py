"""The initialization segment: the registers at the start of BAR0, with what may be read and written (E1-E4, C4)."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Protocol

from softhca.hca.flash import Image
from softhca.hca.health import Health
from softhca.prm.init_segment import HealthBuffer, InitialSeg, NicInterface

SEGMENT_SIZE = 0x2000
"""Bytes of BAR0 that belong to the segment; what is not a register there reads as zero."""

QUEUE_HIGH = InitialSeg.FIELDS["cmdq_phy_addr_63_32"].word
QUEUE_LOW = InitialSeg.FIELDS["cmdq_phy_addr_31_12"].word
DOORBELL = InitialSeg.FIELDS["command_doorbell_vector"].word
_INITIALIZING = InitialSeg.FIELDS["initializing"]
HEALTH_BUFFER = InitialSeg.FIELDS["health_buffer"].offset
_HEALTH_END = HEALTH_BUFFER + HealthBuffer.SIZE
_TIMER = InitialSeg.FIELDS["internal_timer_h"].word
CLEAR_INT = InitialSeg.FIELDS["clear_int"].word
_HEALTH_COUNTER = InitialSeg.FIELDS["health_counter"].word
_DYNAMIC_END = _HEALTH_COUNTER + 4

_WORD = Struct(">I")
_TIMER_WORDS = Struct(">Q")
_WORD_MASK = 0xFFFF_FFFF
_ADDRESS_BITS = InitialSeg.FIELDS["cmdq_phy_addr_31_12"].mask
_NIC_SHIFT, _NIC_MASK = 8, 0x7
FULL_DRIVER_AND_DISABLED = 0b011
"""nic_interface_supported: a bit for each of full driver, disabled, no DRAM."""


FW_RESET_SUPPORTED = 0x40
"""0x1FC [30], in its first byte: the host may reset the firmware by nic_interface; Linux does so when the health
buffer asks for a reset."""
SW_RESET = 7
"""Value of nic_interface that resets the whole card; the manual's field is three bits wide, Linux's layout has two."""
INTERFACES = (NicInterface.FULL_DRIVER, NicInterface.DISABLED, SW_RESET)
"""What may be written to nic_interface."""


_MOST_TIMEOUT = 1 << 20
"""Of cmd_exec_to and cmd_q_init_to: the value has 20 bits, and its unit is the millisecond while [31:29] are zero."""


class InitializingState(IntEnum):
    """Why `initializing` is 1 (0x1FC [19:16])."""

    NONE = 0
    ABORTED = 3
    """The firmware did not load; it will not come up by waiting."""


class Card(Protocol):
    """What the registers act on."""

    @property
    def queue_locked(self) -> bool:
        """Whether the command queue's address must not change now (E2)."""
        ...

    def ticks(self) -> int:
        """The internal timer."""
        ...

    def queue_placed(self, address: int) -> None:
        """The command queue lies at this IOVA."""
        ...

    def interface_set(self, interface: int) -> None:
        """nic_interface was written with another value than it had."""
        ...

    def command_doorbell(self, vector: int) -> None:
        """Slots were submitted."""
        ...


class InitSegment:
    """The register file.

    Attributes:
        refused: writes that changed nothing: the address of a queue in use, an interface that does not exist.
    """

    def __init__(self, card: Card) -> None:
        self._card = card
        self._image = bytearray(InitialSeg.SIZE)
        self._view = InitialSeg(self._image)
        self._health: Health | None = None
        self._high = 0
        self._timeouts = (0, 0)
        self.refused = 0

    def use_timeouts(self, command: int, start: int) -> None:
        """Show how long a host has to wait, now and after each start of the firmware.

        Args:
            command: milliseconds for a command (cmd_exec_to), below 2**20; 0: the host's own figure.
            start: milliseconds for the firmware's start (cmd_q_init_to), below 2**20. Linux takes neither this nor
                `command` nor DTOR into account while it is 0.

        Raises:
            ValueError: one is outside its range.
        """
        for name, value in (("command", command), ("start", start)):
            if not 0 <= value < _MOST_TIMEOUT:
                raise ValueError(f"timeout {name}: {value} ms, allowed is 0 to {_MOST_TIMEOUT - 1}")
        self._timeouts = (command, start)
        self._view.cmd_exec_to, self._view.cmd_q_init_to = self._timeouts

    @property
    def view(self) -> InitialSeg:
        """The registers by name."""
        return self._view

    def use_health(self, health: Health) -> None:
        """Show this health in the registers."""
        self._health = health

    def reset(self, image: Image | None) -> None:
        """Values after a start with this firmware, or without any (then `initializing` stays 1, C1).

        The health buffer is not touched.
        """
        self._image[:HEALTH_BUFFER] = bytes(HEALTH_BUFFER)
        self._high = 0
        view = self._view
        if image is None:
            _WORD.pack_into(self._image, _INITIALIZING.word, _INITIALIZING.mask | InitializingState.ABORTED << 16)
            return
        view.fw_rev_major = image.major
        view.fw_rev_minor = image.minor
        view.fw_rev_subminor = image.subminor
        view.cmd_interface_rev = image.command_interface
        view.log_cmdq_size = image.log_size
        view.log_cmdq_stride = image.log_stride
        view.nic_interface_supported = FULL_DRIVER_AND_DISABLED
        self._image[_INITIALIZING.word] |= FW_RESET_SUPPORTED
        view.cmd_exec_to, view.cmd_q_init_to = self._timeouts

    def hold(self) -> None:
        """The firmware of a VF waits for its PF: `initializing` is 1, and who drove it sees a disabled interface."""
        self._image[:HEALTH_BUFFER] = bytes(HEALTH_BUFFER)
        self._high = 0
        _WORD.pack_into(self._image, _INITIALIZING.word, _INITIALIZING.mask)
        self.show_interface(NicInterface.DISABLED)

    @property
    def nic_interface(self) -> int:
        """The present value of nic_interface."""
        return self._word(QUEUE_LOW) >> _NIC_SHIFT & _NIC_MASK

    @property
    def queue_address(self) -> int:
        """The IOVA of the command queue as the registers have it."""
        return self._high << 32 | self._word(QUEUE_LOW) & _ADDRESS_BITS

    def show_interface(self, interface: int) -> None:
        """Let nic_interface read as this; the address bits stay."""
        low = self._word(QUEUE_LOW) & ~(_NIC_MASK << _NIC_SHIFT)
        _WORD.pack_into(self._image, QUEUE_LOW, low | interface << _NIC_SHIFT)

    def _word(self, offset: int) -> int:
        return int.from_bytes(self._image[offset : offset + 4], "big")

    def read(self, offset: int, size: int) -> bytes:
        """Read registers; any offset and size inside the segment. Write-only ones read as zero.

        An 8-byte read of the timer is not torn (E4).
        """
        if offset < _DYNAMIC_END and offset + size > _TIMER:
            _TIMER_WORDS.pack_into(self._image, _TIMER, self._card.ticks() & 0xFFFF_FFFF_FFFF_FFFF)
            if self._health is not None:
                word = self._health.syndrome << 24 | self._health.counter
                _WORD.pack_into(self._image, _HEALTH_COUNTER, word)
        return bytes(self._image[offset : offset + size])

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Write registers; bytes that belong to read-only ones are ignored. A wide write takes the words in order."""
        if offset == DOORBELL and len(data) == 4:
            self._card.command_doorbell(int.from_bytes(data, "big"))
            return
        for register, act in (
            (QUEUE_HIGH, self._write_high),
            (QUEUE_LOW, self._write_low),
            (DOORBELL, self._ring),
            (CLEAR_INT, self._clear_interrupt),
        ):
            if offset < register + 4 and offset + len(data) > register:
                act(*_lanes(register, offset, data))
        first, last = max(offset, HEALTH_BUFFER), min(offset + len(data), _HEALTH_END)
        if first < last:
            self._image[first:last] = data[first - offset : last - offset]

    def _write_high(self, value: int, mask: int) -> None:
        merged = self._high & ~mask | value
        if self._card.queue_locked and merged != self._high:
            self.refused += 1
            return
        self._high = merged
        _WORD.pack_into(self._image, QUEUE_HIGH, merged)

    def _write_low(self, value: int, mask: int) -> None:
        """The low word completes the address (C4); its nic_interface acts by itself (E2)."""
        old = self._word(QUEUE_LOW)
        merged = old & ~mask | value
        if self._card.queue_locked and (merged ^ old) & _ADDRESS_BITS:
            self.refused += 1
            merged = merged & ~_ADDRESS_BITS | old & _ADDRESS_BITS
        interface = merged >> _NIC_SHIFT & _NIC_MASK
        if interface not in INTERFACES:
            self.refused += 1
            interface = old >> _NIC_SHIFT & _NIC_MASK
        _WORD.pack_into(self._image, QUEUE_LOW, merged & _ADDRESS_BITS | interface << _NIC_SHIFT | old & 0xFF)
        self._card.queue_placed(self.queue_address)
        if interface != old >> _NIC_SHIFT & _NIC_MASK:
            self._card.interface_set(interface)

    def _ring(self, value: int, mask: int) -> None:
        self._card.command_doorbell(value)

    def _clear_interrupt(self, value: int, mask: int) -> None:
        """This function has no legacy interrupt (MSI-X only): there is never one to clear."""


def _lanes(register: int, offset: int, data: bytes | memoryview) -> tuple[int, int]:
    """The part of a write that falls on the word at `register`: its value, and a mask of the bits that are written."""
    value = mask = 0
    for lane in range(4):
        at = register + lane - offset
        value <<= 8
        mask <<= 8
        if 0 <= at < len(data):
            value |= data[at]
            mask |= 0xFF
    return value, mask
