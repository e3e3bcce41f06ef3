"""The syndromes: each one that is declared is given somewhere in the device."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import softhca.hca
from softhca.prm.syndromes import Syndrome, completion, control, objects, ports

DEVICE = Path(softhca.hca.__file__).parent
USED = {
    node.attr
    for file in DEVICE.glob("*.py")
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    if isinstance(node, ast.Attribute)
}


@pytest.mark.parametrize("area", [control, objects, ports], ids=lambda area: area.__name__.rsplit(".", 1)[-1])
def test_every_syndrome_is_given_somewhere(area: object) -> None:
    declared = {name for name, value in vars(area).items() if isinstance(value, Syndrome)}
    assert declared
    assert declared - USED == set()


def test_every_vendor_syndrome_of_a_completion_is_given_somewhere() -> None:
    assert {item.name for item in completion.VendorSyndrome} - USED == set()
