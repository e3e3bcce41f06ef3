"""QUERY_SPECIAL_CONTEXTS: keys that exist without having been created."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softhca.hca.command import command
from softhca.hca.mkey import DUMP_FILL_MKEY, NULL_MKEY, RESERVED_LKEY
from softhca.prm.opcodes import Opcode
from softhca.prm.special_contexts import QuerySpecialContextsIn, QuerySpecialContextsOut

if TYPE_CHECKING:
    from softhca.hca.function import Function


@command(
    Opcode.QUERY_SPECIAL_CONTEXTS,
    QuerySpecialContextsIn,
    QuerySpecialContextsOut,
    partial="no terminating and no repeated key",
)
def query_special_contexts(fn: Function, request: QuerySpecialContextsIn, reply: QuerySpecialContextsOut) -> None:
    """The reserved lkey, and the null and dump-fill keys as far as their capabilities are set; all others are 0."""
    caps = fn.caps.general
    reply.resd_lkey = RESERVED_LKEY
    reply.null_mkey = NULL_MKEY if caps.null_mkey else 0
    reply.dump_fill_mkey = DUMP_FILL_MKEY if caps.dump_fill_mkey else 0
