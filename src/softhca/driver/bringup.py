"""Bring-up, in the order that the device demands; each step waits for the one before (source 3, C1-C11).

A step is a function with a name and the sentence that its success proves. Read from top to bottom.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from softhca import __version__
from softhca.driver import capabilities, port
from softhca.driver.cmd import SECOND, CommandChannel
from softhca.driver.driver import Driver, Reached
from softhca.driver.eq import EventQueue
from softhca.driver.errors import BringUpError, DriverError, UnsupportedDevice
from softhca.driver.uar import Uar
from softhca.prm.events import Eqe, EventType
from softhca.prm.function import (
    EnableHcaIn,
    EnableHcaOut,
    InitHcaIn,
    InitHcaOut,
    QueryIssiIn,
    QueryIssiOut,
    SetDriverVersionIn,
    SetDriverVersionOut,
    SetIssiIn,
    SetIssiOut,
)
from softhca.prm.hca_cap import PortType
from softhca.prm.opcodes import Opcode
from softhca.prm.pages import PagesNeed

START_TIMEOUT = 120 * SECOND
"""How long a device may take from reset to `initializing` = 0 (ns)."""
SUPPORTED_ISSI = {1}
"""Interface steps that this driver speaks (C6). 0 is what a device without ISSI has."""


@dataclass(frozen=True)
class Stage:
    """A step that was completed.

    Attributes:
        name: what it is called.
        proves: what its success shows.
        commands: opcodes that it ran, in order.
        pages: ICM pages given in it.
        nanoseconds: time that passed on the device's clock.
        note: what was found.
    """

    name: str
    proves: str
    commands: tuple[Opcode, ...]
    pages: int
    nanoseconds: int
    note: str


Step = Callable[[Driver], str]
STEPS: list[tuple[str, str, Step]] = []
"""Name, what it proves, and the function, in order."""


def step(name: str, proves: str) -> Callable[[Step], Step]:
    """Put a function into the order of bring-up; it returns a note on what it found."""

    def add(function: Step) -> Step:
        STEPS.append((name, proves, function))
        return function

    return add


def bring_up(driver: Driver, watch: Callable[[Stage], None] = lambda stage: None) -> list[Stage]:
    """Run every step.

    Args:
        driver: a function after its reset.
        watch: told of each completed stage.

    Raises:
        BringUpError: a step failed; `driver.reached` and the ledger say what :func:`softhca.driver.close.close` has to
            undo (F7).
    """
    done: list[Stage] = []
    for name, proves, function in STEPS:
        try:
            stage = measure(driver, name, proves, function)
        except (DriverError, MemoryError) as error:
            raise BringUpError(name, [stage.name for stage in done], error) from error
        done.append(stage)
        watch(stage)
    return done


def measure(driver: Driver, name: str, proves: str, function: Step) -> Stage:
    """Run one step and say what it took."""
    start = driver.engine.clock.now()
    commands, pages = len(driver.log), driver.account[0]
    note = function(driver)
    took = driver.engine.clock.now() - start
    return Stage(name, proves, tuple(driver.log[commands:]), driver.account[0] - pages, took, note)


@step("firmware start", "the firmware is loaded: the function answers on the bus")
def _firmware(driver: Driver) -> str:
    driver.pci.wait_until_present(START_TIMEOUT)
    return f"vendor {driver.pci.read(0, 2):04x} device {driver.pci.read(2, 2):04x}"


@step("enumeration", "BARs are sized and have addresses; this says nothing of the command interface")
def _enumerate(driver: Driver) -> str:
    found = driver.pci.enumerate()
    driver.enumeration = found
    if 0 not in found.bars:
        raise UnsupportedDevice(f"PCI function {found.vendor:04x}:{found.device:04x}: has no memory BAR 0")
    driver.reached = Reached.ENUMERATED
    address, size = found.bars[0]
    return f"BAR0 {size >> 20} MiB at {address:#x}, {found.vectors} MSI-X vectors"


@step("bus master", "the device may start DMA and interrupts")
def _bus_master(driver: Driver) -> str:
    driver.pci.enable_bus_master()
    driver.pci.enable_msix()
    return "Bus Master on, MSI-X on"


@step("command queue", "initializing is 0: commands are accepted")
def _command_queue(driver: Driver) -> str:
    segment = driver.segment
    segment.wait_until_initialized(START_TIMEOUT)
    segment.check_revision()
    driver.channel = CommandChannel(segment, driver.memory, driver.engine, driver.timeout, driver.log)
    driver.channel.open()
    segment.wait_until_initialized(START_TIMEOUT)
    driver.reached = Reached.QUEUE
    shape = driver.channel.geometry
    return f"firmware {segment.firmware_version}, {shape.slots} slots of {shape.stride} bytes"


@step("enable", "the function may be set up")
def _enable(driver: Driver) -> str:
    driver.channel.execute(Opcode.ENABLE_HCA, EnableHcaIn.new(), EnableHcaOut)
    driver.reached = Reached.ENABLED
    return "function 0 enabled"


@step("interface step", "both sides read later commands in the same way")
def _issi(driver: Driver) -> str:
    reply = driver.channel.execute(Opcode.QUERY_ISSI, QueryIssiIn.new(), QueryIssiOut)
    common = [issi for issi in SUPPORTED_ISSI if reply.supported_issi_dw0 >> issi & 1]
    if not common:
        raise UnsupportedDevice(
            f"QUERY_ISSI: supported_issi_dw0 is {reply.supported_issi_dw0:#x}, this driver speaks {SUPPORTED_ISSI}"
        )
    driver.issi = max(common)
    driver.channel.execute(Opcode.SET_ISSI, SetIssiIn.new(current_issi=driver.issi), SetIssiOut)
    return f"ISSI {driver.issi}"


@step("boot pages", "the firmware has the memory that its start needs")
def _boot_pages(driver: Driver) -> str:
    return f"{driver.ledger.satisfy(PagesNeed.BOOT_PAGES)} pages asked for"


@step("capabilities", "limits are known and the selectable ones are chosen")
def _capabilities(driver: Driver) -> str:
    caps = driver.capabilities = capabilities.select(driver.channel)
    return f"up to 2^{caps.log_max_qp} QPs, 2^{caps.log_max_cq} CQs, 2^{caps.log_max_mkey} MKeys"


@step("init pages", "the device has the memory that its selected capabilities need")
def _init_pages(driver: Driver) -> str:
    lacking = driver.ledger.satisfy(PagesNeed.INIT_PAGES)
    return f"{lacking} pages asked for" if lacking else "no need, nothing given"


@step("initialise", "objects may be created; no QP is ready by this, and no link is up by this")
def _initialise(driver: Driver) -> str:
    driver.channel.execute(Opcode.INIT_HCA, InitHcaIn.new(), InitHcaOut)
    driver.reached = Reached.INITIALIZED
    return "HCA initialised"


@step("driver version", "the device knows who drives it")
def _driver_version(driver: Driver) -> str:
    if not driver.capabilities.driver_version:
        return "not supported, skipped"
    version = f"Python,softhca,{__version__}"
    request = SetDriverVersionIn.new(driver_version=list(version.encode()))
    driver.channel.execute(Opcode.SET_DRIVER_VERSION, request, SetDriverVersionOut)
    return version


@step("command events", "completions and page requests arrive as events from now on")
def _command_events(driver: Driver) -> str:
    driver.uar = Uar.allocate(driver.channel, driver.device)
    driver.channel.require_idle()
    eq = EventQueue(
        driver.channel,
        driver.memory,
        driver.engine,
        driver.uar,
        log_size=8,
        vector=0,
        handlers={
            EventType.CMD: lambda eqe: driver.channel.completed(eqe.data.cmd.vector),
            EventType.PAGE_REQUEST: driver.ledger.on_page_request,
            EventType.PORT_CHANGE: lambda eqe: None,
        },
    )
    driver.command_eq = eq
    driver.channel.use_events(eq.poll)
    return f"EQ {eq.number} on vector 0"


@step("completion events", "completed work can interrupt")
def _completion_events(driver: Driver) -> str:
    if driver.uar is None:
        raise DriverError("completion events: there is no UAR")
    found = driver.enumeration
    vector = 1 if found is not None and found.vectors > 1 else 0
    if vector == 0:
        raise UnsupportedDevice("PCI: one MSI-X vector; this driver gives each of its two EQs one")
    handlers: dict[EventType, Callable[[Eqe], None]] = {EventType.COMP: driver.on_completion_event}
    eq = EventQueue(
        driver.channel, driver.memory, driver.engine, driver.uar, log_size=8, vector=vector, handlers=handlers
    )
    driver.completion_eq = eq
    return f"EQ {eq.number} on vector {vector}"


@step("port", "the port has what its transport needs; link, vport and QP state are three conditions")
def _port(driver: Driver) -> str:
    caps = driver.capabilities
    found = driver.port = port.set_up(driver.channel, ethernet=caps.port_type == PortType.ETH, roce=bool(caps.roce))
    driver.reached = Reached.READY
    where = f"MAC {found.mac.to_bytes(6, 'big').hex(':')}" if found.ethernet else f"LID {found.lid}"
    link, vport = ("up" if up else "down" for up in (found.link_up, found.vport_up))
    return f"{'RoCE' if found.ethernet else 'InfiniBand'}, {where}, link {link}, vport {vport}"
