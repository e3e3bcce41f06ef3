from __future__ import annotations

from softhca.guest import cpio

_OF_ANOTHER_PROGRAM = (
    b"070701002183F3000081A4000000000000000000000001000000000000000200000000"
    b"0000FE0000000000000000000000000200000000a\0hi\0\0"
)
"""What `busybox cpio -o -H newc` wrote for a file `a` of root with content `hi`, mode 0644 and time 0."""
_INODE, _DEVICE = slice(6, 14), slice(62, 78)
_TRAILER = b"070701" + b"0" * 32 + b"00000001" + b"0" * 48 + b"0000000B" + b"0" * 8 + b"TRAILER!!!\0\0\0\0"


def test_a_file_is_written_as_another_program_writes_it() -> None:
    ours, theirs = (bytearray(data) for data in (cpio.archive([cpio.file("a", b"hi")]), _OF_ANOTHER_PROGRAM))
    for data in (ours, theirs):
        data[_INODE], data[_DEVICE] = b"0" * 8, b"0" * 16  # theirs are of the disk that it was read from
    assert ours[: len(theirs)] == theirs


def test_the_end_is_the_trailer() -> None:
    assert cpio.archive([]) == _TRAILER


def test_every_member_starts_at_a_multiple_of_four() -> None:
    names = ["a", "ab", "abc", "abcd", "abcde"]
    packed = cpio.archive([cpio.file(name, b"x" * size) for size, name in enumerate(names)])
    starts = [at for at in range(len(packed)) if packed.startswith(b"070701", at)]
    assert len(starts) == len(names) + 1
    assert all(start % 4 == 0 for start in starts)


def test_kinds_of_entries() -> None:
    assert cpio.folder("d").mode == 0o40755
    assert cpio.character_device("c", 5, 1) == cpio.Entry("c", 0o20600, device=(5, 1))
