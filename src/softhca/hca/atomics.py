"""What atomics do with the 8 bytes at the responder (G5). Pure arithmetic; the checks are those of any request."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from softhca.prm.codec import codec
from softhca.prm.transport_cap import AtomicOperation
from softhca.prm.wqe import WqeAtomicSeg, WqeMaskedAtomicSeg, WqeOpcode

SIZE = 8
"""Bytes of the operand."""
_ALL = (1 << 64) - 1
_PLAIN = codec(WqeAtomicSeg, "swap_add", "compare")
_MASKED = codec(WqeMaskedAtomicSeg, "swap_add", "compare", "swap_add_mask", "compare_mask")


def compare_swap(old: int, swap: int, compare: int) -> int:
    """`swap` if the memory holds `compare`."""
    return swap if old == compare else old


def fetch_add(old: int, add: int, _unused: int) -> int:
    """The sum, modulo 2^64."""
    return (old + add) & _ALL


def masked_compare_swap(old: int, swap: int, compare: int, swap_mask: int, compare_mask: int) -> int:
    """The bits of `swap_mask` from `swap`, if the bits of `compare_mask` are as in `compare`."""
    return old if (old ^ compare) & compare_mask else old & ~swap_mask & _ALL | swap & swap_mask


def masked_fetch_add(old: int, add: int, boundary: int) -> int:
    """The sum of several fields: no carry leaves a bit that is set in `boundary`, the highest of its field."""
    inner = _ALL & ~boundary
    return ((old & inner) + (add & inner) & _ALL) ^ (old ^ add) & boundary


OPERATIONS: dict[int, tuple[AtomicOperation, Struct, Callable[..., int]]] = {
    WqeOpcode.ATOMIC_CS: (AtomicOperation.CMP_SWAP, _PLAIN, compare_swap),
    WqeOpcode.ATOMIC_FA: (AtomicOperation.FETCH_ADD, _PLAIN, fetch_add),
    WqeOpcode.ATOMIC_MASKED_CS: (AtomicOperation.EXTENDED_CMP_SWAP, _MASKED, masked_compare_swap),
    WqeOpcode.ATOMIC_MASKED_FA: (AtomicOperation.EXTENDED_FETCH_ADD, _PLAIN, masked_fetch_add),
}
"""By opcode: the bit of atomic_operations that it needs, the layout of its segment, and what it does."""
