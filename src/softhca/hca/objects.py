"""Objects and their tables: one typed table for each number space, with references counted (A7, A8, B3, B4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar, Generic, TypeVar

from softhca.hca.errors import CommandError
from softhca.hca.icm import IcmAccount
from softhca.prm.syndromes import objects as syndromes


class HcaObject:
    """Something that a command created and that has a number.

    Attributes:
        number: in its table's number space; set when it is added.
        references: how many other objects refer to it.
    """

    KIND: ClassVar[str]
    """What the manual calls it, for messages."""
    ICM_BYTES: ClassVar[int] = 0
    """Room that one entry takes in ICM, in bytes (B2)."""

    def __init__(self) -> None:
        self.number = -1
        self.references = 0
        self._uses: list[HcaObject] = []

    def icm_bytes(self) -> int:
        """Room that this object takes in ICM, translation entries included (bytes)."""
        return self.ICM_BYTES

    def refer(self, *others: HcaObject) -> None:
        """Refer to `others` until this object is gone."""
        for other in others:
            other.references += 1
            self._uses.append(other)

    def end(self) -> None:
        """Stop what still runs for this object (tasks, timers): it touches nothing after this."""

    def release(self) -> None:
        """Drop all references; the object is gone after this."""
        self.end()
        for other in self._uses:
            other.references -= 1
        self._uses.clear()


T = TypeVar("T", bound=HcaObject)


class Table(Generic[T]):
    """All objects of one number space of a function.

    Args:
        kind: what the manual calls them.
        icm: the account that their entries take room in.
        limit: how many may exist.
        first: lowest number given.
        size: numbers are below this; they are given in rising order and wrap around, so that a number is not used
            again soon.
    """

    def __init__(self, kind: str, icm: IcmAccount, *, limit: int, first: int, size: int) -> None:
        self.kind = kind
        self._icm = icm
        self._limit = min(limit, size - first)
        self._first = first
        self._size = size
        self._next = first
        self._objects: dict[int, T] = {}
        self.find: Callable[[int], T | None] = self._objects.get
        """The object of that number, or None: for the data path, which answers a miss in its own way."""

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def get(self, number: int) -> T:
        """The object that a command is about.

        Raises:
            CommandError: there is none of that number.
        """
        found = self._objects.get(number)
        if found is None:
            raise CommandError(syndromes.NO_SUCH_OBJECT, f"{self.kind} {number:#x}")
        return found

    def refer(self, number: int) -> T:
        """The object that a context refers to.

        Raises:
            CommandError: there is none of that number.
        """
        found = self._objects.get(number)
        if found is None:
            raise CommandError(syndromes.NO_SUCH_REFERENCE, f"{self.kind} {number:#x}")
        return found

    def add(self, item: T) -> int:
        """Give `item` a number and the ICM room that it needs.

        Raises:
            CommandError: the table is full.
            PagesLacking: ICM has no room.
        """
        if len(self._objects) >= self._limit:
            raise CommandError(syndromes.TABLE_FULL, f"{self.kind}: {self._limit} exist")
        self._icm.take(item.icm_bytes())
        number = self._next
        while number in self._objects:
            number = number + 1 if number + 1 < self._size else self._first
        self._next = number + 1 if number + 1 < self._size else self._first
        item.number = number
        self._objects[number] = item
        return number

    def remove(self, number: int) -> T:
        """Take the object out, give its ICM room back, drop its references.

        Raises:
            CommandError: there is none, or another object refers to it.
        """
        item = self.get(number)
        if item.references:
            raise CommandError(syndromes.STILL_REFERENCED, f"{self.kind} {number:#x}: {item.references} references")
        del self._objects[number]
        self._icm.give_back(item.icm_bytes())
        item.release()
        return item
