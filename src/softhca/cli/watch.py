"""Who watches and disturbs the cards of a sub-command: the probe of each is made here, and here only."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softhca.hca.device import Hca
    from softhca.points import Probe
    from softhca.points.probe import Recorder
    from softhca.points.rules import Rule, Rules


def watch(cards: Sequence[Hca], rules: Rules | None, record: Recorder | None) -> None:
    """Give each card a probe, or none when there is nothing for it to do; start the rules that act by themselves.

    Args:
        cards: of one engine.
        rules: of `--fault`.
        record: of `--trace`.
    """
    if rules is None and record is None:
        return
    from softhca.points import Probe

    for number, card in enumerate(cards):
        card.probe = Probe(card.engine.clock, number, record, rules)
    if rules is not None:
        start_timed(cards, rules.timed())


def start_timed(cards: Sequence[Hca], rules: Sequence[Rule]) -> None:
    """Set the timers of rules with `at`, from now on; cards without a probe are left out."""
    for rule in rules:
        for number, card in enumerate(cards):
            if card.probe is not None and rule.card in (None, number):
                card.engine.after(rule.at or 0, partial(_act, rule, card.probe))


def _act(rule: Rule, probe: Probe) -> None:
    rule.fired += 1
    probe.act(rule.fault)
