"""QUERY_SPECIAL_CONTEXTS: keys that exist without having been created."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softhca.hca.command import command
from softhca.hca.mkey import RESERVED_LKEY
from softhca.prm.opcodes import Opcode
from softhca.prm.special_contexts import QuerySpecialContextsIn, QuerySpecialContextsOut

if TYPE_CHECKING:
    from softhca.hca.function import Function


@command(
    Opcode.QUERY_SPECIAL_CONTEXTS,
    QuerySpecialContextsIn,
    QuerySpecialContextsOut,
    partial="the reserved lkey; the other keys are announced by capabilities that are not set",
)
def query_special_contexts(fn: Function, request: QuerySpecialContextsIn, reply: QuerySpecialContextsOut) -> None:
    """The reserved lkey; null, dump-fill, terminating and repeated key are 0, as their capabilities are."""
    reply.resd_lkey = RESERVED_LKEY
