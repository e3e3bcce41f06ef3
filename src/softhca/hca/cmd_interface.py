"""The command interface: slots, entries, delivery checks, execution, completion (D1-D10). It knows no opcode by name.

What it does with accesses that fail: an entry that cannot be read (queue not mapped, Bus Master off) is dropped, since
nobody can be told; with Bus Master on the health buffer says so. A mailbox that cannot be reached is a bad pointer. An
output that cannot be written although its chain was good before is an internal delivery error.
"""

from __future__ import annotations

import logging
from collections import Counter
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING

from softhca.bus import DmaFault, Iova
from softhca.hca import pages as icm_pages
from softhca.hca.command import COMMANDS, Command
from softhca.hca.errors import CommandError, PagesLacking
from softhca.hca.mailbox import MOST_BLOCKS, DeliveryError, check_output_chain, read_chain, write_chain
from softhca.points import Fault
from softhca.points import catalogue as points
from softhca.prm.cmd import ENTRY_TYPE_PCIE, INLINE, CmdLayout, InputHeader, mailboxes, xor8
from softhca.prm.events import EqeCmd, EventType
from softhca.prm.hca_cap import CmdifChecksum
from softhca.prm.init_segment import HealthSyndrome
from softhca.prm.opcodes import Opcode
from softhca.prm.status import DeliveryStatus
from softhca.prm.syndromes import Syndrome, control

if TYPE_CHECKING:
    from softhca.hca.device import Hca

log = logging.getLogger(__name__)

ENTRY = CmdLayout.SIZE
_ENTRY = Struct(">B3sIQ16s16xQIBxBB")
"""Type, reserved, inlen, in_ptr, in, out_ptr, outlen, token, reserved, status and ownership."""
_OUT, _SIGNATURE, _OWNER = 0x20, 0x3D, 0x3F
_OWNED = 0x01
_POINTER_ALIGNMENT = 0x1FF


class _Job:
    """A command from the fetch of its entry until its completion."""

    __slots__ = (
        "address",
        "by_event",
        "chain",
        "command",
        "entry",
        "epoch",
        "fault",
        "message",
        "missing",
        "opcode",
        "room",
        "slot",
    )

    def __init__(self, slot: int, address: Iova, entry: bytes, epoch: object, *, by_event: bool) -> None:
        self.slot = slot
        self.epoch = epoch
        self.address = address
        self.entry = entry
        self.by_event = by_event
        self.opcode = int.from_bytes(entry[0x10:0x12], "big")
        self.command: Command | None = COMMANDS.get(self.opcode)
        self.message = b""
        self.room = 0
        self.chain: list[tuple[Iova, bytes]] = []
        self.missing = 0
        self.fault: Fault | None = None
        """What has to go wrong with it."""

    @property
    def op_mod(self) -> int:
        """Its opcode modifier, 0 when the message is too short to have one."""
        return int.from_bytes(self.message[6:8], "big")

    @property
    def name(self) -> str:
        """Of its opcode."""
        try:
            return Opcode(self.opcode).name
        except ValueError:
            return f"{self.opcode:#x}"


