from __future__ import annotations

from pathlib import Path

import pytest

from softhca.guest.errors import LabError
from softhca.guest.mirror import Source, find_mirror, parse_deb822, parse_one_line

_ONE_LINE = """\
# deb http://comment.example/debian bookworm main
deb [arch=amd64 signed-by=/usr/share/keyrings/k.gpg] http://vendor.example/apt stable contrib
deb-src http://mirror.example/debian bookworm main
  deb   http://mirror.example/debian/   bookworm main contrib  # the archive
"""

_DEB822 = """\
# a comment
Types: deb deb-src
URIs: http://one.example/debian
  http://two.example/debian
Suites: trixie
 trixie-updates
# in between
Components: main

Types: deb
URIs: http://off.example/debian
Suites: trixie
Components: main
Enabled: no

Types: deb-src
URIs: http://source.example/debian
Suites: trixie
Components: main
"""


def test_one_line_format() -> None:
    assert list(parse_one_line(_ONE_LINE)) == [
        Source("http://vendor.example/apt", ("stable",), ("contrib",)),
        Source("http://mirror.example/debian/", ("bookworm",), ("main", "contrib")),
    ]


def test_deb822_format() -> None:
    assert list(parse_deb822(_DEB822)) == [
        Source("http://one.example/debian", ("trixie", "trixie-updates"), ("main",)),
        Source("http://two.example/debian", ("trixie", "trixie-updates"), ("main",)),
    ]


def _machine(folder: Path, codename: str, distribution: str = "debian") -> tuple[Path, Path]:
    etc = folder / "apt"
    (etc / "sources.list.d").mkdir(parents=True)
    release = folder / "os-release"
    release.write_text(f'PRETTY_NAME="X"\nID={distribution}\nVERSION_CODENAME={codename}\n')
    return etc, release


def test_the_archive_of_the_machines_own_suite_is_taken(tmp_path: Path) -> None:
    etc, release = _machine(tmp_path, "bookworm")
    (etc / "sources.list").write_text(_ONE_LINE)
    assert find_mirror(etc, release) == "http://mirror.example/debian"


def test_sources_files_are_read(tmp_path: Path) -> None:
    etc, release = _machine(tmp_path, "trixie")
    (etc / "sources.list.d/a.list").write_text("deb http://vendor.example/x stable main\n")
    (etc / "sources.list.d/debian.sources").write_text(_DEB822)
    (etc / "sources.list.d/notes.txt").write_text("deb http://wrong.example/debian trixie main\n")
    assert find_mirror(etc, release) == "http://one.example/debian"


def test_a_list_of_mirrors_as_cloud_images_have_it_is_taken(tmp_path: Path) -> None:
    etc, release = _machine(tmp_path, "trixie")
    text = "Types: deb deb-src\nURIs: mirror+file:///etc/apt/mirrors/debian.list\nSuites: trixie\nComponents: main\n"
    (etc / "sources.list.d/debian.sources").write_text(text)
    assert find_mirror(etc, release) == "mirror+file:///etc/apt/mirrors/debian.list"


@pytest.mark.parametrize(("codename", "distribution"), [("forky", "debian"), ("bookworm", "other")])
def test_without_a_mirror_the_error_names_the_option(tmp_path: Path, codename: str, distribution: str) -> None:
    etc, release = _machine(tmp_path, codename, distribution)
    (etc / "sources.list").write_text(_ONE_LINE)
    with pytest.raises(LabError, match="--mirror"):
        find_mirror(etc, release)


def test_a_machine_without_apt(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="--mirror"):
        find_mirror(tmp_path / "none", tmp_path / "os-release")
