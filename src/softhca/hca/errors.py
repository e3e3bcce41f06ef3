"""How a command handler says that a command fails, and a key that an access is not allowed."""

from __future__ import annotations

from softhca.prm.syndromes import Syndrome
from softhca.prm.syndromes.completion import VendorSyndrome


class CommandError(Exception):
    """The command ends with a status and a syndrome; nothing of it has taken effect.

    Args:
        syndrome: why.
        detail: object, field, value and what is allowed, for logs and traces.
    """

    def __init__(self, syndrome: Syndrome, detail: str = "") -> None:
        super().__init__(f"{syndrome.text}{f' ({detail})' if detail else ''}")
        self.syndrome = syndrome
        self.detail = detail


class PagesLacking(Exception):
    """The command needs ICM room that the function's pages do not give; it waits, or fails, by the page protocol (B9).

    Args:
        length: bytes of room that the command asked for.
    """

    def __init__(self, length: int) -> None:
        super().__init__(f"{length} bytes of ICM are asked for, which the function's pages do not hold")
        self.length = length


class KeyViolation(Exception):
    """An access that a memory key does not allow.

    Args:
        vendor: which of the key's conditions does not hold.
    """

    def __init__(self, vendor: VendorSyndrome) -> None:
        super().__init__(vendor.name)
        self.vendor = vendor


class PageFault(KeyViolation):
    """A page behind a key is not there, or not for writing: who waits for a fault to be resolved may try again."""

    def __init__(self) -> None:
        super().__init__(VendorSyndrome.KEY_NOT_PRESENT)
