from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator

import pytest

from softhca.bus import Engine, VirtualClock
from softhca.vfio_user import Loop
from tests.vfio_user.conftest import open_fds

MILLISECOND = 1_000_000


@pytest.fixture
def loop() -> Iterator[Loop]:
    before = open_fds()
    loop = Loop(budget=10)
    yield loop
    loop.close()
    assert open_fds() == before


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair()
    left.setblocking(False)
    with left, right:
        yield left, right


def test_readers_and_writers_are_called_when_ready(loop: Loop, ends: tuple[socket.socket, socket.socket]) -> None:
    left, right = ends
    seen: list[bytes] = []
    loop.add_reader(left, lambda: seen.append(left.recv(9)))
    loop.run_once(0)
    right.send(b"one")
    loop.run_once()
    loop.add_writer(left, lambda: seen.append(b"writable"))
    right.send(b"two")
    loop.run_once()
    loop.remove_reader(left)
    right.send(b"three")
    loop.run_once()
    loop.remove_writer(left)
    loop.remove_writer(left)
    loop.run_once(0)
    assert seen == [b"one", b"two", b"writable", b"writable"]


def test_a_callback_may_take_itself_and_others_away(loop: Loop, ends: tuple[socket.socket, socket.socket]) -> None:
    seen: list[str] = []

    def remove_all(name: str) -> None:
        seen.append(name)
        for end in ends:
            loop.remove_reader(end)

    loop.add_reader(ends[0], lambda: remove_all("left"))
    loop.add_reader(ends[1], lambda: remove_all("right"))
    ends[0].send(b"x")
    ends[1].send(b"x")
    loop.run_once(0)
    loop.run_once(0)
    assert len(seen) == 1


def test_a_replaced_reader_is_not_called(loop: Loop, ends: tuple[socket.socket, socket.socket]) -> None:
    seen: list[str] = []
    loop.add_reader(ends[0].fileno(), lambda: seen.append("old"))
    loop.add_reader(ends[0], lambda: seen.append("new"))
    ends[1].send(b"x")
    loop.run_once(0)
    assert seen == ["new"]


def test_an_engine_has_its_turn_and_no_more(loop: Loop) -> None:
    engine, other = Engine(VirtualClock()), Engine(VirtualClock())
    done: list[str] = []
    for _ in range(25):
        engine.post(lambda: done.append("flood"))
    other.post(lambda: done.append("other"))
    loop.add_engine(engine)
    loop.add_engine(other)
    loop.add_engine(engine)
    loop.run_once(0)
    assert (done.count("flood"), done.count("other")) == (10, 1)
    loop.run_once()  # work is ready: it does not wait
    loop.run_once()
    assert done.count("flood") == 25


def test_work_posted_between_rounds_is_not_slept_over(loop: Loop) -> None:
    engine = Engine()
    loop.add_engine(engine)
    loop.run_once(0)
    done: list[int] = []
    engine.post(lambda: done.append(1))
    loop.run_once()
    assert done == [1]


def test_the_wait_ends_with_the_first_deadline(loop: Loop) -> None:
    slow, fast = Engine(), Engine()
    done: list[str] = []
    loop.add_engine(slow)
    loop.add_engine(fast)
    slow.after(3600_000 * MILLISECOND, lambda: done.append("slow"))
    fast.after(2 * MILLISECOND + MILLISECOND // 2, lambda: done.append("fast"))
    start = time.monotonic_ns()
    while not done:
        loop.run_once()
    assert done == ["fast"]
    assert time.monotonic_ns() - start >= 2 * MILLISECOND


def test_the_timeout_comes_before_a_later_deadline(loop: Loop) -> None:
    engine = Engine()
    loop.add_engine(engine)
    engine.after(3600_000 * MILLISECOND, lambda: None)
    loop.run_once(0.001)


def test_a_socket_comes_before_a_deadline(loop: Loop, ends: tuple[socket.socket, socket.socket]) -> None:
    engine = Engine()
    loop.add_engine(engine)
    engine.after(3600_000 * MILLISECOND, lambda: None)
    seen: list[bytes] = []
    loop.add_reader(ends[0], lambda: seen.append(ends[0].recv(9)))
    ends[1].send(b"x")
    loop.run_once()
    assert seen == [b"x"]


def test_a_virtual_clock_moves_when_all_is_idle(loop: Loop) -> None:
    clock = VirtualClock()
    engine = Engine(clock)
    loop.add_engine(engine)
    done: list[int] = []
    engine.after(MILLISECOND, lambda: done.append(clock.now()))
    loop.run_once(0)
    assert (done, clock.now()) == ([], 0)
    loop.run_once()
    assert done == [MILLISECOND]


def test_a_descriptor_number_may_be_used_again(loop: Loop) -> None:
    for _ in range(3):
        reader, writer = os.pipe()
        seen: list[bytes] = []
        loop.add_reader(reader, lambda fd=reader, seen=seen: seen.append(os.read(fd, 9)))  # type: ignore[misc]
        os.write(writer, b"x")
        loop.run_once(0)
        assert seen == [b"x"]
        loop.remove_reader(reader)
        os.close(reader)
        os.close(writer)


def test_run_goes_on_until_it_is_interrupted(loop: Loop, ends: tuple[socket.socket, socket.socket]) -> None:
    left, right = ends
    seen: list[bytes] = []

    def read() -> None:
        seen.append(left.recv(1))
        if seen[-1] == b"c":
            loop.interrupt()

    loop.add_reader(left, read)
    right.send(b"abcd")
    loop.run(60)
    assert seen == [b"a", b"b", b"c"]


def test_run_ends_with_its_time(loop: Loop) -> None:
    begin = time.monotonic()
    loop.run(0.01)
    assert time.monotonic() - begin >= 0.01
    loop.run(0)


def test_an_interrupt_from_before_does_not_count(loop: Loop, ends: tuple[socket.socket, socket.socket]) -> None:
    left, right = ends
    loop.interrupt()
    loop.add_reader(left, loop.interrupt)
    right.send(b"x")
    loop.run(60)
    assert left.recv(9) == b"x"


def test_a_file_that_is_ready_long_before_a_deadline_is_served_at_once(
    loop: Loop, ends: tuple[socket.socket, socket.socket]
) -> None:
    left, right = ends
    engine, fired = Engine(), list[int]()
    engine.after(3_600_000 * MILLISECOND, lambda: fired.append(1))
    loop.add_engine(engine)
    loop.add_reader(left, lambda: fired.append(len(left.recv(9))))
    right.send(b"x")
    loop.run_once()
    assert fired == [1]
