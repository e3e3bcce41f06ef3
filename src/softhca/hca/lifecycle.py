"""The life of a function: enable, interface step, initialise, tear down, disable (C5, C6, C8, C9, F3, F4, F8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from softhca.hca.command import Stage, command
from softhca.hca.errors import CommandError
from softhca.hca.pages import boot_lack, in_stage, init_lack, internal_state
from softhca.hca.sriov import named_function
from softhca.points import catalogue as points
from softhca.prm.function import (
    DisableHcaIn,
    DisableHcaOut,
    EnableHcaIn,
    EnableHcaOut,
    ForceState,
    InitHcaIn,
    InitHcaOut,
    QueryIssiIn,
    QueryIssiOut,
    SetDriverVersionIn,
    SetDriverVersionOut,
    SetIssiIn,
    SetIssiOut,
    TeardownHcaIn,
    TeardownHcaOut,
    TeardownProfile,
)
from softhca.prm.opcodes import Opcode
from softhca.prm.syndromes import control

if TYPE_CHECKING:
    from softhca.hca.device import VirtualFunction
    from softhca.hca.function import Function

BEFORE_INIT = (Stage.ENABLED, Stage.SELECTED, Stage.READY)
ENABLED = (*BEFORE_INIT, Stage.INITIALIZED, Stage.TORN_DOWN)


@dataclass(frozen=True)
class Teardown:
    """What a closed function left behind.

    Attributes:
        pages_outstanding: pages of the function's host that the device still had at DISABLE_HCA.
        objects: objects that were alive when TEARDOWN_HCA came.
    """

    pages_outstanding: int
    objects: int


def _named_vf(fn: Function, request: EnableHcaIn | DisableHcaIn) -> VirtualFunction | None:
    """The VF that a command is about, for which the function has to be initialised; None: it is about itself."""
    if named_function(fn, request.function_id, request.embedded_cpu_function) is fn:
        return None
    in_stage(fn, (Stage.INITIALIZED,))
    return fn.vfs.find(request.function_id)


@command(Opcode.ENABLE_HCA, EnableHcaIn, EnableHcaOut, stages=(Stage.DISABLED, Stage.INITIALIZED))
def enable_hca(fn: Function, request: EnableHcaIn, reply: EnableHcaOut) -> None:
    """The function may be set up; whatever was selected in an earlier life is forgotten (F8).

    A PF that is initialised enables its VFs by their function ids: their firmware starts, and their driver may come.
    """
    vf = _named_vf(fn, request)
    if vf is not None:
        if vf.function.enabled:
            raise CommandError(control.VF_ENABLED_ALREADY, f"function_id {request.function_id}")
        vf.enable()
        return
    in_stage(fn, (Stage.DISABLED,))
    fn.begin()
    fn.stage = Stage.ENABLED
    if not fn.device.firmware.issi:  # a device that has only step 0 is not asked for another one
        _selected(fn, 0)


@command(Opcode.QUERY_ISSI, QueryIssiIn, QueryIssiOut, stages=ENABLED)
def query_issi(fn: Function, request: QueryIssiIn, reply: QueryIssiOut) -> None:
    """The selected interface step, and a bit for each one that the device has (C6)."""
    reply.current_issi = fn.issi
    reply.supported_issi_dw0 = (1 << fn.device.firmware.issi + 1) - 1


@command(Opcode.SET_ISSI, SetIssiIn, SetIssiOut, stages=BEFORE_INIT)
def set_issi(fn: Function, request: SetIssiIn, reply: SetIssiOut) -> None:
    """Select the interface step under which later commands are read (C6)."""
    most = fn.device.firmware.issi
    if request.current_issi > most:
        raise CommandError(control.ISSI_UNSUPPORTED, f"current_issi {request.current_issi}, allowed are 0 to {most}")
    _selected(fn, request.current_issi)


def _selected(fn: Function, issi: int) -> None:
    fn.issi = issi
    fn.stage = Stage.SELECTED if boot_lack(fn) else Stage.READY


@command(Opcode.INIT_HCA, InitHcaIn, InitHcaOut, stages=(Stage.READY,))
def init_hca(fn: Function, request: InitHcaIn, reply: InitHcaOut) -> None:
    """Build the running environment from the selected capabilities and the pages; no object exists yet (C8, C9)."""
    lack = init_lack(fn)
    if lack:
        raise CommandError(control.INIT_PAGES_LACKING, f"{lack} pages are lacking")
    fn.icm.take(internal_state(fn))
    fn.forget_objects()
    fn.stage = Stage.INITIALIZED


@command(Opcode.TEARDOWN_HCA, TeardownHcaIn, TeardownHcaOut, stages=(Stage.INITIALIZED,))
def teardown_hca(fn: Function, request: TeardownHcaIn, reply: TeardownHcaOut) -> None:
    """End everything: after this the device touches neither ICM nor a queue, and all pages can be taken back (F3).

    VFs end first. Objects that are still alive go too; the record of the teardown counts them. The device always stops
    in this way, so that a forced close succeeds, and a fast one is prepared by it: the host may disable the interface
    then, which gives it all pages at once (F6).
    """
    profiles = _teardown_profiles(fn)
    if request.profile not in profiles:
        allowed = ", ".join(str(int(profile)) for profile in profiles)
        raise CommandError(control.TEARDOWN_PROFILE_UNSUPPORTED, f"profile {request.profile}, allowed are {allowed}")
    fast = request.profile == TeardownProfile.PREPARE_FAST_TEARDOWN
    if fast and fn.fault is not None and fn.fault.effect is points.SLOW_TEARDOWN:
        reply.state = ForceState.FAIL
        return
    fn.vfs.end()
    fn.left_objects = sum(fn.objects().values())
    fn.forget_objects()
    fn.icm.clear_use()
    fn.stage = Stage.TORN_DOWN
    fn.device.commands.resume()


def _teardown_profiles(fn: Function) -> list[TeardownProfile]:
    caps = fn.caps.general
    profiles = [TeardownProfile.GRACEFUL_CLOSE]
    profiles += [TeardownProfile.FORCE_CLOSE] if caps.force_teardown else []
    return profiles + ([TeardownProfile.PREPARE_FAST_TEARDOWN] if caps.fast_teardown else [])


@command(Opcode.DISABLE_HCA, DisableHcaIn, DisableHcaOut, stages=(*BEFORE_INIT, Stage.INITIALIZED, Stage.TORN_DOWN))
def disable_hca(fn: Function, request: DisableHcaIn, reply: DisableHcaOut) -> None:
    """The end of the function's life; pages that were not taken back stay the device's (B6, F4).

    A PF that is initialised ends the life of a VF so, whatever its driver does; the VF's pages are offered back.
    """
    vf = _named_vf(fn, request)
    if vf is not None:
        if not vf.function.enabled:
            raise CommandError(control.VF_NOT_ENABLED, f"function_id {request.function_id}")
        vf.disable()
        return
    in_stage(fn, (*BEFORE_INIT, Stage.TORN_DOWN))
    fn.device.note_teardown(Teardown(fn.pages_held, fn.left_objects))
    fn.begin()


@command(Opcode.SET_DRIVER_VERSION, SetDriverVersionIn, SetDriverVersionOut)
def set_driver_version(fn: Function, request: SetDriverVersionIn, reply: SetDriverVersionOut) -> None:
    """Note who drives the device."""
    text, end, _ = bytes(request.driver_version).partition(b"\0")
    if not end or not text.isascii() or not text.decode("ascii").isprintable():
        raise CommandError(control.BAD_DRIVER_VERSION, f"driver_version {text!r}")
    fn.driver_version = text.decode("ascii")
