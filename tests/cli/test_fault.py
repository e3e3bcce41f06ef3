from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from softhca.bus import Engine, VirtualClock
from softhca.cli.fault import fault
from softhca.cli.faults import answer_faults
from softhca.cli.run import run
from softhca.hca.device import Hca
from softhca.hca.profile import load_profile
from softhca.points.catalogue import CARD_EFFECTS, POINTS
from softhca.prm.init_segment import HealthSyndrome
from softhca.vfio_user import Loop
from softhca.vfio_user.control import Control


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


def test_rules_come_and_go_at_a_control_socket(tmp_path: Path) -> None:
    engine = Engine(VirtualClock())
    card = Hca(engine, load_profile("connectx-6-ib"))
    with closing(Loop()) as loop, closing(Control(loop, tmp_path / "control")) as control:
        answer_faults(control, [card])

        def ask(method: str, **params: object) -> dict[str, object]:
            line = json.dumps({"id": 1, "method": method, "params": params}).encode()
            found = json.loads(control.answer(line))
            assert isinstance(found, dict)
            return found

        assert ask("faults.list")["result"] == []
        assert ask("faults.add", rules=["command=ALLOC_PD lost", "at=1s raise=EQ_INV"])["result"] == 2
        assert ask("faults.add", rules=["point=dma fault"])["result"] == 3
        assert "did you mean" in str(ask("faults.add", rules=["comand=ALLOC_PD lost"])["error"])
        assert "a list of lines" in str(ask("faults.add", rules="x")["error"])
        engine.wait(lambda: False, 2_000_000_000)
        assert card.health.syndrome is HealthSyndrome.EQ_INV
        listed = ask("faults.list")["result"]
        assert isinstance(listed, list)
        assert [rule["acted"] for rule in listed] == [0, 1, 0]
        assert ask("faults.add", rules=["at=5s raise=HIGH_TEMP_ERR"])["result"] == 4
        assert ask("faults.clear")["result"] == 4
        engine.wait(lambda: False, 9_000_000_000)
        assert card.health.syndrome is HealthSyndrome.EQ_INV
        assert ask("faults.list")["result"] == []
