"""SR-IOV: the capability, VFs and their pages, what a PF does for them, isolation, resets (B7, B11, E2, F3)."""

from __future__ import annotations

import struct

import pytest

from softhca.bus import Reset
from softhca.bus.local import LocalHost
from softhca.hca.command import Stage
from softhca.hca.device import VirtualFunction
from softhca.prm.events import Eqe, EventType
from softhca.prm.hca_cap import CapType, CmdHcaCap
from softhca.prm.hca_vport import ModifyHcaVportContextIn, QueryHcaVportContextOut
from softhca.prm.init_segment import HealthSyndrome, NicInterface
from softhca.prm.opcodes import Opcode
from softhca.prm.registers import PortAdminStatus
from softhca.prm.syndromes import Syndrome, control, objects, ports
from softhca.prm.vport import VportAdminState
from tests.hca.raw_host import RawHost, Result, words

SRIOV = 0x100
CONTROL, NUM_VFS = SRIOV + 0x08, SRIOV + 0x10
FULL, DISABLED = NicInterface.FULL_DRIVER, NicInterface.DISABLED
START = 80
"""Pages that a function of the profile needs for its start."""


class Pf(RawHost):
    """A PF that is initialised and has an EQ for page requests."""

    def __init__(self) -> None:
        super().__init__()
        self.initialize()
        _, self.eq = self.create_eq(1 << EventType.PAGE_REQUEST, log_size=8)
        self.seen = 0

    def enable_vfs(self, count: int) -> list[VirtualFunction]:
        """As Linux does it: ENABLE_HCA of each, then VF Enable."""
        for number in range(1, count + 1):
            self.good(Opcode.ENABLE_HCA, words(0, 0, number, 0), room=12)
        self.hca.config_write(NUM_VFS, count.to_bytes(2, "little"))
        self.hca.config_write(CONTROL, b"\x09\x00")
        return self.hca.vfs.present()

    def requests(self) -> list[tuple[int, int]]:
        """Function and number of each Pages Request event since the last time."""
        found = []
        while not self.eq[self.seen * 64 + 63] & 1:
            event = Eqe(self.eq, self.seen * 64).data.req_pages
            number = event.num_pages
            found.append((event.func_id, number - (1 << 32) if number >> 31 else number))
            self.seen += 1
        return found

    def serve(self) -> list[tuple[int, int]]:
        """Answer all requests."""
        found = self.requests()
        for function_id, number in found:
            if number > 0:
                self.give(number, function_id)
            else:
                assert len(self.take(-number, function_id=function_id)) == -number
        return found

    def vf(self, number: int) -> RawHost:
        """The host of a VF, which is initialised; the PF gives its pages."""
        vf = self.hca.vfs.find(number)
        assert vf is not None
        host = RawHost(hca=vf, memory=4 << 20)
        self.serve()
        return bring_up(host)


def bring_up(host: RawHost) -> RawHost:
    """A VF whose pages are there."""
    host.enable()
    assert (host.query_pages(1), host.query_pages(2)) == (0, 0)
    host.good(Opcode.INIT_HCA, bytes(32))
    return host


def refused(result: Result, syndrome: Syndrome) -> bool:
    return (result.delivery, result.status, result.syndrome) == (0, syndrome.status, syndrome.number)


def nic_interface(host: RawHost) -> int:
    return host.read(0x14) >> 8 & 7


@pytest.mark.requirement("C1")
def test_capability() -> None:
    host = RawHost()
    read = host.hca.config_read
    assert read(SRIOV, 0x40) == bytes.fromhex(
        "10000100 00000000 00000000 40004000"  # id and version; capabilities; control and status; initial, total VFs
        "00000000 01000100 00001c10 53050000"  # number; first offset, stride; device id; page sizes
        "01000000 0c000000 00000000 00000000"  # page size; VF BAR 0: 64 bits, prefetchable
        "00000000 00000000 00000000 00000000"
    )
    host.hca.config_write(SRIOV + 0x24, b"\xff" * 8)
    assert int.from_bytes(read(SRIOV + 0x24, 8), "little") == 2**64 - (32 << 20) + 0xC
    eth = RawHost("connectx-7-eth").hca
    assert eth.config_read(SRIOV, 4) == bytes(4)


