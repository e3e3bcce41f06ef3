"""Random streams of work requests: what the device does is what the model does."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softhca.prm.cqe import CqeOpcode
from softhca.prm.qp import QpState, ServiceType
from softhca.prm.wqe import WqeOpcode
from tests.hca.model import ATOMICS, IMMEDIATE, OPCODES, RECEIVED, WRITES, Part, Work
from tests.hca.model_rig import OPEN, SHUT, End, Place, Rig, Setup

FUZZ = int(os.environ.get("SOFTHCA_FUZZ", "1"))
EXAMPLES = FUZZ * 15
RUNS = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
WORD = st.one_of(st.integers(0, (1 << 64) - 1), st.sampled_from((0, 1, (1 << 64) - 1, 1 << 63)))
LENGTH = st.sampled_from((1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100, 255, 1000, 2047, 4095, 4096))
AT = st.integers(0, 1 << 14)
LONGEST = 4096
ROOM = 5000
"""A receive work request holds any message, unless it is a wrong one."""
NEEDS = {WqeOpcode.RDMA_READ: "rr"} | dict.fromkeys(WRITES, "rw") | dict.fromkeys(ATOMICS, "a")
PERMITS = {WqeOpcode.RDMA_READ: "read"} | dict.fromkeys(WRITES, "write") | dict.fromkeys(ATOMICS, "atomic")
PLAIN = ("flat",) * 10
"""Pages one behind the other, as most keys have them: the fast loop takes these."""
NEAR = Place("mtt", 0, 1)


@dataclass(frozen=True)
class Step:
    """Something that is done to both.

    Attributes:
        kind: send, receive, bind, turn (pages of a key), recover (an unreliable QP's send queue).
        wrong: what is wrong with it: local, remote, long, opcode, receive (there may be none); "" is nothing.
        local, remote, words: the rest is what the kind needs.
        hits: a compare finds what it compares with.
        choice: of variants.
        repeat: so many of them are posted, one place further each time.
    """

    kind: str
    side: int
    wrong: str = ""
    opcode: WqeOpcode = WqeOpcode.NOP
    local: tuple[Place | bytes, ...] = ()
    remote: Place = NEAR
    words: tuple[int, int, int, int] = (0, 0, 0, 0)
    hits: bool = False
    signalled: bool = True
    solicited: bool = False
    ring: bool = True
    choice: int = 0
    repeat: int = 1


SIDES = st.integers(0, 1)
WRONG = st.sampled_from(("",) * 120 + ("local", "remote", "long", "opcode", "receive"))
PLACES = st.builds(Place, st.sampled_from((*OPEN * 2, *PLAIN, "null")), AT, LENGTH)
PARTS = st.one_of(PLACES, PLACES, PLACES, st.binary(max_size=150))
REMOTE = st.builds(Place, st.sampled_from((*OPEN, *PLAIN, "window", "window")), AT, LENGTH)


def sends(service: ServiceType) -> st.SearchStrategy[Step]:
    """Send work requests of a service."""
    return st.builds(
        Step,
        kind=st.just("send"),
        side=SIDES,
        wrong=WRONG,
        opcode=st.sampled_from((*sorted(OPCODES[service]), WqeOpcode.NOP)),
        local=st.one_of(st.tuples(PLACES), st.lists(PARTS, max_size=4).map(tuple)),
        remote=REMOTE,
        words=st.tuples(WORD, WORD, WORD, WORD),
        hits=st.booleans(),
        signalled=st.sampled_from((True, True, False)),
        solicited=st.booleans(),
        ring=st.sampled_from((True, True, True, False)),
        choice=st.integers(0, 15),
        repeat=st.sampled_from((1, 1, 1, 1, 2, 7)),
    )


RECEIVES = st.builds(
    Step,
    kind=st.just("receive"),
    side=SIDES,
    wrong=WRONG,
    local=st.lists(PLACES, max_size=2).map(tuple),
    remote=st.builds(Place, st.sampled_from((*OPEN, *PLAIN)), AT, st.just(ROOM)),
)
BINDS = st.builds(Step, kind=st.just("bind"), side=SIDES, wrong=WRONG, remote=REMOTE, choice=st.integers(0, 15))
TURNS = st.builds(Step, kind=st.just("turn"), side=SIDES, choice=st.integers(0, 15))
RECOVERS = st.builds(Step, kind=st.just("recover"), side=SIDES)


def streams(service: ServiceType) -> st.SearchStrategy[list[Step]]:
    """Up to 60 steps."""
    kinds = {"send": sends(service), "receive": RECEIVES, "recover": RECOVERS, "bind": BINDS, "turn": TURNS}
    names = ["send"] * 6 + ["receive"] * 4 + ["turn"]
    names += ["recover"] if service in (ServiceType.UC, ServiceType.UD) else []
    names += ["bind"] if service in (ServiceType.RC, ServiceType.UC) else []
    step = st.sampled_from(names).flatmap(kinds.__getitem__)
    return st.integers(0, 60).flatmap(lambda count: st.lists(step, min_size=count, max_size=count))


def setups(service: ServiceType) -> st.SearchStrategy[Setup]:
    """How the two QPs are made."""
    kinds = st.sampled_from(("own", "own", "srq", "rmp"))
    carried = (0, 0, 0, 32, 64) if service in (ServiceType.RC, ServiceType.UC) else (0,)
    return st.builds(
        Setup,
        service=st.just(service),
        devices=st.integers(1, 2),
        pools=st.tuples(kinds, kinds),
        wide_cqes=st.booleans(),
        rnr_retry=st.sampled_from((0, 2, 7, 7, 7)),
        host_order=st.booleans(),
        carried=st.sampled_from(carried),
        forbidden=st.sampled_from(("", "", "", "read", "write", "atomic")),
    )


def spoil(place: Place, choice: int) -> Place:
    """A place that is not to be had: a key that refuses, or one byte too far."""
    key = (*SHUT, "mtt", "klm", "ksm", "deep")[(place.at + choice) % (len(SHUT) + 4)]
    return Place(key, place.at, place.length, wild=True)


def local_parts(step: Step, opcode: WqeOpcode) -> list[Place | bytes]:
    """Local parts of a step, of a message that is not too long."""
    parts = list(step.local)
    if opcode is WqeOpcode.RDMA_READ or opcode in ATOMICS:
        parts = [part for part in parts if isinstance(part, Place)]
    if opcode in ATOMICS:
        place = parts[0] if parts and isinstance(parts[0], Place) else NEAR
        split = step.choice % 8
        parts = [Place(place.key, place.at, 8 - split)]
        parts += [Place("pa", place.at, split)] if split else []
    if step.wrong == "local":
        return [*parts[:-1], spoil(NEAR, step.choice)]
    if step.wrong == "long":
        return [Place("pa", 1, LONGEST), Place("pa", 0, 1)]
    kept: list[Place | bytes] = []
    left = LONGEST
    for part in parts:
        size = min(left, len(part) if isinstance(part, bytes) else part.length)
        if size or isinstance(part, bytes):
            kept.append(part[:size] if isinstance(part, bytes) else Place(part.key, part.at, size))
        left -= size
    return kept


def remote_part(rig: Rig, end: End, step: Step, opcode: WqeOpcode, length: int) -> Part:
    """The remote part, in a key that allows what the opcode does."""
    place, aligned = step.remote, opcode in ATOMICS and (step.wrong != "remote" or step.choice % 3 > 0)
    if step.wrong == "remote":
        return rig.remote(end, spoil(place, step.choice), length, aligned=aligned)
    peer = rig.peer(end).model
    found = rig.remote(end, place, length, aligned=aligned)
    if opcode in NEEDS and peer.find(found, NEEDS[opcode]) is None:
        found = rig.remote(end, Place("pa", place.at, length), length, aligned=aligned)
    return found


def work(rig: Rig, end: End, step: Step) -> Work:
    """The work request of a step, in numbers."""
    service, opcode = rig.setup.service, step.opcode
    if PERMITS.get(opcode) == rig.setup.forbidden and step.wrong != "remote":
        opcode = WqeOpcode.SEND
    if opcode is WqeOpcode.SEND_INVAL and not rig.window(rig.peer(end)).usable and step.wrong != "remote":
        opcode = WqeOpcode.SEND_IMM
    if step.wrong == "opcode":
        opcode = WqeOpcode.LSO if service in (ServiceType.RC, ServiceType.XRC) else WqeOpcode.RDMA_READ
    local = rig.local(end, local_parts(step, opcode))
    length = sum(len(part) if isinstance(part, bytes) else part.length for part in local)
    remote = remote_part(rig, end, step, opcode, length)
    values = list(step.words)
    places = rig.peer(end).model.find(remote, "a")
    if step.hits and opcode is not WqeOpcode.ATOMIC_MASKED_FA and length == 8 and places is not None:
        values[1] = int.from_bytes(rig.peer(end).model.read(places), "little")
    immediate = values[0] & 0xFFFF_FFFF
    if opcode is WqeOpcode.SEND_INVAL:
        immediate = remote.key if step.wrong == "remote" else rig.peer(end).names["window"]
    lost = step.choice if service is ServiceType.UD and step.choice < 3 else 0
    return Work(
        0,
        opcode,
        local,
        remote,
        immediate,
        tuple(values) if opcode is WqeOpcode.ATOMIC_MASKED_CS else tuple(values[:2]),
        step.signalled,
        step.solicited,
        route=rig.route(end, length, grh=step.hits, lost=lost, immediate=opcode in IMMEDIATE),
    )


def sends_of(step: Step) -> list[Step]:
    """A step that is repeated, one by one; the last one rings, if any does. Long bursts are of the plainest shape."""
    if step.repeat > 2 and step.kind == "send":
        near = next((part for part in step.local if isinstance(part, Place)), NEAR)
        step = replace(step, local=(replace(near, key="flat"),), remote=replace(step.remote, key="flat"))

    def moved(place: Place, count: int) -> Place:
        return replace(place, at=place.at + count * place.length)

    return [
        replace(
            step,
            local=tuple(moved(part, count) if isinstance(part, Place) else part for part in step.local),
            remote=moved(step.remote, count),
            ring=step.ring and count == step.repeat - 1,
        )
        for count in range(step.repeat)
    ]


def send(rig: Rig, end: End, step: Step) -> None:
    """Post a send work request. One whose receive work request is missing kills a QP that does not wait for it."""
    posted = work(rig, end, step)
    peer = rig.peer(end)
    fatal = rig.setup.service in (ServiceType.RC, ServiceType.XRC) and rig.setup.rnr_retry != 7
    if fatal and step.wrong != "receive" and posted.opcode in RECEIVED and peer.model.state is QpState.RTS:
        while sum(other.opcode in RECEIVED for other in end.model.posted) >= len(peer.model.receives):
            if not rig.receive(peer, [Place("pa", step.remote.at, ROOM)]):
                return
    rig.send(end, posted, ring=step.ring)


def receive(rig: Rig, end: End, step: Step) -> None:
    """Post a receive work request."""
    places = [place for place in step.local if isinstance(place, Place)] + [step.remote]
    if step.wrong in ("local", "remote"):
        places[0] = spoil(places[0], step.choice)
    elif step.wrong:
        places = places[:1]
    rig.receive(end, places)


def bind(rig: Rig, end: End, step: Step) -> None:
    """Bind the window of a side when it is not bound, else invalidate it."""
    bound = rig.window(end).usable
    rights = frozenset((("rr",), ("rw",), ("rr", "rw"), ("rr", "rw", "a"))[step.choice % 4])
    place = Place("mtt" if step.remote.key == "window" else step.remote.key, step.remote.at, ROOM)
    if step.wrong:
        bound, place = step.choice > 9, spoil(place, step.choice)
    rig.send(end, rig.bind(end, None if bound else place, rights), ring=True)


def follow(setup: Setup, steps: list[Step]) -> None:
    """Do the steps, one after the other; after each the device and the model agree."""
    rig = Rig(setup)
    kinds = {"send": send, "receive": receive, "bind": bind}
    for step in steps:
        end = (rig.left, rig.right)[step.side]
        if step.kind == "recover":
            rig.recover(end)
        elif step.kind == "turn":
            rig.turn(end, Random(step.choice))
        else:
            for single in sends_of(step):
                kinds[step.kind](rig, end, single)
        rig.settle()


@RUNS
@given(data=st.data())
@pytest.mark.parametrize("service", OPCODES, ids=lambda service: service.name)
@pytest.mark.requirement("A2", "A3", "G2", "G3", "G4", "G5")
def test_streams(service: ServiceType, data: st.DataObject) -> None:
    follow(data.draw(setups(service)), data.draw(streams(service)))


BURSTS = st.builds(
    Step,
    kind=st.just("send"),
    side=SIDES,
    opcode=st.sampled_from((WqeOpcode.SEND, WqeOpcode.SEND_IMM, WqeOpcode.RDMA_WRITE, WqeOpcode.RDMA_READ)),
    local=st.tuples(st.builds(Place, st.just("flat"), AT, LENGTH)),
    remote=st.builds(Place, st.just("flat"), AT, LENGTH),
    words=st.tuples(WORD, WORD, WORD, WORD),
    signalled=st.booleans(),
    solicited=st.booleans(),
    ring=st.booleans(),
    repeat=st.integers(3, 15),
)
ROOMS = st.builds(Step, kind=st.just("receive"), side=SIDES, remote=st.just(Place("flat", 0, ROOM)), repeat=st.just(3))


@RUNS
@given(
    setup=st.builds(
        Setup,
        service=st.just(ServiceType.RC),
        devices=st.integers(1, 2),
        pools=st.tuples(*[st.sampled_from(("own", "srq", "rmp"))] * 2),
        rnr_retry=st.just(7),
        carried=st.sampled_from((0, 32)),
    ),
    steps=st.lists(st.one_of(BURSTS, ROOMS, TURNS), min_size=10, max_size=30),
)
@pytest.mark.requirement("A3", "G5")
def test_bursts(setup: Setup, steps: list[Step]) -> None:
    follow(setup, steps)


def wrap_sends(rig: Rig) -> None:
    """Bring the left send queue to the end of its index."""
    for _ in range((1 << 16) // 16 - 1):
        for _ in range(16):
            rig.left.queue.post(WqeOpcode.NOP, flags=0, ring=False)
        rig.ring(rig.left)
    for _ in range(12):
        rig.left.queue.post(WqeOpcode.NOP, flags=0, ring=False)
    rig.ring(rig.left)


def wrap_both(rig: Rig) -> None:
    """The same, and the right receive queue."""
    for _ in range((1 << 16) // 4 - 1):
        for _ in range(4):
            assert rig.receive(rig.right, [NEAR])
            rig.left.queue.post(WqeOpcode.SEND, flags=0, ring=False)
        rig.right.model.receives.clear()
        rig.ring(rig.left)
        for _ in range(4):
            rig.right.received.good(CqeOpcode.RESP_SEND)


LONG = pytest.mark.skipif(FUZZ == 1, reason="one of the long runs: make fuzz")


@pytest.mark.parametrize(
    ("wrap", "pool"),
    [
        (wrap_sends, "own"),
        pytest.param(wrap_both, "own", marks=LONG),
        pytest.param(wrap_both, "srq", marks=LONG),
        pytest.param(wrap_both, "rmp", marks=LONG),
    ],
)
@pytest.mark.requirement("A3", "G2")
def test_indices_wrap_at_16_bits(wrap: Callable[[Rig], None], pool: str) -> None:
    rig = Rig(Setup(ServiceType.RC, pools=("own", pool), rnr_retry=7))
    wrap(rig)
    rig.left.stalled = False
    assert rig.left.queue.sends == (1 << 16) - 4
    long = Step("send", 0, opcode=WqeOpcode.SEND, local=(bytes(range(130)),))
    room = Step("receive", 1, remote=Place("pa", 77, ROOM))
    for step in [room, long] * 6 + [long] * 3 + [room] * 4:
        if step is long:
            send(rig, rig.left, step)
        else:
            receive(rig, rig.right, step)
        rig.settle()
    assert rig.left.queue.sends == 3 * 9 - 4
