from __future__ import annotations

import errno
import os
from collections.abc import Iterator

import pytest

from softhca.vfio_user.protocol import Command, IrqSet
from tests.vfio_user.client import Client
from tests.vfio_user.conftest import Rig, open_fds

INSTALL = 0x24
DISABLE = 0x21


@pytest.fixture
def events() -> Iterator[list[int]]:
    fds = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(8)]
    yield fds
    for fd in fds:
        os.close(fd)


def count(eventfd: int) -> int:
    """How often an eventfd was signalled since the last call."""
    try:
        return os.eventfd_read(eventfd)
    except BlockingIOError:
        return 0


@pytest.fixture
def master(rig: Rig, client: Client) -> Client:
    client.write(7, 4, b"\x06\x00")
    return client


def test_an_interrupt_signals_its_eventfd(rig: Rig, master: Client, events: list[int]) -> None:
    master.set_irqs(INSTALL, 0, 3, events[:3])
    rig.card.interrupt(1)
    rig.card.interrupt(1)
    rig.card.interrupt(2)
    assert [count(fd) for fd in events[:3]] == [0, 2, 1]


@pytest.mark.requirement("C2")
def test_without_bus_master_there_is_no_interrupt(rig: Rig, client: Client, events: list[int]) -> None:
    client.set_irqs(INSTALL, 0, 1, events[:1])
    rig.card.interrupt(0)
    assert count(events[0]) == 0


def test_vectors_are_added_one_by_one(rig: Rig, master: Client, events: list[int]) -> None:
    for vector in range(8):
        master.set_irqs(INSTALL, vector, 1, [events[vector]])
        rig.card.interrupt(0)
    assert count(events[0]) == 8


def test_an_interrupt_waits_for_its_eventfd(rig: Rig, master: Client, events: list[int]) -> None:
    rig.card.interrupt(5)
    rig.card.interrupt(5)
    master.set_irqs(INSTALL, 4, 2, events[4:6])
    assert [count(fd) for fd in events[4:6]] == [0, 1]


def test_none_is_lost_while_a_vector_is_replaced(rig: Rig, master: Client, events: list[int]) -> None:
    master.set_irqs(INSTALL, 0, 1, [events[0]])
    master.set_irqs(DISABLE, 0, 0)
    rig.card.interrupt(0)
    master.set_irqs(INSTALL, 0, 1, [events[1]])
    assert [count(fd) for fd in events[:2]] == [0, 1]


def test_a_message_without_descriptor_takes_a_vector_away(rig: Rig, master: Client, events: list[int]) -> None:
    """The first message of QEMU has count 1 and no descriptor."""
    master.set_irqs(INSTALL, 0, 1)
    master.set_irqs(INSTALL, 0, 1, [events[0]])
    master.set_irqs(INSTALL, 0, 1)
    rig.card.interrupt(0)
    assert count(events[0]) == 0


def test_eventfds_are_closed_when_replaced_and_disabled(master: Client, events: list[int]) -> None:
    before = open_fds()
    master.set_irqs(INSTALL, 0, 8, events)
    master.set_irqs(INSTALL, 0, 8, events)
    assert len(open_fds()) == len(before) + 8
    master.set_irqs(DISABLE, 0, 0)
    assert open_fds() == before


def test_the_client_may_trigger_vectors(master: Client, events: list[int]) -> None:
    master.set_irqs(INSTALL, 0, 3, events[:3])
    master.set_irqs(0x21, 1, 2)
    master.ok(Command.DEVICE_SET_IRQS, IrqSet(23, 0x22, 2, 0, 3).pack() + b"\x01\x00\x01")
    assert [count(fd) for fd in events[:3]] == [1, 1, 2]


def test_a_full_eventfd_holds_up_nobody(rig: Rig, master: Client, events: list[int]) -> None:
    os.set_blocking(events[0], True)
    os.eventfd_write(events[0], 2**64 - 2)
    master.set_irqs(INSTALL, 0, 1, [events[0]])
    rig.card.interrupt(0)
    assert count(events[0]) == 2**64 - 2


def test_a_reset_forgets_what_is_pending(rig: Rig, master: Client, events: list[int]) -> None:
    rig.card.interrupt(0)
    master.ok(Command.DEVICE_RESET)
    master.set_irqs(INSTALL, 0, 1, [events[0]])
    assert count(events[0]) == 0


@pytest.mark.parametrize(
    "request_",
    [
        IrqSet(20, INSTALL, 2, 7, 2),
        IrqSet(20, INSTALL, 2, 8, 1),
        IrqSet(20, INSTALL, 2, 2**32 - 1, 1),
        IrqSet(20, INSTALL, 2, 0, 2**32 - 1),
        IrqSet(20, INSTALL, 0, 0, 1),
        IrqSet(20, INSTALL, 1, 0, 1),
        IrqSet(20, INSTALL, 3, 0, 1),
        IrqSet(20, INSTALL, 5, 0, 1),
        IrqSet(20, 0, 2, 0, 1),
        IrqSet(20, 0x04, 2, 0, 1),
        IrqSet(20, 0x20, 2, 0, 1),
        IrqSet(20, 0x25, 2, 0, 1),
        IrqSet(20, 0x2C, 2, 0, 1),
        IrqSet(20, 0x09, 2, 0, 1),
        IrqSet(20, 0x11, 2, 0, 1),
        IrqSet(20, 0x64, 2, 0, 1),
        IrqSet(20, 0x22, 2, 0, 1),
    ],
)
def test_bad_requests_are_refused(rig: Rig, master: Client, request_: IrqSet) -> None:
    before = open_fds()
    assert master.refused(Command.DEVICE_SET_IRQS, request_.pack()) == errno.EINVAL
    with open("/dev/null") as null:
        master.refused(Command.DEVICE_SET_IRQS, request_.pack(), [null.fileno()])
    assert open_fds() == before


@pytest.mark.parametrize("number", [1, 3])
def test_the_number_of_descriptors_has_to_fit(master: Client, events: list[int], number: int) -> None:
    request = IrqSet(20, INSTALL, 2, 0, 2).pack()
    assert master.refused(Command.DEVICE_SET_IRQS, request, events[:number]) == errno.EINVAL


def test_only_eventfds_are_taken(master: Client, events: list[int]) -> None:
    master.set_irqs(INSTALL, 0, 1, [events[0]])
    before = open_fds()
    reader, writer = os.pipe()
    request = IrqSet(20, INSTALL, 2, 0, 2).pack()
    assert master.refused(Command.DEVICE_SET_IRQS, request, [events[1], writer]) == errno.EINVAL
    os.close(reader)
    os.close(writer)
    assert open_fds() == before


def test_a_short_body_is_refused(client: Client) -> None:
    assert client.refused(Command.DEVICE_SET_IRQS, bytes(19)) == errno.EINVAL


def test_the_device_has_no_more_vectors(rig: Rig, master: Client) -> None:
    with pytest.raises(ValueError, match="vector 8"):
        rig.card.interrupt(8)


def test_disabling_another_index_leaves_the_vectors(rig: Rig, client: Client, events: list[int]) -> None:
    rig.card.config_write(4, b"\x06\x00")
    client.set_irqs(INSTALL, 0, 1, events[:1])
    client.set_irqs(DISABLE, 0, 0, index=3)
    rig.card.interrupt(0)
    assert count(events[0]) == 1
