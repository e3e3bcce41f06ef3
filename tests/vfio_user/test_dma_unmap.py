from __future__ import annotations

import errno
import os

import pytest

from softhca.bus import DmaFault
from softhca.vfio_user.protocol import Command, DmaMap, DmaUnmap
from tests.vfio_user.client import Client
from tests.vfio_user.conftest import Rig, open_fds


@pytest.fixture
def mapped(rig: Rig, client: Client) -> Client:
    """A client with two files at 0x10000 and 0x12000 and a range without file at 0x20000, 0x2000 bytes each."""
    for iova in (0x10000, 0x12000):
        fd = os.memfd_create("guest")
        os.truncate(fd, 0x2000)
        client.map(iova, 0x2000, fd)
        os.close(fd)
    client.ok(Command.DMA_MAP, DmaMap(32, 1, 0, 0x20000, 0x2000).pack())
    client.write(7, 4, b"\x06\x00")
    return client


@pytest.mark.requirement("A10")
def test_unmapped_memory_faults_and_its_file_is_closed(rig: Rig, mapped: Client) -> None:
    before = open_fds()
    assert mapped.unmap(0x10000, 0x2000) == DmaUnmap(24, 0, 0x10000, 0x2000)
    assert len(before) - len(open_fds()) == 1
    with pytest.raises(DmaFault):
        rig.card.dma.view(0x10000, 4)
    assert rig.card.dma.view(0x12000, 4) == bytes(4)


@pytest.mark.parametrize(("iova", "size", "removed"), [(0x10000, 0x4000, 0x4000), (0x20000, 0x2000, 0x2000)])
def test_one_unmap_may_remove_several(mapped: Client, iova: int, size: int, removed: int) -> None:
    assert mapped.unmap(iova, size).size == removed


def test_a_range_over_everything(rig: Rig, mapped: Client) -> None:
    assert mapped.unmap(0, 2**63).size == 0x6000
    assert len(rig.card.dma) == 0


def test_unmap_all(rig: Rig, mapped: Client) -> None:
    reply = DmaUnmap.unpack(mapped.ok(Command.DMA_UNMAP, DmaUnmap(24, 2, 0, 0).pack()))
    assert reply.size == 0x6000
    assert len(rig.card.dma) == 0


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (DmaUnmap(24, 0, 0x11000, 0x1000), errno.EINVAL),
        (DmaUnmap(24, 0, 0x10000, 0x1000), errno.EINVAL),
        (DmaUnmap(24, 0, 0x0, 0x11000), errno.EINVAL),
        (DmaUnmap(24, 0, 0x21000, 0x1000), errno.EINVAL),
        (DmaUnmap(24, 0, 0x1F000, 0x2000), errno.EINVAL),
        (DmaUnmap(24, 0, 0x12000, 0xF000), errno.EINVAL),
        (DmaUnmap(24, 0, 0x30000, 0x1000), errno.ENOENT),
        (DmaUnmap(24, 0, 0x10000, 0), errno.EINVAL),
        (DmaUnmap(24, 0, 0x11000, 0), errno.EINVAL),
        (DmaUnmap(24, 0, 2**64 - 1, 2**64 - 1), errno.ENOENT),
        (DmaUnmap(24, 1, 0x10000, 0x2000), errno.EOPNOTSUPP),
        (DmaUnmap(24, 4, 0x10000, 0x2000), errno.EINVAL),
        (DmaUnmap(24, 2, 0x10000, 0x2000), errno.EINVAL),
    ],
)
def test_bad_unmaps_are_refused_and_remove_nothing(rig: Rig, mapped: Client, request_: DmaUnmap, error: int) -> None:
    assert mapped.refused(Command.DMA_UNMAP, request_.pack()) == error
    assert len(rig.card.dma) == 2
    assert mapped.unmap(0, 2**63).size == 0x6000


def test_a_short_body_is_refused(client: Client) -> None:
    assert client.refused(Command.DMA_UNMAP, bytes(23)) == errno.EINVAL


def test_a_descriptor_is_refused_and_closed(mapped: Client) -> None:
    with open("/dev/null") as null:
        request = DmaUnmap(24, 0, 0x10000, 0x2000).pack()
        assert mapped.refused(Command.DMA_UNMAP, request, [null.fileno()]) == errno.EINVAL


def test_memory_may_be_mapped_again_at_once(rig: Rig, mapped: Client) -> None:
    """As firmware does that remaps the first MiB: unmap and map in one burst."""
    fd = os.memfd_create("new")
    os.write(fd, b"new!".ljust(0x2000))
    mapped.send(Command.DMA_UNMAP, DmaUnmap(24, 0, 0x10000, 0x2000).pack())
    mapped.send(Command.DMA_MAP, DmaMap(32, 3, 0, 0x10000, 0x1000).pack(), [fd])
    mapped.send(Command.DMA_MAP, DmaMap(32, 1, 0x1000, 0x11000, 0x1000).pack(), [fd])
    os.close(fd)
    assert [mapped.receive().error for _ in range(3)] == [0, 0, 0]
    assert bytes(rig.card.dma.view(0x10000, 4)) == b"new!"
