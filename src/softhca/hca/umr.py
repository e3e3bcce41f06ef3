"""User-mode memory registration: WQEs that change memory keys, and invalidation (G4, G5, B11).

A UMR WQE names a key by its index, brings a new context of which mkey_mask selects the fields, and may load
translation entries, from the WQE itself or from memory. All is checked before anything changes. Memory windows are
bound by such a WQE, which loads one entry that refers to the region; local invalidation is one that sets the free
state alone.
"""

from __future__ import annotations

import sys
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

from softhca.hca.errors import KeyViolation, PageFault
from softhca.hca.memory import Pointer, views_of
from softhca.hca.mkey import (
    ADDRESS_END,
    MAX_LOG_PAGE,
    MAX_PIECES,
    MIN_LOG_PAGE,
    KeyUser,
    MKey,
    Right,
    find_key,
)
from softhca.hca.rc import RequestFailed
from softhca.hca.translation import KeyTable, PageTable, klm_entries
from softhca.prm.codec import codec
from softhca.prm.cqe import CqeSyndrome
from softhca.prm.mkey import ANY_QP, AccessMode, Mkc, MkeyMask
from softhca.prm.qp import ServiceType
from softhca.prm.syndromes.completion import VendorSyndrome
from softhca.prm.wqe import SEGMENT, UmrFlag, WqeDataSeg, WqeUmrCtrlSeg

if TYPE_CHECKING:
    from softhca.hca.function import Function
    from softhca.hca.qp_context import Qp

_CONTROL = codec(WqeUmrCtrlSeg, 0x00, 0x04, "mkey_mask", 0x10)
_DATA = codec(WqeDataSeg, 0x00, "lkey", "addr")
_HEAD = WqeUmrCtrlSeg.SIZE + Mkc.SIZE
_OCTWORD = 16
_MTTS_PER_OCTWORD = 2
_FIELDS = {
    MkeyMask.START_ADDR: ("start_addr",),
    MkeyMask.LEN: ("len", "length64"),
    MkeyMask.PAGE_SIZE: ("log_page_size",),
    MkeyMask.PD: ("pd",),
    MkeyMask.EN_RINVAL: ("en_rinval",),
    MkeyMask.KEY: ("mkey_7_0",),
    MkeyMask.QPN: ("qpn",),
    MkeyMask.LR: ("lr",),
    MkeyMask.LW: ("lw",),
    MkeyMask.RR: ("rr",),
    MkeyMask.RW: ("rw",),
    MkeyMask.A: ("a",),
    MkeyMask.SMALL_FENCE: ("small_fence_on_rdma_read_response",),
    MkeyMask.RELAXED_ORDERING_WRITE: ("relaxed_ordering_write",),
    MkeyMask.RELAXED_ORDERING_READ: ("relaxed_ordering_read",),
    MkeyMask.FREE: ("free",),
}
_MASK = sum(_FIELDS)
_OWN = MkeyMask.FREE | MkeyMask.KEY | MkeyMask.QPN
"""What a QP without fre may change of a key to pages: nothing that decides what memory it opens."""
_FLAGS = sum(UmrFlag)


@dataclass(frozen=True, slots=True)
class UmrWqe:
    """A UMR WQE.

    Attributes:
        key: the key that it names, key byte included.
        flags: of the control segment.
        mask: fields of the context that it sets.
        context: the new context.
        first: octwords before the list.
        raw: the list; empty: the translation stays.
    """

    key: int
    flags: int
    mask: int
    context: Mkc
    first: int
    raw: bytes

    @property
    def frees(self) -> bool:
        """Whether the key is free afterwards."""
        return bool(self.mask & MkeyMask.FREE and self.context.free)


def _malformed(vendor: VendorSyndrome) -> RequestFailed:
    return RequestFailed(CqeSyndrome.LOCAL_QP_OP_ERR, vendor)


def _refused(vendor: VendorSyndrome) -> RequestFailed:
    """The standard's memory management (bind) error."""
    return RequestFailed(CqeSyndrome.MW_BIND_ERR, vendor)


