"""`softhca fabric`: several cards of one subnet, each for a virtual machine monitor of its own."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from softhca.cli.cards import build_cards
from softhca.cli.serve import control_option, profile_option, qemu_arguments, serve_cards
from softhca.cli.watch import Observation, observed, observing


@click.command()
@click.option(
    "--socket",
    "paths",
    required=True,
    multiple=True,
    type=click.Path(path_type=Path),
    help="UNIX socket of a card; one a card, in the order of their LIDs from 1 on.",
)
@profile_option
@control_option
@observed
def fabric(paths: tuple[Path, ...], profile: str, control: Path | None, observation: Observation) -> None:
    """Serve several cards that reach each other: one subnet, with a subnet manager, in one process.

    Each card is for a virtual machine of its own, or several for one. Prints the arguments that QEMU needs for each,
    then serves until SIGINT or SIGTERM; a card starts cold with each client of its socket.

    \b
    softhca fabric --socket /tmp/a.sock --socket /tmp/b.sock --control /tmp/fabric.ctl
    softhca fabric --socket=/tmp/hca{0,1,2,3}.sock

    softhca guest --guests N boots the guests too.
    """  # noqa: D301
    if len({path.absolute() for path in paths}) < len(paths):
        raise click.BadParameter("each card needs a socket of its own", param_hint="--socket")
    cards = build_cards(profile, len(paths))
    if not all(card.port.infiniband for card in cards):
        raise click.BadParameter(
            f"{profile} is an Ethernet card; InfiniBand cards alone form a fabric", param_hint="--profile"
        )

    def tell() -> None:
        click.echo(f"{len(cards)} cards {profile} of one fabric listen. Start a QEMU for each with:\n")
        for card, path in zip(cards, paths, strict=True):
            click.echo(f"LID {card.port.lid}, GUID {card.port.guid:#018x}:\n  {shlex.join(qemu_arguments(path))}\n")

    with observing(observation, cards):
        serve_cards(cards, list(paths), control, tell)
