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
BAD_UID = syndrome(
    0xCA010006,
    CommandStatus.BAD_PARAM,
    "the command names a user context, and this device has none",
    "uid in the first word of the input must be zero; the capability log_max_uctx",
)
INTERNAL_ERROR = syndrome(
    0xCA010007,
    CommandStatus.INTERNAL_ERR,
    "the device failed inside while it carried the command out: a fault of softhca",
    "the log of the process that runs the device has a traceback; please report it",
)
COMMAND_DMA_FAULT = syndrome(
    0xCA010008,
    CommandStatus.BAD_PARAM,
    "the command made the device access memory that is not mapped for it",
    "addresses inside the command's input; Bus Master; the IOMMU's mappings",
)
QUEUE_NOT_EMPTY = syndrome(
    0xCA010009,
    CommandStatus.BAD_SYS_STATE,
    "an EQ is mapped to command completion while other commands are in flight",
    "CREATE_EQ with the command completion event must run alone",
)
NO_SUCH_FUNCTION = syndrome(
    0xCA010010,
    CommandStatus.BAD_PARAM,
    "the command names a function that this one may not act for",
    "function_id and embedded_cpu_function must be zero: the function itself",
)
ISSI_UNSUPPORTED = syndrome(
    0xCA010011,
    CommandStatus.BAD_PARAM,
    "the device does not have this interface step",
    "supported_issi_dw0 of QUERY_ISSI",
)
INIT_PAGES_LACKING = syndrome(
    0xCA010012,
    CommandStatus.BAD_SYS_STATE,
    "INIT_HCA came before all init pages were given",
    "QUERY_PAGES (init) says how many are still lacking",
)
TEARDOWN_PROFILE_UNSUPPORTED = syndrome(
    0xCA010013,
    CommandStatus.BAD_PARAM,
    "the device does not have this way of teardown",
    "profile 0 (graceful close); the capabilities fast_teardown and force_teardown",
)
BAD_DRIVER_VERSION = syndrome(
    0xCA010014,
    CommandStatus.BAD_PARAM,
    "the driver version is not a text that ends with a zero byte",
    "driver_version: up to 63 printable ASCII characters",
)
PAGE_COUNT_WRONG = syndrome(
    0xCA010020,
    CommandStatus.BAD_INPUT_LEN,
    "the message holds another number of page addresses than it says",
    "input_num_entries of MANAGE_PAGES, and the length of pas",
)
ICM_PAGE_MISALIGNED = syndrome(
    0xCA010021,
    CommandStatus.BAD_PARAM,
    "a given page is zero or not 4 KiB-aligned",
    "pas of MANAGE_PAGES",
)
ICM_PAGE_DUPLICATE = syndrome(
    0xCA010022,
    CommandStatus.BAD_PARAM,
    "a given page is the device's already, or comes twice in one message",
    "the host's page ledger",
)
ICM_PAGE_UNMAPPED = syndrome(
    0xCA010023,
    CommandStatus.BAD_PARAM,
    "a given page is not mapped for the device to write",
    "map the page for DMA before it is handed over, and keep it mapped until it comes back",
)
TOO_MANY_PAGES = syndrome(
    0xCA010024,
    CommandStatus.EXCEED_LIM,
    "one command gives more pages than the device takes at a time",
    "input_num_entries of MANAGE_PAGES: at most 65536; give the rest with further commands",
)
INJECTED_FAULT = syndrome(
    0xCA010030,
    CommandStatus.INTERNAL_ERR,
    "a fault rule made the command fail; nothing of it was carried out",
    "the rules that softhca was started with; the status beside it is the rule's",
)
PAGES_BY_PF = syndrome(
    0xCA010040,
    CommandStatus.BAD_PARAM,
    "a VF gives no pages: those that it needs are the business of its PF's host",
    "QUERY_PAGES answers 0 to a VF; the PF's driver answers the Pages Request events that name the VF",
)
VF_ENABLED_ALREADY = syndrome(
    0xCA010041,
    CommandStatus.BAD_SYS_STATE,
    "the VF is enabled already",
    "ENABLE_HCA and DISABLE_HCA of a function id come in turns",
)
VF_NOT_ENABLED = syndrome(
    0xCA010042,
    CommandStatus.BAD_SYS_STATE,
    "the VF is not enabled",
    "ENABLE_HCA with the VF's function id, by the PF, comes first",
)
