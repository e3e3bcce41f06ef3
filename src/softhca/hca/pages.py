"""QUERY_PAGES and MANAGE_PAGES, and when the device asks for pages (B6-B10, C8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softhca.bus import DmaFault
from softhca.hca.command import Stage, command
from softhca.hca.errors import CommandError, PagesLacking
from softhca.hca.icm import PAGE
from softhca.hca.sriov import named_function
from softhca.points import catalogue as points
from softhca.prm.events import EqePageReq, EventType
from softhca.prm.opcodes import Opcode
from softhca.prm.pages import (
    ManagePagesIn,
    ManagePagesOut,
    PagesNeed,
    PagesTransfer,
    QueryPagesIn,
    QueryPagesOut,
)
from softhca.prm.syndromes import control

if TYPE_CHECKING:
    from softhca.hca.function import Function

LOW_WATER = 32
"""With fewer free pages than this the device asks for more, so that commands rarely wait."""
BATCH = 128
"""Free pages that it asks for then, beyond the low-water mark; more than these it can return."""
MOST = 1 << 16
"""Pages that one command may give and that one request asks for: the work of a command stays short."""
_MASK = 0xFFFF_FFFF


HAS_PAGES = (Stage.ENABLED, Stage.SELECTED, Stage.READY, Stage.INITIALIZED, Stage.TORN_DOWN)
TAKES_PAGES = (Stage.SELECTED, Stage.READY, Stage.INITIALIZED)


def boot_lack(fn: Function) -> int:
    """Pages that the function still needs for its start."""
    return max(0, fn.device.profile.pages.boot - len(fn.icm.pages))


def init_lack(fn: Function) -> int:
    """Pages that the function still needs for INIT_HCA, boot pages included."""
    figures = fn.device.profile.pages
    return max(0, figures.boot + figures.init - len(fn.icm.pages))


def internal_state(fn: Function) -> int:
    """Bytes of ICM that the function uses while it is initialised, before any object: most of the boot pages."""
    return fn.device.profile.pages.boot * 3 // 4 * PAGE


def regular_need(fn: Function, missing: int = 0) -> int:
    """Pages that an initialised function asks for (positive) or can return (negative).

    Args:
        fn: the function.
        missing: bytes that commands which wait for pages ask for.
    """
    free = (fn.icm.room - missing) // PAGE
    if free < LOW_WATER:
        return min(MOST, LOW_WATER + BATCH - free)
    return min(0, LOW_WATER + BATCH - free)


def need_now(fn: Function, missing: int = 0) -> int:
    """Pages that the function asks for (positive) or can return (negative), in whatever stage it is."""
    if fn.stage is Stage.INITIALIZED:
        return regular_need(fn, missing)
    starts = fn.stage in TAKES_PAGES if fn.manager is None else fn.enabled
    return init_lack(fn) if starts else -len(fn.icm.pages)


def served(fn: Function) -> bool:
    """Whether the host that gives this function's pages can be asked for them by an event."""
    return EventType.PAGE_REQUEST in fn.page_host.event_map


def ask(fn: Function, missing: int) -> bool:
    """Ask the host for pages, unless an earlier request has no answer yet (B9).

    Returns:
        Whether the host has been asked, now or before; False: no EQ is mapped for it, or it takes no more events.
    """
    if not served(fn):
        return False
    if not fn.icm.asked:
        number = need_now(fn, missing)
        probe = fn.device.probe
        fault = None if probe is None else probe.hit(points.PAGES_ASKED, fn.function_id, number)
        if fault is not None:  # dropped: the device believes that it has asked
            fn.icm.asked = True
            return True
        event = EqePageReq.pack(func_id=fn.function_id, num_pages=number & _MASK)
        fn.icm.asked = fn.page_host.event(EventType.PAGE_REQUEST, event)
    return fn.icm.asked


def settle_vf(fn: Function) -> None:
    """Ask for what a VF needs for its start, before its driver comes; offer what it has when its PF has disabled it."""
    number = need_now(fn)
    if number > 0 or (number and not fn.enabled):
        ask(fn, 0)


def keep_ahead(fn: Function) -> None:
    """Ask for pages before they are needed."""
    waits = fn.icm.asked or fn.icm.refused
    if fn.stage is Stage.INITIALIZED and fn.icm.room < LOW_WATER * PAGE and not waits:
        ask(fn, fn.device.commands.missing)


def in_stage(fn: Function, stages: tuple[Stage, ...]) -> None:
    """Check the stage of a function for what a command does there.

    Raises:
        CommandError: it is in another one.
    """
    if fn.stage not in stages:
        allowed = ", ".join(stage.name for stage in stages)
        raise CommandError(control.BAD_STAGE, f"stage {fn.stage.name}, allowed are {allowed}")


@command(
    Opcode.QUERY_PAGES,
    QueryPagesIn,
    QueryPagesOut,
    op_mods=tuple(PagesNeed),
    stages=HAS_PAGES,
)
def query_pages(fn: Function, request: QueryPagesIn, reply: QueryPagesOut) -> None:
    """How many pages the function lacks (positive) or can return (negative) (B8).

    After INIT_HCA the question for init pages answers the regular need: a driver without a page event can ask so.
    """
    target, need = named_function(fn, request.function_id, request.embedded_cpu_function), PagesNeed(request.op_mod)
    if target is fn and need is not PagesNeed.REGULAR_PAGES:
        in_stage(fn, TAKES_PAGES)
    number = 0 if fn.manager is not None else _need(target, need)
    if fn.manager is not None and fn.stage is not Stage.INITIALIZED:
        _wait_for_start(fn, need)
    reply.function_id = request.function_id
    reply.num_pages = number & _MASK


