from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softhca.bus import Engine, RealClock, Timer, VirtualClock


def run_all(engine: Engine) -> None:
    while engine.run():
        pass


def order_of(seed: int | None, count: int = 20) -> list[int]:
    engine, done = Engine(VirtualClock(), seed=seed), list[int]()
    for number in range(count):
        engine.post(lambda number=number: done.append(number))  # type: ignore[misc]
    run_all(engine)
    return done


@given(st.one_of(st.none(), st.integers(0, 2**64)), st.integers(0, 60))
def test_each_task_runs_once_and_alike_for_a_seed(seed: int | None, count: int) -> None:
    order = order_of(seed, count)
    assert sorted(order) == list(range(count))
    assert order_of(seed, count) == order


@pytest.mark.requirement("D7")
def test_a_seed_reorders_and_no_seed_does_not() -> None:
    assert order_of(None) == list(range(20))
    assert order_of(1) != list(range(20))
    assert order_of(1) != order_of(2)


def test_the_budget_bounds_a_turn() -> None:
    engine, done = Engine(VirtualClock()), list[int]()

    def again() -> None:
        done.append(1)
        engine.post(again)

    assert not engine.ready
    engine.post(again)
    assert engine.ready
    assert engine.run(budget=10) is True
    assert len(done) == 10


def test_an_empty_engine_has_nothing_to_do() -> None:
    assert Engine(VirtualClock()).run() is False
    assert Engine(VirtualClock()).next_deadline() is None


def test_a_task_that_raises_is_over() -> None:
    engine, done = Engine(VirtualClock(), seed=None), list[int]()

    def fail() -> None:
        raise RuntimeError("a bug")

    engine.post(fail)
    engine.post(lambda: done.append(1))
    with pytest.raises(RuntimeError):
        engine.run()
    run_all(engine)
    assert done == [1]


def test_timers_run_when_due_in_order() -> None:
    clock = VirtualClock()
    engine, done = Engine(clock, seed=None), list[str]()
    engine.after(30, lambda: done.append("c"))
    engine.after(10, lambda: done.append("a"))
    engine.after(10, lambda: done.append("b"))
    engine.run()
    assert (done, engine.next_deadline()) == ([], 10)
    clock.pass_time(10)
    run_all(engine)
    assert (done, engine.next_deadline()) == (["a", "b"], 30)
    clock.pass_time(100)
    run_all(engine)
    assert (done, engine.next_deadline()) == (["a", "b", "c"], None)


def test_a_cancelled_timer_never_runs() -> None:
    clock = VirtualClock()
    engine, done = Engine(clock), list[str]()
    timer = engine.after(10, lambda: done.append("x"))
    assert timer.active
    timer.cancel()
    timer.cancel()
    assert not timer.active
    assert engine.next_deadline() is None
    clock.pass_time(20)
    run_all(engine)
    assert done == []


def test_a_timer_that_ran_is_over() -> None:
    done = list[str]()
    timer = Timer(0, lambda: done.append("x"))
    timer.run()
    timer.run()
    assert done == ["x"]
    assert not timer.active


def test_a_timer_is_cancelled_between_its_deadline_and_its_turn() -> None:
    clock = VirtualClock()
    engine, done = Engine(clock, seed=None), list[str]()
    timer = engine.after(10, lambda: done.append("x"))
    engine.post(timer.cancel)
    clock.pass_time(10)
    run_all(engine)
    assert done == []


def test_timers_set_anew_take_no_room() -> None:
    clock = VirtualClock()
    engine, done = Engine(clock, seed=None), list[int]()
    first = engine.after(5, lambda: done.append(-1))
    for number in range(10_000):
        timer = engine.after(1_000_000, lambda number=number: done.append(number))  # type: ignore[misc]
        if number % 1000:
            timer.cancel()
    assert len(engine._timers) < 1000
    assert first.active
    clock.pass_time(1_000_000)
    run_all(engine)
    assert done == [-1, *range(0, 10_000, 1000)]


def test_wait_jumps_from_deadline_to_deadline() -> None:
    clock = VirtualClock(1000)
    engine, seen = Engine(clock), list[int]()

    def tick() -> None:
        seen.append(clock.now())
        engine.after(3600 * 10**9, tick)

    engine.post(tick)
    assert engine.wait(lambda: len(seen) == 4, 10**15)
    assert seen == [1000 + number * 3600 * 10**9 for number in range(4)]


def test_wait_ends_at_its_timeout() -> None:
    clock = VirtualClock()
    engine = Engine(clock)
    engine.after(50, lambda: None)
    assert not engine.wait(lambda: False, 100)
    assert clock.now() == 100
    assert not engine.wait(lambda: False, 0)
    assert engine.wait(lambda: True, 0)


def test_wait_sees_what_becomes_true_at_the_timeout_itself() -> None:
    clock = VirtualClock()
    engine, done = Engine(clock), list[int]()
    engine.after(100, lambda: done.append(1))
    assert engine.wait(lambda: bool(done), 100)


def test_the_real_clock_is_monotonic_nanoseconds() -> None:
    clock = RealClock()
    before, reference = clock.now(), time.monotonic_ns()
    clock.pass_time(1000)
    assert before <= reference <= clock.now()
    assert clock.now() - before >= 1000
