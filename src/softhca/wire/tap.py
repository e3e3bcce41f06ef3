"""The tap: what a wire would have shown, written to a file while memory is copied directly."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from softhca.wire.packet import Packet
from softhca.wire.pcapng import PcapngWriter


class Tap:
    """Where one port's packets are seen. Several taps may share one file.

    A file that can no longer be written ends the recording, not the device's work: see :attr:`failure`.

    Args:
        writer: of the file.
        name: of the port, as Wireshark shows it.
        now: the engine's clock, in nanoseconds.

    Raises:
        OSError: the file cannot be written.
    """

    def __init__(self, writer: PcapngWriter, name: str, now: Callable[[], int]) -> None:
        self._writer = writer
        self._interface = writer.interface(name)
        self._now = now
        self.failure: OSError | None = None
        """Why the recording ended early, or None."""

    @property
    def open(self) -> bool:
        """Whether a packet would be written: no need to make one otherwise."""
        return self.failure is None and not self._writer.closed and not self._writer.full

    def record(self, packets: Iterable[Packet]) -> None:
        """Write packets, as long as there is room.

        Raises:
            PacketError: a packet that cannot be.
        """
        for packet in packets:
            if not self.open:
                return
            try:
                self._writer.write(self._interface, packet.build(), self._now())
            except OSError as error:
                self.failure = error
