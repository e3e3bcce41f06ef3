from __future__ import annotations

import threading
from pathlib import Path

import pytest

from softhca.guest.cache import Cache, default_root, key_of


def test_an_artefact_is_made_once(tmp_path: Path) -> None:
    cache, made = Cache(tmp_path), []

    def make(work: Path) -> None:
        made.append(work)
        (work / "file").write_text("x")

    first = cache.obtain("kind", "key", make)
    assert cache.obtain("kind", "key", make) == first == tmp_path / "kind-key"
    assert len(made) == 1
    assert [path.name for path in cache.artefacts()] == ["kind-key"]


def test_a_failed_artefact_leaves_nothing(tmp_path: Path) -> None:
    cache = Cache(tmp_path)

    def make(work: Path) -> None:
        (work / "file").write_text("x")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        cache.obtain("kind", "key", make)
    assert cache.artefacts() == []
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".kind-key.abc123").mkdir()
    (tmp_path / ".other-key.abc123").mkdir()
    Cache(tmp_path).obtain("kind", "key", lambda work: None)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [".other-key.abc123", "kind-key"]


def test_two_builders_make_one(tmp_path: Path) -> None:
    said: list[str] = []
    cache = Cache(tmp_path, said.append)
    started, go_on, made = threading.Event(), threading.Event(), []

    def slow(work: Path) -> None:
        started.set()
        go_on.wait(30)
        made.append("slow")

    def never(work: Path) -> None:
        made.append("never")

    first = threading.Thread(target=cache.obtain, args=("kind", "key", slow))
    first.start()
    started.wait(30)
    second = threading.Thread(target=cache.obtain, args=("kind", "key", never))
    second.start()
    while not said:
        second.join(0.01)
    go_on.set()
    first.join()
    second.join()
    assert made == ["slow"]
    assert said == ["waiting for kind-key, which is in use"]


def test_clean(tmp_path: Path) -> None:
    cache = Cache(tmp_path)

    def make(work: Path) -> None:
        (work / "sealed").mkdir()
        (work / "sealed/file").write_text("x")
        (work / "sealed").chmod(0o555)

    cache.obtain("kind", "key", make)
    assert cache.clean() == 1
    assert list(tmp_path.iterdir()) == []


def test_keys_depend_on_every_input() -> None:
    assert key_of("a", [1, 2]) == key_of("a", [1, 2])
    assert len({key_of("a", [1, 2]), key_of("a", [2, 1]), key_of("a"), key_of("b", [1, 2])}) == 4


def test_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_root() == tmp_path / "softhca"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert default_root() == Path("/home/someone/.cache/softhca")
