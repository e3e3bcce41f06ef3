"""Boots several guests on one fabric; see conftest.py for how to leave these out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guest.conftest import Done, Guest

pytestmark = [pytest.mark.guest, pytest.mark.timeout(600)]

_TOOL = Path(__file__).parents[2] / "tools" / "two_guests.py"


def _of(done: Done, number: int) -> list[str]:
    """The lines that a guest printed."""
    begin = f"[{number}] "
    return [line.removeprefix(begin) for line in done.output.splitlines() if line.startswith(begin)]


def test_the_usual_programs_run_between_two_guests(tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    command = [sys.executable, str(_TOOL), "--short", "--json", str(answer)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    result = json.loads(answer.read_text())
    assert all(case["ok"] for case in result["cases"])
    for device in result["guests"]["devices"]:
        assert device["packets"]["sent"] >= 1000
        assert device["teardowns"] == [{"pages_outstanding": 0, "objects": 0}]


def test_three_guests_meet_and_are_told_apart(guest: Guest, tmp_path: Path) -> None:
    script = """
        for round in 1 2 3; do echo $round; softhca-barrier round$round || exit 1; done
        lid=$(cat /sys/class/infiniband/mlx5_1/ports/1/lid)
        echo "$GUEST of $GUESTS has $(ibv_devices | grep -c mlx5), $((lid))" > own; cat own >&2; exit $((GUEST * 3))
    """
    done = guest("--guests", "3", "--devices", "2", "--copy-out", f"own:{tmp_path}/own", "--", script)
    assert (done.status, done.verdict["verdict"]) == (3, "command")
    assert [_of(done, number) for number in range(3)] == [["1", "2", "3"]] * 3
    for number, one in enumerate(done.verdict["guests"]):
        line = f"{number} of 3 has 2, {2 * number + 2}\n"
        assert (one["guest"], one["status"], one["output"], one["error"]) == (number, 3 * number, "1\n2\n3\n", line)
        assert (tmp_path / f"own.{number}").read_text() == line
        assert [device["lid"] for device in one["devices"]] == [2 * number + 1, 2 * number + 2]


def test_a_guest_that_fails_releases_and_ends_the_others(guest: Guest) -> None:
    script = "[ $GUEST = 1 ] && exit 7; softhca-barrier; echo $?; sleep 1000"
    done = guest("--guests", "2", "--devices", "0", "--grace", "2", "--", script)
    assert (done.status, done.verdict["verdict"]) == (7, "command")
    first = done.verdict["guests"][0]
    assert (first["verdict"], first["output"]) == ("stopped", "1\n")
    assert first["error"] == "softhca-barrier: guest 1 has failed with status 7, and cannot come\n"
    assert first["reason"] == "ended 2 s after guest 1 has failed with status 7"
    assert f"guest 0: {first['reason']}" in done.error


def test_a_guest_that_dies_releases_and_ends_the_others(guest: Guest) -> None:
    crash = "echo 1 > /proc/sys/kernel/sysrq; echo c > /proc/sysrq-trigger; sleep 1000"
    script = f"[ $GUEST = 0 ] && {{ {crash}; }}; softhca-barrier; sleep 1000"
    done = guest("--guests", "2", "--grace", "1", "--", script)
    assert (done.status, done.verdict["verdict"]) == (126, "kernel")
    assert any("Kernel panic" in complaint["line"] for complaint in done.verdict["guests"][0]["kernel_complaints"])
    second = done.verdict["guests"][1]
    assert second["error"] == "softhca-barrier: guest 0 has died, and cannot come\n"
    assert (second["verdict"], second["kernel_complaints"]) == ("stopped", [])
    assert len(second["devices"]) == 1


def test_a_barrier_that_is_never_met(guest: Guest) -> None:
    script = """
        [ $GUEST = 1 ] && sleep 1000
        softhca-barrier -t 0.5; echo $?; timeout 0.5 softhca-barrier; echo $?; softhca-barrier last
    """
    done = guest("--guests", "2", "--devices", "0", "--timeout", "4", "--", script)
    assert (done.status, done.verdict["verdict"]) == (124, "timeout")
    assert _of(done, 0) == ["124", "124"]
    assert "[0] softhca-barrier: waited too long for guest 1" in done.error
    assert "guest 0: the command took too long; it waited at 'last' for guest 1" in done.error


def test_mistakes_with_the_barrier(guest: Guest) -> None:
    wrong = ("-t 0", "-t x", "a b", "a/b", "-x")
    script = "; ".join(["softhca-barrier", *(f"softhca-barrier {words}; echo $?" for words in wrong)])
    done = guest("--devices", "0", "--", script)
    assert done.output == "2\n" * len(wrong)
    assert done.error.count("usage: softhca-barrier") == len(wrong)
