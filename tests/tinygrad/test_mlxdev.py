"""A driver that none of us wrote: tinygrad's mlx5 userspace driver brings the card up and moves data."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
from tinygrad.helpers import to_be32, to_be64
from tinygrad.runtime.support.mlx.mlxdev import MLXQP, MLXDev

from softhca.bus import Engine, VirtualClock
from softhca.hca.device import Hca
from softhca.hca.profile import load_profile
from tests.tinygrad.stand_in import StandInPciDevice

RDMA_WRITE = 0x08
SEND = 0x0A
COMPLETION = 0x08
SIZE = 64 << 10


@pytest.fixture
def card() -> Hca:
    return Hca(Engine(VirtualClock()), load_profile("connectx-7-eth"))


@pytest.fixture
def mlx(card: Hca) -> Any:
    return MLXDev(StandInPciDevice(card), ip="10.0.0.1")


def connected(mlx: Any) -> tuple[Any, Any]:
    first, second = MLXQP(mlx), MLXQP(mlx)
    first.connect(second)
    second.connect(first)
    return first, second


def registered(mlx: Any, size: int) -> tuple[Any, int, int]:
    """Memory, the address that its key opens, and the key."""
    memory, pages = mlx.pci_dev.alloc_sysmem(size)
    return memory, pages[0], mlx.register_mem(pages, size)


def post(qp: Any, opcode: int, *segments: bytes) -> None:
    """Write a WQE, the doorbell record and the doorbell, as tinygrad's copy queue does."""
    head = qp.head
    first = (head << 8 | opcode) << 32 | qp.qp_info["qpn"] << 8 | 1 + len(segments)
    wqe = struct.pack(">QBBBB4x", first, 0, 0, 0, COMPLETION) + b"".join(segments)
    at = qp.sq_offset + (head & (1 << qp.log_sq_size) - 1) * 64
    qp.qp_buf[at : at + len(wqe)] = wqe
    qp.head += 1
    qp.dev.dbr[qp.qp_dbr // 4 + 1] = to_be32(qp.head)
    qp.dev.uar_view[0x800 // 8] = to_be64(first)


def completion(qp: Any, index: int) -> tuple[int, int]:
    """Opcode and byte count of a CQE that is there."""
    cqe = bytes(qp.cq_mem[index * 64 : index * 64 + 64])
    assert cqe[63] & 1 == index // qp.cq_size & 1, "the CQE is still the driver's"
    return cqe[63] >> 4, struct.unpack(">I", cqe[44:48])[0]


def test_mlxdev_comes_up(card: Hca, mlx: Any) -> None:
    assert mlx.caps["roce"] == 1
    assert mlx.caps["log_max_qp"] == 18
    assert mlx.mac
    assert card.summary()["failed_commands"] == {}


def test_memory_is_registered_and_unregistered(mlx: Any) -> None:
    _, _, first = registered(mlx, SIZE)
    _, _, second = registered(mlx, SIZE)
    assert first != second
    mlx.unregister_mem(first)
    mlx.unregister_mem(second)


def test_two_qps_reach_rts(card: Hca, mlx: Any) -> None:
    first, second = connected(mlx)
    assert first.qp_info["qpn"] != second.qp_info["qpn"]
    assert card.summary()["failed_commands"] == {}


@pytest.mark.requirement("A2", "G2")
@pytest.mark.parametrize("size", [1, 4095, SIZE])
def test_rdma_write_arrives_byte_for_byte(mlx: Any, size: int) -> None:
    first, _ = connected(mlx)
    source, source_address, lkey = registered(mlx, SIZE)
    target, target_address, rkey = registered(mlx, SIZE)
    data = random.Random(size).randbytes(size)
    source[:size] = data
    remote = struct.pack(">QI4x", target_address, rkey)
    local = struct.pack(">IIQ", size, lkey, source_address)
    post(first, RDMA_WRITE, remote, local)
    assert completion(first, 0)[0] == 0
    assert bytes(target[:size]) == data
    assert not any(target[size:SIZE])


def test_send_finds_the_posted_receive(mlx: Any) -> None:
    first, second = connected(mlx)
    source, source_address, lkey = registered(mlx, SIZE)
    target, target_address, rkey = registered(mlx, SIZE)
    data = random.Random(1).randbytes(5000)
    source[: len(data)] = data
    second.qp_buf[0:16] = struct.pack(">IIQ", SIZE, rkey, target_address)
    mlx.dbr[second.qp_dbr // 4] = to_be32(1)
    post(first, SEND, struct.pack(">IIQ", len(data), lkey, source_address))
    assert completion(first, 0)[0] == 0
    assert completion(second, 0) == (2, len(data))
    assert bytes(target[: len(data)]) == data
