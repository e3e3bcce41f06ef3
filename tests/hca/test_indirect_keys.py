"""Keys over other keys, and keys over nothing: KLM, KSM, null and dump-fill."""

from __future__ import annotations

import os
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softhca.hca.errors import CommandError
from softhca.hca.memory import Pointer, views_of
from softhca.hca.mkey import DUMP_FILL_MKEY, MAX_PIECES, NULL_MKEY, KeyUser, KeyViolation, Right
from softhca.hca.translation import KeyTable
from softhca.prm.mkey import AccessMode
from softhca.prm.opcodes import Opcode
from softhca.prm.syndromes import objects as syndromes
from softhca.prm.syndromes.completion import VendorSyndrome
from tests.hca.bench import Bench, Buffer

PAGE = 4096


def klm(length: int, key: int, address: int) -> bytes:
    """An entry of an indirect key."""
    return struct.pack(">IIQ", length, key, address)


def indirect(bench: Bench, entries: list[tuple[int, int, int]], *, key: int = 0x21, **context: Any) -> int:
    """A key over (length, key, address) entries; its lkey and rkey."""
    fields = {
        "access_mode_1_0": AccessMode.KLMS,
        "lr": 1, "lw": 1, "rr": 1, "rw": 1,
        "qpn": 0xFF_FFFF,
        "mkey_7_0": key,
        "pd": bench.pd,
        "len": sum(entry[0] for entry in entries),
        "translations_octword_size": len(entries),
    } | context  # fmt: skip
    raw = b"".join(klm(*entry) for entry in entries)
    reply = bench.call(
        Opcode.CREATE_MKEY,
        memory_key_mkey_entry=fields,
        translations_octword_actual_size=len(entries),
        klm_pas_mtt=list(struct.unpack(f">{len(raw) // 4}I", raw)),
    )
    return int(reply.mkey_index) << 8 | key


def user(bench: Bench) -> KeyUser:
    return KeyUser(bench.pd, 0x40)


def read(bench: Bench, key: int, address: int, length: int, right: Right = Right.LOCAL_READ) -> bytes:
    return b"".join(views_of(bench.fn, Pointer(key, address, length), right, user(bench)))


def refusal(bench: Bench, key: int, address: int, length: int, right: Right = Right.LOCAL_READ) -> VendorSyndrome:
    with pytest.raises(KeyViolation) as caught:
        read(bench, key, address, length, right)
    return caught.value.vendor


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def memory(bench: Bench) -> Buffer:
    memory = bench.memory(16 * PAGE)
    memory.view[:] = os.urandom(16 * PAGE)
    return memory


@pytest.mark.requirement("G4")
def test_klm_gathers_ranges_in_order(bench: Bench, memory: Buffer) -> None:
    inner = bench.mkey(memory)
    base = memory.iova
    key = indirect(bench, [(100, inner, base + 7), (0, 0, 0), (5000, inner, base + 20000), (1, inner, base)])
    whole = bytes(memory.view[7:107]) + bytes(memory.view[20000:25000]) + bytes(memory.view[:1])
    assert read(bench, key, 0, 5101) == whole
    assert read(bench, key, 99, 5002) == whole[99:]
    assert read(bench, key, 100, 1) == whole[100:101]
    assert read(bench, key, 5101, 0) == b""
    assert refusal(bench, key, 5000, 102) is VendorSyndrome.KEY_RANGE


@pytest.mark.requirement("G4")
def test_klm_that_starts_somewhere_else_than_at_zero(bench: Bench, memory: Buffer) -> None:
    inner = bench.mkey(memory)
    key = indirect(bench, [(PAGE, inner, memory.iova + 100)], start_addr=memory.iova + 100)
    assert read(bench, key, memory.iova + 150, 60) == memory.view[150:210]
    assert refusal(bench, key, memory.iova + 99, 1) is VendorSyndrome.KEY_RANGE


