"""The control path: commands in flight, and pages given and taken back."""

from __future__ import annotations

import time

from benchmarks.card import machine, no_collection
from benchmarks.report import NotMeasured
from softhca.driver import bring_up, close
from softhca.driver.pages import BATCH
from softhca.prm.opcodes import Opcode
from softhca.prm.vport import QueryVportStateIn, QueryVportStateOut

GIB_PAGES = (1 << 30) // 4096
_SPARE = 32 << 20


def commands_in_flight(count: int = 10_000) -> float:
    """Commands a second by our driver, with completion events, all slots but that of pages in flight.

    QUERY_VPORT_STATE, which has no mailbox: what counts is the channel of both sides.
    """
    driver = machine().driver
    bring_up(driver)
    channel = driver.channel
    slots = channel.geometry.slots - 1
    done = 0
    with no_collection():
        start = time.perf_counter()
        while done < count:
            submissions = [
                channel.prepare(Opcode.QUERY_VPORT_STATE, QueryVportStateIn.new(), QueryVportStateOut)
                for _ in range(slots)
            ]
            channel.ring(*submissions)
            for submission in submissions:
                channel.finish(submission)
            done += slots
        rate = done / (time.perf_counter() - start)
    if not channel.event_driven or channel.missed_events:
        raise NotMeasured(f"events were missed: {channel.missed_events}")
    close(driver)
    return rate


def gibibyte_of_pages() -> float:
    """Seconds to give 1 GiB of pages, one by one in the ledger, and to take them back."""
    driver = machine((1 << 30) + _SPARE).driver
    bring_up(driver)
    before, left = driver.ledger.outstanding, GIB_PAGES
    with no_collection():
        start = time.perf_counter()
        while left:
            left -= driver.ledger.give(min(left, BATCH))
        driver.ledger.reclaim()
        took = time.perf_counter() - start
    if driver.ledger.outstanding > before:
        raise NotMeasured(f"{driver.ledger.outstanding - before} pages did not come back")
    close(driver)
    return took
