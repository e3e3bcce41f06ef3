"""The physical port: link, addresses, MTU and tables that registers, vports and MADs share (C11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from softhca.hca.profile import IB_MTUS, Profile
from softhca.hca.traffic import Traffic
from softhca.prm.events import EqePortState, EventType, PortChangeSubtype
from softhca.prm.hca_cap import PortType
from softhca.prm.hca_vport import PhysicalState, PortState
from softhca.prm.registers import PortAdminStatus, PortEventMode
from softhca.prm.smp import PortCapability
from softhca.prm.vport import VportAdminState
from softhca.wire.tap import Tap

ETHERNET_MIN_MTU = 68
LINK_LOCAL_PREFIX = 0xFE80_0000_0000_0000
DEFAULT_PKEY = 0xFFFF
NODE_DESCRIPTION_BYTES = 64
_UP = PortAdminStatus.UP


@dataclass
class Link:
    """What a card's physical port is set to; the ports of its VFs share it.

    Attributes:
        admin: what software wants the port to be.
        event_mode: when a change raises an event.
        mtu: bytes.
    """

    admin: PortAdminStatus
    event_mode: PortEventMode
    mtu: int

    def reset(self, mtu: int) -> None:
        """As after a start of the card."""
        self.admin, self.event_mode, self.mtu = PortAdminStatus.UP, PortEventMode.ALWAYS, mtu


class Port:
    """Port 1 of a card.

    The link comes up by itself. An InfiniBand port is ACTIVE from the start, with the LID that its fabric gave it.

    Attributes:
        number: of the port.
        kind: its link layer.
        guid: 64 bits, of the port.
        node_guid, system_guid: 64 bits, of the function and of the card; here both are the port's.
        mac: 48 bits.
        lid, sm_lid: 16 bits, 0 on Ethernet.
        pkeys: the partition keys that are in use; the rest of the table is 0.
        node_description: 64 bytes.
        link: what the physical port is set to.
        capability_mask: PortInfo.CapabilityMask.
        pkey_violations, qkey_violations: datagrams dropped for their keys (16 bits, saturating).
        traffic: what has passed the port since its reset.
        counted_from: what had passed when the counters of PPCNT were cleared.
        on_event: takes type, data and sub-type of an event; None: nobody listens.
        agent_psn: datagrams that its own agents have sent.
        tap: where the port's packets are recorded; None: nowhere, and no packet need be made.
    """

    number = 1
    CHANGEABLE_CAPABILITIES = (
        PortCapability.IS_SM
        | PortCapability.CM
        | PortCapability.SNMP
        | PortCapability.DEVICE_MANAGEMENT
        | PortCapability.VENDOR_CLASS
    )
    """Bits of the capability mask that tell of the software above, which sets them."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.figures = profile.port
        self.kind = profile.port.port_type
        self.guid = self.node_guid = self.system_guid = profile.addresses.guid
        self.mac = profile.addresses.mac
        self.on_event: Callable[[EventType, bytes, int], object] | None = None
        self.lid = 0
        self.sm_lid = 0
        self.tap: Tap | None = None
        self.link = Link(PortAdminStatus.UP, PortEventMode.ALWAYS, self.figures.mtu)
        self.reset()

    def reset(self) -> None:
        """Back to the state of a card that has just started."""
        self.link.reset(self.figures.mtu)
        self.reset_function()

    def reset_function(self) -> None:
        """What belongs to the function, not to the physical port, back to its first state."""
        self.pkey_violations = 0
        self.qkey_violations = 0
        self.pkeys = [DEFAULT_PKEY]
        text = f"softhca {self._profile.name}".encode("ascii", "replace")
        self.node_description = text[:NODE_DESCRIPTION_BYTES].ljust(NODE_DESCRIPTION_BYTES, b"\0")
        self.agent_psn = 0
        self.traffic = Traffic()
        self.counted_from = Traffic()
        self.capability_mask = PortCapability.SYSTEM_IMAGE_GUID | PortCapability.EXTENDED_SPEEDS

    def assign(self, lid: int, sm_lid: int) -> None:
        """Take the addresses that the subnet manager gives: they outlive resets."""
        self.lid = lid
        self.sm_lid = sm_lid

    @property
    def infiniband(self) -> bool:
        """Whether the link layer is InfiniBand."""
        return self.kind is PortType.IB

    @property
    def up(self) -> bool:
        """Whether the link is up."""
        return self.link.admin is _UP

    @property
    def state(self) -> PortState:
        """Logical state."""
        return PortState.ACTIVE if self.up else PortState.DOWN

    @property
    def physical_state(self) -> PhysicalState:
        """Physical state."""
        return PhysicalState.LINK_UP if self.up else PhysicalState.DISABLED

    @property
    def mtu(self) -> int:
        """Bytes."""
        return self.link.mtu

    @property
    def max_mtu(self) -> int:
        """Bytes."""
        return self.figures.max_mtu

    def allows_mtu(self, mtu: int) -> bool:
        """Whether the port can have this MTU (bytes)."""
        if self.infiniband:
            return mtu in IB_MTUS and mtu <= self.max_mtu
        return ETHERNET_MIN_MTU <= mtu <= self.max_mtu

    @property
    def link_width(self) -> int:
        """Operational width: the widest that the port has, as one bit of PTYS; 0 while the link is down."""
        return highest_bit(self.figures.ib_link_width) if self.up else 0

    @property
    def ib_speed(self) -> int:
        """Operational InfiniBand speed: the highest, as one bit of PTYS; 0 while the link is down."""
        return highest_bit(self.figures.ib_proto) if self.up else 0

    @property
    def eth_mode(self) -> int:
        """Operational Ethernet link mode: the highest, as one bit of PTYS; 0 while the link is down."""
        return highest_bit(self.figures.eth_proto) if self.up else 0

    @property
    def ext_eth_mode(self) -> int:
        """Operational extended Ethernet link mode: the highest, as one bit of PTYS; 0 while the link is down."""
        return highest_bit(self.figures.ext_eth_proto) if self.up else 0

    def gid(self, index: int) -> bytes:
        """An entry of the GID table (16 bytes): the subnet prefix, and the GUID in the first entry, else zeros.

        Linux takes the prefix of the last entry for the subnet's.
        """
        return (LINK_LOCAL_PREFIX << 64 | (0 if index else self.guid)).to_bytes(16, "big")

    def violated_pkey(self) -> None:
        """Count a packet that was dropped for its P_Key."""
        self.pkey_violations = min(self.pkey_violations + 1, 0xFFFF)

    def pkey(self, index: int) -> int:
        """An entry of the P_Key table (16 bits)."""
        return self.pkeys[index] if index < len(self.pkeys) else 0

    def set_admin(self, admin: PortAdminStatus) -> None:
        """Want the port up or down; a change of the link raises a port change event as `event_mode` says."""
        if admin is self.link.admin:
            return
        self.link.admin = admin
        if self.link.event_mode is PortEventMode.NONE:
            return
        if self.link.event_mode is PortEventMode.ONCE:
            self.link.event_mode = PortEventMode.NONE
        self.tell_change()

    def tell_change(self) -> None:
        """Tell the function that its link has come up or gone down."""
        if self.on_event is not None:
            event = PortChangeSubtype.ACTIVE if self.up else PortChangeSubtype.DOWN
            self.on_event(EventType.PORT_CHANGE, EqePortState.pack(port=self.number << 4), event)


class VirtualPort(Port):
    """The port of a VF: addresses and counters of its own, on the physical port of its PF.

    Args:
        profile: the model, with the VF's addresses.
        uplink: the PF's port.

    Attributes:
        enabled: its VF is.
        policy: what the PF wants it to be: down, up whatever the physical port is, or as that is.
    """

    def __init__(self, profile: Profile, uplink: Port) -> None:
        self._uplink = uplink
        self.enabled = False
        self.policy = VportAdminState.AUTO
        super().__init__(profile)
        self.link = uplink.link
        self.system_guid = uplink.system_guid

    def reset(self) -> None:
        """Back to the first state; the physical port stays as it is."""
        self.reset_function()

    @property
    def up(self) -> bool:
        """Whether packets pass."""
        if not self.enabled or self.policy is VportAdminState.DOWN:
            return False
        return self.policy is VportAdminState.UP or self._uplink.up

    def set_policy(self, policy: VportAdminState) -> None:
        """The PF wants the port up, down, or as its own; the VF is told of a change."""
        before, self.policy = self.up, policy
        if self.up is not before:
            self.tell_change()


def highest_bit(mask: int) -> int:
    """The highest bit of `mask` that is set, alone."""
    return 1 << mask.bit_length() - 1 if mask else 0