class CommandInterface:
    """The command queue of a function.

    Args:
        device: the card; its `function` carries the commands out.
        strict: let an unexpected exception out after it was answered, so that tests see it.

    Attributes:
        commands: commands that ended with success or failure.
        failed: those that failed, by the name of the opcode (delivery errors too).
        ignored: doorbells of slots that were busy, do not exist, or came while no command is accepted.
        dropped: entries that could not be read or written back.
        unowned: entries that were rung, but not handed over by the ownership bit.
        faults: unexpected exceptions.
    """

    def __init__(self, device: Hca, *, strict: bool = False) -> None:
        self._device = device
        self._strict = strict
        self._queue = Iova(0)
        self._stride = ENTRY
        self._slots = 0
        self._epoch = object()
        self._busy: set[int] = set()
        self._rung: set[int] = set()
        """Slots that wait for their task."""
        self._posted: set[int] = set()
        """Slots that have a task in the engine."""
        self._parked: dict[int, _Job] = {}
        self._reported = 0
        self.commands = 0
        self.failed: Counter[str] = Counter()
        self.ignored = 0
        self.dropped = 0
        self.unowned = 0
        self.faults = 0

    def start(self, log_size: int, log_stride: int) -> None:
        """Take commands with this geometry (D1); what was in flight before is forgotten."""
        self.stop()
        self._slots = 1 << log_size
        self._stride = 1 << log_stride

    def stop(self) -> None:
        """Take no commands; nothing that was in flight touches memory any more."""
        self._forget()
        self._slots = 0
        self._queue = Iova(0)

    def _forget(self) -> None:
        self._epoch = object()
        self._busy.clear()
        self._rung.clear()
        self._parked.clear()
        self._reported = 0

    def place(self, address: int) -> None:
        """The queue lies here.

        What was in flight is forgotten: it was another host's, or of a driver that gave it up (D10), whose entries and
        mailboxes may be somebody else's memory by now. Only a host that repeats the address of a queue in use goes on.
        """
        if address != self._queue or not self._device.queue_locked:
            self._forget()
            self._queue = Iova(address)

    @property
    def in_flight(self) -> int:
        """Slots that the device works on."""
        return len(self._busy)

    @property
    def missing(self) -> int:
        """Bytes of ICM that the commands which wait for pages ask for."""
        return sum(job.missing for job in self._parked.values())

    def ring(self, vector: int) -> None:
        """Command doorbell: bit i submits slot i (D7). The engine decides which comes first."""
        slot = 0
        while vector:
            if vector & 1:
                if slot >= self._slots or slot in self._busy:
                    self.ignored += 1
                else:
                    self._busy.add(slot)
                    self._rung.add(slot)
                    if slot not in self._posted:
                        self._posted.add(slot)
                        self._device.engine.post(partial(self._serve, slot))
            vector >>= 1
            slot += 1

    def _serve(self, slot: int) -> None:
        """Engine task: one submitted slot. There is never more than one task for a slot, whatever the host writes."""
        self._posted.discard(slot)
        if slot not in self._rung:
            return
        self._rung.discard(slot)
        job = self._fetch(slot)
        if job is None:
            self._busy.discard(slot)
            return
        try:
            self._deliver(job)
        except DeliveryError as error:
            self._complete(job, error.status, b"", failed=True)
            return
        probe = self._device.probe
        if probe is not None:
            function_id = self._device.function.function_id
            job.fault = probe.hit(points.COMMAND_RECEIVED, function_id, slot, job.opcode, job.op_mod, job.message)
            if job.fault is not None and self._disturbed(job, job.fault):
                return
        self._again(job)

    def _disturbed(self, job: _Job, fault: Fault) -> bool:
        """A fault before a command is carried out; tell whether it is not to be carried out now."""
        effect = fault.effect
        if effect is points.FAIL:
            self._fail_with(job, fault.value, fault.more.get("syndrome", control.INJECTED_FAULT.number))
        elif effect is points.UNDELIVERED:
            self._complete(job, DeliveryStatus(fault.value), b"", failed=True)
        elif effect is points.DELAY:
            self._device.engine.after(fault.value, partial(self._again, job))
        else:
            return effect is points.IGNORED
        return True

    def _fetch(self, slot: int) -> _Job | None:
        """Copy the entry once; None when there is nothing to do."""
        function = self._device.function
        address = Iova(self._queue + slot * self._stride)
        try:
            entry = self._device.dma.read(address, ENTRY)
        except DmaFault:
            self._drop(address)
            return None
        if not entry[_OWNER] & _OWNED:
            self.unowned += 1
            return None
        return _Job(slot, address, entry, self._epoch, by_event=EventType.CMD in function.event_map)

    def _drop(self, address: Iova) -> None:
        self.dropped += 1
        if self._device.config.bus_master:
            log.debug("command entry at %#x cannot be accessed", address)
            self._device.health.report(HealthSyndrome.ICM_FETCH_PCI_ERR)

    def _deliver(self, job: _Job) -> None:
        """Check the entry and fetch the message (D2, D4, D5, D9).

        Raises:
            DeliveryError: the entry or a chain is malformed.
        """
        entry = job.entry
        kind, reserved, length, in_ptr, inline, out_ptr, room, token, spare, owner = _ENTRY.unpack(entry)
        if xor8(entry) != 0xFF:
            raise DeliveryError(DeliveryStatus.SIGNATURE_ERR)
        if kind != ENTRY_TYPE_PCIE:
            raise DeliveryError(DeliveryStatus.BAD_COMMAND_TYPE)
        if spare or owner != _OWNED or any(reserved):
            raise DeliveryError(DeliveryStatus.RESERVED_NOT_ZERO)
        command = job.command
        known = command is None or command.takes_length(length)
        if length < InputHeader.SIZE or mailboxes(length) > MOST_BLOCKS or not known:
            raise DeliveryError(DeliveryStatus.INPUT_LEN_ERR)
        least = InputHeader.SIZE if command is None else command.least_output
        if room < least or mailboxes(room) > MOST_BLOCKS:
            raise DeliveryError(DeliveryStatus.OUTPUT_LEN_ERR)
        signed = self._device.function.caps.general.cmdif_checksum == CmdifChecksum.ENABLED
        job.message = inline[:length]
        if length > INLINE:
            if in_ptr & _POINTER_ALIGNMENT:
                raise DeliveryError(DeliveryStatus.BAD_INPUT_POINTER)
            job.message = inline + read_chain(self._device.dma, in_ptr, length, token, signed=signed)
        if room > INLINE:
            if out_ptr & _POINTER_ALIGNMENT:
                raise DeliveryError(DeliveryStatus.BAD_OUTPUT_POINTER)
            job.chain = check_output_chain(self._device.dma, out_ptr, room, token, signed=signed)
        job.room = room

    def _execute(self, job: _Job) -> None:
        """Carry the command out: it completes, or it waits for pages."""
        function = self._device.function
        try:
            output = self._carry_out(job)
        except CommandError as error:
            log.debug("%s: %s", job.name, error)
            self._fail(job, error.syndrome)
        except PagesLacking as lacking:
            self._park(job, lacking.length)
        except DmaFault as error:
            log.debug("%s: %s", job.name, error)
            self._fail(job, control.COMMAND_DMA_FAULT)
        except Exception:
            # The one edge: a fault of ours must not stop the loop that serves every function.
            log.exception("%s: unexpected exception", job.name)
            self.faults += 1
            self._fail(job, control.INTERNAL_ERROR)
            if self._strict:
                raise
        else:
            self._complete(job, DeliveryStatus.OK, output, failed=False)
        if self._parked and not icm_pages.served(function):
            self.refuse()
        icm_pages.keep_ahead(function)

    def _carry_out(self, job: _Job) -> bytearray:
        """Run the handler; the reply.

        Raises:
            CommandError, PagesLacking, DmaFault: it was not carried out.
        """
        command, message, function = job.command, job.message, self._device.function
        if command is None:
            known = job.opcode in Opcode.__members__.values()
            raise CommandError(control.UNSUPPORTED_OPCODE if known else control.UNKNOWN_OPCODE, job.name)
        if message[2] or message[3]:
            raise CommandError(control.BAD_UID, f"uid {message[2] << 8 | message[3]:#x}, allowed is 0")
        if function.stage not in command.stages:
            allowed = ", ".join(stage.name for stage in sorted(command.stages))
            raise CommandError(control.BAD_STAGE, f"stage {function.stage.name}, allowed are {allowed}")
        op_mod = message[6] << 8 | message[7]
        if command.op_mods is not None and op_mod not in command.op_mods:
            raise CommandError(control.BAD_OP_MOD, f"op_mod {op_mod:#x}, allowed are {sorted(command.op_mods)}")
        size = command.request.SIZE
        request = command.request(message if len(message) >= size else message.ljust(size, b"\0"))
        output = bytearray(max(job.room, command.reply.SIZE))
        function.fault = job.fault
        command.handler(function, request, command.reply(output))
        return output

    def _fail(self, job: _Job, syndrome: Syndrome) -> None:
        self._fail_with(job, syndrome.status, syndrome.number)

    def _fail_with(self, job: _Job, status: int, syndrome: int) -> None:
        output = bytearray(max(job.room, InputHeader.SIZE))
        output[0] = status
        output[4:8] = syndrome.to_bytes(4, "big")
        self._complete(job, DeliveryStatus.OK, output, failed=True)

    def _complete(self, job: _Job, status: DeliveryStatus, output: bytes | bytearray, *, failed: bool) -> None:
        """A command has ended: count it, and give it back, unless a fault keeps it."""
        output = bytes(output[: job.room])
        self.commands += 1
        if failed:
            self.failed[job.name] += 1
        fault, probe = job.fault, self._device.probe
        if probe is not None:
            function_id, syndrome = self._device.function.function_id, int.from_bytes(output[4:8], "big")
            done = (job.slot, job.opcode, job.op_mod, status, output[0] if output else 0, syndrome, output)
            fault = probe.hit(points.COMMAND_COMPLETED, function_id, *done) or fault
        if fault is not None and fault.effect is points.LOST:
            return
        if fault is not None and fault.effect is points.LATE:
            self._device.engine.after(fault.value, partial(self._give_back, job, status, output))
            return
        self._give_back(job, status, output)

    def _give_back(self, job: _Job, status: DeliveryStatus, output: bytes) -> None:
        """Write the output, then the entry, its status and ownership byte last, alone (D6); then the event (D8).

        Nothing is written for a command of a queue that was given up since.
        """
        if job.epoch is not self._epoch:
            return
        dma = self._device.dma
        if status is DeliveryStatus.OK and job.chain:
            try:
                write_chain(dma, job.chain, output[INLINE:])
            except DmaFault:
                status = DeliveryStatus.INTERNAL_ERR
                self.failed[job.name] += 1
        entry = bytearray(job.entry)
        entry[_OUT : _OUT + INLINE] = output[:INLINE].ljust(INLINE, b"\0")
        entry[_SIGNATURE] = 0
        entry[_OWNER] = status << 1
        entry[_SIGNATURE] = ~xor8(entry) & 0xFF
        self._busy.discard(job.slot)
        try:
            view = dma.view(job.address, ENTRY, write=True)
        except DmaFault:
            self._drop(job.address)
            return
        view[_OUT : _OUT + INLINE] = entry[_OUT : _OUT + INLINE]
        view[_SIGNATURE] = entry[_SIGNATURE]
        view[_OWNER] = entry[_OWNER]
        if job.by_event:
            if not self._reported:
                self._device.engine.post(partial(self._report, self._epoch))
            self._reported |= 1 << job.slot

    def _report(self, epoch: object) -> None:
        """Engine task: tell what has completed since the last time in one event (D8)."""
        if epoch is not self._epoch or not self._reported:
            return
        vector, self._reported = self._reported, 0
        self._device.function.event(EventType.CMD, EqeCmd.pack(vector=vector))

    def _park(self, job: _Job, length: int) -> None:
        """Let the command wait for pages, or fail it when nobody can be asked for them (B9)."""
        job.missing = length
        self._parked[job.slot] = job
        if not icm_pages.ask(self._device.function, self.missing):
            del self._parked[job.slot]
            self._fail(job, control.NO_PAGES)

    def resume(self) -> None:
        """Pages came, or the function's stage changed: run what waits again."""
        parked, self._parked = self._parked, {}
        for job in parked.values():
            self._device.engine.post(partial(self._again, job))

    def _again(self, job: _Job) -> None:
        if job.epoch is self._epoch:
            self._execute(job)

    def refuse(self) -> None:
        """No pages will come: what waits for them ends with "no resources" (B9)."""
        parked, self._parked = self._parked, {}
        for job in parked.values():
            self._fail(job, control.NO_PAGES)

    def require_alone(self) -> None:
        """Check that no other command is in flight (C10).

        Raises:
            CommandError: there is one.
        """
        if self.in_flight > 1:
            raise CommandError(control.QUEUE_NOT_EMPTY, f"{self.in_flight - 1} other slots are in flight")
