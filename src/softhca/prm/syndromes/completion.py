"""Vendor error syndromes of error CQEs (CQE 0x36): why, beside the standard's syndrome. Ours, one number each."""

from enum import IntEnum, unique


@unique
class VendorSyndrome(IntEnum):
    """What exactly went wrong with a work request."""

    NONE = 0x00
    FLUSHED = 0x01
    """The QP was in error before the work request began."""
    NO_SUCH_KEY = 0x10
    """No key has this index, or its key byte is another one."""
    KEY_FREE = 0x11
    """The key is in the free state: it translates nothing."""
    KEY_RANGE = 0x12
    """The address range is not inside the key's."""
    KEY_RIGHT = 0x13
    """The key does not give this right."""
    KEY_PD = 0x14
    """The key belongs to another protection domain than the QP."""
    KEY_QP = 0x15
    """The key is bound to another QP."""
    DMA_FAULT = 0x16
    """The key's pages are not mapped for the device."""
    WQE_SHORT = 0x20
    """The WQE lacks a segment that its opcode needs, or ds counts more than was posted."""
    OPCODE = 0x21
    """The opcode does not exist, or this device or transport does not have it."""
    MESSAGE_TOO_LONG = 0x22
    """The message is longer than log_msg_max allows."""
    RECEIVE_TOO_SHORT = 0x23
    """The receive WQE's segments hold less than the message."""
    READ_NOT_ENABLED = 0x24
    """The responder's QP does not allow RDMA reads."""
    WRITE_NOT_ENABLED = 0x25
    """The responder's QP does not allow RDMA writes."""
    RESPONDER_FAILED = 0x26
    """The responder could not carry the request out."""
    XRC_DOMAIN = 0x27
    """The SRQ that an XRC request names does not exist in the responder's XRC domain."""
    NO_RESPONSE = 0x30
    """Nobody answered: no such QP at the path's end, or it does not listen to this one."""
    RECEIVER_NOT_READY = 0x31
    """The responder had no receive WQE each time."""
