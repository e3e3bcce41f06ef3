"""A host that drives a card with raw bytes: every entry and mailbox can be malformed at will."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import reduce
from operator import xor

from softhca.bus import Engine, Iova, VirtualClock
from softhca.bus.local import LocalHost
from softhca.hca.device import Hca
from softhca.hca.profile import Profile, load_profile
from softhca.prm.layout import Layout
from softhca.prm.opcodes import Opcode

PAGE = 4096
MILLISECOND = 1_000_000
DATA = 512
MAILBOX = 0x240
SLOTS = 32
PAGE_SLOT = SLOTS - 1


def sum8(data: bytes | bytearray | memoryview) -> int:
    """XOR of all bytes, byte by byte."""
    return reduce(xor, data, 0)


def words(*values: int) -> bytes:
    """Big-endian 32-bit words."""
    return struct.pack(f">{len(values)}I", *values)


@dataclass
class Message:
    """A command in a slot: its entry and its mailboxes, as they lie in memory."""

    slot: int
    entry: bytearray
    input: list[tuple[Iova, memoryview]] = field(default_factory=list)
    output: list[tuple[Iova, memoryview]] = field(default_factory=list)

    def sign(self) -> None:
        """Make the entry's signature right (it ends with an XOR of 0xFF)."""
        self.entry[0x3D] = 0
        self.entry[0x3D] = ~sum8(self.entry) & 0xFF

    def set_word(self, offset: int, value: int) -> None:
        """Change a word of the entry and sign it again."""
        self.entry[offset : offset + 4] = words(value)
        self.sign()

    def set_pointer(self, offset: int, value: int) -> None:
        """Change a pointer of the entry and sign it again."""
        self.entry[offset : offset + 8] = value.to_bytes(8, "big")
        self.sign()


@dataclass
class Result:
    """What came back: delivery status, and the whole output."""

    delivery: int
    output: bytes

    @property
    def status(self) -> int:
        """Command status."""
        return self.output[0]

    @property
    def syndrome(self) -> int:
        """Syndrome of the command."""
        return int.from_bytes(self.output[4:8], "big")

    def word(self, offset: int) -> int:
        """A word of the output."""
        return int.from_bytes(self.output[offset : offset + 4], "big")


