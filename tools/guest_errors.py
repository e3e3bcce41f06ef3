"""Provokes each row of the error table (docs/errors.toml) from user space in a guest; prints what came of each.

Status and vendor syndrome of the completions on both sides, asynchronous events, the states of both queue pairs and
counters must be those of the table, and docs/syndromes.md must explain each vendor syndrome. Exit status: 0 if all rows
are as they should be and the guest's kernel did not complain.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import error_rows
from error_table import PROVOCATIONS, Row, read_rows

_TOOLS = Path(__file__).resolve().parent
_DOCS = _TOOLS.parent / "docs"
_MARK = "@error "
_LINE = "{id:<22} {service:<4} {result:<8} {outcome}"
_PROVOKED = (r"CQ error on CQN 0x[0-9a-f]+, syndrome 0x1\b",)
"""What the kernel says of an overrun of a CQ."""
_FILES = ("guest_errors.py", "error_rows.py", "error_table.py", "verbs_scene.py", "verbs_behind.py")
__all__ = ["error_rows"]


# --- inside -----------------------------------------------------------------------------------------------------------


def inside(rows: list[Row]) -> None:
    """In the guest: provoke rows, print a line of JSON for each."""
    from pyverbs.device import get_device_list  # type: ignore[import-not-found]

    from verbs_scene import Card, VerbsScene

    card = Card(get_device_list()[0].name.decode())
    for row in rows:
        begin = time.monotonic()
        scene: VerbsScene | None = None
        try:
            made = PROVOCATIONS[row.id](lambda setting: VerbsScene(card, setting))
            assert isinstance(made, VerbsScene)
            scene = made
            found = scene.outcome(row)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong is this row's result; the next one starts anew
            found = {"failure": f"{type(error).__name__}: {error}"}
        finally:
            if scene is not None:
                scene.close()
        found |= {"id": row.id, "seconds": round(time.monotonic() - begin, 3)}
        print(_MARK + json.dumps(found), flush=True)


# --- outside ----------------------------------------------------------------------------------------------------------


def vendor_names() -> dict[int, str]:
    """The vendor syndromes that docs/syndromes.md explains, by number."""
    text = (_DOCS / "syndromes.md").read_text(encoding="utf-8")
    part = text.partition("## Work completions")[2]
    return {int(number, 16): name for number, name in re.findall(r"^\| `(0x\w+)` \| (\w+) \| \w", part, re.M)}


def judge(row: Row, found: dict[str, Any], names: dict[int, str]) -> str:
    """What is wrong with an outcome; empty if nothing. Gives vendor syndromes their names."""
    if "failure" in found:
        return str(found["failure"])
    for side in ("requester", "responder"):
        found[side] = [_named(completion, names) for completion in found[side]]
    if row.kept:
        found["requester"] = [text.replace(row.kept, "NO_SUCH_KEY") for text in found["requester"]]
    wrong = [
        f"{name} {found[name]}, not {getattr(row, name)}"
        for name in ("requester", "responder", "events", "states", "counter")
        if found[name] != getattr(row, name)
    ]
    return "; ".join([*wrong, *(() if found["memory"] else ("memory is not as expected",))])


def _named(completion: str, names: dict[int, str]) -> str:
    status, _, number = completion.partition(" ")
    return f"{status} {names.get(int(number, 16), f'{number} (not explained)')}" if number else status


def outside(options: argparse.Namespace, rows: list[Row], verdict: Path) -> list[dict[str, Any]]:
    """Provoke rows in a guest, print each as it comes, return what was found; what the guest did not reach failed."""
    command = [sys.executable, "-m", "softhca.cli.main", "guest", "--json", str(verdict)]
    command += [f"--profile={options.profile}", f"--timeout={options.timeout}"]
    command += [part for pattern in _PROVOKED for part in ("--allow-kernel", pattern)]
    for file in (*(_TOOLS / name for name in _FILES), _DOCS / "errors.toml"):
        command += ["--copy-in", str(file)]
    only = f" --only='{options.only}'" if options.only else ""
    command += [
        "--",
        f"MLX5_DEBUG_FILE=/tmp/mlx5.log python3 guest_errors.py --inside --profile={options.profile}{only}",
    ]
    waiting = {row.id: row for row in rows}
    names = vendor_names()
    results: list[dict[str, Any]] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if not line.startswith(_MARK):
                print(line, end="", file=sys.stderr)
                continue
            found = json.loads(line.removeprefix(_MARK))
            row = waiting.pop(found["id"])
            results.append(found | {"wrong": judge(row, found, names)})
            _print_row(row, results[-1])
    for row in waiting.values():
        results.append({"id": row.id, "wrong": "the guest ended before", "failure": "the guest ended before"})
        _print_row(row, results[-1])
    return results


def _elsewhere(row: Row, profile: str) -> str:
    """Why this card's user space cannot provoke a row; empty if it can."""
    if row.profile not in ("", profile):
        return f"it takes --profile={row.profile}"
    return row.unit_only


def _print_row(row: Row, found: dict[str, Any]) -> None:
    text = found["wrong"] or " | ".join(
        ", ".join(found[name]) or "-" for name in ("requester", "responder", "events", "states")
    )
    print(_LINE.format(id=row.id, service=row.service, result="failed" if found["wrong"] else "ok", outcome=text))


def main() -> None:
    """Parse the command line, run, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="REGEX", help="the rows whose id matches")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--profile", default="connectx-6-ib")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for all rows together")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    table = read_rows(Path("errors.toml") if options.inside else _DOCS / "errors.toml")
    rows = [row for row in table if not _elsewhere(row, options.profile) and re.search(options.only or "", row.id)]
    if options.inside:
        inside(rows)
        return
    print(_LINE.format(id="row", service="", result="result", outcome="requester | responder | events | states"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "verdict.json"
        results = outside(options, rows, path)
        verdict: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"verdict": "lab"}
    bad = [result for result in results if result["wrong"]]
    for row in table:
        if (reason := _elsewhere(row, options.profile)) and not options.only:
            print(_LINE.format(id=row.id, service=row.service, result="-", outcome=f"not from here: {reason}"))
    print(f"\n{len(results) - len(bad)} ok, {len(bad)} failed; the guest's verdict: {verdict['verdict']}")
    if options.json is not None:
        options.json.write_text(json.dumps({"rows": results, "guest": verdict}, indent=1) + "\n")
    sys.exit(0 if not bad and verdict["verdict"] == "ok" else 1)


if __name__ == "__main__":
    main()
