"""Every named point and every effect. What is not here cannot be traced and cannot be made to fail."""

from __future__ import annotations

from softhca.points.point import Effect, Field, Kind, Point
from softhca.prm.events import EventType
from softhca.prm.init_segment import HealthSyndrome
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus, DeliveryStatus

# Effects of the command points.

FAIL = Effect(
    "status",
    "the command is not carried out and ends with this status",
    Field("status", Kind.NAME, "command status", CommandStatus),
    (Field("syndrome", Kind.HEX, "of the output; by default that of an injected fault", most=0xFFFF_FFFF),),
)
UNDELIVERED = Effect(
    "delivery",
    "the command is not carried out and its entry ends with this delivery status",
    Field("delivery", Kind.NAME, "delivery status", DeliveryStatus),
)
DELAY = Effect("delay", "it is carried out only after this time", Field("delay", Kind.TIME, "engine time"))
LATE = Effect("late", "it is carried out, and completes only after this time", Field("late", Kind.TIME, "engine time"))
LOST = Effect("lost", "it never completes, though it was carried out", Field("lost", Kind.FLAG, "always true"))
IGNORED = Effect("ignored", "it is never carried out and never completes", Field("ignored", Kind.FLAG, "always true"))
SLOW_TEARDOWN = Effect(
    "refuse_fast_teardown",
    "TEARDOWN_HCA(prepare fast teardown) answers that the device is not able to",
    Field("refuse_fast_teardown", Kind.FLAG, "always true"),
)

# Effects of the other points.

STARVE = Effect("starve", "the room is said to be lacking", Field("starve", Kind.FLAG, "always true"))
DROP = Effect("drop", "it does not arrive", Field("drop", Kind.FLAG, "always true"))
DUPLICATE = Effect("duplicate", "it arrives twice", Field("duplicate", Kind.FLAG, "always true"))
REORDER = Effect("reorder", "a later one overtakes it", Field("reorder", Kind.FLAG, "always true"))
CORRUPT = Effect("corrupt", "it arrives with a wrong CRC", Field("corrupt", Kind.FLAG, "always true"))
DMA_FAULT = Effect("fault", "the access fails", Field("fault", Kind.FLAG, "always true"))

# Effects on the whole card, which any point can set off.

RAISE = Effect(
    "raise",
    "the card reports this health syndrome",
    Field("raise", Kind.NAME, "health syndrome", HealthSyndrome),
    (Field("fatal", Kind.FLAG, "the device has stopped and asks for a reset (rfr)"),),
    card=True,
)
STOP_COUNTER = Effect(
    "stop_counter", "the health counter stands still", Field("stop_counter", Kind.FLAG, "always true"), card=True
)
REMOVE = Effect(
    "remove",
    "surprise removal: the card answers nothing any more",
    Field("remove", Kind.FLAG, "always true"),
    card=True,
)
CARD_EFFECTS = (RAISE, STOP_COUNTER, REMOVE)

# Points.

_SLOT = Field("slot", Kind.NUMBER, "command slot")
_COMMAND = Field("command", Kind.NAME, "opcode", Opcode)
_OP_MOD = Field("op_mod", Kind.HEX, "opcode modifier")

