"""An interactive shell in the guest, on this process's terminal."""

from __future__ import annotations

import os
import shutil
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from softhca.guest.agent import Agent
from softhca.guest.machine import Machine
from softhca.vfio_user.loop import Loop

_FOREVER = 10.0 * 365 * 86400
_END_OF_INPUT = b"\x04"


def interactive_shell(loop: Loop, machine: Machine, agent: Agent, meanwhile: Callable[[], None]) -> int:
    """Run a shell until it ends, and return its exit status. Standard input is a terminal.

    Args:
        loop: moves the bytes.
        machine: the guest.
        agent: the guest's agent.
        meanwhile: called whenever the guest sent something.

    Raises:
        MachineGone: the guest ended.
    """
    columns, rows = shutil.get_terminal_size()
    channel = machine.channels["shell"]
    stdin, stdout = sys.stdin.fileno(), sys.stdout.fileno()

    def forward() -> None:
        data = os.read(stdin, 4096)
        if not data:
            loop.remove_reader(stdin)
        channel.send(data or _END_OF_INPUT)

    def ended() -> bool:
        meanwhile()
        if channel.received:
            _write_all(stdout, bytes(channel.received))
            channel.received.clear()
        state = agent.shell_status()
        if state is not None:
            status.append(state)
        return bool(status)

    status: list[int] = []
    sys.stdout.flush()
    with _raw(stdin):
        agent.start_shell(rows, columns, os.environ.get("TERM", "linux"))
        loop.add_reader(stdin, forward)
        try:
            machine.pump(ended, _FOREVER, "the shell")
        finally:
            loop.remove_reader(stdin)
    return status[0]


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


@contextmanager
def _raw(descriptor: int) -> Iterator[None]:
    """Pass every key on."""
    before = termios.tcgetattr(descriptor)
    tty.setraw(descriptor)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
