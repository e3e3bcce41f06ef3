"""Memory keys: creation, translation, query, room in ICM."""

from __future__ import annotations

import struct
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softhca.hca.errors import CommandError, PageFault, PagesLacking
from softhca.hca.mkey import KeyUser, KeyViolation, MKey, Right
from softhca.prm.mkey import Mkc
from softhca.prm.opcodes import Opcode
from softhca.prm.syndromes import objects as syndromes
from softhca.prm.syndromes.completion import VendorSyndrome
from softhca.prm.syndromes.table import Syndrome
from tests.hca.bench import Bench

USER = KeyUser(pd=1, qpn=0x40)
PAGE = 4096


def key_over(pages: list[int], *, start: int = 0, length: int | None = None, log_page: int = 12) -> MKey:
    length = (len(pages) << log_page) - start % (1 << log_page) if length is None else length
    context = Mkc.new(
        access_mode_1_0=1,
        lr=1,
        lw=1,
        rr=1,
        rw=1,
        qpn=0xFFFFFF,
        pd=1,
        start_addr=start,
        len=length,
        log_page_size=log_page,
    )
    return MKey(context, array("Q", pages), len(pages))


@pytest.mark.requirement("G4")
def test_contiguous_pages_are_one_span() -> None:
    key = key_over([0x10000, 0x11000, 0x12000], start=0x7000_0123)
    assert key.spans(0x7000_0123, 3 * PAGE - 0x123, Right.LOCAL_READ, USER) == [(0x10123, 3 * PAGE - 0x123)]


@pytest.mark.requirement("G4")
def test_scattered_pages_in_order() -> None:
    key = key_over([0x90000, 0x91000, 0x20000], start=0x5000)
    assert key.spans(0x5FFF, PAGE + 2, Right.REMOTE_READ, USER) == [(0x90FFF, PAGE + 1), (0x20000, 1)]


