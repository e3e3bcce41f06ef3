from __future__ import annotations

import errno
import os
from collections.abc import Iterator

import pytest

from softhca.bus import DmaFault, DmaSpace
from softhca.vfio_user.protocol import MAX_DMA_MAPS, Command, DmaMap
from tests.vfio_user.client import Client
from tests.vfio_user.conftest import Rig, open_fds

MIB = 1 << 20


@pytest.fixture
def memory() -> Iterator[int]:
    fd = os.memfd_create("guest")
    os.truncate(fd, MIB)
    yield fd
    os.close(fd)


def dma_of(rig: Rig) -> DmaSpace:
    rig.card.config_write(4, b"\x06\x00")
    return rig.card.dma


def refused(client: Client, request: DmaMap, fds: list[int] | None) -> int:
    return client.refused(Command.DMA_MAP, request.pack(), fds)


@pytest.mark.requirement("A9")
def test_the_device_sees_the_clients_memory(rig: Rig, client: Client, memory: int) -> None:
    client.map(0x10_0000, 0x8000, memory, offset=0x4000)
    os.pwrite(memory, b"from the guest", 0x4100)
    dma = dma_of(rig)
    assert bytes(dma.view(0x10_0100, 14)) == b"from the guest"
    dma.view(0x10_0200, 4, write=True)[:] = b"back"
    assert os.pread(memory, 4, 0x4200) == b"back"
    with pytest.raises(DmaFault):
        dma.view(0x10_7FFF, 2)


def test_a_read_only_mapping_is_not_written(rig: Rig, client: Client, memory: int) -> None:
    client.map(0x1000, 0x1000, memory, flags=1)
    dma = dma_of(rig)
    assert dma.view(0x1000, 4).readonly
    with pytest.raises(DmaFault, match="read-only"):
        dma.view(0x1000, 4, write=True)


def test_memory_without_file_is_accepted_and_faults(rig: Rig, client: Client) -> None:
    assert client.ok(Command.DMA_MAP, DmaMap(32, 1, 0, 0xC0000, 0x1000).pack()) == b""
    with pytest.raises(DmaFault):
        dma_of(rig).view(0xC0000, 4)


def test_a_burst_of_maps_gets_each_its_own_file(rig: Rig, client: Client) -> None:
    """As QEMU does at boot: it does not wait for the replies, and some maps have no file."""
    for number in range(18):
        request = DmaMap(32, 3, 0, number << 20, 0x1000)
        fds = []
        if number % 4 != 3:
            fds = [os.memfd_create(f"m{number}")]
            os.pwrite(fds[0], number.to_bytes(4, "little").ljust(0x1000, b"\0"), 0)
        client.send_raw(client.message(Command.DMA_MAP, request.pack()), fds)
        for fd in fds:
            os.close(fd)
    assert [client.receive().error for _ in range(18)] == [0] * 18
    dma = dma_of(rig)
    for number in range(18):
        if number % 4 != 3:
            assert bytes(dma.view(number << 20, 4)) == number.to_bytes(4, "little")


@pytest.mark.parametrize(
    "request_",
    [
        DmaMap(32, 3, 0, 0x1000, 0),
        DmaMap(32, 3, 0, 0x1000, MIB + 1),
        DmaMap(32, 3, 0x1000, 0x1000, MIB),
        DmaMap(32, 3, 2**64 - 0x1000, 0x1000, 0x1000),
        DmaMap(32, 3, 0x123, 0x1000, 0x1000),
        DmaMap(32, 3, 0, 2**64 - 0x1000, 0x2000),
        DmaMap(32, 3, 0, 0x1000, 2**64 - 1),
        DmaMap(32, 0, 0, 0x1000, 0x1000),
        DmaMap(32, 7, 0, 0x1000, 0x1000),
    ],
)
def test_bad_maps_are_refused(rig: Rig, client: Client, memory: int, request_: DmaMap) -> None:
    assert refused(client, request_, [memory]) == errno.EINVAL
    assert len(dma_of(rig)) == 0
    client.map(0x1000, 0x1000, memory)


def test_a_short_body_is_refused(client: Client, memory: int) -> None:
    assert client.refused(Command.DMA_MAP, bytes(31), [memory]) == errno.EINVAL


def test_one_file_at_most(client: Client, memory: int) -> None:
    assert refused(client, DmaMap(32, 3, 0, 0x1000, 0x1000), [memory, memory]) == errno.EINVAL


def test_only_regular_files_are_memory(client: Client) -> None:
    with open("/dev/zero", "r+b", buffering=0) as file:
        assert refused(client, DmaMap(32, 3, 0, 0x1000, 0x1000), [file.fileno()]) == errno.EINVAL


def test_a_file_open_for_reading_is_not_mapped_for_writing(client: Client) -> None:
    with open(__file__, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        assert refused(client, DmaMap(32, 3, 0, 0x1000, size), [file.fileno()]) == errno.EACCES
        client.map(0x1000, size, file.fileno(), flags=1)


@pytest.mark.parametrize("iova", [0x10000, 0xF000, 0x11FFF, 0x10800])
@pytest.mark.parametrize("first_has_file", [True, False])
@pytest.mark.parametrize("second_has_file", [True, False])
def test_overlaps_are_refused(
    client: Client, memory: int, iova: int, first_has_file: bool, second_has_file: bool
) -> None:
    client.ok(Command.DMA_MAP, DmaMap(32, 3, 0, 0x10000, 0x2000).pack(), [memory] if first_has_file else None)
    second = DmaMap(32, 3, 0, iova, 0x1001)
    assert refused(client, second, [memory] if second_has_file else None) == errno.EEXIST


def test_the_number_of_maps_is_bounded(client: Client) -> None:
    for number in range(MAX_DMA_MAPS):
        client.ok(Command.DMA_MAP, DmaMap(32, 1, 0, number << 12, 0x1000).pack())
    assert refused(client, DmaMap(32, 1, 0, 1 << 40, 0x1000), None) == errno.ENOSPC


def test_mappings_and_descriptors_go_with_the_client(rig: Rig, memory: int) -> None:
    before = open_fds()
    client = rig.client()
    for number in range(8):
        client.map(number << 20, 0x1000, memory)
    assert len(open_fds()) > len(before)
    client.close()
    assert open_fds() == before


def test_a_file_that_is_cut_while_it_is_mapped_is_refused(
    rig: Rig, client: Client, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = os.fstat(memory)
    os.truncate(memory, 4096)
    monkeypatch.setattr("softhca.vfio_user.memory.os.fstat", lambda fd: seen)
    assert refused(client, DmaMap(32, 3, 0, 0x1000, MIB), [memory]) == errno.EINVAL
    client.map(0x1000, 4096, memory)
