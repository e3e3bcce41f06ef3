"""`softhca serve`: one device for any virtual machine monitor."""

from __future__ import annotations

import json
import shlex
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from softhca.cli import DEFAULT_PROFILE

if TYPE_CHECKING:
    from softhca.hca.device import Hca
    from softhca.vfio_user import Loop

_STOP = (signal.SIGINT, signal.SIGTERM)


def qemu_arguments(path: Path) -> list[str]:
    """What QEMU (10.1 or newer) needs on its command line for the device that is served at `path`."""
    device = {"driver": "vfio-user-pci", "socket": {"path": str(path.absolute()), "type": "unix"}}
    return [
        *("-machine", "q35,memory-backend=mem", "-m", "1G"),
        *("-object", "memory-backend-memfd,id=mem,size=1G,share=on"),
        *("-device", json.dumps(device, separators=(",", ":"))),
    ]


def build_device(profile: str) -> Hca:
    """A device of the named profile, with an engine on the real clock.

    Raises:
        click.BadParameter: there is no such profile.
    """
    from softhca.bus import Engine
    from softhca.hca.device import Hca
    from softhca.hca.profile import load_profile

    try:
        return Hca(Engine(), load_profile(profile))
    except (ValueError, FileNotFoundError) as error:
        raise click.BadParameter(str(error), param_hint="--profile") from error


@contextmanager
def stop_signals(loop: Loop) -> Iterator[list[int]]:
    """A list that SIGINT and SIGTERM append to; they also wake the loop."""
    seen: list[int] = []
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        handlers = {number: signal.signal(number, lambda got, _: seen.append(got)) for number in _STOP}
        wakeup = signal.set_wakeup_fd(writer.fileno())
        loop.add_reader(reader, lambda: _drain(reader))
        try:
            yield seen
        finally:
            loop.remove_reader(reader)
            signal.set_wakeup_fd(wakeup)
            for number, handler in handlers.items():
                signal.signal(number, handler)


def _drain(reader: socket.socket) -> None:
    reader.recv(64)


@click.command()
@click.option(
    "--socket", "path", required=True, type=click.Path(path_type=Path), help="UNIX socket to listen on; it is created."
)
@click.option(
    "--profile",
    default=DEFAULT_PROFILE,
    show_default=True,
    metavar="NAME|FILE.toml",
    help="Which card to be (a name that does not exist lists all).",
)
@click.option("--control", type=click.Path(path_type=Path), help="Second socket: questions, answers in lines of JSON.")
def serve(path: Path, profile: str, control: Path | None) -> None:
    """Serve one card to a virtual machine monitor, over the vfio-user protocol.

    Prints the arguments that QEMU needs, then serves one client after the other until SIGINT or SIGTERM. The card
    starts cold with each client.

    \b
    softhca serve --socket /tmp/hca.sock --control /tmp/hca.ctl
    echo '{"id": 1, "method": "summary"}' | socat - UNIX-CONNECT:/tmp/hca.ctl
    """  # noqa: D301
    from softhca.vfio_user import Loop, Server
    from softhca.vfio_user.control import Control

    device = build_device(profile)
    with ExitStack() as stack:
        loop = stack.enter_context(closing(Loop()))
        stopped = stack.enter_context(stop_signals(loop))
        try:
            server = stack.enter_context(closing(Server(loop, device, path)))
            if control is not None:
                questions = stack.enter_context(closing(Control(loop, control)))
                questions.register("summary", lambda _: {**server.summary(), "device": device.summary()})
        except (OSError, ValueError) as error:
            raise click.ClickException(str(error)) from error
        click.echo(f"{profile} listens at {path}. Start QEMU with:\n\n  {shlex.join(qemu_arguments(path))}\n")
        while not stopped:
            loop.run_once()
    click.echo("Stopped.", err=True)
