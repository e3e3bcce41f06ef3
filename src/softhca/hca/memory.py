"""Data in host memory behind keys: from segments of a WQE to views, and copies between them (A2, G4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from softhca.bus import DmaFault, Iova
from softhca.hca.mkey import NOWHERE, RESERVED_LKEY, KeyUser, KeyViolation, Right, find_key
from softhca.prm.syndromes.completion import VendorSyndrome

if TYPE_CHECKING:
    from softhca.hca.function import Function

Piece = bytes | memoryview
_BLOCK = 1 << 20
_LOCAL = Right.LOCAL_READ | Right.LOCAL_WRITE
_WRITES = Right.LOCAL_WRITE | Right.REMOTE_WRITE | Right.REMOTE_ATOMIC


@dataclass(frozen=True, slots=True)
class Pointer:
    """A data segment by pointer: `length` bytes at HCA virtual `address` of `key`."""

    key: int
    address: int
    length: int


def views_of(fn: Function, pointer: Pointer, right: Right, user: KeyUser) -> list[memoryview]:
    """Views of the memory behind a pointer, in order.

    Args:
        fn: whose keys and memory.
        pointer: what part.
        right: what is to be done there.
        user: on whose behalf.

    Raises:
        KeyViolation: the key does not allow it, or its pages are not mapped. Nothing has been touched.
    """
    if pointer.key == RESERVED_LKEY and user.reserved and right & _LOCAL:
        spans = [(pointer.address, pointer.length)]
    else:
        spans = find_key(fn, pointer.key).spans(pointer.address, pointer.length, right, user)
    write = bool(right & _WRITES)
    dma = fn.dma
    try:
        found: list[memoryview] = []
        for iova, length in spans:
            found += dma.views(Iova(iova), length, write=write) if iova != NOWHERE else _nothing(length, write=write)
    except DmaFault as fault:
        raise KeyViolation(VendorSyndrome.DMA_FAULT) from fault
    return found


def _nothing(length: int, *, write: bool) -> list[memoryview]:
    """Views of memory that is not there, zeros to read; what is written is seen by nobody."""
    block = memoryview(bytearray(min(length, _BLOCK)) if write else bytes(min(length, _BLOCK)))
    return [block[: min(_BLOCK, length - at)] for at in range(0, length, _BLOCK)]


def copy(targets: Sequence[memoryview], sources: Sequence[Piece]) -> None:
    """Copy all of `sources` to the start of `targets`, which hold at least as much."""
    into = iter(targets)
    room = memoryview(b"")
    for source in sources:
        left = memoryview(source)
        while left:
            while not room:
                room = next(into)
            step = min(len(left), len(room))
            room[:step] = left[:step]
            left, room = left[step:], room[step:]
