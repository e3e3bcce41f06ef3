"""Who watches and disturbs the cards of a sub-command: the probe of each is made here, and here only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softhca.cli.faults import fault_option, faulty
from softhca.cli.pcap import pcap_options, recording
from softhca.cli.traces import trace_option, tracing

if TYPE_CHECKING:
    from softhca.hca.device import Hca
    from softhca.points.probe import Recorder
    from softhca.points.rules import Rules


@dataclass(frozen=True)
class Observation:
    """What the options of :func:`observed` were given.

    Attributes:
        pcap, pcap_link: see :mod:`softhca.cli.pcap`.
        faults: see :mod:`softhca.cli.faults`.
        trace: see :mod:`softhca.cli.traces`.
    """

    pcap: Path | None
    pcap_link: str
    faults: tuple[str, ...]
    trace: Path | None


def observed(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options for who watches and disturbs the cards; the command gets them as `observation`."""

    @wraps(command)
    def gathered(*positional: Any, **given: Any) -> Any:
        names = Observation.__dataclass_fields__
        return command(*positional, observation=Observation(**{name: given.pop(name) for name in names}), **given)

    return fault_option(trace_option(pcap_options(gathered)))  # type: ignore[no-any-return]


@contextmanager
def observing(observation: Observation, cards: Sequence[Hca]) -> Iterator[None]:
    """Watch and disturb the cards as the options say; at the end say what became of it.

    Raises:
        click.BadParameter, click.ClickException: what is asked for cannot be.
    """
    with (
        faulty(observation.faults) as rules,
        recording(observation.pcap, observation.pcap_link, cards),
        tracing(observation.trace, cards) as record,
    ):
        watch(cards, rules, record)
        yield


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
    from softhca.points.rules import start

    for number, card in enumerate(cards):
        card.probe = Probe(card.engine.clock, number, record, rules)
        start(rules.rules if rules is not None else (), number, card.probe, card.engine.after)
