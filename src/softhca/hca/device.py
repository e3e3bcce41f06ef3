"""The card and its VFs: PCI functions whose BAR0 holds init segment, MSI-X table and UAR pages (E1, G1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from softhca.bus import Device, Engine, Host, Reset
from softhca.bus.config_space import Capability, Identity
from softhca.bus.pci_function import PciFunction
from softhca.hca import (  # noqa: F401 - all that have commands are imported, so that these are registered
    adapter,
    hca_vport,
    lifecycle,
    mad,
    mcg,
    pages,
    registers,
    roce,
    special_contexts,
    uar,
)
from softhca.hca import flash as firmware_flash
from softhca.hca.cmd_interface import CommandInterface
from softhca.hca.command import Stage
from softhca.hca.fabric import Fabric
from softhca.hca.flash import FlashError, Image
from softhca.hca.function import FIRST_UAR, Function
from softhca.hca.health import Health
from softhca.hca.icmd import Icmd
from softhca.hca.init_segment import SEGMENT_SIZE, SW_RESET, InitSegment
from softhca.hca.lifecycle import Teardown
from softhca.hca.port import Port, VirtualPort
from softhca.hca.profile import Profile
from softhca.hca.sriov import Sriov, VirtualFunctions
from softhca.hca.vsc import Semaphores, VendorSpecific
from softhca.hca.watched_dma import WatchedDma
from softhca.points import Fault, Probe
from softhca.points import catalogue as points
from softhca.prm.events import EventType
from softhca.prm.init_segment import HealthSyndrome, NicInterface
from softhca.prm.uar import UAR_PAGE
from softhca.prm.vport import VportAdminState
from softhca.prm.vsc import Space

BAR0_SIZE = 32 << 20
MSIX_TABLE = SEGMENT_SIZE
MSIX_PENDING = 0x3000
_MSIX_ENTRY = 16
MOST_TEARDOWNS = 4096
MOST_VECTORS = (MSIX_PENDING - MSIX_TABLE) // _MSIX_ENTRY


class Hca(PciFunction):
    """A ConnectX-class HCA: its PF, and through :attr:`vfs` its VFs.

    Args:
        engine: runs the card's work; cards of one fabric share it.
        profile: the model.
        flash: contents of its flash; by default a good image of the model's firmware.
        strict: let an unexpected exception of a command out after it was answered (for tests).
        fabric: the subnet that its InfiniBand port is in; None: one of its own.
        fast: send WQEs of the common shape go through :mod:`softhca.hca.fast`; without it the card does the same,
            some five times slower, and its code is easier to follow in a debugger.

    Raises:
        ValueError: the model has more MSI-X vectors than the table's place in BAR0 holds.

    Attributes:
        profile: the model.
        port: the physical port.
        function: the PF.
        vfs: its VFs, which appear by the SR-IOV capability.
        commands: the command interface.
        health: the health registers.
        segment: the init segment.
        firmware: what the loaded image says; of a bad image the model's own figures, which nothing shows.
        ready: the firmware has started.
        fabric: the subnet that its InfiniBand port is in; one of its own when none is given.
        teardowns: a record for each DISABLE_HCA of the card's life, the last :data:`MOST_TEARDOWNS` of them.
    """

    def __init__(
        self,
        engine: Engine,
        profile: Profile,
        *,
        flash: bytes | None = None,
        strict: bool = False,
        fabric: Fabric | None = None,
        fast: bool = True,
    ) -> None:
        pci = profile.pci
        if pci.vectors > MOST_VECTORS:
            raise ValueError(f"profile {profile.name}: pci.vectors {pci.vectors}, at most {MOST_VECTORS} have a place")
        self.profile = profile
        self.vfs = VirtualFunctions(pci.total_vfs, self._make_vf)
        self.icmd = Icmd(self)
        self._semaphores = Semaphores()
        super().__init__(
            engine,
            Identity(
                vendor=pci.vendor_id,
                device=pci.device_id,
                class_code=pci.class_code,
                revision=pci.revision,
                subsystem_vendor=pci.subsystem_vendor_id,
                subsystem=pci.subsystem_id,
            ),
            {0: BAR0_SIZE},
            vectors=pci.vectors,
            msix_table=MSIX_TABLE,
            msix_pending=MSIX_PENDING,
            capabilities=self._capabilities(),
        )
        self.flash = firmware_flash.build(profile) if flash is None else flash
        self.firmware: Image = firmware_flash.load(firmware_flash.build(profile))
        self.ready = False
        self._strict, self._fast = strict, fast
        self._probe: Probe | None = None
        self._restarting = False
        self.teardowns: list[Teardown] = []
        self._msix = bytearray(MOST_VECTORS * _MSIX_ENTRY)
        self._frequency = int(profile.capabilities["general"]["device_frequency_khz"])
        self._born = engine.clock.now()
        self.port = self._make_port()
        self._packets = {flow.name: 0 for flow in fields(self.port.traffic)}
        self.segment = InitSegment(self)
        self.health = Health(engine.clock, self.segment.view.health_buffer)
        self.segment.use_health(self.health)
        self.health.on_report = self._health_reported
        self.commands = CommandInterface(self, strict=strict)
        self.function = self._make_function()
        self.function.fast = fast
        self.port.on_event = self._port_event
        self.fabric = Fabric() if fabric is None else fabric
        if self.port.infiniband:
            self.fabric.join(self)
        self._start()

    def _capabilities(self) -> list[Capability]:
        found: list[Capability] = [VendorSpecific({Space.ICMD: self.icmd, Space.SEMAPHORES: self._semaphores})]
        if self.vfs.most:
            found.append(Sriov(self.vfs, self.profile.pci.vf_device_id, BAR0_SIZE))
        return found

    def _make_port(self) -> Port:
        return Port(self.profile)

    def _make_function(self) -> Function:
        return Function(self, vfs=self.vfs)

    def _make_vf(self, number: int) -> VirtualFunction:
        return VirtualFunction(self, number, strict=self._strict, fast=self._fast)

    def virtual_functions(self) -> Sequence[Device]:
        """The VFs on the bus, in the order of their numbers."""
        return self.vfs.present()

    def _port_event(self, kind: EventType, data: bytes, subtype: int) -> None:
        """Tell the function, and the VFs whose ports follow the physical one."""
        self.function.event(kind, data, subtype)
        for vf in self.vfs.all():
            vf.follow_port(kind, data, subtype)

    @property
    def probe(self) -> Probe | None:
        """Watches and disturbs the card, or None; what is put here learns what the card as a whole can do wrong."""
        return self._probe

    @probe.setter
    def probe(self, probe: Probe | None) -> None:
        self._probe = probe
        if probe is not None:
            probe.on_card = {
                points.RAISE.name: self._raise,
                points.STOP_COUNTER.name: lambda fault: self.health.stop(),
                points.REMOVE.name: lambda fault: self.remove(),
            }
        self._gate()
        for vf in self.vfs.all():
            vf._gate()

    def _gate(self) -> None:
        """Open or close the way to host memory; while a rule is for accesses, each of them passes its point."""
        super()._gate()
        if self.probe is not None and self.probe.watches(points.DMA):
            self.dma = WatchedDma(self.dma, self.probe, self.function.function_id)

    def _raise(self, fault: Fault) -> None:
        syndrome = HealthSyndrome(fault.value)
        if fault.more.get("fatal"):
            self.die(syndrome)
        else:
            self.health.report(syndrome)

    def _health_reported(self, syndrome: HealthSyndrome, extended: int) -> None:
        if self.probe is not None:
            self.probe.hit(points.HEALTH, self.function.function_id, syndrome, extended)

    def die(self, syndrome: HealthSyndrome, extended: int = 0) -> None:
        """The firmware cannot go on, and the health buffer asks for a reset (E3).

        Until then nothing completes and nothing is accessed any more, by VFs neither; pages stay the device's.
        """
        for vf in self.vfs.all():
            if vf.function.enabled:
                vf.die(syndrome, extended)
        self.health.report(syndrome, extended, reset=True)
        self.health.stop()
        self.commands.stop()
        self.function.forget_objects()

    def remove(self) -> None:
        """Surprise removal: the card is out of its slot and reads as ones, until it is attached again."""
        self._end()
        self.vfs.remove()
        self.pull()
        if self.probe is not None:
            self.probe.hit(points.RESET, self.function.function_id, "removed")

    @property
    def uar_pages(self) -> int:
        """4 KiB pages of BAR0; those below FIRST_UAR are not UARs."""
        return BAR0_SIZE // UAR_PAGE

    def ticks(self) -> int:
        """The internal timer: ticks of device_frequency_khz since the card was powered (E4)."""
        return (self.engine.clock.now() - self._born) * self._frequency // 1_000_000

    def on_reset(self, kind: Reset) -> None:
        """Everything but configuration space back to power on; the firmware starts again.

        An FLR leaves the interface disabled, as a software reset does: a driver that knows nothing of it sees that its
        function is no longer the one that it has set up (Linux: "Fatal error 3"), and can recover.
        """
        if self.probe is not None:
            self.probe.hit(points.RESET, self.function.function_id, kind.value)
        self._msix[:] = bytes(len(self._msix))
        self.icmd.reset()
        self._semaphores.reset()
        if kind is Reset.COLD:
            self._born = self.engine.clock.now()
            self.vfs.come_back()
        self._reset_port()
        if kind is Reset.FLR:
            self._start_disabled()
        else:
            self._start()

    def _start(self) -> None:
        """Load the firmware from flash and bring the function to its first state (C1)."""
        self._end()
        hardware = self.profile.pci.device_id
        try:
            image = firmware_flash.load(self.flash)
        except FlashError as error:
            self.ready = False
            self.segment.reset(None)
            self.health.dead(HealthSyndrome.FW_CRC_ERR, error.fault, hardware)
            return
        self.firmware = image
        self.ready = True
        self.segment.reset(image)
        self.health.start((image.major & 0xFF) << 24 | (image.minor & 0xFF) << 16 | image.subminor, hardware)
        self.commands.start(image.log_size, image.log_stride)

    def _end(self) -> None:
        """The function's life ends, that of its VFs first; nothing is accessed any more, and the host has all pages."""
        self.vfs.end(forget=True)
        self.commands.stop()
        self.function.reset()

    def _start_disabled(self) -> None:
        """Start anew; the function waits for a host that makes itself its full driver (E2)."""
        self._start()
        if self.ready:
            self.commands.stop()
            self.segment.show_interface(NicInterface.DISABLED)

    def _reset_port(self) -> None:
        self._packets = self.packets()
        self.port.reset()
        self.fabric.forget(self)

    def packets(self) -> dict[str, int]:
        """Packets of the card's life, resets or not: sent and received, those of multicast groups apart."""
        return {name: count + getattr(self.port.traffic, name).packets for name, count in self._packets.items()}

    def note_teardown(self, teardown: Teardown) -> None:
        """Keep the record of a DISABLE_HCA; a guest that never stops closing fills no memory by it."""
        self.teardowns.append(teardown)
        del self.teardowns[:-MOST_TEARDOWNS]

    # What the init segment acts on.

    @property
    def queue_locked(self) -> bool:
        """Whether the command queue's address must not change now (E2)."""
        return self.function.stage is Stage.INITIALIZED

    def queue_placed(self, address: int) -> None:
        """The host has written the address of the command queue."""
        if self.ready and self.segment.nic_interface == NicInterface.FULL_DRIVER:
            self.commands.place(address)

    def interface_set(self, interface: int) -> None:
        """The host has written nic_interface (E2, F6).

        Disabled: the function stops at once, and all its pages are the host's again. Reset: so does the whole card,
        its firmware starts anew, and the function is then disabled. Full driver: bring-up may begin.
        """
        if not self.ready:
            return
        if interface == NicInterface.FULL_DRIVER:
            self.commands.start(self.firmware.log_size, self.firmware.log_stride)
            self.commands.place(self.segment.queue_address)
            return
        if self.probe is not None:
            kind = "software" if interface == SW_RESET else "disabled"
            self.probe.hit(points.RESET, self.function.function_id, kind)
        self._end()
        if interface == SW_RESET and not self._restarting:
            self._restarting = True
            self.engine.post(self._restarted)

    def _restarted(self) -> None:
        self._restarting = False
        if self.segment.nic_interface != SW_RESET:
            return  # another reset came first
        self._reset_port()
        self._start_disabled()

    def command_doorbell(self, vector: int) -> None:
        """The host has submitted command slots (D7)."""
        self.commands.ring(vector)

    def bar_read(self, bar: int, offset: int, size: int) -> bytes:
        """Read BAR0: init segment, MSI-X table; UAR pages and gaps read as zero, what does not exist as ones."""
        if bar != 0 or offset < 0 or offset >= BAR0_SIZE or self.pulled:
            return b"\xff" * size
        if offset + size <= SEGMENT_SIZE:
            return self.segment.read(offset, size)
        data = bytearray(size)
        if offset < SEGMENT_SIZE:
            data[: SEGMENT_SIZE - offset] = self.segment.read(offset, SEGMENT_SIZE - offset)
        first, last = max(offset, MSIX_TABLE), min(offset + size, MSIX_PENDING)
        if first < last:
            data[first - offset : last - offset] = self._msix[first - MSIX_TABLE : last - MSIX_TABLE]
        if offset + size > BAR0_SIZE:
            data[BAR0_SIZE - offset :] = b"\xff" * (offset + size - BAR0_SIZE)
        return bytes(data)

    def bar_write(self, bar: int, offset: int, data: bytes | memoryview) -> None:
        """Write BAR0: init segment, MSI-X table, UAR doorbells; anything else is ignored."""
        if bar != 0 or offset < 0 or offset >= BAR0_SIZE or not data or self.pulled:
            return
        end = min(offset + len(data), BAR0_SIZE)
        if offset >= FIRST_UAR * UAR_PAGE and offset % UAR_PAGE + len(data) <= UAR_PAGE:
            uar.doorbell(self.function, offset // UAR_PAGE, offset % UAR_PAGE, data)
            return
        if offset < SEGMENT_SIZE:
            self.segment.write(offset, data[: SEGMENT_SIZE - offset])
        first, last = max(offset, MSIX_TABLE), min(end, MSIX_PENDING)
        if first < last:
            self._msix[first - MSIX_TABLE : last - MSIX_TABLE] = data[first - offset : last - offset]
        if end > FIRST_UAR * UAR_PAGE:
            skip = FIRST_UAR * UAR_PAGE - offset
            self._uar_write(FIRST_UAR * UAR_PAGE, data[skip : end - offset])

    def _uar_write(self, offset: int, data: bytes | memoryview) -> None:
        while data:
            page, at = divmod(offset, UAR_PAGE)
            part = data[: UAR_PAGE - at]
            uar.doorbell(self.function, page, at, part)
            offset += len(part)
            data = data[len(part) :]

    def summary(self) -> dict[str, Any]:
        """What became of the card, for programs.

        Returns:
            `profile`; `commands`, how many ended; `failed_commands`, by the opcode's name; `pages_outstanding`, pages
            of the function's host that the device has now, those of VFs included; `objects` alive now, by kind;
            `teardowns`, see :class:`softhca.hca.lifecycle.Teardown`; `lid` of the port, 0 on Ethernet; `packets`, see
            :meth:`packets`.
        """
        return {
            "profile": self.profile.name,
            "commands": self.commands.commands,
            "failed_commands": dict(self.commands.failed),
            "pages_outstanding": self.function.pages_held,
            "objects": self.function.objects(),
            "teardowns": [asdict(teardown) for teardown in self.teardowns],
            "lid": self.port.lid,
            "packets": self.packets(),
        }


class VirtualFunction(Hca):
    """A VF of a card: it sits in a machine by itself, which need not be the one of its PF.

    Until its PF has enabled it, its firmware does not start: `initializing` reads 1. What it shows as its ids and BARs
    are those that a hypervisor would show for it.

    Args:
        pf: the card.
        number: its number, which is its function id and its vport number: 1 to `profile.pci.total_vfs`.
        strict, fast: as of the card.
    """

    port: VirtualPort

    def __init__(self, pf: Hca, number: int, *, strict: bool, fast: bool) -> None:
        self.pf = pf
        self.number = number
        profile = pf.profile.of_vf(number)
        super().__init__(pf.engine, profile, flash=pf.flash, strict=strict, fabric=pf.fabric, fast=fast)
        self.pulled = True

    def _make_port(self) -> Port:
        return VirtualPort(self.profile, self.pf.port)

    def _make_function(self) -> Function:
        return Function(self, self.number, manager=self.pf.function)

    @property
    def probe(self) -> Probe | None:
        """That of the card."""
        return self.pf.probe

    @probe.setter
    def probe(self, probe: Probe | None) -> None:
        self.pf.probe = probe

    def attach(self, host: Host) -> None:
        """Put the VF into a machine.

        Raises:
            RuntimeError: it sits in another one, or it is not on the bus.
        """
        if self.pulled:
            raise RuntimeError(f"attach: VF {self.number} is not on the bus: VF Enable of its PF is off")
        super().attach(host)

    def vanish(self) -> None:
        """VF Enable is off: gone from the bus and from its machine, where all reads are ones."""
        self.detach()
        self.pull()

    def enable(self) -> None:
        """The PF has enabled it: its firmware starts, and its driver may come once the PF's host gave the pages."""
        self.function.enabled = self.port.enabled = True
        self.function.icm.refused = False
        self._start_disabled()
        self.settle_pages()

    def disable(self) -> None:
        """Its PF has disabled it; its pages are offered back to the PF's host."""
        self.halt()
        self.settle_pages()

    def halt(self) -> None:
        """It is not enabled any more: nothing is accessed."""
        if self.function.enabled:
            self.function.enabled = self.port.enabled = False
            self._start()

    def forget(self) -> None:
        """The card was reset: its pages are the host's again, what the PF granted it is forgotten."""
        self.function.icm.forget()
        self.function.caps.ungrant()

    def settle_pages(self) -> None:
        """Ask the PF's host for what lacks, or offer what is not needed."""
        pages.settle_vf(self.function)

    def follow_port(self, kind: EventType, data: bytes, subtype: int) -> None:
        """The physical port has changed."""
        if self.port.enabled and self.port.policy is VportAdminState.AUTO:
            self.function.event(kind, data, subtype)

    def _start(self) -> None:
        """Start the firmware, which is the card's, if the PF has enabled the VF."""
        if self.function.enabled:
            super()._start()
            return
        self._end()
        self.ready = False
        self.segment.hold()
        self.health.stop()
