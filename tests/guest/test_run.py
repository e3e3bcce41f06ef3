from __future__ import annotations

from pathlib import Path

import pytest

from softhca.bus.engine import Engine
from softhca.guest import lab
from softhca.guest.cache import Cache
from softhca.guest.errors import LabError
from softhca.guest.options import MAX_DEVICES, Options, Served, Streams
from softhca.guest.run import Run
from softhca.guest.verdict import Outcome
from tests.guest.dummy import Dummy


def _carry_out(tmp_path: Path, options: Options, devices: list[Served] | None = None) -> tuple[Outcome, list[str]]:
    said: list[str] = []
    streams = Streams(bytearray().extend, bytearray().extend)
    run = Run(options, [devices or []], [streams], said.append, cache=Cache(tmp_path / "cache"))
    return run.carry_out("true").guests[0], said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(copy_in=[Path("/none")]), "--copy-in /none"),
        (Options(allow_kernel=["("]), "not a regular expression"),
    ],
)
def test_mistakes_are_found_before_anything_is_built(tmp_path: Path, options: Options, message: str) -> None:
    outcome, said = _carry_out(tmp_path, options)
    assert outcome.verdict == "lab"
    assert message in (outcome.lab_error or "")
    assert said == []
    assert list((tmp_path / "cache").iterdir()) == []


def test_too_many_devices(tmp_path: Path) -> None:
    dummy = Dummy(Engine())
    outcome, _ = _carry_out(tmp_path, Options(), [Served(dummy, dummy.summary)] * (MAX_DEVICES + 1))
    assert (outcome.lab_error or "").startswith("17 devices: at most 16")


@pytest.mark.parametrize("failure", [LabError("no network"), ZeroDivisionError("a defect")])
def test_a_failure_of_the_lab_is_told_and_its_logs_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def fail(*arguments: object) -> None:
        raise failure

    monkeypatch.setattr(lab, "obtain", fail)
    dummy = Dummy(Engine())
    keep = tmp_path / "keep"
    outcome, _ = _carry_out(tmp_path, Options(keep=keep), [Served(dummy, dummy.summary)])
    assert (outcome.verdict, outcome.exit) == ("lab", 125)
    assert str(failure) in (outcome.lab_error or "")
    assert outcome.devices == [dummy.summary()]
    assert (keep / "verdict.json").is_file()
