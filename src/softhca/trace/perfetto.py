"""A trace for the timeline viewers that read the trace event format (ui.perfetto.dev, chrome://tracing).

A card's function is a process; its command slots, QPs, CQs and EQs are threads of it, and its ICM pages a counter.
"""

from __future__ import annotations

import json
from typing import Any

from softhca.trace.commands import Pairing
from softhca.trace.reader import Event, Trace

_PAGES = {"pages.given": 1, "pages.returned": -1}
_QUEUES = {"eqe": ("EQ", "eqn"), "cqe": ("CQ", "cqn"), "packet": ("QP", "qpn")}


class _Tracks:
    """Numbers of processes and threads, and the events that name them."""

    def __init__(self, cards: list[Any]) -> None:
        self._cards = cards
        self._pids: dict[tuple[int, int], int] = {}
        self._tids: dict[tuple[int, str], int] = {}
        self.names: list[dict[str, Any]] = []

    def of(self, event: Event, thread: str) -> dict[str, int]:
        """`pid` and `tid` of a track."""
        key = (event.card, event.function)
        if key not in self._pids:
            self._pids[key] = len(self._pids) + 1
            model = self._cards[event.card] if 0 <= event.card < len(self._cards) else ""
            name = f"card {event.card} {model}, function {event.function}"
            self._name("process_name", {"pid": self._pids[key]}, name)
        pid = self._pids[key]
        if (pid, thread) not in self._tids:
            self._tids[pid, thread] = len(self._tids) + 1
            self._name("thread_name", {"pid": pid, "tid": self._tids[pid, thread]}, thread)
        return {"pid": pid, "tid": self._tids[pid, thread]}

    def _name(self, what: str, where: dict[str, int], name: str) -> None:
        self.names.append({"name": what, "ph": "M", "args": {"name": name}, **where})


def perfetto(trace: Trace) -> str:
    """The trace as one JSON document.

    Raises:
        TraceError: a line of it is no event.
    """
    cards = trace.header.get("cards")
    tracks, pairing = _Tracks(cards if isinstance(cards, list) else []), Pairing()
    pages: dict[tuple[int, int], int] = {}
    found = [_entry(event, tracks, pairing, pages) for event in trace.events()]
    shown = [entry for entry in found if entry]
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": [*tracks.names, *shown]}, separators=(",", ":"))


def _entry(event: Event, tracks: _Tracks, pairing: Pairing, pages: dict[tuple[int, int], int]) -> dict[str, Any]:
    when = event.time / 1000
    command = pairing.take(event)
    if command is not None:
        if command.end is None:
            return {}
        args: dict[str, Any] = {"result": command.result, "syndrome": f"{command.syndrome:#x}", "why": command.why}
        entry = {"name": command.opcode, "ph": "X", "ts": command.start / 1000, "dur": (command.took or 0) / 1000}
        if command.failed:
            entry["cname"] = "terrible"
        args |= {"input": command.input, "output": command.output or {}}
        return {**entry, "args": args, **tracks.of(event, f"slot {command.slot}")}
    if event.point in _PAGES:
        key = (event.card, event.function)
        count = event.fields.get("pages")
        pages[key] = pages.get(key, 0) + _PAGES[event.point] * (count if isinstance(count, int) else 0)
        return {"name": "ICM pages", "ph": "C", "ts": when, "args": {"pages": pages[key]}, **tracks.of(event, "pages")}
    queue = _QUEUES.get(event.point)
    thread = "function" if queue is None else f"{queue[0]} {event.fields.get(queue[1])}"
    return {
        "name": _name(event),
        "ph": "i",
        "s": "t",
        "ts": when,
        "args": dict(event.fields),
        **tracks.of(event, thread),
    }


def _name(event: Event) -> str:
    for key in ("name", "event", "operation", "health", "reset", "stage"):
        if key in event.fields:
            return f"{event.fields[key]}"
    return event.point
