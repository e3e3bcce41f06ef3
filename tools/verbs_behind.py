"""Runs in a guest: the memory of queues behind libmlx5's back, as a hostile program writes it.

pyverbs keeps the addresses of its objects to itself: they are looked for in the memory of the Python objects.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from typing import Any

_VERBS_QP = struct.Struct("=48xII")
"""struct ibv_qp: handle, qp_num."""
_HEAD = struct.Struct("=QQQ")
"""struct ibv_qp and ibv_srq: context, context of the user, protection domain."""
_OBJ_QP, _OBJ_SRQ = 1, 4
_SRQ_AT = 4
"""Word of struct mlx5dv_obj that has the SRQ."""
_RECEIVES, _SENDS = 0, 4
"""Bytes of a doorbell record."""


def _read(address: int, length: int) -> bytes:
    """Memory of this process; empty where there is none."""
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    try:
        return os.pread(memory, length, address)
    except OSError:
        return b""
    finally:
        os.close(memory)


def _pointers(item: Any) -> list[int]:
    """What may be pointers in the memory of a Python object."""
    raw = _read(id(item), sys.getsizeof(item) & ~7)
    return [word for (word,) in struct.iter_unpack("=Q", raw) if word >= 1 << 16 and not word & 7]


def _find_qp(queue: Any) -> int:
    for pointer in _pointers(queue):
        found = _read(pointer, _VERBS_QP.size)
        if len(found) == _VERBS_QP.size and _VERBS_QP.unpack(found)[1] == queue.qp_num:
            return pointer
    raise LookupError("struct ibv_qp of a QP")


def _find_srq(pool: Any, queue: int) -> int:
    """An SRQ is of the same context and protection domain as a queue pair that takes from it."""
    context, _, pd = _HEAD.unpack(_read(queue, _HEAD.size))
    for pointer in _pointers(pool):
        found = _read(pointer, _HEAD.size)
        if len(found) == _HEAD.size and _HEAD.unpack(found)[::2] == (context, pd):
            return pointer
    raise LookupError("struct ibv_srq of an SRQ")


def _of_provider(kind: int, at: int, pointer: int) -> list[int]:
    """The first words of what mlx5dv_init_obj says of an object."""
    answer = (ctypes.c_uint64 * 32)()
    objects = (ctypes.c_uint64 * 32)()
    objects[at], objects[at + 1] = pointer, ctypes.addressof(answer)
    if ctypes.CDLL("libmlx5.so.1").mlx5dv_init_obj(objects, ctypes.c_uint64(kind)):
        raise OSError("mlx5dv_init_obj")
    return list(answer)


def post(queue: Any, wqe: bytes, count: int) -> None:
    """Write a WQE to the start of a send queue that has posted nothing, let it count `count` blocks, and ring."""
    record, buffer, _, _, _, register = _of_provider(_OBJ_QP, 0, _find_qp(queue))[:6]
    ctypes.memmove(buffer, wqe.ljust(64, b"\0"), 64)
    ctypes.memmove(record + _SENDS, struct.pack(">I", count), 4)
    ctypes.c_uint64.from_address(register).value = int.from_bytes(wqe[:8], sys.byteorder)


def count_receives(queue: Any, pool: Any, count: int) -> None:
    """Let the doorbell record of a pool, or else of a queue pair's receive queue, say a number."""
    pointer = _find_qp(queue)
    if pool is not None:
        record = _of_provider(_OBJ_SRQ, _SRQ_AT, _find_srq(pool, pointer))[1]
    else:
        record = _of_provider(_OBJ_QP, 0, pointer)[0]
    ctypes.memmove(record + _RECEIVES, struct.pack(">I", count), 4)
