"""Event queues: how the device says that something happened (source 1.2.3, 3.7, A4, A5, C10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from softhca.bus import Engine
from softhca.driver.cmd import CommandChannel
from softhca.driver.memory import Buffer, Machine, lent
from softhca.driver.uar import Uar
from softhca.prm.eq import CreateEqIn, CreateEqOut, DestroyEqIn, DestroyEqOut
from softhca.prm.events import Eqe, EventType
from softhca.prm.opcodes import Opcode

_OWNER_BYTE = Eqe.SIZE - 1


class EventQueue:
    """An EQ of 2^log_size EQEs, read by its interrupt.

    The interrupt handler only makes the reading of the queue ready to run. It then runs on the engine like all other
    work, so that an event's handler may submit commands.

    Args:
        channel, machine, engine, uar: what it is made of.
        log_size: log2 of its slots.
        vector: its MSI-X vector; several EQs may share one only when each is polled by hand.
        handlers: what to do with an event, by type. Types other than completions are mapped to this EQ.
    """

    def __init__(
        self,
        channel: CommandChannel,
        machine: Machine,
        engine: Engine,
        uar: Uar,
        *,
        log_size: int,
        vector: int,
        handlers: dict[EventType, Callable[[Eqe], None]],
    ) -> None:
        self._channel = channel
        self._machine = machine
        self._engine = engine
        self._uar = uar
        self._log_size = log_size
        self._handlers = handlers
        self._consumer = 0
        self._scheduled = False
        self.vector = vector
        self.events = 0
        """EQEs read so far."""
        self.unexpected = 0
        """EQEs that had no handler."""
        self.buffer = Buffer(machine, Eqe.SIZE << log_size)
        self._slots = [Eqe(self.buffer.view, at) for at in range(0, Eqe.SIZE << log_size, Eqe.SIZE)]
        for at in range(_OWNER_BYTE, len(self.buffer), Eqe.SIZE):
            self.buffer.view[at] = 1  # the first lap's owner bit is 0
        with lent(self.buffer):
            self.number = self._create(event for event in handlers if event is not EventType.COMP)
        machine.on_interrupt(vector, self._interrupt)
        uar.update_eq(self.number, 0, arm=True)

    def _create(self, events: Iterable[EventType]) -> int:
        bitmask = sum(1 << event for event in events)
        request = CreateEqIn.new(
            eq_context_entry={
                "log_eq_size": self._log_size,
                "uar_page": self._uar.number,
                "intr": self.vector,
                "log_page_size": 0,
            },
            event_bitmask=[bitmask >> 64 * word & (1 << 64) - 1 for word in range(4)],
            pas=self.buffer.pages,
        )
        return self._channel.execute(Opcode.CREATE_EQ, request, CreateEqOut).eq_number

    def _interrupt(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._engine.post(self._service)

    def _service(self) -> None:
        self._scheduled = False
        self.poll()

    def poll(self) -> int:
        """Read every EQE that is there, tell the device how far, arm again; tell how many there were."""
        count = 0
        while True:
            eqe = self._slots[self._consumer & (1 << self._log_size) - 1]
            if eqe.owner != self._consumer >> self._log_size & 1:
                break
            copy = Eqe(bytearray(bytes(eqe)))
            self._consumer += 1
            count += 1
            self._uar.update_eq(self.number, self._consumer, arm=False)
            self._dispatch(copy)
        self.events += count
        self._uar.update_eq(self.number, self._consumer, arm=True)
        return count

    def _dispatch(self, eqe: Eqe) -> None:
        kind = eqe.type
        for event, handler in self._handlers.items():
            if event == kind:
                handler(eqe)
                return
        self.unexpected += 1

    def destroy(self) -> None:
        """DESTROY_EQ, then free what it used."""
        self._channel.execute(Opcode.DESTROY_EQ, DestroyEqIn.new(eq_number=self.number), DestroyEqOut)
        self._machine.on_interrupt(self.vector, None)
        self.buffer.free()
