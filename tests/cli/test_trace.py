from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from softhca.cli import run as run_module
from softhca.cli.run import run
from softhca.cli.trace import trace
from softhca.driver import Driver

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FAULT = ("--fault", "command=CREATE_CQ nth=2 status=NO_RESOURCES")


def record(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(run, ["--clock", "virtual", "--trace", str(path), *arguments])


def read(*arguments: str) -> Result:
    return CliRunner().invoke(trace, list(arguments))


class Failures(HTMLParser):
    """Rows of failed commands of a report, and what the page would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[dict[str, str | None]] = []
        self.loaded: list[str | None] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "tr" and "failed" in (found.get("class") or ""):
            self.rows.append(found)
        if tag in ("script", "img", "link", "iframe"):
            self.loaded.append(found.get("src") or found.get("href"))


@pytest.mark.requirement("D7")
def test_a_seed_on_the_virtual_clock_gives_the_same_bytes_and_another_one_another_order(tmp_path: Path) -> None:
    first, again, other = (tmp_path / name for name in ("first", "again", "other"))
    for path, seed in ((first, "1"), (again, "1"), (other, "2")):
        assert record(path, "--seed", seed).exit_code == 0
    assert first.read_bytes() == again.read_bytes()

    def order(path: Path) -> list[int]:
        lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
        return [
            line["slot"] for line in lines if line["point"] == "command.completed" and line["command"] == "QUERY_QP"
        ]

    assert sorted(order(first)) == sorted(order(other))
    assert order(first) != order(other)


def test_the_story_tells_of_stages_commands_and_pages(tmp_path: Path) -> None:
    path = tmp_path / "t"
    record(path)
    text = read("show", str(path)).output
    assert "== initialise: HCA initialised" in text
    assert "> CREATE_EQ" in text
    assert "16 pages are given" in text
    assert "FAILED" not in text


def test_failed_commands_alone(tmp_path: Path) -> None:
    path = tmp_path / "t"
    record(path, *FAULT)
    (line,) = read("show", "--failed", str(path)).output.strip().splitlines()
    assert "CREATE_CQ" in line
    assert "NO_RESOURCES, syndrome 0xca010030: a fault rule made the command fail" in line


def test_filters(tmp_path: Path) -> None:
    path = tmp_path / "t"
    record(path)
    assert {line.split()[2] for line in read("show", "--point", "pages", str(path)).output.splitlines()} == {
        "16",
        "64",
        "80",
    }
    assert "ALLOC_PD" in read("show", "--command", "ALLOC_PD", str(path)).output
    assert read("show", "--card", "1", str(path)).output == ""
    assert "there are command.received" in read("show", "--point", "nothing", str(path)).output
    assert "no command of the manual" in read("show", "--command", "NOTHING", str(path)).output


def test_a_parser_finds_the_failed_command_of_a_report(tmp_path: Path) -> None:
    path, page = tmp_path / "t", tmp_path / "t.html"
    record(path, *FAULT)
    assert read("export", "html", str(path), str(page)).exit_code == 0
    found = Failures(page.read_text())
    assert {row["data-opcode"] for row in found.rows} == {"CREATE_CQ"}
    assert found.rows[0]["data-status"] == "NO_RESOURCES"
    assert found.rows[0]["data-syndrome"] == "0xca010030"
    assert found.loaded == ["data:,"]


def test_a_hostile_trace_puts_nothing_into_the_report(tmp_path: Path) -> None:
    path, page = tmp_path / "t", tmp_path / "t.html"
    evil = "<script>alert(1)</script>"
    header = {"format": "softhca trace", "version": 1, "cards": [evil], "clock": evil}
    where = {"t": 1, "card": 0, "function": 0}
    lines = [
        header,
        {**where, "point": "command.received", "slot": evil, "command": evil, "decoded": {evil: evil}, "input": evil},
        {**where, "point": "command.completed", "slot": evil, "command": evil, "status": evil, "syndrome": evil},
        {**where, "point": "eqe", "event": evil},
        {**where, "point": "health", "health": evil},
        {**where, "point": evil},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read("export", "html", str(path), str(page)).exit_code == 0
    assert "<script" not in page.read_text()
    assert read("show", str(path)).exit_code == 0
    assert read("export", "perfetto", str(path), str(page)).exit_code == 0


def test_tracks_of_a_timeline(tmp_path: Path) -> None:
    path, out = tmp_path / "t", tmp_path / "t.json"
    record(path, *FAULT)
    assert read("export", "perfetto", str(path), str(out)).exit_code == 0
    document = json.loads(out.read_text())
    names = {event["args"]["name"] for event in document["traceEvents"] if event["ph"] == "M"}
    assert {"slot 0", "slot 31", "EQ 1", "pages", "function"} <= names
    (failed,) = [event for event in document["traceEvents"] if event.get("cname") == "terrible"]
    assert failed["name"] == "CREATE_CQ"
    assert failed["args"]["result"] == "NO_RESOURCES"
    assert {event["args"]["pages"] for event in document["traceEvents"] if event["ph"] == "C"} == {16, 80, 0}


def test_what_is_no_trace(tmp_path: Path) -> None:
    result = read("show", str(tmp_path / "none"))
    assert result.exit_code == 1
    assert "No such file" in result.output


def test_sigterm_ends_the_recording_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path, play = tmp_path / "t", run_module.play

    def interrupted(driver: Driver, story: run_module.Story) -> None:
        play(driver, story)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(run_module, "play", interrupted)
    result = record(path)
    assert result.exit_code == 128 + signal.SIGTERM
    assert f"{len(path.read_text().splitlines()) - 1} events" in result.output


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine; CI installs it")
def test_a_browser_shows_the_report_without_an_error(tmp_path: Path) -> None:
    path, page = tmp_path / "t", tmp_path / "t.html"
    record(path, *FAULT)
    read("export", "html", str(path), str(page))
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        "--v=0",
        f"--user-data-dir={tmp_path}/b",
    ]
    done = subprocess.run(
        [str(CHROMIUM), *options, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    assert "CONSOLE" not in done.stderr, done.stderr
    assert {row["data-opcode"] for row in Failures(done.stdout).rows} == {"CREATE_CQ"}
