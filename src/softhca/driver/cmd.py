"""The command channel: entries, slots, tokens, doorbells and completion (source 4, D1-D10).

The host fills an entry and its mailboxes, sets the ownership bit, rings the doorbell, and has the entry back when the
device has cleared the bit. At first it learns that by looking (polling); once an EQ is mapped for command completion,
an event says which slots to look at. The entry itself decides in both ways.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Generic, TypeVar

from softhca.bus import Engine
from softhca.driver.errors import (
    CommandError,
    CommandFailed,
    CommandTimeout,
    DeliveryError,
    DriverError,
    Refused,
    SignatureError,
    StaleObject,
)
from softhca.driver.init_segment import QUEUE_BLOCK, InitSegment
from softhca.driver.mailbox import Mailbox, MailboxPool
from softhca.driver.memory import Buffer, Machine
from softhca.prm.cmd import ENTRY_TYPE_PCIE, INLINE, CmdLayout, xor8
from softhca.prm.codec import codec
from softhca.prm.layout import Layout
from softhca.prm.opcodes import Opcode

SECOND = 1_000_000_000
TIMEOUT = 60 * SECOND
"""How long the host waits for a command (ns); Linux's default. The device knows no such limit (D10)."""
DEVICE_OWNS = 1

_ENTRY = codec(CmdLayout, "type", "inlen", "in_ptr", "out_ptr", "outlen", "token")
_INPUT, _SIGNATURE, _OWNER = CmdLayout.FIELDS["in_"].offset, CmdLayout.FIELDS["sig"].offset, CmdLayout.SIZE - 1

Reply = TypeVar("Reply", bound=Layout)


class Submission(Generic[Reply]):
    """A command in a slot: from filling the entry until its output has been read and applied (D6).

    Attributes:
        opcode, slot, token: what, where, and which use of the slot.
        done: the slot is the host's again, and `outcome` or `error` is set.
    """

    def __init__(
        self,
        opcode: Opcode,
        slot: int,
        token: int,
        reply: type[Reply],
        room: int,
        apply: Callable[[Reply], None] | None,
        refused: Callable[[], None] | None,
    ) -> None:
        self.opcode = opcode
        self.slot = slot
        self.token = token
        self.reply = reply
        self.room = room
        self.apply = apply
        self.refused = refused
        self.input: list[Mailbox] = []
        self.output: list[Mailbox] = []
        self.done = False
        self.outcome: Reply | None = None
        self.error: DriverError | None = None

    @property
    def succeeded(self) -> bool:
        """Whether it is done, without an error."""
        return self.done and self.error is None

    def result(self) -> Reply:
        """The output.

        Raises:
            DriverError: the command failed (or is not done).
        """
        if self.error is not None:
            raise self.error
        if self.outcome is None:
            raise CommandError(self.opcode, f"is not done; slot {self.slot} is the device's")
        return self.outcome


_lives = count(1)