def test_vf_enable_puts_vfs_onto_the_bus_and_takes_them_off() -> None:
    pf = RawHost()
    write = pf.hca.config_write
    assert pf.hca.virtual_functions() == []
    write(CONTROL, b"\x01\x00")
    assert pf.hca.virtual_functions() == []
    write(CONTROL, b"\x00\x00")
    write(NUM_VFS, b"\xff\x00")
    assert pf.hca.config_read(NUM_VFS, 2) == b"\0\0"
    write(NUM_VFS, b"\x04\x00")
    write(CONTROL, b"\x09\x00")
    vfs = list(pf.hca.virtual_functions())
    assert len(vfs) == 4
    write(NUM_VFS, b"\x02\x00")
    assert pf.hca.config_read(NUM_VFS, 2) == b"\x04\0"
    machine = LocalHost(1 << 20)
    machine.plug(vfs[0])
    assert vfs[0].config_read(0, 4) == bytes.fromhex("b3151c10")
    write(CONTROL, b"\x00\x00")
    assert pf.hca.virtual_functions() == []
    assert vfs[0].config_read(0, 4) == vfs[0].bar_read(0, 0, 4) == b"\xff" * 4
    with pytest.raises(RuntimeError, match="VF 1 is not on the bus"):
        machine.plug(vfs[0])
    write(NUM_VFS, b"\x01\x00")
    write(CONTROL, b"\x01\x00")
    machine.plug(pf.hca.virtual_functions()[0])
    pf.hca.reset(Reset.FLR)
    assert (pf.hca.virtual_functions(), pf.hca.config_read(CONTROL, 2)) == ([], b"\0\0")


@pytest.mark.requirement("B7", "C3")
def test_a_vf_waits_for_its_pf() -> None:
    pf = Pf()
    vf = pf.hca.vfs.find(1)
    assert vf is not None
    pf.hca.config_write(NUM_VFS, b"\x01\x00")
    pf.hca.config_write(CONTROL, b"\x01\x00")
    host = RawHost(hca=vf, memory=4 << 20).start()
    assert host.read(0x1FC) >> 31 == 1
    host.ring(message := host.message(words(Opcode.ENABLE_HCA << 16, 0, 0, 0), 12))
    host.settle()
    assert host.owned(message)
    pf.good(Opcode.ENABLE_HCA, words(0, 0, 1, 0), room=12)
    assert host.read(0x1FC) >> 31 == 0
    host.enable()
    host.ring(message := host.message(words(Opcode.QUERY_PAGES << 16, 1, 0, 0), 16))
    host.settle()
    assert host.owned(message)
    assert pf.requests() == [(1, START)]
    pf.give(START, 1)
    host.settle()
    answer = host.result(message)
    assert (answer.status, answer.word(8), answer.word(12)) == (0, 0, 0)
    assert vf.function.stage is Stage.READY


@pytest.mark.requirement("B7", "B9")
def test_the_pf_has_no_pages_for_a_vf() -> None:
    pf = Pf()
    pf.enable_vfs(2)
    host = RawHost(hca=pf.hca.vfs.present()[0], memory=4 << 20).enable()
    host.ring(message := host.message(words(Opcode.QUERY_PAGES << 16, 1, 0, 0), 16))
    host.settle()
    assert pf.requests() == [(1, START), (2, START)]
    pf.good(Opcode.MANAGE_PAGES, words(0, 0, 1, 0))
    assert refused(host.result(message), control.NO_PAGES)
    pf.give(START, 2)
    host.ring(message := host.message(words(Opcode.QUERY_PAGES << 16, 1, 0, 0), 16))
    host.settle()
    assert pf.requests() == [(1, START)]
    pf.give(50, 1)
    assert host.result(message).status == 0
    assert pf.requests() == [(1, START - 50)]


