"""What a message costs: posted writes and reads through the server, from another process."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import time
from pathlib import Path

from softhca.bus import Engine
from softhca.bus.config_space import Identity
from softhca.bus.pci_function import PciFunction
from softhca.bus.protocol import Reset
from softhca.vfio_user import Loop, Server
from softhca.vfio_user.protocol import FLAG_NO_REPLY, Command, Header, RegionAccess, Version


class _Counter(PciFunction):
    """A device that counts its doorbells."""

    def __init__(self) -> None:
        self.writes = 0
        super().__init__(
            Engine(),
            Identity(0x15B3, 0x101B, 0x020700),
            {0: 1 << 20},
            vectors=1,
            msix_table=0x2000,
            msix_pending=0x3000,
        )

    def on_reset(self, kind: Reset) -> None:
        self.writes = 0

    def bar_read(self, bar: int, offset: int, size: int) -> bytes:
        return bytes(size)

    def bar_write(self, bar: int, offset: int, data: bytes | memoryview) -> None:
        self.writes += 1


def _message(command: Command, body: bytes, flags: int = 0) -> bytes:
    return Header(1, command, 16 + len(body), flags, 0).pack() + body


_VERSION = _message(Command.VERSION, Version(0, 0).pack())
_WRITE = _message(Command.REGION_WRITE, RegionAccess(0x10800, 0, 8).pack() + bytes(8), FLAG_NO_REPLY)
_READ = _message(Command.REGION_READ, RegionAccess(0, 0, 4).pack())


def _client(path: Path, count: int, *, reads: bool) -> None:
    """The other process: one system call a message, as a VMM does it."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(os.fspath(path))
        sock.sendall(_VERSION)
        sock.recv(4096)
        for _ in range(count):
            sock.sendall(_READ if reads else _WRITE)
            if reads:
                sock.recv(64)
        sock.sendall(_READ)
        sock.recv(64)


def _measure(count: int, *, reads: bool) -> tuple[float, float]:
    """Messages a second, and the server's processor time for one in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        loop, device = Loop(), _Counter()
        server = Server(loop, device, Path(folder) / "s")
        child = os.fork()
        if child == 0:
            try:
                _client(server.path, count, reads=reads)
            finally:
                os._exit(0)
        while not server.connected:
            loop.run_once()
        start, used = time.perf_counter(), time.process_time()
        done = 0
        while server.connected:
            loop.run_once()
            done = max(done, device.writes)
        elapsed, used = time.perf_counter() - start, time.process_time() - used
        server.close()
        loop.close()
        os.waitpid(child, 0)
    if not reads and done != count:
        raise RuntimeError(f"{done} of {count} writes arrived")
    return count / elapsed, used / count


def posted_writes_per_second(count: int = 200_000) -> float:
    """Posted 8-byte BAR writes a second, from the first to the last, sent one by one."""
    return _measure(count, reads=False)[0]


def reads_per_second(count: int = 20_000) -> float:
    """4-byte BAR reads a second, each waiting for the one before."""
    return _measure(count, reads=True)[0]


def main() -> None:
    """Print both."""
    for name, reads, count in (("posted writes", False, 200_000), ("reads", True, 20_000)):
        rate, cost = _measure(count, reads=reads)
        sys.stdout.write(f"{name}: {rate:,.0f} a second, {cost * 1e6:.2f} us of the server's time each\n")


if __name__ == "__main__":
    main()
