from __future__ import annotations

import pytest

from softhca.guest.barrier import Barrier


class _Hall:
    """A barrier and what it answered, a list a guest."""

    def __init__(self, count: int) -> None:
        self.answers: list[list[str]] = [[] for _ in range(count)]
        self.barrier = Barrier(count, lambda guest, line: self.answers[guest].append(line))


def test_all_go_on_when_the_last_one_has_come_as_often_as_they_like() -> None:
    hall = _Hall(3)
    for round_ in range(3):
        for guest in (2, 0):
            hall.barrier.heard(guest, f"wait {guest}.{round_} ")
        assert hall.answers[1] == [f"ok 1.{n}" for n in range(round_)]
        hall.barrier.heard(1, f"wait 1.{round_}")
    assert hall.answers == [[f"ok {guest}.{n}" for n in range(3)] for guest in range(3)]


def test_one_guest_never_waits() -> None:
    hall = _Hall(1)
    hall.barrier.heard(0, "wait a ready")
    assert hall.answers == [["ok a"]]


@pytest.mark.parametrize("first", [True, False])
def test_who_waits_for_a_guest_that_has_ended_is_told(first: bool) -> None:
    hall = _Hall(2)
    if first:
        hall.barrier.ended(1, "has failed with status 3")
    hall.barrier.heard(0, "wait a")
    hall.barrier.ended(1, "has failed with status 3")
    assert hall.answers == [["fail a guest 1 has failed with status 3, and cannot come"], []]


def test_different_names_never_meet() -> None:
    hall = _Hall(2)
    hall.barrier.heard(0, "wait a one")
    hall.barrier.heard(1, "wait b")
    why = "guest 0 waits at 'one'; guest 1 waits at a barrier without a name: they never meet"
    assert hall.answers == [[f"fail a {why}"], [f"fail b {why}"]]


def test_who_leaves_is_told_who_was_missing_and_no_longer_counts() -> None:
    hall = _Hall(4)
    hall.barrier.heard(0, "wait a")
    hall.barrier.heard(1, "wait b")
    hall.barrier.heard(0, "leave a")
    assert hall.answers[0] == ["fail a waited too long for guests 2, 3"]
    hall.barrier.heard(2, "wait c")
    hall.barrier.heard(3, "wait d")
    assert hall.answers[1:] == [[], [], []]
    assert hall.barrier.describe(1) == "it waited at a barrier without a name for guest 0"
    assert hall.barrier.describe(0) is None


def test_a_leave_that_comes_too_late_is_passed_over() -> None:
    hall = _Hall(2)
    hall.barrier.heard(0, "wait a")
    hall.barrier.heard(1, "wait b")
    hall.barrier.heard(0, "leave a")
    assert hall.answers == [["ok a"], ["ok b"]]


def test_a_new_question_replaces_one_whose_asker_was_killed() -> None:
    hall = _Hall(2)
    hall.barrier.heard(0, "wait a")
    hall.barrier.heard(0, "wait b")
    hall.barrier.heard(1, "wait c")
    assert hall.answers == [["ok b"], ["ok c"]]


@pytest.mark.parametrize("line", ["", "wait", "wait a b c", "wait {} x", "wait " + "x" * 65, "go a", "leave a", "\0"])
def test_other_lines_are_passed_over(line: str) -> None:
    hall = _Hall(2)
    hall.barrier.heard(0, line)
    hall.barrier.heard(1, "wait b")
    assert hall.answers == [[], []]
