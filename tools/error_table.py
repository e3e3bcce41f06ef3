"""The error table (docs/errors.toml), and the words in which error_rows.py provokes each of its rows.

A scene is two queue pairs, a requester and a responder, with a memory, a key and a CQ each. There are two kinds:
tests/hca/error_scene.py drives the device in process, tools/verbs_scene.py is a program of user space in a guest. This
file and error_rows.py go into the guest too: they import nothing but the standard library.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

SIZE = 16384
"""Bytes of each memory, and of its key."""


@dataclass(frozen=True)
class Row:
    """A row of docs/errors.toml, which says what each field is."""

    id: str
    cause: str
    service: str = "RC"
    requester: list[str] = field(default_factory=list)
    responder: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    states: list[str] = field(default_factory=lambda: ["ERR", "RTS"])
    counter: str = ""
    kept: str = ""
    profile: str = ""
    unit_only: str = ""


def read_rows(path: Path) -> list[Row]:
    """The table."""
    return [Row(**row) for row in tomllib.loads(path.read_text(encoding="utf-8"))["error"]]


@dataclass(frozen=True)
class Setting:
    """What a scene is made of.

    Attributes:
        service: RC, UC, UD or XRC.
        short_cq: the CQ of this side ("near" or "far") has room for two completions.
        pooled: the responder takes from an SRQ.
        early: the requester is brought to RTR alone.
        patient: the requester tries again as often as the responder is not ready.
        without: what the responder's QP does not allow: "write", "read", "atomic".
        peer, lid: where the requester sends to, instead of to the responder.
        pkey_index: of the requester.
    """

    service: str = "RC"
    short_cq: str = ""
    pooled: bool = False
    without: str = ""
    early: bool = False
    patient: bool = False
    peer: int = 0
    lid: int = 0
    pkey_index: int = 0


PLAIN = Setting()


class Scene(Protocol):
    """A requester ("near") and a responder ("far").

    Attributes:
        source, target: addresses of the requester's and the responder's memory.
        lkey, rkey: their keys, with every right.
    """

    source: int
    target: int
    lkey: int
    rkey: int

    def key(self, *, near: bool, without: str = "", length: int = SIZE, other_pd: bool = False) -> int:
        """One more key over a memory, without a right ("local write", "write", "read", "atomic")."""

    def vanished(self, *, near: bool) -> int:
        """A key with on-demand paging over a memory that its program has closed to itself since."""

    def drop(self, key: int) -> None:
        """Deregister a key."""

    def window(self, *, other_pd: bool = False) -> int:
        """A type 2 memory window that is not bound."""

    def bind(self, window: int, region: int, *, near: bool, length: int = SIZE) -> int:
        """Bind a window with all remote rights to a region, from the start of that side's memory on; its new key."""

    def invalidate(self, key: int, *, near: bool) -> None:
        """Invalidate a key from a queue pair of its own."""

    def send(
        self, key: int | None = None, length: int = 64, *, wrong_qkey: bool = False, srqn: int = 0, ring: bool = True
    ) -> None:
        """A SEND from the start of the source; without `ring` it is posted together with the next one."""

    def send_invalidating(self, key: int) -> None:
        """A SEND that takes a key of the responder away."""

    def write(self, key: int | None = None, length: int = 64, *, immediate: bool = False) -> None:
        """An RDMA WRITE from the start of the source to the start of the target."""

    def read(self, key: int | None = None, into: int | None = None) -> None:
        """An RDMA READ of 64 bytes from the start of the target into the start of the source."""

    def atomic(self, key: int | None = None, *, at: int = 0, pieces: int = 1) -> None:
        """A fetch and add of 1 at a byte of the target, whose result goes to pieces of 8 bytes of the source."""

    def raw(self, opcode: int, *segments: bytes, immediate: int = 0) -> None:
        """A WQE of the requester with these bytes behind its control segment."""

    def post_behind(self, opcode: int, *segments: bytes, ds: int = 0, count: int = 1) -> None:
        """A WQE of one block in the requester's queue, whose record counts `count`, behind the driver's back.

        It says that it has `ds` segments of 16 bytes; 0: as many as it has.
        """

    def count_receives(self, count: int) -> None:
        """Let the doorbell record of the responder's receive queue, or of its SRQ, say that so many are posted."""

    def receive(self, key: int | None = None, length: int = SIZE, *, near: bool = False) -> None:
        """A receive of the start of the target."""

    def to_error(self, *, near: bool) -> None:
        """Bring a queue pair to ERR."""

    def reset_responder(self) -> None:
        """Bring the responder to RESET."""

    def destroy_responder(self) -> None:
        """Destroy the responder."""

    def arm_srq(self, limit: int) -> None:
        """Ask for the limit event."""

    def other_srq(self) -> int:
        """The number of an SRQ of another XRC domain."""

    def settle(self) -> None:
        """Wait until all that was posted is done: two queue pairs keep no order between them."""

    def fill(self, *, near: bool, byte: int) -> None:
        """Set all bytes of a memory."""

    def expect(self, *, near: bool, begins: bytes) -> None:
        """What a memory is to begin with when all is over."""


Make = Callable[[Setting], Scene]
PROVOCATIONS: dict[str, Callable[[Make], Scene]] = {}
"""What brings about each row, by its id."""


def provokes(name: str, setting: Setting = PLAIN) -> Callable[[Callable[[Scene], None]], Callable[[Scene], None]]:
    """Note that a function brings about a row, in a scene of this setting."""

    def note(provoke: Callable[[Scene], None]) -> Callable[[Scene], None]:
        def run(make: Make) -> Scene:
            scene = make(setting)
            provoke(scene)
            return scene

        if name in PROVOCATIONS:
            raise ValueError(f"{name} is provoked twice")
        PROVOCATIONS[name] = run
        return provoke

    return note
