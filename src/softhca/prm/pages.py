"""ICM pages: how many a function lacks, and their hand-over."""

from softhca.prm.layout import Layout, array, bits


class QueryPagesIn(Layout, size=0x10):
    """QUERY_PAGES: input."""

    opcode = bits(0x00, 31, 16)
    op_mod = bits(0x04, 15, 0)
    embedded_cpu_function = bits(0x08, 31)
    function_id = bits(0x08, 15, 0)


class QueryPagesOut(Layout, size=0x10):
    """QUERY_PAGES: output."""

    status = bits(0x00, 31, 24)
    syndrome = bits(0x04, 31, 0)
    embedded_cpu_function = bits(0x08, 31)
    function_id = bits(0x08, 15, 0)
    num_pages = bits(0x0C, 31, 0)


class ManagePagesIn(Layout, size=0x10):
    """MANAGE_PAGES: input."""

    opcode = bits(0x00, 31, 16)
    op_mod = bits(0x04, 15, 0)
    embedded_cpu_function = bits(0x08, 31)
    function_id = bits(0x08, 15, 0)
    input_num_entries = bits(0x0C, 31, 0)
    pas = array(0x10, None, 64)


class ManagePagesOut(Layout, size=0x10):
    """MANAGE_PAGES: output."""

    status = bits(0x00, 31, 24)
    syndrome = bits(0x04, 31, 0)
    output_num_entries = bits(0x08, 31, 0)
    pas = array(0x10, None, 64)
