"""`--fault`: rules of what goes wrong with the cards of a sub-command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from softhca.hca.device import Hca
    from softhca.points.rules import Rule, Rules
    from softhca.vfio_user.control import Control

fault_option = click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="FILE|RULE",
    help="What is to go wrong: a TOML file, or a rule such as 'command=CREATE_CQ nth=3 status=NO_RESOURCES'. May be "
    "given again. `softhca fault --list` has all.",
)


def parse(given: Sequence[str]) -> list[Rule]:
    """The rules of files and lines; what has no `=` in it is a file.

    Raises:
        click.BadParameter: one is wrong.
    """
    from softhca.points.rules import RuleError, parse_file, parse_line

    rules: list[Rule] = []
    for text in given:
        path = Path(text)
        try:
            if path.suffix == ".toml" or "=" not in text:
                rules += parse_file(path)
            else:
                rules.append(parse_line(text, f"rule {text!r}"))
        except RuleError as error:
            raise click.BadParameter(str(error), param_hint="--fault") from error
    return rules


@contextmanager
def faulty(given: Sequence[str]) -> Iterator[Rules | None]:
    """The rules of a run, or None when none are given; at the end say what they did.

    Raises:
        click.BadParameter: one is wrong.
    """
    if not given:
        yield None
        return
    from softhca.points.rules import Rules

    rules = Rules(parse(given))
    try:
        yield rules
    finally:
        for rule in rules.rules:
            what = f"{rule.source}: acted {rule.fired} times" if rule.fired else f"{rule.source}: never acted"
            click.echo(f"--fault {what} (of {rule.seen} events that it is for)", err=True)


def answer_faults(control: Control, cards: Sequence[Hca]) -> None:
    """Let rules be added, listed and cleared at a control socket while the cards run.

    Methods: `faults.add` with `rules`, a list of lines; `faults.list`; `faults.clear`.
    """
    from softhca.cli.watch import watch
    from softhca.points.rules import RuleError, Rules, parse_line, start
    from softhca.vfio_user.control import ControlError

    def rules() -> Rules | None:
        probe = cards[0].probe if cards else None
        found = None if probe is None else probe.rules
        return found if isinstance(found, Rules) else None

    def add(params: Mapping[str, object]) -> object:
        lines = params.get("rules")
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise ControlError("params", "rules has to be a list of lines")
        try:
            new = [parse_line(line, f"rule {line!r}") for line in lines]
            there = rules()
            if there is None:
                there = Rules()
                watch(cards, there, cards[0].probe.record if cards[0].probe is not None else None)
            there.add(new)
            for number, card in enumerate(cards):
                card.probe = card.probe  # which points are watched may have changed
                if card.probe is not None:
                    start(new, number, card.probe, card.engine.after)
        except RuleError as error:
            raise ControlError("params", str(error)) from error
        return len(there.rules)

    def clear(_: Mapping[str, object]) -> object:
        there = rules()
        count = 0 if there is None else len(there.rules)
        if there is not None:
            there.clear()
        return count

    def show(_: Mapping[str, object]) -> object:
        there = rules()
        return [] if there is None else [_figures(rule) for rule in there.rules]

    control.register("faults.add", add)
    control.register("faults.list", show)
    control.register("faults.clear", clear)


def _figures(rule: Rule) -> dict[str, Any]:
    return {"rule": rule.source, "point": rule.point.name, "seen": rule.seen, "acted": rule.fired}
