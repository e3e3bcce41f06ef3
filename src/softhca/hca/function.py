"""A function of the device: its stage, capabilities, ICM account and objects (B7, B11, C9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softhca.hca.caps import Capabilities
from softhca.hca.command import Stage
from softhca.hca.cq import Cq
from softhca.hca.eq import Eq
from softhca.hca.icm import IcmAccount
from softhca.hca.mkey import MKey
from softhca.hca.objects import Table
from softhca.hca.odp import Fault
from softhca.hca.pd import ProtectionDomain, TransportDomain, Xrcd
from softhca.hca.q_counter import MOST_SETS, QCounter
from softhca.hca.qp import Qp
from softhca.hca.send_queue import SendQueue
from softhca.hca.sriov import VirtualFunctions
from softhca.hca.srq import ReceivePool
from softhca.hca.uar import Uar
from softhca.hca.vport import Vport
from softhca.points import Fault as InjectedFault
from softhca.points import catalogue as points
from softhca.prm.events import EventType

FIRST_SQ = 0xF0_0000
"""Send queues and QPs share the numbers that doorbells carry; those from here on are send queues."""
FIRST_UAR = 0x10
"""UAR pages below this number hold the init segment and the MSI-X tables."""

if TYPE_CHECKING:
    from softhca.bus import DmaSpace
    from softhca.hca.device import Hca


class Function:
    """One PCI function: the PF or a VF.

    Args:
        device: what it is on the bus.
        function_id: 0 for the PF, the number of a VF.
        vfs: the VFs that it manages; by default it has none.
        manager: the PF of a VF, whose host gives its pages; None: the function manages itself.
    """

    def __init__(
        self,
        device: Hca,
        function_id: int = 0,
        *,
        vfs: VirtualFunctions | None = None,
        manager: Function | None = None,
    ) -> None:
        self.device = device
        self.function_id = function_id
        self.vfs = VirtualFunctions() if vfs is None else vfs
        self.manager = manager
        self.enabled = manager is None
        """A VF: its PF has enabled it (ENABLE_HCA)."""
        self.caps = Capabilities(device.profile, manages=self.vfs.most > 0)
        self._stage = Stage.DISABLED
        self.issi = 0
        self.driver_version = ""
        """What SET_DRIVER_VERSION told."""
        self.left_objects = 0
        """Objects that were alive when TEARDOWN_HCA came."""
        self.fast = True
        """Send WQEs of the common shape go through :mod:`softhca.hca.fast`. Nothing but the speed depends on it."""
        self.fault: InjectedFault | None = None
        """What a rule wants of the command that is carried out, where its handler has to do it."""
        self.icm = IcmAccount(self._starved)
        self.event_map: dict[EventType, Eq] = {}
        self.special: dict[int, Qp] = {}
        """What QP number 0 and 1 on the wire are."""
        self.faults: dict[int, Fault] = {}
        """Page faults that wait for the host, by token."""
        self.next_fault = 0
        """The token of the next one."""
        self.multicast: dict[bytes, list[Qp]] = {}
        """Members of each multicast group, by MGID (16 bytes)."""
        self._tables: tuple[Table[Any], ...] = ()
        self.forget_objects()

    @property
    def stage(self) -> Stage:
        """How far the function's life has come."""
        return self._stage

    @stage.setter
    def stage(self, stage: Stage) -> None:
        if stage is not self._stage and self.device.probe is not None:
            self.device.probe.hit(points.STAGE, self.function_id, stage.name)
        self._stage = stage

    def _starved(self, length: int) -> bool:
        """Whether a fault takes the room away that a command is about to take."""
        probe = self.device.probe
        return probe is not None and probe.hit(points.ICM_TAKEN, self.function_id, length) is not None

    def begin(self) -> None:
        """Start a life anew: no object, nothing selected (F8). Pages stay the device's until they are returned (B6)."""
        self.stage = Stage.DISABLED
        self.issi = 0
        self.driver_version = ""
        self.left_objects = 0
        self.caps.reset()
        self.forget_objects()
        asked = self.icm.asked
        self.icm.clear_use()
        if self.manager is not None:
            self.icm.asked = asked  # the PF's host still owes the answer (B9)

    def reset(self) -> None:
        """As after power on: all pages are the host's again, too. Those of a VF are of its PF's host and stay."""
        self.begin()
        if self.manager is None:
            self.icm.forget()

    @property
    def page_host(self) -> Function:
        """The function whose host gives and gets this one's pages (B7)."""
        return self if self.manager is None else self.manager

    @property
    def pages_held(self) -> int:
        """Pages that the device has of this function's host: those of its VFs are among them; a VF's host gave none."""
        return len(self.icm.pages) + self.vfs.pages() if self.manager is None else 0

    def objects(self) -> dict[str, int]:
        """Kind -> how many exist, of the kinds of which any does."""
        return {table.kind: len(table) for table in self._tables if len(table)}

    def forget_objects(self) -> None:
        """Empty tables with the limits of the current capabilities: after reset, at INIT_HCA and TEARDOWN_HCA (F8)."""
        for table in self._tables:
            for item in table:
                item.end()
        caps, icm = self.caps.general, self.icm
        uar_pages = self.device.uar_pages
        self.uars: Table[Uar] = Table("UAR", icm, limit=uar_pages - FIRST_UAR, first=FIRST_UAR, size=uar_pages)
        self.pds: Table[ProtectionDomain] = Table("PD", icm, limit=1 << caps.log_max_pd, first=1, size=1 << 24)
        self.transport_domains: Table[TransportDomain] = Table(
            "transport domain", icm, limit=1 << caps.log_max_transport_domain, first=1, size=1 << 24
        )
        self.xrcds: Table[Xrcd] = Table("XRC domain", icm, limit=1 << caps.log_max_xrcd, first=1, size=1 << 24)
        self.eqs: Table[Eq] = Table("EQ", icm, limit=1 << caps.log_max_eq, first=1, size=256)
        self.cqs: Table[Cq] = Table("CQ", icm, limit=1 << caps.log_max_cq, first=1, size=1 << 24)
        self.mkeys: Table[MKey] = Table("MKey", icm, limit=1 << caps.log_max_mkey, first=0x10, size=1 << 24)
        self.receive_pools: Table[ReceivePool] = Table("SRQ", icm, limit=1 << caps.log_max_srq, first=1, size=1 << 24)
        self.qps: Table[Qp] = Table("QP", icm, limit=1 << caps.log_max_qp, first=0x40, size=FIRST_SQ)
        self.send_queues: Table[SendQueue] = Table(
            "SQ", icm, limit=1 << caps.log_max_sq if caps.log_max_sq else 0, first=FIRST_SQ, size=1 << 24
        )
        self.q_counters: Table[QCounter] = Table("Q counter", icm, limit=caps.max_qp_cnt, first=1, size=MOST_SETS)
        self.default_counters = QCounter()
        self._tables = (
            self.uars,
            self.pds,
            self.transport_domains,
            self.xrcds,
            self.eqs,
            self.cqs,
            self.mkeys,
            self.receive_pools,
            self.qps,
            self.q_counters,
            self.send_queues,
        )
        self.event_map.clear()
        self.special = {}
        self.faults = {}
        self.multicast = {}
        self.vport = Vport(self.device.port)

    @property
    def dma(self) -> DmaSpace:
        """The host's memory, as far as the function may reach it now."""
        return self.device.dma

    def event(self, kind: EventType, data: bytes, subtype: int = 0) -> bool:
        """Write an EQE to the EQ that is mapped for `kind`; tell whether it was written.

        Args:
            kind: type of event.
            data: the 28 bytes of event data (EQE 0x20-0x3B); shorter data are padded with zeros.
            subtype: sub-type of the event.
        """
        eq = self.event_map.get(kind)
        return eq is not None and eq.post(kind, data, subtype)
