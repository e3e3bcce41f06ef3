from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from softhca.vfio_user.listener import Listener
from tests.vfio_user.conftest import open_fds


def test_the_socket_is_its_owners_alone_and_goes_with_the_listener(tmp_path: Path) -> None:
    before = open_fds()
    listener = Listener(tmp_path / "s")
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600
    assert listener.accept() is None
    listener.close()
    assert not (tmp_path / "s").exists()
    assert open_fds() == before


def test_a_socket_that_nobody_listens_on_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(os.fspath(tmp_path / "s"))
    listener = Listener(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(os.fspath(tmp_path / "s"))
        accepted = listener.accept()
        assert accepted is not None
        accepted.close()
    listener.close()


def test_a_socket_in_use_is_left_alone(tmp_path: Path) -> None:
    first = Listener(tmp_path / "s")
    before = open_fds()
    with pytest.raises(FileExistsError, match="another process listens"):
        Listener(tmp_path / "s")
    assert open_fds() == before
    accepted = first.accept()
    assert accepted is not None
    accepted.close()
    first.close()


def test_anything_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("precious")
    with pytest.raises(FileExistsError, match="not a socket"):
        Listener(tmp_path / "s")
    assert (tmp_path / "s").read_text() == "precious"


def test_a_path_too_long_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="longer than 107 bytes"):
        Listener(tmp_path / ("x" * 107))


def test_a_missing_folder_leaves_nothing_open(tmp_path: Path) -> None:
    before = open_fds()
    with pytest.raises(FileNotFoundError, match="no/s"):
        Listener(tmp_path / "no" / "s")
    assert open_fds() == before


def test_the_file_of_another_listener_is_not_removed(tmp_path: Path) -> None:
    first = Listener(tmp_path / "s")
    (tmp_path / "s").unlink()
    second = Listener(tmp_path / "s")
    first.close()
    assert (tmp_path / "s").exists()
    second.close()
    second.close()
