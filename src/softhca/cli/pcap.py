"""`--pcap FILE`: what a wire between the cards would have shown, in a file for Wireshark."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from softhca.hca.device import Hca
    from softhca.wire.pcapng import PcapngWriter
    from softhca.wire.tap import Tap

_pcap = click.option(
    "--pcap",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Record all packets there (pcapng). Cards are slower meanwhile.",
)
_link = click.option(
    "--pcap-link",
    default="erf",
    show_default=True,
    type=click.Choice(["erf", "infiniband"]),
    help="Link type of the file. Wireshark knows what is in erf records; of link type infiniband it shows bytes.",
)


def pcap_options(command: Any) -> Any:
    """The options of :func:`recording`."""
    return _pcap(_link(command))


@contextmanager
def recording(path: Path | None, link: str, cards: Sequence[Hca]) -> Iterator[None]:
    """Record the packets of all cards, which share an engine, into one file; at the end say what it lacks.

    Args:
        path: of the file; None records nothing.
        link: `erf` or `infiniband`.
        cards: of one fabric.

    Raises:
        click.BadParameter: a card is none of InfiniBand, or there is none.
        click.ClickException: the file cannot be written.
    """
    if path is None:
        yield
        return
    from softhca.bus import RealClock
    from softhca.wire.pcapng import LinkType, PcapngWriter
    from softhca.wire.tap import Tap

    if not cards or not all(card.port.infiniband for card in cards):
        raise click.BadParameter("packets are recorded of InfiniBand cards alone", param_hint="--pcap")
    clock = cards[0].engine.clock
    epoch = time.time_ns() - clock.now() if isinstance(clock, RealClock) else 0
    try:
        writer = PcapngWriter(path, epoch=epoch, link_type=LinkType[link.upper()])
        taps = [Tap(writer, f"card {number}", clock.now) for number in range(len(cards))]
    except OSError as error:
        raise click.ClickException(f"--pcap: {error}") from error
    for card, tap in zip(cards, taps, strict=True):
        card.port.tap = tap
    try:
        yield
    finally:
        for card in cards:
            card.port.tap = None
        _close(writer, taps, path)


def _close(writer: PcapngWriter, taps: list[Tap], path: Path) -> None:
    failure = next((tap.failure for tap in taps if tap.failure is not None), None)
    try:
        writer.close()
    except OSError as error:
        failure = failure or error
    if failure is not None:
        click.echo(f"--pcap {path}: the recording ended early: {failure}", err=True)
    elif writer.full:
        click.echo(f"--pcap {path}: {writer.written} packets, as many as it may have; later ones are missing", err=True)
    else:
        click.echo(f"--pcap {path}: {writer.written} packets", err=True)
