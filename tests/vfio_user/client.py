"""A small vfio-user client that can speak valid and malformed messages."""

from __future__ import annotations

import array
import json
import os
import socket
from pathlib import Path
from typing import NamedTuple

from softhca.vfio_user import Loop
from softhca.vfio_user.protocol import (
    Command,
    DmaMap,
    DmaUnmap,
    Header,
    IrqSet,
    MultiEntry,
    RegionAccess,
    Version,
    WriteMulti,
)

HEADER_SIZE = 16


class Reply(NamedTuple):
    id: int
    command: int
    flags: int
    error: int
    body: bytes


class Closed(Exception):
    """The server closed the connection."""


class Client:
    """Speaks to a server whose loop runs in this thread: each wait pumps it."""

    def __init__(self, loop: Loop, path: Path) -> None:
        self.loop = loop
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(os.fspath(path))
        self.socket.setblocking(False)
        self._buffer = b""
        self._next_id = 1
        self.pump()

    def pump(self, rounds: int = 2) -> None:
        for _ in range(rounds):
            self.loop.run_once(0)

    def send_raw(self, data: bytes, fds: list[int] | None = None) -> None:
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        while data:
            try:
                sent = self.socket.sendmsg([data], control)
            except BlockingIOError:
                self.loop.run_once(0)
                continue
            data, control = data[sent:], []

    def message(self, command: int, body: bytes = b"", *, flags: int = 0, size: int | None = None) -> bytes:
        number, self._next_id = self._next_id, (self._next_id + 1) & 0xFFFF
        length = HEADER_SIZE + len(body) if size is None else size
        return Header(number, command, length, flags, 0).pack() + body

    def send(self, command: int, body: bytes = b"", fds: list[int] | None = None, *, flags: int = 0) -> None:
        self.send_raw(self.message(command, body, flags=flags), fds)

    def receive(self) -> Reply:
        """The next reply.

        Raises:
            Closed: the server closed the connection.
            AssertionError: there is none.
        """
        for _ in range(50):
            if len(self._buffer) >= HEADER_SIZE:
                header = Header.unpack(self._buffer)
                if len(self._buffer) >= header.size:
                    body, self._buffer = self._buffer[HEADER_SIZE : header.size], self._buffer[header.size :]
                    return Reply(header.id, header.command, header.flags, header.error, body)
            self.loop.run_once(0)
            try:
                data = self.socket.recv(1 << 20)
            except BlockingIOError:
                continue
            except ConnectionError as error:
                raise Closed from error
            if not data:
                raise Closed
            self._buffer += data
        raise AssertionError("no reply came")

    def silent(self) -> bool:
        """Whether nothing comes."""
        self.pump(4)
        try:
            data = self.socket.recv(1 << 20)
        except BlockingIOError:
            return not self._buffer
        self._buffer += data
        return False

    def call(self, command: int, body: bytes = b"", fds: list[int] | None = None, *, flags: int = 0) -> Reply:
        self.send(command, body, fds, flags=flags)
        return self.receive()

    def ok(self, command: int, body: bytes = b"", fds: list[int] | None = None) -> bytes:
        reply = self.call(command, body, fds)
        assert (reply.flags, reply.error) == (1, 0), reply
        assert reply.command == command
        return reply.body

    def refused(self, command: int, body: bytes = b"", fds: list[int] | None = None) -> int:
        reply = self.call(command, body, fds)
        assert reply.flags == 0x21, reply
        assert reply.error != 0
        return reply.error

    def negotiate(self, capabilities: dict[str, object] | None = None) -> dict[str, object]:
        offered = {"max_msg_fds": 16, "max_data_xfer_size": 1 << 20, "write_multiple": True}
        text = json.dumps({"capabilities": offered if capabilities is None else capabilities})
        body = self.ok(Command.VERSION, Version(0, 0).pack() + text.encode() + b"\0")
        assert Version.unpack(body) == Version(0, 0)
        assert body.endswith(b"\0")
        answer: dict[str, dict[str, object]] = json.loads(body[4:-1])
        return answer["capabilities"]

    def map(self, iova: int, size: int, fd: int, offset: int = 0, flags: int = 3) -> None:
        assert self.ok(Command.DMA_MAP, DmaMap(32, flags, offset, iova, size).pack(), [fd]) == b""

    def unmap(self, iova: int, size: int) -> DmaUnmap:
        return DmaUnmap.unpack(self.ok(Command.DMA_UNMAP, DmaUnmap(24, 0, iova, size).pack()))

    def read(self, region: int, offset: int, count: int) -> bytes:
        body = self.ok(Command.REGION_READ, RegionAccess(offset, region, count).pack())
        assert RegionAccess.unpack(body) == RegionAccess(offset, region, count)
        return body[16:]

    def write(self, region: int, offset: int, data: bytes) -> None:
        access = RegionAccess(offset, region, len(data)).pack()
        assert self.ok(Command.REGION_WRITE, access + data) == access

    def post(self, region: int, offset: int, data: bytes) -> None:
        self.send(Command.REGION_WRITE, RegionAccess(offset, region, len(data)).pack() + data, flags=0x10)

    def write_multi(self, writes: list[tuple[int, int, bytes]], *, flags: int = 0x10) -> None:
        entries = (
            MultiEntry(offset, region, len(data), int.from_bytes(data, "little")).pack()
            for region, offset, data in writes
        )
        self.send(Command.REGION_WRITE_MULTI, WriteMulti(len(writes)).pack() + b"".join(entries), flags=flags)

    def set_irqs(self, flags: int, start: int, count: int, fds: list[int] | None = None, index: int = 2) -> None:
        assert self.ok(Command.DEVICE_SET_IRQS, IrqSet(20, flags, index, start, count).pack(), fds) == b""

    def close(self) -> None:
        self.socket.close()
        self.pump(3)
