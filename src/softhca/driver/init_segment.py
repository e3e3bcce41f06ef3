"""The initialization segment at BAR0: the registers through which bring-up starts (source 5.2, E1-E4)."""

from __future__ import annotations

from dataclasses import dataclass

from softhca.bus import Device
from softhca.driver.errors import NotReady, UnsupportedDevice
from softhca.driver.memory import BarOffset
from softhca.prm.init_segment import HealthBuffer, InitialSeg, NicInterface

COMMAND_INTERFACE_REV = 5
"""The command interface revision that this driver speaks, as Linux does (C6)."""
SW_RESET = 7
"""Value of nic_interface that resets the card; wider than the manual's field, which Linux writes so too."""
QUEUE_BLOCK = 4096
"""Bytes of the command queue's block (C4)."""


@dataclass(frozen=True)
class Geometry:
    """The command queue's shape: N = 2^log_size slots, 2^log_stride bytes apart (D1)."""

    log_size: int
    log_stride: int

    @property
    def slots(self) -> int:
        """N."""
        return 1 << self.log_size

    @property
    def stride(self) -> int:
        """T, in bytes."""
        return 1 << self.log_stride


class InitSegment:
    """Registers of BAR0, big-endian words.

    Args:
        device: whose BAR.
    """

    def __init__(self, device: Device) -> None:
        self.device = device

    def read_word(self, offset: BarOffset) -> int:
        """A 32-bit register."""
        return int.from_bytes(self.device.bar_read(0, offset, 4), "big")

    def write_word(self, offset: BarOffset, value: int) -> None:
        """Write a 32-bit register."""
        self.device.bar_write(0, offset, value.to_bytes(4, "big"))

    def read(self, name: str) -> int:
        """A field of the segment by its name."""
        field = InitialSeg.FIELDS[name]
        return self.read_word(BarOffset(field.word)) >> (32 - field.bit % 32 - field.width) & (1 << field.width) - 1

    def _offset(self, name: str) -> BarOffset:
        return BarOffset(InitialSeg.FIELDS[name].word)

    @property
    def firmware_version(self) -> str:
        """As "major.minor.subminor"."""
        return f"{self.read('fw_rev_major')}.{self.read('fw_rev_minor')}.{self.read('fw_rev_subminor')}"

    def check_revision(self) -> None:
        """Stop unless the command interface is of the revision that this driver speaks (C6).

        Raises:
            UnsupportedDevice: it is another one.
        """
        revision = self.read("cmd_interface_rev")
        if revision != COMMAND_INTERFACE_REV:
            raise UnsupportedDevice(
                f"init segment: cmd_interface_rev is {revision}, this driver speaks {COMMAND_INTERFACE_REV}"
            )

    def geometry(self) -> Geometry:
        """Slots and stride of the command queue, from the registers (D1).

        Raises:
            UnsupportedDevice: they do not fit a 4 KiB block, or a stride is below the 64 bytes of an entry.
        """
        shape = Geometry(self.read("log_cmdq_size"), self.read("log_cmdq_stride"))
        if shape.slots * shape.stride > QUEUE_BLOCK or shape.stride < 64 or shape.slots > 32:
            raise UnsupportedDevice(
                f"init segment: {shape.slots} command slots of {shape.stride} bytes; at most 32 slots of at least "
                f"64 bytes each fit the {QUEUE_BLOCK}-byte block and the doorbell vector"
            )
        return shape

    def set_command_queue(self, address: int) -> None:
        """Write the queue's DMA address, high word first; the low word also selects the full driver (C4).

        Args:
            address: 4 KiB-aligned.
        """
        self.write_word(self._offset("cmdq_phy_addr_63_32"), address >> 32)
        self.write_word(self._offset("cmdq_phy_addr_31_12"), address & 0xFFFF_F000 | NicInterface.FULL_DRIVER << 8)

    def ring(self, vector: int) -> None:
        """Command doorbell: bit i submits slot i (D7)."""
        self.write_word(self._offset("command_doorbell_vector"), vector)

    def wait_until_initialized(self, timeout: int) -> None:
        """Poll `initializing` until it is 0.

        Args:
            timeout: nanoseconds of the device's clock.

        Raises:
            NotReady: it stays 1; the message says what the health buffer says (F7).
        """
        if not self.device.engine.wait(lambda: self.read("initializing") == 0, timeout):
            word = self.read_word(BarOffset(0x1FC))
            raise NotReady(
                f"init segment: initializing stays 1 for {timeout / 1e9:g} s (initializing_state {word >> 16 & 0xF}, "
                f"health syndrome {self.health_syndrome():#04x})"
            )

    @property
    def nic_interface(self) -> int:
        """Who drives the function; all ones read as 7."""
        return self.read_word(self._offset("cmdq_phy_addr_31_12")) >> 8 & 7

    def set_interface(self, interface: int) -> None:
        """Write nic_interface; the address bits stay (E2)."""
        at = self._offset("cmdq_phy_addr_31_12")
        self.write_word(at, self.read_word(at) & 0xFFFF_F000 | interface << 8)

    def disable_interface(self, interface: int, timeout: int) -> None:
        """Disable or reset by nic_interface, and wait until the device confirms that it accesses nothing (E2, F6).

        Args:
            interface: what is written, NicInterface.DISABLED or :data:`SW_RESET`.
            timeout: nanoseconds of the device's clock.

        Raises:
            NotReady: it is not confirmed.
        """
        self.set_interface(interface)
        if not self.device.engine.wait(lambda: self.nic_interface == NicInterface.DISABLED, timeout):
            raise NotReady(f"init segment: nic_interface is {self.nic_interface}, and does not become DISABLED (1)")

    def health_buffer(self) -> HealthBuffer:
        """A copy of the health buffer; for diagnosis only (E3)."""
        at = InitialSeg.FIELDS["health_buffer"].offset
        words = [self.read_word(BarOffset(at + 4 * index)) for index in range(HealthBuffer.SIZE // 4)]
        return HealthBuffer(b"".join(word.to_bytes(4, "big") for word in words))

    def health_syndrome(self) -> int:
        """What the device says of its own health, 0 when it is well."""
        return self.read("health_syndrome")

    def timer(self) -> int:
        """The internal timer in device ticks, read so that a wrap of the low word cannot tear it (E4)."""
        high = self.read("internal_timer_h")
        while True:
            low = self.read("internal_timer_l")
            again = self.read("internal_timer_h")
            if again == high:
                return high << 32 | low
            high = again

    def nanoseconds(self, ticks: int, device_frequency_khz: int) -> int:
        """Device ticks in nanoseconds, by the frequency that the capabilities report, and by nothing else (E4).

        Raises:
            ValueError: the device reports no frequency.
        """
        if device_frequency_khz <= 0:
            raise ValueError(f"device_frequency_khz is {device_frequency_khz}: ticks of this device mean no time")
        return ticks * 1_000_000 // device_frequency_khz
