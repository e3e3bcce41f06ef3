"""Syndromes of objects: their numbers, references, contexts and limits (area 02)."""

from softhca.prm.status import CommandStatus
from softhca.prm.syndromes.table import syndrome

NO_SUCH_OBJECT = syndrome(
    0xCA020001,
    CommandStatus.BAD_RESOURCE,
    "the number names no object of that kind of this function",
    "the order of create and destroy; numbers from before the last INIT_HCA are not valid",
)
STILL_REFERENCED = syndrome(
    0xCA020002,
    CommandStatus.BAD_RES_STATE,
    "the object is still referenced by another one",
    "destroy what refers to it first (QPs before CQs, CQs before EQs, keys before PDs)",
)
TABLE_FULL = syndrome(
    0xCA020003,
    CommandStatus.EXCEED_LIM,
    "as many objects of that kind exist as the capabilities allow",
    "the log_max_ capability of the object",
)
NO_SUCH_REFERENCE = syndrome(
    0xCA020004,
    CommandStatus.BAD_RESOURCE,
    "the command refers to an object that does not exist",
    "the object numbers inside the context",
)
