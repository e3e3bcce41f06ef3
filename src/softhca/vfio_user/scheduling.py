"""How the system's scheduler treats a process that serves devices."""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import struct

SLICE = 100_000
"""Nanoseconds that the process wants to run at a time; Linux grants no less."""
_NUMBERS = {"x86_64": 314, "aarch64": 274}
"""System call sched_setattr, by machine: the C library has no function for it in the releases that are common."""
_ATTRIBUTES = struct.Struct("<IIQiIQQQ")
"""struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period."""
_OTHER = 0
_RESET_ON_FORK = 1
_log = logging.getLogger(__name__)


def want_short_slices() -> bool:
    """Let this thread run as soon as a message comes, also while a virtual CPU keeps the processor busy.

    Since 6.12 Linux lets a task that wants short slices interrupt one that wants longer ones, and any user may ask
    for them; its share of the processor stays what it is. With the usual slice a doorbell waits until the slice of
    the polling guest is over, which takes milliseconds. Children do not inherit it.

    Returns:
        Whether the system has taken it; older kernels take it without effect.
    """
    number = _NUMBERS.get(platform.machine())
    if number is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, _OTHER, _RESET_ON_FORK, nice, 0, SLICE, 0, 0)
    library = ctypes.CDLL(None, use_errno=True)
    if library.syscall(number, 0, attributes, 0) == 0:
        return True
    _log.debug("sched_setattr: %s", os.strerror(ctypes.get_errno()))
    return False
