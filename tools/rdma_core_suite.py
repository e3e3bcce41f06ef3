"""Runs rdma-core's own pyverbs suite, as the distribution ships it, in a guest with the card; prints a table.

Exit status: 0 if no test failed, docs/skips.toml explains every skip and the guest's kernel did not complain, else 1.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

_TOOLS = Path(__file__).parent
_MARK = "@suite "
_ROW = "{module:<28} {ok:>5} {skipped:>8} {failed:>7} {seconds:>8}"
_PROVOKED = (
    r"MODIFY_CQ\(0x403\) .* failed, status bad size",
    r"DEALLOC_UAR\(0x803\) .* failed, status bad resource state",
)
"""Kernel lines that the suite provokes: test_resize_cq asks for less room than unread CQEs take; a skipped test leaves
its CQ behind, and closing the device frees the CQ's UAR first, which a device refuses while a queue names it (A8)."""
_KEYS = ("module", "ok", "skipped", "failed", "reasons")


def run(options: argparse.Namespace, verdict: Path) -> list[dict[str, Any]]:
    """Run the suite in one guest, print each module's row as it comes, and return the modules' results."""
    inside = ["python3", "guest_suite.py", f"--limit={options.limit}", f"--module-limit={options.module_limit}"]
    command = [sys.executable, "-m", "softhca.cli.main", "guest", "--json", str(verdict)]
    command += [f"--profile={options.profile}", f"--timeout={options.timeout}"]
    command += [part for pattern in (*_PROVOKED, *options.allow_kernel) for part in ("--allow-kernel", pattern)]
    command += ["--copy-in", str(_TOOLS / "guest_suite.py"), "--", *inside, *options.modules]
    modules: list[dict[str, Any]] = []
    open_module: str | None = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if not line.startswith(_MARK):
                print(line, end="", file=sys.stderr, flush=True)
                continue
            event = json.loads(line.removeprefix(_MARK))
            if "begin" in event:
                open_module = event["begin"]
            else:
                open_module = None
                modules.append(event)
                print(_ROW.format(**event), flush=True)
    if open_module is not None:
        reason = {f"tests.{open_module}": "the guest ended"}
        lost = {
            "module": open_module,
            "ok": 0,
            "skipped": 0,
            "failed": 1,
            "reasons": reason,
            "details": {},
            "kernel": [],
        }
        modules.append({**lost, "seconds": 0})
        print(_ROW.format(**modules[-1]), flush=True)
    return modules


def explain(modules: list[dict[str, Any]]) -> None:
    """Print each failure with the end of its traceback, and what the kernel said."""
    for module in modules:
        for test, detail in module["details"].items():
            print(f"\nFAILED {test}: {module['reasons'][test]}")
            print("\n".join(f"    {line}" for line in detail.strip().splitlines()[-12:]))
        if module["kernel"]:
            print(f"\nkernel during {module['module']}:")
            print("\n".join(f"    {line}" for line in module["kernel"][-20:]))


def unexplained(modules: list[dict[str, Any]]) -> list[str]:
    """The skips, one line each, that docs/skips.toml does not explain."""
    entries = tomllib.loads((_TOOLS.parent / "docs/skips.toml").read_text(encoding="utf-8"))["skip"]
    return [
        f"{test}: {reason}"
        for module in modules
        for test, reason in module["reasons"].items()
        if test not in module["details"]
        and not any(module["module"] in e["modules"] and re.fullmatch(e["says"], reason) for e in entries)
    ]


def main() -> None:
    """Parse the command line, run, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help="modules to run, as test_qp; by default all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--profile", default="connectx-6-ib")
    parser.add_argument("--timeout", type=float, default=1500.0, help="seconds for all modules together")
    parser.add_argument("--module-limit", type=float, default=300.0, help="seconds for a module")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for a test")
    parser.add_argument("--allow-kernel", action="append", default=[], help="as of softhca guest")
    options = parser.parse_args()
    print(_ROW.format(module="module", ok="ok", skipped="skipped", failed="failed", seconds="seconds"), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "verdict.json"
        modules = run(options, path)
        verdict: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"verdict": "lab"}
    total = {key: sum(module[key] for module in modules) for key in ("ok", "skipped", "failed")}
    print(_ROW.format(module="total", **total, seconds=round(sum(module["seconds"] for module in modules))))
    explain(modules)
    strange = unexplained(modules)
    print("".join(f"skipped, and docs/skips.toml does not say why: {line}\n" for line in strange), end="")
    if verdict["verdict"] != "ok":
        print(f"the guest's verdict: {verdict['verdict']}")
    if options.json is not None:
        answer = {"modules": [{key: module[key] for key in _KEYS} for module in modules], "guest": verdict}
        options.json.write_text(json.dumps(answer, indent=1) + "\n")
    sys.exit(1 if total["failed"] or strange or verdict["verdict"] != "ok" else 0)


if __name__ == "__main__":
    main()