@pytest.mark.requirement("G4")
def test_ksm_has_entries_of_one_size(bench: Bench, memory: Buffer) -> None:
    inner = bench.mkey(memory)
    order = [3, 0, 9, 2]
    key = indirect(
        bench,
        [(0, inner, memory.iova + page * PAGE) for page in order],
        access_mode_1_0=AccessMode.KSM,
        log_page_size=12,
        start_addr=0x7000_0000 + 10,
        len=4 * PAGE - 10,
    )
    whole = b"".join(bytes(memory.view[page * PAGE : (page + 1) * PAGE]) for page in order)
    assert read(bench, key, 0x7000_0000 + 10, 4 * PAGE - 10) == whole[10:]
    assert read(bench, key, 0x7000_0000 + PAGE - 1, 2) == whole[PAGE - 1 : PAGE + 1]


@pytest.mark.requirement("G4", "B11")
def test_remote_rights_count_on_the_outer_key_and_local_rights_below(bench: Bench, memory: Buffer) -> None:
    inner = bench.mkey(memory, rr=0, rw=0)
    key = indirect(bench, [(PAGE, inner, memory.iova)])
    assert read(bench, key, 0, 8, Right.REMOTE_READ) == memory.view[:8]
    assert read(bench, key, 0, 8, Right.REMOTE_WRITE) == memory.view[:8]
    shut = bench.mkey(memory, lw=0, key=0x43)
    key = indirect(bench, [(PAGE, shut, memory.iova)])
    assert refusal(bench, key, 0, 8, Right.REMOTE_WRITE) is VendorSyndrome.KEY_RIGHT
    assert read(bench, key, 0, 8, Right.REMOTE_READ) == memory.view[:8]


@pytest.mark.requirement("B11")
def test_keys_below_are_looked_up_at_each_use(bench: Bench, memory: Buffer) -> None:
    inner = bench.mkey(memory)
    key = indirect(bench, [(PAGE, inner, memory.iova)])
    bench.call(Opcode.DESTROY_MKEY, mkey_index=inner >> 8)
    assert refusal(bench, key, 0, 1) is VendorSyndrome.NO_SUCH_KEY
    other = bench.call(Opcode.ALLOC_PD).pd
    foreign = bench.mkey(memory, pd=other)
    assert refusal(bench, indirect(bench, [(PAGE, foreign, memory.iova)]), 0, 1) is VendorSyndrome.KEY_PD
    inside = bench.mkey(memory)
    beyond = indirect(bench, [(PAGE, inside, memory.iova + 15 * PAGE + 1)])
    assert refusal(bench, beyond, 0, PAGE) is VendorSyndrome.KEY_RANGE


@pytest.mark.requirement("G4")
def test_depth_is_bounded(bench: Bench, memory: Buffer) -> None:
    most = bench.fn.caps.general.max_indirection
    key = bench.mkey(memory)
    address = int(memory.iova)
    for _ in range(most):
        key, address = indirect(bench, [(PAGE, key, address)]), 0
        assert read(bench, key, 0, 9) == memory.view[:9]
    key = indirect(bench, [(PAGE, key, 0)])
    assert refusal(bench, key, 0, 9) is VendorSyndrome.KEY_TOO_DEEP


@pytest.mark.requirement("G4")
def test_a_key_that_refers_to_itself(bench: Bench) -> None:
    first = indirect(bench, [(PAGE, 0, 0)])
    own = ((first >> 8) + 1) << 8 | 0x21
    assert indirect(bench, [(PAGE, own, 0)]) == own
    assert refusal(bench, own, 0, 1) is VendorSyndrome.KEY_TOO_DEEP


@pytest.mark.requirement("G4")
def test_pieces_are_bounded(bench: Bench, memory: Buffer) -> None:
    table = KeyTable(klm(1, 5, 0) * 100, None)
    with pytest.raises(KeyViolation) as caught:
        table.translate(0, 100, 99)
    assert caught.value.vendor is VendorSyndrome.KEY_TOO_SCATTERED
    inner = indirect(bench, [(1, bench.mkey(memory), memory.iova)] * 1024)
    outer = indirect(bench, [(1024, inner, 0)] * 65)
    assert len(read(bench, outer, 0, MAX_PIECES)) == MAX_PIECES
    assert refusal(bench, outer, 0, MAX_PIECES + 1) is VendorSyndrome.KEY_TOO_SCATTERED


