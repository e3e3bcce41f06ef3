"""The tap and its file, against tshark and scapy."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from struct import unpack_from
from typing import Any

import pytest
from scapy.utils import RawPcapNgReader

from softhca.prm.ib_packet import Transport
from softhca.wire import segment
from softhca.wire.packet import Packet
from softhca.wire.pcapng import LinkType, PcapngWriter
from softhca.wire.segment import Flow
from softhca.wire.tap import Tap
from tests.wire import captured
from tests.wire.messages import flows, messages
from tests.wire.test_crc import remainder

SIZES = (0, 1, 2, 63, 255, 256, 257, 1030)


TSHARK = ("tshark", "-n", "--disable-protocol", "rpcordma", "--disable-protocol", "infiniband.eoib")
"""Without two dissectors that take any payload of a few bytes for theirs, and stumble."""


def tshark(path: Path, *fields: str) -> list[list[str]]:
    """These fields of every packet."""
    command = [*TSHARK, "-r", str(path), "-T", "fields", *(word for field in fields for word in ("-e", field))]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split("\t") for line in lines]


def dissected(packet: Packet) -> bool:
    """Whether tshark knows more than the BTH."""
    return packet.opcode & 0xE0 in (Transport.RC, Transport.UC, Transport.UD)


def written(
    path: Path, packets: Iterable[bytes], limit: int = 20_000, link_type: LinkType = LinkType.INFINIBAND
) -> Path:
    with PcapngWriter(path, limit, link_type=link_type) as writer:
        interface = writer.interface("softhca0/1")
        for number, packet in enumerate(packets):
            writer.write(interface, packet, 1_000_000_000 + number)
    return path


@pytest.fixture(scope="module")
def sent() -> list[Packet]:
    """Every opcode at eight sizes, with and without GRH."""
    return [
        packet
        for flow in flows(256)
        for size in SIZES
        for packet in messages(flow, bytes(i & 0xFF for i in range(size)))
    ]


@pytest.fixture(scope="module")
def capture(sent: list[Packet], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In the form that tshark dissects."""
    path = tmp_path_factory.mktemp("capture") / "all.pcapng"
    return written(path, (packet.build() for packet in sent), link_type=LinkType.ERF)