def carry_out(fn: Function, qp: Qp, key: int, body: bytes) -> int:
    """Carry out a UMR WQE.

    Args:
        fn: the QP's function.
        qp: the requester.
        key: last word of the control segment: the key to change.
        body: the WQE after its control segment.

    Returns:
        Bytes moved: none.

    Raises:
        RequestFailed: it ends in error; the key is as it was.
    """
    wqe = _parse(fn, qp, key, body)
    target = fn.mkeys.find(key >> 8)
    if target is None:
        raise _refused(VendorSyndrome.NO_SUCH_KEY)
    _check_authority(qp, target, wqe)
    _check_state(qp, target, wqe)
    entries = _entries(fn, target, wqe)
    context = _merged(fn, target, wqe)
    if not qp.context.fre and isinstance(target.table, KeyTable) and not context.free and entries:
        _check_bind(fn, qp, context, wqe.raw)
    _apply(fn, target, wqe, entries, context)
    return 0


def _parse(fn: Function, qp: Qp, key: int, body: bytes) -> UmrWqe:
    if len(body) < _HEAD:
        raise _malformed(VendorSyndrome.WQE_SHORT)
    flags, sizes, mask, offset_high = _CONTROL.unpack_from(body)
    flags >>= 24
    if flags & ~_FLAGS or mask & ~_MASK:
        raise _malformed(VendorSyndrome.UMR_MASK)
    octwords, first = sizes >> 16, 0
    if flags & UmrFlag.TRANSLATION_OFFSET_EN:
        first = sizes & 0xFFFF
        if fn.caps.general.umr_extended_translation_offset:
            first |= offset_high << 16
    length = octwords * _OCTWORD
    if not length:
        raw = b""
    elif flags & UmrFlag.INLINE:
        raw = body[_HEAD : _HEAD + length]
        if len(raw) < length:
            raise _malformed(VendorSyndrome.WQE_SHORT)
    else:
        raw = _fetch(fn, qp, body, length)
    return UmrWqe(key, flags, mask, Mkc(bytearray(body[WqeUmrCtrlSeg.SIZE : _HEAD])), first, raw)


def _fetch(fn: Function, qp: Qp, body: bytes, length: int) -> bytes:
    """The list by pointer."""
    if len(body) < _HEAD + SEGMENT:
        raise _malformed(VendorSyndrome.WQE_SHORT)
    count, lkey, address = _DATA.unpack_from(body, _HEAD)
    if count < length:
        raise _malformed(VendorSyndrome.WQE_SHORT)
    user = qp.key_user
    try:
        if qp.service is ServiceType.REG_UMR:  # such a QP has no PD of its own
            user = KeyUser(find_key(fn, lkey).pd, qp.number, user.reserved)
        return b"".join(views_of(fn, Pointer(lkey, address, length), Right.LOCAL_READ, user))
    except KeyViolation as violation:
        raise RequestFailed(CqeSyndrome.LOCAL_PROT_ERR, violation.vendor) from violation


def _check_authority(qp: Qp, target: MKey, wqe: UmrWqe) -> None:
    """Who may do this: pages by address and PDs are the kernel's business."""
    if not target.umr_enabled:
        raise _refused(VendorSyndrome.UMR_NOT_ENABLED)
    if qp.service is not ServiceType.REG_UMR and target.pd != qp.pd:
        raise _refused(VendorSyndrome.KEY_PD)
    if qp.context.fre:
        return
    if isinstance(target.table, PageTable) and (wqe.raw or wqe.mask & ~_OWN):
        raise _refused(VendorSyndrome.UMR_PRIVILEGE)
    if wqe.mask & MkeyMask.PD:
        raise _refused(VendorSyndrome.UMR_PRIVILEGE)


def _check_state(qp: Qp, target: MKey, wqe: UmrWqe) -> None:
    if wqe.flags & UmrFlag.CHECK_NOT_FREE and not target.free:
        raise _refused(VendorSyndrome.UMR_KEY_IN_USE)
    if wqe.flags & UmrFlag.CHECK_FREE and target.free:
        raise _refused(VendorSyndrome.UMR_KEY_FREE)
    if wqe.flags & UmrFlag.CHECK_QPN and target.qpn != qp.number:
        raise _refused(VendorSyndrome.UMR_KEY_QP)
    if not target.free and target.key != wqe.key & 0xFF and (wqe.frees or not wqe.mask & MkeyMask.KEY):
        raise _refused(VendorSyndrome.UMR_KEY_BYTE)


