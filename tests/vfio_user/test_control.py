from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from softhca.vfio_user import Loop
from softhca.vfio_user.control import MAX_CLIENTS, MAX_LINE, Control, ControlError
from tests.vfio_user.conftest import open_fds


class Bench:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.loop = Loop()
        self.control = Control(self.loop, path)
        self.control.register("echo", lambda params: params)
        self.control.register("big", lambda _: "x" * (1 << 20))
        self.control.register("refuse", refuse)
        self.sockets: list[socket.socket] = []

    def connect(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.connect(os.fspath(self.path))
        sock.setblocking(False)
        self.sockets.append(sock)
        self.loop.run_once(0)
        return sock

    def receive(self, sock: socket.socket) -> bytes:
        """All that comes, up to a newline or the end of the connection."""
        data = b""
        for _ in range(2000):
            self.loop.run_once(0)
            try:
                part = sock.recv(1 << 16)
            except BlockingIOError:
                continue
            data += part
            if not part or data.endswith(b"\n"):
                return data
        raise AssertionError("nothing came")

    def call(self, sock: socket.socket, request: object) -> Mapping[str, object]:
        sock.sendall(json.dumps(request).encode() + b"\n")
        answer: Mapping[str, object] = json.loads(self.receive(sock))
        return answer


def refuse(params: Mapping[str, object]) -> object:
    raise ControlError("params", f"qpn {params.get('qpn')}: there is no such QP")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    before = open_fds()
    bench = Bench(tmp_path / "c")
    yield bench
    for sock in bench.sockets:
        sock.close()
    bench.loop.run_once(0)
    bench.control.close()
    bench.loop.close()
    assert not bench.path.exists()
    assert open_fds() == before


def error_code(answer: Mapping[str, object]) -> object:
    error = answer["error"]
    assert isinstance(error, dict)
    assert error["message"]
    return error["code"]


def test_a_request_is_answered_with_its_id(bench: Bench) -> None:
    sock = bench.connect()
    assert bench.call(sock, {"id": 7, "method": "echo", "params": {"a": [1, 2]}}) == {"id": 7, "result": {"a": [1, 2]}}
    assert bench.call(sock, {"id": "x", "method": "methods"}) == {
        "id": "x",
        "result": ["big", "echo", "methods", "refuse"],
    }


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"\n", "parse"),
        (b"{\n", "parse"),
        (b"\xff\xfe\n", "parse"),
        (b"[" * 30000 + b"\n", "parse"),
        (b"[]\n", "request"),
        (b"{}\n", "request"),
        (b'{"method": 3}\n', "request"),
        (b'{"method": "echo", "params": 3}\n', "request"),
        (b'{"method": "nothing"}\n', "method"),
        (b'{"method": "refuse", "params": {"qpn": 9}}\n', "params"),
    ],
)
def test_bad_requests_get_an_error_and_the_connection_lives(bench: Bench, line: bytes, code: str) -> None:
    sock = bench.connect()
    sock.sendall(line)
    assert error_code(json.loads(bench.receive(sock))) == code
    assert bench.call(sock, {"id": 1, "method": "echo"}) == {"id": 1, "result": {}}


def test_a_line_without_end_closes_the_connection(bench: Bench) -> None:
    sock = bench.connect()
    sock.sendall(b"x" * MAX_LINE)
    assert error_code(json.loads(bench.receive(sock))) == "line"
    assert bench.receive(sock) == b""
    assert bench.call(bench.connect(), {"method": "echo"})["result"] == {}


def test_requests_may_come_in_pieces_and_together(bench: Bench) -> None:
    sock = bench.connect()
    for byte in b'{"id": 1, "method": "echo"}':
        sock.send(bytes([byte]))
        bench.loop.run_once(0)
    sock.sendall(b'\n{"id": 2, "method": "echo"}\n{"id": 3, "meth')
    lines = bench.receive(sock).splitlines()
    while len(lines) < 2:
        lines += bench.receive(sock).splitlines()
    assert [json.loads(line)["id"] for line in lines] == [1, 2]


def test_a_client_that_does_not_read_holds_up_nobody(bench: Bench) -> None:
    lazy, other = bench.connect(), bench.connect()
    for number in range(5):
        lazy.sendall(json.dumps({"id": number, "method": "big"}).encode() + b"\n")
    for _ in range(10):
        bench.loop.run_once(0)
    assert bench.call(other, {"id": 1, "method": "echo"}) == {"id": 1, "result": {}}
    received = b""
    while received.count(b"\n") < 5:
        received += bench.receive(lazy)
    assert [json.loads(line)["id"] for line in received.splitlines()] == list(range(5))


def test_a_client_may_die_with_answers_on_the_way(bench: Bench) -> None:
    sock = bench.connect()
    sock.sendall(b'{"method": "big"}\n')
    bench.loop.run_once(0)
    sock.close()
    for _ in range(3):
        bench.loop.run_once(0)
    assert bench.call(bench.connect(), {"method": "echo"})["result"] == {}


def test_only_so_many_clients(bench: Bench) -> None:
    for _ in range(MAX_CLIENTS):
        bench.connect()
    assert bench.receive(bench.connect()) == b""


def test_a_method_is_registered_once(bench: Bench) -> None:
    with pytest.raises(ValueError, match="'echo'"):
        bench.control.register("echo", lambda _: None)
