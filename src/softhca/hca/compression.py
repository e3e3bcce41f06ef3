"""CQE compression: CQEs that differ in little are written as one block (A4, G2).

A block takes as many slots as it has CQEs. Its first slot is the title: a CQE with all that they have in common,
marked as compressed, byte_cnt telling how many they are. The slots behind it hold, eight in each that is used (the
second, then every eighth from the title on), mini CQEs with what each one has of its own; the title's is the first.
What no mini CQE has a place for is the same in all, or follows from the one before: the WQE counter of a receive
queue counts up by one. The slots that are left stay as they are: software gives them their owner bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from softhca.hca.errors import CommandError
from softhca.prm.cq import CqeCompressionLayout, CqeSize, MiniCqeFormat
from softhca.prm.cqe import Cqe64, CqeInline, CqeOpcode, MiniCqe8
from softhca.prm.syndromes import objects as syndromes

if TYPE_CHECKING:
    from softhca.bus import Timer
    from softhca.hca.function import Function
    from softhca.prm.cq import Cqc

MINIS = Cqe64.SIZE // MiniCqe8.SIZE
"""Mini CQEs in a slot."""
_HASH = slice(0x0C, 0x10)
_CHECKSUM = slice(0x14, 0x16)
_BYTE_COUNT = slice(0x2C, 0x30)
_TIMESTAMP = slice(0x30, 0x38)
_SEND_OPCODE = slice(0x38, 0x39)
_COUNTER = slice(0x3C, 0x3E)
_OWN = (_BYTE_COUNT, _TIMESTAMP, _COUNTER)
"""What each CQE of a block may have of its own, whatever the kind; the time is told of the title alone."""
_RESPONDER_OWN = {
    MiniCqeFormat.RESPONDER_HASH: _HASH,
    MiniCqeFormat.RESPONDER_CHECKSUM: _CHECKSUM,
    MiniCqeFormat.RESPONDER_CHECKSUM_STRIDE_INDEX: _CHECKSUM,
}
_INDEX = 0xFFFF


def check(fn: Function, context: Cqc) -> None:
    """Check what a CQ context says of compression.

    Raises:
        CommandError: the device does not have it.
    """
    if not context.cqe_comp_en:
        return
    caps = fn.caps.general
    offered = caps.cqe_compression if context.cqe_sz == CqeSize.BYTES_64 else caps.cqe_compression_128
    formats = [MiniCqeFormat.RESPONDER_HASH, MiniCqeFormat.RESPONDER_CHECKSUM]
    if caps.mini_cqe_resp_stride_index:
        formats.append(MiniCqeFormat.RESPONDER_CHECKSUM_STRIDE_INDEX)
    if (
        not offered
        or context.mini_cqe_res_format not in formats
        or context.cqe_compression_layout != CqeCompressionLayout.BASIC
        or context.cc
    ):
        raise CommandError(
            syndromes.CQE_COMPRESSION_UNSUPPORTED,
            f"capability {offered}, mini_cqe_res_format {context.mini_cqe_res_format} of {[int(f) for f in formats]}, "
            f"cqe_compression_layout {context.cqe_compression_layout}, cc {context.cc}",
        )


class Compressor:
    """Gathers the CQEs of a CQ until their block is complete.

    A block ends when it has `cqe_compression_max_num` CQEs, when `cqe_compression_timeout` (taken as microseconds)
    has passed since its first one, or with a CQE that does not fit in. One CQE alone is written as it is.

    Args:
        fn: whose CQ it is.
        context: of the CQ.
        write: writes CQEs; tells whether it could. Takes the bytes of a CQE without its owner byte, that byte without
            the owner bit, mini CQEs (whole slots of them, or none), and how many CQEs it all stands for.
    """

    def __init__(
        self,
        fn: Function,
        context: Cqc,
        write: Callable[[bytes, int, bytes, int], bool],
    ) -> None:
        caps = fn.caps.general
        self._engine = fn.device.engine
        self._format = MiniCqeFormat(context.mini_cqe_res_format)
        self._most = min(caps.cqe_compression_max_num, 1 << context.log_cq_size)
        self._pause = caps.cqe_compression_timeout * 1000
        self._write = write
        self._title = b""
        self._op_own = 0
        self._common = b""
        self._last = 0
        self._minis: list[bytes] = []
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._minis)

    def add(self, body: bytes, op_own: int) -> bool:
        """Take a CQE that may be compressed; tell whether all CQEs that had to be written now could be.

        Args:
            body: the CQE without its owner byte.
            op_own: that byte, without the owner bit.
        """
        requester = op_own >> 4 == CqeOpcode.REQ
        counter = int.from_bytes(body[_COUNTER], "big")
        common = self._common_of(body, requester=requester)
        follows = requester or self._by_index or counter == (self._last + 1) & _INDEX
        if self._minis and not (op_own == self._op_own and common == self._common and follows) and not self.close():
            return False
        if not self._minis:
            self._title, self._op_own, self._common = body, op_own, common
            self._timer = self._engine.after(self._pause, self._expired)
        self._last = counter
        self._minis.append(self._mini(body, requester=requester))
        return len(self._minis) < self._most or self.close()

    @property
    def _by_index(self) -> bool:
        return self._format is MiniCqeFormat.RESPONDER_CHECKSUM_STRIDE_INDEX

    def _common_of(self, body: bytes, *, requester: bool) -> bytes:
        """A CQE with what it may have of its own blanked out."""
        blank = bytearray(body)
        for part in (*_OWN, _SEND_OPCODE if requester else _RESPONDER_OWN[self._format]):
            blank[part] = bytes(part.stop - part.start)
        return bytes(blank)

    def _mini(self, body: bytes, *, requester: bool) -> bytes:
        if requester:
            own = body[_COUNTER] + body[_SEND_OPCODE] + b"\0"
        elif self._format is MiniCqeFormat.RESPONDER_HASH:
            own = body[_HASH]
        else:
            own = body[_CHECKSUM] + (body[_COUNTER] if self._by_index else b"\0\0")
        return own + body[_BYTE_COUNT]

    def _expired(self) -> None:
        self.close()

    def close(self) -> bool:
        """Write what was gathered; tell whether it could be."""
        title, minis = self._title, self._minis
        self.drop()
        if not minis:
            return True
        if len(minis) == 1:
            return self._write(title, self._op_own, b"", 1)
        block = bytearray(title)
        block[_BYTE_COUNT] = len(minis).to_bytes(4, "big")
        slots = -(-len(minis) // MINIS)
        array = b"".join(minis).ljust(slots * Cqe64.SIZE, b"\0")
        return self._write(bytes(block), self._op_own | CqeInline.COMPRESSED << 2, array, len(minis))

    def drop(self) -> None:
        """Forget what was gathered: the CQ is gone."""
        self._minis = []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