@pytest.mark.requirement("B6", "B7", "B10")
def test_pages_are_accounted_by_function() -> None:
    pf = Pf()
    vfs = pf.enable_vfs(2)
    assert pf.query_pages(3, 1) == pf.query_pages(2, 2) == START
    assert pf.query_pages(1, 1) == 16
    first = pf.give(START, 1)
    again = pf.submit(pf.give_message(first[:1], function_id=2))
    assert refused(again, control.ICM_PAGE_DUPLICATE)
    pf.give(START, 2)
    host = RawHost(hca=vfs[0], memory=4 << 20)
    bring_up(host)
    assert refused(host.submit(host.give_message(host.new_pages(1))), control.PAGES_BY_PF)
    assert host.take(4) == []
    assert pf.hca.summary()["pages_outstanding"] == len(pf.hca.function.icm.pages) + 2 * START
    assert host.hca.summary()["pages_outstanding"] == 0
    pf.requests()
    pf.good(Opcode.DISABLE_HCA, words(0, 0, 1, 0), room=12)
    assert pf.requests() == [(1, -START)]
    assert sorted(pf.take(2 * START, function_id=1)) == sorted(first)
    assert refused(pf.submit(pf.give_message(pf.new_pages(1), function_id=1)), control.VF_NOT_ENABLED)
    assert len(vfs[1].function.icm.pages) == START


@pytest.mark.requirement("B7", "B9")
def test_a_vf_that_is_disabled_while_it_waits_gives_its_pages_back() -> None:
    pf = Pf()
    pf.enable_vfs(1)
    assert pf.requests() == [(1, START)]
    pf.good(Opcode.DISABLE_HCA, words(0, 0, 1, 0), room=12)
    assert pf.requests() == []
    pf.give(START, 1)
    assert pf.serve() == [(1, -START)]
    assert pf.hca.vfs.pages() == 0


@pytest.mark.requirement("B7")
def test_a_vf_asks_its_pf_when_it_runs_short() -> None:
    pf = Pf()
    pf.enable_vfs(1)
    host = pf.vf(1)
    asked = []
    for _ in range(3000):
        host.good(Opcode.ALLOC_PD)
        asked += pf.serve()
        if len(asked) > 1:
            break
    assert asked[0][0] == 1
    assert asked[0][1] > 0


@pytest.mark.requirement("B11")
def test_enable_and_disable_come_in_turns_and_are_the_pfs_alone() -> None:
    pf = Pf()
    pf.enable_vfs(1)
    assert refused(pf.command(Opcode.ENABLE_HCA, words(0, 0, 1, 0), 12), control.VF_ENABLED_ALREADY)
    assert refused(pf.command(Opcode.DISABLE_HCA, words(0, 0, 2, 0), 12), control.VF_NOT_ENABLED)
    assert refused(pf.command(Opcode.ENABLE_HCA, words(0, 0, 65, 0), 12), control.NO_SUCH_FUNCTION)
    assert refused(pf.command(Opcode.ENABLE_HCA, words(0, 0, 0, 0), 12), control.BAD_STAGE)
    host = pf.vf(1)
    for number in (1, 2):
        for opcode in (Opcode.ENABLE_HCA, Opcode.DISABLE_HCA, Opcode.QUERY_PAGES, Opcode.MANAGE_PAGES):
            op_mod = 1 if opcode in (Opcode.QUERY_PAGES, Opcode.MANAGE_PAGES) else 0
            assert refused(host.command(opcode, words(0, op_mod, number, 0)), control.NO_SUCH_FUNCTION)
    early = RawHost().ready()
    assert refused(early.command(Opcode.DISABLE_HCA, words(0, 0, 1, 0), 12), control.BAD_STAGE)


def capabilities(host: RawHost, *, other: int = 0, current: int = 0) -> CmdHcaCap:
    head = words(0, current, (other and 0x8000_0000) | other, 0)
    result = host.good(Opcode.QUERY_HCA_CAP, head, 16 + 4096)
    return CmdHcaCap(bytearray(result.output[16 : 16 + CmdHcaCap.SIZE]))


def grant(host: RawHost, caps: CmdHcaCap, other: int) -> Result:
    head = words(0, CapType.GENERAL << 1, (other and 0x8000_0000) | other, 0)
    return host.command(Opcode.SET_HCA_CAP, head + bytes(caps).ljust(4096, b"\0"))


