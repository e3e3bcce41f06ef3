"""`make bench`: every figure of speed, as a table on standard error and as JSON on standard output."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from benchmarks import card, guest, vfio_user
from benchmarks import control as control_path
from benchmarks import messages as messages_in_process
from benchmarks import perftest as perftest_in_guest
from benchmarks import trace as trace_cost
from benchmarks.report import Line, duration, later, rate, show

GROUPS: dict[str, Callable[[], list[Line]]] = {}


def _group(function: Callable[[], list[Line]]) -> Callable[[], list[Line]]:
    GROUPS[function.__name__] = function
    return function


@_group
def process() -> list[Line]:
    """What happens in one process."""
    return [
        duration("bring-up and close, first in a process", 30, card.first_bring_up, unit="ms"),
        duration("softhca --help", 150, guest.help_text, unit="ms"),
        rate("commands (QUERY_ADAPTER)", 20_000, later(card.commands)),
    ]


@_group
def control() -> list[Line]:
    """The control path, device and driver in one process."""
    return [
        rate("driver: commands with events, 31 in flight", 20_000, control_path.commands_in_flight),
        duration("1 GiB of pages given and taken back", 2, control_path.gibibyte_of_pages),
    ]


@_group
def trace() -> list[Line]:
    """Traces and faults: what a point costs."""
    return [
        duration("trace on, an event of the data path", 3, trace_cost.event, unit="us"),
        duration("trace off, share of a command", 1, trace_cost.off, unit="%"),
    ]


@_group
def messages() -> list[Line]:
    """What a message of vfio-user costs."""
    return [
        rate("vfio-user posted writes", None, vfio_user.posted_writes_per_second),
        rate("vfio-user reads", None, vfio_user.reads_per_second),
    ]


@_group
def verbs() -> list[Line]:
    """Messages between two QPs of a card in one process, through the whole device."""
    return messages_in_process.lines()


@_group
def warm() -> list[Line]:
    """Guests of a warm lab."""
    return [
        duration("guest: true, by boot", 15, later(lambda: guest.warm(boot=True))),
        duration("guest: true, from the snapshot", 8, later(lambda: guest.warm(boot=False))),
    ]


@_group
def perftest() -> list[Line]:
    """Perftest in a guest, as a multiple of what the kernel's rdma_rxe gives there."""
    return perftest_in_guest.lines()


@_group
def cold() -> list[Line]:
    """The lab from nothing."""
    return [duration("guest: lab, cold", 120, guest.cold, rounds=1, note="once, downloads included")]


def main() -> int:
    """Measure the groups that are asked for; 1 when a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}; all when none is given")
    names = parser.parse_args().groups or list(GROUPS)
    if unknown := [name for name in names if name not in GROUPS]:
        parser.error(f"no group {unknown[0]!r}; the groups are {', '.join(GROUPS)}")
    lines = []
    for name in names:
        print(f"{name}: {GROUPS[name].__doc__}", file=sys.stderr)
        lines += GROUPS[name]()
    return show(lines)


if __name__ == "__main__":
    sys.exit(main())
