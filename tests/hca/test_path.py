"""Where paths lead: by LID and GID on InfiniBand, by MAC and GID on Ethernet."""

from __future__ import annotations

from typing import Any

import pytest

from softhca.prm.cqe import CqeOpcode
from softhca.prm.opcodes import Opcode
from softhca.prm.registers import PortAdminStatus
from softhca.prm.wqe import WqeOpcode
from tests.hca.bench import SECOND, Bench

GID = bytes(10) + b"\xff\xff\x0a\x00\x00\x01"


def arrives(bench: Bench, path: dict[str, Any]) -> bool:
    cq = bench.cq()
    queue = bench.qp(cq)
    bench.to_init(queue)
    fields = {"mtu": 3, "log_msg_max": 20, "remote_qpn": queue.number, "primary_address_path": path}
    bench.call(Opcode.INIT2RTR_QP, qpn=queue.number, qpc=fields)
    bench.to_rts(queue, retry_count=0, ack_timeout=8)
    queue.receive()
    queue.post(WqeOpcode.SEND)
    bench.wait(SECOND)
    cqe = cq.poll()
    assert cqe is not None
    return cqe.opcode == CqeOpcode.RESP_SEND


@pytest.mark.requirement("C11", "G5")
def test_infiniband() -> None:
    bench = Bench()
    own, other = list(bench.card.port.gid(0)), list(bytes(16))
    assert arrives(bench, {"rlid": 1})
    assert arrives(bench, {"rlid": 1, "grh": 1, "rgid_rip": own})
    assert arrives(bench, {"rlid": 1, "grh": 0, "rgid_rip": other})
    assert not arrives(bench, {"rlid": 2})
    assert not arrives(bench, {"rlid": 1, "grh": 1, "rgid_rip": other})
    bench.card.port.set_admin(PortAdminStatus.DOWN)
    assert not arrives(bench, {"rlid": 1})


@pytest.mark.requirement("C11", "G5")
def test_roce() -> None:
    bench = Bench("connectx-7-eth")
    bench.call(Opcode.MODIFY_NIC_VPORT_CONTEXT, field_select={"roce_en": 1}, nic_vport_context={"roce_en": 1})
    mac = bench.card.port.mac
    halves = {"source_mac_47_32": mac >> 32, "source_mac_31_0": mac & 0xFFFF_FFFF}
    address = {"roce_version": 2, "source_l3_address": list(GID)} | halves
    bench.call(Opcode.SET_ROCE_ADDRESS, roce_address_index=0, vhca_port_num=1, roce_address=address)
    own = {"rmac_47_32": mac >> 32, "rmac_31_0": mac & 0xFFFF_FFFF}
    assert arrives(bench, own | {"rgid_rip": list(GID)})
    assert not arrives(bench, own | {"rgid_rip": list(GID[:-1] + b"\x02")})
    assert not arrives(bench, {"rmac_47_32": mac >> 32, "rmac_31_0": 1, "rgid_rip": list(GID)})