@pytest.mark.requirement("C7")
def test_a_pf_grants_capabilities_to_a_vf() -> None:
    pf = Pf()
    pf.enable_vfs(2)
    assert capabilities(pf).vport_group_manager == 1
    caps = capabilities(pf, other=1)
    assert caps.vport_group_manager == 0
    most, caps.log_max_qp = caps.log_max_qp, 5
    assert grant(pf, caps, 1).status == 0
    assert (capabilities(pf, other=1).log_max_qp, capabilities(pf, other=2).log_max_qp) == (5, most)
    host = pf.vf(1)
    assert (capabilities(host).log_max_qp, capabilities(host, current=1).log_max_qp) == (5, 5)
    assert capabilities(pf).log_max_qp == most
    assert refused(grant(pf, caps, 1), ports.CAPABILITIES_FIXED)
    caps.log_max_qp = most + 1
    assert refused(grant(pf, caps, 2), ports.CAPABILITY_ABOVE_MAXIMUM)
    ask = words(0, 0, 0x8000_0000 | 2, 0)
    assert refused(host.command(Opcode.QUERY_HCA_CAP, ask, 16 + 4096), ports.NO_OTHER_FUNCTION)
    assert RawHost("connectx-7-eth").hca.function.caps.general.vport_group_manager == 0


def vport(host: RawHost, other: int = 0) -> QueryHcaVportContextOut:
    head = words(0, 0, (other and 0x8000_0000) | other, 0)
    return QueryHcaVportContextOut(bytearray(host.good(Opcode.QUERY_HCA_VPORT_CONTEXT, head, 0x210).output))


def modify(host: RawHost, other: int, **fields: int) -> Result:
    request = ModifyHcaVportContextIn.new(other_vport=1, vport_number=other, hca_vport_context=fields)
    return host.command(Opcode.MODIFY_HCA_VPORT_CONTEXT, bytes(request))


@pytest.mark.requirement("C11")
def test_vports() -> None:
    pf = Pf()
    pf.enable_vfs(2)
    host = pf.vf(1)
    own, seen = vport(host).hca_vport_context, vport(pf, 1).hca_vport_context
    assert bytes(own)[0x28:] == bytes(seen)[0x28:]
    assert own.lid not in (0, vport(pf).hca_vport_context.lid)
    assert own.port_guid != own.system_image_guid == pf.hca.port.guid
    assert modify(pf, 1, field_select=3, port_guid=0x1234, node_guid=0x5678).status == 0
    own = vport(host).hca_vport_context
    assert (own.port_guid, own.node_guid) == (0x1234, 0x5678)
    assert refused(modify(pf, 2, field_select=1, port_guid=0x1234), ports.BAD_PORT_GUID)
    assert refused(modify(pf, 2, field_select=8), ports.HCA_VPORT_FIELD_FIXED)
    assert refused(modify(pf, 2, field_select=4, vport_state_policy=3), ports.BAD_VPORT_STATE)
    assert refused(modify(host, 2, field_select=3), ports.NO_SUCH_VPORT)
    ask = words(0, 0, 0x8000_0001, 0)
    assert pf.good(Opcode.QUERY_HCA_VPORT_GID, ask, 32).output[24:32] == (0x1234).to_bytes(8, "big")
    assert pf.good(Opcode.QUERY_HCA_VPORT_PKEY, ask, 20).word(16) == 0xFFFF
    assert pf.good(Opcode.QUERY_VPORT_COUNTER, ask + bytes(16), 0x210).word(0x34) == 0
    for opcode in (Opcode.QUERY_HCA_VPORT_GID, Opcode.QUERY_VPORT_STATE):
        assert refused(pf.command(opcode, words(0, 0, 0x8000_0041, 0), 32), ports.NO_SUCH_VPORT)
    assert refused(pf.command(Opcode.QUERY_NIC_VPORT_CONTEXT, ask, 0x110), ports.NOT_ETHERNET)


