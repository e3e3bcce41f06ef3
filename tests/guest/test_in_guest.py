"""Boots real guests; see conftest.py for how to leave these out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from softhca.guest import kernels
from softhca.guest.progress import to_stderr
from tests.guest.conftest import Done, Guest

pytestmark = [pytest.mark.guest, pytest.mark.timeout(600)]

_TOOLS = Path(__file__).parents[2] / "tools"


def _assert_ok(done: Done) -> None:
    assert (done.status, done.verdict["verdict"]) == (0, "ok"), f"{done.verdict}\n{done.output}\n{done.error}"


@pytest.mark.parametrize("way", [[], ["--profile", "connectx-5-ib", "--boot"], ["--profile", "connectx-7-ib"]])
def test_the_real_driver_moves_data(guest: Guest, way: list[str]) -> None:
    script = "bash guest_pingpong.sh && bash guest_pingpong.sh -e && modprobe -r mlx5_ib mlx5_core"
    done = guest(*way, "--copy-in", str(_TOOLS / "guest_pingpong.sh"), "--", script)
    _assert_ok(done)
    assert done.output.count("1000 iters") == 4
    assert ("booting" in done.error) == ("--boot" in way)
    (device,) = done.verdict["devices"]
    assert device["failed_commands"] == {}
    assert device["pages_outstanding"] == 0
    assert device["teardowns"] == [{"pages_outstanding": 0, "objects": 0}]


@pytest.mark.parametrize("choice", ["newest", "by path"])
def test_other_kernels(guest: Guest, choice: str) -> None:
    kernel = choice
    if choice == "by path":
        image, folder = kernels.unpacked("linux-image-cloud-amd64", progress=to_stderr)
        kernel = f"{image}:{folder}"
    script = "uname -r; bash guest_pingpong.sh"
    done = guest("--kernel", kernel, "--copy-in", str(_TOOLS / "guest_pingpong.sh"), "--", script)
    _assert_ok(done)
    assert done.output.count("1000 iters") == 2
    assert ("-cloud-" in done.output.splitlines()[0]) == (choice == "by path")


def test_the_modules_are_loaded_twenty_times(guest: Guest) -> None:
    script = "for i in $(seq 20); do modprobe -r mlx5_ib mlx5_core && modprobe mlx5_ib || exit 1; done"
    done = guest("--", script)
    _assert_ok(done)
    assert done.verdict["devices"][0]["teardowns"] == [{"pages_outstanding": 0, "objects": 0}] * 20


def test_two_devices(guest: Guest) -> None:
    done = guest("--devices", "2", "--", "ibv_devices")
    _assert_ok(done)
    assert re.findall(r"mlx5_\d", done.output) == ["mlx5_0", "mlx5_1"]
    assert len(done.verdict["devices"]) == 2


def test_what_a_command_prints_and_its_status_and_files_come_through(guest: Guest, tmp_path: Path) -> None:
    data = bytes(range(256)) * 4096
    (tmp_path / "in.bin").write_bytes(data)
    (tmp_path / "tool.sh").write_text("#!/bin/bash\n")
    (tmp_path / "tool.sh").chmod(0o755)
    script = 'cat in.bin in.bin > out.bin; echo "to output"; echo "to error" >&2; [ -x tool.sh ] && exit 42'
    files = ["--copy-in", str(tmp_path / "in.bin"), "--copy-in", str(tmp_path / "tool.sh")]
    files += ["--copy-out", f"out.bin:{tmp_path / 'out.bin'}"]
    done = guest("--devices", "0", *files, "--", script)
    assert (done.status, done.verdict["verdict"]) == (42, "command")
    assert (done.output, done.error) == ("to output\n", "to error\n")
    assert (tmp_path / "out.bin").read_bytes() == data * 2


def test_a_command_that_takes_too_long(guest: Guest, tmp_path: Path) -> None:
    keep = ["--keep", str(tmp_path / "logs")]
    done = guest("--devices", "0", "--timeout", "1", *keep, "--", "echo begun; sleep 1000")
    assert (done.status, done.verdict["verdict"]) == (124, "timeout")
    assert done.output == "begun\n"
    assert {"console.log", "kernel.log", "qemu.log"} <= {path.name for path in (tmp_path / "logs").iterdir()}


@pytest.mark.parametrize("allowed", [False, True])
def test_a_kernel_that_dies(guest: Guest, allowed: bool, tmp_path: Path) -> None:
    allow = ["--allow-kernel", "fatal"] if allowed else []
    script = "echo 1 > /proc/sys/kernel/sysrq; echo c > /proc/sysrq-trigger; sleep 1000"
    done = guest("--devices", "0", "--keep", str(tmp_path), *allow, "--", script)
    if allowed:
        assert (done.status, done.verdict["verdict"]) == (125, "lab")
        return
    assert (done.status, done.verdict["verdict"]) == (126, "kernel")
    assert any("Kernel panic" in complaint["line"] for complaint in done.verdict["kernel_complaints"])


def test_two_guests_do_not_share_randomness_and_know_the_time(guest: Guest) -> None:
    script = "od -N 16 -A n -t x1 /dev/urandom; date +%s; getent hosts localhost"
    first, second = (guest("--devices", "0", "--", script).output.splitlines() for _ in range(2))
    assert first[0] != second[0]
    assert 0 < int(second[1]) - int(first[1]) < 60


def test_an_option_that_the_lab_cannot_follow(guest: Guest) -> None:
    done = guest("--devices", "0", "--copy-in", "/none", "--", "true")
    assert (done.status, done.verdict["verdict"]) == (125, "lab")
    assert "--copy-in /none" in done.error
