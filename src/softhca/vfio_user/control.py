"""The control socket: requests and answers as lines of JSON, beside the served devices.

A request is ``{"id": 1, "method": "summary", "params": {}}`` (`params` may be left out); its answer is
``{"id": 1, "result": ...}`` or ``{"id": 1, "error": {"code": "...", "message": "..."}}``. Codes: `parse` (no JSON),
`request` (no such request object), `method` (no such method), `params` (refused by the method), `line` (too long; the
connection is closed after it).
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

from softhca.vfio_user.listener import Listener
from softhca.vfio_user.loop import Loop

MAX_LINE = 64 << 10
"""Most bytes of a request, its newline included."""
MAX_CLIENTS = 16
_CHUNK = 16 << 10

Method = Callable[[Mapping[str, object]], object]
"""Takes `params`, returns what JSON can hold; raises :class:`ControlError` for parameters that it refuses."""


class ControlError(Exception):
    """A request that is refused.

    Attributes:
        code: a word for programs.
    """

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


class Control:
    """Answers control requests on a UNIX socket, for several clients at a time.

    Args:
        loop: serves the socket.
        path: of the socket.

    Raises:
        ValueError, OSError: see :class:`Listener`.
    """

    def __init__(self, loop: Loop, path: str | Path) -> None:
        self._loop = loop
        self._methods: dict[str, Method] = {"methods": lambda _: sorted(self._methods)}
        self._clients: set[_Client] = set()
        self._listener = Listener(path)
        loop.add_reader(self._listener, self._accept)
        self._closed = False

    def register(self, name: str, method: Method) -> None:
        """Add a method.

        Raises:
            ValueError: there is one of that name.
        """
        if name in self._methods:
            raise ValueError(f"control method {name!r}: registered already")
        self._methods[name] = method

    def answer(self, line: bytes) -> bytes:
        """The line that answers a request line."""
        number: object = None
        try:
            request = _parse(line)
            number = request.get("id")
            answer = {"id": number, "result": self._call(request)}
        except ControlError as error:
            answer = {"id": number, "error": {"code": error.code, "message": str(error)}}
        return json.dumps(answer).encode() + b"\n"

    def _call(self, request: Mapping[str, object]) -> object:
        name, params = request.get("method"), request.get("params", {})
        if not isinstance(name, str) or not isinstance(params, dict):
            raise ControlError("request", "method has to be a string and params an object")
        method = self._methods.get(name)
        if method is None:
            raise ControlError("method", f"no method {name!r}; there are {', '.join(sorted(self._methods))}")
        return method(params)

    def close(self) -> None:
        """Send the clients away, stop listening and remove the socket's file. May be called again."""
        if self._closed:
            return
        self._closed = True
        for client in list(self._clients):
            client.close()
        self._loop.remove_reader(self._listener)
        self._listener.close()

    def _accept(self) -> None:
        sock = self._listener.accept()
        if sock is None:
            return
        if len(self._clients) >= MAX_CLIENTS:
            sock.close()
            return
        self._clients.add(_Client(self._loop, sock, self.answer, self._clients.discard))


class _Client:
    """One control connection; reads on only while the client takes the answers."""

    def __init__(
        self,
        loop: Loop,
        sock: socket.socket,
        answer: Callable[[bytes], bytes],
        gone: Callable[[_Client], None],
    ) -> None:
        self._loop = loop
        self._socket = sock
        self._answer = answer
        self._gone = gone
        self._in = bytearray()
        self._out = bytearray()
        self._last = False
        sock.setblocking(False)
        loop.add_reader(sock, self._readable)

    def close(self) -> None:
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._gone(self)

    def _readable(self) -> None:
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self.close()
            return
        self._in += data
        self._progress()

    def _progress(self) -> None:
        """Answer line by line; wait for the client when it does not take an answer."""
        while self._flush():
            if self._last:
                self.close()
                return
            line = self._next_line()
            if line is None:
                self._loop.remove_writer(self._socket)
                self._loop.add_reader(self._socket, self._readable)
                return
            self._out += line

    def _next_line(self) -> bytes | None:
        """The answer to the next complete line, or None while there is none."""
        end = self._in.find(b"\n") + 1
        if end > MAX_LINE or (end == 0 and len(self._in) >= MAX_LINE):
            self._last = True
            error = {"code": "line", "message": f"a request is longer than {MAX_LINE} bytes"}
            return json.dumps({"id": None, "error": error}).encode() + b"\n"
        if end == 0:
            return None
        line = bytes(self._in[:end])
        del self._in[:end]
        return self._answer(line)

    def _flush(self) -> bool:
        """Send what waits; tell whether everything is sent and the client is still there."""
        while self._out:
            try:
                sent = self._socket.send(self._out)
            except BlockingIOError:
                self._loop.remove_reader(self._socket)
                self._loop.add_writer(self._socket, self._progress)
                return False
            except ConnectionError:
                self.close()
                return False
            del self._out[:sent]
        return True


def _parse(line: bytes) -> Mapping[str, object]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ControlError("parse", f"no JSON: {error}") from error
    if not isinstance(request, dict):
        raise ControlError("request", "a request has to be an object")
    return request
