"""Protection domains, transport domains and XRC domains: numbers that other objects refer to (A7, B11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softhca.hca.command import command
from softhca.hca.objects import HcaObject
from softhca.prm.opcodes import Opcode
from softhca.prm.pd import (
    AllocPdIn,
    AllocPdOut,
    AllocTransportDomainIn,
    AllocTransportDomainOut,
    AllocXrcdIn,
    AllocXrcdOut,
    DeallocPdIn,
    DeallocPdOut,
    DeallocTransportDomainIn,
    DeallocTransportDomainOut,
    DeallocXrcdIn,
    DeallocXrcdOut,
)

if TYPE_CHECKING:
    from softhca.hca.function import Function


ENTRY = 64
"""Bytes that a domain takes in ICM (ours: the manual gives no figure, but nothing may be had for nothing)."""


class ProtectionDomain(HcaObject):
    """A protection domain: queues and keys work together only inside one (B11)."""

    KIND = "PD"
    ICM_BYTES = ENTRY


class TransportDomain(HcaObject):
    """A transport domain: bounds what self-loopback and multicast reach."""

    KIND = "transport domain"
    ICM_BYTES = ENTRY


class Xrcd(HcaObject):
    """An XRC domain: XRC SRQs and XRC target QPs work together only inside one."""

    KIND = "XRC domain"
    ICM_BYTES = ENTRY


@command(Opcode.ALLOC_PD, AllocPdIn, AllocPdOut)
def alloc_pd(fn: Function, request: AllocPdIn, reply: AllocPdOut) -> None:
    """Give a PD number."""
    reply.pd = fn.pds.add(ProtectionDomain())


@command(Opcode.DEALLOC_PD, DeallocPdIn, DeallocPdOut)
def dealloc_pd(fn: Function, request: DeallocPdIn, reply: DeallocPdOut) -> None:
    """Take a PD back that nothing refers to."""
    fn.pds.remove(request.pd)


@command(Opcode.ALLOC_TRANSPORT_DOMAIN, AllocTransportDomainIn, AllocTransportDomainOut)
def alloc_transport_domain(fn: Function, request: AllocTransportDomainIn, reply: AllocTransportDomainOut) -> None:
    """Give a transport domain number."""
    reply.transport_domain = fn.transport_domains.add(TransportDomain())


@command(Opcode.DEALLOC_TRANSPORT_DOMAIN, DeallocTransportDomainIn, DeallocTransportDomainOut)
def dealloc_transport_domain(fn: Function, request: DeallocTransportDomainIn, reply: DeallocTransportDomainOut) -> None:
    """Take a transport domain back that nothing refers to."""
    fn.transport_domains.remove(request.transport_domain)


@command(Opcode.ALLOC_XRCD, AllocXrcdIn, AllocXrcdOut)
def alloc_xrcd(fn: Function, request: AllocXrcdIn, reply: AllocXrcdOut) -> None:
    """Give an XRC domain number."""
    reply.xrcd = fn.xrcds.add(Xrcd())


@command(Opcode.DEALLOC_XRCD, DeallocXrcdIn, DeallocXrcdOut)
def dealloc_xrcd(fn: Function, request: DeallocXrcdIn, reply: DeallocXrcdOut) -> None:
    """Take an XRC domain back that nothing refers to."""
    fn.xrcds.remove(request.xrcd)
