from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis.strategies import binary

from softhca.points.catalogue import COMMAND_COMPLETED, COMMAND_RECEIVED, EQE, POINTS
from softhca.points.point import Kind
from softhca.prm.events import EventType
from softhca.prm.opcodes import Opcode
from softhca.trace.commands import commands
from softhca.trace.reader import MOST_LINE, Trace, TraceError
from softhca.trace.recorder import BATCH, SECOND, Recorder, decoded

CREATE_CQ_IN = Opcode.CREATE_CQ.to_bytes(2, "big") + bytes(14) + bytes(64) + bytes(192)
HEADER = {"clock": "virtual", "cards": ["connectx-7-ib"]}


def recorded(path: Path, *events: tuple[object, ...]) -> list[dict[str, object]]:
    recorder = Recorder(path, HEADER)
    for time, point, *values in events:
        recorder.record(time, 0, 0, point, tuple(values))  # type: ignore[arg-type]
    recorder.close()
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_an_event_has_time_place_and_fields_by_name(tmp_path: Path) -> None:
    header, event = recorded(tmp_path / "t", (1234, EQE, 3, EventType.COMP, 0, b"\x01\x02"))
    assert header["format"] == "softhca trace"
    assert header["cards"] == ["connectx-7-ib"]
    assert event == {
        "t": 1234, "card": 0, "function": 0, "point": "eqe", "eqn": 3, "event": "COMP", "sub_type": 0, "data": "0102"
    }  # fmt: skip


def test_a_number_without_a_name_stands_as_it_is(tmp_path: Path) -> None:
    _, event = recorded(tmp_path / "t", (0, COMMAND_RECEIVED, 0, 0xEEEE, 0, b""))
    assert event["command"] == 0xEEEE
    assert event["decoded"] == {}


def test_what_is_not_zero_of_a_command_is_decoded(tmp_path: Path) -> None:
    message = bytearray(Opcode.ALLOC_PD.to_bytes(2, "big") + bytes(14))
    answer = bytes.fromhex("00000000 00000000 00000017 00000000")
    _, first, last = recorded(
        tmp_path / "t",
        (0, COMMAND_RECEIVED, 4, Opcode.ALLOC_PD, 0, bytes(message)),
        (9, COMMAND_COMPLETED, 4, Opcode.ALLOC_PD, 0, 0, 0, 0, answer),
    )
    assert first["decoded"] == {"opcode": "ALLOC_PD"}
    assert last["decoded"] == {"pd": 0x17}
    assert (last["status"], last["delivery"]) == ("OK", "OK")


@given(binary(max_size=600))
def test_any_message_can_be_recorded(message: bytes) -> None:
    for opcode in (Opcode.CREATE_QP, Opcode.MANAGE_PAGES, Opcode.QUERY_HCA_CAP, 0xFFFF):
        json.dumps(decoded(opcode, message, reply=False))
        json.dumps(decoded(opcode, message, reply=True))


def test_each_point_can_be_recorded(tmp_path: Path) -> None:
    example = {Kind.BYTES: b"\xff", Kind.TEXT: 'a "quoted"\n<b>', Kind.NAME: 1}
    events = [(1, point, *(example.get(field.kind, 1) for field in point.fields)) for point in POINTS.values()]
    lines = recorded(tmp_path / "t", *events)
    assert [line["point"] for line in lines[1:]] == list(POINTS)


def test_events_are_written_in_batches(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "t", {})
    for time in range(BATCH):
        assert recorder.written == 0
        recorder.record(time, 0, 0, EQE, (1, 0, 0, b""))
    assert recorder.written == BATCH
    recorder.close()


def test_a_full_disk_ends_the_recording_alone() -> None:
    recorder = Recorder(Path("/dev/full"), {})
    for time in range(2 * BATCH):
        recorder.record(time, 0, 0, EQE, (1, 0, 0, b""))
    recorder.close()
    assert recorder.failure is not None


def test_what_was_recorded_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t"
    recorded(path, (5, EQE, 1, 0, 0, b""), (6, EQE, 2, 0, 0, b""))
    trace = Trace(path)
    assert [(event.time, event.fields["eqn"]) for event in trace.events()] == [(5, 1), (6, 2)]
    assert not trace.cut


def test_a_last_line_that_is_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "t"
    recorded(path, (5, EQE, 1, 0, 0, b""), (6, EQE, 2, 0, 0, b""))
    path.write_bytes(path.read_bytes()[:-10])
    trace = Trace(path)
    assert [event.time for event in trace.events()] == [5]
    assert trace.cut


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "line 1: not the header"),
        (b"hello\n", "line 1"),
        (b"[]\n", "line 1: not an object"),
        (b'{"format":"softhca trace","version":99}\n', "version 99, this reads 1"),
        (b'{"format":"softhca trace","version":1}\n{"t":1}\n', "line 2: t, card and function"),
        (b'{"format":"softhca trace","version":1}\n{"t":1,"card":0,"function":0,"point":7}\n', "line 2: point"),
        (b'{"format":"softhca trace","version":1}\n' + b"x" * (MOST_LINE + 1), f"longer than {MOST_LINE}"),
        (b'{"format":"softhca trace","version":1}\n' + b"[" * 100_000 + b"\n", "line 2"),
    ],
)
def test_what_is_no_trace_is_refused_with_the_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "t"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=says):
        list(Trace(path).events())


def test_commands_are_put_together_by_function_and_slot(tmp_path: Path) -> None:
    path = tmp_path / "t"
    recorded(
        path,
        (10, COMMAND_RECEIVED, 0, Opcode.ALLOC_PD, 0, b""),
        (11, COMMAND_RECEIVED, 1, Opcode.ALLOC_UAR, 0, b""),
        (12, COMMAND_COMPLETED, 1, Opcode.ALLOC_UAR, 0, 0, 0, 0, b""),
        (20, COMMAND_COMPLETED, 0, Opcode.ALLOC_PD, 0, 0, 0xF, 0xCA010005, b""),
        (21, COMMAND_RECEIVED, 0, Opcode.ALLOC_PD, 0, b""),
    )
    first, second, third = commands(Trace(path).events())
    assert (first.opcode, first.took, first.failed, first.result) == ("ALLOC_PD", 10, True, "NO_RESOURCES")
    assert "ICM pages" in first.why
    assert (second.took, second.failed) == (1, False)
    assert (third.took, third.result) == (None, "never completed")


def test_an_event_is_not_kept_longer_than_a_second_before_the_next(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "t", {})
    for time in (SECOND // 2, 2 * SECOND):
        recorder.record(time, 0, 0, EQE, (1, 0, 0, b""))
    assert recorder.written == 2
    recorder.close()
