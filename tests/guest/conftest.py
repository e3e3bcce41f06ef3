"""What tests of guests share: `softhca guest` as a program."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Done:
    """How `softhca guest` ended."""

    status: int
    output: str
    error: str
    verdict: dict[str, Any]


Guest = Callable[..., Done]


@pytest.fixture
def guest(tmp_path: Path) -> Guest:
    def run(*arguments: str) -> Done:
        verdict = tmp_path / "verdict.json"
        command = [sys.executable, "-m", "softhca.cli.guest", "--json", str(verdict), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert verdict.is_file(), done.stderr
        return Done(done.returncode, done.stdout, done.stderr, json.loads(verdict.read_text()))

    return run
