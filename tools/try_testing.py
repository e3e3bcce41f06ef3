"""Tries docs/testing-your-driver.md as a stranger would: an empty folder and a fresh virtual environment."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "testing-your-driver.md"
_FILE = re.compile(r"^`([^`\n]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MOST_LINES = 30
"""Lines of the job, as the document promises."""


def files(text: str) -> dict[str, str]:
    """The files that a document shows, by name."""
    return dict(_FILE.findall(text))


def main() -> int:
    """Install, build the lab, run the document's tests; the exit status is that of pytest."""
    found = files(DOCUMENT.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="softhca-try-") as name:
        folder = Path(name)
        (folder / "test_card.py").write_text(found["test_card.py"], encoding="utf-8")
        run([sys.executable, "-m", "venv", ".venv"], folder)
        run([".venv/bin/pip", "install", "-q", f"softhca[test] @ {ROOT.as_uri()}"], folder)
        run([".venv/bin/softhca", "guest", "build"], folder)
        command = [".venv/bin/pytest", "-v", "--durations=0", "test_card.py"]
        print(f"$ {' '.join(command)}", flush=True)
        return subprocess.run(command, cwd=folder, check=False).returncode


def run(command: list[str], folder: Path) -> None:
    """Run a command that must succeed."""
    print(f"$ {' '.join(command)}", flush=True)
    subprocess.run(command, cwd=folder, check=True)


if __name__ == "__main__":
    sys.exit(main())
