from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest
from softhca.driver.errors import CommandFailed

def test_driver(driver):
    driver.create_pd()

@pytest.mark.softhca(profile="connectx-7-ib", seed=5)
def test_marker(hca):
    assert hca.card.profile.name == "connectx-7-ib"

def test_pair(hca_pair):
    first, second = hca_pair
    assert first.card.port.lid != second.card.port.lid
    assert first.engine is second.engine

def test_fault(driver, fault):
    (rule,) = fault("command=ALLOC_PD nth=2 status=NO_RESOURCES")
    driver.create_pd()
    with pytest.raises(CommandFailed, match="NO_RESOURCES"):
        driver.create_pd()
    assert rule.fired == 1

def test_time(hca, fault):
    fault("at=5s raise=FW_INTERNAL_ERR fatal")
    hca.engine.wait(lambda: False, 6_000_000_000)
    assert hca.card.bar_read(0, 0x23D, 1) == b"\\x01"
"""


def run(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(text)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test_it.py"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_the_fixtures_need_no_import(tmp_path: Path) -> None:
    done = run(tmp_path, TESTS, "--strict-markers")
    assert "5 passed" in done.stdout, done.stdout


def test_a_failed_test_shows_its_trace(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        "def test_it(driver, fault):\n    fault('command=ALLOC_PD status=BAD_PARAM')\n    driver.create_pd()\n",
    )
    assert "1 failed" in done.stdout
    assert "- softhca trace -" in done.stdout
    assert "< ALLOC_PD" in done.stdout
    assert "FAILED: BAD_PARAM, syndrome 0xca010030" in done.stdout


def test_a_driver_that_leaves_something_behind_fails(tmp_path: Path) -> None:
    text = "from softhca.driver.memory import Buffer\ndef test_it(driver, hca):\n    hca.host.allocate(10)\n"
    done = run(tmp_path, text)
    assert "1 allocations of the driver were not freed" in done.stdout


@pytest.mark.parametrize(
    ("marker", "says"),
    [
        ('profile="nothing"', "nothing"),
        ('profil="connectx-7-ib"', "allowed are profile, seed, clock"),
        ('clock="none"', "allowed are 'virtual' and 'real'"),
    ],
)
def test_a_wrong_marker_is_refused(tmp_path: Path, marker: str, says: str) -> None:
    done = run(tmp_path, f"import pytest\n@pytest.mark.softhca({marker})\ndef test_it(hca):\n    pass\n")
    assert done.returncode != 0
    assert says in done.stdout + done.stderr


@pytest.mark.guest
def test_the_real_driver_in_a_guest_with_a_fault(tmp_path: Path) -> None:
    text = """
def test_it(guest, fault):
    fault("command=QUERY_HCA_VPORT_PKEY nth=5 status=NO_RESOURCES")
    found = guest("dmesg | grep -w 0xca010030; ibv_devinfo", allow_kernel=["driver"])
    assert "QUERY_HCA_VPORT_PKEY(0x765)" in found.output
    assert (found.verdict, "No IB devices found" in found.output + found.error) == ("command", True)
    assert found.devices[0]["failed_commands"] == {"QUERY_HCA_VPORT_PKEY": 1}
"""
    done = run(tmp_path, text)
    assert "1 passed" in done.stdout, done.stdout
