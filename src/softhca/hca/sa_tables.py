"""Tables of subnet administration: many records as one answer, in segments (RMPP, 13.6).

The first segment goes at once, the others as the asker acknowledges and opens its window. An answer that nobody
acknowledges any more is forgotten when others come.
"""

from __future__ import annotations

from dataclasses import dataclass

from softhca.prm.sa import RmppFlag, RmppType, SaMad

_RMPP_VERSION = 1
_DATA_BYTES = SaMad.FIELDS["data"].bits // 8
_SA_HEADER = 20
"""Bytes of each segment's payload that are the header of the class."""
_UNIT = 8
_RESPONSE_TIME = 18
MOST_TRANSFERS = 64
"""Answers that wait for acknowledgement at one time."""
_NO_STATUS = 0


def table(records: list[bytes]) -> tuple[bytes, int]:
    """The records one behind the other, each padded to whole units of 8 bytes; and what AttributeOffset says."""
    if not records:
        return b"", 0
    length = -(-len(records[0]) // _UNIT) * _UNIT
    return b"".join(record.ljust(length, b"\0") for record in records), length // _UNIT


def segments(head: SaMad, records: list[bytes]) -> list[bytes]:
    """The datagrams of an answer with these records; `head` is the answer without data."""
    data, offset = table(records)
    count = max(1, -(-len(data) // _DATA_BYTES))
    found = []
    for number in range(1, count + 1):
        mad = SaMad(bytearray(bytes(head)))
        part = data[(number - 1) * _DATA_BYTES : number * _DATA_BYTES]
        mad.data = part.ljust(_DATA_BYTES, b"\0")
        mad.attribute_offset = offset
        mad.rmpp_version, mad.rmpp_type, mad.rmpp_status = _RMPP_VERSION, RmppType.DATA, _NO_STATUS
        mad.rmpp_response_time, mad.rmpp_segment = _RESPONSE_TIME, number
        mad.rmpp_flags, mad.rmpp_length = RmppFlag.ACTIVE, 0
        if number == 1:
            mad.rmpp_flags |= RmppFlag.FIRST
            mad.rmpp_length = len(data) + count * _SA_HEADER
        if number == count:
            mad.rmpp_flags |= RmppFlag.LAST
            mad.rmpp_length = len(part) + _SA_HEADER
        found.append(bytes(mad))
    return found


@dataclass
class Transfer:
    """An answer on its way.

    Attributes:
        parts: all its datagrams.
        sent: how many have gone.
    """

    parts: list[bytes]
    sent: int = 0

    def up_to(self, window: int) -> list[bytes]:
        """The datagrams that may go now, up to segment `window`."""
        first, self.sent = self.sent, max(self.sent, min(window, len(self.parts)))
        return self.parts[first : self.sent]


class Transfers:
    """The answers on their way, by asker (LID) and transaction."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], Transfer] = {}

    def begin(self, lid: int, head: SaMad, records: list[bytes]) -> list[bytes]:
        """The datagrams that go at once: the window is one segment until the asker says otherwise."""
        transfer = Transfer(segments(head, records))
        self._open.pop((lid, head.transaction_id), None)
        if len(transfer.parts) > 1:
            while len(self._open) >= MOST_TRANSFERS:
                del self._open[next(iter(self._open))]
            self._open[lid, head.transaction_id] = transfer
        return transfer.up_to(1)

    def hear(self, lid: int, mad: SaMad) -> list[bytes]:
        """Take what the asker says about an answer; the datagrams that go now."""
        key = (lid, mad.transaction_id)
        transfer = self._open.get(key)
        if transfer is None:
            return []
        if mad.rmpp_type != RmppType.ACK or mad.rmpp_segment >= len(transfer.parts):
            del self._open[key]
            return []
        return transfer.up_to(mad.rmpp_length)
