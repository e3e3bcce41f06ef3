"""Memory keys: what part of host memory a key opens, for whom, and for what (B11, G4)."""

from __future__ import annotations

import sys
from array import array
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from softhca.hca.command import command
from softhca.hca.errors import CommandError, PageFault
from softhca.hca.errors import KeyViolation as KeyViolation
from softhca.hca.objects import HcaObject
from softhca.hca.translation import CHANGES, MTT_FLAGS, KeyTable, PageTable, Runs, Span
from softhca.hca.wq import MTT_BYTES, PAS_OFFSET, page_list
from softhca.prm.mkey import (
    ANY_QP,
    AccessMode,
    CreateMkeyIn,
    CreateMkeyOut,
    DestroyMkeyIn,
    DestroyMkeyOut,
    Mkc,
    QueryMkeyIn,
    QueryMkeyOut,
)
from softhca.prm.opcodes import Opcode
from softhca.prm.syndromes import objects as syndromes
from softhca.prm.syndromes.completion import VendorSyndrome

if TYPE_CHECKING:
    from softhca.hca.function import Function

ADDRESS_END = 1 << 64
RESERVED_LKEY = 0x0000_0200
"""The reserved lkey: DMA addresses themselves, for QPs whose context has rlky set, and locally alone."""
NULL_MKEY = 0x0000_0300
"""The null mkey: reads give zeros and writes go nowhere; locally, and as an entry of an indirect key.

As an entry of a KSM, a device with on-demand paging faults at it: it stands for a part of an implicit region that is
not there.
"""
DUMP_FILL_MKEY = 0x0000_0400
"""The dump-fill mkey: the same, for memory that an application does not want to name."""
NOWHERE = -1
"""In place of an IOVA: there is no memory there; reads give zeros and writes are dropped."""
MIN_LOG_PAGE, MAX_LOG_PAGE = 12, 31
MAX_PIECES = 1 << 14
"""Ranges that one message, or one access to an indirect key with all its levels, may fall into at each end."""
_MAX_KSM_ENTRIES = 1 << 22
_OCTWORD = 16


class Right(IntEnum):
    """What a key allows: a bit each (no flag type: the data path tests them for each segment)."""

    LOCAL_READ = 1
    LOCAL_WRITE = 2
    REMOTE_READ = 4
    REMOTE_WRITE = 8
    REMOTE_ATOMIC = 16


@dataclass(frozen=True, slots=True)
class KeyUser:
    """On whose behalf a key is used.

    Attributes:
        pd: number of the QP's (or receive pool's) protection domain.
        qpn: number of the QP.
        reserved: the reserved lkey may be used.
    """

    pd: int
    qpn: int
    reserved: bool = False


