"""Host memory as a card sees it while somebody watches its accesses, or makes them fail (A10)."""

from __future__ import annotations

import itertools

from softhca.bus import DmaFault, DmaSpace
from softhca.bus.dma import Mapping
from softhca.points import Probe
from softhca.points import catalogue as points

_generations = itertools.count(-1, -1)


class WatchedDma(DmaSpace):
    """A DMA space whose accesses pass a point; it shows what the space of the host has.

    What is found in it may not be kept: its generation changes each time that it is asked for.

    Args:
        space: of the host.
        probe, function_id: who is told, and for which function.
    """

    def __init__(self, space: DmaSpace, probe: Probe, function_id: int) -> None:
        self._starts = space._starts
        self._mappings = space._mappings
        self._probe = probe
        self._function_id = function_id

    @property
    def generation(self) -> int:  # type: ignore[override]
        """Another one each time."""
        return next(_generations)

    def mapping(self, iova: int, length: int, *, write: bool = False) -> Mapping:
        """As of the host's space, unless a rule makes the access fail.

        Raises:
            DmaFault: as of the host's space, or by a rule.
        """
        if self._probe.hit(points.DMA, self._function_id, iova, length, int(write)) is not None:
            raise DmaFault(iova, length, write, "a fault rule")
        return super().mapping(iova, length, write=write)
