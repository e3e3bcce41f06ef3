"""Short slices for the process that serves."""

from __future__ import annotations

import ctypes
import os
import platform

import pytest

from softhca.vfio_user import scheduling
from softhca.vfio_user.scheduling import SLICE, want_short_slices

_GETATTR = {"x86_64": 315, "aarch64": 275}


def _slice() -> tuple[int, int]:
    """Nice value and slice (ns) of this thread, as the system tells it."""
    buffer = ctypes.create_string_buffer(scheduling._ATTRIBUTES.size)
    library = ctypes.CDLL(None, use_errno=True)
    assert library.syscall(_GETATTR[platform.machine()], 0, buffer, len(buffer), 0) == 0
    fields = scheduling._ATTRIBUTES.unpack(buffer.raw)
    return fields[3], fields[5]


def _in_child(check: object) -> int:
    """Exit status of a child that runs `check`: what is set stays its own."""
    assert callable(check)
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(platform.machine() not in _GETATTR, reason="no number of the system call is known")
def test_slice_is_set_and_nice_stays_and_children_have_the_usual_one() -> None:
    def check() -> bool:
        os.nice(3)
        usual = _slice()
        taken = want_short_slices()
        nice, short = _slice()
        if nice != 3 or not taken:
            return False
        if usual[1] == 0:
            return True  # a kernel before 6.12 tells no slice
        return short == SLICE and _in_child(lambda: _slice()[1] == usual[1]) == 0

    assert _in_child(check) == 0


def test_other_policies_are_left_alone() -> None:
    def check() -> bool:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        return not want_short_slices() and os.sched_getscheduler(0) == os.SCHED_BATCH

    assert _in_child(check) == 0


def test_unknown_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "m68k")
    assert not want_short_slices()
