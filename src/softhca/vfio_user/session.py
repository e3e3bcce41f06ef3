"""What each message means: one client, from its first message to its last."""

from __future__ import annotations

import errno
import json
import logging
import struct
from collections.abc import Callable
from typing import TypeVar

from softhca.bus.config_space import CONFIG_SIZE
from softhca.bus.dma import DmaSpace
from softhca.bus.protocol import Device, Reset
from softhca.vfio_user.connection import Connection, close_all
from softhca.vfio_user.interrupts import Interrupts
from softhca.vfio_user.memory import GuestMemory
from softhca.vfio_user.protocol import (
    FLAG_NO_REPLY,
    FLAG_TYPE,
    IRQS,
    MAX_DATA,
    MAX_DMA_MAPS,
    MAX_FDS,
    MAX_WRITES,
    PAGE_SIZE,
    REGIONS,
    VERSION_MAJOR,
    VERSION_MINOR,
    Command,
    DeviceFlags,
    DeviceInfo,
    DmaMap,
    DmaUnmap,
    Header,
    Irq,
    IrqFlags,
    IrqInfo,
    IrqSet,
    MultiEntry,
    ProtocolError,
    Region,
    RegionAccess,
    RegionFlags,
    RegionInfo,
    Version,
    WriteMulti,
)

_log = logging.getLogger(__name__)
_ACCESS = RegionAccess.layout
_ACCESS_SIZE = _ACCESS.size
_WRITE = int(Command.REGION_WRITE)
_DOORBELL = struct.Struct(f"{Header.layout.format}{_ACCESS.format[1:]}8s")
"""A REGION_WRITE of 8 bytes, its header included."""
_DOORBELL_SIZE = _DOORBELL.size
_LAST_BAR = 5

_Sized = TypeVar("_Sized", DeviceInfo, RegionInfo, IrqInfo)
Handler = Callable[[bytes], bytes]
FdHandler = Callable[[bytes, list[int]], bytes]


class VmHost:
    """The machine of a client: the Host that the device is put into."""

    def __init__(self, vectors: int) -> None:
        self.memory = GuestMemory()
        self.interrupts = Interrupts(vectors)
        self.interrupt = self.interrupts.fire

    @property
    def dma(self) -> DmaSpace:
        """The client's memory."""
        return self.memory.space


