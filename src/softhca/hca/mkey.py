"""Memory keys: what part of host memory a key opens, for whom, and for what (B11, G4)."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from softhca.hca.command import command
from softhca.hca.errors import CommandError
from softhca.hca.objects import HcaObject
from softhca.hca.wq import MTT_BYTES, page_list
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
_MIN_LOG_PAGE, _MAX_LOG_PAGE = 12, 31
_MTT_FLAGS = 0x7
"""Bits of a translation entry that are no address: [1] write, [0] read are enabled."""
_OCTWORD = 16

Span = tuple[int, int]
"""IOVA and length (bytes) of memory behind a key."""


class Right(IntEnum):
    """What a key allows: a bit each (no flag type: the data path tests them for each segment)."""

    LOCAL_READ = 1
    LOCAL_WRITE = 2
    REMOTE_READ = 4
    REMOTE_WRITE = 8


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


class KeyViolation(Exception):
    """An access that a key does not allow.

    Args:
        vendor: which of the key's conditions does not hold.
    """

    def __init__(self, vendor: VendorSyndrome) -> None:
        super().__init__(vendor.name)
        self.vendor = vendor


class MKey(HcaObject):
    """A memory key.

    Contiguous pages are merged when it is created: translation keeps runs (offset in the key's pages -> IOVA), in
    most cases a single one.

    Args:
        context: the MKey context.
        pages: the translation entries that the range needs.
        room: bytes that it takes in ICM.

    Attributes:
        key: the variable byte, low byte of lkey and rkey.
        pd: number of its protection domain.
        free: nothing is translated.
    """

    KIND = "MKey"

    def __init__(self, context: Mkc, pages: array[int], room: int) -> None:
        super().__init__()
        self._context = bytes(context)
        self._room = room
        self._start = context.start_addr
        self._length = ADDRESS_END - self._start if context.length64 else context.len
        self._qpn = context.qpn
        self._rights = context.lr | context.lw << 1 | context.rr << 2 | context.rw << 3
        self._physical = context.access_mode_1_0 == AccessMode.PA
        self.key = context.mkey_7_0
        self.pd = context.pd
        self.free = bool(context.free)
        self._offsets, self._targets = _merge(pages, context.log_page_size)
        self._shift = 0 if self._physical else self._start & ((1 << context.log_page_size) - 1)

    def icm_bytes(self) -> int:
        """Room of the context and its translation entries (bytes)."""
        return self._room

    def spans(self, address: int, length: int, right: Right, user: KeyUser) -> list[Span]:
        """Where `length` bytes at HCA virtual `address` are, in order.

        Ranges are checked by subtraction, so that no sum can wrap around.

        Args:
            address: HCA virtual address, 64 bits.
            length: bytes.
            right: what is to be done there.
            user: on whose behalf.

        Raises:
            KeyViolation: the key does not allow it.
        """
        if self.free:
            raise KeyViolation(VendorSyndrome.KEY_FREE)
        if self.pd != user.pd:
            raise KeyViolation(VendorSyndrome.KEY_PD)
        if self._qpn not in (ANY_QP, user.qpn):
            raise KeyViolation(VendorSyndrome.KEY_QP)
        if not self._rights & right:
            raise KeyViolation(VendorSyndrome.KEY_RIGHT)
        offset = address - self._start
        if offset < 0 or offset > self._length or length > self._length - offset:
            raise KeyViolation(VendorSyndrome.KEY_RANGE)
        if self._physical:
            return [(address, length)]
        return self._translate(offset + self._shift, length)

    def _translate(self, offset: int, length: int) -> list[Span]:
        offsets, targets = self._offsets, self._targets
        if len(targets) == 1:
            return [(targets[0] + offset, length)]
        at = bisect_right(offsets, offset) - 1
        found: list[Span] = []
        while length:
            end = offsets[at + 1] if at + 1 < len(offsets) else offset + length
            step = min(length, end - offset)
            found.append((targets[at] + offset - offsets[at], step))
            offset += step
            length -= step
            at += 1
        return found

    def context(self) -> bytes:
        """The MKey context as QUERY_MKEY shows it (B1)."""
        mkc = Mkc(bytearray(self._context))
        mkc.free = self.free
        return bytes(mkc)


def _merge(pages: array[int], log_page_size: int) -> tuple[array[int], array[int]]:
    """Runs of pages that follow each other: their offsets from the first page, and their addresses."""
    offsets, targets = array("Q"), array("Q")
    page = 1 << log_page_size
    following = -1
    for index, entry in enumerate(pages):
        address = entry & ~_MTT_FLAGS
        if address != following:
            offsets.append(index << log_page_size)
            targets.append(address)
        following = address + page
    return offsets, targets


def find_key(fn: Function, key: int) -> MKey:
    """The MKey that an lkey or rkey names: its index and its key byte.

    Raises:
        KeyViolation: there is none.
    """
    found = fn.mkeys.find(key >> 8)
    if found is None or found.key != key & 0xFF:
        raise KeyViolation(VendorSyndrome.NO_SUCH_KEY)
    return found


def _translation(request: CreateMkeyIn, context: Mkc) -> tuple[array[int], int]:
    """The pages that the key needs and the entries that it takes room for; checks both."""
    log_page = context.log_page_size
    if not _MIN_LOG_PAGE <= log_page <= _MAX_LOG_PAGE:
        raise CommandError(
            syndromes.BAD_PAGE_SIZE, f"MKey log_page_size {log_page}, allowed are {_MIN_LOG_PAGE} to {_MAX_LOG_PAGE}"
        )
    page = 1 << log_page
    given = request.translations_octword_actual_size * _OCTWORD // MTT_BYTES
    entries = max(given, context.translations_octword_size * _OCTWORD // MTT_BYTES)
    pages = page_list(request)
    if len(pages) < given:
        raise CommandError(syndromes.TRANSLATION_SIZE_INVALID, f"{given} entries, the message holds {len(pages)}")
    if context.free:
        return array("Q"), entries
    length = ADDRESS_END - context.start_addr if context.length64 else context.len
    needed = ((context.start_addr & (page - 1)) + length + page - 1) >> log_page
    if given < needed:
        raise CommandError(syndromes.PAGE_LIST_SHORT, f"MKey: {given} translation entries, {needed} needed")
    pages = pages[:needed]
    for index, entry in enumerate(pages):
        if entry & (page - 1) & ~_MTT_FLAGS:
            raise CommandError(syndromes.PAGE_MISALIGNED, f"MTT {index} {entry:#x}, page size {page:#x}")
        if request.pg_access and entry & 0b11 != 0b11:
            raise CommandError(syndromes.KEY_FEATURE_UNSUPPORTED, f"MTT {index}: access bits {entry & 0b11:#b} of 0b11")
    return pages, entries


@command(Opcode.CREATE_MKEY, CreateMkeyIn, CreateMkeyOut, partial="access modes PA and MTT; no UMEM, no signatures")
def create_mkey(fn: Function, request: CreateMkeyIn, reply: CreateMkeyOut) -> None:
    """Make a key for a range of host memory."""
    context = request.memory_key_mkey_entry
    mode = context.access_mode_4_2 << 2 | context.access_mode_1_0
    if mode not in (AccessMode.PA, AccessMode.MTT):
        raise CommandError(syndromes.ACCESS_MODE_UNSUPPORTED, f"access mode {mode}, allowed are 0 and 1")
    if request.mkey_umem_valid or request.data_direct:
        raise CommandError(syndromes.UMEM_UNSUPPORTED, "MKey: mkey_umem_valid, data_direct")
    if context.bsf_en or context.bsf_octword_size:
        raise CommandError(syndromes.KEY_FEATURE_UNSUPPORTED, "bsf_en, bsf_octword_size: allowed is 0")
    if not context.length64 and context.len > ADDRESS_END - context.start_addr:
        raise CommandError(syndromes.KEY_RANGE_INVALID, f"start_addr {context.start_addr:#x}, len {context.len:#x}")
    pd = fn.pds.refer(context.pd)
    pages, entries = (array("Q"), 0) if mode == AccessMode.PA else _translation(request, context)
    figures = fn.device.profile.icm
    key = MKey(context, pages, figures.mkc + figures.mtt * entries)
    reply.mkey_index = fn.mkeys.add(key)
    key.refer(pd)


@command(Opcode.DESTROY_MKEY, DestroyMkeyIn, DestroyMkeyOut)
def destroy_mkey(fn: Function, request: DestroyMkeyIn, reply: DestroyMkeyOut) -> None:
    """Take a key away: from here on it opens nothing (F1)."""
    fn.mkeys.remove(request.mkey_index)


@command(Opcode.QUERY_MKEY, QueryMkeyIn, QueryMkeyOut, partial="the translation entries read as zero")
def query_mkey(fn: Function, request: QueryMkeyIn, reply: QueryMkeyOut) -> None:
    """A snapshot of a key."""
    reply.memory_key_mkey_entry.assign(fn.mkeys.get(request.mkey_index).context())
