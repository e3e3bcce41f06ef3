"""QUERY_PAGES and MANAGE_PAGES, and when the device asks for pages (B6-B10, C8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softhca.bus import DmaFault
from softhca.hca.command import Stage, command
from softhca.hca.errors import CommandError
from softhca.hca.icm import PAGE
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


def ask(fn: Function, missing: int) -> bool:
    """Ask the host for pages, unless an earlier request has no answer yet (B9).

    Returns:
        Whether the host has been asked, now or before; False: no EQ is mapped for it, or it takes no more events.
    """
    if EventType.PAGE_REQUEST not in fn.event_map:
        return False
    if not fn.icm.asked:
        number = regular_need(fn, missing)
        probe = fn.device.probe
        fault = None if probe is None else probe.hit(points.PAGES_ASKED, fn.function_id, number)
        if fault is not None:  # dropped: the device believes that it has asked
            fn.icm.asked = True
            return True
        event = EqePageReq.pack(func_id=fn.function_id, num_pages=number & _MASK)
        fn.icm.asked = fn.event(EventType.PAGE_REQUEST, event)
    return fn.icm.asked


def keep_ahead(fn: Function) -> None:
    """Ask for pages before they are needed."""
    waits = fn.icm.asked or fn.icm.refused
    if fn.stage is Stage.INITIALIZED and fn.icm.room < LOW_WATER * PAGE and not waits:
        ask(fn, fn.device.commands.missing)


def own_function(fn: Function, function_id: int, embedded_cpu: int) -> None:
    """Check that a command is about the function itself (B7).

    Raises:
        CommandError: it is about another one.
    """
    if function_id != fn.function_id or embedded_cpu:
        raise CommandError(
            control.NO_SUCH_FUNCTION,
            f"function_id {function_id:#x}, embedded_cpu_function {embedded_cpu}: allowed are {fn.function_id} and 0",
        )


def _in_stage(fn: Function, stages: tuple[Stage, ...]) -> None:
    if fn.stage not in stages:
        allowed = ", ".join(stage.name for stage in stages)
        raise CommandError(control.BAD_STAGE, f"stage {fn.stage.name}, allowed are {allowed}")


@command(
    Opcode.QUERY_PAGES,
    QueryPagesIn,
    QueryPagesOut,
    op_mods=tuple(PagesNeed),
    stages=HAS_PAGES,
    partial="own function only",
)
def query_pages(fn: Function, request: QueryPagesIn, reply: QueryPagesOut) -> None:
    """How many pages the function lacks (positive) or can return (negative) (B8).

    After INIT_HCA the question for init pages answers the regular need: a driver without a page event can ask so.
    """
    own_function(fn, request.function_id, request.embedded_cpu_function)
    need = PagesNeed(request.op_mod)
    running = fn.stage is Stage.INITIALIZED
    if need is not PagesNeed.REGULAR_PAGES:
        _in_stage(fn, TAKES_PAGES)
    if need is PagesNeed.BOOT_PAGES:
        number = boot_lack(fn)
    elif running:
        number = regular_need(fn, fn.device.commands.missing)
        number = max(0, number) if need is PagesNeed.INIT_PAGES else number
    elif fn.stage in TAKES_PAGES:
        number = init_lack(fn)
    else:
        number = -len(fn.icm.pages)
    reply.function_id = fn.function_id
    reply.num_pages = number & _MASK


@command(
    Opcode.MANAGE_PAGES,
    ManagePagesIn,
    ManagePagesOut,
    op_mods=tuple(PagesTransfer),
    stages=HAS_PAGES,
    partial="own function only",
)
def manage_pages(fn: Function, request: ManagePagesIn, reply: ManagePagesOut) -> None:
    """Pages change hands, or the host says that it has none; any of these answers a Pages Request event (B9)."""
    own_function(fn, request.function_id, request.embedded_cpu_function)
    how = PagesTransfer(request.op_mod)
    if how is PagesTransfer.ALLOCATION_SUCCESS:
        _give(fn, request)
        reply.output_num_entries = request.input_num_entries
    elif how is PagesTransfer.HCA_RETURN_PAGES:
        _take(fn, request, reply)
    fn.icm.asked = False
    fn.icm.refused = how is PagesTransfer.ALLOCATION_FAIL
    if how is PagesTransfer.ALLOCATION_FAIL:
        fn.device.commands.refuse()
    else:  # what waits is tried again, and asks again if it still lacks pages
        fn.device.commands.resume()


def _give(fn: Function, request: ManagePagesIn) -> None:
    """All of the pages are accepted, or none."""
    _in_stage(fn, TAKES_PAGES)
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
        if address in seen or address in fn.icm.pages:
            raise CommandError(control.ICM_PAGE_DUPLICATE, f"pas[{index}] {address:#x}")
        seen.add(address)
        try:
            fn.dma.views(address, PAGE, write=True)
        except DmaFault:
            raise CommandError(control.ICM_PAGE_UNMAPPED, f"pas[{index}] {address:#x}") from None
    fn.icm.accept(addresses)
    if fn.device.probe is not None:
        fn.device.probe.hit(points.PAGES_GIVEN, fn.function_id, count)
    if fn.stage is Stage.SELECTED and not boot_lack(fn):
        fn.stage = Stage.READY


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
