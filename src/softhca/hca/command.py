"""The table of commands: an opcode's layouts, when it is allowed, and the handler that sits with its object.

The command interface looks a command up here and knows no opcode by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeVar

from softhca.prm.layout import Layout
from softhca.prm.opcodes import Opcode

if TYPE_CHECKING:
    from softhca.hca.function import Function


class Stage(IntEnum):
    """How far a function's bring-up has come (C5, C9)."""

    DISABLED = 0
    """After reset, and after DISABLE_HCA."""
    ENABLED = 1
    """ENABLE_HCA succeeded."""
    SELECTED = 2
    """An ISSI is selected; boot pages are lacking."""
    READY = 3
    """The boot pages are there."""
    INITIALIZED = 4
    """INIT_HCA succeeded: objects may be created."""
    TORN_DOWN = 5
    """TEARDOWN_HCA succeeded: only pages come back, then DISABLE_HCA."""


@dataclass(frozen=True)
class Command:
    """One opcode.

    Attributes:
        opcode: its number and name.
        request, reply: layouts of input and output.
        handler: carries it out; see :func:`command`.
        op_mods: the op_mod values that are defined.
        stages: the stages in which it is allowed.
        partial: what of the manual's command is missing, or "" when it is whole.
        least_input, least_output: bytes up to the end of the last field that is not reserved, trailing array aside.
        open_ended: the input ends with an array that takes as many words as the host sends.
    """

    opcode: Opcode
    request: type[Layout]
    reply: type[Layout]
    handler: Callable[[Function, Any, Any], None]
    op_mods: frozenset[int] | None
    stages: frozenset[Stage]
    partial: str
    least_input: int
    least_output: int
    open_ended: bool

    def takes_length(self, length: int) -> bool:
        """Whether an input message of `length` bytes can be this command's.

        Messages are whole words. Drivers cut reserved words at the end of a structure off: these read as zero then.
        """
        most = length if self.open_ended else self.request.SIZE
        return self.least_input <= length <= most and length % 4 == 0


def _least(layout: type[Layout]) -> int:
    ends = [field.bit + field.bits for field in layout.FIELDS.values() if field.count != 0]
    return (max(ends) + 7) // 8


def _open_ended(layout: type[Layout]) -> bool:
    return any(
        field.count == 0 or (field.layout is not None and _open_ended(field.layout)) for field in layout.FIELDS.values()
    )


COMMANDS: dict[int, Command] = {}
"""Every implemented command by opcode."""

Request = TypeVar("Request", bound=Layout)
Reply = TypeVar("Reply", bound=Layout)
Handler = Callable[["Function", Request, Reply], None]

OBJECTS = (Stage.INITIALIZED,)


def command(
    opcode: Opcode,
    request: type[Request],
    reply: type[Reply],
    *,
    op_mods: tuple[int, ...] | None = (0,),
    stages: tuple[Stage, ...] = OBJECTS,
    partial: str = "",
) -> Callable[[Handler[Request, Reply]], Handler[Request, Reply]]:
    """Register a handler `(function, request, reply)`.

    The handler's `request` is a view over a private copy of the whole input message (a trailing array of it holds what
    the host sent), its `reply` a view over zeroed memory of the output room that the host offers, at least the reply's
    size. The handler fills it, or raises CommandError before anything has taken effect. It calls `function.icm.take`
    before it changes anything: the command is run again from its start when pages came.

    Args:
        opcode: which command.
        request: layout of its input.
        reply: layout of its output.
        op_mods: defined values of op_mod; None when the handler checks them itself.
        stages: when it is allowed; otherwise it fails with "bad system state".
        partial: what is missing, for docs/conformance.md.
    """

    def register(handler: Handler[Request, Reply]) -> Handler[Request, Reply]:
        if opcode in COMMANDS:
            raise ValueError(f"command {opcode.name}: has a handler already")
        COMMANDS[opcode] = Command(
            opcode,
            request,
            reply,
            handler,
            None if op_mods is None else frozenset(op_mods),
            frozenset(stages),
            partial,
            _least(request),
            _least(reply),
            _open_ended(request),
        )
        return handler

    return register
