"""A PCI function that has registers and nothing behind them, and a wrapper that holds doorbells back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from softhca.bus import Device, Engine, Host, Reset, VirtualClock
from softhca.bus.config_space import ConfigSpace, Identity, MsiX
from softhca.prm.init_segment import InitialSeg

DOORBELL = 0x18


class StubDevice:
    """An init segment whose fields a test sets; commands are never executed."""

    def __init__(self, *, bars: Mapping[int, int] | None = None, vectors: int = 4, **fields: int) -> None:
        self.engine = Engine(VirtualClock())
        self.bars = {0: 1 << 25} if bars is None else dict(bars)
        self.vectors = vectors
        self.config = ConfigSpace(Identity(0x15B3, 0x101B, 0x020700), self.bars, [MsiX(vectors, 0, 0x2000, 0x3000)])
        self.memory = bytearray(0x8000)
        self.present = True
        self.writes: list[tuple[int, int]] = []
        ready = {"cmd_interface_rev": 5, "log_cmdq_size": 5, "log_cmdq_stride": 6}
        InitialSeg(self.memory).assign(ready | fields)

    def virtual_functions(self) -> Sequence[Device]:
        return ()

    def attach(self, host: Host) -> None:
        """Nothing to do."""

    def detach(self) -> None:
        """Nothing to do."""

    def config_read(self, offset: int, size: int) -> bytes:
        return self.config.read(offset, size) if self.present else b"\xff" * size

    def config_write(self, offset: int, data: bytes | memoryview) -> None:
        self.config.write(offset, data)

    def bar_read(self, bar: int, offset: int, size: int) -> bytes:
        return bytes(self.memory[offset : offset + size])

    def bar_write(self, bar: int, offset: int, data: bytes | memoryview) -> None:
        self.writes.append((offset, int.from_bytes(data, "big")))

    def reset(self, kind: Reset) -> None:
        """Nothing to do."""


class HeldDoorbells:
    """A device whose command doorbells are held back while `hold` is set, as if it were slow.

    Attributes:
        hold: doorbells are kept instead of passed on.
        kept: vectors kept so far.
        rung: every vector that was written.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self.hold = False
        self.kept: list[bytes] = []
        self.rung: list[int] = []

    @property
    def engine(self) -> Engine:
        return self._device.engine

    @property
    def bars(self) -> Mapping[int, int]:
        return self._device.bars

    @property
    def vectors(self) -> int:
        return self._device.vectors

    def virtual_functions(self) -> Sequence[Device]:
        return self._device.virtual_functions()

    def attach(self, host: Host) -> None:
        self._device.attach(host)

    def detach(self) -> None:
        self._device.detach()

    def config_read(self, offset: int, size: int) -> bytes:
        return self._device.config_read(offset, size)

    def config_write(self, offset: int, data: bytes | memoryview) -> None:
        self._device.config_write(offset, data)

    def bar_read(self, bar: int, offset: int, size: int) -> bytes:
        return self._device.bar_read(bar, offset, size)

    def bar_write(self, bar: int, offset: int, data: bytes | memoryview) -> None:
        if offset == DOORBELL:
            self.rung.append(int.from_bytes(data, "big"))
            if self.hold:
                self.kept.append(bytes(data))
                return
        self._device.bar_write(bar, offset, data)

    def reset(self, kind: Reset) -> None:
        self._device.reset(kind)

    def let_go(self) -> None:
        """Pass on what was kept."""
        self.hold = False
        while self.kept:
            self._device.bar_write(0, DOORBELL, self.kept.pop(0))
