"""`softhca fault`: what can be made to go wrong, and where."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from softhca.cli.faults import parse

if TYPE_CHECKING:
    from softhca.points import Effect, Field

EXAMPLES = (
    ("command=CREATE_CQ nth=3 status=NO_RESOURCES", "the third CREATE_CQ fails"),
    ("command=INIT_HCA ignored", "the first INIT_HCA is neither carried out nor completed"),
    ("command=QUERY_HCA_CAP op_mod=0x1 late=90s", "it completes after the driver has given up on it"),
    ("event=CMD nth=5 drop", "the fifth command completion event is lost"),
    ("starve nth=10 count=0", "from the tenth on, each taking of ICM room finds none"),
    ("at=5s raise=FW_INTERNAL_ERR fatal", "five seconds after the start the firmware dies"),
)


@click.command()
@click.option("--list", "as_list", is_flag=True, help="Show every point, its fields and its effects.")
@click.option("--json", "as_json", is_flag=True, help="With --list: for programs.")
@click.option("--check", "rules", multiple=True, metavar="FILE|RULE", help="Say what rules mean, or what is wrong.")
def fault(*, as_list: bool, as_json: bool, rules: tuple[str, ...]) -> None:
    """Show what rules of --fault (run, serve, fabric, guest) can say, and check them.

    A rule has one effect, values that the event has to have, and which of the events it is for:

    \b
    softhca run --fault 'command=CREATE_CQ nth=1 status=NO_RESOURCES'
    softhca guest --fault 'command=INIT_HCA ignored' -- dmesg
    softhca fault --check rules.toml

    In a file each rule is a table [[fault]] with the same keys.
    """  # noqa: D301
    if rules:
        for rule in parse(rules):
            where = f"at {rule.at / 1e9:g} s" if rule.at is not None else f"at {rule.point.name}"
            last = "all later ones" if not rule.count else f"{rule.count} of them"
            click.echo(f"{rule.source}: {where}: {rule.effect.text} (from event {rule.nth} on, {last})")
        return
    if not as_list:
        raise click.UsageError("give --list, or --check FILE|RULE")
    if as_json:
        click.echo(json.dumps(_document(), indent=1))
    else:
        _print()


def _document() -> dict[str, Any]:
    from softhca.points.catalogue import CARD_EFFECTS, POINTS
    from softhca.points.rules import WHEN

    return {
        "keys": [_field(field) for field in WHEN.values()],
        "points": [
            {
                "name": point.name,
                "text": point.text,
                "fields": [_field(field) for field in point.fields],
                "effects": [_effect(effect) for effect in point.effects],
            }
            for point in POINTS.values()
        ],
        "card_effects": [_effect(effect) for effect in CARD_EFFECTS],
    }


def _field(field: Field) -> dict[str, Any]:
    names = {} if field.names is None else {"names": list(field.names.__members__)}
    return {"name": field.name, "kind": field.kind.value, "text": field.text, **names}


def _effect(effect: Effect) -> dict[str, Any]:
    keys = [_field(field) for field in (effect.value, *effect.more)]
    return {"name": effect.name, "text": effect.text, "keys": keys}


def _print() -> None:
    document = _document()
    click.echo("Keys that every rule may have:")
    for field in document["keys"]:
        click.echo(f"  {field['name']:12} {field['text']}")
    for point in document["points"]:
        click.echo(f"\n{point['name']}: {point['text']}")
        for field in point["fields"]:
            click.echo(f"  {field['name']:12} {field['text']} ({field['kind']})")
        for effect in point["effects"]:
            _print_effect(effect)
    click.echo("\nEffects on the whole card, at any point or at a time (at=5s):")
    for effect in document["card_effects"]:
        _print_effect(effect)
    click.echo("\nExamples:")
    for rule, text in EXAMPLES:
        click.echo(f"  {rule:46} {text}")


def _print_effect(effect: dict[str, Any]) -> None:
    click.echo(f"  = {effect['name']:10} {effect['text']}")
    for key in effect["keys"]:
        if "names" in key and len(key["names"]) <= 40:
            click.echo(f"{'':17}{key['name']}: {', '.join(key['names'])}")
        elif key["name"] != effect["name"]:
            click.echo(f"{'':17}{key['name']}: {key['text']} ({key['kind']})")
