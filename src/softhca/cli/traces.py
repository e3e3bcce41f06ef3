"""`--trace`: everything that happens to the cards of a sub-command, in a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from softhca.hca.device import Hca
    from softhca.points.probe import Recorder

trace_option = click.option(
    "--trace",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Record all that happens there (lines of JSON); `softhca trace` shows it. Cards are slower meanwhile.",
)


@contextmanager
def tracing(path: Path | None, cards: Sequence[Hca]) -> Iterator[Recorder | None]:
    """What takes the events of the cards, or None; at the end say what became of the file.

    Raises:
        click.ClickException: the file cannot be written.
    """
    if path is None:
        yield None
        return
    from softhca.bus import VirtualClock
    from softhca.trace.recorder import Recorder

    clock = "virtual" if cards and isinstance(cards[0].engine.clock, VirtualClock) else "real"
    seed = cards[0].engine.seed if cards else None
    header: dict[str, object] = {"clock": clock, "seed": seed, "cards": [card.profile.name for card in cards]}
    try:
        recorder = Recorder(path, header)
    except OSError as error:
        raise click.ClickException(f"--trace: {error}") from error
    try:
        yield recorder.record
    finally:
        recorder.close()
        if recorder.failure is not None:
            click.echo(f"--trace {path}: the recording ended early: {recorder.failure}", err=True)
        else:
            click.echo(f"--trace {path}: {recorder.written} events", err=True)
