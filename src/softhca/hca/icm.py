"""ICM pages: what the function was given, what its objects need, what it asks for and gives back (B2, B6-B10)."""

from __future__ import annotations

from softhca.hca.errors import PagesLacking

PAGE = 4096


class IcmAccount:
    """The page account of one function.

    Attributes:
        pages: DMA addresses of the pages that the function has, in the order given.
        used: bytes of ICM in use.
    """

    def __init__(self) -> None:
        self.pages: list[int] = []
        self.used = 0

    @property
    def needed(self) -> int:
        """Pages that hold what is in use now."""
        return -(-self.used // PAGE)

    def take(self, length: int) -> None:
        """Use `length` bytes of ICM.

        Raises:
            PagesLacking: the pages do not hold that much more; nothing is taken.
        """
        if length > len(self.pages) * PAGE - self.used:
            raise PagesLacking
        self.used += length

    def give_back(self, length: int) -> None:
        """Free `length` bytes; no page goes back by this (B6)."""
        self.used -= length