@pytest.fixture(scope="module")
def bare_capture(sent: list[Packet], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In the registered form."""
    return written(tmp_path_factory.mktemp("capture") / "all.pcapng", (packet.build() for packet in sent))


def test_tshark_finds_nothing_malformed(capture: Path) -> None:
    command = [*TSHARK, "-r", str(capture), "-Y", "_ws.malformed or _ws.short or _ws.expert.severity >= 0x600000"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""


def test_tshark_reads_what_was_sent(sent: list[Packet], capture: Path) -> None:
    """Of XRC and manufacturers' opcodes it knows the BTH only."""
    rows = tshark(
        capture,
        "infiniband.bth.opcode",
        "infiniband.bth.psn",
        "infiniband.bth.destqp",
        "infiniband.bth.padcnt",
        "infiniband.lrh.slid",
        "infiniband.lrh.pktlen",
        "infiniband.invariant.crc",
        "infiniband.variant.crc",
    )
    assert len(rows) == len(sent)
    for packet, row in zip(sent, rows, strict=True):
        data = packet.build()
        numbers = [int(value, 0) for value in row if value]
        assert numbers[:6] == [packet.opcode, packet.bth.psn, 0x48, -len(packet.payload) % 4, 3, (len(data) - 2) // 4]
        if not dissected(packet):
            assert numbers[6:] == []
            continue
        assert numbers[6:] == [int.from_bytes(data[-6:-2], "big"), int.from_bytes(data[-2:], "big")]


def test_tshark_reads_the_extended_headers(sent: list[Packet], capture: Path) -> None:
    """It gives immediate data twice, as header and as value, and calls the address of an atomic that of a RETH."""
    names = ("reth.va", "reth.dmalen", "immdt", "deth.q_key", "aeth.msn", "atomiceth.cmpdt", "atomicacketh.origremdt")
    rows = tshark(capture, *(f"infiniband.{name}" for name in names))
    for packet, row in zip(sent, rows, strict=True):
        if not dissected(packet):
            continue
        reth, deth, aeth = packet.reth, packet.deth, packet.aeth
        atomic, answer = packet.atomic_eth, packet.atomic_ack_eth
        place = reth or atomic
        given = [
            None if not value else int(value.partition(",")[0], 16 if name == "immdt" else 0)
            for name, value in zip(names, row, strict=True)
        ]
        assert given == [
            place and place.va,
            reth and reth.dma_length,
            packet.immediate,
            deth and deth.qkey,
            aeth and aeth.msn,
            atomic and atomic.compare_data,
            answer and answer.original_remote_data,
        ]


def test_crcs_in_the_file_by_an_independent_computation(bare_capture: Path) -> None:
    """Each distinct opcode and size once, bit by bit, from what scapy reads."""
    seen = set()
    for data, _ in raw_packets(bare_capture):
        has_grh = data[1] & 3 == 3
        at = 48 if has_grh else 8
        key = (data[at], len(data) > 80, has_grh)
        if key in seen:
            continue
        seen.add(key)
        masked = bytearray(data[:-6])
        if has_grh:
            masked[:8] = b"\xff" * 8
            masked[8] |= 0x0F
            masked[9:12] = b"\xff" * 3
            masked[15] = 0xFF
        else:
            masked[0] |= 0xF0
        masked[at + 4] = 0xFF
        assert remainder(masked, 0x04C11DB7, 32) == data[-6:-2]
        assert remainder(data[:-2], 0x100B, 16) == data[-2:]
    assert len(seen) > 100


def raw_packets(path: Path) -> list[tuple[bytes, Any]]:
    with RawPcapNgReader(str(path)) as reader:
        return list(reader)


def test_captured_packets_are_shown_as_such(tmp_path: Path) -> None:
    path = written(tmp_path / "captured.pcapng", captured.WHOLE, link_type=LinkType.ERF)
    rows = tshark(path, "frame.time_epoch", "frame.len", "frame.interface_name", "_ws.col.Protocol")
    assert [row[:3] for row in rows] == [
        [f"1.{number:09}", str(len(packet)), "softhca0/1"] for number, packet in enumerate(captured.WHOLE)
    ]
    assert [row[3] for row in rows] == ["InfiniBand", "ARP", "ARP", "ICMP", "InfiniBand"]


def test_the_file_to_the_byte(tmp_path: Path) -> None:
    data = written(tmp_path / "one.pcapng", [captured.IB_RC_ACKNOWLEDGE]).read_bytes()
    blocks = []
    while data:
        kind, total = unpack_from("<II", data)
        assert total % 4 == 0
        assert unpack_from("<I", data, total - 4) == (total,)
        blocks.append((kind, data[8 : total - 4]))
        data = data[total:]
    assert [kind for kind, _ in blocks] == [0x0A0D0D0A, 1, 6, 5]
    assert unpack_from("<IHHq", blocks[0][1]) == (0x1A2B3C4D, 1, 0, -1)
    assert unpack_from("<HHI", blocks[1][1]) == (LinkType.INFINIBAND, 0, 0)
    assert blocks[2][1] == (
        bytes.fromhex("00000000 00000000 00ca9a3b 1e000000 1e000000") + captured.IB_RC_ACKNOWLEDGE + bytes(2)
    )


def test_both_forms_hold_the_same_packets(capture: Path, bare_capture: Path) -> None:
    bare = [data for data, _ in raw_packets(bare_capture)]
    assert [data[16:] for data, _ in raw_packets(capture)] == bare
    for data, _ in raw_packets(capture):
        assert unpack_from("<Q", data)[0] >> 32 == 1
        assert unpack_from(">BBHHH", data, 8) == (21, 4, len(data), 0, len(data) - 16)


def test_time_stamps_count_from_the_epoch(tmp_path: Path) -> None:
    path = tmp_path / "epoch.pcapng"
    with PcapngWriter(path, epoch=1_700_000_000_000_000_000) as writer:
        writer.write(writer.interface("a"), captured.IB_RC_ACKNOWLEDGE, 5)
        writer.write(writer.interface("b"), captured.IB_RC_ACKNOWLEDGE, 1 << 40)
    assert tshark(path, "frame.time_epoch", "frame.interface_name") == [
        ["1700000000.000000005", "a"],
        ["1700001099.511627776", "b"],
    ]


def test_no_more_than_the_limit(tmp_path: Path) -> None:
    path = written(tmp_path / "limit.pcapng", [captured.IB_RC_ACKNOWLEDGE] * 5, limit=3)
    assert len(tshark(path, "frame.len")) == 3
    assert b"the limit of 3 packets is reached" in path.read_bytes()
    with pytest.raises(ValueError, match=r"PcapngWriter.limit: -1 packets"):
        PcapngWriter(tmp_path / "none.pcapng", limit=-1)


def test_an_interface_must_be_described(tmp_path: Path) -> None:
    with PcapngWriter(tmp_path / "x.pcapng") as writer, pytest.raises(ValueError, match="interface: 0 given, 0 are"):
        writer.write(0, b"", 0)
    writer.close()
    assert writer.closed


class Clock:
    """Time that the test sets."""

    def __init__(self) -> None:
        self.time = 0

    def now(self) -> int:
        return self.time


def test_taps_of_two_ports_share_a_file(tmp_path: Path) -> None:
    path, clock = tmp_path / "tap.pcapng", Clock()
    flow = Flow(Transport.RC, 5, mtu=256)
    with PcapngWriter(path, limit=5, link_type=LinkType.ERF) as writer:
        one, other = Tap(writer, "one", clock.now), Tap(writer, "other", clock.now)
        one.record(segment.send(flow, 0, bytes(512)))
        clock.time = 2_000
        other.record([segment.acknowledge(flow, 1, 1)])
        assert one.open
        one.record(segment.send(flow, 2, bytes(1 << 20)))
        assert not one.open
        other.record([segment.acknowledge(flow, 3, 1)])
    assert tshark(path, "frame.time_epoch", "frame.interface_name", "infiniband.bth.opcode") == [
        ["0.000000000", "one", "0"],
        ["0.000000000", "one", "2"],
        ["0.000002000", "other", "17"],
        ["0.000002000", "one", "0"],
        ["0.000002000", "one", "1"],
    ]
    one.record([segment.acknowledge(flow, 3, 1)])


def test_a_full_disk_ends_the_recording_only() -> None:
    writer = PcapngWriter("/dev/full")
    tap = Tap(writer, "one", lambda: 0)
    flow = Flow(Transport.RC, 5)
    for psn in range(10):
        tap.record(segment.send(flow, psn, bytes(4096)))
    assert tap.failure is not None
    assert not tap.open
    with pytest.raises(OSError, match="No space"):
        writer.close()
    assert writer.closed
