from __future__ import annotations

import pytest

from softhca.bus import Engine, Reset, VirtualClock
from softhca.bus.config_space import Capability, Identity
from softhca.bus.dma import DmaFault
from softhca.bus.local import LocalHost
from softhca.bus.pci_function import PciFunction
from softhca.bus.protocol import Device


class Vendor(Capability):
    id = 0x09

    def __init__(self) -> None:
        super().__init__(b"\x10\x00ab", b"\x00\x00\xff\xff")


class Nic(PciFunction):
    def __init__(self) -> None:
        self.resets: list[tuple[Reset, bool]] = []
        super().__init__(
            Engine(VirtualClock()),
            Identity(0x15B3, 0x1017, 0x020700),
            {0: 1 << 16},
            vectors=4,
            msix_table=0x2000,
            msix_pending=0x3000,
            capabilities=[Vendor()],
        )

    def on_reset(self, kind: Reset) -> None:
        self.resets.append((kind, self.config.bus_master))

    def bar_read(self, bar: int, offset: int, size: int) -> bytes:
        return bytes(size)

    def bar_write(self, bar: int, offset: int, data: bytes | memoryview) -> None:
        self.dma.view(int.from_bytes(data, "little"), 4, write=True)[:] = b"done"


def flr_offset(nic: Nic) -> int:
    at = nic.config_read(0x34, 1)[0]
    while nic.config_read(at, 1) != b"\x10":
        at = nic.config_read(at + 1, 1)[0]
    return at + 8


def plugged() -> tuple[LocalHost, Nic]:
    host, nic = LocalHost(1 << 20), Nic()
    host.plug(nic)
    return host, nic


def test_it_is_a_device() -> None:
    device: Device = Nic()
    assert (device.bars, device.vectors) == ({0: 1 << 16}, 4)
    assert device.config_read(0, 4) == bytes.fromhex("b3151710")


@pytest.mark.requirement("C2")
def test_without_bus_master_no_dma_and_no_interrupt() -> None:
    host, nic = plugged()
    iova, view = host.allocate(16)
    heard: list[int] = []
    host.on_interrupt(0, lambda: heard.append(0))
    with pytest.raises(DmaFault):
        nic.bar_write(0, 0, iova.to_bytes(8, "little"))
    nic.interrupt(0)
    assert (bytes(view[:4]), heard) == (bytes(4), [])

    nic.config_write(4, b"\x06\x00")
    nic.bar_write(0, 0, iova.to_bytes(8, "little"))
    nic.interrupt(0)
    assert (bytes(view[:4]), heard) == (b"done", [0])

    nic.config_write(4, b"\x02\x00")
    with pytest.raises(DmaFault):
        nic.bar_write(0, 0, iova.to_bytes(8, "little"))


def test_attach_is_a_cold_start_and_happens_once() -> None:
    host, nic = plugged()
    assert nic.resets == [(Reset.COLD, False)]
    with pytest.raises(RuntimeError, match="detach it first"):
        nic.attach(host)
    nic.detach()
    nic.attach(LocalHost(1 << 20))


def test_detached_it_reaches_nothing() -> None:
    host, nic = plugged()
    iova, _ = host.allocate(16)
    nic.config_write(4, b"\x06\x00")
    nic.detach()
    nic.config_write(4, b"\x06\x00")
    with pytest.raises(DmaFault):
        nic.bar_write(0, 0, iova.to_bytes(8, "little"))
    nic.interrupt(0)
    assert nic.resets[-1] == (Reset.COLD, False)


def test_flr_closes_the_gate_before_the_device_resets() -> None:
    _, nic = plugged()
    nic.config_write(4, b"\x06\x00")
    nic.config_write(0x10, (0xFE00_0000).to_bytes(8, "little"))
    nic.config_write(flr_offset(nic), b"\x30\xa9")
    assert nic.resets[-1] == (Reset.FLR, False)
    assert len(nic.dma) == 0
    assert nic.config_read(0x10, 4) == (0xFE00_000C).to_bytes(4, "little")


def test_cold_reset_forgets_the_bars() -> None:
    _, nic = plugged()
    nic.config_write(0x10, (0xFE00_0000).to_bytes(8, "little"))
    nic.reset(Reset.COLD)
    assert nic.config_read(0x10, 4) == b"\x0c\0\0\0"


def test_more_capabilities_come_last() -> None:
    nic = Nic()
    at, kinds = nic.config_read(0x34, 1)[0], list[int]()
    while at:
        kinds.append(nic.config_read(at, 1)[0])
        last, at = at, nic.config_read(at + 1, 1)[0]
    assert kinds == [0x01, 0x10, 0x11, 0x09]
    nic.config_write(last, b"\xff" * 6)
    assert nic.config_read(last, 6) == b"\x09\x00\x10\x00\xff\xff"


def test_a_function_has_to_say_how_it_resets() -> None:
    class Bare(PciFunction):
        pass

    bare = Bare(Engine(), Identity(1, 2, 3), {0: 4096}, vectors=1, msix_table=0, msix_pending=0x800)
    with pytest.raises(NotImplementedError):
        bare.reset(Reset.COLD)