class Session:
    """Answers the messages of one client for one device. The server closes it when the client is gone.

    Args:
        connection: the client; the session owns it.
        device: put into the client's machine now, taken out by :meth:`close`.
    """

    def __init__(self, connection: Connection, device: Device) -> None:
        self._connection = connection
        self._device = device
        self._host = VmHost(device.vectors)
        self._sizes = [device.bars.get(bar, 0) for bar in range(6)] + [0, CONFIG_SIZE, 0]
        self._limit = MAX_DATA
        self._versioned = False
        self.errors = 0
        """Messages refused so far."""
        self._handlers: dict[int, Handler] = {
            Command.VERSION: self._version,
            Command.DMA_UNMAP: self._dma_unmap,
            Command.DEVICE_GET_INFO: self._device_info,
            Command.DEVICE_GET_REGION_INFO: self._region_info,
            Command.DEVICE_GET_IRQ_INFO: self._irq_info,
            Command.REGION_READ: self._read,
            Command.REGION_WRITE: self._write,
            Command.DEVICE_RESET: self._reset,
            Command.REGION_WRITE_MULTI: self._write_multi,
        }
        self._fd_handlers: dict[int, FdHandler] = {
            Command.DMA_MAP: self._dma_map,
            Command.DEVICE_SET_IRQS: self._set_irqs,
        }
        device.attach(self._host)

    @property
    def mappings(self) -> int:
        """Ranges of the client's memory that the device can reach."""
        return len(self._host.dma)

    def close(self) -> None:
        """Take the device out, drop the client's memory and close every descriptor."""
        self._device.detach()
        self._host.memory.clear()
        self._host.interrupts.disable()
        self._connection.close()

    def serve(self) -> None:
        """Answer every complete message that was read, until the client no longer takes replies.

        Raises:
            ProtocolError: the stream cannot be followed any further.
            ConnectionError: the client is gone.
        """
        connection = self._connection
        next_message = connection.next_message
        write = self._write
        while not connection.congested:
            if self._versioned:
                self._take_doorbells()
            message = next_message()
            if message is None:
                return
            number, command, flags, body, fds = message
            if command == _WRITE and flags == FLAG_NO_REPLY and self._versioned and not fds:
                try:
                    write(body)
                except ProtocolError as error:
                    self._refused(number, command, error)
            else:
                self._answer(number, command, flags, body, fds)

    def _take_doorbells(self) -> None:
        """Take the posted 8-byte BAR writes that come next: nearly all that a busy guest sends.

        They mean what they mean to :meth:`_write`, at a third of its cost. Anything else is left to it.
        """
        buffer, at = self._connection.unread()
        last = len(buffer) - _DOORBELL_SIZE
        if at > last:
            return
        take, sizes, write = _DOORBELL.unpack_from, self._sizes, self._device.bar_write
        try:
            while at <= last:
                _, command, size, flags, _, offset, region, count, data = take(buffer, at)
                if command != _WRITE or size != _DOORBELL_SIZE or flags != FLAG_NO_REPLY or count != 8:
                    return
                if region > _LAST_BAR or offset + 8 > sizes[region]:
                    return
                at += _DOORBELL_SIZE
                write(region, offset, data)
        finally:
            self._connection.skip(buffer, at)

    def _answer(self, number: int, command: int, flags: int, body: bytes, fds: list[int]) -> None:
        silent = flags & FLAG_NO_REPLY
        try:
            reply = self._dispatch(command, flags, body, fds)
        except ProtocolError as error:
            self._refused(number, command, error)
            if not silent:
                self._connection.reply_error(number, command, error.errno)
            if not self._versioned:
                raise
        else:
            if not silent:
                self._connection.reply(number, command, reply)
        finally:
            close_all(fds)

    def _dispatch(self, command: int, flags: int, body: bytes, fds: list[int]) -> bytes:
        if flags & FLAG_TYPE:
            raise ProtocolError(errno.EINVAL, f"flags {flags:#x}: only commands (type 0) are expected")
        if not self._versioned and command != Command.VERSION:
            raise ProtocolError(errno.EINVAL, f"command {command}: the first message has to be VERSION")
        with_fds = self._fd_handlers.get(command)
        if with_fds is not None:
            return with_fds(body, fds)
        handler = self._handlers.get(command)
        if handler is None:
            raise ProtocolError(errno.EOPNOTSUPP, f"command {command}: not supported")
        if fds:
            raise ProtocolError(errno.EINVAL, f"command {command}: takes no descriptors, {len(fds)} came")
        return handler(body)

    def _refused(self, number: int, command: int, error: ProtocolError) -> None:
        self.errors += 1
        _log.debug("message %d (command %d) refused: %s", number, command, error)

    def _version(self, body: bytes) -> bytes:
        version = Version.unpack(body)
        if self._versioned:
            raise ProtocolError(errno.EINVAL, "VERSION: it was agreed already")
        if version.major != VERSION_MAJOR:
            raise ProtocolError(errno.EINVAL, f"{version}: the major number has to be {VERSION_MAJOR}")
        self._limit = _client_limit(body[Version.layout.size :])
        self._versioned = True
        capabilities = {
            "max_msg_fds": MAX_FDS,
            "max_data_xfer_size": MAX_DATA,
            "max_dma_maps": MAX_DMA_MAPS,
            "pgsizes": PAGE_SIZE,
            "write_multiple": True,
        }
        text = json.dumps({"capabilities": capabilities}).encode() + b"\0"
        return Version(VERSION_MAJOR, VERSION_MINOR).pack() + text

    def _dma_map(self, body: bytes, fds: list[int]) -> bytes:
        request = DmaMap.unpack(body)
        if len(fds) > 1:
            raise ProtocolError(errno.EINVAL, f"{request}: {len(fds)} descriptors, allowed is one")
        self._host.memory.map(request, fds[0] if fds else None)
        return b""

    def _dma_unmap(self, body: bytes) -> bytes:
        request = DmaUnmap.unpack(body)
        removed = self._host.memory.unmap(request)
        return DmaUnmap(request.argsz, request.flags, request.iova, removed).pack()

    def _device_info(self, body: bytes) -> bytes:
        _check_argsz(DeviceInfo.unpack(body))
        return DeviceInfo(DeviceInfo.layout.size, DeviceFlags.RESET | DeviceFlags.PCI, REGIONS, IRQS).pack()

    def _region_info(self, body: bytes) -> bytes:
        index = _check_argsz(RegionInfo.unpack(body)).index
        if index >= REGIONS:
            raise ProtocolError(errno.EINVAL, f"region {index}: allowed are 0 to {REGIONS - 1}")
        size = self._sizes[index]
        flags = RegionFlags.READ | RegionFlags.WRITE if size else 0
        return RegionInfo(RegionInfo.layout.size, flags, index, 0, size, 0).pack()

    def _irq_info(self, body: bytes) -> bytes:
        index = _check_argsz(IrqInfo.unpack(body)).index
        if index >= IRQS:
            raise ProtocolError(errno.EINVAL, f"interrupt index {index}: allowed are 0 to {IRQS - 1}")
        # Without NORESIZE a VMM adds vectors one by one and never takes all away to add one.
        flags, count = (IrqFlags.EVENTFD, self._device.vectors) if index == Irq.MSIX else (0, 0)
        return IrqInfo(IrqInfo.layout.size, flags, index, count).pack()

    def _set_irqs(self, body: bytes, fds: list[int]) -> bytes:
        request = IrqSet.unpack(body)
        self._host.interrupts.set(request, body[IrqSet.layout.size :], fds)
        return b""

    def _read(self, body: bytes) -> bytes:
        access = RegionAccess.unpack(body)
        self._check_access(access.offset, access.region, access.count)
        if access.count > self._limit:
            raise ProtocolError(errno.EINVAL, f"{access}: count allowed is up to {self._limit}")
        if access.region == Region.CONFIG:
            data = self._device.config_read(access.offset, access.count)
        else:
            data = self._device.bar_read(access.region, access.offset, access.count)
        return body[:_ACCESS_SIZE] + data

    def _write(self, body: bytes) -> bytes:
        if len(body) < _ACCESS_SIZE:
            raise ProtocolError(errno.EINVAL, f"RegionAccess: {len(body)} bytes, {_ACCESS_SIZE} are needed")
        offset, region, count = _ACCESS.unpack_from(body)
        data = body[_ACCESS_SIZE:]
        if len(data) != count:
            raise ProtocolError(errno.EINVAL, f"REGION_WRITE: count {count}, but {len(data)} bytes of data")
        self._store(offset, region, count, data)
        return body[:_ACCESS_SIZE]

    def _store(self, offset: int, region: int, count: int, data: bytes) -> None:
        self._check_access(offset, region, count)
        if region == Region.CONFIG:
            self._device.config_write(offset, data)
        else:
            self._device.bar_write(region, offset, data)

    def _check_access(self, offset: int, region: int, count: int) -> None:
        size = self._sizes[region] if region < REGIONS else 0
        if count == 0 or offset + count > size:
            raise ProtocolError(
                errno.EINVAL, f"access of {count} bytes at {offset:#x} of region {region}, which has {size:#x} bytes"
            )

    def _write_multi(self, body: bytes) -> bytes:
        count = WriteMulti.unpack(body).count
        start, step = WriteMulti.layout.size, MultiEntry.layout.size
        if count > MAX_WRITES or len(body) != start + count * step:
            raise ProtocolError(errno.EINVAL, f"REGION_WRITE_MULTI: count {count} in {len(body)} bytes")
        for at in range(start, len(body), step):
            offset, region, size = _ACCESS.unpack_from(body, at)
            if size > 8:
                raise ProtocolError(errno.EINVAL, f"REGION_WRITE_MULTI: a write of {size} bytes, at most 8")
            data = at + _ACCESS_SIZE
            self._store(offset, region, size, body[data : data + size])
        return WriteMulti(count).pack()

    def _reset(self, body: bytes) -> bytes:
        self._host.interrupts.clear_pending()
        self._device.reset(Reset.COLD)
        return b""


def _client_limit(text: bytes) -> int:
    """The most bytes that the client takes in one reply, from the JSON of its VERSION."""
    text = text.rstrip(b"\0")
    if not text:
        return MAX_DATA
    try:
        offered = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(errno.EINVAL, f"VERSION: capabilities are no JSON: {error}") from error
    capabilities = offered.get("capabilities", {}) if isinstance(offered, dict) else None
    if not isinstance(capabilities, dict):
        raise ProtocolError(errno.EINVAL, "VERSION: capabilities are no JSON object")
    limit = capabilities.get("max_data_xfer_size", MAX_DATA)
    if not isinstance(limit, int) or limit < 1:
        raise ProtocolError(errno.EINVAL, f"VERSION: max_data_xfer_size {limit!r}: a positive number is needed")
    return min(limit, MAX_DATA)


def _check_argsz(request: _Sized) -> _Sized:
    if request.argsz < request.layout.size:
        raise ProtocolError(errno.EINVAL, f"{request}: argsz has to be at least {request.layout.size}")
    return request
