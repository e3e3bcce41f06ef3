from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from softhca.cli.layout import layout
from softhca.prm.catalogue import LAYOUTS

CQE = """\
infiniband mlx5_0: dump_cqe:273:(pid 0): dump error cqe
00000000: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
00000010: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
00000020: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
00000030: 00 00 00 00 0f 00 78 06 25 00 00 58 00 da ac d2
"""


def call(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(layout, arguments, input=text, prog_name="softhca layout")


def test_a_table() -> None:
    result = call("eqc")
    assert result.exit_code == 0
    assert "0x00c   28:24  log_eq_size       5\n" in result.stdout


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("mlx5_ifc_eqc_bits", "eqc"),
        ("struct mlx5_cqe64", "cqe64"),
        ("CreateEqIn", "create_eq_in"),
        ("CREATE_EQ", "create_eq_in"),
        ("PTYS", "ptys_reg"),
    ],
)
def test_other_ways_to_write_a_name(given: str, found: str) -> None:
    assert call(given).stdout.startswith(f"{found}: ")


def test_a_wrong_name_names_what_is_near() -> None:
    result = call("creat_eq_in")
    assert result.exit_code == 2
    assert "no structure 'creat_eq_in'; near it are create_eq_in" in result.stderr
    assert "softhca layout --list shows all" in call("0123").stderr


@pytest.mark.parametrize(
    ("arguments", "message"), [((), "a NAME is missing; --list"), (("eqc", "--list"), "--list stands alone")]
)
def test_wrong_use(arguments: tuple[str, ...], message: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_the_list() -> None:
    result = call("--list")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == len(LAYOUTS) + 1
    assert any(line.split()[:3] == ["eq", "eqc", "64"] for line in result.stdout.splitlines())
    listed = json.loads(call("--list", "--json").stdout)
    assert {item["name"] for item in listed} == set(LAYOUTS)


def test_a_dump_from_a_file_and_from_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    path.write_text(CQE)
    result = call("err_cqe", "--hex", str(path))
    assert result.exit_code == 0
    assert "0x034   7:0    syndrome           0x6         MW_BIND_ERR\n" in result.stdout
    assert call("err_cqe", "--hex", "-", text=CQE).stdout == result.stdout


def test_several_structures_are_numbered() -> None:
    result = call("query_eq_in", "--hex", "-", text="03030000 00000000 00000001 00000000 " * 2)
    assert [line for line in result.stdout.splitlines() if line.startswith("[")] == ["[0]", "[1]"]


def test_a_dump_as_json() -> None:
    (decoded,) = json.loads(call("err_cqe", "--hex", "-", "--json", text=CQE).stdout)
    assert decoded["name"] == "err_cqe"
    fields = {field["name"]: field for field in decoded["fields"]}
    assert fields["s_wqe_opcode"] == {
        "name": "s_wqe_opcode",
        "offset": 0x38,
        "high": 31,
        "low": 24,
        "width": 8,
        "value": 0x25,
        "meaning": "UMR",
    }


def test_a_table_as_json() -> None:
    described = json.loads(call("create_eq_in", "--json").stdout)
    assert (described["name"], described["bytes"]) == ("create_eq_in", 272)
    fields = {field["name"]: field for field in described["fields"]}
    assert (fields["pas"]["offset"], fields["pas"]["width"], fields["pas"]["count"]) == (0x110, 64, 0)
    assert fields["eq_context_entry"]["structure"] == "eqc"
    assert fields["opcode"]["values"]["CREATE_EQ"] == 0x301


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "-: no line of hex digits was found"),
        ("00 01 0g 02", "-: line 1: '0g' is not a group of whole bytes in hex"),
        ("00 01", "-: err_cqe: 2 bytes given, 64, or a multiple of the size, needed"),
    ],
)
def test_a_dump_that_does_not_fit(text: str, message: str) -> None:
    result = call("err_cqe", "--hex", "-", text=text)
    assert result.exit_code == 1
    assert result.stderr == f"Error: {message}\n"


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    result = call("err_cqe", "--hex", str(tmp_path / "none"))
    assert result.exit_code == 1
    assert "No such file" in result.stderr
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    result = call("err_cqe", "--hex", str(binary))
    assert result.exit_code == 1
    assert "can't decode" in result.stderr


def test_the_help_keeps_its_examples_apart() -> None:
    assert "  softhca layout eqc\n  softhca layout --list\n" in call("--help").stdout
