from __future__ import annotations

import pytest

from softhca.guest.agent import KernelLine, KernelLog
from softhca.guest.complaints import classify, find, known_harmless, read_console

_FATAL = [
    "WARNING: CPU: 1 PID: 312 at drivers/net/ethernet/mellanox/mlx5/core/cmd.c:1123 cmd_work_handler+0x5/0x6",
    "WARNING: possible circular locking dependency detected",
    "BUG: kernel NULL pointer dereference, address: 0000000000000008",
    "Oops: Oops: 0000 [#1] PREEMPT SMP NOPTI",
    "BUG: KASAN: slab-use-after-free in mlx5_ib_post_send+0x1/0x2 [mlx5_ib]",
    "INFO: task modprobe:211 blocked for more than 120 seconds.",
    "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [modprobe:98]",
    "Kernel panic - not syncing: Fatal exception",
    "Oops: general protection fault, probably for non-canonical address 0xdead000000000100: 0000 [#1] SMP",
    "refcount_t: underflow; use-after-free.",
    "UBSAN: shift-out-of-bounds in drivers/infiniband/hw/mlx5/qp.c:1:2",
]
_HARMLESS = [
    "mlx5_core 0000:01:00.0: firmware version: 20.26.1040",
    "Debug messages: WARNINGs are on",
    "ACPI BIOS Bug fixed",
    "random: crng reseeded due to virtual machine fork",
]


@pytest.mark.parametrize("text", _FATAL)
def test_fatal(text: str) -> None:
    assert classify(KernelLine(4, 1.0, text)) == "fatal"


@pytest.mark.parametrize("text", _HARMLESS)
def test_no_complaint(text: str) -> None:
    assert classify(KernelLine(6, 1.0, text)) is None


@pytest.mark.parametrize(
    ("level", "text", "kind"),
    [
        (3, "mlx5_core 0000:01:00.0: mlx5_cmd_out_err:815: CREATE_QP(0x500) failed", "driver"),
        (3, "infiniband mlx5_0: create_qp: Create QP type 4 failed", "driver"),
        (2, "ib_core: out of it", "driver"),
        (4, "mlx5_core 0000:01:00.0: Failed to get valid vendor specific ID", None),
        (3, "virtio_blk: something", None),
        (None, "mlx5_core 0000:01:00.0: from the console, level unknown", None),
    ],
)
def test_driver(level: int | None, text: str, kind: str | None) -> None:
    assert classify(KernelLine(level, 1.0, text)) == kind


def test_what_programs_write_into_the_log_is_no_complaint() -> None:
    assert classify(KernelLine(3, 1.0, "BUG: printed by a test", facility=1)) is None


_LINES = [KernelLine(3, 1.5, "mlx5_core: bad"), KernelLine(4, 2.5, "BUG: worse"), KernelLine(6, 3.5, "fine")]


@pytest.mark.parametrize(
    ("allowed", "kinds"),
    [
        ([], ["driver", "fatal"]),
        (["driver"], ["fatal"]),
        (["fatal"], ["driver"]),
        (["core: b.d"], ["fatal"]),
        (["worse$", "^mlx5"], []),
    ],
)
def test_allowing(allowed: list[str], kinds: list[str]) -> None:
    assert [complaint.kind for complaint in find(_LINES, allowed)] == kinds


def test_complaints_are_shown_as_dmesg_prints_them() -> None:
    assert find(_LINES, [])[0].as_json() == {"class": "driver", "line": "[    1.500000] mlx5_core: bad"}


def test_a_bad_pattern_is_refused() -> None:
    with pytest.raises(ValueError, match="not a regular expression"):
        find([], ["("])


def test_the_committed_list_gives_reasons() -> None:
    assert all(entry.pattern.pattern and entry.reason for entry in known_harmless())


def test_console_after_the_guests_end() -> None:
    text = "SeaBIOS\x1b[2J\r\n[    1.000000] old\r\n[   12.250000] Kernel panic - not syncing: x\r\n"
    assert read_console(text, 1.0) == [KernelLine(None, 12.25, "Kernel panic - not syncing: x")]


def test_records_of_the_kernels_log() -> None:
    log = KernelLog()
    for line in [
        "6,100,2500000,-;first",
        " SUBSYSTEM=pci",
        "3,101,2600000,-;mlx5_core: second; with a semicolon",
        "6,100,2500000,-;first",
        "14,102,2700000,-;softhca: mark abc123",
        "12,103,2800000,-;from a program",
        "",
    ]:
        log.feed(line)
    assert log.lines == [
        KernelLine(6, 2.5, "first"),
        KernelLine(3, 2.6, "mlx5_core: second; with a semicolon"),
        KernelLine(4, 2.8, "from a program", facility=1),
    ]
    assert log.marks == {"abc123"}
