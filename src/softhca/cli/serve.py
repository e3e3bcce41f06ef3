"""`softhca serve`: one device for any virtual machine monitor."""

from __future__ import annotations

import json
import shlex
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from softhca.cli import DEFAULT_PROFILE
from softhca.cli.cards import build_cards
from softhca.cli.faults import answer_faults
from softhca.cli.figures import answer_figures
from softhca.cli.watch import Observation, observed, observing

if TYPE_CHECKING:
    from softhca.hca.device import Hca
    from softhca.vfio_user import Loop, Server

_STOP = (signal.SIGINT, signal.SIGTERM)


def qemu_arguments(path: Path) -> list[str]:
    """What QEMU (10.1 or newer) needs on its command line for the device that is served at `path`."""
    device = {"driver": "vfio-user-pci", "socket": {"path": str(path.absolute()), "type": "unix"}}
    return [
        *("-machine", "q35,memory-backend=mem", "-m", "1G"),
        *("-object", "memory-backend-memfd,id=mem,size=1G,share=on"),
        *("-device", json.dumps(device, separators=(",", ":"))),
    ]


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


profile_option = click.option(
    "--profile",
    default=DEFAULT_PROFILE,
    show_default=True,
    metavar="NAME|FILE.toml",
    help="Which card to be (a name that does not exist lists all).",
)
control_option = click.option(
    "--control", type=click.Path(path_type=Path), help="One more socket: questions, answers in lines of JSON."
)


def serve_cards(cards: list[Hca], paths: list[Path], control: Path | None, tell: Callable[[], None]) -> None:
    """Serve each card at its socket until SIGINT or SIGTERM.

    Args:
        cards: they share an engine.
        paths: their sockets.
        control: socket for questions; `summary` tells of all cards.
        tell: called when all listen.

    Raises:
        click.ClickException: a socket cannot be.
    """
    from softhca.vfio_user import Loop, Server
    from softhca.vfio_user.control import Control

    with ExitStack() as stack:
        loop = stack.enter_context(closing(Loop()))
        stopped = stack.enter_context(stop_signals(loop))
        try:
            servers = [
                stack.enter_context(closing(Server(loop, card, path))) for card, path in zip(cards, paths, strict=True)
            ]
            if control is not None:
                questions = stack.enter_context(closing(Control(loop, control)))
                summaries = [(server, card) for server, card in zip(servers, cards, strict=True)]
                questions.register("summary", lambda _: _summary(summaries))
                answer_faults(questions, cards)
                answer_figures(questions, cards)
        except (OSError, ValueError) as error:
            raise click.ClickException(str(error)) from error
        tell()
        while not stopped:
            loop.run_once()
    click.echo("Stopped.", err=True)


def _summary(parts: list[tuple[Server, Hca]]) -> dict[str, object]:
    """Of one card the socket's and the card's; of several a list of these."""
    every: list[dict[str, object]] = [{**server.summary(), "device": card.summary()} for server, card in parts]
    return every[0] if len(every) == 1 else {"devices": every}


@click.command()
@click.option(
    "--socket", "path", required=True, type=click.Path(path_type=Path), help="UNIX socket to listen on; it is created."
)
@profile_option
@control_option
@observed
def serve(path: Path, profile: str, control: Path | None, observation: Observation) -> None:
    """Serve one card to a virtual machine monitor, over the vfio-user protocol.

    Prints the arguments that QEMU needs, then serves one client after the other until SIGINT or SIGTERM. The card
    starts cold with each client.

    \b
    softhca serve --socket /tmp/hca.sock --control /tmp/hca.ctl
    echo '{"id": 1, "method": "summary"}' | socat - UNIX-CONNECT:/tmp/hca.ctl

    For several cards that reach each other, see softhca fabric.
    """  # noqa: D301

    def tell() -> None:
        click.echo(f"{profile} listens at {path}. Start QEMU with:\n\n  {shlex.join(qemu_arguments(path))}\n")

    cards = build_cards(profile, 1)
    with observing(observation, cards):
        serve_cards(cards, [path], control, tell)
