"""DEVICE_GET_INFO, DEVICE_GET_REGION_INFO and DEVICE_GET_IRQ_INFO."""

from __future__ import annotations

import errno

import pytest

from softhca.vfio_user.protocol import Command, DeviceInfo, IrqInfo, RegionInfo
from tests.vfio_user.client import Client


def test_device_info(client: Client) -> None:
    body = client.ok(Command.DEVICE_GET_INFO, DeviceInfo(16, 0, 0, 0).pack())
    assert body == DeviceInfo(16, 3, 9, 5).pack()


@pytest.mark.parametrize("body", [b"", bytes(15), DeviceInfo(15, 0, 0, 0).pack()])
def test_bad_device_info(client: Client, body: bytes) -> None:
    assert client.refused(Command.DEVICE_GET_INFO, body) == errno.EINVAL


@pytest.mark.parametrize(
    ("index", "size"), [(0, 0x10000), (1, 0), (2, 0x1000), (3, 0), (4, 0), (5, 0), (6, 0), (7, 4096), (8, 0)]
)
def test_region_info(client: Client, index: int, size: int) -> None:
    body = client.ok(Command.DEVICE_GET_REGION_INFO, RegionInfo(32, 0, index, 0, 0, 0).pack())
    assert body == RegionInfo(32, 3 if size else 0, index, 0, size, 0).pack()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        bytes(31),
        RegionInfo(31, 0, 0, 0, 0, 0).pack(),
        RegionInfo(32, 0, 9, 0, 0, 0).pack(),
        RegionInfo(32, 0, 2**32 - 1, 0, 0, 0).pack(),
    ],
)
def test_bad_region_info(client: Client, body: bytes) -> None:
    assert client.refused(Command.DEVICE_GET_REGION_INFO, body) == errno.EINVAL


@pytest.mark.parametrize(("index", "flags", "count"), [(0, 0, 0), (1, 0, 0), (2, 1, 8), (3, 0, 0), (4, 0, 0)])
def test_irq_info(client: Client, index: int, flags: int, count: int) -> None:
    body = client.ok(Command.DEVICE_GET_IRQ_INFO, IrqInfo(16, 0, index, 0).pack())
    assert body == IrqInfo(16, flags, index, count).pack()


@pytest.mark.parametrize("body", [b"", bytes(15), IrqInfo(8, 0, 2, 0).pack(), IrqInfo(16, 0, 5, 0).pack()])
def test_bad_irq_info(client: Client, body: bytes) -> None:
    assert client.refused(Command.DEVICE_GET_IRQ_INFO, body) == errno.EINVAL