def _need(fn: Function, need: PagesNeed) -> int:
    number = need_now(fn, fn.device.commands.missing)
    if need is PagesNeed.REGULAR_PAGES:
        return number
    return min(boot_lack(fn), max(0, number)) if need is PagesNeed.BOOT_PAGES else max(0, number)


def _wait_for_start(fn: Function, need: PagesNeed) -> None:
    """A VF's driver need not give any page, but cannot go on before the PF's host has given them.

    Raises:
        PagesLacking: they are not there yet; the command waits.
    """
    lack = {PagesNeed.BOOT_PAGES: boot_lack(fn), PagesNeed.INIT_PAGES: init_lack(fn)}.get(need, 0)
    if lack:
        raise PagesLacking(lack * PAGE)


@command(
    Opcode.MANAGE_PAGES,
    ManagePagesIn,
    ManagePagesOut,
    op_mods=tuple(PagesTransfer),
    stages=HAS_PAGES,
)
def manage_pages(fn: Function, request: ManagePagesIn, reply: ManagePagesOut) -> None:
    """Pages change hands, or the host says that it has none; any of these answers a Pages Request event (B9).

    A VF gives none and has none to get back: those of its account are its PF's business (B7).
    """
    target, how = named_function(fn, request.function_id, request.embedded_cpu_function), PagesTransfer(request.op_mod)
    if fn.manager is not None:
        if how is not PagesTransfer.HCA_RETURN_PAGES:
            raise CommandError(control.PAGES_BY_PF, f"op_mod {how.value}, allowed is {PagesTransfer.HCA_RETURN_PAGES}")
        return
    if how is PagesTransfer.ALLOCATION_SUCCESS:
        _give(target, request)
        reply.output_num_entries = request.input_num_entries
    elif how is PagesTransfer.HCA_RETURN_PAGES:
        _take(target, request, reply)
    target.icm.asked = False
    target.icm.refused = how is PagesTransfer.ALLOCATION_FAIL
    if how is PagesTransfer.ALLOCATION_FAIL:
        target.device.commands.refuse()
        return
    target.device.commands.resume()  # what waits is tried again, and asks again if it still lacks pages
    if target is not fn:
        settle_vf(target)


def _give(fn: Function, request: ManagePagesIn) -> None:
    """All of the pages are accepted, or none. A VF takes them before its driver comes.

    One that was disabled while it waited for them takes them too, and offers them back.
    """
    if fn.manager is None:
        in_stage(fn, TAKES_PAGES)
    elif not fn.enabled and not fn.icm.asked:
        raise CommandError(control.VF_NOT_ENABLED, f"function_id {fn.function_id}")
    count = len(request.pas)
    if count != request.input_num_entries:
        raise CommandError(control.PAGE_COUNT_WRONG, f"input_num_entries {request.input_num_entries}, pas has {count}")
    if count > MOST:
        raise CommandError(control.TOO_MANY_PAGES, f"input_num_entries {count}, at most {MOST}")
    addresses = list(request.pas)
    seen: set[int] = set()
    for index, address in enumerate(addresses):
        if not address or address % PAGE:
            raise CommandError(control.ICM_PAGE_MISALIGNED, f"pas[{index}] {address:#x}")
        if address in seen or _given(fn.page_host, address):
            raise CommandError(control.ICM_PAGE_DUPLICATE, f"pas[{index}] {address:#x}")
        seen.add(address)
        try:
            fn.page_host.dma.views(address, PAGE, write=True)
        except DmaFault:
            raise CommandError(control.ICM_PAGE_UNMAPPED, f"pas[{index}] {address:#x}") from None
    fn.icm.accept(addresses)
    if fn.device.probe is not None:
        fn.device.probe.hit(points.PAGES_GIVEN, fn.function_id, count)
    if fn.stage is Stage.SELECTED and not boot_lack(fn):
        fn.stage = Stage.READY


def _given(host: Function, address: int) -> bool:
    """Whether a page of this host is the device's already, for the function itself or one of its VFs (B7)."""
    return address in host.icm.pages or any(address in vf.function.icm.pages for vf in host.vfs.all())


def _take(fn: Function, request: ManagePagesIn, reply: ManagePagesOut) -> None:
    """Give back what is not needed, at most what was asked for and what the output has room for (B10)."""
    count = min(request.input_num_entries, len(reply.pas))
    if fn.stage is Stage.INITIALIZED:
        count = min(count, max(0, fn.icm.room // PAGE - LOW_WATER))
    returned = fn.icm.hand_back(count)
    if fn.device.probe is not None:
        fn.device.probe.hit(points.PAGES_RETURNED, fn.function_id, len(returned))
    reply.output_num_entries = len(returned)
    reply.pas.assign(returned)
    if fn.stage is Stage.READY and boot_lack(fn):
        fn.stage = Stage.SELECTED
