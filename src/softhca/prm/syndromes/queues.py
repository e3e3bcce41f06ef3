"""Syndromes of queues that change while they are used, and of their counters (area 04)."""

from softhca.prm.status import CommandStatus
from softhca.prm.syndromes.table import syndrome

CQ_RESIZE_FIELDS = syndrome(
    0xCA040001,
    CommandStatus.BAD_PARAM,
    "MODIFY_CQ is to resize, and does not select size, page size and page offset together",
    "resize_field_select: 7",
)
CQ_RESIZE_CQE_SIZE = syndrome(
    0xCA040002,
    CommandStatus.BAD_PARAM,
    "the new buffer of a CQ has CQEs of another size",
    "cqe_sz: as at the CQ's creation",
)
CQ_RESIZE_NO_ROOM = syndrome(
    0xCA040003,
    CommandStatus.BAD_SIZE,
    "the CQ cannot be resized: its old buffer has no room for the resize CQE, or the new one none for what is unread",
    "unread CQEs: consumer counter in the doorbell record",
)
CQ_RESIZE_BAD_STATE = syndrome(
    0xCA040004,
    CommandStatus.BAD_RES_STATE,
    "a CQ in its error state, or one whose buffer cannot be written, is not resized",
    "status of the CQ context: destroy the CQ",
)
