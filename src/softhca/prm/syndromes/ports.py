"""Syndromes of capabilities, ports, vports, address tables, registers and MADs (area 03)."""

from softhca.prm.status import CommandStatus
from softhca.prm.syndromes.table import syndrome

UNKNOWN_REGISTER = syndrome(
    0xCA030001,
    CommandStatus.BAD_PARAM,
    "the register id is not one that this device has",
    "docs/conformance.md for the registers; PCAM and MCAM for what is announced",
)
REGISTER_NOT_READABLE = syndrome(
    0xCA030002,
    CommandStatus.BAD_PARAM,
    "the register cannot be read",
    "op_mod: 1 reads, 0 writes; docs/conformance.md for the register's methods",
)
REGISTER_NOT_WRITABLE = syndrome(
    0xCA030003,
    CommandStatus.BAD_PARAM,
    "the register cannot be written",
    "op_mod: 1 reads, 0 writes; docs/conformance.md for the register's methods",
)
REGISTER_SHORT = syndrome(
    0xCA030004,
    CommandStatus.BAD_INPUT_LEN,
    "the payload is not as long as the register",
    "input length: 16 bytes and the whole register",
)
REGISTER_NO_ROOM = syndrome(
    0xCA030005,
    CommandStatus.BAD_OUTPUT_LEN,
    "the output has no room for the register that is read",
    "output length: 16 bytes and the whole register",
)
BAD_LOCAL_PORT = syndrome(
    0xCA030006,
    CommandStatus.BAD_PARAM,
    "local_port is not a port of this device",
    "local_port 1 is the only port",
)
BAD_SWID = syndrome(
    0xCA030007,
    CommandStatus.BAD_PARAM,
    "swid is not one of this device",
    "swid 0 is the only one",
)
WRONG_PROTOCOL = syndrome(
    0xCA030008,
    CommandStatus.BAD_PARAM,
    "proto_mask does not ask for the protocol of this port",
    "proto_mask 1 for InfiniBand, 4 for Ethernet; the capability port_type",
)
BAD_PLANE = syndrome(
    0xCA030009,
    CommandStatus.BAD_PARAM,
    "plane_ind is not zero, and the port has no planes",
    "plane_ind; the capability multiplane",
)
BAD_ENDIANNESS = syndrome(
    0xCA03000A,
    CommandStatus.BAD_PARAM,
    "the endianness is not one that exists",
    "he: 0 little-endian, 0x80 big-endian",
)
BAD_PORT_MTU = syndrome(
    0xCA03000B,
    CommandStatus.BAD_PARAM,
    "the port cannot have this MTU",
    "admin_mtu: an InfiniBand MTU, or 68 to max_mtu on Ethernet",
)
BAD_ADMIN_STATUS = syndrome(
    0xCA03000C,
    CommandStatus.BAD_PARAM,
    "the port's admin_status cannot be set to this",
    "admin_status: 1 up, 2 down",
)
BAD_EVENT_MODE = syndrome(
    0xCA03000D,
    CommandStatus.BAD_PARAM,
    "the event mode of the port is not one that exists",
    "e: 0 none, 1 always, 2 once",
)
NO_OTHER_FUNCTION = syndrome(
    0xCA03000E,
    CommandStatus.BAD_PARAM,
    "the command names another function, and this one manages none",
    "other_function, function_id; the capability vport_group_manager",
)
NO_SUCH_VPORT = syndrome(
    0xCA03000F,
    CommandStatus.BAD_INDEX,
    "there is no such vport, or this function does not manage it",
    "other_vport, vport_number: only the function's own, 0; the capability vport_group_manager",
)
NO_SUCH_PORT = syndrome(
    0xCA030010,
    CommandStatus.BAD_INDEX,
    "there is no such port",
    "the port number: 1, or 0 where it may be left out",
)
NOT_INFINIBAND = syndrome(
    0xCA030011,
    CommandStatus.BAD_OP,
    "the command is for an InfiniBand port, this port is Ethernet",
    "the capability port_type",
)
NOT_ETHERNET = syndrome(
    0xCA030012,
    CommandStatus.BAD_OP,
    "the command is for an Ethernet port, this port is InfiniBand",
    "the capability port_type",
)
UNSUPPORTED_CAPABILITY_TYPE = syndrome(
    0xCA030013,
    CommandStatus.BAD_PARAM,
    "the device has no capability page of this type",
    "op_mod [15:1]; the general capabilities announce the other pages",
)
CAPABILITIES_FIXED = syndrome(
    0xCA030014,
    CommandStatus.BAD_SYS_STATE,
    "capabilities are selected before INIT_HCA only",
    "the order of bring-up: SET_HCA_CAP before INIT_HCA, or after TEARDOWN_HCA and a new ENABLE_HCA",
)
CAPABILITY_NOT_SELECTABLE = syndrome(
    0xCA030015,
    CommandStatus.BAD_PARAM,
    "software may not select this capability",
    "write the current page back and change what may be selected only",
)
CAPABILITY_ABOVE_MAXIMUM = syndrome(
    0xCA030016,
    CommandStatus.EXCEED_LIM,
    "the capability is selected above its maximum",
    "QUERY_HCA_CAP with op_mod bit 0 clear gives the maximum",
)
BAD_CAPABILITY_VALUE = syndrome(
    0xCA030017,
    CommandStatus.BAD_PARAM,
    "the capability does not take this value",
    "the capability's defined values",
)
RESERVED_CAPABILITY = syndrome(
    0xCA030018,
    CommandStatus.BAD_PARAM,
    "reserved bits of the capability page are set",
    "write the current page back and change what may be selected only",
)
GID_INDEX = syndrome(
    0xCA030019,
    CommandStatus.BAD_INDEX,
    "the index is beyond the GID table",
    "the capability gid_table_size; 0xffff asks for the whole table",
)
PKEY_INDEX = syndrome(
    0xCA03001A,
    CommandStatus.BAD_INDEX,
    "the index is beyond the P_Key table",
    "the capability pkey_table_size; 0xffff asks for the whole table",
)
TABLE_NO_ROOM = syndrome(
    0xCA03001B,
    CommandStatus.BAD_OUTPUT_LEN,
    "the output has no room for the entries that were asked for",
    "output length: 16 bytes and the entries",
)
HCA_VPORT_FIELD_FIXED = syndrome(
    0xCA03001C,
    CommandStatus.BAD_PARAM,
    "field_select names a field of the HCA vport context that this function may not change",
    "field_select: GUIDs and state policy are set for other vports, by their manager",
)
CAP_MASK_FIXED = syndrome(
    0xCA03001D,
    CommandStatus.BAD_PARAM,
    "cap_mask1_field_select names bits that software may not change",
    "cap_mask1_field_select of QUERY_HCA_VPORT_CONTEXT says which may be",
)
BAD_VPORT_STATE = syndrome(
    0xCA03001E,
    CommandStatus.BAD_PARAM,
    "the vport's admin_state cannot be set to this",
    "admin_state: 0 down, 1 up, 2 as the port",
)
NIC_VPORT_FIELD_FIXED = syndrome(
    0xCA03001F,
    CommandStatus.BAD_PARAM,
    "field_select names a field of the NIC vport context that is not implemented, or that this function may not change",
    "field_select; the capability that announces the field",
)
ROCE_NOT_SUPPORTED = syndrome(
    0xCA030020,
    CommandStatus.BAD_OP,
    "RoCE is not among the capabilities that are set",
    "the capability roce, with SET_HCA_CAP before INIT_HCA",
)
ROCE_NOT_ENABLED = syndrome(
    0xCA030021,
    CommandStatus.BAD_RES_STATE,
    "RoCE is not enabled on the NIC vport",
    "MODIFY_NIC_VPORT_CONTEXT with roce_en",
)
BAD_VPORT_MTU = syndrome(
    0xCA030022,
    CommandStatus.BAD_PARAM,
    "the NIC vport cannot have this MTU",
    "mtu: 68 to the port's max_mtu",
)
BAD_MAC = syndrome(
    0xCA030023,
    CommandStatus.BAD_PARAM,
    "the address is not one that a port can have",
    "a MAC address that is not zero and not a group address",
)
BAD_LIST_TYPE = syndrome(
    0xCA030024,
    CommandStatus.BAD_PARAM,
    "the type of address list does not exist",
    "allowed_list_type: 0 unicast, 1 multicast, 2 VLAN",
)
LIST_TOO_LONG = syndrome(
    0xCA030025,
    CommandStatus.EXCEED_LIM,
    "the list has more entries than the vport holds",
    "log_max_current_uc_list, log_max_current_mc_list, log_max_vlan_list",
)
LIST_SHORT = syndrome(
    0xCA030026,
    CommandStatus.BAD_INPUT_LEN,
    "the message holds fewer entries than allowed_list_size says",
    "input length: 512 bytes and 8 for each entry",
)
BAD_LIST_ENTRY = syndrome(
    0xCA030027,
    CommandStatus.BAD_PARAM,
    "an entry of the list is not of the list's type",
    "unicast lists hold unicast addresses, multicast lists group addresses",
)
ROCE_ADDRESS_INDEX = syndrome(
    0xCA030028,
    CommandStatus.BAD_INDEX,
    "the index is beyond the RoCE address table",
    "roce_address_table_size of the RoCE capabilities",
)
BAD_ROCE_VERSION = syndrome(
    0xCA030029,
    CommandStatus.BAD_PARAM,
    "the RoCE version is not one that the device has",
    "roce_version: 0 for v1, 2 for v2; roce_version of the RoCE capabilities",
)
BAD_ROCE_L3_TYPE = syndrome(
    0xCA03002A,
    CommandStatus.BAD_PARAM,
    "the layer 3 type is not one that the device has",
    "roce_l3_type: 0 IPv4, 1 IPv6; l3_type of the RoCE capabilities",
)
BAD_ROCE_MAC = syndrome(
    0xCA03002B,
    CommandStatus.BAD_PARAM,
    "the source MAC of a RoCE address is zero or a group address",
    "source_mac of an entry whose layer 3 address is not zero",
)
BAD_MAD_CLASS = syndrome(
    0xCA03002C,
    CommandStatus.BAD_PKT,
    "the device has no agent for this management class",
    "mgmt_class: 0x01 and 0x81 subnet, 0x04 performance management",
)
PHYSICAL_PORT = syndrome(
    0xCA030030,
    CommandStatus.BAD_PARAM,
    "a VF does not set the physical port",
    "PMTU and PAOS are written by the PF",
)
BAD_PORT_GUID = syndrome(
    0xCA030031,
    CommandStatus.BAD_PARAM,
    "the port of a VF cannot have this GUID",
    "port_guid: not zero, and not another port's of the subnet",
)
