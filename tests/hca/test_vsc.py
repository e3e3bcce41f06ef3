"""The vendor-specific capability and ICMD behind it (E7)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis.strategies import binary, booleans, integers, lists, tuples

from softhca.bus import Reset
from softhca.bus.config_space import CAPABILITIES_POINTER
from softhca.hca.icmd import MAILBOX_BYTES
from softhca.prm import icmd, vsc
from softhca.prm.icmd import IcmdCtrl, IcmdOpcode, IcmdStatus, OperationTlv, RegTlv
from softhca.prm.registers import PmtuReg, RegisterId
from softhca.prm.syndromes import ports
from softhca.prm.vsc import Space
from tests.hca.raw_host import RawHost

pytestmark = pytest.mark.requirement("E7")


class Gateway:
    """As a tool uses it, register by register."""

    def __init__(self, host: RawHost) -> None:
        self.host = host
        at = self.byte(CAPABILITIES_POINTER)
        while self.byte(at) != 0x09:
            at = self.byte(at + 1)
        self.at = at

    def byte(self, at: int) -> int:
        return self.host.hca.config_read(at, 1)[0]

    def get(self, register: int) -> int:
        return int.from_bytes(self.host.hca.config_read(self.at + register, 4), "little")

    def set(self, register: int, value: int) -> None:
        self.host.hca.config_write(self.at + register, value.to_bytes(4, "little"))

    def take(self) -> int:
        ticket = self.get(vsc.COUNTER)
        self.set(vsc.SEMAPHORE, ticket)
        assert self.get(vsc.SEMAPHORE) == ticket
        return ticket

    def give_back(self) -> None:
        self.set(vsc.SEMAPHORE, 0)

    def select(self, space: int) -> int:
        self.set(vsc.CONTROL, space)
        return self.get(vsc.CONTROL)

    def read(self, address: int) -> int:
        self.set(vsc.ADDRESS, address)
        assert self.get(vsc.ADDRESS) == address | vsc.FLAG
        return self.get(vsc.DATA)

    def write(self, address: int, value: int) -> None:
        self.set(vsc.DATA, value)
        self.set(vsc.ADDRESS, address | vsc.FLAG)
        assert self.get(vsc.ADDRESS) == address

    def fill(self, message: bytes) -> None:
        for at in range(0, MAILBOX_BYTES, 4):
            self.write(icmd.MAILBOX + at, int.from_bytes(message[at : at + 4].ljust(4, b"\0"), "big"))

    def run(self, opcode: int, exmb: int = 0) -> IcmdCtrl:
        self.write(icmd.CONTROL, int.from_bytes(IcmdCtrl.pack(opcode=opcode, exmb=exmb, busy=1), "big"))
        assert self.read(icmd.CONTROL) & 1
        self.host.settle()
        control = IcmdCtrl(bytearray(self.read(icmd.CONTROL).to_bytes(4, "big")))
        assert not control.busy
        return control

    def mailbox(self, length: int) -> bytes:
        words = (self.read(icmd.MAILBOX + at) for at in range(0, length, 4))
        return b"".join(word.to_bytes(4, "big") for word in words)


@pytest.fixture
def gateway(host: RawHost) -> Gateway:
    return Gateway(host.initialize())


@pytest.fixture
def open_icmd(gateway: Gateway) -> Gateway:
    gateway.take()
    gateway.select(Space.ICMD)
    return gateway


def tlvs(register: int, method: int, contents: bytes, *, length: int | None = None) -> bytes:
    operation = OperationTlv.pack(type=1, len=4, register_id=register, method=method, class_=1, tid=7)
    head = RegTlv.pack(type=3, len=len(contents) // 4 + 1 if length is None else length)
    return operation + head + contents


def test_the_semaphore_has_one_owner(gateway: Gateway) -> None:
    first = gateway.take()
    second = gateway.get(vsc.COUNTER)
    assert second != first
    gateway.set(vsc.SEMAPHORE, second)
    assert gateway.get(vsc.SEMAPHORE) == first
    gateway.give_back()
    assert gateway.get(vsc.SEMAPHORE) == 0
    assert gateway.take() != first


def test_spaces_tell_whether_they_exist_and_how_large_they_are(gateway: Gateway) -> None:
    gateway.take()
    for space in (Space.ICMD, Space.SEMAPHORES):
        control = gateway.select(space)
        assert control >> 29 == 1
        assert control & vsc.SIZE_VALID
        assert gateway.get(vsc.ADDRESS) > 0
    for missing in (0, Space.CR_SPACE, Space.SCAN_CR_SPACE, 0xFFFF):
        assert gateway.select(missing) >> 29 == 0


def test_an_access_without_the_semaphore_fails(gateway: Gateway) -> None:
    gateway.select(Space.ICMD)
    gateway.set(vsc.ADDRESS, icmd.MAILBOX_SIZE)
    assert gateway.get(vsc.ADDRESS) == icmd.MAILBOX_SIZE | vsc.FLAG | vsc.SYNDROME
    gateway.set(vsc.DATA, 5)
    gateway.set(vsc.ADDRESS, icmd.MAILBOX | vsc.FLAG)
    assert gateway.get(vsc.ADDRESS) == icmd.MAILBOX | vsc.SYNDROME
    gateway.take()
    assert gateway.read(icmd.MAILBOX) == 0


def test_an_address_that_does_not_exist_fails(open_icmd: Gateway) -> None:
    for address in (4, icmd.MAILBOX + MAILBOX_BYTES, icmd.MAILBOX + 2, vsc.ADDRESS_MASK & ~3):
        open_icmd.set(vsc.ADDRESS, address)
        assert open_icmd.get(vsc.ADDRESS) == address | vsc.FLAG | vsc.SYNDROME


def test_the_semaphore_of_software_reset(gateway: Gateway) -> None:
    gateway.take()
    gateway.select(Space.SEMAPHORES)
    gateway.write(vsc.SW_RESET_SEMAPHORE, 17)
    gateway.write(vsc.SW_RESET_SEMAPHORE, 18)
    assert gateway.read(vsc.SW_RESET_SEMAPHORE) == 17
    gateway.write(vsc.SW_RESET_SEMAPHORE, 0)
    assert gateway.read(vsc.SW_RESET_SEMAPHORE) == 0


def test_a_register_read_by_icmd_is_that_of_access_register(open_icmd: Gateway) -> None:
    open_icmd.fill(tlvs(RegisterId.PMTU, 1, PmtuReg.pack(local_port=1)))
    assert open_icmd.read(icmd.MAILBOX_SIZE) == MAILBOX_BYTES
    control = open_icmd.run(IcmdOpcode.ACCESS_REGISTER)
    assert (control.status, open_icmd.read(icmd.SYNDROME)) == (IcmdStatus.OK, 0)
    answer = open_icmd.mailbox(36)
    operation = OperationTlv(answer)
    assert (operation.status, operation.r, operation.tid) == (0, 1, 7)
    assert PmtuReg(answer, 20).max_mtu == open_icmd.host.hca.port.max_mtu


def test_the_results_of_gateway_command_and_register_are_apart(open_icmd: Gateway) -> None:
    open_icmd.fill(tlvs(0x1234, 1, bytes(16)))
    control = open_icmd.run(IcmdOpcode.ACCESS_REGISTER)
    assert control.status == IcmdStatus.OK
    assert OperationTlv(open_icmd.mailbox(16)).status == 0x70
    assert open_icmd.read(icmd.SYNDROME) == ports.UNKNOWN_REGISTER.number
    assert open_icmd.run(0x7777).status == IcmdStatus.INVALID_OPCODE
    assert open_icmd.read(icmd.SYNDROME) == 0


def test_the_external_mailbox_is_not_there(open_icmd: Gateway) -> None:
    assert open_icmd.run(IcmdOpcode.ACCESS_REGISTER, exmb=1).status == IcmdStatus.BAD_PARAM


@pytest.mark.parametrize("length", [0, MAILBOX_BYTES // 4, 0x7FF])
def test_a_register_that_does_not_fit_the_mailbox(open_icmd: Gateway, length: int) -> None:
    open_icmd.fill(tlvs(RegisterId.PMTU, 1, bytes(16), length=length))
    assert open_icmd.run(IcmdOpcode.ACCESS_REGISTER).status == IcmdStatus.BAD_PARAM


def test_a_function_that_is_not_set_up_has_no_registers(host: RawHost) -> None:
    gateway = Gateway(host.start())
    gateway.take()
    gateway.select(Space.ICMD)
    gateway.fill(tlvs(RegisterId.PMTU, 1, PmtuReg.pack(local_port=1)))
    assert gateway.run(IcmdOpcode.ACCESS_REGISTER).status == IcmdStatus.OPERATIONAL_ERROR


def test_while_a_command_runs_its_mailbox_stays(open_icmd: Gateway) -> None:
    open_icmd.fill(b"abcd")
    open_icmd.write(icmd.CONTROL, 0x7777_0001)
    open_icmd.write(icmd.MAILBOX, 0)
    open_icmd.write(icmd.CONTROL, 0x8888_0001)
    open_icmd.host.settle()
    assert open_icmd.mailbox(4) == b"abcd"
    assert open_icmd.read(icmd.CONTROL) >> 16 == 0x7777


def test_a_reset_ends_it_all(open_icmd: Gateway) -> None:
    open_icmd.fill(b"abcd")
    open_icmd.write(icmd.CONTROL, 0x7777_0001)
    open_icmd.host.hca.reset(Reset.FLR)
    open_icmd.host.settle()
    assert open_icmd.get(vsc.SEMAPHORE) == 0
    open_icmd.take()
    open_icmd.select(Space.ICMD)
    assert open_icmd.mailbox(4) == bytes(4)
    assert open_icmd.read(icmd.CONTROL) == 0
    assert open_icmd.host.hca.icmd.commands == 0


@settings(deadline=None)
@given(lists(tuples(integers(0, vsc.SIZE + 4), binary(min_size=1, max_size=8), booleans()), max_size=60))
def test_no_order_of_accesses_raises(accesses: list[tuple[int, bytes, bool]]) -> None:
    gateway = Gateway(RawHost().initialize())
    gateway.take()
    for at, data, reading in accesses:
        if reading:
            gateway.host.hca.config_read(gateway.at + at, len(data))
        else:
            gateway.host.hca.config_write(gateway.at + at, data)
    gateway.host.settle()
