"""QUERY_ADAPTER: identity of the adapter."""

from softhca.prm.layout import Layout, array, bits, nested
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus


class QueryAdapterIn(Layout, size=0x10):
    """QUERY_ADAPTER: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)


class QueryAdapterParamBlock(Layout, size=0x100):
    """What QUERY_ADAPTER answers: vendor, vendor specific data, board (PSID)."""

    ieee_vendor_id = bits(0x18, 23, 0)
    vsd_vendor_id = bits(0x1C, 15, 0)
    vsd = array(0x20, 208, 8)
    vsd_contd_psid = array(0xF0, 16, 8)


class QueryAdapterOut(Layout, size=0x110):
    """QUERY_ADAPTER: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    query_adapter_struct = nested(0x10, QueryAdapterParamBlock)
