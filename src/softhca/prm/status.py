"""The two layers of a command's result: delivery status of its entry, command status of its output (D9)."""

from __future__ import annotations

from enum import IntEnum


class DeliveryStatus(IntEnum):
    """Command entry 0x3C [7:1]: whether the device could take the entry at all."""

    OK = 0x0
    SIGNATURE_ERR = 0x1
    TOKEN_ERR = 0x2
    BAD_BLOCK_NUMBER = 0x3
    BAD_OUTPUT_POINTER = 0x4
    BAD_INPUT_POINTER = 0x5
    INTERNAL_ERR = 0x6
    INPUT_LEN_ERR = 0x7
    OUTPUT_LEN_ERR = 0x8
    RESERVED_NOT_ZERO = 0x9
    BAD_COMMAND_TYPE = 0x10


class CommandStatus(IntEnum):
    """Command output 0x00 [31:24]: what became of a command that was delivered."""

    OK = 0x0
    INTERNAL_ERR = 0x1
    BAD_OP = 0x2
    BAD_PARAM = 0x3
    BAD_SYS_STATE = 0x4
    BAD_RESOURCE = 0x5
    RESOURCE_BUSY = 0x6
    NOT_READY = 0x7
    EXCEED_LIM = 0x8
    BAD_RES_STATE = 0x9
    BAD_INDEX = 0xA
    NO_RESOURCES = 0xF
    BAD_QP_STATE = 0x10
    BAD_PKT = 0x30
    BAD_SIZE = 0x40
    BAD_INPUT_LEN = 0x50
    BAD_OUTPUT_LEN = 0x51
