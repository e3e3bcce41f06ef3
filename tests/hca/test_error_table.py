"""Each row of the error table (docs/errors.toml), provoked in process: completions, events and states of both ends."""

from __future__ import annotations

import pytest

from softhca.prm.syndromes.completion import VendorSyndrome
from tests.hca import provoke_local, provoke_remote
from tests.hca.error_scene import EVENTS, PROVOCATIONS, STATES, STATUSES, Row, rows

__all__ = ["provoke_local", "provoke_remote"]


@pytest.mark.requirement("G3", "G4", "G5", "B11", "A6")
@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_row(row: Row) -> None:
    assert PROVOCATIONS[row.id]().outcome(row) == row


def test_every_provocation_is_a_row() -> None:
    names = [row.id for row in rows()]
    assert sorted(names) == sorted(PROVOCATIONS)
    assert len({row.cause + row.service for row in rows()}) == len(names)


def test_rows_use_words_that_the_standard_and_the_syndromes_have() -> None:
    statuses = {"SUCCESS", *STATUSES.values()}
    for row in rows():
        for completion in row.requester + row.responder:
            status, _, vendor = completion.partition(" ")
            assert status in statuses
            assert not vendor or vendor in VendorSyndrome.__members__
        assert {event.split()[1] for event in row.events if not event.startswith("health")} <= set(EVENTS.values())
        assert {state for state in row.states if state} <= set(STATES.values())
