"""Writes cpio archives of the `newc` format, which the kernel takes as its initial root (cpio(5))."""

from __future__ import annotations

import stat
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A file of an archive.

    Attributes:
        name: path without a leading slash.
        mode: type and permissions, as in stat(2).
        data: content.
        device: major and minor number of a device node.
    """

    name: str
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


def file(name: str, data: bytes, permissions: int = 0o644) -> Entry:
    """A regular file."""
    return Entry(name, stat.S_IFREG | permissions, data)


def folder(name: str, permissions: int = 0o755) -> Entry:
    """A folder."""
    return Entry(name, stat.S_IFDIR | permissions)


def character_device(name: str, major: int, minor: int, permissions: int = 0o600) -> Entry:
    """A character device node."""
    return Entry(name, stat.S_IFCHR | permissions, device=(major, minor))


def archive(entries: list[Entry]) -> bytes:
    """The archive's bytes; every file belongs to root and has time 0."""
    parts = [_member(inode, entry) for inode, entry in enumerate(entries, 1)]
    parts.append(_member(0, Entry("TRAILER!!!", 0)))
    return b"".join(parts)


def _member(inode: int, entry: Entry) -> bytes:
    name = entry.name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    fields = (inode, entry.mode, 0, 0, links, 0, len(entry.data), 0, 0, *entry.device, len(name), 0)
    header = b"070701" + b"".join(b"%08X" % value for value in fields)
    return _padded(header + name) + _padded(entry.data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
