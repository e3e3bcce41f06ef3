"""`softhca top`: what running cards do, second by second."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.table import Table

RATES = ("commands", "completions", "packets", "bytes")
"""Figures that are shown by the second."""
_MOST_ANSWER = 4 << 20
_UNITS = ("", "k", "M", "G", "T")


class Questions:
    """A connection to a control socket.

    Args:
        path: of the socket.

    Raises:
        click.ClickException: nobody listens there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(10)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise click.ClickException(
                f"{path}: {error.strerror or error}; is a card served with --control?"
            ) from error
        self._file = self._socket.makefile("rwb")

    def ask(self, method: str) -> Any:
        """The result of a method without parameters.

        Raises:
            click.ClickException: the other side has gone, or refuses.
        """
        try:
            self._file.write(json.dumps({"id": 1, "method": method}).encode() + b"\n")
            self._file.flush()
            line = self._file.readline(_MOST_ANSWER)
            answer = json.loads(line) if line.endswith(b"\n") else None
        except (OSError, ValueError) as error:
            raise click.ClickException(f"{self._path}: {error}") from error
        if not isinstance(answer, dict):
            raise click.ClickException(f"{self._path}: the connection was closed")
        if "error" in answer:
            raise click.ClickException(f"{self._path}: {answer['error']}")
        return answer.get("result")

    def close(self) -> None:
        """End the connection."""
        self._file.close()
        self._socket.close()


@contextmanager
def _connected(path: Path) -> Iterator[Questions]:
    questions = Questions(path)
    try:
        yield questions
    finally:
        questions.close()


@click.command()
@click.argument("control", type=click.Path(path_type=Path))
@click.option("--interval", default=1.0, show_default=True, type=click.FloatRange(0.1, 3600), help="Seconds.")
@click.option("--once", is_flag=True, help="Show one interval and end.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document an interval, for programs.")
def top(control: Path, *, interval: float, once: bool, as_json: bool) -> None:
    """Watch cards that serve, fabric or guest run with --control SOCKET.

    \b
    softhca serve --socket /tmp/hca.sock --control /tmp/hca.ctl
    softhca top /tmp/hca.ctl
    """  # noqa: D301
    with _connected(control) as questions:
        views = _views(questions, interval)
        if as_json:
            for cards in views:
                click.echo(json.dumps(cards))
                if once:
                    return
        else:
            _show(views, once=once)


def _views(questions: Questions, interval: float) -> Iterator[list[dict[str, Any]]]:
    """The figures of the cards, each time with the rates since the last time."""
    before, then = questions.ask("figures"), time.monotonic()
    while True:
        time.sleep(interval)
        now = questions.ask("figures")
        passed, then = time.monotonic() - then, time.monotonic()
        yield [with_rates(old, new, passed) for old, new in zip(before, now, strict=True)]
        before = now


def with_rates(before: dict[str, Any], now: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The figures now, and under `rates` how many of each came by the second; one that fell began anew."""
    rates = {name: max(0, now[name] - before[name]) / seconds for name in RATES}
    return {**now, "rates": rates}


def _show(views: Iterator[list[dict[str, Any]]], *, once: bool) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    if once or not console.is_terminal:
        for cards in views:
            console.print(table(cards))
            if once:
                return
    with Live(console=console, auto_refresh=False) as live:
        for cards in views:
            live.update(table(cards), refresh=True)


def table(cards: list[dict[str, Any]]) -> Table:
    """A column a card, a row a figure."""
    from rich.table import Table

    shown = Table("", *(f"{number} {card['profile']}" for number, card in enumerate(cards)))
    for name in RATES:
        shown.add_row(f"{name}/s", *(short(card["rates"][name]) for card in cards))
    shown.add_row("failed commands", *(_red(card["failed"], bad=card["failed"] > 0) for card in cards))
    shown.add_row("stage", *(card["stage"] for card in cards))
    shown.add_row("pages", *(str(card["pages"]) for card in cards))
    shown.add_row("health", *(_red(card["health"], bad=card["health"] != "OK") for card in cards))
    for kind in sorted({kind for card in cards for kind in card["objects"]}):
        shown.add_row(f"{kind}s", *(str(card["objects"].get(kind, 0)) for card in cards))
    return shown


def _red(value: object, *, bad: bool) -> str:
    return f"[bold red]{value}[/bold red]" if bad else str(value)


def short(number: float) -> str:
    """With a unit of thousands."""
    for unit in _UNITS[:-1]:
        if number < 1000:
            return f"{number:.3g}{unit}"
        number /= 1000
    return f"{number:.3g}{_UNITS[-1]}"
