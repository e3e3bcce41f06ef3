"""What can go wrong between driver and device, each with a type of its own (D9, D10, F7)."""

from __future__ import annotations

from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus, DeliveryStatus
from softhca.prm.syndromes import SYNDROMES


class DriverError(Exception):
    """Anything that the driver refuses or that the device failed at."""


class NotReady(DriverError):
    """The device did not reach a state within its time: enumeration, `initializing` = 0, interface disabled."""


class UnsupportedDevice(DriverError):
    """The device speaks something that this driver does not: interface revision, geometry, ISSI (C6, D1)."""


class PageShortage(DriverError):
    """The machine has no memory for the ICM pages that the device needs; the device was told so (B9)."""


class LedgerError(DriverError):
    """The device named a page that it was never given."""


class StaleObject(DriverError):
    """An object of an earlier life of the function: its number and its keys mean nothing any more (F8)."""


class Unconfirmed(DriverError):
    """Nobody knows whether the device still accesses what a slot in quarantine refers to (D10, F7)."""


class CommandError(DriverError):
    """A command failed.

    Attributes:
        opcode: which command.
    """

    def __init__(self, opcode: Opcode, what: str) -> None:
        super().__init__(f"{opcode.name} ({opcode:#x}) {what}")
        self.opcode = opcode


class Refused(CommandError):
    """The device has answered that it did not carry the command out: what was prepared for it is the host's."""


class DeliveryError(Refused):
    """The device could not take the entry: the layer below the command's own result (D9).

    Attributes:
        status: the delivery status of the entry.
    """

    def __init__(self, opcode: Opcode, status: int) -> None:
        super().__init__(opcode, f"was not delivered: {_name(DeliveryStatus, status)}")
        self.status = status


class CommandFailed(Refused):
    """The command was delivered and failed.

    Attributes:
        status: command status, output 0x00 [31:24].
        syndrome: output 0x04.
    """

    def __init__(self, opcode: Opcode, status: int, syndrome: int) -> None:
        known = SYNDROMES.get(syndrome)
        text = known.text if known is not None else "not a syndrome of softhca"
        super().__init__(opcode, f"failed: {_name(CommandStatus, status)}, syndrome {syndrome:#010x}: {text}")
        self.status = status
        self.syndrome = syndrome


class CommandTimeout(CommandError):
    """No completion within the host's own time limit; the slot is in quarantine (D10).

    Attributes:
        slot: which slot.
    """

    def __init__(self, opcode: Opcode, slot: int, nanoseconds: int) -> None:
        super().__init__(opcode, f"did not complete in {nanoseconds / 1e9:g} s; slot {slot} is in quarantine")
        self.slot = slot


class SignatureError(CommandError):
    """The device's output carries a wrong signature (D5)."""


class CompletionError(DriverError):
    """A work request completed with an error.

    Attributes:
        qpn: of which QP.
        syndrome, vendor_syndrome: from the error CQE.
    """

    def __init__(self, qpn: int, syndrome: int, vendor_syndrome: int) -> None:
        super().__init__(
            f"work request of QP {qpn:#x} failed: syndrome {syndrome:#04x}, vendor syndrome {vendor_syndrome:#04x}"
        )
        self.qpn = qpn
        self.syndrome = syndrome
        self.vendor_syndrome = vendor_syndrome


class BringUpError(DriverError):
    """Bring-up stopped in a stage; what the stages before it reached stays recorded (F7).

    Attributes:
        stage: name of the stage that failed.
        completed: names of the stages that were completed.
    """

    def __init__(self, stage: str, completed: list[str], cause: Exception) -> None:
        after = f" (completed: {', '.join(completed)})" if completed else ""
        super().__init__(f"bring-up stopped in stage {stage!r}: {cause}{after}")
        self.stage = stage
        self.completed = completed


def _name(kind: type[CommandStatus] | type[DeliveryStatus], value: int) -> str:
    known = {item.value: item.name for item in kind}
    return f"{known.get(value, 'unknown')} ({value:#x})"
