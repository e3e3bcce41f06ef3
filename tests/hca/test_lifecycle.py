"""The stages of a function's life, in order and out of order (C5, C6, C8, C9, F3, F4, F7, F8)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from softhca.hca import device
from softhca.hca.command import COMMANDS, Stage
from softhca.hca.profile import Pages, load_profile
from softhca.points import Probe
from softhca.points.rules import Rules, parse_line
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus
from softhca.prm.syndromes import control
from tests.hca.raw_host import RawHost, words

BAD_STAGE = (CommandStatus.BAD_SYS_STATE, control.BAD_STAGE.number)


def stage(host: RawHost) -> Stage:
    return host.hca.function.stage


def room(opcode: int) -> int:
    return max(16, COMMANDS[opcode].reply.SIZE)


def request(opcode: int) -> bytes:
    return bytes(COMMANDS[opcode].request.SIZE)


@pytest.mark.requirement("C5", "C9", "C3")
def test_stages_in_order(host: RawHost) -> None:
    host.start()
    assert stage(host) is Stage.DISABLED
    host.good(Opcode.ENABLE_HCA, room=12)
    assert stage(host) is Stage.ENABLED
    issi = host.good(Opcode.QUERY_ISSI, room=112)
    assert (issi.word(8), issi.word(0x6C)) == (0, 0b11)
    host.good(Opcode.SET_ISSI, words(0, 0, 1, 0))
    assert stage(host) is Stage.SELECTED
    assert host.query_pages(1) == 16
    host.give(16)
    assert stage(host) is Stage.READY
    assert host.query_pages(2) == 64
    host.give(64)
    host.good(Opcode.INIT_HCA, bytes(32))
    assert stage(host) is Stage.INITIALIZED
    assert host.good(Opcode.QUERY_ISSI, room=112).word(8) == 1
    host.good(Opcode.TEARDOWN_HCA)
    assert stage(host) is Stage.TORN_DOWN
    assert len(host.take(100)) == 80
    assert host.take(100) == []
    host.good(Opcode.DISABLE_HCA, room=12)
    assert stage(host) is Stage.DISABLED
    assert host.hca.summary()["teardowns"] == [{"pages_outstanding": 0, "objects": 0}]


@pytest.mark.requirement("C5")
@pytest.mark.parametrize("reached", [Stage.DISABLED, Stage.ENABLED, Stage.SELECTED, Stage.READY, Stage.INITIALIZED])
def test_commands_out_of_order_fail_and_change_nothing(host: RawHost, reached: Stage) -> None:
    steps = {
        Stage.DISABLED: host.start,
        Stage.SELECTED: host.enable,
        Stage.READY: host.ready,
        Stage.INITIALIZED: host.initialize,
    }
    if reached is Stage.ENABLED:
        host.start().good(Opcode.ENABLE_HCA, room=12)
    else:
        steps[reached]()
    for opcode, entry in COMMANDS.items():
        if reached in entry.stages:
            continue
        result = host.command(opcode, request(opcode), room(opcode))
        assert (result.delivery, result.status, result.syndrome) == (0, *BAD_STAGE), entry.opcode.name
    assert stage(host) is reached


@pytest.mark.requirement("C5")
def test_pages_are_not_taken_before_an_issi_is_selected(host: RawHost) -> None:
    host.start().good(Opcode.ENABLE_HCA, room=12)
    for command in (words(0, 1, 0, 0), words(0, 2, 0, 0)):
        result = host.command(Opcode.QUERY_PAGES, command)
        assert (result.status, result.syndrome) == BAD_STAGE
    result = host.submit(host.give_message(host.new_pages(1)))
    assert (result.status, result.syndrome) == BAD_STAGE


@pytest.mark.requirement("C6")
def test_unsupported_issi(host: RawHost) -> None:
    host.start().good(Opcode.ENABLE_HCA, room=12)
    result = host.command(Opcode.SET_ISSI, words(0, 0, 2, 0))
    assert (result.status, result.syndrome) == (CommandStatus.BAD_PARAM, control.ISSI_UNSUPPORTED.number)
    host.good(Opcode.SET_ISSI, words(0, 0, 0, 0))


@pytest.mark.requirement("C6")
def test_device_with_step_0_alone_needs_no_selection() -> None:
    profile = load_profile()
    host = RawHost(replace(profile, firmware=replace(profile.firmware, issi=0))).start()
    host.good(Opcode.ENABLE_HCA, room=12)
    assert host.good(Opcode.QUERY_ISSI, room=112).word(0x6C) == 1
    assert host.query_pages(1) == 16


@pytest.mark.requirement("C8")
def test_init_fails_while_pages_lack(host: RawHost) -> None:
    host.ready()
    host.give(63)
    result = host.command(Opcode.INIT_HCA, bytes(32))
    assert (result.status, result.syndrome) == (CommandStatus.BAD_SYS_STATE, control.INIT_PAGES_LACKING.number)
    assert host.query_pages(2) == 1
    host.give(1)
    host.good(Opcode.INIT_HCA, bytes(32))


@pytest.mark.requirement("C8")
def test_boot_and_init_pages_at_once(host: RawHost) -> None:
    host.enable()
    host.give(80)
    assert host.query_pages(2) == 0
    host.good(Opcode.INIT_HCA, bytes(32))


@pytest.mark.requirement("C8")
def test_stage_without_need_is_skipped() -> None:
    host = RawHost(replace(load_profile(), pages=Pages(boot=0, init=0))).enable()
    assert (host.query_pages(1), host.query_pages(2)) == (0, 0)
    host.good(Opcode.INIT_HCA, bytes(32))


@pytest.mark.requirement("F7", "C9")
def test_bring_up_that_stops_after_boot_pages_is_undone(host: RawHost) -> None:
    host.ready()
    assert len(host.take(100)) == 16
    assert stage(host) is Stage.SELECTED
    host.good(Opcode.DISABLE_HCA, room=12)
    assert host.hca.summary()["teardowns"] == [{"pages_outstanding": 0, "objects": 0}]
    host.initialize()


@pytest.mark.requirement("F3", "F8")
def test_teardown_ends_objects_and_their_numbers(host: RawHost) -> None:
    host.initialize()
    number, _ = host.create_eq(1 << 9)
    pd = host.good(Opcode.ALLOC_PD).word(8)
    host.good(Opcode.TEARDOWN_HCA)
    host.take(100)
    host.good(Opcode.DISABLE_HCA, room=12)
    assert host.hca.summary()["teardowns"] == [{"pages_outstanding": 0, "objects": 3}]
    host.initialize()
    assert host.command(Opcode.DESTROY_EQ, words(0, 0, number, 0)).status == CommandStatus.BAD_RESOURCE
    assert host.command(Opcode.DEALLOC_PD, words(0, 0, pd, 0)).status == CommandStatus.BAD_RESOURCE


@pytest.mark.requirement("F6")
@pytest.mark.parametrize("profile", [3, 0xFFFF])
def test_a_way_of_teardown_that_does_not_exist(host: RawHost, profile: int) -> None:
    host.initialize()
    result = host.command(Opcode.TEARDOWN_HCA, words(0, 0, profile, 0))
    assert (result.status, result.syndrome) == (CommandStatus.BAD_PARAM, control.TEARDOWN_PROFILE_UNSUPPORTED.number)
    assert stage(host) is Stage.INITIALIZED


@pytest.mark.requirement("F6")
@pytest.mark.parametrize("profile", [1, 2])
def test_a_teardown_that_is_not_claimed_is_refused(profile: int) -> None:
    model = load_profile("connectx-6-ib")
    general = {**model.capabilities["general"], "fast_teardown": False, "force_teardown": False}
    host = RawHost(replace(model, capabilities={**model.capabilities, "general": general})).initialize()
    result = host.command(Opcode.TEARDOWN_HCA, words(0, 0, profile, 0))
    assert result.syndrome == control.TEARDOWN_PROFILE_UNSUPPORTED.number


@pytest.mark.requirement("F6", "E2")
def test_fast_teardown_then_disabled_gives_everything_back(host: RawHost) -> None:
    host.initialize()
    caps = host.hca.function.caps.general
    assert (caps.fast_teardown, caps.force_teardown) == (1, 1)
    host.good(Opcode.ALLOC_PD)
    assert host.good(Opcode.TEARDOWN_HCA, words(0, 0, 2, 0)).word(12) == 0
    assert host.hca.function.objects() == {}
    host.write(0x14, host.read(0x14) & 0xFFFF_F000 | 1 << 8)
    assert host.read(0x14) >> 8 & 7 == 1
    assert host.hca.summary()["pages_outstanding"] == 0
    host.initialize()


@pytest.mark.requirement("F6")
def test_fast_teardown_that_the_device_is_not_able_to(host: RawHost) -> None:
    host.initialize()
    pd = host.good(Opcode.ALLOC_PD).word(8)
    rules = Rules([parse_line("command=TEARDOWN_HCA refuse_fast_teardown")])
    host.hca.probe = Probe(host.engine.clock, rules=rules)
    assert host.good(Opcode.TEARDOWN_HCA, words(0, 0, 2, 0)).word(12) == 1
    assert stage(host) is Stage.INITIALIZED
    host.good(Opcode.DEALLOC_PD, words(0, 0, pd, 0))
    host.good(Opcode.TEARDOWN_HCA)


@pytest.mark.requirement("F6")
def test_forced_close(host: RawHost) -> None:
    host.initialize()
    assert host.good(Opcode.TEARDOWN_HCA, words(0, 0, 1, 0)).word(12) == 0
    assert len(host.take(200)) == 80
    host.good(Opcode.DISABLE_HCA, room=12)


@pytest.mark.requirement("B6", "F4")
def test_disable_with_pages_outstanding_is_told_and_they_can_still_be_taken(host: RawHost) -> None:
    host.initialize()
    host.good(Opcode.TEARDOWN_HCA)
    host.good(Opcode.DISABLE_HCA, room=12)
    assert host.hca.summary()["teardowns"] == [{"pages_outstanding": 80, "objects": 0}]
    assert host.hca.summary()["pages_outstanding"] == 80
    host.good(Opcode.ENABLE_HCA, room=12)
    assert len(host.take(100)) == 80


@pytest.mark.requirement("B7", "B11")
@pytest.mark.parametrize("word", [65, 0xFFFF, 1 << 31, 1 << 31 | 1])
@pytest.mark.parametrize("opcode", [Opcode.ENABLE_HCA, Opcode.DISABLE_HCA, Opcode.QUERY_PAGES, Opcode.MANAGE_PAGES])
def test_other_functions(host: RawHost, opcode: Opcode, word: int) -> None:
    if opcode is Opcode.ENABLE_HCA:
        host.start()
    else:
        host.ready()
    op_mod = 1 if opcode in (Opcode.QUERY_PAGES, Opcode.MANAGE_PAGES) else 0
    result = host.command(opcode, words(0, op_mod, word, 0))
    assert (result.status, result.syndrome) == (CommandStatus.BAD_PARAM, control.NO_SUCH_FUNCTION.number)


@pytest.mark.requirement("C5")
def test_driver_version_is_noted(host: RawHost) -> None:
    host.initialize()
    text = b"Linux,mlx5_core,6.12.117"
    host.good(Opcode.SET_DRIVER_VERSION, bytes(16) + text.ljust(64, b"\0"))
    assert host.hca.function.driver_version == text.decode()


@pytest.mark.parametrize("text", [b"x" * 64, b"\xff\0", b"a\nb\0"])
def test_bad_driver_version(host: RawHost, text: bytes) -> None:
    host.initialize()
    result = host.command(Opcode.SET_DRIVER_VERSION, bytes(16) + text.ljust(64, b"\0"))
    assert result.syndrome == control.BAD_DRIVER_VERSION.number


@pytest.mark.requirement("C7", "F8")
def test_capabilities_are_selected_anew_in_each_life(host: RawHost) -> None:
    host.ready()
    before = host.good(Opcode.QUERY_HCA_CAP, words(0, 1, 0, 0), 4112).output[16:]
    wanted = bytearray(before)
    from softhca.prm.hca_cap import CmdHcaCap

    CmdHcaCap(wanted).log_max_qp = 4
    host.good(Opcode.SET_HCA_CAP, bytes(16) + bytes(wanted))
    assert host.hca.function.caps.general.log_max_qp == 4
    host.take(100)
    host.good(Opcode.DISABLE_HCA, room=12)
    host.ready()
    assert host.good(Opcode.QUERY_HCA_CAP, words(0, 1, 0, 0), 4112).output[16:] == before


def test_a_host_that_enables_and_disables_for_ever_fills_no_memory(
    host: RawHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "MOST_TEARDOWNS", 3)
    host.start()
    for _ in range(5):
        host.good(Opcode.ENABLE_HCA, room=12)
        host.good(Opcode.DISABLE_HCA, room=12)
    assert len(host.hca.teardowns) == 3
