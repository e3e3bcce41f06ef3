"""The ICM account of a function: pages it was given, room its objects take in them (B2, B3, B6-B10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from softhca.hca.errors import PagesLacking

PAGE = 4096


class IcmAccount:
    """The page account of one function.

    Args:
        starved: asked before room is taken, with the bytes; True: the room is said to be lacking.

    Attributes:
        pages: DMA addresses of the pages that the function has, in the order given (the values mean nothing).
        used: bytes of ICM in use: the function's own state and the entries of its objects.
        asked: whether a Pages Request event waits for its answer; until then there is no other one (B9).
        refused: the host had no pages the last time; the device asks again only when a command needs them.
    """

    def __init__(self, starved: Callable[[int], bool] = lambda length: False) -> None:
        self._starved = starved
        self.pages: dict[int, None] = {}
        self.used = 0
        self.asked = False
        self.refused = False

    @property
    def needed(self) -> int:
        """Pages that hold what is in use now."""
        return -(-self.used // PAGE)

    @property
    def room(self) -> int:
        """Bytes that the pages hold beyond what is in use."""
        return len(self.pages) * PAGE - self.used

    def take(self, length: int) -> None:
        """Use `length` bytes of ICM.

        Raises:
            PagesLacking: the pages do not hold that much more; nothing is taken.
        """
        if length > self.room or self._starved(length):
            raise PagesLacking(length)
        self.used += length

    def give_back(self, length: int) -> None:
        """Free `length` bytes; no page goes back to the host by this (B6)."""
        self.used -= length

    def accept(self, pages: Iterable[int]) -> None:
        """Take pages over from the host."""
        self.pages.update(dict.fromkeys(pages))

    def hand_back(self, count: int) -> list[int]:
        """Give at most `count` pages back to the host, those that came last first, as far as they are not needed."""
        count = max(0, min(count, len(self.pages) - self.needed))
        returned = list(islice(reversed(self.pages), count))
        for page in returned:
            del self.pages[page]
        return returned

    def clear_use(self) -> None:
        """Nothing is in use, and nothing is asked for any more; the pages stay."""
        self.used = 0
        self.asked = False
        self.refused = False

    def forget(self) -> None:
        """The host has all pages again: a reset, or the interface was disabled (F6)."""
        self.pages.clear()
        self.clear_use()
