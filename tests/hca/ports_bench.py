"""A function of any profile whose commands are called directly, with every event that it raises."""

from __future__ import annotations

from typing import Any, cast

from softhca.hca import adapter, hca_vport, mad, registers, special_contexts
from softhca.hca.command import COMMANDS, Stage
from softhca.hca.errors import CommandError
from softhca.hca.function import Function
from softhca.hca.port import Port
from softhca.hca.profile import Profile, load_profile
from softhca.hca.subnet import SM_LID
from softhca.prm.events import EventType
from softhca.prm.layout import Layout
from softhca.prm.opcodes import Opcode
from softhca.prm.syndromes import Syndrome

REGISTERED = (adapter, hca_vport, mad, registers, special_contexts)
"""Importing them puts their commands into the table."""
IB = "connectx-6-ib"
ETH = "connectx-7-eth"


class Card:
    """What ports ask their device for."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.port = Port(profile)
        if self.port.infiniband:
            self.port.assign(1, SM_LID)
        self.uar_pages = 8192
        self.probe = None


class Recorder:
    """Stands for an EQ that is mapped for every event."""

    def __init__(self) -> None:
        self.events: list[tuple[EventType, bytes, int]] = []

    def post(self, kind: EventType, data: bytes, subtype: int) -> None:
        self.events.append((kind, data, subtype))


class PortsBench:
    """A function after INIT_HCA.

    Args:
        profile: name of its profile.
        stage: how far its bring-up has come.
    """

    def __init__(self, profile: str = IB, stage: Stage = Stage.INITIALIZED) -> None:
        self.profile = load_profile(profile)
        self.card = Card(self.profile)
        self.port = self.card.port
        self.fn = Function(cast(Any, self.card))
        self.fn.stage = stage
        self.recorder = Recorder()
        self.fn.event_map = cast(Any, dict.fromkeys(EventType, self.recorder))
        self.port.on_event = self.fn.event

    def call(self, opcode: Opcode, *, room: int | None = None, payload: bytes = b"", **fields: Any) -> Any:
        """Carry out a command; its reply. Raises CommandError as the handler does.

        Args:
            opcode: which command.
            room: bytes of output that the host offers; the reply's own size when not given.
            payload: follows the fixed part of the input.
            fields: of the input.
        """
        entry = COMMANDS[opcode]
        fixed = entry.request.pack(opcode=opcode, **fields)
        request = entry.request(bytearray(fixed + payload))
        reply = entry.reply(bytearray(entry.reply.SIZE if room is None else room))
        entry.handler(self.fn, request, reply)
        return reply

    def refusal(self, opcode: Opcode, *, room: int | None = None, payload: bytes = b"", **fields: Any) -> Syndrome:
        """The syndrome that a command fails with."""
        try:
            self.call(opcode, room=room, payload=payload, **fields)
        except CommandError as error:
            return error.syndrome
        raise AssertionError(f"{opcode.name} succeeded")

    def register(self, number: int, layout: type[Layout], op_mod: int, **fields: Any) -> Any:
        """ACCESS_REGISTER; the register as it comes back."""
        payload = layout.pack(**fields)
        reply = self.call(Opcode.ACCESS_REG, room=16 + len(payload), payload=payload, op_mod=op_mod, register_id=number)
        return layout(bytearray(bytes(reply)[16:]))
