"""The card on the bus: BAR0, MSI-X storage, resets, summary (E1, G1, C2, F8)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from softhca.bus import Engine, Reset, VirtualClock
from softhca.bus.local import LocalHost
from softhca.hca.command import Stage
from softhca.hca.device import BAR0_SIZE, Hca
from softhca.hca.profile import load_profile, names
from softhca.prm.init_segment import NicInterface
from softhca.prm.opcodes import Opcode
from tests.hca.raw_host import RawHost, words


@pytest.mark.parametrize("name", names())
def test_every_profile_makes_a_card(name: str) -> None:
    host = RawHost(name).initialize()
    assert host.hca.summary()["profile"] == name


def test_too_many_vectors() -> None:
    profile = load_profile()
    with pytest.raises(ValueError, match=r"pci.vectors 257, at most 256"):
        Hca(Engine(VirtualClock()), replace(profile, pci=replace(profile.pci, vectors=257)))


@pytest.mark.requirement("E1", "G1")
def test_msix_table_is_storage_and_pending_bits_are_not(host: RawHost) -> None:
    host.hca.bar_write(0, 0x2010, bytes(range(16)))
    assert host.hca.bar_read(0, 0x2010, 16) == bytes(range(16))
    assert host.hca.bar_read(0, 0x200C, 8) == bytes(4) + bytes(range(4))
    host.hca.bar_write(0, 0x3000, b"\xff" * 8)
    assert host.hca.bar_read(0, 0x3000, 8) == bytes(8)
    host.hca.reset(Reset.FLR)
    assert host.hca.bar_read(0, 0x2010, 16) == bytes(16)


@pytest.mark.requirement("E1")
@pytest.mark.parametrize(
    ("bar", "offset", "wanted"),
    [
        (0, 0x1_0000, bytes(8)),
        (0, BAR0_SIZE - 4, bytes(4) + b"\xff" * 4),
        (0, BAR0_SIZE, b"\xff" * 8),
        (2, 0, b"\xff" * 8),
    ],
)
def test_places_without_registers(host: RawHost, bar: int, offset: int, wanted: bytes) -> None:
    host.hca.bar_write(bar, offset, b"\x5a" * 8)
    assert host.hca.bar_read(bar, offset, 8) == wanted


def test_access_that_spans_segment_and_table(host: RawHost) -> None:
    host.hca.bar_write(0, 0x1FF8, bytes(range(16)))
    assert host.hca.bar_read(0, 0x1FF8, 16) == bytes(8) + bytes(range(8, 16))
    host.hca.bar_write(0, 0x2FFC, b"\x11" * (0xE000))  # on into the UAR pages
    assert host.hca.bar_read(0, 0x2FFC, 8) == b"\x11" * 4 + bytes(4)


@pytest.mark.requirement("F8", "E2")
@pytest.mark.parametrize(
    ("kind", "interface"), [(Reset.COLD, NicInterface.FULL_DRIVER), (Reset.FLR, NicInterface.DISABLED)]
)
def test_reset_forgets_everything(host: RawHost, kind: Reset, interface: NicInterface) -> None:
    host.initialize()
    host.create_eq(0)
    message = host.message(words(Opcode.QUERY_ADAPTER << 16, 0, 0, 0), 272)
    host.ring(message)
    host.hca.reset(kind)
    host.settle()
    assert host.owned(message)
    function = host.hca.function
    assert (function.stage, function.objects(), len(function.icm.pages)) == (Stage.DISABLED, {}, 0)
    assert host.read(0x14) == 0x56 | interface << 8
    host.ring(message)
    host.settle()
    assert host.owned(message)
    host.initialize()


def test_a_card_that_was_pulled_starts_cold_when_it_is_inserted(host: RawHost) -> None:
    host.initialize()
    host.create_eq(0)
    host.hca.remove()
    assert host.read(0x14) == 0xFFFF_FFFF
    host.hca.insert()
    assert host.read(0x14) == 0x56
    assert not host.hca.config.bus_master
    assert host.hca.summary()["objects"] == {}
    host.bus_master()
    host.initialize()


@pytest.mark.requirement("C2")
def test_detached_card_touches_nothing(host: RawHost) -> None:
    host.initialize()
    message = host.message(words(Opcode.QUERY_ADAPTER << 16, 0, 0, 0), 272)
    host.ring(message)
    host.hca.detach()
    host.settle()
    assert bytes(host.slot(0)) == bytes(message.entry)
    other = LocalHost(1 << 20)
    other.plug(host.hca)
    assert host.hca.function.stage is Stage.DISABLED


@pytest.mark.requirement("F4")
def test_summary_counts_commands_failures_objects_and_teardowns(host: RawHost) -> None:
    host.initialize()
    host.command(0x4321)
    host.command(Opcode.DESTROY_EQ, words(0, 0, 99, 0))
    host.create_eq(0)
    summary = host.hca.summary()
    assert summary["failed_commands"] == {"0x4321": 1, "DESTROY_EQ": 1}
    assert summary["objects"] == {"UAR": 1, "EQ": 1}
    assert summary["pages_outstanding"] == 80
    assert summary["commands"] == 11
    host.good(Opcode.TEARDOWN_HCA)
    assert len(host.take(79)) == 79
    host.good(Opcode.DISABLE_HCA, room=12)
    host.hca.reset(Reset.COLD)
    assert host.hca.summary()["teardowns"] == [{"pages_outstanding": 1, "objects": 2}]
    assert host.hca.summary()["pages_outstanding"] == 0


@pytest.mark.requirement("C11", "F6")
def test_summary_counts_the_packets_of_the_cards_life(host: RawHost) -> None:
    hca = host.hca
    hca.port.traffic.sent.packets = 3
    hca.port.traffic.multicast_received.packets = 1
    hca.reset(Reset.FLR)
    hca.port.traffic.sent.packets = 4
    expected = {"sent": 7, "received": 0, "multicast_sent": 0, "multicast_received": 1}
    assert hca.summary()["packets"] == expected
    assert hca.summary()["lid"] == 1
