from __future__ import annotations

import pytest

from softhca.guest.complaints import Complaint
from softhca.guest.verdict import Outcome, Verdict

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
        (Outcome(stopped="guest 1 has died"), "stopped", 124),
        (Outcome(stopped="guest 1 has died", complaints=[_COMPLAINT]), "kernel", 126),
    ],
)
def test_the_first_that_applies_decides(outcome: Outcome, verdict: str, status: int) -> None:
    assert (outcome.verdict, outcome.exit) == (verdict, status)


@pytest.mark.parametrize(
    ("outcomes", "verdict", "status"),
    [
        ([Outcome(status=0), Outcome(status=0)], "ok", 0),
        ([Outcome(status=0), Outcome(status=5), Outcome(status=6)], "command", 5),
        ([Outcome(stopped="guest 1 has failed"), Outcome(status=6)], "command", 6),
        ([Outcome(status=6), Outcome(status=0, complaints=[_COMPLAINT])], "kernel", 126),
        ([Outcome(timed_out=True), Outcome(lab_error="no")], "lab", 125),
    ],
)
def test_the_gravest_guest_decides(outcomes: list[Outcome], verdict: str, status: int) -> None:
    run = Verdict(outcomes)
    assert (run.verdict, run.exit) == (verdict, status)


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Outcome(status=3), None),
        (Outcome(lab_error="no network"), "the lab failed: no network"),
        (Outcome(timed_out=True), "the command took too long"),
        (Outcome(timed_out=True, waited="it waited"), "the command took too long; it waited"),
        (Outcome(stopped="ended 30 s after"), "ended 30 s after"),
    ],
)
def test_reasons(outcome: Outcome, reason: str | None) -> None:
    assert outcome.reason == reason


def test_json_of_two_guests() -> None:
    bad = Outcome(status=3, complaints=[_COMPLAINT], devices=[{"profile": "p"}], output=b"a\xff", error=b"b")
    good = Outcome(status=0, devices=[{"profile": "q"}])
    complaint = {"class": "fatal", "line": "[    1.000000] BUG: x"}
    assert Verdict([good, bad]).as_json() == {
        "verdict": "kernel",
        "exit": 126,
        "kernel_complaints": [complaint],
        "devices": [{"profile": "q"}, {"profile": "p"}],
        "guests": [
            {
                "guest": 0,
                "verdict": "ok",
                "exit": 0,
                "status": 0,
                "reason": None,
                "kernel_complaints": [],
                "devices": [{"profile": "q"}],
                "output": "",
                "error": "",
            },
            {
                "guest": 1,
                "verdict": "kernel",
                "exit": 126,
                "status": 3,
                "reason": None,
                "kernel_complaints": [complaint],
                "devices": [{"profile": "p"}],
                "output": "a\ufffd",
                "error": "b",
            },
        ],
    }
