"""Syndromes of multicast groups (area 05)."""

from softhca.prm.status import CommandStatus
from softhca.prm.syndromes.table import syndrome

NOT_MULTICAST = syndrome(
    0xCA050001,
    CommandStatus.BAD_PARAM,
    "the GID of the group is not a multicast GID",
    "multicast_gid: its first byte is 0xff",
)
NOT_A_DATAGRAM_QP = syndrome(
    0xCA050002,
    CommandStatus.BAD_PARAM,
    "only UD QPs can be in a multicast group",
    "the service type of the QP",
)
ALREADY_ATTACHED = syndrome(
    0xCA050003,
    CommandStatus.BAD_PARAM,
    "the QP is in the group already",
    "ATTACH_TO_MCG once for each QP and group",
)
NOT_ATTACHED = syndrome(
    0xCA050004,
    CommandStatus.BAD_RESOURCE,
    "the QP is not in the group",
    "qpn and multicast_gid of the ATTACH_TO_MCG before",
)
GROUP_FULL = syndrome(
    0xCA050005,
    CommandStatus.EXCEED_LIM,
    "the group has as many QPs as the capabilities allow",
    "max_qp_mcg",
)
GROUPS_FULL = syndrome(
    0xCA050006,
    CommandStatus.EXCEED_LIM,
    "as many groups exist as the capabilities allow",
    "log_max_mcg",
)
