"""The benchmarks measure what they say; how fast it is does not matter here."""

from __future__ import annotations

from benchmarks.card import CommandLoop, bring_up_and_close, machine
from benchmarks.memory import populate

from softhca.driver import bring_up


def test_a_whole_life_leaves_no_page() -> None:
    assert bring_up_and_close() > 0


def test_each_round_is_a_command_that_the_device_carried_out() -> None:
    loop = CommandLoop()
    before = loop.card.commands.commands
    assert loop.run(10) > 0
    assert loop.card.commands.commands - before == 10
    assert not loop.card.commands.failed


def test_the_objects_are_there() -> None:
    card, _, driver = machine()
    bring_up(driver)
    populate(driver, 3, 6)
    objects = card.summary()["objects"]
    assert (objects["QP"], objects["CQ"]) == (3, 6)
