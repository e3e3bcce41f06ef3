"""The tools that run whole programs in guests; see conftest.py for how to leave these out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.guest, pytest.mark.timeout(900)]

_TOOLS = Path(__file__).parents[2] / "tools"


def _run(tmp_path: Path, tool: str, *arguments: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    answer = tmp_path / "answer.json"
    command = [sys.executable, str(_TOOLS / tool), "--json", str(answer), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.is_file(), done.stderr
    return done, json.loads(answer.read_text())


def test_the_usual_tools_run_and_payloads_are_right(tmp_path: Path) -> None:
    done, answer = _run(tmp_path, "guest_smoke.py", "--short")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert all(case["ok"] for case in answer["cases"])


@pytest.mark.requirement("G3", "G4", "G5", "B11")
def test_each_wrong_use_gives_what_the_error_table_says(tmp_path: Path) -> None:
    done, answer = _run(tmp_path, "guest_errors.py")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert len(answer["rows"]) >= 70
    assert not any(row["wrong"] for row in answer["rows"])


@pytest.mark.requirement("A2", "A7", "F1", "G5")
def test_many_queue_pairs_of_several_processes_leave_nothing_behind(tmp_path: Path) -> None:
    done, answer = _run(tmp_path, "guest_mixed.py", "--seconds", "10")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert sum(process["queue_pairs"] for process in answer["processes"]) == 64
    assert not answer["wrong"]


def test_the_suite_is_counted_by_module(tmp_path: Path) -> None:
    done, answer = _run(tmp_path, "rdma_core_suite.py", "test_pd", "test_addr")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    modules = {module["module"]: module for module in answer["modules"]}
    assert set(modules) == {"test_pd", "test_addr"}
    assert modules["test_pd"]["ok"] >= 4
    for module in modules.values():
        assert set(module) == {"module", "ok", "skipped", "failed", "reasons"}
        assert module["failed"] == 0
        assert len(module["reasons"]) == module["skipped"]


def test_a_module_that_cannot_be_run_is_a_failure_and_the_next_one_runs(tmp_path: Path) -> None:
    done, answer = _run(tmp_path, "rdma_core_suite.py", "test_nothing", "test_pd")
    assert done.returncode == 1
    lost, pd = answer["modules"]
    assert (lost["failed"], pd["failed"]) == (1, 0)
    assert pd["ok"] >= 4
