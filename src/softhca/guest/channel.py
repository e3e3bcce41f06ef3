"""Byte streams between this process and a virtual machine, driven by the one loop that also serves the devices."""

from __future__ import annotations

import json
import socket
from typing import Any

from softhca.guest.errors import LabError
from softhca.vfio_user.loop import Loop

_CHUNK = 1 << 16


class Channel:
    """One end of a socket pair; the other end goes to the virtual machine.

    Args:
        loop: moves the bytes.
        name: for messages.
    """

    def __init__(self, loop: Loop, name: str) -> None:
        self.name = name
        self.received = bytearray()
        """What came and was not taken yet."""
        self.closed = False
        """Whether the other side is gone."""
        self._loop = loop
        self._pending = bytearray()
        self._ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._ours.setblocking(False)
        loop.add_reader(self._ours, self._read)

    def send(self, data: bytes) -> None:
        """Send, or keep for the loop what does not fit now."""
        self._pending += data
        self._write()

    @property
    def idle(self) -> bool:
        """Whether everything was sent."""
        return not self._pending

    def take_line(self) -> str | None:
        """The next whole line without its end, or None."""
        end = self.received.find(b"\n")
        if end < 0:
            return None
        line = bytes(self.received[:end]).decode(errors="replace")
        del self.received[: end + 1]
        return line

    def close(self) -> None:
        """Close both ends."""
        if self._ours.fileno() >= 0:
            self._loop.remove_reader(self._ours)
            self._loop.remove_writer(self._ours)
            self._ours.close()
        self.theirs.close()
        self.closed = True

    def _read(self) -> None:
        try:
            data = self._ours.recv(_CHUNK)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        self._loop.interrupt()
        if data:
            self.received += data
        else:
            self._gone()

    def _write(self) -> None:
        while self._pending and not self.closed:
            try:
                sent = self._ours.send(self._pending[:_CHUNK])
            except BlockingIOError:
                self._loop.add_writer(self._ours, self._write)
                return
            except ConnectionError:
                self._gone()
                return
            del self._pending[:sent]
        if not self.closed:
            self._loop.remove_writer(self._ours)

    def _gone(self) -> None:
        self.closed = True
        self._pending.clear()
        self._loop.remove_reader(self._ours)
        self._loop.remove_writer(self._ours)


class Monitor:
    """QEMU's machine protocol over a channel: requests are sent, answers and events picked up later."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._serial = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        """Events that came and nobody took yet."""
        self.greeted = False
        """Whether QEMU said hello."""

    def request(self, command: str, arguments: dict[str, Any] | None = None) -> int:
        """Send a command; the number to ask for its answer with."""
        self._serial += 1
        message = {"execute": command, "id": self._serial, **({"arguments": arguments} if arguments else {})}
        self._channel.send(json.dumps(message).encode() + b"\n")
        return self._serial

    def poll(self) -> None:
        """Sort what came into answers and events."""
        while (line := self._channel.take_line()) is not None:
            message = json.loads(line)
            if "QMP" in message:
                self.greeted = True
            elif "event" in message:
                self.events.append(message)
            elif "id" in message:
                self._answers[message["id"]] = message

    def answered(self, serial: int) -> bool:
        """Whether the answer to a request is there."""
        self.poll()
        return serial in self._answers

    def answer(self, serial: int) -> Any:
        """Take the answer to a request.

        Raises:
            LabError: QEMU refused the command.
        """
        message = self._answers.pop(serial)
        if "error" in message:
            raise LabError(f"QEMU: {message['error'].get('desc', message['error'])}")
        return message["return"]
