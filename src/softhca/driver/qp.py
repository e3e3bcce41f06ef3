"""Reliable connected queue pairs: create, connect, post (source 1.2.2, 1.3, A1-A3, G3)."""

from __future__ import annotations

from dataclasses import dataclass

from softhca.driver.cmd import CommandChannel
from softhca.driver.cq import CompletionQueue
from softhca.driver.errors import DriverError
from softhca.driver.memory import Buffer, HcaAddress, Machine, lent
from softhca.driver.mr import MemoryRegion
from softhca.driver.pd import ProtectionDomain
from softhca.driver.port import Port
from softhca.driver.uar import Uar
from softhca.prm.layout import Value
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import (
    CreateQpIn,
    CreateQpOut,
    DestroyQpIn,
    DestroyQpOut,
    Init2rtrQpIn,
    Init2rtrQpOut,
    PathMigration,
    QpState,
    QueryQpIn,
    QueryQpOut,
    Rst2initQpIn,
    Rst2initQpOut,
    Rtr2rtsQpIn,
    Rtr2rtsQpOut,
    ServiceType,
)
from softhca.prm.wqe import SEGMENT, WQEBB, WqeCtrlSeg, WqeDataSeg, WqeOpcode, WqeRaddrSeg

RECEIVE_STRIDE = 16
"""Bytes of a receive WQE: one data segment."""
_COMPLETION_ALWAYS = 2


@dataclass(frozen=True)
class Endpoint:
    """What a peer must know to connect.

    Attributes:
        qpn: QP number.
        port: addresses of its port.
        psn: first packet sequence number that it sends.
    """

    qpn: int
    port: Port
    psn: int


