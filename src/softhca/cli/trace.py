"""`softhca trace`: a recorded trace as a story, and as files for other programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from softhca.trace.reader import Event, Trace

_COLOURS = {
    "stage": "bold",
    "command": "cyan",
    "failed": "bold red",
    "event": "green",
    "page": "yellow",
    "health": "bold magenta",
    "data": "",
}
_file = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


@contextmanager
def _opened(path: Path) -> Iterator[Trace]:
    """A trace; what is wrong with it ends the command.

    Raises:
        click.ClickException: it is no trace.
    """
    from softhca.trace.reader import Trace, TraceError

    try:
        trace = Trace(path)
        try:
            yield trace
        finally:
            trace.close()
    except TraceError as error:
        raise click.ClickException(str(error)) from error
    if trace.cut:
        click.echo(f"{path}: the last line is cut off", err=True)


@click.group()
def trace() -> None:
    """Read what --trace of run, serve, fabric and guest recorded.

    \b
    softhca run --trace t.jsonl
    softhca trace show t.jsonl
    softhca trace export html t.jsonl t.html
    """  # noqa: D301


@trace.command()
@_file
@click.option("--follow", is_flag=True, help="Go on as the file grows.")
@click.option("--point", "points", multiple=True, help="Only events of this point, or of all that begin so.")
@click.option("--command", "opcodes", multiple=True, metavar="OPCODE", help="Only this command.")
@click.option("--card", type=int, help="Only of this card.")
@click.option("--function", type=int, help="Only of this function.")
@click.option("--failed", is_flag=True, help="Only commands that failed.")
def show(
    file: Path,
    *,
    follow: bool,
    points: tuple[str, ...],
    opcodes: tuple[str, ...],
    card: int | None,
    function: int | None,
    failed: bool,
) -> None:
    """Tell a trace as a story: a line for each event, with the time since the first."""
    from rich.console import Console
    from rich.text import Text

    from softhca.trace.story import story

    wanted = _wanted(points, opcodes, card, function)
    console = Console(highlight=False, soft_wrap=True)
    with _opened(file) as trace:
        names = trace.header.get("cards")
        several = isinstance(names, list) and len(names) > 1
        for line in story(trace.events(follow=follow), wanted, failed=failed):
            text = Text(f"{line.time / 1e6:12.3f} ms  ", style="dim")
            text.append(f"card {line.where}  " if several else "")
            text.append(line.what, style=_COLOURS[line.kind])
            console.print(text)


def _wanted(
    points: tuple[str, ...], opcodes: tuple[str, ...], card: int | None, function: int | None
) -> Callable[[Event], bool]:
    """Whether an event is asked for.

    Raises:
        click.BadParameter: a point or command that does not exist.
    """
    from softhca.points.catalogue import POINTS
    from softhca.prm.opcodes import Opcode

    for prefix in points:
        if not any(name.startswith(prefix) for name in POINTS):
            raise click.BadParameter(f"{prefix!r}; there are {', '.join(POINTS)}", param_hint="--point")
    for name in opcodes:
        if name not in Opcode.__members__:
            raise click.BadParameter(f"{name!r} is no command of the manual", param_hint="--command")

    def wanted(event: Event) -> bool:
        return (
            (not points or event.point.startswith(points))
            and (not opcodes or event.fields.get("command") in opcodes)
            and card in (None, event.card)
            and function in (None, event.function)
        )

    return wanted


@trace.command()
@click.argument("kind", type=click.Choice(["perfetto", "html"]))
@_file
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
def export(kind: str, file: Path, out: Path) -> None:
    """Write a trace for ui.perfetto.dev, or as one HTML page that needs nothing else."""
    from softhca.trace.html import report
    from softhca.trace.perfetto import perfetto

    with _opened(file) as trace:
        text = report(trace) if kind == "html" else perfetto(trace)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{out}: {len(text.encode())} bytes")
