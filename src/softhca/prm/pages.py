"""ICM pages: how many a function lacks, and their hand-over."""

from enum import IntEnum, unique

from softhca.prm.layout import Layout, array, bits
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus


@unique
class PagesNeed(IntEnum):
    """QUERY_PAGES op_mod: which stage the pages are for."""

    BOOT_PAGES = 0x1
    INIT_PAGES = 0x2
    REGULAR_PAGES = 0x3


@unique
class PagesTransfer(IntEnum):
    """MANAGE_PAGES op_mod."""

    ALLOCATION_FAIL = 0x0
    ALLOCATION_SUCCESS = 0x1
    HCA_RETURN_PAGES = 0x2


class QueryPagesIn(Layout, size=0x10):
    """QUERY_PAGES: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0, PagesNeed)
    embedded_cpu_function = bits(0x08, 31)
    function_id = bits(0x08, 15, 0)


class QueryPagesOut(Layout, size=0x10):
    """QUERY_PAGES: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    embedded_cpu_function = bits(0x08, 31)
    function_id = bits(0x08, 15, 0)
    num_pages = bits(0x0C, 31, 0)


class ManagePagesIn(Layout, size=0x10):
    """MANAGE_PAGES: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0, PagesTransfer)
    embedded_cpu_function = bits(0x08, 31)
    function_id = bits(0x08, 15, 0)
    input_num_entries = bits(0x0C, 31, 0)
    pas = array(0x10, None, 64)


class ManagePagesOut(Layout, size=0x10):
    """MANAGE_PAGES: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    output_num_entries = bits(0x08, 31, 0)
    pas = array(0x10, None, 64)
