"""MAD_IFC: management datagrams handed to the device."""

from softhca.prm.layout import Layout, array, bits
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus


class MadIfcIn(Layout, size=0x110):
    """MAD_IFC: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    remote_lid = bits(0x08, 31, 16)
    plane_index = bits(0x08, 15, 8)
    port = bits(0x08, 7, 0)
    mad = array(0x10, 256, 8)


class MadIfcOut(Layout, size=0x110):
    """MAD_IFC: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    response_mad_packet = array(0x10, 256, 8)
