"""Writes packets to a pcapng file (IETF draft-ietf-opsawg-pcapng).

The link type of InfiniBand packets is registered, but Wireshark (4.0 and later) does not hand it to its dissector and
shows bare bytes. It does dissect InfiniBand in records of the Extensible Record Format: choose that to look at packets.
"""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path
from struct import Struct
from types import TracebackType
from typing import BinaryIO, Self


class LinkType(IntEnum):
    """What a record of the file begins with (tcpdump.org, link-layer header types)."""

    INFINIBAND = 247
    """The LRH; the record ends with the VCRC."""
    ERF = 197
    """The header of an ERF record of type InfiniBand, then the same."""


_SECTION_HEADER, _INTERFACE, _PACKET, _STATISTICS = 0x0A0D0D0A, 1, 6, 5
_BYTE_ORDER_MAGIC = 0x1A2B3C4D
_UNKNOWN_LENGTH = -1
_COMMENT, _IF_NAME, _IF_TSRESOL, _APPLICATION, _ISB_IFRECV = 1, 2, 9, 4, 4
_NANOSECONDS = b"\x09"

_BLOCK = Struct("<II")
_TOTAL = Struct("<I")
_SECTION = Struct("<IHHq")
_DESCRIPTION = Struct("<HHI")
_ENHANCED = Struct("<IIIII")
_STATISTICS_BODY = Struct("<III")
_ERF_TIME = Struct("<Q")
_ERF_RECORD = Struct(">BBHHH")
_ERF_TYPE_INFINIBAND, _ERF_VARYING_LENGTH = 21, 0x04
_OPTION = Struct("<HH")


class PcapngWriter:
    """A pcapng file of InfiniBand packets.

    Args:
        path: of the file, which is overwritten.
        limit: packets that are written at most; a file that reached it says so in its last block.
        epoch: nanoseconds since 1970 at which the clock of the time stamps stood at 0.
        link_type: form of the records.

    Raises:
        OSError: the file cannot be written (by every method).
    """

    def __init__(
        self,
        path: str | Path,
        limit: int = 1_000_000,
        epoch: int = 0,
        link_type: LinkType = LinkType.INFINIBAND,
    ) -> None:
        if limit < 0:
            raise ValueError(f"PcapngWriter.limit: {limit} packets given, 0 or more allowed")
        self._file: BinaryIO = Path(path).open("wb")  # noqa: SIM115 - closed by close()
        self._limit = limit
        self._epoch = epoch
        self._link_type = link_type
        self._last = epoch
        self._counts: list[int] = []
        self.written = 0
        body = _SECTION.pack(_BYTE_ORDER_MAGIC, 1, 0, _UNKNOWN_LENGTH) + _options((_APPLICATION, b"softhca"))
        self._block(_SECTION_HEADER, body)

    @property
    def full(self) -> bool:
        """Whether the limit is reached: further packets are not written."""
        return self.written >= self._limit

    @property
    def closed(self) -> bool:
        """Whether the file is closed."""
        return self._file.closed

    def interface(self, name: str) -> int:
        """Describe an interface (a port of a device); returns its number for :meth:`write`."""
        options = _options((_IF_NAME, name.encode()), (_IF_TSRESOL, _NANOSECONDS))
        self._block(_INTERFACE, _DESCRIPTION.pack(self._link_type, 0, 0) + options)
        self._counts.append(0)
        return len(self._counts) - 1

    def write(self, interface: int, packet: bytes, now: int) -> None:
        """Write a packet, unless the limit is reached.

        Args:
            interface: number that :meth:`interface` returned.
            packet: from the LRH to the VCRC.
            now: nanoseconds of the engine's clock.

        Raises:
            ValueError: no such interface.
        """
        if not 0 <= interface < len(self._counts):
            raise ValueError(f"interface: {interface} given, {len(self._counts)} are described")
        if self.full:
            return
        self._last = self._epoch + now
        if self._link_type is LinkType.ERF:
            packet = _erf_header(self._last, len(packet)) + packet
        high, low = divmod(self._last, 1 << 32)
        body = _ENHANCED.pack(interface, high, low, len(packet), len(packet)) + packet
        self._block(_PACKET, body + bytes(-len(packet) % 4))
        self._counts[interface] += 1
        self.written += 1

    def flush(self) -> None:
        """Hand all that was written to the operating system."""
        self._file.flush()

    def close(self) -> None:
        """Write how many packets each interface had and whether the limit was reached, and close the file."""
        if self._file.closed:
            return
        note = f"the limit of {self._limit} packets is reached, later ones are not here".encode()
        try:
            for number, count in enumerate(self._counts):
                options = [(_ISB_IFRECV, count.to_bytes(8, "little"))]
                if self.full:
                    options.append((_COMMENT, note))
                time = divmod(self._last, 1 << 32)
                self._block(_STATISTICS, _STATISTICS_BODY.pack(number, *time) + _options(*options))
        finally:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _block(self, kind: int, body: bytes) -> None:
        total = len(body) + 12
        self._file.write(_BLOCK.pack(kind, total) + body + _TOTAL.pack(total))


def _erf_header(time: int, length: int) -> bytes:
    """ERF record header (Endace, ERF types): time in seconds, 32 bits behind the binary point."""
    seconds, rest = divmod(time, 1_000_000_000)
    stamp = seconds << 32 | (rest << 32) // 1_000_000_000
    record = _ERF_RECORD.pack(_ERF_TYPE_INFINIBAND, _ERF_VARYING_LENGTH, length + 16, 0, length)
    return _ERF_TIME.pack(stamp & (1 << 64) - 1) + record


def _options(*options: tuple[int, bytes]) -> bytes:
    """Options and their end mark."""
    out = b""
    for code, value in options:
        out += _OPTION.pack(code, len(value)) + value + bytes(-len(value) % 4)
    return out + bytes(4)