class QueuePair:
    """An RC QP with a private receive queue.

    Its buffer holds the receive queue, then the send queue. How much it takes is three figures (B5): slots, bytes of
    the buffer, and work requests that can be posted, here one for each slot, as each takes one.

    Args:
        channel, machine, uar, pd, port: what it is made of.
        send_cq, receive_cq: where its completions go.
        log_size: log2 of the slots of each queue, at least 2.
        psn: first packet sequence number.
    """

    def __init__(
        self,
        channel: CommandChannel,
        machine: Machine,
        uar: Uar,
        pd: ProtectionDomain,
        port: Port,
        send_cq: CompletionQueue,
        receive_cq: CompletionQueue,
        *,
        log_size: int = 4,
        psn: int = 0,
    ) -> None:
        channel.same_life("CREATE_QP", pd.life, send_cq.life, receive_cq.life)
        self._channel = channel
        self._uar = uar
        self._port = port
        self._psn = psn
        self._slots = 1 << log_size
        self._send_at = RECEIVE_STRIDE << log_size
        self._sent = 0
        self._received = 0
        self.buffer = Buffer(machine, self._send_at + (WQEBB << log_size))
        self.doorbell_record = Buffer(machine, 8)
        request = CreateQpIn.new(
            qpc={
                "st": ServiceType.RC,
                "pm_state": PathMigration.MIGRATED,
                "pd": pd.number,
                "uar_page": uar.number,
                "cqn_snd": send_cq.number,
                "cqn_rcv": receive_cq.number,
                "log_sq_size": log_size,
                "log_rq_size": log_size,
                "log_rq_stride": 0,
                "log_page_size": 0,
                "dbr_addr": self.doorbell_record.iova,
            },
            pas=self.buffer.pages,
        )
        with lent(self.buffer, self.doorbell_record):
            self.number = channel.execute(Opcode.CREATE_QP, request, CreateQpOut).qpn
        self.life = channel.life
        self.state = QpState.RST

    @property
    def endpoint(self) -> Endpoint:
        """What the peer must know."""
        return Endpoint(self.number, self._port, self._psn)

    def connect(self, peer: Endpoint) -> None:
        """RST -> INIT -> RTR -> RTS; creating a QP alone makes it able to do nothing (C9)."""
        self.to_init()
        self.to_rtr(peer)
        self.to_rts()

    def to_init(self) -> None:
        """RST2INIT_QP: its port, and what remote requests it accepts."""
        qpc = {
            "pm_state": PathMigration.MIGRATED,
            "rre": 1,
            "rwe": 1,
            "primary_address_path": {"pkey_index": 0, "vhca_port_num": self._port.number},
        }
        request = Rst2initQpIn.new(qpn=self.number, qpc=qpc)
        self._channel.execute(Opcode.RST2INIT_QP, request, Rst2initQpOut)
        self.state = QpState.INIT

    def to_rtr(self, peer: Endpoint) -> None:
        """INIT2RTR_QP: the peer and the way to it; from now on it receives."""
        qpc = {
            "mtu": self._port.mtu,
            "log_msg_max": 30,
            "remote_qpn": peer.qpn,
            "next_rcv_psn": peer.psn,
            "min_rnr_nak": 12,
            "log_rra_max": 2,
            "primary_address_path": self._path(peer),
        }
        request = Init2rtrQpIn.new(qpn=self.number, qpc=qpc)
        self._channel.execute(Opcode.INIT2RTR_QP, request, Init2rtrQpOut)
        self.state = QpState.RTR

    def _path(self, peer: Endpoint) -> dict[str, Value]:
        path: dict[str, Value] = {"vhca_port_num": self._port.number, "pkey_index": 0}
        if not self._port.ethernet:
            return path | {"rlid": peer.port.lid, "sl": 0}
        mac = peer.port.mac
        return path | {
            "rgid_rip": list(peer.port.gid),
            "rmac_47_32": mac >> 32,
            "rmac_31_0": mac & 0xFFFF_FFFF,
            "src_addr_index": 0,
            "hop_limit": 64,
            "udp_sport": 0xC000 | (self.number ^ peer.qpn) & 0x3FFF,
        }

    def to_rts(self) -> None:
        """RTR2RTS_QP: how it retries; from now on it sends."""
        qpc = {
            "next_send_psn": self._psn,
            "log_sra_max": 2,
            "retry_count": 7,
            "rnr_retry": 7,
            "primary_address_path": {"ack_timeout": 14, "vhca_port_num": self._port.number},
        }
        request = Rtr2rtsQpIn.new(qpn=self.number, qpc=qpc)
        self._channel.execute(Opcode.RTR2RTS_QP, request, Rtr2rtsQpOut)
        self.state = QpState.RTS

    def query(self) -> QueryQpOut:
        """QUERY_QP: a snapshot of the context, in the interface's format (B1, E6)."""
        return self._channel.execute(Opcode.QUERY_QP, QueryQpIn.new(qpn=self.number), QueryQpOut)

    def post_receive(self, region: MemoryRegion, offset: int, length: int) -> int:
        """Post a receive WQE; the device takes it when a message comes, so that no doorbell is rung (A3).

        Args:
            region: what its memory belongs to.
            offset: of its first byte in the region.
            length: bytes.

        Returns:
            The counter that its completion carries.
        """
        self._channel.same_life(f"QP {self.number:#x}: posting a receive", region.life)
        counter = self._received
        at = (counter & self._slots - 1) * RECEIVE_STRIDE
        _data(self.buffer.view, at, region, offset, length)
        self._received += 1
        self._record(0, self._received)
        return counter & 0xFFFF

    def post_send(self, region: MemoryRegion, offset: int, length: int) -> int:
        """Post a SEND of `length` bytes at `offset` of `region`; give the counter that its completion carries."""
        at = self._next_wqe(region)
        _data(self.buffer.view, at + SEGMENT, region, offset, length)
        return self._post(at, WqeOpcode.SEND, 2)

    def post_write(self, region: MemoryRegion, offset: int, length: int, remote: HcaAddress, remote_key: int) -> int:
        """Post an RDMA WRITE of `length` bytes at `offset` of `region`; give the counter that its completion carries.

        Args:
            region: where the data are.
            offset: of their first byte in the region.
            length: bytes.
            remote: where to, in the peer's memory.
            remote_key: the peer's key for it.
        """
        at = self._next_wqe(region)
        address = WqeRaddrSeg(self.buffer.view, at + SEGMENT)
        address.raddr = remote
        address.rkey = remote_key
        _data(self.buffer.view, at + 2 * SEGMENT, region, offset, length)
        return self._post(at, WqeOpcode.RDMA_WRITE, 3)

    def _next_wqe(self, region: MemoryRegion) -> int:
        """Where the next send WQE lies in the buffer; its old content is cleared."""
        self._channel.same_life(f"QP {self.number:#x}: posting a send", region.life)
        if self.state is not QpState.RTS:
            raise DriverError(f"QP {self.number:#x}: posting a send needs state RTS, it is in {self.state.name}")
        at = self._send_at + (self._sent & self._slots - 1) * WQEBB
        self.buffer.view[at : at + WQEBB] = bytes(WQEBB)
        return at

    def _post(self, at: int, opcode: WqeOpcode, segments: int) -> int:
        """Control segment, then the doorbell record, then the doorbell (A3)."""
        counter = self._sent & 0xFFFF
        control = WqeCtrlSeg(self.buffer.view, at)
        control.wqe_index = counter
        control.opcode = opcode
        control.qp_or_sq = self.number
        control.ds = segments
        control.ce = _COMPLETION_ALWAYS
        self._sent += 1
        # Here a real host issues a write barrier: WQE before record, record before doorbell.
        self._record(4, self._sent)
        self._uar.ring_send(self.buffer.view[at : at + 8])
        return counter

    def _record(self, at: int, counter: int) -> None:
        self.doorbell_record.view[at : at + 4] = (counter & 0xFFFF).to_bytes(4, "big")

    def destroy(self) -> None:
        """DESTROY_QP, which ends all its work (F1), then free what it used."""
        self._channel.execute(Opcode.DESTROY_QP, DestroyQpIn.new(qpn=self.number), DestroyQpOut)
        self.buffer.free()
        self.doorbell_record.free()


def _data(view: memoryview, at: int, region: MemoryRegion, offset: int, length: int) -> None:
    segment = WqeDataSeg(view, at)
    segment.byte_count = length
    segment.lkey = region.key
    segment.addr = region.address + offset
