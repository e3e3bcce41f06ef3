"""The life of a function: enable, interface selection, initialise, tear down."""

from enum import IntEnum, unique

from softhca.prm.layout import Layout, array, bits
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus


@unique
class TeardownProfile(IntEnum):
    """TEARDOWN_HCA 0x08 [15:0]."""

    GRACEFUL_CLOSE = 0x0
    FORCE_CLOSE = 0x1
    PREPARE_FAST_TEARDOWN = 0x2


@unique
class ForceState(IntEnum):
    """TEARDOWN_HCA output 0x0C [0]: what became of a forced close."""

    SUCCESS = 0x0
    FAIL = 0x1


class EnableHcaIn(Layout, size=0x10):
    """ENABLE_HCA: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    embedded_cpu_function = bits(0x08, 31)
    function_id = bits(0x08, 15, 0)


class EnableHcaOut(Layout, size=0xC):
    """ENABLE_HCA: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class DisableHcaIn(Layout, size=0x10):
    """DISABLE_HCA: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    embedded_cpu_function = bits(0x08, 31)
    function_id = bits(0x08, 15, 0)


class DisableHcaOut(Layout, size=0xC):
    """DISABLE_HCA: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class InitHcaIn(Layout, size=0x20):
    """INIT_HCA: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    sw_vhca_id = bits(0x0C, 29, 16)
    sw_owner_id = array(0x10, 4, 32)


class InitHcaOut(Layout, size=0x10):
    """INIT_HCA: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class TeardownHcaIn(Layout, size=0x10):
    """TEARDOWN_HCA: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    profile = bits(0x08, 15, 0, TeardownProfile)


class TeardownHcaOut(Layout, size=0x10):
    """TEARDOWN_HCA: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    state = bits(0x0C, 0, enum=ForceState)


class QueryIssiIn(Layout, size=0x10):
    """QUERY_ISSI: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)


class QueryIssiOut(Layout, size=0x70):
    """QUERY_ISSI: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    current_issi = bits(0x08, 15, 0)
    supported_issi_dw0 = bits(0x6C, 31, 0)


class SetIssiIn(Layout, size=0x10):
    """SET_ISSI: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    current_issi = bits(0x08, 15, 0)


class SetIssiOut(Layout, size=0x10):
    """SET_ISSI: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class SetDriverVersionIn(Layout, size=0x50):
    """SET_DRIVER_VERSION: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    driver_version = array(0x10, 64, 8)


class SetDriverVersionOut(Layout, size=0x10):
    """SET_DRIVER_VERSION: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
