"""Framing: a stream of bytes and descriptors taken apart into messages.

To which message does a descriptor belong? The kernel never joins bytes behind a descriptor with the bytes that carry
it: a `recvmsg` ends with the piece (one `sendmsg` of the peer) that brought descriptors, and hands them out with the
first byte of that piece. So descriptors belong to the message that holds the *last* byte of the chunk they came with,
however much the chunk holds before. That lets one system call read a burst of messages. It supposes that a peer
puts nothing behind a message with descriptors into the same `sendmsg`, as every known client does.
"""

from __future__ import annotations

import array
import errno
import os
import socket
from collections import deque

from softhca.vfio_user.protocol import FLAG_ERROR, FLAG_REPLY, MAX_FDS, MAX_MESSAGE, Header, ProtocolError

CHUNK = 64 << 10
"""Bytes asked for by one system call."""
_CONTROL = socket.CMSG_SPACE(MAX_FDS * array.array("i").itemsize)
_FLAGS = socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
_HEADER = Header.layout
_HEADER_SIZE = Header.layout.size
_NO_FDS: list[int] = []

Message = tuple[int, int, int, bytes, list[int]]
"""Id, command, flags, body and descriptors (which the receiver has to close)."""


def close_all(fds: list[int]) -> None:
    """Close descriptors and empty the list."""
    while fds:
        os.close(fds.pop())


class Connection:
    """One client's socket. It owns the socket and the descriptors that no message has taken yet."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        sock.setblocking(False)
        self._buffer = b""
        self._start = 0
        self._position = 0
        """Position in the stream of the buffer's first byte."""
        self._fds: deque[tuple[int, list[int]]] = deque()
        """Descriptors, each group with the stream position of the last byte of its chunk."""
        self._out = bytearray()

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._socket.fileno()

    @property
    def congested(self) -> bool:
        """Whether the peer has not taken a reply yet; no further message should be answered until it has."""
        return bool(self._out)

    def fill(self) -> bool:
        """Read what is there, at most :data:`CHUNK` bytes; tell whether the peer is still there.

        Raises:
            ProtocolError: more descriptors than one message may carry.
        """
        try:
            data, control, flags, _ = self._socket.recvmsg(CHUNK, _CONTROL, _FLAGS)
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        if not data:
            return False
        if self._start == len(self._buffer):
            self._position += self._start
            self._buffer = data
        else:
            self._position += self._start
            self._buffer = self._buffer[self._start :] + data
        self._start = 0
        if control or flags:
            self._keep(control, flags)
        return True

    def _keep(self, control: list[tuple[int, int, bytes]], flags: int) -> None:
        fds = array.array("i")
        for level, kind, data in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
        if fds:
            self._fds.append((self._position + len(self._buffer) - 1, list(fds)))
        if flags & socket.MSG_CTRUNC or sum(len(group) for _, group in self._fds) > MAX_FDS:
            raise ProtocolError(errno.EMFILE, f"more descriptors than the {MAX_FDS} of one message, or than free")

    def unread(self) -> tuple[bytes, int]:
        """What was read, and where in it the next message begins; nothing while descriptors have to be handed out."""
        return (b"", 0) if self._fds else (self._buffer, self._start)

    def skip(self, buffer: bytes, end: int) -> None:
        """Messages of `buffer` up to `end` (from :meth:`unread`) were taken."""
        if buffer is self._buffer:
            self._start = end

    def next_message(self) -> Message | None:
        """Take the next complete message, or None.

        Raises:
            ProtocolError: a size that no message has; the stream cannot be followed any further.
        """
        start = self._start
        available = len(self._buffer) - start
        if available < _HEADER_SIZE:
            return None
        number, command, size, flags, _ = _HEADER.unpack_from(self._buffer, start)
        if size > available or size < _HEADER_SIZE:
            if _HEADER_SIZE <= size <= MAX_MESSAGE:
                return None
            self.reply_error(number, command, errno.EMSGSIZE)
            raise ProtocolError(
                errno.EMSGSIZE,
                f"message {number} (command {command}): size {size}, allowed {_HEADER_SIZE} to {MAX_MESSAGE}",
            )
        end = self._start = start + size
        fds = self._take(self._position + end) if self._fds else _NO_FDS
        return number, command, flags, self._buffer[start + _HEADER_SIZE : end], fds

    def _take(self, end: int) -> list[int]:
        taken: list[int] = []
        while self._fds and self._fds[0][0] < end:
            taken += self._fds.popleft()[1]
        return taken

    def reply(self, number: int, command: int, body: bytes = b"") -> None:
        """Answer message `number`.

        Raises:
            ConnectionError: the peer is gone.
        """
        self._send(_HEADER.pack(number, command, _HEADER_SIZE + len(body), FLAG_REPLY, 0) + body)

    def reply_error(self, number: int, command: int, error: int) -> None:
        """Answer message `number` with an errno.

        Raises:
            ConnectionError: the peer is gone.
        """
        self._send(_HEADER.pack(number, command, _HEADER_SIZE, FLAG_REPLY | FLAG_ERROR, error))

    def _send(self, data: bytes) -> None:
        if self._socket.fileno() < 0:
            raise ConnectionAbortedError("the connection was closed while its message was answered")
        if not self._out:
            try:
                sent = self._socket.send(data)
            except BlockingIOError:
                sent = 0
            if sent == len(data):
                return
            data = data[sent:]
        self._out += data

    def flush(self) -> bool:
        """Send what waits, as far as the peer takes it; always True, as for :meth:`fill`.

        Raises:
            ConnectionError: the peer is gone.
        """
        while self._out:
            try:
                sent = self._socket.send(self._out)
            except BlockingIOError:
                return True
            del self._out[:sent]
        return True

    def close(self) -> None:
        """Close the socket and every descriptor that nobody took; no message comes any more."""
        self._socket.close()
        self._buffer, self._start = b"", 0
        while self._fds:
            close_all(self._fds.popleft()[1])
