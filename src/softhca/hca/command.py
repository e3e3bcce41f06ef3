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
    READY = 2
    """An ISSI is selected."""
    INITIALIZED = 3
    """INIT_HCA succeeded: objects may be created."""
    TORN_DOWN = 4
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
    """

    opcode: Opcode
    request: type[Layout]
    reply: type[Layout]
    handler: Callable[[Function, Any, Any], None]
    op_mods: frozenset[int] | None
    stages: frozenset[Stage]
    partial: str


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

    `request` is a view over a private copy of the whole input message (a trailing array of it holds what the host sent).
    `reply` is a view over zeroed memory of the output room that the host offers, at least the reply's size. The
    handler fills it, or raises CommandError before anything has taken effect. It calls `function.icm.take` before it changes
    anything: the command is run again from its start when pages came.

    Args:
        opcode: which command.
        request, reply: its layouts.
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
        )
        return handler

    return register