class CommandChannel:
    """The command queue of a function.

    The last slot is kept for MANAGE_PAGES, so that pages can be given while the commands that wait for them fill all
    others.

    Args:
        segment: the registers.
        machine: where queue and mailboxes live.
        engine: runs the device, and tells the time.
        timeout: nanoseconds to wait for a command.
        log: where every submitted command is noted, in order.
    """

    def __init__(
        self,
        segment: InitSegment,
        machine: Machine,
        engine: Engine,
        timeout: int = TIMEOUT,
        log: list[Opcode] | None = None,
    ) -> None:
        self._segment = segment
        self._engine = engine
        self.timeout = timeout
        self.geometry = segment.geometry()
        self.life = next(_lives)
        """Which life of a function this queue belongs to; its objects bear this number (F8)."""
        self.missed_events = 0
        """Commands that were found complete after their time, without an event."""
        self._closed = False
        self.log: list[Opcode] = [] if log is None else log
        self.quarantine: dict[int, Submission[Any]] = {}
        """Slots that timed out: the device may still access them and their mailboxes (D10)."""
        self._queue = Buffer(machine, QUEUE_BLOCK)
        self._mailboxes = MailboxPool(machine)
        self._busy: dict[int, Submission[Any]] = {}
        self._free = list(range(self.geometry.slots - 1))
        self._token = 0
        self._make_room: Callable[[], object] | None = None
        self._entries = [
            self._queue.view[at : at + CmdLayout.SIZE]
            for at in range(0, self.geometry.slots * self.geometry.stride, self.geometry.stride)
        ]

    @property
    def page_slot(self) -> int:
        """The slot of MANAGE_PAGES."""
        return self.geometry.slots - 1

    @property
    def in_flight(self) -> int:
        """Slots that the device owns."""
        return len(self._busy) + len(self.quarantine)

    @property
    def event_driven(self) -> bool:
        """Whether completions are found by events (D8)."""
        return self._make_room is not None

    def open(self) -> None:
        """Tell the device where the queue is (C4)."""
        self._segment.set_command_queue(self._queue.iova)

    def execute(self, opcode: Opcode, request: Layout, reply: type[Reply], *, room: int = 0) -> Reply:
        """Run one command to its end.

        Args:
            opcode: which command.
            request: its input; the opcode is filled in here.
            reply: layout of its output.
            room: output room in bytes, when more than the layout's size is needed.

        Raises:
            CommandError: it failed; DeliveryError, CommandFailed, CommandTimeout and SignatureError say how.
        """
        submission = self.prepare(opcode, request, reply, room=room)
        self.ring(submission)
        return self.finish(submission)

    def prepare(
        self,
        opcode: Opcode,
        request: Layout,
        reply: type[Reply],
        *,
        room: int = 0,
        apply: Callable[[Reply], None] | None = None,
        refused: Callable[[], None] | None = None,
    ) -> Submission[Reply]:
        """Fill a slot and hand it to the device, without ringing.

        Args:
            opcode: which command.
            request: its input.
            reply: layout of its output.
            room: output room in bytes, as for :meth:`execute`.
            apply: does what the output asks for (pages into the ledger), however late it comes (D6, D10).
            refused: undoes the preparation of a command that the device did not carry out.

        Raises:
            CommandError: no slot came free.
            MemoryError: the machine has no memory for mailboxes.
        """
        if self._closed:
            raise StaleObject(f"{opcode.name}: the command queue of this life of the function is gone")
        message = opcode.to_bytes(2, "big") + bytes(request)[2:]
        slot = self._take_slot(opcode)
        self._token = self._token % 255 + 1
        submission = Submission(opcode, slot, self._token, reply, max(reply.SIZE, INLINE, room), apply, refused)
        try:
            submission.input = self._mailboxes.chain(self._token, len(message), message)
            submission.output = self._mailboxes.chain(self._token, submission.room)
        except MemoryError:
            self._release(submission)
            raise
        self._fill(submission, message)
        self._busy[slot] = submission
        self.log.append(opcode)
        return submission

    def ring(self, *submissions: Submission[Any]) -> None:
        """Ring the doorbell for one or several slots; among several there is no order (D7)."""
        vector = 0
        for submission in submissions:
            vector |= 1 << submission.slot
        self._segment.ring(vector)

    def finish(self, submission: Submission[Reply]) -> Reply:
        """Wait until a command is done.

        Raises:
            CommandError: it failed. After CommandTimeout its slot is in quarantine.
        """
        look = (lambda: submission.done) if self.event_driven else (lambda: self._look(submission))
        if not self._engine.wait(look, self.timeout):
            if not self._look(submission):
                self.quarantine[submission.slot] = self._busy.pop(submission.slot)
                raise CommandTimeout(submission.opcode, submission.slot, self.timeout)
            self.missed_events += 1
        return submission.result()

    def same_life(self, what: str, *lives: int) -> None:
        """Check that objects are of this life (F8).

        Args:
            what: is about to be done, for the message.
            lives: of the objects that it uses.

        Raises:
            StaleObject: one is of another, or this one is over.
        """
        if self._closed or any(life != self.life for life in lives):
            raise StaleObject(f"{what}: an object of an earlier life of the function; its number means nothing now")

    def use_events(self, make_room: Callable[[], object]) -> None:
        """From now on completions are told by events.

        Args:
            make_room: consumes what lies in the command EQ, so that it keeps room (D8).
        """
        self.require_idle()
        self._make_room = make_room

    def require_idle(self) -> None:
        """Check that the device owns no slot: what switches the way of completion runs alone (C10).

        Raises:
            DriverError: it owns one.
        """
        if self.in_flight:
            slots = sorted([*self._busy, *self.quarantine])
            raise DriverError(f"command channel: slots {slots} are the device's, the queue must be empty")

    def use_polling(self) -> None:
        """Go back to polling, before the command EQ is destroyed."""
        self._make_room = None

    def completed(self, vector: int) -> None:
        """A Command Completion event: look at the slots that it names (D8)."""
        for slot in range(self.geometry.slots):
            if vector >> slot & 1:
                submission = self._busy.get(slot) or self.quarantine.get(slot)
                if submission is not None:
                    self._look(submission)

    def recover(self) -> int:
        """Look at the slots in quarantine; those that completed late are the host's again. Tell how many remain."""
        for submission in list(self.quarantine.values()):
            self._look(submission)
        return len(self.quarantine)

    def free(self) -> None:
        """Free queue and mailboxes: the device is known to access them no more (F1)."""
        self.abandon()
        self._mailboxes.free()
        self._queue.free()

    def abandon(self) -> None:
        """Take no more commands; the memory is freed by who knows that the device accesses it no more."""
        self._closed = True
        self._busy.clear()
        self.quarantine.clear()

    def _take_slot(self, opcode: Opcode) -> int:
        if self._make_room is not None:
            self._make_room()
        if opcode is Opcode.MANAGE_PAGES:
            if not self._engine.wait(lambda: self.page_slot not in self._busy, self.timeout):
                raise CommandTimeout(opcode, self.page_slot, self.timeout)
            if self.page_slot in self.quarantine and self.recover() and self.page_slot in self.quarantine:
                raise CommandError(opcode, "needs the page slot, which is in quarantine")
            return self.page_slot
        if not self._free and not self._engine.wait(lambda: bool(self._free), self.timeout):
            raise CommandError(opcode, f"found no free slot among {self.geometry.slots - 1}")
        return self._free.pop(0)

    def _fill(self, submission: Submission[Any], message: bytes) -> None:
        """Write the entry (D2), its ownership bit last."""
        memory = self._entries[submission.slot]
        entry = bytearray(CmdLayout.SIZE)
        _ENTRY.pack_into(
            entry,
            0,
            ENTRY_TYPE_PCIE,
            len(message),
            submission.input[0].iova if submission.input else 0,
            submission.output[0].iova if submission.output else 0,
            submission.room,
            submission.token,
        )
        entry[_INPUT : _INPUT + min(INLINE, len(message))] = message[:INLINE]
        entry[_OWNER] = DEVICE_OWNS
        entry[_SIGNATURE] = ~xor8(entry) & 0xFF
        memory[:-1] = entry[:-1]
        # Here a real host issues a write barrier: all of it is visible before the device owns the entry.
        memory[-1] = entry[-1]

    def _look(self, submission: Submission[Any]) -> bool:
        """Take the slot back if the device has given it back; tell whether the command is done."""
        if submission.done:
            return True
        entry = CmdLayout(self._entries[submission.slot])
        if entry.ownership == DEVICE_OWNS:
            return False
        # Here a real host issues a read barrier: output is read after ownership.
        try:
            submission.outcome = self._read_output(submission, entry)
            if submission.apply is not None:
                submission.apply(submission.outcome)
        except DriverError as error:
            submission.error = error
            if submission.refused is not None and isinstance(error, Refused):
                submission.refused()
        submission.done = True
        self._release(submission)
        return True

    def _read_output(self, submission: Submission[Reply], entry: CmdLayout) -> Reply:
        if entry.status:
            raise DeliveryError(submission.opcode, entry.status)
        if xor8(self._entries[submission.slot]) != 0xFF or not all(box.is_signed() for box in submission.output):
            raise SignatureError(submission.opcode, f"left a wrong signature in slot {submission.slot}")
        parts = [bytes(entry.out), *(bytes(box.data) for box in submission.output)]
        output = b"".join(parts)[: submission.room]
        status, syndrome = output[0], int.from_bytes(output[4:8], "big")
        if status:
            raise CommandFailed(submission.opcode, status, syndrome)
        return submission.reply(bytearray(output))

    def _release(self, submission: Submission[Any]) -> None:
        self._mailboxes.give_back(submission.input)
        self._mailboxes.give_back(submission.output)
        self._busy.pop(submission.slot, None)
        self.quarantine.pop(submission.slot, None)
        if submission.slot != self.page_slot:
            self._free.append(submission.slot)
