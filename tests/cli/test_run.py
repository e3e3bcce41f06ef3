from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from softhca.cli import run as module
from softhca.cli.run import run
from softhca.driver import DriverError
from softhca.driver.bringup import STEPS
from tests.driver.conftest import PROFILES

WORDS = ("objects", "rdma write", "send", "queries", "close")


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(run, arguments)


def document(*arguments: str) -> dict[str, Any]:
    result = invoke("--json", *arguments)
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


@pytest.mark.parametrize("clock", ["real", "virtual"])
@pytest.mark.parametrize("profile", PROFILES)
def test_json_has_exactly_the_documented_form(profile: str, clock: str) -> None:
    found = document("--profile", profile, "--clock", clock)
    assert list(found) == ["profile", "ok", "stages", "commands", "rdma", "pages"]
    assert found["profile"] == profile
    assert found["ok"] is True
    assert [stage["name"] for stage in found["stages"]] == [name for name, _, _ in STEPS] + list(WORDS)
    for stage in found["stages"]:
        assert list(stage) == ["name", "commands", "ms"]
        assert stage["ms"] >= 0
    assert found["commands"] == sum(stage["commands"] for stage in found["stages"]) > 20
    assert found["rdma"] == {"writes": 1, "sends": 1, "bytes": (64 << 10) + (4 << 10), "verified": True}
    assert list(found["pages"]) == ["given", "returned", "outstanding"]
    assert found["pages"]["given"] == found["pages"]["returned"] > 0
    assert found["pages"]["outstanding"] == 0


def test_same_seed_with_virtual_clock_prints_the_same() -> None:
    arguments = ("--seed", "11", "--clock", "virtual")
    assert invoke("--json", *arguments).stdout == invoke("--json", *arguments).stdout
    assert invoke(*arguments).stdout == invoke(*arguments).stdout


def test_story_can_be_read_and_ends_with_no_page_outstanding() -> None:
    result = invoke("--clock", "virtual")
    assert result.exit_code == 0, result.output
    lines = result.stdout.rstrip().splitlines()
    assert lines[-1].endswith(" 0 pages outstanding")
    assert len(lines) < 80
    for word in ("ENABLE_HCA", "INIT_HCA", "proves:", "checked byte for byte", "pages given", *WORDS):
        assert word in result.stdout


def test_unknown_profile_is_a_clear_error() -> None:
    result = invoke("--profile", "connectx-99")
    assert result.exit_code == 1
    assert "connectx-99" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_failing_step_is_told_and_undone(monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]) -> None:
    def fail(*_: object) -> str:
        raise DriverError("the wire was cut")

    monkeypatch.setattr(module, "_write", fail)
    result = invoke(*form)
    assert result.exit_code == 1
    assert "Error: the wire was cut" in result.stderr
    if form:
        found = json.loads(result.stdout)
        assert found["ok"] is False
        assert found["rdma"]["verified"] is False
        assert found["pages"]["outstanding"] == 0
