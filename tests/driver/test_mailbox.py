from __future__ import annotations

from functools import reduce
from operator import xor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softhca.bus.local import LocalHost
from softhca.driver.mailbox import MailboxPool
from softhca.prm.cmd import mailboxes, xor8


@pytest.mark.requirement("D4")
@pytest.mark.parametrize(
    ("length", "count"), [(8, 0), (16, 0), (17, 1), (528, 1), (529, 2), (1040, 2), (1041, 3), (4112, 8)]
)
def test_blocks_of_a_message(length: int, count: int) -> None:
    assert mailboxes(length) == count


@given(st.binary(min_size=1, max_size=700))
def test_xor8_is_the_xor_of_all_bytes(data: bytes) -> None:
    assert xor8(data) == reduce(xor, data)


@pytest.mark.requirement("D4", "D5")
def test_chain_is_numbered_linked_tokened_aligned_and_signed() -> None:
    pool = MailboxPool(LocalHost(1 << 20))
    message = bytes(range(256)) * 5
    chain = pool.chain(0x5A, len(message), message)
    assert len(chain) == mailboxes(len(message)) == 3
    for number, box in enumerate(chain):
        assert box.iova % 1024 == 0
        assert (box.block.block_num, box.block.token) == (number, 0x5A)
        assert box.block.next == (chain[number + 1].iova if number < 2 else 0)
        assert box.is_signed()
        assert bytes(box.data) == message[16 + 512 * number :][:512].ljust(512, b"\0")


@pytest.mark.requirement("D5")
@pytest.mark.parametrize("at", [0, 511, 0x200, 0x230, 0x238, 0x23D, 0x23E, 0x23F])
def test_any_changed_byte_breaks_a_signature(at: int) -> None:
    box = MailboxPool(LocalHost(1 << 20)).chain(1, 100)[0]
    box.block._buffer[at] ^= 0x40  # type: ignore[index]
    assert not box.is_signed()


def test_given_back_mailboxes_are_used_again() -> None:
    host = LocalHost(1 << 20)
    pool = MailboxPool(host)
    first = pool.chain(1, 2000)
    pool.give_back(first)
    second = pool.chain(2, 2000)
    assert {box.iova for box in second} == {box.iova for box in first}
    pool.free()
    assert host.allocations == 0
