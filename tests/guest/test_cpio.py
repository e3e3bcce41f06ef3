from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from softhca.guest import cpio

_TRAILER = b"070701" + b"0" * 32 + b"00000001" + b"0" * 48 + b"0000000B" + b"0" * 8 + b"TRAILER!!!\0\0\0\0"


def test_bytes_of_a_file() -> None:
    member = cpio.archive([cpio.file("a", b"hi")])
    fields = [member[6 + 8 * i : 14 + 8 * i] for i in range(13)]
    assert member[:6] == b"070701"
    assert [int(field, 16) for field in fields] == [1, 0o100644, 0, 0, 1, 0, 2, 0, 0, 0, 0, 2, 0]
    assert member[110:112] == b"a\0"
    assert member[112:116] == b"hi\0\0"


def test_the_end_is_the_trailer() -> None:
    assert cpio.archive([]) == _TRAILER


def test_every_member_starts_at_a_multiple_of_four() -> None:
    names = ["a", "ab", "abc", "abcd", "abcde"]
    packed = cpio.archive([cpio.file(name, b"x" * size) for size, name in enumerate(names)])
    starts = [at for at in range(len(packed)) if packed.startswith(b"070701", at)]
    assert len(starts) == len(names) + 1
    assert all(start % 4 == 0 for start in starts)


def test_kinds_of_entries() -> None:
    assert cpio.folder("d").mode == 0o40755
    assert cpio.symlink("l", "target") == cpio.Entry("l", 0o120777, b"target")
    assert cpio.character_device("c", 5, 1) == cpio.Entry("c", 0o20600, device=(5, 1))


def test_another_program_reads_it(tmp_path: Path) -> None:
    program = shutil.which("cpio") or shutil.which("bsdtar")
    if program is None:
        pytest.skip("no program of another author that reads cpio is installed")
    packed = cpio.archive([cpio.folder("d"), cpio.file("d/f", b"content", 0o755), cpio.symlink("l", "d/f")])
    options = ["-i", "--quiet"] if program.endswith("cpio") else ["-x", "-f", "-"]
    subprocess.run([program, *options], input=packed, cwd=tmp_path, check=True)
    assert (tmp_path / "d/f").read_bytes() == b"content"
    assert (tmp_path / "l").resolve() == tmp_path / "d/f"
