from __future__ import annotations

import os
import signal
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from softhca.cli import run as run_module
from softhca.cli.run import run
from softhca.driver import Driver
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
    data = path.read_bytes()
    (section,) = struct.unpack_from("<I", data, 4)
    kind, _, link_type = struct.unpack_from("<IIH", data, section)
    assert (kind, link_type) == (1, 247), "the interface's description and LINKTYPE_INFINIBAND"
    assert len(tshark(path)) > 0


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


def test_sigterm_ends_the_recording_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before, path, play = signal.getsignal(signal.SIGTERM), tmp_path / "run.pcapng", run_module.play

    def interrupted(driver: Driver, story: run_module.Story) -> None:
        play(driver, story)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(run_module, "play", interrupted)
    result = invoke("--pcap", str(path))
    assert result.exit_code == 128 + signal.SIGTERM
    assert f"{len(tshark(path))} packets" in result.output
    assert signal.getsignal(signal.SIGTERM) is before