class MKey(HcaObject):
    """A memory key: the bus's own addresses, or pages.

    Args:
        context: the MKey context.
        pages: the translation entries that the range needs.
        room: bytes that it takes in ICM.
        capacity: translation entries that UMR may load.
        marked: the entries tell which pages are there and may be written; else all are.

    Attributes:
        key: the variable byte, low byte of lkey and rkey.
        pd: number of its protection domain.
        qpn: number of the QP that it is bound to, or :data:`ANY_QP`.
        free: nothing is translated.
        rights: what it allows, bits of :class:`Right`.
    """

    KIND = "MKey"

    def __init__(self, context: Mkc, pages: array[int], room: int, capacity: int = 0, *, marked: bool = False) -> None:
        super().__init__()
        self._room = room
        self.capacity = capacity
        self.table: PageTable | KeyTable = PageTable(pages, context.log_page_size, marked=marked)
        self.change(context)

    def change(self, context: Mkc) -> None:
        """Take over a context: the translation stays, its page size follows."""
        CHANGES.count += 1
        self._context = bytes(context)
        self._start = context.start_addr
        self._length = ADDRESS_END - self._start if context.length64 else context.len
        self.rights = context.lr | context.lw << 1 | context.rr << 2 | context.rw << 3 | context.a << 4
        self._physical = context.access_mode_1_0 == AccessMode.PA
        self.qpn = context.qpn
        self.key = context.mkey_7_0
        self.pd = context.pd
        self.free = bool(context.free)
        self.umr_enabled = bool(context.umr_en)
        self.invalidatable = bool(context.en_rinval)
        if not self._physical:
            self.table.resize(context.log_page_size)
        self._shift = 0 if self._physical else self._start & ((1 << context.log_page_size) - 1)

    @property
    def mode(self) -> AccessMode:
        """How addresses are translated."""
        return mode_of(Mkc(bytearray(self._context)))

    def icm_bytes(self) -> int:
        """Room of the context and its translation entries (bytes)."""
        return self._room

    def end(self) -> None:
        """It opens nothing any more."""
        CHANGES.count += 1

    def invalidate(self) -> None:
        """Put the key into the free state."""
        mkc = Mkc(bytearray(self._context))
        mkc.free = 1
        self.change(mkc)

    def spans(self, address: int, length: int, right: Right, user: KeyUser, depth: int = 0) -> list[Span]:
        """Where `length` bytes at HCA virtual `address` are, in order.

        Args:
            address: HCA virtual address, 64 bits.
            length: bytes.
            right: what is to be done there.
            user: on whose behalf.
            depth: keys that refer to this one, one over the other.

        Raises:
            KeyViolation: the key does not allow it.
        """
        offset = self._offset(address, length, right, user)
        if self._physical:
            return [(address, length)]
        assert isinstance(self.table, PageTable)
        return self.table.translate(offset + self._shift, length, write=right not in _READS)

    def opened(self, right: int, user: KeyUser) -> tuple[int, int, int, Runs] | None:
        """What the key opens for a user, when that is memory in runs: start, length, offset in the pages, the runs.

        None when the key does not allow it, or knows no such thing: then :meth:`spans` tells.
        """
        if self.free or self.pd != user.pd or self.qpn not in (ANY_QP, user.qpn) or not self.rights & right:
            return None
        if self._physical:
            return self._start, self._length, 0, (_FIRST, array("Q", [self._start]), None, 0, self._length)
        assert isinstance(self.table, PageTable)
        runs = self.table.runs()
        return None if runs is None else (self._start, self._length, self._shift, runs)

    def _offset(self, address: int, length: int, right: Right, user: KeyUser) -> int:
        """Bytes from the key's start to `address`; ranges are checked by subtraction, so that no sum can wrap."""
        if self.free:
            raise KeyViolation(VendorSyndrome.KEY_FREE)
        if self.pd != user.pd:
            raise KeyViolation(VendorSyndrome.KEY_PD)
        if self.qpn not in (ANY_QP, user.qpn):
            raise KeyViolation(VendorSyndrome.KEY_QP)
        if not self.rights & right:
            raise KeyViolation(VendorSyndrome.KEY_RIGHT)
        offset = address - self._start
        if offset < 0 or offset > self._length or length > self._length - offset:
            raise KeyViolation(VendorSyndrome.KEY_RANGE)
        return offset

    def context(self) -> bytes:
        """The MKey context as QUERY_MKEY shows it (B1)."""
        return self._context

    def translations(self, *, flags: bool) -> bytes:
        """The translation entries as QUERY_MKEY shows them, with or without what may be done with a page."""
        assert isinstance(self.table, PageTable)
        entries = self.table.entries[:]
        if not flags:
            entries = array("Q", (entry & ~MTT_FLAGS for entry in entries))
        if sys.byteorder == "little":
            entries.byteswap()
        return entries.tobytes()


_READS = (Right.LOCAL_READ, Right.REMOTE_READ)
_FIRST = array("Q", [0])


class IndirectMKey(MKey):
    """A memory key over ranges of other keys (KLM, KSM).

    What it refers to is checked as local memory of the same user: a remote user needs its own rights on this key
    alone. Each level is followed when it is used, so that a key that is gone opens nothing.

    Args:
        fn: whose keys they are.
        context: the MKey context.
        entries: the ranges, as a list of KLM.
        room: bytes that it takes in ICM.
        capacity: entries that UMR may load.
    """

    def __init__(self, fn: Function, context: Mkc, entries: bytes, room: int, capacity: int) -> None:
        self._fn = fn
        super().__init__(context, array("Q"), room, capacity)
        entity = context.log_page_size if mode_of(context) is AccessMode.KSM else None
        self.table: PageTable | KeyTable = KeyTable(entries, entity)
        self.change(context)

    def change(self, context: Mkc) -> None:
        """As the base's; the ranges of a KLM have no common size."""
        super().change(context)
        if mode_of(context) is not AccessMode.KSM:
            self._shift = 0

    def opened(self, right: int, user: KeyUser) -> None:
        """None: each access follows the keys that this one refers to."""

    def spans(self, address: int, length: int, right: Right, user: KeyUser, depth: int = 0) -> list[Span]:
        """As the base's, through the keys that this one refers to."""
        offset = self._offset(address, length, right, user)
        if depth >= self._fn.caps.general.max_indirection:
            raise KeyViolation(VendorSyndrome.KEY_TOO_DEEP)
        assert isinstance(self.table, KeyTable)
        inner = Right.LOCAL_READ if right in _READS else Right.LOCAL_WRITE
        found: list[Span] = []
        paging = self.table.equal and self._fn.caps.general.pg
        for key, start, size in self.table.translate(offset + self._shift, length, MAX_PIECES):
            if key == NULL_MKEY and paging:
                raise PageFault
            found += find_key(self._fn, key).spans(start, size, inner, user, depth + 1)
            if len(found) > MAX_PIECES:
                raise KeyViolation(VendorSyndrome.KEY_TOO_SCATTERED)
        return found

    def translations(self, *, flags: bool) -> bytes:
        """The ranges, as they were given."""
        assert isinstance(self.table, KeyTable)
        return self.table.raw


