"""What a user waits for who runs a command in a guest: with a warm lab, and from nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.report import NotMeasured

SOFTHCA = Path(sys.executable).with_name("softhca")
BOOTS = "booting"
"""What `softhca guest` says on standard error when it boots really."""
_TAIL = 300


def _timed(arguments: list[str], environment: Mapping[str, str] | None = None) -> tuple[float, str]:
    """Seconds that the command took, and its standard error.

    Raises:
        NotMeasured: it failed.
    """
    start = time.perf_counter()
    done = subprocess.run(
        [SOFTHCA, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=environment
    )
    took = time.perf_counter() - start
    if done.returncode:
        raise NotMeasured(f"softhca {' '.join(arguments)}: status {done.returncode}: {done.stderr.strip()[-_TAIL:]}")
    return took, done.stderr


def help_text() -> float:
    """Milliseconds for `softhca --help`."""
    return _timed(["--help"])[0] * 1e3


def run(*, boot: bool) -> float:
    """Seconds for `softhca guest -- true` with the card, really booted or from the saved state.

    Raises:
        NotMeasured: it failed, or it started in the other way.
    """
    with tempfile.TemporaryDirectory() as folder:
        verdict = Path(folder) / "verdict.json"
        took, said = _timed(["guest", "--json", str(verdict), *(["--boot"] if boot else []), "--", "true"])
        document = json.loads(verdict.read_text(encoding="utf-8"))
    if document["verdict"] != "ok" or len(document["devices"]) != 1:
        raise NotMeasured(f"verdict {document['verdict']}, {len(document['devices'])} devices")
    if (BOOTS in said) is not boot:
        raise NotMeasured(f"it {'did not boot' if boot else 'booted'} really: {said.strip()[-_TAIL:]}")
    return took


def warm(*, boot: bool) -> Callable[[], float]:
    """What measures :func:`run`, after a run that makes the lab warm: what is cached is there and lies in memory.

    Raises:
        NotMeasured: that run failed.
    """
    run(boot=boot)
    return lambda: run(boot=boot)


def cold() -> float:
    """Seconds for `softhca guest build` with an empty cache, downloads included."""
    with tempfile.TemporaryDirectory() as folder:
        return _timed(["guest", "build"], {**os.environ, "XDG_CACHE_HOME": folder})[0]
