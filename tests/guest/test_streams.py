from __future__ import annotations

from softhca.guest.streams import Kept, Prefixed


def test_each_line_gets_the_prefix_however_it_is_cut() -> None:
    seen = bytearray()
    stream = Prefixed(seen.extend, b"[1] ")
    for piece in (b"one\ntw", b"o\n\n", b"thr", b"ee"):
        stream(piece)
    assert seen == b"[1] one\n[1] two\n[1] \n"
    stream.flush()
    stream.flush()
    assert seen.endswith(b"[1] three\n")


def test_a_line_without_end_is_not_gathered_for_ever() -> None:
    seen = bytearray()
    stream = Prefixed(seen.extend, b"")
    for _ in range(20):
        stream(b"x" * 5000)
    assert len(seen) >= 64 << 10


def test_the_end_is_kept_and_all_is_passed_on() -> None:
    seen = bytearray()
    stream = Kept(seen.extend, most=10)
    for number in range(100):
        stream(b"%02d" % number)
        assert stream.end == bytes(seen[-10:])
    assert len(seen) == 200
