"""The driver of one function: what bring-up makes, step by step, and what the data objects are made of."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeVar

from softhca.bus import Device, Engine
from softhca.driver.cmd import TIMEOUT, CommandChannel
from softhca.driver.cq import CompletionQueue
from softhca.driver.eq import EventQueue
from softhca.driver.errors import DriverError
from softhca.driver.init_segment import InitSegment
from softhca.driver.memory import Arena, Buffer, HcaAddress, Machine, lent
from softhca.driver.mr import ALL_ACCESS, Access, MemoryRegion
from softhca.driver.pages import PageLedger
from softhca.driver.pci import Enumeration, PciFunction
from softhca.driver.pd import ProtectionDomain
from softhca.driver.port import Port
from softhca.driver.qp import QueuePair
from softhca.driver.uar import Uar
from softhca.prm.events import Eqe
from softhca.prm.hca_cap import CmdHcaCap
from softhca.prm.opcodes import Opcode


class Reached(IntEnum):
    """How far the function is: states of their own, so that a failure names where to fall back to (C3, C9, F7)."""

    NOTHING = 0
    ENUMERATED = 1
    """PCI answers, BARs have addresses."""
    QUEUE = 2
    """The command queue's address is set and `initializing` is 0: commands are accepted."""
    ENABLED = 3
    """ENABLE_HCA succeeded."""
    INITIALIZED = 4
    """INIT_HCA succeeded: objects may be created."""
    READY = 5
    """Event queues and port are set up. It says nothing of a QP."""


class Driver:
    """A function and all that the host knows of it.

    Args:
        device: the function, already in its machine.
        machine: memory and interrupts.
        timeout: nanoseconds to wait for a command (of the device's clock).

    Attributes:
        reached: how far bring-up has come.
        ledger: the page account; there from the command queue on.
        log: every command submitted, in order.
        memory: what the driver has of its machine.
    """

    def __init__(self, device: Device, machine: Machine, *, timeout: int = TIMEOUT) -> None:
        self.device = device
        self.memory = Arena(machine)
        self.timeout = timeout
        self.pci = PciFunction(device)
        self.segment = InitSegment(device)
        self.log: list[Opcode] = []
        self.begin()

    def begin(self) -> None:
        """Nothing is reached, nothing is known: as before the first bring-up."""
        self.reached = Reached.NOTHING
        self.enumeration: Enumeration | None = None
        self.issi = 0
        self.uar: Uar | None = None
        self.command_eq: EventQueue | None = None
        self.completion_eq: EventQueue | None = None
        self.cqs: dict[int, CompletionQueue] = {}
        self.qps: dict[int, QueuePair] = {}
        self.regions: list[tuple[MemoryRegion, Buffer]] = []
        self.pds: list[ProtectionDomain] = []
        self._channel: CommandChannel | None = None
        self._ledger: PageLedger | None = None
        self._capabilities: CmdHcaCap | None = None
        self._port: Port | None = None

    def forget(self) -> int:
        """The device is known to access nothing any more: free all, and begin anew; tell how many pages it had (F1)."""
        pages = self.account[2]
        if self._ledger is not None:
            self._ledger.settle_by_reset()
        if self._channel is not None:
            self._channel.abandon()
        self.memory.release()
        ledger = self._ledger
        self.begin()
        self._ledger = ledger
        return pages

    @property
    def engine(self) -> Engine:
        """Runs the device; waiting pumps it."""
        return self.device.engine

    @property
    def channel(self) -> CommandChannel:
        """The command channel (DriverError before it is set up)."""
        return _there(self._channel, "the command channel")

    @channel.setter
    def channel(self, channel: CommandChannel) -> None:
        self._channel = channel
        self._ledger = PageLedger(channel, self.memory)

    def drop_channel(self) -> None:
        """Free the command channel; the device is known to access nothing of it any more (F1)."""
        self.channel.free()
        self._channel = None

    @property
    def has_channel(self) -> bool:
        """Whether the command channel is set up."""
        return self._channel is not None

    @property
    def ledger(self) -> PageLedger:
        """The page ledger (DriverError before the command channel is set up)."""
        return _there(self._ledger, "the page ledger")

    @property
    def account(self) -> tuple[int, int, int]:
        """Pages given, returned, and outstanding, however far bring-up came."""
        ledger = self._ledger
        return (0, 0, 0) if ledger is None else (ledger.given, ledger.returned, ledger.outstanding)

    @property
    def capabilities(self) -> CmdHcaCap:
        """The general capabilities that are set (DriverError before they were selected)."""
        return _there(self._capabilities, "the capabilities")

    @capabilities.setter
    def capabilities(self, capabilities: CmdHcaCap) -> None:
        self._capabilities = capabilities

    @property
    def port(self) -> Port:
        """The port (DriverError before it was set up)."""
        return _there(self._port, "the port")

    @port.setter
    def port(self, port: Port) -> None:
        self._port = port

    def on_completion_event(self, eqe: Eqe) -> None:
        """A Completion EQE: find the CQ by its number and notify its user (A4)."""
        cq = self.cqs.get(eqe.data.comp.cqn)
        if cq is not None:
            cq.on_event()

    def create_pd(self) -> ProtectionDomain:
        """A protection domain."""
        pd = ProtectionDomain.allocate(self.channel)
        self.pds.append(pd)
        return pd

    def register_memory(self, pd: ProtectionDomain, length: int, access: Access = ALL_ACCESS) -> RegisteredMemory:
        """Allocate `length` bytes and register them."""
        buffer = Buffer(self.memory, length)
        with lent(buffer):
            region = MemoryRegion.register(self.channel, pd, buffer, access=access)
        self.regions.append((region, buffer))
        return RegisteredMemory(region, buffer)

    def create_cq(self, log_size: int = 7) -> CompletionQueue:
        """A CQ whose events go to the completion EQ."""
        cq = CompletionQueue(
            self.channel,
            self.memory,
            self.engine,
            _there(self.uar, "the UAR"),
            _there(self.completion_eq, "the completion EQ"),
            log_size=log_size,
        )
        self.cqs[cq.number] = cq
        return cq

    def create_qp(
        self,
        pd: ProtectionDomain,
        send_cq: CompletionQueue,
        receive_cq: CompletionQueue,
        log_size: int = 4,
        psn: int = 0,
    ) -> QueuePair:
        """An RC QP in state RST."""
        qp = QueuePair(
            self.channel,
            self.memory,
            _there(self.uar, "the UAR"),
            pd,
            self.port,
            send_cq,
            receive_cq,
            log_size=log_size,
            psn=psn,
        )
        self.qps[qp.number] = qp
        return qp


class RegisteredMemory:
    """Memory and the key that opens it.

    Attributes:
        region: key, HCA virtual address, length.
        buffer: the memory.
    """

    def __init__(self, region: MemoryRegion, buffer: Buffer) -> None:
        self.region = region
        self.buffer = buffer

    @property
    def view(self) -> memoryview:
        """The bytes, as the CPU sees them."""
        return self.buffer.view

    @property
    def address(self) -> HcaAddress:
        """HCA virtual address of the first byte."""
        return self.region.address

    @property
    def key(self) -> int:
        """Its lkey and rkey in one."""
        return self.region.key


T = TypeVar("T")


def _there(item: T | None, what: str) -> T:
    if item is None:
        raise DriverError(f"{what} is not set up yet")
    return item
