"""Special contexts: reserved keys."""

from softhca.prm.layout import Layout, bits
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus


class QuerySpecialContextsIn(Layout, size=0x10):
    """QUERY_SPECIAL_CONTEXTS: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)


class QuerySpecialContextsOut(Layout, size=0x20):
    """QUERY_SPECIAL_CONTEXTS: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    dump_fill_mkey = bits(0x08, 31, 0)
    resd_lkey = bits(0x0C, 31, 0)
    null_mkey = bits(0x10, 31, 0)
    terminate_scatter_list_mkey = bits(0x14, 31, 0)
    repeated_mkey = bits(0x18, 31, 0)
