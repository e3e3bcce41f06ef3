from __future__ import annotations

import pytest

from softhca.driver import queries
from softhca.driver.errors import CommandFailed, UnsupportedDevice
from softhca.driver.vsc import Gateway, GatewayError, Icmd, IcmdError
from softhca.prm.icmd import IcmdStatus
from softhca.prm.init_segment import HealthSyndrome
from softhca.prm.qp import QpState
from softhca.prm.registers import PmtuReg, RegisterId
from softhca.prm.vport import VportState
from softhca.prm.vsc import COUNTER, SEMAPHORE, Space
from tests.driver.conftest import SECOND, Bench, Pair
from tests.driver.stub import StubDevice


@pytest.mark.requirement("E6", "B1")
def test_snapshots_of_objects(pair: Pair) -> None:
    channel, (first, second) = pair.driver.channel, pair.qps
    first.post_write(pair.source.region, 0, 64, pair.target.address, pair.target.key)
    pair.cqs[0].wait(SECOND).check()
    found = queries.qp(channel, first.number)
    assert (found.state, found.remote_qpn, found.pd) == (QpState.RTS, second.number, pair.driver.pds[0].number)
    assert (found.send_slots, found.receive_slots) == (16, 16)
    assert found.send_psn == 0xFFFFF1
    assert (found.send_cqn, found.receive_cqn) == (pair.cqs[0].number, pair.cqs[0].number)
    cq = queries.cq(channel, pair.cqs[0].number)
    assert (cq.slots, cq.producer, cq.consumer, cq.status) == (128, 1, 1, 0)
    assert pair.driver.completion_eq is not None
    eq = queries.eq(channel, pair.driver.completion_eq.number)
    assert cq.eqn == pair.driver.completion_eq.number
    assert (eq.slots, eq.vector, eq.events) == (256, 1, 0)
    key = queries.key(channel, pair.source.key)
    assert (key.start, key.length, key.free) == (pair.source.address, len(pair.source.view), False)
    with pytest.raises(CommandFailed, match="BAD_RESOURCE"):
        queries.qp(channel, 0x123456)


@pytest.mark.requirement("E6", "C11")
def test_snapshots_of_the_device(bench: Bench) -> None:
    channel = bench.driver.channel
    assert queries.adapter(channel).vendor == 0x2C9
    assert queries.adapter(channel).board == bench.hca.profile.firmware.board_id
    assert queries.vport_state(channel) is VportState.UP
    assert queries.reserved_key(channel) > 0
    counters = queries.q_counters(channel)
    assert counters["out_of_sequence"] == 0
    assert "syndrome" not in counters


@pytest.mark.requirement("E7")
def test_a_register_by_icmd_and_by_command_are_the_same(bench: Bench) -> None:
    icmd = Icmd(Gateway(bench.driver.pci, bench.driver.engine), bench.driver.engine)
    answer = PmtuReg(icmd.read_register(RegisterId.PMTU, PmtuReg.new(local_port=1)))
    assert answer.max_mtu == bench.hca.port.max_mtu


@pytest.mark.requirement("E7")
def test_failure_of_gateway_command_and_register_are_told_apart(bench: Bench) -> None:
    gateway = Gateway(bench.driver.pci, bench.driver.engine)
    icmd = Icmd(gateway, bench.driver.engine)
    with pytest.raises(GatewayError, match="SCAN_CR_SPACE"), gateway.space(Space.SCAN_CR_SPACE):
        pass
    with gateway.space(Space.ICMD), pytest.raises(GatewayError, match="access to 0x4 failed"):
        gateway.read(4)
    with pytest.raises(IcmdError) as failed:
        icmd.execute(0x7777, bytes(16))
    assert failed.value.status == IcmdStatus.INVALID_OPCODE
    with pytest.raises(IcmdError, match="register access") as refused:
        icmd.read_register(RegisterId.PMTU, PmtuReg.new(local_port=9))
    assert refused.value.syndrome >> 24 == 0xCA
    with pytest.raises(UnsupportedDevice, match="icmd_exmb"):
        icmd.execute(0x9001, b"", external=True)
    with pytest.raises(GatewayError, match="the mailbox has 768"):
        icmd.execute(0x9001, bytes(1000))


@pytest.mark.requirement("E7")
def test_a_gateway_that_somebody_else_has_is_waited_for(bench: Bench) -> None:
    pci, engine = bench.driver.pci, bench.driver.engine
    at = pci.capabilities()[0x09]
    pci.write(at + SEMAPHORE, pci.read(at + COUNTER, 4), 4)
    with pytest.raises(GatewayError, match="somebody else's"), Gateway(pci, engine).space(Space.ICMD):
        pass
    engine.after(SECOND, lambda: pci.write(at + SEMAPHORE, 0, 4))
    with Gateway(pci, engine).space(Space.ICMD) as gateway:
        assert gateway.read(0x1000) == 768


@pytest.mark.requirement("E7")
def test_a_device_without_the_capability() -> None:
    from softhca.driver.pci import PciFunction

    stub = StubDevice()
    with pytest.raises(UnsupportedDevice, match="0x09"):
        Gateway(PciFunction(stub), stub.engine)


@pytest.mark.requirement("E3", "E7")
def test_icmd_answers_on_a_card_that_is_unwell(bench: Bench) -> None:
    bench.hca.health.report(HealthSyndrome.HIGH_TEMP_ERR)
    icmd = Icmd(Gateway(bench.driver.pci, bench.driver.engine), bench.driver.engine)
    assert PmtuReg(icmd.read_register(RegisterId.PMTU, PmtuReg.new(local_port=1))).max_mtu > 0
