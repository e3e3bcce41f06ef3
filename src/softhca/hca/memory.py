"""Data in host memory behind keys: from segments of a WQE to views, and copies between them (A2, G4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from softhca.bus import DmaFault, Iova
from softhca.hca.mkey import NOWHERE, RESERVED_LKEY, KeyUser, KeyViolation, Right, find_key
from softhca.prm.syndromes.completion import VendorSyndrome

if TYPE_CHECKING:
    from softhca.bus import DmaSpace
    from softhca.hca.function import Function
    from softhca.hca.translation import Span

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
    try:
        return _views(fn.dma, spans, write=bool(right & _WRITES))
    except DmaFault as fault:
        raise KeyViolation(VendorSyndrome.DMA_FAULT) from fault


def _views(dma: DmaSpace, spans: list[Span], *, write: bool) -> list[memoryview]:
    """Views of spans; most are in the same mapping as the one before."""
    found: list[memoryview] = []
    start = end = 0
    memory = memoryview(b"")
    for iova, length in spans:
        if start <= iova and 0 < length <= end - iova:
            found.append(memory[iova - start : iova - start + length])
        elif iova == NOWHERE:
            found += _nothing(length, write=write)
        elif length:
            mapping = dma.mapping(iova, 1, write=write)
            start, end, memory = mapping.start, mapping.end, mapping.memory
            found += dma.views(Iova(iova), length, write=write)
    return found


def _nothing(length: int, *, write: bool) -> list[memoryview]:
    """Views of memory that is not there, zeros to read; what is written is seen by nobody."""
    block = memoryview(bytearray(min(length, _BLOCK)) if write else bytes(min(length, _BLOCK)))
    return [block[: min(_BLOCK, length - at)] for at in range(0, length, _BLOCK)]


def copy(targets: Sequence[memoryview], sources: Sequence[Piece]) -> None:
    """Copy all of `sources` to the start of `targets`, which hold at least as much."""
    into = iter(targets)
    room, at, free = memoryview(b""), 0, 0
    for source in sources:
        length = len(source)
        done = 0
        while done < length:
            while not free:
                room = next(into)
                at, free = 0, len(room)
            step = min(length - done, free)
            room[at : at + step] = source if step == length else source[done : done + step]
            at += step
            free -= step
            done += step