@pytest.mark.requirement("G4")
@pytest.mark.parametrize("key", [NULL_MKEY, DUMP_FILL_MKEY])
def test_null_keys_give_zeros_and_take_anything(bench: Bench, memory: Buffer, key: int) -> None:
    assert read(bench, key, 2**63, 3 << 20) == bytes(3 << 20)
    for view in views_of(bench.fn, Pointer(key, 0, 100), Right.LOCAL_WRITE, user(bench)):
        view[:] = b"x" * len(view)
    assert read(bench, key, 0, 100) == bytes(100)
    assert refusal(bench, key, 0, 1, Right.REMOTE_READ) is VendorSyndrome.KEY_RIGHT
    assert refusal(bench, key + 1, 0, 1) is VendorSyndrome.NO_SUCH_KEY
    mixed = indirect(bench, [(PAGE, key, 0), (PAGE, bench.mkey(memory), memory.iova)])
    assert read(bench, mixed, PAGE - 4, 8, Right.REMOTE_READ) == bytes(4) + bytes(memory.view[:4])


@pytest.mark.requirement("G4")
def test_special_contexts_name_them(bench: Bench) -> None:
    reply = bench.call(Opcode.QUERY_SPECIAL_CONTEXTS)
    assert (reply.null_mkey, reply.dump_fill_mkey) == (NULL_MKEY, DUMP_FILL_MKEY)
    bench.fn.caps.general.null_mkey = 0
    assert bench.call(Opcode.QUERY_SPECIAL_CONTEXTS).null_mkey == 0
    assert refusal(bench, NULL_MKEY, 0, 1) is VendorSyndrome.NO_SUCH_KEY


@pytest.mark.requirement("G4")
def test_modes_follow_the_capabilities(bench: Bench) -> None:
    bench.fn.caps.general.fixed_buffer_size = 0
    with pytest.raises(CommandError) as caught:
        indirect(bench, [(PAGE, 0, 0)], access_mode_1_0=AccessMode.KSM, log_page_size=12)
    assert caught.value.syndrome is syndromes.ACCESS_MODE_UNSUPPORTED
    bench.fn.caps.general.max_indirection = 0
    with pytest.raises(CommandError) as caught:
        indirect(bench, [(PAGE, 0, 0)])
    assert caught.value.syndrome is syndromes.ACCESS_MODE_UNSUPPORTED


@pytest.mark.requirement("G4")
def test_lists_are_bounded_and_complete(bench: Bench) -> None:
    with pytest.raises(CommandError) as caught:
        indirect(bench, [], free=1, translations_octword_size=(1 << 16) + 1)
    assert caught.value.syndrome is syndromes.KEY_LIST_TOO_LONG
    with pytest.raises(CommandError) as caught:
        indirect(bench, [(0, 0, 0)], access_mode_1_0=AccessMode.KSM, log_page_size=11)
    assert caught.value.syndrome is syndromes.BAD_PAGE_SIZE


@pytest.mark.requirement("G4")
def test_icm_room_counts_entries_twice(bench: Bench) -> None:
    figures = bench.card.profile.icm
    key = indirect(bench, [], free=1, translations_octword_size=12)
    found = bench.fn.mkeys.find(key >> 8)
    assert found is not None
    assert found.icm_bytes() == figures.mkc + 24 * figures.mtt


@given(data=st.data())
def test_klm_agrees_with_byte_by_byte(data: st.DataObject) -> None:
    entries = [(data.draw(st.integers(0, 9)), index, data.draw(st.integers(0, 99))) for index in range(8)]
    flat = [(key, address + at) for size, key, address in entries for at in range(size)]
    offset = data.draw(st.integers(0, len(flat)))
    length = data.draw(st.integers(0, len(flat) - offset))
    found = KeyTable(b"".join(klm(*entry) for entry in entries), None).translate(offset, length, 100)
    assert [(key, address + at) for key, address, size in found for at in range(size)] == flat[offset : offset + length]