class RawHost:
    """A machine with one card, and the command queue in it."""

    def __init__(
        self,
        profile: Profile | str = "connectx-6-ib",
        *,
        seed: int = 1,
        flash: bytes | None = None,
        strict: bool = True,
        memory: int = 64 << 20,
        hca: Hca | None = None,
    ) -> None:
        if isinstance(profile, str):
            profile = load_profile(profile)
        if hca is None:
            hca = Hca(Engine(VirtualClock(), seed=seed), profile, flash=flash, strict=strict)
        self.engine, self.hca = hca.engine, hca
        self.machine = LocalHost(memory)
        self.machine.plug(self.hca)
        self.queue, self.slots = self.machine.allocate(PAGE)
        self.token = 0
        self.interrupts: list[int] = []
        for vector in range(self.hca.vectors):
            self.machine.on_interrupt(vector, lambda number=vector: self.interrupts.append(number))  # type: ignore[misc]

    def read(self, offset: int) -> int:
        """A word of BAR0."""
        return int.from_bytes(self.hca.bar_read(0, offset, 4), "big")

    def write(self, offset: int, value: int) -> None:
        """Write a word of BAR0."""
        self.hca.bar_write(0, offset, words(value))

    def bus_master(self, on: bool = True) -> None:
        """Memory decoding on, Bus Master on or off."""
        self.hca.config_write(4, bytes([6 if on else 2, 0]))

    def place_queue(self) -> None:
        """Tell the card where the queue is: high word, then low word."""
        self.write(0x10, self.queue >> 32)
        self.write(0x14, self.queue & 0xFFFF_FFFF)

    def start(self) -> RawHost:
        """As far as the command queue."""
        self.bus_master()
        self.place_queue()
        return self

    def mailboxes(self, token: int, length: int, data: bytes = b"") -> list[tuple[Iova, memoryview]]:
        """A well-formed chain for a message of `length` bytes, whose bytes from 16 on are `data`."""
        count = -(-(length - 16) // DATA) if length > 16 else 0
        if not count:
            return []
        base, view = self.machine.allocate(count * 1024)
        chain = []
        for number in range(count):
            block = view[number * 1024 : number * 1024 + MAILBOX]
            part = data[number * DATA : number * DATA + DATA]
            block[: len(part)] = part
            following = base + (number + 1) * 1024 if number + 1 < count else 0
            block[0x230:0x238] = following.to_bytes(8, "big")
            block[0x238:0x23C] = words(number)
            block[0x23D] = token
            chain.append((Iova(base + number * 1024), block))
        return chain

    def message(self, data: bytes, room: int, slot: int = 0) -> Message:
        """A well-formed, signed command that is not submitted yet."""
        self.token = self.token % 255 + 1
        source = self.mailboxes(self.token, len(data), data[16:])
        target = self.mailboxes(self.token, room)
        entry = bytearray(64)
        entry[0] = 7
        entry[4:8] = words(len(data))
        entry[8:16] = (source[0][0] if source else 0).to_bytes(8, "big")
        entry[16 : 16 + min(16, len(data))] = data[:16]
        entry[0x30:0x38] = (target[0][0] if target else 0).to_bytes(8, "big")
        entry[0x38:0x3C] = words(room)
        entry[0x3C] = self.token
        entry[0x3F] = 1
        message = Message(slot, entry, source, target)
        message.sign()
        return message

    def slot(self, number: int) -> memoryview:
        """An entry in memory."""
        return self.slots[number * 64 : number * 64 + 64]

    def ring(self, *messages: Message) -> None:
        """Hand entries over and ring for all of them at once."""
        vector = 0
        for message in messages:
            self.slot(message.slot)[:] = message.entry
            vector |= 1 << message.slot
        self.write(0x18, vector)

    def owned(self, message: Message) -> bool:
        """Whether the device still owns the entry."""
        return bool(self.slot(message.slot)[0x3F] & 1)

    def settle(self) -> None:
        """Run the engine until nothing is ready."""
        while self.engine.run():
            pass

    def result(self, message: Message) -> Result:
        """Read a completed command and free its mailboxes."""
        entry = bytes(self.slot(message.slot))
        assert not entry[0x3F] & 1, "the device still owns the entry"
        assert sum8(entry) == 0xFF
        room = int.from_bytes(entry[0x38:0x3C], "big")
        output = entry[0x20:0x30] + b"".join(bytes(block[:DATA]) for _, block in message.output)
        for chain in (message.input, message.output):
            if chain:
                self.machine.free(chain[0][0])
        return Result(entry[0x3F] >> 1, output[:room])

    def submit(self, message: Message) -> Result:
        """Ring for one command and run it to its end."""
        self.ring(message)
        self.settle()
        return self.result(message)

    def command(self, opcode: int, request: Layout | bytes = b"", room: int = 16, slot: int = 0) -> Result:
        """Run a well-formed command; the opcode goes into its first half word."""
        data = bytearray(bytes(request).ljust(16, b"\0"))
        data[0:2] = opcode.to_bytes(2, "big")
        return self.submit(self.message(bytes(data), room, slot))

    def good(self, opcode: int, request: Layout | bytes = b"", room: int = 16, slot: int = 0) -> Result:
        """A command that must succeed."""
        result = self.command(opcode, request, room, slot)
        assert (result.delivery, result.status) == (0, 0), f"{opcode:#x}: {result}"
        return result

    def query_pages(self, kind: int, function_id: int = 0) -> int:
        """Pages lacking (positive) or returnable (negative)."""
        number = self.good(Opcode.QUERY_PAGES, words(0, kind, function_id, 0)).word(12)
        return number - (1 << 32) if number >> 31 else number

    def give_message(self, pages: list[int], slot: int = PAGE_SLOT, function_id: int = 0) -> Message:
        """MANAGE_PAGES (give)."""
        head = struct.pack(">HHIII", Opcode.MANAGE_PAGES, 0, 1, function_id, len(pages))
        return self.message(head + b"".join(page.to_bytes(8, "big") for page in pages), 16, slot)

    def new_pages(self, count: int) -> list[int]:
        """Pages of this machine."""
        return [self.machine.allocate(PAGE)[0] for _ in range(count)]

    def give(self, count: int, function_id: int = 0) -> list[int]:
        """Give pages, which must be accepted."""
        pages = self.new_pages(count)
        result = self.submit(self.give_message(pages, function_id=function_id))
        assert (result.delivery, result.status) == (0, 0), str(result)
        return pages

    def take(self, count: int, *, slot: int = PAGE_SLOT, function_id: int = 0) -> list[int]:
        """Take pages back: what came."""
        result = self.good(Opcode.MANAGE_PAGES, words(0, 2, function_id, count), 16 + 8 * count, slot)
        number = result.word(8)
        assert number <= count
        return [int.from_bytes(result.output[16 + 8 * i : 24 + 8 * i], "big") for i in range(number)]

    def enable(self) -> RawHost:
        """As far as the selection of an ISSI."""
        self.start()
        self.good(Opcode.ENABLE_HCA, room=12)
        self.good(Opcode.SET_ISSI, words(0, 0, 1, 0))
        return self

    def ready(self) -> RawHost:
        """As far as the boot pages."""
        self.enable()
        self.give(self.query_pages(1))
        return self

    def initialize(self) -> RawHost:
        """As far as INIT_HCA."""
        self.ready()
        self.give(self.query_pages(2))
        self.good(Opcode.INIT_HCA, bytes(32))
        return self

    def create_eq(self, mask: int, *, log_size: int = 4, vector: int = 0) -> tuple[int, memoryview]:
        """An EQ for these events: its number, and its buffer."""
        uar = self.good(Opcode.ALLOC_UAR).word(8)
        address, view = self.machine.allocate(64 << log_size)
        for at in range(63, len(view), 64):
            view[at] = 1
        request = bytearray(272)
        context = bytearray(64)
        context[0x0C:0x10] = words(log_size << 24 | uar)
        context[0x14:0x18] = words(vector)
        request[16:80] = context
        request[0x58:0x60] = mask.to_bytes(8, "big")
        request += b"".join(page.to_bytes(8, "big") for page in range(address, address + len(view), PAGE))
        return self.good(Opcode.CREATE_EQ, bytes(request)).word(8) & 0xFF, view
