from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis.strategies import binary, text

from softhca.points.catalogue import COMMAND_COMPLETED, COMMAND_RECEIVED, EQE, FAIL, POINTS, TIME
from softhca.points.rules import MOST_BYTES, MOST_RULES, RuleError, Rules, parse_file, parse_keys, parse_line
from softhca.prm.events import EventType
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus

CREATE_CQ = (0, Opcode.CREATE_CQ, 0, b"")
CREATE_QP = (0, Opcode.CREATE_QP, 0, b"")


def test_a_line_names_what_where_and_when() -> None:
    rule = parse_line("command=CREATE_CQ nth=3 status=NO_RESOURCES syndrome=0x1234")
    assert rule.point is COMMAND_RECEIVED
    assert rule.effect is FAIL
    assert rule.value == CommandStatus.NO_RESOURCES
    assert rule.more == {"syndrome": 0x1234}
    assert (rule.nth, rule.count) == (3, 1)


def test_nth_and_count_say_which_of_the_events() -> None:
    rules = Rules([parse_line("command=CREATE_CQ nth=2 count=2 status=BAD_PARAM")])
    acted = [rules.match(0, 0, COMMAND_RECEIVED, CREATE_CQ) is not None for _ in range(5)]
    assert acted == [False, True, True, False, False]
    assert rules.match(0, 0, COMMAND_RECEIVED, CREATE_QP) is None
    (rule,) = rules.rules
    assert (rule.seen, rule.fired) == (5, 2)


def test_count_0_is_for_ever() -> None:
    rules = Rules([parse_line("command=CREATE_CQ nth=2 count=0 lost")])
    acted = [rules.match(0, 0, COMMAND_RECEIVED, CREATE_CQ) is not None for _ in range(20)]
    assert acted == [False] + [True] * 19


def test_of_several_rules_the_first_acts_and_all_count() -> None:
    rules = Rules([parse_line("command=CREATE_CQ lost"), parse_line("command=CREATE_CQ nth=2 delay=1ms")])
    faults = [rules.match(0, 0, COMMAND_RECEIVED, CREATE_CQ) for _ in range(3)]
    assert [fault and fault.effect.name for fault in faults] == ["lost", "delay", None]
    assert faults[1] is not None
    assert faults[1].value == 1_000_000


def test_card_and_function_choose_whose_events() -> None:
    rules = Rules([parse_line("event=COMP card=1 function=2 count=0 drop")])
    event = (1, EventType.COMP, 0, b"")
    assert rules.match(0, 2, EQE, event) is None
    assert rules.match(1, 0, EQE, event) is None
    assert rules.match(1, 2, EQE, event) is not None


def test_a_probability_is_reproducible() -> None:
    def draw(seed: int) -> list[bool]:
        rules = Rules([parse_line(f"event=COMP count=0 probability=0.3 seed={seed} drop")])
        return [rules.match(0, 0, EQE, (1, EventType.COMP, 0, b"")) is not None for _ in range(1000)]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)
    assert 200 < sum(draw(1)) < 400


def test_a_named_point_decides_what_a_key_is() -> None:
    rule = parse_line("point=command.completed status=OK late=2s")
    assert rule.point is COMMAND_COMPLETED
    assert rule.match == ((4, CommandStatus.OK),)
    assert rule.value == 2_000_000_000


