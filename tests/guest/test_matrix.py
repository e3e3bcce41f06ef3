"""The short form of `make matrix` in a guest, and what the tool makes of what it is told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import guest_matrix
from guest_matrix import Bug
from matrix_bench import Bench
from matrix_scenarios import ANY_OF_THE_DRIVER, SHORT, Scenario, status_faults
from softhca.guest.agent import KernelLine
from softhca.prm.status import CommandStatus

_TOOL = Path(guest_matrix.__file__)
WARNING = "WARNING: CPU: 1 PID: 77 at drivers/net/x.c:12 f+0x1/0x2 [mlx5_core]"
BUG = Bug("WARNING: CPU: * PID: * at drivers/net/x.c:12 f+0x1/0x2 [mlx5_core]", "x.c:12 f", "it is", "^fault: A")


def _nothing(bench: Bench) -> str:
    del bench
    return ""


@pytest.mark.guest
@pytest.mark.timeout(600)
def test_the_driver_gives_up_cleanly_and_comes_back(tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    command = [sys.executable, str(_TOOL), "--short", "--json", str(answer)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    rows = {row["name"]: row for row in json.loads(answer.read_text())["scenarios"]}
    assert set(SHORT) <= set(rows)
    assert all(row["ok"] for row in rows.values())


@pytest.mark.parametrize(
    ("title", "text", "noise", "complaints", "bugs"),
    [
        ("A fails", WARNING, (), 0, ["x.c:12 f"]),
        ("B fails", WARNING, ANY_OF_THE_DRIVER, 1, []),
        ("A fails", WARNING.replace(":12", ":13"), ANY_OF_THE_DRIVER, 1, []),
        ("A fails", WARNING + " more", (), 1, []),
        ("A fails", "mlx5_core 0000:01:00.0: it failed", ANY_OF_THE_DRIVER, 0, []),
        ("A fails", "mlx5_core 0000:01:00.0: it failed", (), 1, []),
    ],
)
def test_a_complaint_is_excepted_by_its_exact_line_only(
    title: str, text: str, noise: tuple[str, ...], complaints: int, bugs: list[str]
) -> None:
    scenario = Scenario("fault", title, _nothing, noise=noise)
    left, found = guest_matrix.sort_out([KernelLine(3, 1.0, text)], scenario, [BUG])
    assert (len(left), found) == (complaints, bugs)


def test_every_entry_of_driver_bugs_is_complete() -> None:
    for bug in guest_matrix.read_bugs():
        assert all((bug.line, bug.source, bug.why, bug.scenarios))


def test_the_short_form_is_a_part_of_the_long_one() -> None:
    scenarios = status_faults([(0x104, 0), (0x100, 1)], CommandStatus.INTERNAL_ERR)
    assert [(scenario.name, scenario.short) for scenario in scenarios] == [
        ("ENABLE_HCA 0x0 fails", True),
        ("QUERY_HCA_CAP 0x1 fails", False),
    ]
