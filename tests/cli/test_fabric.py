from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from softhca.cli import fabric as module
from softhca.cli.cards import build_cards
from softhca.cli.fabric import fabric
from softhca.hca.device import Hca
from tests.vfio_user.conftest import open_fds

MILLISECOND = 1_000_000


def test_each_card_has_a_socket_and_addresses_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = open_fds()
    paths = [tmp_path / name for name in ("a", "b", "c")]
    control = tmp_path / "control"
    clients = [socket.socket(socket.AF_UNIX) for _ in range(4)]
    made: list[Hca] = []

    def build(profile: str, count: int) -> list[Hca]:
        made.extend(build_cards(profile, count))
        made[0].engine.post(ask)
        return made

    def ask() -> None:
        for client, path in zip(clients, [*paths, control], strict=True):
            client.connect(os.fspath(path))
        clients[3].sendall(b'{"id": 1, "method": "summary"}\n')
        made[0].engine.after(50 * MILLISECOND, lambda: os.kill(os.getpid(), signal.SIGTERM))

    monkeypatch.setattr(module, "build_cards", build)
    words = [word for path in paths for word in ("--socket", str(path))]
    result = CliRunner().invoke(fabric, [*words, "--control", str(control)])
    assert result.exit_code == 0, result.output
    answer = json.loads(clients[3].recv(1 << 16))
    assert [device["socket"] for device in answer["result"]["devices"]] == [str(path) for path in paths]
    assert [card.port.lid for card in made] == [1, 2, 3]
    assert len({card.port.guid for card in made}) == 3
    assert len({id(card.fabric) for card in made}) == 1
    for number, path in enumerate(paths, 1):
        assert f"LID {number}, GUID" in result.output
        assert str(path) in result.output
    for client in clients:
        client.close()
    assert not any(path.exists() for path in [*paths, control])
    assert open_fds() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--socket"),
        (["--socket", "/tmp/x", "--socket", "/tmp/x"], "a socket of its own"),
        (["--socket", "/tmp/x", "--profile", "none"], "none"),
        (["--socket", "/tmp/x", "--profile", "connectx-6dx-eth"], "InfiniBand cards alone"),
    ],
)
def test_mistakes_are_explained(words: list[str], message: str) -> None:
    result = CliRunner().invoke(fabric, words)
    assert result.exit_code == 2
    assert message in result.output
