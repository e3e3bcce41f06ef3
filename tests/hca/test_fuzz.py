"""Whatever a hostile host writes: no exception reaches the loop, and the next good command is answered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from softhca.hca.command import COMMANDS, Stage
from softhca.hca.icm import PAGE
from softhca.hca.profile import Pages, load_profile
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus, DeliveryStatus
from tests.hca.raw_host import MAILBOX, PAGE_SLOT, Message, RawHost, words

MOST_TURNS = 20_000
OPCODES = st.sampled_from(sorted(COMMANDS))
RUNS = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


def pump(host: RawHost) -> None:
    """Run what is ready; it must come to an end."""
    for _ in range(MOST_TURNS):
        if not host.engine.run(budget=1):
            return
    raise AssertionError(f"the engine is still busy after {MOST_TURNS} tasks")


def answers(host: RawHost) -> None:
    """The card takes and completes a good command, after a reset of the interface if the fuzz took it down."""
    host.bus_master()
    if host.hca.function.stage is Stage.INITIALIZED and host.hca.segment.nic_interface == 0:
        host.good(Opcode.QUERY_ADAPTER, room=272, slot=30)
        return
    host.write(0x14, 1 << 8)  # disabled
    pump(host)
    host.write(0x14, 1 << 8)  # a reset that was still under way is over now
    host.initialize()


def submit_raw(host: RawHost, message: Message) -> None:
    host.ring(message)
    pump(host)
    entry = bytes(host.slot(message.slot))
    if message.entry[0x3F] & 1:
        status = entry[0x3F] >> 1
        assert not entry[0x3F] & 1, "a command that does not wait for pages is completed"
        assert status in DeliveryStatus.__members__.values()
        if status == DeliveryStatus.OK and int.from_bytes(entry[0x38:0x3C], "big") >= 8:
            assert entry[0x20] in CommandStatus.__members__.values()
    answers(host)


@RUNS
@given(entry=st.binary(min_size=64, max_size=64), sign=st.booleans(), owned=st.booleans())
@pytest.mark.requirement("D9")
def test_any_entry(entry: bytes, sign: bool, owned: bool) -> None:
    host = RawHost().initialize()
    message = Message(0, bytearray(entry))
    message.entry[0x3F] = message.entry[0x3F] & 0xFE | owned
    if sign:
        message.sign()
    submit_raw(host, message)


@RUNS
@given(
    opcode=st.one_of(OPCODES, st.integers(0, 0xFFFF)),
    body=st.binary(max_size=1200),
    room=st.integers(0, 2000),
    op_mod=st.integers(0, 3),
)
@pytest.mark.requirement("D9", "D3")
def test_any_message(opcode: int, body: bytes, room: int, op_mod: int) -> None:
    host = RawHost().initialize()
    head = opcode.to_bytes(2, "big") + bytes(4) + op_mod.to_bytes(2, "big")
    submit_raw(host, host.message(head + body[: len(body) & ~3], room & ~3))


@RUNS
@given(opcode=OPCODES, data=st.data())
@pytest.mark.requirement("D9", "D3")
def test_messages_of_the_right_length(opcode: int, data: st.DataObject) -> None:
    host = RawHost().initialize()
    entry = COMMANDS[opcode]
    size = entry.request.SIZE + (8 * data.draw(st.integers(0, 8)) if entry.open_ended else 0)
    sparse = data.draw(st.dictionaries(st.integers(8, size - 1), st.integers(0, 255), max_size=12)) if size > 8 else {}
    body = bytearray(size)
    body[0:2] = opcode.to_bytes(2, "big")
    body[7] = data.draw(st.sampled_from(sorted(entry.op_mods or range(8))))
    for at, byte in sparse.items():
        body[at] = byte
    submit_raw(host, host.message(bytes(body), max(16, entry.reply.SIZE) + 64))


@RUNS
@given(
    blocks=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, MAILBOX - 1), st.integers(0, 255)), min_size=1, max_size=6
    ),
    output=st.booleans(),
)
@pytest.mark.requirement("D9", "D4")
def test_any_mailbox(blocks: list[tuple[int, int, int]], output: bool) -> None:
    host = RawHost().initialize()
    message = host.give_message(host.new_pages(150), slot=0)
    message.output = host.mailboxes(host.token, 16 + 3 * 512)
    message.set_pointer(0x30, message.output[0][0])
    message.set_word(0x38, 16 + 3 * 512)
    for block, at, byte in blocks:
        (message.output if output else message.input)[block][1][at] = byte
    submit_raw(host, message)


@RUNS
@given(
    writes=st.lists(
        st.tuples(
            st.one_of(st.integers(0, 0x1020), st.integers(0, 0x2_0000), st.integers(-8, 33 << 20)),
            st.binary(min_size=1, max_size=16),
        ),
        max_size=8,
    )
)
@pytest.mark.requirement("E1", "D7")
def test_any_bar_write(writes: list[tuple[int, bytes]]) -> None:
    host = RawHost().initialize()
    for offset, data in writes:
        host.hca.bar_write(0, offset, data)
        assert len(host.hca.bar_read(0, offset, len(data))) == len(data)
        pump(host)
    answers(host)


@RUNS
@given(vectors=st.lists(st.integers(0, 0xFFFF_FFFF), max_size=5), lanes=st.integers(0, 3))
@pytest.mark.requirement("D7")
def test_any_doorbell(vectors: list[int], lanes: int) -> None:
    host = RawHost().initialize()
    for vector in vectors:
        host.hca.bar_write(0, 0x18 + lanes, words(vector)[lanes:])
    pump(host)
    answers(host)


@RUNS
@given(
    accesses=st.lists(
        st.tuples(st.integers(0, 4100), st.binary(min_size=1, max_size=8)),
        max_size=8,
    )
)
@pytest.mark.requirement("C2")
def test_any_configuration_access(accesses: list[tuple[int, bytes]]) -> None:
    host = RawHost().initialize()
    for offset, data in accesses:
        host.hca.config_write(offset, data)
        assert len(host.hca.config_read(offset, len(data))) == len(data)
        host.write(0x18, 1)
        pump(host)
    answers(host)


@RUNS
@given(
    page=st.integers(16, 24),
    writes=st.lists(st.tuples(st.integers(0, 4095), st.binary(min_size=1, max_size=8)), max_size=10),
)
@pytest.mark.requirement("G1")
def test_any_uar_write(page: int, writes: list[tuple[int, bytes]]) -> None:
    host = RawHost().initialize()
    host.create_eq(1 << 0x0A)
    for offset, data in writes:
        host.hca.bar_write(0, page * PAGE + offset, data)
    pump(host)
    host.good(Opcode.QUERY_ADAPTER, room=272)


class Ledger(RuleBasedStateMachine):
    """The host's ledger, the stages, and the card's account must always agree."""

    def __init__(self) -> None:
        super().__init__()
        profile = replace(load_profile(), pages=Pages(boot=8, init=40))
        self.host = RawHost(profile, memory=16 << 20).start()
        self.held: set[int] = set()
        self.free: list[int] = []
        self.pds: set[int] = set()
        self.eqs: set[int] = set()
        self.used_pds: set[int] = set()
        self.waiting: dict[int, Message] = {}

    @property
    def stage(self) -> Stage:
        return self.host.hca.function.stage

    def execute(self, opcode: int, request: bytes = b"", room: int = 16) -> Any:
        return self.host.command(opcode, request, room)

    @initialize(steps=st.sampled_from([0, 3, 7, 7, 7]))
    def begin(self, steps: int) -> None:
        for _ in range(steps):
            self.advance()

    @rule()
    def advance(self) -> None:
        """The right next step of bring-up."""
        match self.stage:
            case Stage.DISABLED:
                self.host.good(Opcode.ENABLE_HCA, room=12)
            case Stage.ENABLED:
                self.select(1)
            case Stage.SELECTED:
                self.give(max(1, 8 - len(self.held)), repeat=False)
            case Stage.READY if len(self.held) < 48:
                self.give(48 - len(self.held), repeat=False)
            case Stage.READY:
                self.init()
            case Stage.INITIALIZED:
                self.allocate_pd()
            case Stage.TORN_DOWN:
                self.take(len(self.held))

    @rule()
    def enable(self) -> None:
        before = self.stage
        assert (self.execute(Opcode.ENABLE_HCA, room=12).status == 0) == (before is Stage.DISABLED)

    @rule(issi=st.integers(0, 2))
    def select(self, issi: int) -> None:
        allowed = self.stage in (Stage.ENABLED, Stage.SELECTED, Stage.READY) and issi < 2
        assert (self.execute(Opcode.SET_ISSI, words(0, 0, issi, 0)).status == 0) == allowed

    @rule(count=st.integers(1, 40), repeat=st.booleans())
    def give(self, count: int, repeat: bool) -> None:
        while len(self.free) < count:
            self.free.extend(self.host.new_pages(8))
        pages = self.free[:count]
        if repeat:
            pages = [*pages, next(iter(self.held), pages[0])]
        result = self.host.submit(self.host.give_message(pages))
        allowed = self.stage in (Stage.SELECTED, Stage.READY, Stage.INITIALIZED) and not repeat
        assert (result.status == 0) == allowed
        if allowed:
            assert result.word(8) == count
            self.held.update(pages)
            del self.free[:count]
        self.collect()

    @rule(count=st.integers(0, 60))
    def take(self, count: int) -> None:
        result = self.execute(Opcode.MANAGE_PAGES, words(0, 2, 0, count), 16 + 8 * count)
        assert (result.status == 0) == (self.stage is not Stage.DISABLED)
        if result.status == 0:
            number = result.word(8)
            back = [int.from_bytes(result.output[16 + 8 * i : 24 + 8 * i], "big") for i in range(number)]
            assert number <= count
            assert set(back) <= self.held
            assert len(set(back)) == number
            if self.stage is not Stage.INITIALIZED:
                assert number == min(count, len(self.held))
            self.held.difference_update(back)
            self.free.extend(back)
        self.collect()  # what waits is tried again then, and may fail for another reason than pages

    @rule()
    def init(self) -> None:
        ready = self.stage is Stage.READY and len(self.held) >= 48
        assert (self.execute(Opcode.INIT_HCA, bytes(32)).status == 0) == ready

    @rule()
    def query(self) -> None:
        for kind in (1, 2, 3):
            result = self.execute(Opcode.QUERY_PAGES, words(0, kind, 0, 0))
            if result.status == 0 and kind == 1:
                assert result.word(12) == max(0, 8 - len(self.held))

    @precondition(lambda self: self.stage is Stage.INITIALIZED)
    @rule()
    def allocate_pd(self) -> None:
        self.pds.add(self.host.good(Opcode.ALLOC_PD).word(8))

    @precondition(lambda self: self.pds)
    @rule(data=st.data())
    def free_pd(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.pds)))
        result = self.execute(Opcode.DEALLOC_PD, words(0, 0, number, 0))
        assert (result.status == 0) == (number not in self.used_pds)
        if result.status == 0:
            self.pds.remove(number)

    @precondition(lambda self: self.stage is Stage.INITIALIZED and not self.eqs)
    @rule()
    def page_events(self) -> None:
        number, _ = self.host.create_eq(1 << 0x0B, log_size=8)
        self.eqs.add(number)

    @precondition(lambda self: self.stage is Stage.INITIALIZED and len(self.waiting) < 20)
    @rule(octwords=st.sampled_from([0, 100, 1000, 20_000]), slot=st.integers(1, 25))
    def key(self, octwords: int, slot: int) -> None:
        if slot in self.waiting:
            return
        body = bytearray(272)
        body[0:2] = int(Opcode.CREATE_MKEY).to_bytes(2, "big")
        pd = next(iter(self.pds), None)
        if pd is None:
            return
        body[16:20] = words(1 << 30 | 1 << 8)  # free, MTT
        body[28:32] = words(pd)
        body[16 + 0x34 : 16 + 0x38] = words(octwords)
        body[16 + 0x38 : 16 + 0x3C] = words(12)
        message = self.host.message(bytes(body), 16, slot)
        self.host.ring(message)
        self.host.settle()
        self.waiting[slot] = message
        self.collect()

    @rule()
    def refuse(self) -> None:
        self.host.command(Opcode.MANAGE_PAGES, words(0, 0, 0, 0), slot=PAGE_SLOT)
        if self.stage is not Stage.DISABLED:
            self.collect()
            assert not self.waiting

    def collect(self) -> None:
        """Take completed keys out; those that wait must wait for a reason."""
        for slot, message in list(self.waiting.items()):
            if self.host.owned(message):
                assert self.eqs
                continue
            result = self.host.result(message)
            assert result.delivery == 0
            if result.status == 0:
                self.used_pds.add(int.from_bytes(message.input[0][1][12:16], "big"))
            del self.waiting[slot]

    @rule(really=st.integers(0, 3))
    def teardown_hca(self, really: int) -> None:
        if self.stage is Stage.INITIALIZED and really:
            return
        before = self.stage
        assert (self.execute(Opcode.TEARDOWN_HCA).status == 0) == (before is Stage.INITIALIZED)
        if before is Stage.INITIALIZED:
            self.gone()
            self.collect()
            assert not self.waiting

    @rule()
    def disable(self) -> None:
        before = self.stage
        result = self.execute(Opcode.DISABLE_HCA, room=12)
        assert (result.status == 0) == (before not in (Stage.DISABLED, Stage.INITIALIZED))
        if result.status == 0:
            record = self.host.hca.summary()["teardowns"][-1]
            assert record["pages_outstanding"] == len(self.held)
            self.gone()

    @rule(how=st.sampled_from(["no", "no", "no", "no", "interface", "reset"]))
    def start_over(self, how: str) -> None:
        if how == "no":
            return
        if how == "interface":
            self.host.write(0x14, 1 << 8)
        else:
            self.host.write(0x14, 7 << 8)
            self.host.settle()
        self.host.start()
        self.free.extend(self.held)
        self.held.clear()
        self.gone()
        self.waiting.clear()

    def gone(self) -> None:
        self.pds.clear()
        self.used_pds.clear()
        self.eqs.clear()

    @invariant()
    def accounts_agree(self) -> None:
        function = self.host.hca.function
        assert set(function.icm.pages) == self.held
        assert 0 <= function.icm.needed <= max(len(self.held), 0) or self.stage is not Stage.INITIALIZED
        assert function.icm.used >= 0
        assert self.host.hca.commands.in_flight == len(self.waiting)
        assert self.host.hca.commands.faults == 0

    @invariant()
    def stage_fits_the_pages(self) -> None:
        if self.stage is Stage.READY:
            assert len(self.held) >= 8
        if self.stage is Stage.SELECTED:
            assert len(self.held) < 8


Ledger.TestCase.settings = settings(deadline=None, max_examples=60, stateful_step_count=40)
TestLedger = pytest.mark.requirement("B6", "B8", "B9", "B10", "C5", "C8", "D6")(Ledger.TestCase)
