from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from softhca.bus import Engine
from softhca.cli import serve as module
from softhca.cli.serve import qemu_arguments, serve
from tests.vfio_user.conftest import Card, open_fds

MILLISECOND = 1_000_000


class Summarized(Card):
    def summary(self) -> dict[str, object]:
        return {"profile": "test"}


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Summarized:
    card = Summarized(Engine())
    monkeypatch.setattr(module, "build_cards", lambda profile, count: [card])
    return card


def test_the_arguments_that_qemu_was_seen_to_work_with() -> None:
    arguments = qemu_arguments(Path("/run/hca.sock"))
    assert "memory-backend-memfd,id=mem,size=1G,share=on" in arguments
    assert json.loads(arguments[-1]) == {
        "driver": "vfio-user-pci",
        "socket": {"path": "/run/hca.sock", "type": "unix"},
    }


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal(card: Summarized, tmp_path: Path, number: int) -> None:
    before, handlers = open_fds(), [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    path, control = tmp_path / "hca.sock", tmp_path / "hca.ctl"
    question = socket.socket(socket.AF_UNIX)
    client = socket.socket(socket.AF_UNIX)

    def ask() -> None:
        client.connect(os.fspath(path))
        question.connect(os.fspath(control))
        question.sendall(b'{"id": 1, "method": "summary"}\n')
        card.engine.after(20 * MILLISECOND, lambda: os.kill(os.getpid(), number))

    card.engine.post(ask)
    result = CliRunner().invoke(serve, ["--socket", str(path), "--control", str(control)])
    assert result.exit_code == 0, result.output
    assert str(path) in result.output
    assert "vfio-user-pci" in result.output
    answer = json.loads(question.recv(4096))
    assert answer["result"]["device"] == {"profile": "test"}
    assert answer["result"]["socket"] == str(path)
    question.close()
    client.close()
    assert not path.exists()
    assert not control.exists()
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert open_fds() == before


def test_a_socket_that_cannot_be_is_told_in_a_line(card: Summarized, tmp_path: Path) -> None:
    before = open_fds()
    (tmp_path / "hca.sock").write_text("precious")
    result = CliRunner().invoke(serve, ["--socket", str(tmp_path / "hca.sock")])
    assert result.exit_code == 1
    assert "not a socket" in result.output
    result = CliRunner().invoke(serve, ["--socket", str(tmp_path / "no" / "hca.sock")])
    assert result.exit_code == 1
    assert str(tmp_path / "no" / "hca.sock") in result.output
    assert open_fds() == before
