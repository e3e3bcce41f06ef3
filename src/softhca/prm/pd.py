"""Protection domains, transport domains, XRC domains."""

from softhca.prm.layout import Layout, bits
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus


class AllocPdIn(Layout, size=0x10):
    """ALLOC_PD: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)


class AllocPdOut(Layout, size=0x10):
    """ALLOC_PD: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    pd = bits(0x08, 23, 0)


class DeallocPdIn(Layout, size=0x10):
    """DEALLOC_PD: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    pd = bits(0x08, 23, 0)


class DeallocPdOut(Layout, size=0x10):
    """DEALLOC_PD: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class AllocTransportDomainIn(Layout, size=0x10):
    """ALLOC_TRANSPORT_DOMAIN: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)


class AllocTransportDomainOut(Layout, size=0x10):
    """ALLOC_TRANSPORT_DOMAIN: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    transport_domain = bits(0x08, 23, 0)


class DeallocTransportDomainIn(Layout, size=0x10):
    """DEALLOC_TRANSPORT_DOMAIN: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    transport_domain = bits(0x08, 23, 0)


class DeallocTransportDomainOut(Layout, size=0x10):
    """DEALLOC_TRANSPORT_DOMAIN: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class AllocXrcdIn(Layout, size=0x10):
    """ALLOC_XRCD: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)


class AllocXrcdOut(Layout, size=0x10):
    """ALLOC_XRCD: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    xrcd = bits(0x08, 23, 0)


class DeallocXrcdIn(Layout, size=0x10):
    """DEALLOC_XRCD: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)
    xrcd = bits(0x08, 23, 0)


class DeallocXrcdOut(Layout, size=0x10):
    """DEALLOC_XRCD: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
