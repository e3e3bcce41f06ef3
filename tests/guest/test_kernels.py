from __future__ import annotations

from pathlib import Path

import pytest

from softhca.guest import accelerator, kernels, userland
from softhca.guest.errors import LabError


def test_names() -> None:
    assert kernels.parse("stable") is None
    assert kernels.parse("newest") is None


def test_paths(tmp_path: Path) -> None:
    image, folder = tmp_path / "a:b", tmp_path / "6.1"
    image.write_bytes(b"x")
    folder.mkdir()
    assert kernels.parse(f"{image}:{folder}") == (image, folder)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("oldest", "allowed are stable, newest or VMLINUZ:MODULES_DIR"),
        ("/none:/", "there is no file /none"),
        (f"{__file__}:/none", "there is no folder /none"),
    ],
)
def test_mistakes(choice: str, message: str) -> None:
    with pytest.raises(LabError, match=message):
        kernels.parse(choice)


def test_the_key_follows_the_files(tmp_path: Path) -> None:
    image, folder = tmp_path / "vmlinuz", tmp_path / "6.1"
    image.write_bytes(b"x")
    (folder / "kernel").mkdir(parents=True)
    (folder / "kernel/a.ko").write_bytes(b"1")
    choice = f"{image}:{folder}"
    before = kernels.key(choice)
    assert kernels.key(choice) == before
    (folder / "kernel/a.ko").write_bytes(b"22")
    assert kernels.key(choice) != before
    assert kernels.key("stable") != kernels.key("newest")


def test_more_packages_are_another_image() -> None:
    assert userland.key([]) != userland.key(["strace"])
    assert userland.key(["a", "b"]) == userland.key(["b", "a", "a"])


def test_an_image_without_a_needed_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/sbin").mkdir()
    for program in userland.REQUIRED_PROGRAMS:
        (tmp_path / "usr/bin" / program).touch()
    suite = tmp_path / userland.PYVERBS_TESTS
    suite.mkdir(parents=True)
    (suite / "test_cq.py").touch()
    userland.check(tmp_path)
    (tmp_path / "usr/bin/ibv_rc_pingpong").unlink()
    with pytest.raises(LabError, match="lacks ibv_rc_pingpong"):
        userland.check(tmp_path)


def test_kvm_needs_more_than_a_node(tmp_path: Path) -> None:
    assert not accelerator.kvm_usable(tmp_path / "none")
    (tmp_path / "file").touch()
    assert not accelerator.kvm_usable(tmp_path / "file")
