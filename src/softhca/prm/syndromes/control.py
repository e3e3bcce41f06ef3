"""Syndromes of the command interface, the function's life, pages and capabilities (area 01)."""

from softhca.prm.status import CommandStatus
from softhca.prm.syndromes.table import syndrome

UNKNOWN_OPCODE = syndrome(
    0xCA010001,
    CommandStatus.BAD_OP,
    "the opcode is not one of the manual",
    "the opcode in the first word of the input; its byte order",
)
UNSUPPORTED_OPCODE = syndrome(
    0xCA010002,
    CommandStatus.BAD_OP,
    "the opcode is the manual's, but this device does not implement it",
    "docs/conformance.md; the capability that announces the command is not set",
)
BAD_OP_MOD = syndrome(
    0xCA010003,
    CommandStatus.BAD_PARAM,
    "the op_mod is not defined for this command",
    "op_mod must be zero where the command defines none",
)
BAD_STAGE = syndrome(
    0xCA010004,
    CommandStatus.BAD_SYS_STATE,
    "the command is out of order for the stage that the function has reached",
    "the order of bring-up: ENABLE_HCA, ISSI, boot pages, capabilities, init pages, INIT_HCA, objects",
)
NO_PAGES = syndrome(
    0xCA010005,
    CommandStatus.NO_RESOURCES,
    "the function lacks ICM pages, and none were given when asked for",
    "QUERY_PAGES and MANAGE_PAGES; the Pages Request event and its EQ",
)
