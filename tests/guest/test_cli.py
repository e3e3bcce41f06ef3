from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from softhca.cli import guest as cli
from softhca.guest.options import Options
from softhca.guest.verdict import Outcome, Verdict
from softhca.hca.device import Hca


class _Runs:
    """Takes the place of real runs and remembers how they were asked for."""

    def __init__(self) -> None:
        self.calls: list[tuple[Options, str, int, str | None]] = []
        self.guests: list[int | None] = []
        self.outcomes = [Outcome(status=0)]

    def run(
        self, options: Options, cards: list[Hca], guests: int | None, control: Path | None, script: str | None
    ) -> Verdict:
        self.calls.append((options, cards[0].profile.name, len(cards), script))
        self.guests.append(guests)
        return Verdict(self.outcomes)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> _Runs:
    runs = _Runs()
    monkeypatch.setattr(cli, "_run", runs.run)
    return runs


def _call(*arguments: str, **more: Any) -> Result:
    return CliRunner().invoke(cli.guest, list(arguments), prog_name="softhca guest", **more)


@pytest.mark.parametrize(
    ("arguments", "script"),
    [
        (["--", "ibv_devices"], "ibv_devices"),
        (["--", "dmesg | grep mlx5"], "dmesg | grep mlx5"),
        (["--", "bash", "test.sh", "-e"], "bash test.sh -e"),
        (["--", "sh", "-c", "echo 'a b'"], "sh -c 'echo '\"'\"'a b'\"'\"''"),
        (["--", "build"], "build"),
        (["--", "prog", "--", "x"], "prog -- x"),
        (["--devices", "2", "--", "--help"], "--help"),
    ],
)
def test_the_command(runs: _Runs, arguments: list[str], script: str) -> None:
    assert _call(*arguments).exit_code == 0
    assert runs.calls[0][3] == script


def test_without_a_command_and_a_terminal_the_script_comes_from_standard_input(runs: _Runs) -> None:
    assert _call(input="echo a\n").exit_code == 0
    assert runs.calls[0][3] == "echo a\n"


def test_options(runs: _Runs) -> None:
    words = (
        "--profile connectx-5-ib --devices 3 --kernel newest --packages a,b --packages c --memory 2048 "
        "--boot --mirror http://m "
    )
    words += "--timeout 9 --grace 8 --keep k --copy-in x --copy-in y --copy-out g:h:i --no-modules "
    words += "--allow-kernel driver -- true"
    assert _call(*words.split()).exit_code == 0
    options, profile, count, _ = runs.calls[0]
    assert (profile, count) == ("connectx-5-ib", 3)
    assert options == Options(
        kernel="newest",
        packages=["c"],
        memory=2048,
        boot=True,
        mirror="http://m",
        timeout=9.0,
        grace=8.0,
        keep=Path("k"),
        copy_in=[Path("x"), Path("y")],
        copy_out=[("g", Path("h:i"))],
        load_modules=False,
        allow_kernel=["driver"],
    )


def test_the_exit_status_and_the_verdict(runs: _Runs, tmp_path: Path) -> None:
    runs.outcomes[0] = Outcome(status=3)
    assert _call("--json", str(tmp_path / "v"), "--", "x").exit_code == 3
    assert json.loads((tmp_path / "v").read_text())["verdict"] == "command"


def test_a_lab_failure_says_why(runs: _Runs) -> None:
    runs.outcomes[0] = Outcome(lab_error="QEMU is ill")
    done = _call("--", "x")
    assert done.exit_code == 125
    assert "the lab failed: QEMU is ill" in done.output


def test_several_guests(runs: _Runs) -> None:
    assert _call("--guests", "3", "--devices", "2", "--", "true").exit_code == 0
    assert (runs.guests, runs.calls[0][2]) == ([3], 6)


def test_each_guest_that_failed_is_named(runs: _Runs) -> None:
    stopped = Outcome(stopped="ended 30 s after guest 1 has failed with status 3")
    runs.outcomes = [stopped, Outcome(status=3), Outcome(status=0)]
    done = _call("--guests", "3", "--", "x")
    assert done.exit_code == 3
    assert "guest 0: ended 30 s after guest 1 has failed with status 3" in done.output
    assert "guest 1: the command's exit status was 3" in done.output
    assert "guest 2" not in done.output


def test_a_reason_that_all_guests_share_is_told_once(runs: _Runs) -> None:
    runs.outcomes = [Outcome(lab_error="no network") for _ in range(3)]
    done = _call("--guests", "3", "--", "x")
    assert done.exit_code == 125
    assert done.output.count("no network") == 1


def test_a_shell_is_for_one_guest(runs: _Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_script", lambda words: None)
    done = _call("--guests", "2")
    assert (done.exit_code, runs.calls) == (2, [])
    assert "a shell is for one guest" in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ibv_devices"], "-- ibv_devices"),
        (["--"], "a command has to follow"),
        (["build", "--", "x"], "takes no command"),
        (["--devices", "17", "--", "x"], "17"),
        (["--guests", "17", "--", "x"], "17"),
        (["--guests", "0", "--", "x"], "0 is not in"),
        (["--grace", "0", "--", "x"], "not a number above 0"),
        (["--copy-out", "only", "--", "x"], "GUESTFILE:HOSTFILE"),
        (["--timeout", "nan", "--", "x"], "not a number above 0"),
        (["--timeout", "0", "--", "x"], "not a number above 0"),
        (["--json", "/none/verdict.json", "--", "x"], "there is no folder /none"),
        (["--kernel", "newest", "build"], "--kernel has to follow build"),
    ],
)
def test_mistakes_are_explained(runs: _Runs, arguments: list[str], message: str) -> None:
    done = _call(*arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert runs.calls == []


def test_a_control_socket_that_cannot_be_is_explained() -> None:
    done = _call("--control", "/none/socket", "--", "x")
    assert done.exit_code == 2
    assert "/none/socket" in done.output


def test_a_verdict_that_cannot_be_written_is_explained(runs: _Runs, tmp_path: Path) -> None:
    file = tmp_path / "verdict"
    file.symlink_to(tmp_path / "none/verdict")
    done = _call("--json", str(file), "--", "x")
    assert done.exit_code == 125
    assert "the verdict 'ok' cannot be written" in done.output


@pytest.mark.parametrize("command", ["info", "clean", "build"])
def test_a_cache_that_cannot_be_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    done = _call(command)
    assert done.exit_code == 125
    assert f"the lab failed: [Errno 20] Not a directory: '{tmp_path}/file/softhca'" in done.output


def test_info(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "softhca/kernel-abc").mkdir(parents=True)
    (tmp_path / "softhca/kernel-abc/kernel").write_bytes(b"x" * 5000)
    answer = json.loads(_call("info", "--json").output)
    assert answer["cache"] == str(tmp_path / "softhca")
    assert answer["accelerator"] in ("kvm", "tcg")
    assert [part["name"] for part in answer["parts"]] == ["kernel-abc"]
    assert answer["parts"][0]["bytes"] >= 5000


def test_clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "softhca/kernel-abc").mkdir(parents=True)
    assert "1 parts removed" in _call("clean").output
    assert not list((tmp_path / "softhca").iterdir())