@pytest.mark.requirement("C11", "E5")
def test_the_state_of_a_vfs_port() -> None:
    pf = Pf()
    pf.enable_vfs(1)
    host = pf.vf(1)
    _, eq = host.create_eq(1 << EventType.PORT_CHANGE)

    def state() -> tuple[int, int]:
        word = pf.good(Opcode.QUERY_VPORT_STATE, words(0, 0, 0x8000_0001, 0)).word(12)
        assert host.good(Opcode.QUERY_VPORT_STATE).word(12) & 0xF == word & 0xF
        return word >> 4 & 0xF, word & 0xF

    def want(admin: VportAdminState) -> None:
        pf.good(Opcode.MODIFY_VPORT_STATE, words(0, 0, 0x8000_0001, admin << 4))

    assert state() == (VportAdminState.AUTO, 1)
    pf.hca.port.set_admin(PortAdminStatus.DOWN)
    assert state() == (VportAdminState.AUTO, 0)
    want(VportAdminState.UP)
    assert state() == (VportAdminState.UP, 1)
    want(VportAdminState.DOWN)
    pf.hca.port.set_admin(PortAdminStatus.UP)
    assert state() == (VportAdminState.DOWN, 0)
    events = [Eqe(eq, at) for at in range(0, len(eq), 64) if not eq[at + 63] & 1]
    assert [(event.type, event.sub_type) for event in events] == [(9, 1), (9, 4), (9, 1)]
    host.hca.reset(Reset.FLR)
    bring_up(host)
    assert state() == (VportAdminState.DOWN, 0)
    paos = struct.pack(">HHIII", Opcode.ACCESS_REG, 0, 0, 0x5006, 0) + words(0x0001_0200, 0x8000_0000, 0, 0)
    assert refused(host.submit(host.message(paos, 32)), ports.PHYSICAL_PORT)
    assert pf.hca.port.up


@pytest.mark.requirement("B4", "B11", "F8")
@pytest.mark.parametrize("count", [4, 64])
def test_numbers_of_one_function_mean_nothing_in_another(count: int) -> None:
    pf = Pf()
    pf.enable_vfs(count)
    hosts = [pf, *(pf.vf(number) for number in range(1, count + 1))]
    assert [host.hca.function.function_id for host in hosts] == list(range(count + 1))
    assert len({host.hca.port.lid for host in hosts}) == len({host.hca.port.guid for host in hosts}) == count + 1
    own = [host.good(Opcode.ALLOC_PD).word(8) for host in hosts]
    second = hosts[1].good(Opcode.ALLOC_PD).word(8)
    for host in hosts[2:]:
        assert refused(host.command(Opcode.DEALLOC_PD, words(0, 0, second, 0)), objects.NO_SUCH_OBJECT)
    uar = hosts[1].good(Opcode.ALLOC_UAR).word(8)
    assert refused(hosts[2].command(Opcode.DEALLOC_UAR, words(0, 0, uar, 0)), objects.NO_SUCH_OBJECT)
    for host, number in zip(hosts, own, strict=True):
        host.good(Opcode.DEALLOC_PD, words(0, 0, number, 0))
    assert all(vf.function.pages_held == 0 for vf in pf.hca.vfs.present())
    assert pf.hca.vfs.pages() == count * START


@pytest.mark.requirement("B11", "E2")
def test_flr_of_a_vf_leaves_the_others_alone() -> None:
    pf = Pf()
    pf.enable_vfs(3)
    hosts = [pf.vf(number) for number in (1, 2, 3)]
    for host in (pf, *hosts):
        host.good(Opcode.ALLOC_PD)
    before = pf.hca.summary()
    hosts[1].hca.reset(Reset.FLR)
    assert hosts[1].hca.function.objects() == {}
    assert [host.hca.function.objects() for host in (hosts[0], hosts[2])] == [{"PD": 1}] * 2
    after = pf.hca.summary()
    assert (after["objects"], after["pages_outstanding"]) == (before["objects"], before["pages_outstanding"])
    bring_up(hosts[1]).good(Opcode.ALLOC_PD)
    assert pf.requests() == []
    hosts[1].write(0x14, hosts[1].read(0x14) & ~0x700 | 7 << 8)  # a software reset by a VF is its own alone
    hosts[1].settle()
    assert (nic_interface(hosts[1]), nic_interface(hosts[0]), nic_interface(pf)) == (DISABLED, FULL, FULL)
    bring_up(hosts[1])
    for host in (pf, hosts[0], hosts[2]):
        host.good(Opcode.ALLOC_PD)


