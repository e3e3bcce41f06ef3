from __future__ import annotations

import array
import errno
import os
import select
import socket
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softhca.vfio_user.connection import CHUNK, Connection, Message, close_all
from softhca.vfio_user.protocol import MAX_FDS, MAX_MESSAGE, Header, ProtocolError
from tests.vfio_user.conftest import open_fds


def fd_control(fds: list[int]) -> list[tuple[int, int, array.array[int]]]:
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []


class Pair(NamedTuple):
    peer: socket.socket
    connection: Connection

    def send(self, data: bytes, fds: list[int] | None = None) -> None:
        assert self.peer.sendmsg([data], fd_control(fds or [])) == len(data)

    def messages(self) -> list[Message]:
        """Everything that has come."""
        found: list[Message] = []
        while select.select([self.connection], [], [], 0)[0]:
            assert self.connection.fill()
            while (message := self.connection.next_message()) is not None:
                found.append(message)
        return found


def make_pair() -> Pair:
    peer, own = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return Pair(peer, Connection(own))


@pytest.fixture
def pair() -> Iterator[Pair]:
    before = open_fds()
    pair = make_pair()
    yield pair
    pair.peer.close()
    pair.connection.close()
    assert open_fds() == before


def message(number: int, body: bytes = b"") -> bytes:
    return Header(number, 9, 16 + len(body), 0, 0).pack() + body


def with_memfd(number: int) -> int:
    return os.memfd_create(f"m{number}")


def names(message: Message) -> list[str]:
    """The names of the memfds that a message brought, which are closed."""
    found = [os.readlink(f"/proc/self/fd/{fd}").split("memfd:")[1].split(" ")[0] for fd in message[4]]
    close_all(message[4])
    return found


def test_the_kernel_ends_a_read_with_the_piece_that_carries_descriptors() -> None:
    """What the rule of the connection rests on."""
    sender, receiver = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with sender, receiver, open("/dev/null") as null:
        for data, fds in ((b"aa", 0), (b"bb", 1), (b"cc", 0), (b"dd", 2), (b"ee", 1), (b"ff", 0)):
            sender.sendmsg([data], fd_control([null.fileno()] * fds))
        seen = []
        for _ in range(4):
            data, control, _, _ = receiver.recvmsg(100, 256)
            received = array.array("i", control[0][2] if control else b"")
            close_all(list(received))
            seen.append((data, len(received)))
        assert seen == [(b"aabb", 1), (b"ccdd", 2), (b"ee", 1), (b"ff", 0)]

        sender.sendmsg([b"xyz"], fd_control([null.fileno()]))
        data, control, _, _ = receiver.recvmsg(1, 256)
        close_all(list(array.array("i", control[0][2])))
        assert (data, receiver.recvmsg(9, 256)[:2]) == (b"x", (b"yz", []))


def test_a_burst_is_taken_apart_with_each_descriptor_at_its_message(pair: Pair) -> None:
    for number in range(30):
        fds = [with_memfd(number)] if number % 3 == 1 else []
        pair.send(message(number, bytes(number)), fds)
        close_all(fds)
    messages = pair.messages()
    assert [(m[0], m[3]) for m in messages] == [(number, bytes(number)) for number in range(30)]
    assert [names(m) for m in messages] == [[f"m{n}"] if n % 3 == 1 else [] for n in range(30)]


@pytest.mark.parametrize("cut", [1, 15, 16, 17, 39])
@pytest.mark.parametrize("late", [False, True])
def test_a_message_in_two_pieces_keeps_its_descriptor(pair: Pair, cut: int, late: bool) -> None:
    data, fds = message(2, bytes(24)), [with_memfd(2)]
    pair.send(message(1))
    pair.send(data[:cut], [] if late else fds)
    pair.send(data[cut:], fds if late else [])
    close_all(fds)
    pair.send(message(3))
    assert [(m[0], names(m)) for m in pair.messages()] == [(1, []), (2, ["m2"]), (3, [])]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 200), st.integers(0, 3), st.lists(st.integers(1, 60), max_size=3), st.booleans()),
        max_size=12,
    )
)
def test_any_cutting_gives_the_same_messages(plan: list[tuple[int, int, list[int], bool]]) -> None:
    """Each message is sent in pieces, its descriptors with the first; reads happen at any point."""
    pair = make_pair()
    got: list[Message] = []
    for number, (length, count, cuts, read) in enumerate(plan):
        data = message(number, os.urandom(length))
        fds = [with_memfd(number) for _ in range(count)]
        sent = fds
        for cut in cuts:
            if data[:cut]:
                pair.send(data[:cut], sent)
                data, sent = data[cut:], []
        if data:
            pair.send(data, sent)
        close_all(fds)
        if read:
            got += pair.messages()
    got += pair.messages()
    assert [(m[0], len(m[3]), names(m)) for m in got] == [
        (number, length, [f"m{number}"] * count) for number, (length, count, _, _) in enumerate(plan)
    ]
    pair.peer.close()
    pair.connection.close()


def test_the_largest_message_comes_through(pair: Pair) -> None:
    data = message(1, os.urandom(MAX_MESSAGE - 16))
    assert len(data) > CHUNK
    pair.send(data + message(2))
    assert [(m[0], m[3]) for m in pair.messages()] == [(1, data[16:]), (2, b"")]


@pytest.mark.parametrize("size", [0, 15, MAX_MESSAGE + 1, 2**32 - 1])
def test_an_impossible_size_is_answered_and_ends_the_stream(pair: Pair, size: int) -> None:
    pair.send(Header(7, 9, size, 0, 0).pack())
    with pytest.raises(ProtocolError, match=f"size {size}"):
        pair.messages()
    assert Header.unpack(pair.peer.recv(100)) == Header(7, 9, 16, 0x21, errno.EMSGSIZE)


@pytest.mark.parametrize("groups", [[MAX_FDS + 1], [MAX_FDS, 1], [200]])
def test_too_many_descriptors_end_the_stream_and_are_closed(pair: Pair, groups: list[int]) -> None:
    fd = with_memfd(0)
    for count in groups:
        pair.send(b"x", [fd] * count)
    os.close(fd)
    with pytest.raises(ProtocolError, match="descriptors"):
        pair.messages()


def test_descriptors_are_closed_on_exec(pair: Pair) -> None:
    fd = with_memfd(0)
    pair.send(message(1), [fd])
    os.close(fd)
    [(_, _, _, _, fds)] = pair.messages()
    assert not os.get_inheritable(fds[0])
    close_all(fds)


def test_the_end_is_seen(pair: Pair) -> None:
    pair.send(message(1)[:9])
    pair.peer.close()
    assert pair.connection.fill()
    assert pair.connection.next_message() is None
    assert not pair.connection.fill()


def test_replies_wait_for_a_peer_that_does_not_read(pair: Pair) -> None:
    sent = 0
    while not pair.connection.congested:
        pair.connection.reply(sent, 9, bytes(60000))
        sent += 1
    pair.connection.reply_error(sent, 9, errno.EIO)
    received = bytearray()
    pair.peer.setblocking(False)
    while pair.connection.congested:
        received += pair.peer.recv(1 << 20)
        assert pair.connection.flush()
    while len(received) < sent * 60016 + 16:
        received += pair.peer.recv(1 << 20)
    for number in range(sent):
        assert Header.unpack(bytes(received[number * 60016 :][:16])) == Header(number, 9, 60016, 1, 0)
    assert Header.unpack(bytes(received[-16:])) == Header(sent, 9, 16, 0x21, errno.EIO)
