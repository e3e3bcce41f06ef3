"""The figures of running cards, for `softhca top`: asked for at a control socket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softhca.hca.device import Hca
    from softhca.vfio_user.control import Control


def answer_figures(control: Control, cards: Sequence[Hca]) -> None:
    """Add the method `figures`: a list with what :func:`figures` gives of each card."""
    control.register("figures", lambda _: [figures(card) for card in cards])


def figures(card: Hca) -> dict[str, Any]:
    """What a card has done since it started, and how it is.

    Returns:
        `time`, nanoseconds of its engine; `commands` and `failed`, how many ended and how many of them failed;
        `completions`, CQEs of the CQs that are alive; `packets` and `bytes`, sent and received by its port, multicast
        included; `objects` alive, by kind; `pages` that it has; `stage` of its life; `health`, the syndrome's name, and
        `counter`.
    """
    traffic, function = card.port.traffic, card.function
    flows = (traffic.sent, traffic.received, traffic.multicast_sent, traffic.multicast_received)
    return {
        "profile": card.profile.name,
        "time": card.engine.clock.now(),
        "commands": card.commands.commands,
        "failed": sum(card.commands.failed.values()),
        "completions": sum(cq.producer for cq in function.cqs),
        "packets": sum(flow.packets for flow in flows),
        "bytes": sum(flow.octets for flow in flows),
        "objects": function.objects(),
        "pages": len(function.icm.pages),
        "stage": function.stage.name,
        "health": card.health.syndrome.name,
        "counter": card.health.counter,
    }
