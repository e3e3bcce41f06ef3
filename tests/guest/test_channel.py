from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softhca.guest.agent import Stream
from softhca.guest.channel import Channel, Monitor
from softhca.guest.errors import LabError
from softhca.vfio_user.loop import Loop


@pytest.fixture
def loop() -> Iterator[Loop]:
    with closing(Loop()) as loop:
        yield loop


@pytest.fixture
def channel(loop: Loop) -> Iterator[Channel]:
    with closing(Channel(loop, "test")) as channel:
        yield channel


def test_more_than_the_socket_holds_is_sent_as_the_other_side_reads(loop: Loop, channel: Channel) -> None:
    data = bytes(range(256)) * 20000
    channel.send(data)
    assert not channel.idle
    got = bytearray()
    while len(got) < len(data):
        got += channel.theirs.recv(1 << 16)
        loop.run_once(0)
    assert got == data
    assert channel.idle


def test_lines(loop: Loop, channel: Channel) -> None:
    channel.theirs.sendall(b"one\ntwo\nthr")
    loop.run_once(0)
    assert [channel.take_line() for _ in range(3)] == ["one", "two", None]
    channel.theirs.sendall(b"ee\n")
    loop.run_once(0)
    assert channel.take_line() == "three"


def test_the_other_sides_end_is_noticed(loop: Loop, channel: Channel) -> None:
    channel.theirs.sendall(b"last")
    channel.theirs.close()
    loop.run_once(0)
    loop.run_once(0)
    assert channel.closed
    assert channel.received == b"last"
    channel.send(b"into the void")


def _answer(channel: Channel, loop: Loop, *messages: object) -> None:
    channel.theirs.sendall(b"".join(json.dumps(message).encode() + b"\r\n" for message in messages))
    loop.run_once(0)


def test_monitor(loop: Loop, channel: Channel) -> None:
    monitor = Monitor(channel)
    _answer(channel, loop, {"QMP": {}})
    first = monitor.request("stop")
    second = monitor.request("device_add", {"id": "x"})
    assert monitor.greeted is False
    _answer(
        channel, loop, {"event": "STOP"}, {"return": {"a": 1}, "id": first}, {"error": {"desc": "no"}, "id": second}
    )
    assert monitor.answered(second)
    assert monitor.greeted is True
    assert [event["event"] for event in monitor.events] == ["STOP"]
    assert monitor.answer(first) == {"a": 1}
    with pytest.raises(LabError, match="no"):
        monitor.answer(second)
    sent = [json.loads(line) for line in channel.theirs.recv(4096).splitlines()]
    assert [message["execute"] for message in sent] == ["stop", "device_add"]
    assert sent[1]["arguments"] == {"id": "x"}


@given(
    data=st.lists(st.sampled_from([b"text", b"\0", b"\0end ", b"\0end toke", b"\n", b"end token\0"])).map(b"".join),
    cuts=st.lists(st.integers(1, 12)),
)
def test_output_passes_unchanged_up_to_the_mark_however_it_is_cut(data: bytes, cuts: list[int]) -> None:
    mark = b"\0end token\0"
    if mark in data + mark[:-1]:
        return
    with closing(Loop()) as loop, closing(Channel(loop, "out")) as channel:
        got = bytearray()
        stream = Stream(channel, got.extend, "token")
        left = data + mark
        for cut in [*cuts, len(left)]:
            channel.received += left[:cut]
            left = left[cut:]
            stream.poll()
            if stream.ended:
                break
        assert stream.ended
        assert got == data
        assert not channel.received
