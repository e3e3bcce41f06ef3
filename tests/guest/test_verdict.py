from __future__ import annotations

import pytest

from softhca.guest.complaints import Complaint
from softhca.guest.verdict import Outcome

_COMPLAINT = Complaint("fatal", "[    1.000000] BUG: x")


@pytest.mark.parametrize(
    ("outcome", "verdict", "status"),
    [
        (Outcome(status=0), "ok", 0),
        (Outcome(status=7), "command", 7),
        (Outcome(status=125), "command", 125),
        (Outcome(status=0, complaints=[_COMPLAINT]), "kernel", 126),
        (Outcome(status=7, complaints=[_COMPLAINT]), "kernel", 126),
        (Outcome(timed_out=True), "timeout", 124),
        (Outcome(timed_out=True, complaints=[_COMPLAINT]), "timeout", 124),
        (Outcome(lab_error="no", timed_out=True, complaints=[_COMPLAINT]), "lab", 125),
        (Outcome(status=0, lab_error="no"), "lab", 125),
    ],
)
def test_the_first_that_applies_decides(outcome: Outcome, verdict: str, status: int) -> None:
    assert (outcome.verdict, outcome.exit) == (verdict, status)


def test_json() -> None:
    outcome = Outcome(status=3, complaints=[_COMPLAINT], devices=[{"profile": "p"}])
    assert outcome.as_json() == {
        "verdict": "kernel",
        "exit": 126,
        "kernel_complaints": [{"class": "fatal", "line": "[    1.000000] BUG: x"}],
        "devices": [{"profile": "p"}],
    }