def _entries(fn: Function, target: MKey, wqe: UmrWqe) -> array[int] | bytes:
    """The list, decoded and checked for its room."""
    if not wqe.raw:
        return b""
    if target.mode is AccessMode.PA:
        raise _malformed(VendorSyndrome.UMR_LIST)
    if isinstance(target.table, KeyTable):
        if wqe.first + len(wqe.raw) // _OCTWORD > _room(target.capacity, 4):
            raise _malformed(VendorSyndrome.UMR_LIST)
        return wqe.raw
    if wqe.first * _MTTS_PER_OCTWORD + len(wqe.raw) // 8 > _room(target.capacity, 8):
        raise _malformed(VendorSyndrome.UMR_LIST)
    pages = array("Q")
    pages.frombytes(wqe.raw)
    if sys.byteorder == "little":
        pages.byteswap()
    return pages


def _room(capacity: int, step: int) -> int:
    """Entries that fit: lists come in units of 64 bytes, and so is the room."""
    return -(-capacity // step) * step


def _merged(fn: Function, target: MKey, wqe: UmrWqe) -> Mkc:
    """The key's context with what the WQE sets."""
    context = Mkc(bytearray(target.context()))
    for bit, names in _FIELDS.items():
        if wqe.mask & bit:
            for name in names:
                setattr(context, name, getattr(wqe.context, name))
    caps = fn.caps.general
    if wqe.mask & MkeyMask.PAGE_SIZE and caps.umr_modify_entity_size_disabled:
        raise _malformed(VendorSyndrome.UMR_MASK)
    if wqe.mask & MkeyMask.A and caps.umr_modify_atomic_disabled:
        raise _malformed(VendorSyndrome.UMR_MASK)
    if context.free:
        return context
    paged = target.mode in (AccessMode.MTT, AccessMode.KSM)
    if paged and not MIN_LOG_PAGE <= context.log_page_size <= MAX_LOG_PAGE:
        raise _malformed(VendorSyndrome.UMR_VALUE)
    if not context.length64 and context.len > ADDRESS_END - context.start_addr:
        raise _malformed(VendorSyndrome.UMR_VALUE)
    if fn.pds.find(context.pd) is None:
        raise _malformed(VendorSyndrome.UMR_VALUE)
    if context.qpn not in (ANY_QP, target.qpn) and fn.qps.find(context.qpn) is None:
        raise _refused(VendorSyndrome.UMR_KEY_QP)
    return context


def _check_bind(fn: Function, qp: Qp, context: Mkc, raw: bytes) -> None:
    """What a window gives away is the QP's own to give: keys of its PD, in range, writable when the window is.

    A page that is not there does not matter: whoever uses the window faults at it.
    """
    rights = [Right.LOCAL_READ, *([Right.LOCAL_WRITE] if context.lw or context.rw or context.a else [])]
    left = len(rights) * MAX_PIECES
    for length, key, address in klm_entries(raw):
        if not (length or key):
            continue
        try:
            for right in rights:
                left -= len(find_key(fn, key).spans(address, length, right, qp.key_user, 1))
        except PageFault:
            left -= 1
        except KeyViolation as violation:
            raise _refused(VendorSyndrome.BIND_TARGET) from violation
        if left < 0:
            raise _refused(VendorSyndrome.KEY_TOO_SCATTERED)


def _apply(fn: Function, target: MKey, wqe: UmrWqe, entries: array[int] | bytes, context: Mkc) -> None:
    if context.pd != target.pd:
        pd = fn.pds.find(context.pd)
        target.release()
        if pd is not None:
            target.refer(pd)
    keep = bool(wqe.flags & UmrFlag.TRANSLATION_OFFSET_EN)
    if isinstance(target.table, PageTable) and isinstance(entries, array):
        target.table.load(wqe.first * _MTTS_PER_OCTWORD, entries, keep=keep)
    elif isinstance(target.table, KeyTable) and isinstance(entries, bytes) and entries:
        target.table.load(wqe.first, entries, keep=keep)
    target.change(context)
