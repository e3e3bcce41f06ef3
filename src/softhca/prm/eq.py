"""Event queues."""

from enum import IntEnum, unique

from softhca.prm.layout import Layout, array, bits, nested, u64
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus


@unique
class EqStatus(IntEnum):
    """Event queue context 0x00 [31:28]."""

    OK = 0x0
    EQ_WRITE_FAILURE = 0xA


@unique
class EqState(IntEnum):
    """Event queue context 0x00 [11:8]: whether the next event raises an interrupt."""

    ARMED = 0x9
    FIRED = 0xA


class Eqc(Layout, size=0x40):
    """Event queue context."""

    status = bits(0x00, 31, 28, EqStatus)
    ec = bits(0x00, 18)
    oi = bits(0x00, 17)
    st = bits(0x00, 11, 8, EqState)
    page_offset = bits(0x08, 11, 6)
    log_eq_size = bits(0x0C, 28, 24)
    uar_page = bits(0x0C, 23, 0)
    intr = bits(0x14, 11, 0)
    log_page_size = bits(0x18, 28, 24)
    consumer_counter = bits(0x28, 23, 0)
    producer_counter = bits(0x2C, 23, 0)


class CreateEqIn(Layout, size=0x110):
    """CREATE_EQ: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    eq_context_entry = nested(0x10, Eqc)
    event_bitmask = array(0x58, 4, 64)
    pas = array(0x110, None, 64)


class CreateEqOut(Layout, size=0x10):
    """CREATE_EQ: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    eq_number = bits(0x08, 7, 0)


class DestroyEqIn(Layout, size=0x10):
    """DESTROY_EQ: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    eq_number = bits(0x08, 7, 0)


class DestroyEqOut(Layout, size=0x10):
    """DESTROY_EQ: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class QueryEqIn(Layout, size=0x10):
    """QUERY_EQ: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    eq_number = bits(0x08, 7, 0)


class QueryEqOut(Layout, size=0x110):
    """QUERY_EQ: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    eq_context_entry = nested(0x10, Eqc)
    event_bitmask = u64(0x58)
    pas = array(0x110, None, 64)
