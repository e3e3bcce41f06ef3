"""UNIX sockets to listen on."""

from __future__ import annotations

import errno
import logging
import os
import socket
import stat
from pathlib import Path

_LONGEST = 107
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_log = logging.getLogger(__name__)


class Listener:
    """A listening UNIX socket that only its owner may connect to, and that leaves no file behind.

    A socket file that nobody listens on any more is replaced.

    Args:
        path: where; at most 107 bytes.
        backlog: clients that may wait to be accepted.

    Raises:
        ValueError: the path is too long for a UNIX socket.
        FileExistsError: something else is there, or another process listens there.
        OSError: the folder does not exist or may not be written.
    """

    def __init__(self, path: str | Path, backlog: int = 8) -> None:
        self.path = Path(path)
        if len(os.fsencode(self.path)) > _LONGEST:
            raise ValueError(f"socket path {self.path}: longer than {_LONGEST} bytes")
        _remove_stale(self.path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            os.fchmod(self._socket.fileno(), 0o600)
            self._socket.bind(os.fspath(self.path))
            self._socket.listen(backlog)
            self._socket.setblocking(False)
            self._inode = self.path.stat().st_ino
        except OSError as error:
            self._socket.close()
            error.filename = os.fspath(self.path)
            raise

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._socket.fileno()

    def accept(self) -> socket.socket | None:
        """The next client, or None when there is none (any more), or no descriptor is free for it."""
        try:
            return self._socket.accept()[0]
        except (BlockingIOError, ConnectionError):
            return None
        except OSError as error:
            if error.errno not in _EXHAUSTED:
                raise
            _log.warning("%s: a client waits: %s", self.path, error.strerror)
            return None

    def close(self) -> None:
        """Stop listening and remove the file, if it is still ours."""
        self._socket.close()
        try:
            if self.path.stat().st_ino == self._inode:
                self.path.unlink()
        except FileNotFoundError:
            return


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise FileExistsError(f"socket path {path}: there is something that is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except BlockingIOError:
            pass
    raise FileExistsError(f"socket path {path}: another process listens there")