class VoidKey(MKey):
    """The null mkey and the dump-fill mkey: local alone, of every PD; it was not created and is in no table."""

    def __init__(self, key: int) -> None:
        mkc = Mkc.new(lr=1, lw=1, length64=1, qpn=ANY_QP, mkey_7_0=key & 0xFF, log_page_size=MIN_LOG_PAGE)
        super().__init__(mkc, array("Q"), 0)

    def opened(self, right: int, user: KeyUser) -> None:
        """None: there is no memory."""

    def spans(self, address: int, length: int, right: Right, user: KeyUser, depth: int = 0) -> list[Span]:
        """No memory."""
        if not self.rights & right:
            raise KeyViolation(VendorSyndrome.KEY_RIGHT)
        return [(NOWHERE, length)] if length else []


_NULL, _DUMP_FILL = VoidKey(NULL_MKEY), VoidKey(DUMP_FILL_MKEY)


def mode_of(context: Mkc) -> AccessMode:
    """How a key's addresses are translated."""
    return AccessMode(context.access_mode_4_2 << 2 | context.access_mode_1_0)


def find_key(fn: Function, key: int) -> MKey:
    """The MKey that an lkey or rkey names: its index and its key byte.

    Raises:
        KeyViolation: there is none.
    """
    found = fn.mkeys.find(key >> 8)
    if found is not None and found.key == key & 0xFF:
        return found
    if key == NULL_MKEY and fn.caps.general.null_mkey:
        return _NULL
    if key == DUMP_FILL_MKEY and fn.caps.general.dump_fill_mkey:
        return _DUMP_FILL
    raise KeyViolation(VendorSyndrome.NO_SUCH_KEY)


def check_invalidation(fn: Function, user: KeyUser, rkey: int) -> MKey:
    """The key that a peer asks to be invalidated, if it may.

    Raises:
        KeyViolation: there is none, it is of another PD or QP, free, or not to be invalidated from afar.
    """
    key = find_key(fn, rkey)
    if key.free:
        raise KeyViolation(VendorSyndrome.KEY_FREE)
    if key.pd != user.pd:
        raise KeyViolation(VendorSyndrome.KEY_PD)
    if key.qpn not in (ANY_QP, user.qpn):
        raise KeyViolation(VendorSyndrome.KEY_QP)
    if not key.invalidatable:
        raise KeyViolation(VendorSyndrome.NOT_INVALIDATABLE)
    return key


def _given(request: CreateMkeyIn, held: int) -> int:
    """Octwords of translation that the message says that it has."""
    given = request.translations_octword_actual_size
    if held < given:
        raise CommandError(syndromes.TRANSLATION_SIZE_INVALID, f"{given} octwords, the message holds {held}")
    return given


def _check_page_size(context: Mkc) -> None:
    log_page = context.log_page_size
    if not MIN_LOG_PAGE <= log_page <= MAX_LOG_PAGE:
        raise CommandError(
            syndromes.BAD_PAGE_SIZE, f"MKey log_page_size {log_page}, allowed are {MIN_LOG_PAGE} to {MAX_LOG_PAGE}"
        )