COMMAND_RECEIVED = Point(
    "command.received",
    "an entry has passed the checks of delivery; the command is about to be carried out",
    (_SLOT, _COMMAND, _OP_MOD, Field("input", Kind.BYTES, "the input message")),
    (FAIL, UNDELIVERED, DELAY, LATE, LOST, IGNORED, SLOW_TEARDOWN),
)
COMMAND_COMPLETED = Point(
    "command.completed",
    "a command's output and entry are about to be written",
    (
        _SLOT,
        _COMMAND,
        _OP_MOD,
        Field("delivery", Kind.NAME, "delivery status", DeliveryStatus),
        Field("status", Kind.NAME, "command status", CommandStatus),
        Field("syndrome", Kind.HEX, "command syndrome"),
        Field("output", Kind.BYTES, "the output message"),
    ),
    (LATE, LOST),
)
PAGES_ASKED = Point(
    "pages.asked",
    "a Pages Request event is due",
    (Field("pages", Kind.NUMBER, "asked for; negative: to return", least=-(1 << 31)),),
    (DROP,),
)
PAGES_GIVEN = Point("pages.given", "pages were accepted", (Field("pages", Kind.NUMBER, "how many"),))
PAGES_RETURNED = Point("pages.returned", "pages were returned", (Field("pages", Kind.NUMBER, "how many"),))
ICM_TAKEN = Point("icm.taken", "a command takes room in the ICM", (Field("bytes", Kind.NUMBER, "how much"),), (STARVE,))
EQE = Point(
    "eqe",
    "an event queue entry is about to be written",
    (
        Field("eqn", Kind.HEX, "event queue"),
        Field("event", Kind.NAME, "type of event", EventType),
        Field("sub_type", Kind.HEX, "sub-type"),
        Field("data", Kind.BYTES, "event data"),
    ),
    (DROP, DUPLICATE),
)
INTERRUPT = Point("interrupt", "an MSI-X vector is raised", (Field("vector", Kind.NUMBER, "which"),), (DROP,))
CQE = Point(
    "cqe",
    "a completion queue entry was written",
    (
        Field("cqn", Kind.HEX, "completion queue"),
        Field("qpn", Kind.HEX, "queue pair"),
        Field("opcode", Kind.HEX, "CQE opcode"),
        Field("wqe_counter", Kind.NUMBER, "which work request"),
        Field("byte_count", Kind.NUMBER, "bytes"),
        Field("syndrome", Kind.HEX, "of an error CQE, else 0"),
    ),
)
PACKET = Point(
    "packet",
    "a message, or the answer to one, leaves a port; a fault is one of a packet of it, whichever",
    (
        Field("qpn", Kind.HEX, "queue pair that sends"),
        Field("remote_qpn", Kind.HEX, "queue pair that it goes to"),
        Field("operation", Kind.TEXT, "what it is"),
        Field("psn", Kind.NUMBER, "sequence number of its first packet"),
        Field("packets", Kind.NUMBER, "how many packets it takes"),
        Field("bytes", Kind.NUMBER, "payload"),
        Field("answer", Kind.FLAG, "it is the responder's answer"),
    ),
    (DROP, DUPLICATE, REORDER, CORRUPT),
)
DMA = Point(
    "dma",
    "the device accesses host memory; told only when a rule or a filter names this point, since there are very many",
    (
        Field("iova", Kind.HEX, "DMA address"),
        Field("length", Kind.NUMBER, "bytes"),
        Field("write", Kind.FLAG, "it writes"),
    ),
    (DMA_FAULT,),
)
HEALTH = Point(
    "health",
    "the card reports on its health",
    (Field("health", Kind.NAME, "syndrome", HealthSyndrome), Field("extended", Kind.HEX, "details")),
)
RESET = Point(
    "reset", "the function was reset", (Field("reset", Kind.TEXT, "cold, flr, software, disabled or removed"),)
)
STAGE = Point("stage", "the function's life goes on", (Field("stage", Kind.TEXT, "the new stage"),))
TIME = Point("time", "a time that a rule names (key `at`) has passed since the card was powered")

DRIVER_STAGE = Point(
    "driver.stage",
    "our own driver has completed a stage of bring-up or close",
    (
        Field("name", Kind.TEXT, "which"),
        Field("took", Kind.NUMBER, "nanoseconds"),
        Field("note", Kind.TEXT, "what it found"),
    ),
)

POINTS: dict[str, Point] = {
    point.name: point
    for point in (
        COMMAND_RECEIVED,
        COMMAND_COMPLETED,
        PAGES_ASKED,
        PAGES_GIVEN,
        PAGES_RETURNED,
        ICM_TAKEN,
        EQE,
        INTERRUPT,
        CQE,
        PACKET,
        DMA,
        HEALTH,
        RESET,
        STAGE,
        TIME,
        DRIVER_STAGE,
    )
}
"""Every point by its name."""