@given(data=st.data())
def test_translation_agrees_with_page_by_page(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12))
    pages = [page << 12 for page in data.draw(st.lists(st.integers(1, 30), min_size=count, max_size=count))]
    start = data.draw(st.integers(0, 2**64 - (count << 12)))
    shift = start % PAGE
    key = key_over(pages, start=start)
    address = data.draw(st.integers(0, (count << 12) - shift))
    length = data.draw(st.integers(0, (count << 12) - shift - address))
    flat = [page + at for page in pages for at in (0,)]
    spans = key.spans(start + address, length, Right.LOCAL_WRITE, USER)
    assert sum(size for _, size in spans) == length
    for probe in {0, length // 2, length - 1} if length else set():
        offset = shift + address + probe
        expected = flat[offset // PAGE] + offset % PAGE
        at = probe
        for iova, size in spans:
            if at < size:
                assert iova + at == expected
                break
            at -= size


@pytest.mark.requirement("G4", "B11")
@pytest.mark.parametrize(
    ("address", "length"),
    [(0x4FFF, 1), (0x5000, PAGE + 1), (0x6000, 1), (0x6001, 0), (2**64 - 1, 1), (0, 2**31), (0x5000, 2**64)],
)
def test_range_is_checked_without_wrapping(address: int, length: int) -> None:
    key = key_over([0x90000], start=0x5000)
    with pytest.raises(KeyViolation) as violation:
        key.spans(address, length, Right.LOCAL_READ, USER)
    assert violation.value.vendor is VendorSyndrome.KEY_RANGE


def test_end_of_the_range_is_a_place_for_nothing() -> None:
    assert key_over([0x90000], start=0x5000).spans(0x6000, 0, Right.LOCAL_READ, USER) == [(0x91000, 0)]


@pytest.mark.requirement("B2")
def test_room_in_icm_counts_the_translation() -> None:
    bench = Bench()
    before = bench.fn.icm.used
    key = bench.mkey(bench.memory(5 * PAGE))
    assert bench.fn.icm.used == before + 128 + 6 * 8
    bench.call(Opcode.DESTROY_MKEY, mkey_index=key >> 8)
    assert bench.fn.icm.used == before


@pytest.mark.requirement("B8", "B9")
def test_without_pages_nothing_is_made() -> None:
    bench = Bench()
    memory = bench.memory(PAGE)
    references = bench.fn.pds.get(bench.pd).references
    bench.fn.icm.pages.clear()
    with pytest.raises(PagesLacking):
        bench.mkey(memory)
    assert len(bench.fn.mkeys) == 0
    assert bench.fn.pds.get(bench.pd).references == references


@pytest.mark.requirement("B1", "E6")
def test_query_gives_the_context() -> None:
    bench = Bench()
    memory = bench.memory(PAGE)
    key = bench.mkey(memory, start=0x1234_5000, rw=0)
    context = bench.call(Opcode.QUERY_MKEY, mkey_index=key >> 8).memory_key_mkey_entry
    assert (context.start_addr, context.len, context.pd, context.mkey_7_0) == (0x1234_5000, PAGE, bench.pd, 0x42)
    assert (context.lr, context.rw, context.free) == (1, 0, 0)


def entries(bench: Bench, key: int, count: int, *, pg_access: int = 0) -> list[int]:
    """The first translation entries of a key, as QUERY_MKEY shows them (64 bits each)."""
    reply = bench.call(Opcode.QUERY_MKEY, mkey_index=key >> 8, pg_access=pg_access)
    raw = bytes(reply.bsf0_klm0_pas_mtt0_1) + bytes(reply.bsf1_klm1_pas_mtt2_3) + bytes(reply.more)
    return list(struct.unpack_from(f">{count}Q", raw))


@pytest.mark.requirement("B1", "E6")
def test_query_gives_the_pages() -> None:
    bench = Bench()
    memory = bench.memory(7 * PAGE)
    pages = bench.pages(memory)
    key = bench.mkey(memory, pages=pages[::-1])
    assert entries(bench, key, 8) == [*pages[::-1], 0]
    assert entries(bench, key, 8, pg_access=1) == [*(page | 3 for page in pages[::-1]), 0]
    marked = [page | rights for page, rights in zip(pages, (3, 1, 0, 3, 3, 2, 3), strict=True)]
    key = bench.mkey(memory, pages=marked, pg_access=1)
    assert entries(bench, key, 7, pg_access=1) == marked
    assert entries(bench, key, 7) == pages


@pytest.mark.requirement("B1", "E6")
def test_query_gives_the_ranges() -> None:
    bench = Bench()
    ranges = [0x10, 5, 0x1000, 0, 0x20, 6, 0x2000, 1, 0x30, 7, 0x3000, 2]
    context = {"access_mode_1_0": 2, "lr": 1, "qpn": 0xFF_FFFF, "pd": bench.pd, "len": 0x60}
    reply = bench.call(
        Opcode.CREATE_MKEY, memory_key_mkey_entry=context, translations_octword_actual_size=3, klm_pas_mtt=ranges
    )
    raw = struct.pack(">6Q", *entries(bench, reply.mkey_index << 8, 6))
    assert list(struct.unpack(">12I", raw)) == ranges


@pytest.mark.requirement("G4")
def test_pages_may_be_absent_or_for_reading_alone() -> None:
    bench = Bench()
    memory = bench.memory(3 * PAGE)
    pages = [page | rights for page, rights in zip(bench.pages(memory), (3, 1, 0), strict=True)]
    found = bench.fn.mkeys.find(bench.mkey(memory, pages=pages, pg_access=1) >> 8)
    assert found is not None
    user = KeyUser(bench.pd, 0x40)
    for _ in range(3):  # entry by entry at first, merged later
        assert sum(size for _, size in found.spans(memory.iova, 2 * PAGE, Right.LOCAL_READ, user)) == 2 * PAGE
        for start, length, right in ((PAGE, 1, Right.LOCAL_WRITE), (PAGE, PAGE + 1, Right.LOCAL_READ)):
            with pytest.raises(PageFault):
                found.spans(memory.iova + start, length, right, user)
        with pytest.raises(KeyViolation) as refusal:
            found.spans(memory.iova, 3 * PAGE + 1, Right.LOCAL_READ, user)
        assert not isinstance(refusal.value, PageFault)


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({"access_mode_4_2": 1}, syndromes.ACCESS_MODE_UNSUPPORTED),
        ({"pd": 0x999}, syndromes.NO_SUCH_REFERENCE),
        ({"bsf_en": 1}, syndromes.KEY_FEATURE_UNSUPPORTED),
        ({"log_page_size": 11}, syndromes.BAD_PAGE_SIZE),
        ({"log_page_size": 32}, syndromes.BAD_PAGE_SIZE),
        ({"log_page_size": 20}, syndromes.PAGE_MISALIGNED),
        ({"length": 2 * PAGE + 1}, syndromes.PAGE_LIST_SHORT),
        ({"length64": 1}, syndromes.PAGE_LIST_SHORT),
        ({"start": 2**64 - PAGE, "length": PAGE + 1}, syndromes.KEY_RANGE_INVALID),
        ({"start": 1, "length": 2 * PAGE}, syndromes.PAGE_LIST_SHORT),
    ],
)
def test_create_is_refused(context: dict[str, Any], expected: Syndrome) -> None:
    bench = Bench()
    memory = bench.memory(3 * PAGE)
    pages = [memory.iova + PAGE, memory.iova + 2 * PAGE]
    with pytest.raises(CommandError) as refusal:
        bench.mkey(memory, pages=pages, **{"length": PAGE} | context)
    assert refusal.value.syndrome is expected


def test_message_shorter_than_it_says() -> None:
    bench = Bench()
    context = {"access_mode_1_0": 1, "pd": bench.pd, "len": 1, "log_page_size": 12}
    with pytest.raises(CommandError) as refusal:
        bench.call(
            Opcode.CREATE_MKEY, memory_key_mkey_entry=context, translations_octword_actual_size=9, klm_pas_mtt=[0] * 4
        )
    assert refusal.value.syndrome is syndromes.TRANSLATION_SIZE_INVALID


def test_flags_of_translation_entries_are_no_address() -> None:
    bench = Bench()
    memory = bench.memory(PAGE)
    key = bench.mkey(memory, pages=[memory.iova | 3])
    assert bench.fn.mkeys.get(key >> 8).spans(memory.iova, 8, Right.LOCAL_READ, KeyUser(bench.pd, 1)) == [
        (memory.iova, 8)
    ]
