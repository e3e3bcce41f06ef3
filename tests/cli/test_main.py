from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from softhca import __version__
from softhca.cli import DEFAULT_PROFILE
from softhca.cli.main import SUMMARIES, main
from softhca.hca import profile


def test_help_names_every_command_and_teaches() -> None:
    result = CliRunner().invoke(main, ["--help"], prog_name="softhca")
    assert result.exit_code == 0
    for name, summary in SUMMARIES.items():
        assert f"  {name}" in result.stdout
        assert summary.split()[0] in result.stdout
    assert "  softhca layout eqc " in result.stdout


@pytest.mark.parametrize("name", SUMMARIES)
def test_every_command_is_there(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert isinstance(command, click.Command)
    assert command.help


def test_help_imports_no_command() -> None:
    code = (
        "import sys; from softhca.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "assert not [name for name in sys.modules if name.startswith('softhca.') and 'cli' not in name]\n"
        "assert not [name for name in ('rich', 'softhca.cli.guest', 'softhca.cli.run') if name in sys.modules]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("given", "message"),
    [("layuot", "no command 'layuot'; did you mean layout?"), ("xyz", "the commands are run, serve")],
)
def test_a_wrong_command_names_what_is_near(given: str, message: str) -> None:
    result = CliRunner().invoke(main, [given])
    assert result.exit_code == 2
    assert message in result.stderr


def test_the_version() -> None:
    assert CliRunner().invoke(main, ["--version"], prog_name="softhca").stdout == f"softhca {__version__}\n"


def test_the_default_card_of_the_commands_is_that_of_the_device() -> None:
    assert DEFAULT_PROFILE == profile.DEFAULT
