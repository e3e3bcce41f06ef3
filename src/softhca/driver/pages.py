"""ICM pages: what the device asks for, what it was given, what it gave back (source 2.3, 2.4, B6-B10).

From hand-over to return a page is the device's: the host keeps a record of it and does not touch it. The ledger follows
what MANAGE_PAGES reports, never what was asked for.
"""

from __future__ import annotations

from softhca.driver.cmd import CommandChannel, Submission
from softhca.driver.errors import LedgerError, PageShortage
from softhca.driver.memory import PAGE, Buffer, Machine
from softhca.prm.events import Eqe
from softhca.prm.opcodes import Opcode
from softhca.prm.pages import ManagePagesIn, ManagePagesOut, PagesNeed, PagesTransfer, QueryPagesIn, QueryPagesOut

BATCH = 512
"""Most pages in one MANAGE_PAGES; more go in several batches (C8)."""


class PageLedger:
    """Who has which page.

    Args:
        channel: runs the commands.
        machine: where pages come from.

    Attributes:
        given, returned: pages handed over and got back so far.
    """

    def __init__(self, channel: CommandChannel, machine: Machine) -> None:
        self._channel = channel
        self._machine = machine
        self._held: dict[int, dict[int, Buffer]] = {}
        self._answers: list[Submission[ManagePagesOut]] = []
        self.given = 0
        self.returned = 0

    @property
    def outstanding(self) -> int:
        """Pages that the device has now, of all functions."""
        return sum(len(pages) for pages in self._held.values())

    def held(self, function_id: int = 0) -> int:
        """Pages that a function has now (B7)."""
        return len(self._held.get(function_id, ()))

    def query(self, need: PagesNeed, function_id: int = 0) -> int:
        """Pages that the function lacks (positive) or can return (negative)."""
        reply = self._channel.execute(
            Opcode.QUERY_PAGES, QueryPagesIn.new(op_mod=need, function_id=function_id), QueryPagesOut
        )
        return _signed(reply.num_pages)

    def satisfy(self, need: PagesNeed, function_id: int = 0) -> int:
        """Ask for the need and give that much, in batches; nothing when there is none (C8). Tell how many pages.

        Raises:
            PageShortage: the machine has not enough memory.
        """
        lacking = self.query(need, function_id)
        left = max(0, lacking)
        while left:
            left -= self.give(min(left, BATCH), function_id)
        return max(0, lacking)

    def give(self, count: int, function_id: int = 0) -> int:
        """Give `count` pages in one command and wait for its end; tell how many.

        Raises:
            PageShortage: the machine has not enough memory; the device was told (B9).
        """
        try:
            pages = self._allocate(count)
        except MemoryError as error:
            refusal = self._refuse(function_id)
            self._channel.ring(refusal)
            self._channel.finish(refusal)
            raise PageShortage(f"function {function_id} lacks {count} pages: {error}") from error
        submission = self._offer(function_id, pages)
        self._channel.ring(submission)
        self._channel.finish(submission)
        return count

    def reclaim(self, function_id: int = 0) -> int:
        """Take pages back until the device returns none (B10); tell how many came.

        Raises:
            DriverError: it failed, or an answer to a Pages Request event had failed before.
        """
        self.settle()
        total = 0
        while True:
            asked = min(BATCH, max(1, self.held(function_id)))
            came = self._take(function_id, asked)
            total += came
            if not came or not self.held(function_id):
                return total

    def _take(self, function_id: int, count: int) -> int:
        before = self.returned
        submission = self._ask_back(function_id, count)
        self._channel.ring(submission)
        self._channel.finish(submission)
        return self.returned - before

    def on_page_request(self, eqe: Eqe) -> None:
        """A Pages Request event: answer it at once, without waiting for the answer's completion (B9).

        A need beyond one batch is answered in part; the device asks again for the rest.
        """
        request = eqe.data.req_pages
        answer = self._answer(request.func_id, _signed(request.num_pages))
        self._answers = [earlier for earlier in self._answers if not earlier.succeeded]
        self._answers.append(answer)
        self._channel.ring(answer)

    def _answer(self, function_id: int, count: int) -> Submission[ManagePagesOut]:
        if count < 0:
            return self._ask_back(function_id, min(-count, BATCH))
        try:
            pages = self._allocate(min(count, BATCH))
        except MemoryError:
            return self._refuse(function_id)
        return self._offer(function_id, pages)

    def settle(self) -> None:
        """Wait for the answers to Pages Request events that are still on their way.

        Raises:
            DriverError: one of them failed.
        """
        while self._answers:
            self._channel.finish(self._answers.pop())

    def settle_by_reset(self) -> int:
        """The device was reset or disabled, which gives every page back; tell how many it had (F6, F7).

        The memory itself is freed with all else that the driver has.
        """
        count = self.outstanding
        self.returned += count
        self._held.clear()
        self._answers.clear()
        return count

    def _allocate(self, count: int) -> list[Buffer]:
        """`count` single pages, or none at all (MemoryError)."""
        pages: list[Buffer] = []
        try:
            for _ in range(count):
                pages.append(Buffer(self._machine, PAGE))  # noqa: PERF401 - what came before a failure is freed below
        except MemoryError:
            _free(pages)
            raise
        return pages

    def _offer(self, function_id: int, pages: list[Buffer]) -> Submission[ManagePagesOut]:
        """MANAGE_PAGES(give). Refused pages are the host's again; after a time-out they stay where they are (D10)."""
        return self._channel.prepare(
            Opcode.MANAGE_PAGES,
            ManagePagesIn.new(
                op_mod=PagesTransfer.ALLOCATION_SUCCESS,
                function_id=function_id,
                input_num_entries=len(pages),
                pas=[page.iova for page in pages],
            ),
            ManagePagesOut,
            apply=lambda reply: self._accepted(function_id, pages),
            refused=lambda: _free(pages),
        )

    def _ask_back(self, function_id: int, count: int) -> Submission[ManagePagesOut]:
        """MANAGE_PAGES(take) with room for `count` addresses."""
        return self._channel.prepare(
            Opcode.MANAGE_PAGES,
            ManagePagesIn.new(op_mod=PagesTransfer.HCA_RETURN_PAGES, function_id=function_id, input_num_entries=count),
            ManagePagesOut,
            room=ManagePagesOut.SIZE + 8 * count,
            apply=lambda reply: self._came_back(function_id, reply),
        )

    def _refuse(self, function_id: int) -> Submission[ManagePagesOut]:
        """MANAGE_PAGES(allocation failed): what waits for pages ends with "no resources" (B9)."""
        return self._channel.prepare(
            Opcode.MANAGE_PAGES,
            ManagePagesIn.new(op_mod=PagesTransfer.ALLOCATION_FAIL, function_id=function_id),
            ManagePagesOut,
        )

    def _accepted(self, function_id: int, pages: list[Buffer]) -> None:
        """The device took them: all of a successful command."""
        self._held.setdefault(function_id, {}).update((page.iova, page) for page in pages)
        self.given += len(pages)

    def _came_back(self, function_id: int, reply: ManagePagesOut) -> None:
        """Find each returned address in the ledger, unmap and free it (F4).

        Raises:
            LedgerError: the device returns more than was asked for, or what it was never given.
        """
        count = reply.output_num_entries
        if count > len(reply.pas):
            raise LedgerError(f"MANAGE_PAGES returns {count} pages, there was room for {len(reply.pas)}")
        held = self._held.setdefault(function_id, {})
        for address in reply.pas[:count]:
            page = held.pop(address, None)
            if page is None:
                raise LedgerError(f"MANAGE_PAGES returns {address:#x}, which function {function_id} was not given")
            page.free()
            self.returned += 1


def _free(pages: list[Buffer]) -> None:
    for page in pages:
        page.free()


def _signed(word: int) -> int:
    """A 32-bit two's complement number."""
    return word - (1 << 32) if word >> 31 else word