def _translation(request: CreateMkeyIn, context: Mkc) -> tuple[array[int], int]:
    """The pages that the key needs and the entries that it takes room for; checks both."""
    pages = page_list(request)
    given = _given(request, len(pages) * MTT_BYTES // _OCTWORD) * _OCTWORD // MTT_BYTES
    entries = max(given, context.translations_octword_size * _OCTWORD // MTT_BYTES)
    if context.free:
        return array("Q"), entries
    _check_page_size(context)
    page = 1 << context.log_page_size
    length = ADDRESS_END - context.start_addr if context.length64 else context.len
    needed = ((context.start_addr & (page - 1)) + length + page - 1) >> context.log_page_size
    if given < needed:
        raise CommandError(syndromes.PAGE_LIST_SHORT, f"MKey: {given} translation entries, {needed} needed")
    pages = pages[:needed]
    for index, entry in enumerate(pages):
        if entry & (page - 1) & ~MTT_FLAGS:
            raise CommandError(syndromes.PAGE_MISALIGNED, f"MTT {index} {entry:#x}, page size {page:#x}")
    return pages, entries


def _indirect(fn: Function, request: CreateMkeyIn, context: Mkc) -> IndirectMKey:
    """A key over other keys."""
    raw = bytes(request)[PAS_OFFSET:]
    given = _given(request, len(raw) // _OCTWORD)
    entries = max(given, context.translations_octword_size)
    ksm = mode_of(context) is AccessMode.KSM
    limit = _MAX_KSM_ENTRIES if ksm else 1 << fn.caps.general.log_max_klm_list_size
    if entries > limit:
        raise CommandError(syndromes.KEY_LIST_TOO_LONG, f"{entries} entries, allowed up to {limit}")
    if ksm and not context.free:
        _check_page_size(context)
    figures = fn.device.profile.icm
    room = figures.mkc + figures.mtt * 2 * entries
    return IndirectMKey(fn, context, raw[: given * _OCTWORD], room, entries)


def _modes(fn: Function) -> list[AccessMode]:
    """The access modes that the capabilities give."""
    caps = fn.caps.general
    modes = [AccessMode.PA, AccessMode.MTT]
    if caps.max_indirection:
        modes += [AccessMode.KLMS, *([AccessMode.KSM] if caps.fixed_buffer_size else [])]
    return modes


@command(
    Opcode.CREATE_MKEY,
    CreateMkeyIn,
    CreateMkeyOut,
    partial="access modes PA, MTT, KLM and KSM; no UMEM, no signatures",
)
def create_mkey(fn: Function, request: CreateMkeyIn, reply: CreateMkeyOut) -> None:
    """Make a key for a range of host memory."""
    context = request.memory_key_mkey_entry
    mode = context.access_mode_4_2 << 2 | context.access_mode_1_0
    allowed = _modes(fn)
    if mode not in allowed:
        text = ", ".join(f"{item.value} ({item.name})" for item in allowed)
        raise CommandError(syndromes.ACCESS_MODE_UNSUPPORTED, f"access mode {mode}, allowed are {text}")
    if request.mkey_umem_valid or request.data_direct:
        raise CommandError(syndromes.UMEM_UNSUPPORTED, "MKey: mkey_umem_valid, data_direct")
    if context.bsf_en or context.bsf_octword_size:
        raise CommandError(syndromes.KEY_FEATURE_UNSUPPORTED, "bsf_en, bsf_octword_size: allowed is 0")
    if not context.length64 and context.len > ADDRESS_END - context.start_addr:
        raise CommandError(syndromes.KEY_RANGE_INVALID, f"start_addr {context.start_addr:#x}, len {context.len:#x}")
    pd = fn.pds.refer(context.pd)
    if mode in (AccessMode.KLMS, AccessMode.KSM):
        key: MKey = _indirect(fn, request, context)
    else:
        pages, entries = (array("Q"), 0) if mode == AccessMode.PA else _translation(request, context)
        figures = fn.device.profile.icm
        room = figures.mkc + figures.mtt * entries
        key = MKey(context, pages, room, entries, marked=bool(request.pg_access))
    reply.mkey_index = fn.mkeys.add(key)
    key.refer(pd)


@command(Opcode.DESTROY_MKEY, DestroyMkeyIn, DestroyMkeyOut)
def destroy_mkey(fn: Function, request: DestroyMkeyIn, reply: DestroyMkeyOut) -> None:
    """Take a key away: from here on it opens nothing (F1)."""
    fn.mkeys.remove(request.mkey_index)


@command(Opcode.QUERY_MKEY, QueryMkeyIn, QueryMkeyOut)
def query_mkey(fn: Function, request: QueryMkeyIn, reply: QueryMkeyOut) -> None:
    """A snapshot of a key, and of as many of its translation entries as the output has room for.

    A page's entry shows what may be done with it when pg_access asks for that.
    """
    key = fn.mkeys.get(request.mkey_index)
    reply.memory_key_mkey_entry.assign(key.context())
    entries = key.translations(flags=bool(request.pg_access))
    reply.bsf0_klm0_pas_mtt0_1.assign(entries[:16])
    reply.bsf1_klm1_pas_mtt2_3.assign(entries[16:32])
    reply.more.assign(entries[32 : 32 + len(reply.more)])
