"""The card: a PCI function whose BAR0 holds init segment, MSI-X table and UAR pages (E1, G1)."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from softhca.bus import Engine, Reset
from softhca.bus.config_space import Identity
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
from softhca.hca.port import Port
from softhca.hca.profile import Profile
from softhca.hca.vsc import Semaphores, VendorSpecific
from softhca.hca.watched_dma import WatchedDma
from softhca.points import Fault, Probe
from softhca.points import catalogue as points
from softhca.prm.init_segment import HealthSyndrome, NicInterface
from softhca.prm.uar import UAR_PAGE
from softhca.prm.vsc import Space

BAR0_SIZE = 32 << 20
MSIX_TABLE = SEGMENT_SIZE
MSIX_PENDING = 0x3000
_MSIX_ENTRY = 16
MOST_TEARDOWNS = 4096
MOST_VECTORS = (MSIX_PENDING - MSIX_TABLE) // _MSIX_ENTRY


class Hca(PciFunction):
    """A ConnectX-class HCA with one function.

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
            capabilities=[VendorSpecific({Space.ICMD: self.icmd, Space.SEMAPHORES: self._semaphores})],
        )
        self.profile = profile
        self.flash = firmware_flash.build(profile) if flash is None else flash
        self.firmware: Image = firmware_flash.load(firmware_flash.build(profile))
        self.ready = False
        self._probe: Probe | None = None
        self._restarting = False
        self.teardowns: list[Teardown] = []
        self._msix = bytearray(MOST_VECTORS * _MSIX_ENTRY)
        self._frequency = int(profile.capabilities["general"]["device_frequency_khz"])
        self._born = engine.clock.now()
        self.port = Port(profile)
        self._packets = {flow.name: 0 for flow in fields(self.port.traffic)}
        self.segment = InitSegment(self)
        self.health = Health(engine.clock, self.segment.view.health_buffer)
        self.segment.use_health(self.health)
        self.health.on_report = self._health_reported
        self.commands = CommandInterface(self, strict=strict)
        self.function = Function(self)
        self.function.fast = fast
        self.port.on_event = self.function.event
        self.fabric = Fabric() if fabric is None else fabric
        if self.port.infiniband:
            self.fabric.join(self)
        self._start()

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

    def _gate(self) -> None:
        """Open or close the way to host memory; while a rule is for accesses, each of them passes its point."""
        super()._gate()
        if self._probe is not None and self._probe.watches(points.DMA):
            self.dma = WatchedDma(self.dma, self._probe, self.function.function_id)

    def _raise(self, fault: Fault) -> None:
        syndrome = HealthSyndrome(fault.value)
        if fault.more.get("fatal"):
            self.die(syndrome)
        else:
            self.health.report(syndrome)

    def _health_reported(self, syndrome: HealthSyndrome, extended: int) -> None:
        if self._probe is not None:
            self._probe.hit(points.HEALTH, self.function.function_id, syndrome, extended)

    def die(self, syndrome: HealthSyndrome, extended: int = 0) -> None:
        """The firmware cannot go on, and the health buffer asks for a reset (E3).

        Until then nothing completes and nothing is accessed any more; pages stay the device's.
        """
        self.health.report(syndrome, extended, reset=True)
        self.health.stop()
        self.commands.stop()
        self.function.forget_objects()

    def remove(self) -> None:
        """Surprise removal: the card is out of its slot and reads as ones, until it is attached again."""
        self.commands.stop()
        self.function.reset()
        self.pull()
        if self._probe is not None:
            self._probe.hit(points.RESET, self.function.function_id, "removed")

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
        self._reset_port()
        if kind is Reset.FLR:
            self._start_disabled()
        else:
            self._start()

    def _start(self) -> None:
        """Load the firmware from flash and bring the function to its first state (C1)."""
        self.commands.stop()
        self.function.reset()
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
        self.commands.stop()
        self.function.reset()
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
            that the device has now; `objects` alive now, by kind; `teardowns`, see
            :class:`softhca.hca.lifecycle.Teardown`; `lid` of the port, 0 on Ethernet; `packets`, see :meth:`packets`.
        """
        return {
            "profile": self.profile.name,
            "commands": self.commands.commands,
            "failed_commands": dict(self.commands.failed),
            "pages_outstanding": len(self.function.icm.pages),
            "objects": self.function.objects(),
            "teardowns": [asdict(teardown) for teardown in self.teardowns],
            "lid": self.port.lid,
            "packets": self.packets(),
        }
