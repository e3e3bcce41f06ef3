"""What the tools that run in guests make of what they are told; no guest."""

from __future__ import annotations

from typing import Any

import pytest

import guest_errors
import guest_mixed
from error_table import Row
from guest_mixed import Memory, Sample
from softhca.prm.syndromes.completion import VendorSyndrome

ROW = Row("r", "cause", requester=["LOC_PROT_ERR KEY_PD", "SUCCESS"], events=["responder QP_FATAL"])
FOUND = {
    "requester": ["LOC_PROT_ERR 0x14", "SUCCESS"],
    "responder": [],
    "events": ["responder QP_FATAL"],
    "states": ["ERR", "RTS"],
    "counter": "",
    "memory": True,
}


def test_the_documents_explain_every_vendor_syndrome() -> None:
    assert guest_errors.vendor_names() == {
        item.value: item.name for item in VendorSyndrome if item is not VendorSyndrome.NONE
    }


def test_what_is_as_the_row_says_is_right() -> None:
    assert guest_errors.judge(ROW, dict(FOUND), guest_errors.vendor_names()) == ""


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"requester": ["LOC_PROT_ERR 0x14"]}, "requester"),
        ({"requester": ["LOC_PROT_ERR 0xfe", "SUCCESS"]}, "0xfe (not explained)"),
        ({"responder": ["SUCCESS"]}, "responder"),
        ({"events": []}, "events"),
        ({"states": ["ERR", "ERR"]}, "states"),
        ({"counter": "out_of_buffer"}, "counter"),
        ({"memory": False}, "memory"),
        ({"failure": "TypeError: x"}, "TypeError: x"),
    ],
)
def test_what_is_not_is_told(change: dict[str, Any], told: str) -> None:
    assert told in guest_errors.judge(ROW, FOUND | change, guest_errors.vendor_names())


PROCESS = {"process": 0, "by_connection": [4, 4]}
VERDICT = {"verdict": "ok", "devices": [{"teardowns": [{"pages_outstanding": 0, "objects": 0}]}]}


@pytest.mark.parametrize(
    ("processes", "verdict", "growth", "told"),
    [
        ([PROCESS], VERDICT, 0, ""),
        ([], VERDICT, 0, "0 of 1 processes"),
        ([{"process": 0, "failure": "Wrong"}], VERDICT, 0, "0 of 1 processes"),
        ([PROCESS | {"by_connection": [4, 0]}], VERDICT, 0, "0 of 1 processes"),
        ([PROCESS], VERDICT | {"verdict": "kernel"}, 0, "verdict is kernel"),
        ([PROCESS], VERDICT | {"devices": [{"teardowns": []}]}, 0, "left something behind"),
        ([PROCESS], VERDICT, 2 << 20, "grew by 2048 KiB"),
    ],
)
def test_faults_of_a_mixed_run(
    processes: list[dict[str, Any]], verdict: dict[str, Any], growth: int, told: str
) -> None:
    found = guest_mixed.faults(1, processes, verdict, growth)
    assert told in "".join(found)
    assert bool(found) == bool(told)


def test_growth_is_what_came_after_warming_up() -> None:
    memory = Memory(0)  # the kernel's own process has no status that we could read
    memory.end()
    memory.samples = [Sample(second, 1000 + min(second, 10) * 100, 0) for second in range(40)]
    assert memory.growth(10) == 0
    assert memory.growth(0) == 800
    memory.samples = [Sample(second, second, 0) for second in range(40)]
    assert memory.growth(10) == 27
