from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_TESTS = """
import pytest

@pytest.mark.guest
def test_in_a_guest():
    raise RuntimeError("ran")

def test_without():
    pass
"""


def _pytest(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(Path(__file__).parents[1] / "conftest.py", folder)
    (folder / "test_sample.py").write_text(_TESTS)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = guest: boots a guest\n")
    clean = {key: value for key, value in os.environ.items() if key not in ("CI", "SOFTHCA_NO_GUEST")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(folder), *arguments]
    return subprocess.run(command, env={**clean, **environment}, capture_output=True, text=True, check=False)


def test_guest_tests_run_unless_told_otherwise(tmp_path: Path) -> None:
    done = _pytest(tmp_path)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout


def test_left_out_tests_are_counted(tmp_path: Path) -> None:
    done = _pytest(tmp_path, SOFTHCA_NO_GUEST="1")
    assert done.returncode == 0
    assert "1 guest tests left out" in done.stdout


@pytest.mark.parametrize("arguments", [("-m", "guest")])
def test_a_run_of_guest_tests_alone_passes_when_they_are_left_out(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert _pytest(tmp_path, *arguments, SOFTHCA_NO_GUEST="1").returncode == 0


def test_refused_in_ci(tmp_path: Path) -> None:
    done = _pytest(tmp_path, SOFTHCA_NO_GUEST="1", CI="true")
    assert done.returncode == 4
    assert "refused when CI is set" in done.stdout + done.stderr
