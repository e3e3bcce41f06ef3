from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softhca.prm.hexdump import MAX_BYTES, MAX_TEXT, HexError, parse_hex

DATA = bytes(range(16)) + b"mlx5 00 11 22 33"


@pytest.mark.parametrize(
    "text",
    [
        "000102030405060708090a0b0c0d0e0f6d6c7835203030203131203232203333",
        "00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F\n6d 6c 78 35 20 30 30 20 31 31 20 32 32 20 33 33",
        "0x00010203, 0x04050607, 0x08090a0b, 0x0c0d0e0f,\n0x6d6c7835, 0x20303020, 0x31312032, 0x32203333",
        "# a remark\n00010203 04050607 08090a0b 0c0d0e0f\n\n6d6c7835 20303020 31312032 32203333\n",
        # xxd
        "00000000: 0001 0203 0405 0607 0809 0a0b 0c0d 0e0f  ................\n"
        "00000010: 6d6c 7835 2030 3020 3131 2032 3220 3333  mlx5 00 11 22 33\n",
        # hexdump -C
        "00000000  00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f  |................|\n"
        "00000010  6d 6c 78 35 20 30 30 20  31 31 20 32 32 20 33 33  |mlx5 00 11 22 33|\n00000020\n",
        # hexdump
        "0000000 0100 0302 0504 0706 0908 0b0a 0d0c 0f0e\n0000010 6c6d 3578 3020 2030 3131 3220 2032 3333\n0000020\n",
        # print_hex_dump, with a time stamp and a prefix, and with an ASCII column
        "[    1.234567] cqe_dump: 00000000: 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f\n"
        "[    1.234568] cqe_dump: 00000010: 6d 6c 78 35 20 30 30 20 31 31 20 32 32 20 33 33\n",
        "<4>[    1.234567] 00000000: 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f  ................\n"
        "<4>[    1.234568] 00000010: 6d 6c 78 35 20 30 30 20 31 31 20 32 32 20 33 33  mlx5 00 11 22 33\n",
        # the driver's dump of a command
        "[  9.5] mlx5_core 0000:02:00.0: dump_command:851:(pid 1915): cmd[0]: dump command data CREATE_QP(0x500)\n"
        "[  9.5] cmd[0]: 000: 00010203 04050607 08090a0b 0c0d0e0f\n"
        "[  9.5] cmd[0]: 010: 6d6c7835 20303020 31312032 32203333\n",
        # rdma-core
        "mlx5: host: got completion with error:\n"
        "00010203 04050607 08090a0b 0c0d0e0f\n6d6c7835 20303020 31312032 32203333",
        # DPDK
        "MLX5 Error CQE: at [0x7f6a7d20c000], len=32\n"
        "00000000: 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F | ................\n"
        "00000010: 6D 6C 78 35 20 30 30 20 31 31 20 32 32 20 33 33 | mlx5 00 11 22 33\n",
    ],
)
def test_every_form_shows_the_same_bytes(text: str) -> None:
    assert parse_hex(text) == DATA


def test_a_star_repeats_the_line_before_it() -> None:
    text = "00000000  01 01 01 01 01 01 01 01  01 01 01 01 01 01 01 01  |...|\n*\n00000040\n"
    assert parse_hex(text) == b"\x01" * 64
    assert parse_hex("00000000: 0101\n*\n00000008: 0202\n") == b"\x01" * 8 + b"\x02\x02"


def test_a_dump_may_begin_behind_zero() -> None:
    assert parse_hex("00000100: 0102\n00000102: 0304") == bytes([1, 2, 3, 4])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no line of hex digits"),
        ("nothing here", "no line of hex digits"),
        ("00 01 0g", "line 1: '0g' is not a group of whole bytes"),
        ("00 01\n00 1", "line 2: '1' is not a group of whole bytes"),
        ("00000000: 00 01\n00000010: 02", "line 2: its offset is 0x10 bytes into the dump, 0x2 was expected"),
        ("00000000: 00 01\n00000000: 02", "line 2: its offset is 0x0 bytes"),
        ("00 01\n*\n00 02", "line 3: no offset behind a"),
        ("00 01\n*\n", "no offset behind the last"),
        ("00000000: 00 01 02\n*\n00000010: 00", "its offset is 0x10 bytes into the dump, 0x3 was expected"),
        (f"00000000: 00\n*\n{2 * MAX_BYTES:08x}: 00", "was expected"),
        ("*", "no offset behind the last"),
        ("00" * (MAX_BYTES + 1), f"line 1: the dump has more than {MAX_BYTES} bytes"),
        (f"00000000: 00\n*\n{MAX_BYTES:08x}: 00", "line 3: the dump has more than"),
        (" " * (MAX_TEXT + 1), f"more than {MAX_TEXT} characters"),
    ],
)
def test_what_is_no_dump_is_refused(text: str, message: str) -> None:
    with pytest.raises(HexError, match=message):
        parse_hex(text)


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=200), st.sampled_from([1, 2, 4]), st.booleans())
def test_any_bytes_come_back(data: bytes, group: int, offsets: bool) -> None:
    lines = []
    for at in range(0, len(data), 16):
        groups = data[at : at + 16].hex(" ", -group)
        lines.append(f"{at:08x}: {groups}" if offsets else groups)
    assert parse_hex("\n".join(lines)) == data


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_gives_bytes_or_a_reason(text: str) -> None:
    with suppress(HexError):
        assert parse_hex(text)
