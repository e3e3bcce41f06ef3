from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from softhca.cli.run import run
from tests.wire.test_pcapng import TSHARK

DEVICE_FULL = "/dev/full"


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(run, [*arguments, "--clock", "virtual"])


def tshark(path: Path, *arguments: str) -> list[str]:
    command: Sequence[str] = [*TSHARK, "-r", str(path), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.requirement("C11")
def test_a_run_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "run.pcapng"
    result = invoke("--pcap", str(path))
    assert result.exit_code == 0, result.output
    opcodes = tshark(path, "-T", "fields", "-e", "infiniband.bth.opcode")
    assert f"{len(opcodes)} packets" in result.output
    assert opcodes.count("17") == 2, "an acknowledge of the WRITE, one of the SEND"
    assert tshark(path, "-Y", "_ws.malformed") == []


def test_the_registered_link_type(tmp_path: Path) -> None:
    path = tmp_path / "run.pcapng"
    assert invoke("--pcap", str(path), "--pcap-link", "infiniband").exit_code == 0
    assert set(tshark(path, "-T", "fields", "-e", "frame.encap_type")) == {"146"} or tshark(path)
    assert path.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"


def test_an_ethernet_card_is_refused(tmp_path: Path) -> None:
    result = invoke("--profile", "connectx-7-eth", "--pcap", str(tmp_path / "x"))
    assert result.exit_code == 2
    assert "InfiniBand" in result.output


def test_a_file_that_cannot_be_is_refused(tmp_path: Path) -> None:
    result = invoke("--pcap", str(tmp_path / "none" / "x"))
    assert result.exit_code == 1
    assert "--pcap" in result.output


def test_a_full_disk_ends_the_recording_alone() -> None:
    result = invoke("--pcap", DEVICE_FULL)
    assert result.exit_code == 0, result.output
    assert "ended early" in result.output
    assert "0 pages outstanding" in result.output
