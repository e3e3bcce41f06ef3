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
    KEY_NOT_PRESENT = 0x17
    """The key has no translation there, or one that is not present or not writable."""
    KEY_TOO_DEEP = 0x18
    """The key refers to keys over more levels than max_indirection."""
    KEY_TOO_SCATTERED = 0x19
    """The range behind an indirect key falls into more pieces than the device handles in one message."""
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
    ATOMIC_NOT_ENABLED = 0x2A
    """The responder's QP does not allow atomics."""
    ATOMIC_MISALIGNED = 0x2B
    """The remote address of an atomic is not a multiple of its size."""
    ATOMIC_LENGTH = 0x2C
    """The local segments of an atomic do not hold 8 bytes."""
    NO_RESPONSE = 0x30
    """Nobody answered: no such QP at the path's end, or it does not listen to this one."""
    RECEIVER_NOT_READY = 0x31
    """The responder had no receive WQE each time."""
    UMR_NOT_ENABLED = 0x40
    """The key was created without umr_en."""
    UMR_KEY_IN_USE = 0x41
    """The key is to be free for this WQE, and is not."""
    UMR_KEY_FREE = 0x42
    """The key is not to be free for this WQE, and is."""
    UMR_PRIVILEGE = 0x43
    """The QP may not do this: pages by address, another PD and keys of other PDs take a QP with fre."""
    UMR_MASK = 0x44
    """mkey_mask or flags select what the device does not have, or what the key's mode does not have."""
    UMR_LIST = 0x45
    """The translation list runs over the key's room, or the key has none."""
    UMR_VALUE = 0x46
    """A value for the key's context is not one that the device takes: page size, PD, or range."""
    UMR_KEY_QP = 0x47
    """The key is bound to another QP, or to none."""
    UMR_KEY_BYTE = 0x48
    """The key byte of the WQE is not the key's."""
    NOT_INVALIDATABLE = 0x49
    """The key's remote invalidation is not enabled (en_rinval)."""
    BIND_TARGET = 0x4A
    """The memory that a window is bound to is not open to this QP in the way that the window asks for."""
