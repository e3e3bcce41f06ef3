"""The messages of the vfio-user protocol, version 0.0 (vfio-user specification; values also in linux/vfio.h).

Every number is little-endian. A message is a :class:`Header` and a body; each body is declared once, below, as a
class whose annotations are its fields in order.
"""

from __future__ import annotations

import errno
import struct
from dataclasses import dataclass, fields
from enum import IntEnum, IntFlag
from typing import ClassVar, Self

VERSION_MAJOR = 0
VERSION_MINOR = 0

MAX_DATA = 64 << 10
"""Most bytes that one message reads or writes (`max_data_xfer_size`)."""
MAX_MESSAGE = MAX_DATA + 64
"""Most bytes of a message, header included."""
MAX_FDS = 16
"""Most descriptors that one message may carry (`max_msg_fds`)."""
MAX_DMA_MAPS = 256
"""Most DMA mappings at a time (`max_dma_maps`); each holds a descriptor open."""
PAGE_SIZE = 4096
MAX_WRITES = MAX_DATA // 24
"""Most entries of one REGION_WRITE_MULTI."""

U16 = int
U32 = int
U64 = int
_FORMATS = {"U16": "H", "U32": "I", "U64": "Q"}


class Command(IntEnum):
    """The kind of a message."""

    VERSION = 1
    DMA_MAP = 2
    DMA_UNMAP = 3
    DEVICE_GET_INFO = 4
    DEVICE_GET_REGION_INFO = 5
    DEVICE_GET_REGION_IO_FDS = 6
    DEVICE_GET_IRQ_INFO = 7
    DEVICE_SET_IRQS = 8
    REGION_READ = 9
    REGION_WRITE = 10
    DMA_READ = 11
    DMA_WRITE = 12
    DEVICE_RESET = 13
    REGION_WRITE_MULTI = 15


FLAG_TYPE = 0x0F
FLAG_REPLY = 0x01
FLAG_NO_REPLY = 0x10
FLAG_ERROR = 0x20


class DmaFlags(IntFlag):
    """Rights of a DMA mapping."""

    READ = 1
    WRITE = 2


class UnmapFlags(IntFlag):
    """What a DMA_UNMAP asks for besides."""

    GET_DIRTY_BITMAP = 1
    ALL = 2


class Region(IntEnum):
    """Region indices of a PCI device; 0 to 5 are the BARs."""

    ROM = 6
    CONFIG = 7
    VGA = 8


REGIONS = 9


class Irq(IntEnum):
    """Interrupt indices of a PCI device."""

    INTX = 0
    MSI = 1
    MSIX = 2
    ERR = 3
    REQ = 4


IRQS = 5


class DeviceFlags(IntFlag):
    """What a device is."""

    RESET = 1
    PCI = 2


class RegionFlags(IntFlag):
    """What may be done with a region."""

    READ = 1
    WRITE = 2


class IrqFlags(IntFlag):
    """What may be done with an interrupt index."""

    EVENTFD = 1
    MASKABLE = 2
    AUTOMASKED = 4
    NORESIZE = 8


class IrqSetFlags(IntFlag):
    """What a SET_IRQS carries (one of DATA_*) and wants (one of ACTION_*)."""

    DATA_NONE = 0x01
    DATA_BOOL = 0x02
    DATA_EVENTFD = 0x04
    ACTION_MASK = 0x08
    ACTION_UNMASK = 0x10
    ACTION_TRIGGER = 0x20


IRQ_DATA = int(IrqSetFlags.DATA_NONE | IrqSetFlags.DATA_BOOL | IrqSetFlags.DATA_EVENTFD)
IRQ_ACTION = int(IrqSetFlags.ACTION_MASK | IrqSetFlags.ACTION_UNMASK | IrqSetFlags.ACTION_TRIGGER)


class ProtocolError(Exception):
    """A message that is refused.

    Attributes:
        errno: the error number of the reply.
    """

    def __init__(self, number: int, why: str) -> None:
        super().__init__(f"{why} ({errno.errorcode.get(number, number)})")
        self.errno = number


class Structure:
    """Base of the declarations: packing and unpacking from the annotations U16, U32 and U64."""

    layout: ClassVar[struct.Struct]

    def __init_subclass__(cls) -> None:
        formats = (_FORMATS[str(kind)] for name, kind in cls.__annotations__.items() if name != "layout")
        cls.layout = struct.Struct("<" + "".join(formats))

    def pack(self) -> bytes:
        """Its bytes."""
        return self.layout.pack(*(getattr(self, field.name) for field in fields(self)))  # type: ignore[arg-type]

    @classmethod
    def unpack(cls, body: bytes) -> Self:
        """Take it from the start of `body`.

        Raises:
            ProtocolError: `body` is shorter than the structure.
        """
        if len(body) < cls.layout.size:
            raise ProtocolError(
                errno.EINVAL, f"{cls.__name__}: {len(body)} bytes, at least {cls.layout.size} are needed"
            )
        return cls(*cls.layout.unpack_from(body))


@dataclass(frozen=True)
class Header(Structure):
    """In front of each message; `size` counts the header too, `error` is an errno."""

    id: U16
    command: U16
    size: U32
    flags: U32
    error: U32


@dataclass(frozen=True)
class Version(Structure):
    """VERSION, both ways; a NUL-terminated JSON object of capabilities may follow."""

    major: U16
    minor: U16


@dataclass(frozen=True)
class DmaMap(Structure):
    """DMA_MAP: `size` bytes at `iova` are the bytes at `offset` of the descriptor that comes along, if any."""

    argsz: U32
    flags: U32
    offset: U64
    iova: U64
    size: U64


@dataclass(frozen=True)
class DmaUnmap(Structure):
    """DMA_UNMAP, both ways."""

    argsz: U32
    flags: U32
    iova: U64
    size: U64


@dataclass(frozen=True)
class DeviceInfo(Structure):
    """DEVICE_GET_INFO, both ways."""

    argsz: U32
    flags: U32
    num_regions: U32
    num_irqs: U32


@dataclass(frozen=True)
class RegionInfo(Structure):
    """DEVICE_GET_REGION_INFO, both ways."""

    argsz: U32
    flags: U32
    index: U32
    cap_offset: U32
    size: U64
    offset: U64


@dataclass(frozen=True)
class IrqInfo(Structure):
    """DEVICE_GET_IRQ_INFO, both ways."""

    argsz: U32
    flags: U32
    index: U32
    count: U32


@dataclass(frozen=True)
class IrqSet(Structure):
    """DEVICE_SET_IRQS; for DATA_BOOL a byte for each interrupt follows."""

    argsz: U32
    flags: U32
    index: U32
    start: U32
    count: U32


@dataclass(frozen=True)
class RegionAccess(Structure):
    """REGION_READ and REGION_WRITE, both ways; the data follow."""

    offset: U64
    region: U32
    count: U32


@dataclass(frozen=True)
class WriteMulti(Structure):
    """REGION_WRITE_MULTI; `count` times :class:`MultiEntry` follow."""

    count: U64


@dataclass(frozen=True)
class MultiEntry(Structure):
    """One write of a REGION_WRITE_MULTI: the first `count` bytes of `data` (at most 8)."""

    offset: U64
    region: U32
    count: U32
    data: U64
