"""PCI configuration space: a type 0 header, a list of capabilities, and what may be written.

After the PCI Express base specification. Everything here is little-endian, as configuration space is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

CONFIG_SIZE = 4096
COMMAND = 0x04
COMMAND_MEMORY = 0x0002
COMMAND_BUS_MASTER = 0x0004
COMMAND_INTX_DISABLE = 0x0400
STATUS = 0x06
STATUS_CAPABILITIES = 0x0010
BAR0 = 0x10
CAPABILITIES_POINTER = 0x34
INTERRUPT_LINE = 0x3C
FIRST_CAPABILITY = 0x40
FIRST_EXTENDED = 0x100


@dataclass(frozen=True)
class Identity:
    """Who a PCI function says it is.

    Attributes:
        vendor, device: PCI ids.
        class_code: 24 bits, for instance 0x020700 for an InfiniBand controller.
        revision: 8 bits.
        subsystem_vendor, subsystem: ids of the board.
    """

    vendor: int
    device: int
    class_code: int
    revision: int = 0
    subsystem_vendor: int = 0
    subsystem: int = 0


class Capability:
    """An entry of the capability list: its id, its bytes, and which bits of them software may write."""

    id: int
    HEAD = 2
    """Bytes of id and next pointer."""

    def __init__(self, body: bytes, writable: bytes) -> None:
        """Take the bytes after id and next pointer, and a mask of the same length."""
        if len(body) != len(writable):
            raise ValueError(f"capability {self.id:#x}: {len(body)} bytes, but a mask of {len(writable)}")
        self.body = body
        self.writable = writable
        self.offset = 0
        """Where it lies in configuration space; set when the space is built."""

    @property
    def length(self) -> int:
        """Bytes, id and next pointer included."""
        return self.HEAD + len(self.body)

    def written(self, space: ConfigSpace, first: int, last: int) -> None:
        """Act on a write to bytes `first` to `last` (exclusive) of this capability, counted from its id."""

    def reading(self, space: ConfigSpace, first: int, last: int) -> None:
        """Prepare for a read of bytes `first` to `last` (exclusive) of this capability."""

    def reset(self) -> None:
        """Forget what is not in configuration space."""


class ExtendedCapability(Capability):
    """An entry of the list that begins at 0x100: 16 bits of id, a version, and 12 bits of next pointer."""

    HEAD = 4
    version = 1


class PowerManagement(Capability):
    """Power management, version 3: D0 and D3hot (accepted, without effect)."""

    id = 0x01

    def __init__(self) -> None:
        super().__init__(bytes.fromhex("0300 0800 0000"), bytes.fromhex("0000 0300 0000"))


class PciExpress(Capability):
    """PCI Express endpoint, version 2, with Function Level Reset.

    Args:
        on_flr: called when software sets Initiate Function Level Reset.
    """

    id = 0x10
    _DEVICE_CONTROL = 8
    _INITIATE_FLR = 0x8000

    def __init__(self, on_flr: Callable[[], None]) -> None:
        body = bytearray(0x3A)
        body[0:2] = (0x0002).to_bytes(2, "little")  # endpoint, capability version 2
        body[2:6] = (0x1000_8FE2).to_bytes(4, "little")  # FLR, extended tags, payload 512
        body[6:8] = (0x2910).to_bytes(2, "little")  # relaxed ordering, read request 512
        body[10:14] = (0x0000_0104).to_bytes(4, "little")  # x16, 16 GT/s
        body[16:18] = (0x0104).to_bytes(2, "little")
        body[0x22:0x26] = (0x0001_0012).to_bytes(4, "little")  # completion timeout ranges
        writable = bytearray(len(body))
        writable[6:8] = (0xFFFF).to_bytes(2, "little")
        writable[14:16] = (0x01FB).to_bytes(2, "little")
        writable[0x26:0x28] = (0x041F).to_bytes(2, "little")
        super().__init__(bytes(body), bytes(writable))
        self._on_flr = on_flr

    def written(self, space: ConfigSpace, first: int, last: int) -> None:
        """Start a Function Level Reset when it is asked for."""
        at = self.offset + self._DEVICE_CONTROL
        control = space.get(at, 2)
        if control & self._INITIATE_FLR:
            space.set(at, control & ~self._INITIATE_FLR, 2)  # reads as zero
            self._on_flr()


class MsiX(Capability):
    """MSI-X: a table of vectors and its pending bits in a BAR.

    Args:
        vectors: 1..2048.
        bar, table, pending: where table and pending bits lie (offsets in bytes, 8-byte aligned).
    """

    id = 0x11

    def __init__(self, vectors: int, bar: int, table: int, pending: int) -> None:
        if not 1 <= vectors <= 2048:
            raise ValueError(f"MSI-X: {vectors} vectors, allowed are 1 to 2048")
        body = (vectors - 1).to_bytes(2, "little") + (table | bar).to_bytes(4, "little")
        body += (pending | bar).to_bytes(4, "little")
        super().__init__(body, bytes.fromhex("00c0") + bytes(8))
        self.vectors = vectors


class ConfigSpace:
    """The 4 KiB of a function's configuration space.

    Args:
        identity: ids and class.
        bars: BAR index -> size in bytes, a power of two of at least 4096. Every BAR is 64-bit and prefetchable
            and takes two registers, so that only 0, 2 and 4 are possible.
        capabilities: in list order, the extended ones in a list of their own.

    Raises:
        ValueError: a BAR index or size that does not exist; capabilities that do not fit.
    """

    def __init__(self, identity: Identity, bars: Mapping[int, int], capabilities: list[Capability]) -> None:
        self._bytes = bytearray(CONFIG_SIZE)
        self._writable = bytearray(CONFIG_SIZE)
        self._capabilities = capabilities
        self._header(identity)
        for index, size in bars.items():
            self._bar(index, size)
        self._chain()
        self._cold = bytes(self._bytes)

    def _header(self, identity: Identity) -> None:
        self.set(0x00, identity.vendor, 2)
        self.set(0x02, identity.device, 2)
        self.set(STATUS, STATUS_CAPABILITIES, 2)
        self.set(0x08, identity.revision, 1)
        self.set(0x09, identity.class_code, 3)
        self.set(0x2C, identity.subsystem_vendor, 2)
        self.set(0x2E, identity.subsystem, 2)
        writable = COMMAND_MEMORY | COMMAND_BUS_MASTER | COMMAND_INTX_DISABLE | 0x0140  # parity, SERR
        self._writable[COMMAND : COMMAND + 2] = writable.to_bytes(2, "little")
        self._writable[0x0C] = 0xFF  # cache line size
        self._writable[INTERRUPT_LINE] = 0xFF

    def _bar(self, index: int, size: int) -> None:
        if index not in (0, 2, 4):
            raise ValueError(f"BAR {index}: a 64-bit BAR has index 0, 2 or 4")
        if size < 4096 or size & (size - 1):
            raise ValueError(f"BAR {index}: size {size:#x} is not a power of two of at least 4096")
        at = BAR0 + 4 * index
        self.set(at, 0xC, 4)  # 64-bit, prefetchable
        self._writable[at : at + 8] = (2**64 - size).to_bytes(8, "little")

    def _chain(self) -> None:
        pointer, at = CAPABILITIES_POINTER, FIRST_CAPABILITY
        extended, above = 0, FIRST_EXTENDED
        for capability in self._capabilities:
            if isinstance(capability, ExtendedCapability):
                self._place(capability, above, CONFIG_SIZE)
                self.set(above, capability.version << 16 | capability.id, 4)
                if extended:
                    self.set(extended + 2, above << 4 | self.get(extended + 2, 2), 2)
                extended, above = above, (above + capability.length + 3) & ~3
                continue
            self._place(capability, at, FIRST_EXTENDED)
            self._bytes[pointer] = at
            self._bytes[at] = capability.id
            pointer, at = at + 1, (at + capability.length + 3) & ~3

    def _place(self, capability: Capability, at: int, limit: int) -> None:
        if capability.length > limit - at:
            raise ValueError(f"capability {capability.id:#x}: does not fit before {limit:#x} (at {at:#x})")
        capability.offset = at
        body = slice(at + capability.HEAD, at + capability.length)
        self._bytes[body], self._writable[body] = capability.body, capability.writable

    def get(self, offset: int, size: int) -> int:
        """A little-endian value of `size` bytes, for the device itself."""
        return int.from_bytes(self._bytes[offset : offset + size], "little")

    def set(self, offset: int, value: int, size: int) -> None:
        """Set a value whatever its write mask, for the device itself."""
        self._bytes[offset : offset + size] = value.to_bytes(size, "little")

    def read(self, offset: int, size: int) -> bytes:
        """What the bus reads; bytes outside the space read as 0xFF."""
        for capability, first, last in self._touched(offset, size):
            capability.reading(self, first, last)
        inside = bytes(self._bytes[offset : offset + size]) if 0 <= offset < CONFIG_SIZE else b""
        return inside + b"\xff" * (size - len(inside))

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """What the bus writes: writable bits change, then each touched capability acts."""
        if not 0 <= offset < CONFIG_SIZE:
            return
        data = bytes(data[: CONFIG_SIZE - offset])
        for at, byte in enumerate(data, offset):
            mask = self._writable[at]
            self._bytes[at] = self._bytes[at] & ~mask | byte & mask
        for capability, first, last in self._touched(offset, len(data)):
            capability.written(self, first, last)

    def _touched(self, offset: int, size: int) -> list[tuple[Capability, int, int]]:
        """Capabilities in a range, each with the part of it that is, counted from its id."""
        found = []
        for capability in self._capabilities:
            first, last = offset - capability.offset, offset + size - capability.offset
            if first < capability.length and last > 0:
                found.append((capability, max(0, first), min(last, capability.length)))
        return found

    def reset(self, *, keep_bars: bool) -> None:
        """Back to the values of power on; with `keep_bars` a function-level reset."""
        kept = bytes(self._bytes[BAR0 : BAR0 + 24]), self._bytes[INTERRUPT_LINE]
        self._bytes[:] = self._cold
        for capability in self._capabilities:
            capability.reset()
        if keep_bars:
            self._bytes[BAR0 : BAR0 + 24], self._bytes[INTERRUPT_LINE] = kept

    @property
    def bus_master(self) -> bool:
        """Whether the function may start transactions: DMA and interrupts (C2)."""
        return bool(self._bytes[COMMAND] & COMMAND_BUS_MASTER)

    @property
    def memory_enabled(self) -> bool:
        """Whether the function answers in its BARs."""
        return bool(self._bytes[COMMAND] & COMMAND_MEMORY)
