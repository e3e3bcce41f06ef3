"""Which package mirror the lab uses: the one that this machine's own apt uses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from softhca.guest.errors import LabError


@dataclass(frozen=True)
class Source:
    """One line of apt's sources: where, which suites, which components."""

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]


def parse_one_line(text: str) -> Iterator[Source]:
    """Sources of a `sources.list` file: `deb [options] URI SUITE COMPONENT...`."""
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[[^\]]*\]\s*)?(\S+)\s+(\S+)\s*([^#]*)", line)
        if match:
            yield Source(match[1], (match[2],), tuple(match[3].split()))


def parse_deb822(text: str) -> Iterator[Source]:
    """Sources of a `.sources` file: paragraphs of fields, with continuation lines and comments."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for paragraph in re.split(r"\n(?:[ \t]*\n)+", "\n".join(lines)):
        fields: dict[str, str] = {}
        name = ""
        for line in paragraph.splitlines():
            if line[:1] in " \t" and name:
                fields[name] += " " + line.strip()
            elif ":" in line:
                name, _, value = line.partition(":")
                name = name.strip().lower()
                fields[name] = value.strip()
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() in ("no", "false"):
            continue
        suites = tuple(fields.get("suites", "").split())
        components = tuple(fields.get("components", "").split())
        for uri in fields.get("uris", "").split():
            yield Source(uri, suites, components)


def sources(etc: Path = Path("/etc/apt")) -> Iterator[Source]:
    """All sources that apt would read below `etc`."""
    if (etc / "sources.list").is_file():
        yield from parse_one_line((etc / "sources.list").read_text())
    parts = etc / "sources.list.d"
    for path in sorted(parts.iterdir()) if parts.is_dir() else []:
        if path.suffix == ".list":
            yield from parse_one_line(path.read_text())
        elif path.suffix == ".sources":
            yield from parse_deb822(path.read_text())


def find_mirror(etc: Path = Path("/etc/apt"), os_release: Path = Path("/etc/os-release")) -> str:
    """URI of the mirror of the distribution that this machine's apt uses.

    Raises:
        LabError: this is no Debian machine, or its sources name no archive with its own suite.
    """
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', os_release.read_text(), re.M)) if os_release.is_file() else {}
    suite = release.get("VERSION_CODENAME", "")
    if release.get("ID") == "debian":
        for source in sources(etc):
            if (
                suite in source.suites
                and "main" in source.components
                and re.match(r"https?://|(mirror\+)?file:", source.uri)
            ):
                return source.uri.rstrip("/")
    raise LabError(
        f"no Debian mirror found in {etc}/sources.list and {etc}/sources.list.d (suite {suite or 'unknown'!r}); "
        "name one with --mirror URL"
    )