@pytest.mark.requirement("B7", "F3", "F4")
def test_teardown_of_a_pf_ends_its_vfs_first() -> None:
    pf = Pf()
    pf.enable_vfs(2)
    hosts = [pf.vf(number) for number in (1, 2)]
    hosts[0].good(Opcode.ALLOC_PD)
    pf.good(Opcode.TEARDOWN_HCA)
    hosts[0].ring(message := hosts[0].message(words(Opcode.ALLOC_PD << 16, 0, 0, 0), 16))
    hosts[0].settle()
    assert hosts[0].owned(message)
    assert hosts[0].hca.function.objects() == {}
    for host in hosts:
        assert (host.read(0x1FC) >> 31, nic_interface(host)) == (1, DISABLED)
    assert [len(pf.take(2 * START, function_id=number)) for number in (1, 2)] == [START, START]
    pf.take(1000)
    pf.good(Opcode.DISABLE_HCA, room=12)
    assert pf.hca.summary()["teardowns"][-1]["pages_outstanding"] == 0
    assert pf.hca.summary()["pages_outstanding"] == 0


@pytest.mark.requirement("E2", "F3", "F6", "F8")
@pytest.mark.parametrize("how", ["cold", "flr", "software", "disabled", "removal"])
def test_resets_of_a_pf_end_its_vfs(how: str) -> None:
    pf = Pf()
    vfs = pf.enable_vfs(2)
    host = pf.vf(1)
    host.good(Opcode.ALLOC_PD)
    if how in ("cold", "flr"):
        pf.hca.reset(Reset(how))
    elif how == "removal":
        pf.hca.remove()
    else:
        pf.write(0x14, pf.read(0x14) & ~0x700 | (7 if how == "software" else 1) << 8)
    host.ring(message := host.message(words(Opcode.ALLOC_PD << 16, 0, 0, 0), 16))
    pf.settle()
    assert host.owned(message)
    assert [vf.function.enabled for vf in vfs] == [False, False]
    assert (pf.hca.vfs.pages(), vfs[0].function.objects()) == (0, {})
    on_the_bus = how in ("software", "disabled")
    assert len(pf.hca.virtual_functions()) == (2 if on_the_bus else 0)
    if on_the_bus:
        assert (host.read(0x1FC) >> 31, nic_interface(host)) == (1, DISABLED)


@pytest.mark.requirement("E3", "F3")
def test_a_card_that_dies_takes_its_vfs_with_it() -> None:
    pf = Pf()
    pf.enable_vfs(1)
    host = pf.vf(1)
    pf.hca.die(HealthSyndrome.FW_INTERNAL_ERR)
    assert host.hca.health.syndrome is pf.hca.health.syndrome is HealthSyndrome.FW_INTERNAL_ERR
    host.ring(message := host.message(words(Opcode.ALLOC_PD << 16, 0, 0, 0), 16))
    host.settle()
    assert host.owned(message)


@pytest.mark.requirement("F3")
def test_lent_vfs_come_and_go_with_the_service_of_their_pf() -> None:
    pf = RawHost()
    lent = pf.hca.vfs.lend(1)[0]
    host = RawHost(hca=lent, memory=4 << 20)
    assert host.read(0x1FC) >> 31 == 1
    pf.initialize()
    assert host.read(0x1FC) >> 31 == 1
    _, eq = pf.create_eq(1 << EventType.PAGE_REQUEST)
    assert host.read(0x1FC) >> 31 == 0
    event = Eqe(eq, 0).data.req_pages
    assert (event.func_id, event.num_pages) == (1, START)
    pf.give(START, 1)
    bring_up(host)
    pf.good(Opcode.TEARDOWN_HCA)
    assert (host.read(0x1FC) >> 31, nic_interface(host)) == (1, DISABLED)
    assert len(pf.take(START, function_id=1)) == START
    pf.hca.reset(Reset.FLR)
    assert pf.hca.virtual_functions() == [lent]
    pf.initialize()
    pf.create_eq(1 << EventType.PAGE_REQUEST)
    pf.give(START, 1)
    bring_up(host)
    pf.hca.remove()
    assert host.read(0) == 0xFFFF_FFFF
    pf.hca.insert()
    assert (host.read(0x1FC) >> 31, nic_interface(host)) == (1, DISABLED)
