"""PDs, transport domains, XRC domains, UAR pages: numbers and references."""

from __future__ import annotations

import pytest

from softhca.hca.errors import CommandError
from softhca.hca.icm import IcmAccount
from softhca.hca.objects import HcaObject, Table
from softhca.prm.opcodes import Opcode
from softhca.prm.syndromes import objects as syndromes
from tests.hca.bench import Bench

KINDS = [
    (Opcode.ALLOC_PD, Opcode.DEALLOC_PD, "pd"),
    (Opcode.ALLOC_TRANSPORT_DOMAIN, Opcode.DEALLOC_TRANSPORT_DOMAIN, "transport_domain"),
    (Opcode.ALLOC_XRCD, Opcode.DEALLOC_XRCD, "xrcd"),
    (Opcode.ALLOC_UAR, Opcode.DEALLOC_UAR, "uar"),
]


@pytest.mark.requirement("A7", "B4", "F8")
@pytest.mark.parametrize(("alloc", "dealloc", "field"), KINDS)
def test_numbers_are_given_and_taken_back(alloc: Opcode, dealloc: Opcode, field: str) -> None:
    bench = Bench()
    first, second = (getattr(bench.call(alloc), field) for _ in range(2))
    assert first != second
    bench.call(dealloc, **{field: first})
    with pytest.raises(CommandError) as refusal:
        bench.call(dealloc, **{field: first})
    assert refusal.value.syndrome is syndromes.NO_SUCH_OBJECT
    assert getattr(bench.call(alloc), field) not in (first, second), "a number is not used again soon"


@pytest.mark.requirement("A8")
def test_pd_stays_while_a_key_refers_to_it() -> None:
    bench = Bench()
    key = bench.mkey(bench.memory(4096))
    with pytest.raises(CommandError) as refusal:
        bench.call(Opcode.DEALLOC_PD, pd=bench.pd)
    assert refusal.value.syndrome is syndromes.STILL_REFERENCED
    bench.call(Opcode.DESTROY_MKEY, mkey_index=key >> 8)
    bench.call(Opcode.DEALLOC_PD, pd=bench.pd)


@pytest.mark.requirement("A8")
def test_uar_stays_while_a_queue_refers_to_it() -> None:
    bench = Bench()
    with pytest.raises(CommandError) as refusal:
        bench.call(Opcode.DEALLOC_UAR, uar=bench.uar)
    assert refusal.value.syndrome is syndromes.STILL_REFERENCED


@pytest.mark.requirement("B2", "B3")
@pytest.mark.parametrize(("alloc", "dealloc", "field"), KINDS[:3])
def test_a_domain_takes_room(alloc: Opcode, dealloc: Opcode, field: str) -> None:
    bench = Bench()
    used = bench.fn.icm.used
    number = getattr(bench.call(alloc), field)
    assert bench.fn.icm.used > used
    bench.call(dealloc, **{field: number})
    assert bench.fn.icm.used == used


@pytest.mark.requirement("B3")
def test_a_table_is_full_when_its_numbers_are() -> None:
    table: Table[HcaObject] = Table("thing", IcmAccount(), limit=100, first=2, size=4)
    assert [table.add(HcaObject()) for _ in range(2)] == [2, 3]
    with pytest.raises(CommandError) as refusal:
        table.add(HcaObject())
    assert refusal.value.syndrome is syndromes.TABLE_FULL
