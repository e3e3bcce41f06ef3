from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from softhca.cli.fault import fault
from softhca.cli.run import run
from softhca.points.catalogue import CARD_EFFECTS, POINTS


def play(*arguments: str) -> Result:
    return CliRunner().invoke(run, ["--clock", "virtual", *arguments])


def test_a_fault_ends_a_run_with_the_error_of_the_driver() -> None:
    result = play("--fault", "command=CREATE_CQ nth=2 status=NO_RESOURCES")
    assert result.exit_code == 1
    assert "Error: CREATE_CQ (0x400) failed: NO_RESOURCES (0xf), syndrome 0xca010030" in result.output
    assert "acted 1 times" in result.output


def test_a_rule_that_never_acted_is_named() -> None:
    result = play("--fault", "command=CREATE_CQ nth=200 lost")
    assert result.exit_code == 0
    assert "nth=200 lost': never acted (of 2 events that it is for)" in result.output


@pytest.mark.requirement("D10")
def test_a_late_command_is_waited_for() -> None:
    assert play("--fault", "command=CREATE_CQ late=30s").exit_code == 0


@pytest.mark.requirement("D10")
def test_a_lost_command_times_out() -> None:
    result = play("--fault", "command=CREATE_CQ lost")
    assert result.exit_code == 1
    assert "CREATE_CQ (0x400) did not complete in 60 s; slot" in result.output


def test_rules_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text('[[fault]]\ncommand = "ALLOC_PD"\nstatus = "EXCEED_LIM"\n')
    assert "ALLOC_PD (0x800) failed: EXCEED_LIM" in play("--fault", str(path)).output


def test_a_wrong_rule_is_refused_before_anything_runs() -> None:
    result = play("--fault", "command=CREATE_CQX lost")
    assert result.exit_code == 2
    assert "did you mean CREATE_CQ" in result.output
    assert "firmware start" not in result.output


def test_the_list_has_every_point_and_effect() -> None:
    text = CliRunner().invoke(fault, ["--list"]).output
    document = json.loads(CliRunner().invoke(fault, ["--list", "--json"]).output)
    assert [point["name"] for point in document["points"]] == list(POINTS)
    for point in POINTS.values():
        assert point.name in text
        for effect in (*point.effects, *CARD_EFFECTS):
            assert effect.name in text


def test_each_example_of_the_list_is_a_rule() -> None:
    from softhca.cli.fault import EXAMPLES

    result = CliRunner().invoke(fault, [word for rule, _ in EXAMPLES for word in ("--check", rule)])
    assert result.exit_code == 0, result.output
    assert result.output.count("\n") == len(EXAMPLES)


def test_check_says_what_is_wrong() -> None:
    result = CliRunner().invoke(fault, ["--check", "event=COMPL drop"])
    assert result.exit_code == 2
    assert "'COMPL'" in result.output
