"""Each row of the error table (docs/errors.toml), provoked in process: completions, events and states of both ends."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

import error_rows
from error_table import PROVOCATIONS, Row, read_rows
from softhca.hca.mkey import DUMP_FILL_MKEY, NULL_MKEY
from softhca.prm.syndromes.completion import VendorSyndrome
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import PAGE, data
from tests.hca.error_scene import EVENTS, STATES, STATUSES, Bed
from tests.hca.test_indirect_keys import indirect

ROWS = read_rows(Path(__file__).parents[2] / "docs" / "errors.toml")
NOWHERE = 1 << 44
"""An address on the bus where there is no memory."""


def _lkey_unmapped() -> Bed:
    bed = Bed()
    bed.send(bed.key(near=True, pages=[NOWHERE], length=PAGE))
    return bed


def _lkey_too_deep() -> Bed:
    bed = Bed()
    key, address = bed.lkey, bed.source
    for _ in range(bed.bench.fn.caps.general.max_indirection + 1):
        key, address = indirect(bed.bench, [(PAGE, key, address)]), 0
    bed.left.post(WqeOpcode.SEND, data(key, 0, 64))
    return bed


def _umr_not_enabled() -> Bed:
    bed = Bed()
    bed.invalidate(bed.key(near=True, umr_en=0), near=True)
    return bed


def _rkey_unmapped() -> Bed:
    bed = Bed()
    bed.write(bed.key(near=False, pages=[NOWHERE], length=PAGE))
    return bed


def _eq_overrun() -> Bed:
    bed = Bed(completion_events=0)
    for cq in (bed.sent, bed.received):
        bed.bench.ring(bed.bench.uar, 0x20, struct.pack(">II", 0, cq.number))
    bed.receive()
    bed.send()
    return bed


UNIT_ONLY: dict[str, Callable[[], Bed]] = {
    "lkey-unmapped": _lkey_unmapped,
    "lkey-too-deep": _lkey_too_deep,
    "umr-not-enabled": _umr_not_enabled,
    "rkey-unmapped": _rkey_unmapped,
    "eq-overrun": _eq_overrun,
}


@pytest.mark.requirement("G3", "G4", "G5", "B11", "A6")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_row(row: Row) -> None:
    bed = UNIT_ONLY[row.id]() if row.unit_only else PROVOCATIONS[row.id](Bed)
    assert isinstance(bed, Bed)
    assert bed.outcome(row) == row


def test_every_row_is_provoked_and_every_provocation_is_a_row() -> None:
    assert {row.id for row in ROWS if not row.unit_only} == set(PROVOCATIONS)
    assert {row.id for row in ROWS if row.unit_only} == set(UNIT_ONLY)
    assert len({row.id for row in ROWS}) == len({(row.cause, row.service) for row in ROWS}) == len(ROWS)


def test_rows_use_words_that_the_standard_and_the_syndromes_have() -> None:
    statuses = {"SUCCESS", *STATUSES.values()}
    for row in ROWS:
        for completion in row.requester + row.responder:
            status, _, vendor = completion.partition(" ")
            assert status in statuses
            assert vendor in VendorSyndrome.__members__ or status == "SUCCESS"
        assert {event.split()[1] for event in row.events if not event.startswith("health")} <= set(EVENTS.values())
        assert {state for state in row.states if state} <= set(STATES.values())


def test_special_keys_are_those_of_the_device() -> None:
    assert (error_rows.NULL_KEY, error_rows.DUMP_FILL_KEY) == (NULL_MKEY, DUMP_FILL_MKEY)
