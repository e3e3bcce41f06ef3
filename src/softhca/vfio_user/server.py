"""Serves a device to a virtual machine monitor over a UNIX socket."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from softhca.bus.protocol import Device
from softhca.vfio_user.connection import Connection
from softhca.vfio_user.listener import Listener
from softhca.vfio_user.loop import Loop
from softhca.vfio_user.protocol import ProtocolError
from softhca.vfio_user.scheduling import want_short_slices
from softhca.vfio_user.session import Session

__all__ = ["Loop", "Server"]

_log = logging.getLogger(__name__)


class Server:
    """One device on one socket, for one client at a time.

    Whoever connects while a client is served waits, and is served when that one has gone. With each client the
    device starts cold. The thread that makes it asks the system for short slices (:mod:`.scheduling`).

    Args:
        loop: serves the socket and runs the device's engine.
        device: what is served.
        path: of the socket.
        on_connect, on_disconnect: called when a client has come, and when it has gone and the device is detached.

    Raises:
        ValueError, OSError: see :class:`Listener`.
    """

    def __init__(
        self,
        loop: Loop,
        device: Device,
        path: str | Path,
        *,
        on_connect: Callable[[], None] | None = None,
        on_disconnect: Callable[[], None] | None = None,
    ) -> None:
        self._loop = loop
        self._device = device
        self._on_connect = on_connect
        self._on_disconnect = on_disconnect
        self._listener = Listener(path)
        self._connection: Connection | None = None
        self._session: Session | None = None
        self._closed = False
        self.clients = 0
        """Clients that have come so far."""
        want_short_slices()
        loop.add_engine(device.engine)
        loop.add_reader(self._listener, self._accept)

    @property
    def path(self) -> Path:
        """Where the socket is."""
        return self._listener.path

    @property
    def connected(self) -> bool:
        """Whether a client is there."""
        return self._session is not None

    def summary(self) -> dict[str, object]:
        """What JSON tells of the socket: path, whether a client is there, clients so far, messages refused to it."""
        session = self._session
        return {
            "socket": str(self.path),
            "connected": session is not None,
            "clients": self.clients,
            "mappings": 0 if session is None else session.mappings,
            "refused": 0 if session is None else session.errors,
        }

    def close(self) -> None:
        """Send the client away, stop listening and remove the socket's file. May be called again."""
        if self._closed:
            return
        self._closed = True
        if self._session is None:
            self._loop.remove_reader(self._listener)
        else:
            self._disconnect()
        self._listener.close()

    def _accept(self) -> None:
        sock = self._listener.accept()
        if sock is None:
            return
        self._loop.remove_reader(self._listener)
        self._connection = Connection(sock)
        self._session = Session(self._connection, self._device)
        self.clients += 1
        self._loop.add_reader(self._connection, self._readable)
        if self._on_connect is not None:
            self._on_connect()

    def _disconnect(self) -> None:
        if self._session is None or self._connection is None:
            return
        self._loop.remove_reader(self._connection)
        self._loop.remove_writer(self._connection)
        self._session.close()
        self._session = self._connection = None
        if not self._closed:
            self._loop.add_reader(self._listener, self._accept)
        if self._on_disconnect is not None:
            self._on_disconnect()

    def _readable(self) -> None:
        if self._connection is not None:
            self._serve(self._connection.fill)

    def _writable(self) -> None:
        if self._connection is not None:
            self._serve(self._connection.flush)

    def _serve(self, progress: Callable[[], bool]) -> None:
        """Move bytes, answer messages, and read on only while the client takes the answers."""
        connection, session = self._connection, self._session
        if connection is None or session is None:
            return
        try:
            if not progress():
                self._disconnect()
                return
            session.serve()
        except ConnectionError:
            self._disconnect()
            return
        except ProtocolError as error:
            _log.warning("%s: client sent away: %s", self.path, error)
            self._disconnect()
            return
        if self._session is not session:
            return
        if connection.congested:
            self._loop.remove_reader(connection)
            self._loop.add_writer(connection, self._writable)
        elif progress == connection.flush:
            self._loop.remove_writer(connection)
            self._loop.add_reader(connection, self._readable)