def test_an_effect_on_the_card_has_a_time_or_any_point() -> None:
    rule = parse_line("at=1.5s raise=FW_INTERNAL_ERR fatal")
    assert (rule.point, rule.at, rule.more) == (TIME, 1_500_000_000, {"fatal": 1})
    assert parse_line("command=INIT_HCA remove").point is COMMAND_RECEIVED


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("command=CREATE_CQX status=BAD_OP", "key 'command': 'CREATE_CQX': did you mean"),
        ("comand=CREATE_CQ lost", "key 'comand': did you mean 'command'"),
        ("command=CREATE_CQ status=NO_RESOURCE", "did you mean 'NO_RESOURCES'"),
        ("command=CREATE_CQ", "no effect; allowed are"),
        ("command=CREATE_CQ lost delay=1ms", "a rule has one effect"),
        ("command=CREATE_CQ delay=1", "allowed is a number with ns, us, ms or s"),
        ("command=CREATE_CQ lost=maybe", "allowed is true"),
        ("command=CREATE_CQ nth=0 lost", "key 'nth': '0', allowed is 0x1 to"),
        ("command=CREATE_CQ count=-1 lost", "key 'count': '-1', allowed is 0x0 to"),
        ("command=CREATE_CQ status=300", "allowed are BAD_INDEX"),
        ("command=CREATE_CQ delivery=99", "allowed are BAD_BLOCK_NUMBER"),
        ("command=CREATE_CQ status=BAD_OP syndrome=0x1ffffffff", "allowed is 0x0 to 0xffffffff"),
        ("command=CREATE_CQ status=BAD_OP syndrome=-1", "allowed is 0x0 to 0xffffffff"),
        ("at=1ms raise=999", "allowed are ASYNCHRONOUS_EQ_BUF_OVERRUN"),
        ("command=CREATE_CQ nth=x lost", "key 'nth': 'x', allowed is a number"),
        ("command=CREATE_CQ probability=2 lost", "allowed is 0 to 1"),
        ("command=CREATE_CQ command=CREATE_QP lost", "stands twice"),
        ("command= lost", "is not key=value"),
        ("point=comand.received lost", "did you mean 'command.received'"),
        ("point=eqe lost", "point eqe has no effect 'lost'; allowed are drop, duplicate, raise"),
        ("point=eqe command=CREATE_CQ drop", "point eqe has no such field"),
        ("input=00 lost", "no rule matches on bytes"),
        ("drop", "key 'point' is needed, one of"),
        ("remove", "needs a point, or the time `at`"),
        ("at=1s drop", "key 'at' goes with an effect on the card"),
        ("slot=99999999999999999999999 lost", "allowed is a number"),
    ],
)
def test_a_wrong_rule_is_refused_with_key_and_what_is_allowed(line: str, says: str) -> None:
    with pytest.raises(RuleError) as refused:
        parse_line(line, "--fault")
    assert str(refused.value).startswith("--fault: ")
    assert says in str(refused.value)


def test_a_file_has_a_table_for_each_rule(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(
        '# a comment\n[[fault]]\ncommand = "CREATE_CQ"\nnth = 2\nstatus = "BAD_PARAM"\n\n'
        '[[fault]]\nevent = "CMD"\ncount = 0\ndrop = true\n'
    )
    first, second = parse_file(path)
    assert (first.point, first.nth, first.value) == (COMMAND_RECEIVED, 2, CommandStatus.BAD_PARAM)
    assert (second.point, second.count) == (EQE, 0)
    assert first.source == f"{path}, line 2"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('[[fault]]\nlost = true\ncommand = "X"\n', "line 1: key 'command'"),
        ("[[fault]]\n\n[[fault]]\nlost = 3\n", "line 1: no effect"),
        ("fault = 3\n", "a list of tables"),
        ('[[fualt]]\ncommand = "X"\n', "key 'fualt'"),
        ("[[fault]\n", "line 1"),
        ("[[fault]]\nlost = true\n" * (MOST_RULES + 1), f"at most {MOST_RULES}"),
        ("#" * (MOST_BYTES + 1), f"more than {MOST_BYTES} bytes"),
        ("x = " + "[" * 100_000, ":"),
        ("[[fault]]\nslot = " + "9" * 5000 + "\nlost = true\n", "digits"),
        ("[[fault]]\nslot = " + "9" * 50 + "\nlost = true\n", "line 1: key 'slot'"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(content)
    with pytest.raises(RuleError) as refused:
        parse_file(path)
    assert str(path) in str(refused.value)
    assert says in str(refused.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="No such file"):
        parse_file(tmp_path / "none.toml")


@given(text(max_size=200))
def test_any_text_is_a_rule_or_refused(line: str) -> None:
    with suppress(RuleError):
        parse_line(line)


@given(binary(max_size=300))
def test_any_bytes_are_rules_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("rules") / "rules.toml"
    path.write_bytes(b"[[fault]]\n" + data)
    with suppress(RuleError):
        parse_file(path)


def test_each_effect_of_each_point_can_be_said() -> None:
    for point in POINTS.values():
        for effect in point.effects:
            kind = effect.value
            value: object = next(iter(kind.names.__members__)) if kind.names else True
            if kind.kind.name == "TIME":
                value = "1ms"
            rule = parse_keys({"point": point.name, effect.name: value}, "test")
            assert (rule.point, rule.effect) == (point, effect)


def test_a_rule_that_was_taken_away_does_not_act_when_its_time_comes() -> None:
    rules = Rules([parse_line("at=1s remove")])
    (rule,) = rules.rules
    rules.clear()
    assert not rule.come()
    assert rule.fired == 0


def test_an_opcode_without_a_name_can_be_matched() -> None:
    assert parse_line("command=0xeee lost").match == ((1, 0xEEE),)
