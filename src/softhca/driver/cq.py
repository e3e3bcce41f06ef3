"""Completion queues: the result of work (source 1.2.3, A3-A6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from softhca.bus import Engine
from softhca.driver.cmd import CommandChannel
from softhca.driver.eq import EventQueue
from softhca.driver.errors import CompletionError, NotReady
from softhca.driver.memory import Buffer, Machine, lent
from softhca.driver.uar import Uar
from softhca.prm.cq import CreateCqIn, CreateCqOut, DestroyCqIn, DestroyCqOut
from softhca.prm.cqe import Cqe64, CqeOpcode, ErrCqe
from softhca.prm.opcodes import Opcode

_INVALID_AND_OWNED = 0xF1
_SEQUENCE = 28


@dataclass(frozen=True)
class Completion:
    """A CQE, read.

    Attributes:
        opcode: what completed.
        qpn: of which QP.
        wqe_counter: which work request: the counter that posting it gave.
        byte_count: bytes moved, for a receive.
        error: what went wrong, or None.
    """

    opcode: CqeOpcode
    qpn: int
    wqe_counter: int
    byte_count: int
    error: CompletionError | None

    def check(self) -> Completion:
        """Itself, when it is a success.

        Raises:
            CompletionError: the work request failed.
        """
        if self.error is not None:
            raise self.error
        return self


class CompletionQueue:
    """A CQ of 2^log_size CQEs of 64 bytes.

    Args:
        channel, machine, engine, uar: what it is made of.
        eq: where its events go; its handler for completions is told of them by :meth:`on_event`.
        log_size: log2 of its slots.
        on_completion: called at a completion event, which is not the result: the caller then polls (A4).
    """

    def __init__(
        self,
        channel: CommandChannel,
        machine: Machine,
        engine: Engine,
        uar: Uar,
        eq: EventQueue,
        *,
        log_size: int,
        on_completion: Callable[[], None] | None = None,
    ) -> None:
        self._channel = channel
        self._engine = engine
        self._uar = uar
        self._log_size = log_size
        self._consumer = 0
        self._sequence = 0
        self.events = 0
        """Completion events so far."""
        self.on_completion = on_completion
        self.buffer = Buffer(machine, Cqe64.SIZE << log_size)
        self.doorbell_record = Buffer(machine, 8)
        self._slots = [Cqe64(self.buffer.view, at) for at in range(0, Cqe64.SIZE << log_size, Cqe64.SIZE)]
        for at in range(Cqe64.SIZE - 1, len(self.buffer), Cqe64.SIZE):
            self.buffer.view[at] = _INVALID_AND_OWNED
        request = CreateCqIn.new(
            cq_context={
                "log_cq_size": log_size,
                "uar_page": uar.number,
                "c_eqn_or_apu_element": eq.number,
                "log_page_size": 0,
                "dbr_addr": self.doorbell_record.iova,
            },
            pas=self.buffer.pages,
        )
        with lent(self.buffer, self.doorbell_record):
            self.number = channel.execute(Opcode.CREATE_CQ, request, CreateCqOut).cqn
        self.life = channel.life

    def poll(self) -> Completion | None:
        """The next completion, or None; no command, no system call (A1).

        Raises:
            StaleObject: it is of an earlier life of the function.
        """
        self._channel.same_life(f"CQ {self.number:#x}: polling")
        cqe = self._slots[self._consumer & (1 << self._log_size) - 1]
        if cqe.opcode == CqeOpcode.INVALID or cqe.owner != self._consumer >> self._log_size & 1:
            return None
        # Here a real host issues a read barrier: the CQE is read after its owner bit.
        completion = _read(cqe)
        self._consumer += 1
        self._record(0, self._consumer & 0xFF_FFFF)
        return completion

    def wait(self, timeout: int) -> Completion:
        """The next completion, waiting for it.

        Args:
            timeout: nanoseconds of the device's clock.

        Raises:
            NotReady: none came.
        """
        found: list[Completion] = []

        def look() -> bool:
            completion = self.poll()
            if completion is not None:
                found.append(completion)
            return bool(found)

        if not self._engine.wait(look, timeout):
            raise NotReady(f"CQ {self.number:#x}: no completion in {timeout / 1e9:g} s")
        return found[0]

    def arm(self) -> None:
        """Ask for an event at the next completion (A4)."""
        command = (self._sequence & 3) << _SEQUENCE | self._consumer & 0xFF_FFFF
        self._record(4, command)
        self._uar.arm_cq(command, self.number)

    def on_event(self) -> None:
        """A completion event carried this CQ's number."""
        self._sequence += 1
        self.events += 1
        if self.on_completion is not None:
            self.on_completion()

    def _record(self, at: int, value: int) -> None:
        self.doorbell_record.view[at : at + 4] = value.to_bytes(4, "big")

    def destroy(self) -> None:
        """DESTROY_CQ, then free what it used; fails while a QP refers to it (A8)."""
        self._channel.execute(Opcode.DESTROY_CQ, DestroyCqIn.new(cqn=self.number), DestroyCqOut)
        self.buffer.free()
        self.doorbell_record.free()


def _read(cqe: Cqe64) -> Completion:
    opcode = CqeOpcode(cqe.opcode)
    qpn = cqe.sop_drop_qpn & 0xFF_FFFF
    error = None
    if opcode in (CqeOpcode.REQ_ERR, CqeOpcode.RESP_ERR):
        failed = ErrCqe(bytes(cqe))
        error = CompletionError(qpn, failed.syndrome, failed.vendor_err_synd)
    return Completion(opcode, qpn, cqe.wqe_counter, cqe.byte_cnt, error)
