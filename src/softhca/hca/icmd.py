"""ICMD: the tools' commands, in a space of their own behind the gateway (source 5.7, E7).

The internal mailbox is implemented. The external one, in host memory behind an MKey, is not: its capability is not
claimed, and a command that asks for it fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from softhca.hca.command import Stage
from softhca.hca.errors import CommandError
from softhca.hca.registers import access
from softhca.prm import icmd
from softhca.prm.icmd import IcmdCtrl, IcmdOpcode, IcmdStatus, OperationTlv, RegTlv, TlvMethod, TlvType
from softhca.prm.registers import RegisterAccess

if TYPE_CHECKING:
    from softhca.hca.device import Hca

MAILBOX_BYTES = 0x300
_STATUS = 0x70
"""Status of an operation TLV whose register cannot be accessed so: bad parameter."""
_METHODS: dict[int, RegisterAccess] = {TlvMethod.QUERY: RegisterAccess.READ, TlvMethod.WRITE: RegisterAccess.WRITE}
_STAGES = (Stage.READY, Stage.INITIALIZED)


class Icmd:
    """The ICMD space of a function.

    Args:
        device: whose commands it runs.

    Attributes:
        commands: commands that ended.
    """

    size = icmd.MAILBOX + MAILBOX_BYTES

    def __init__(self, device: Hca) -> None:
        self._device = device
        self._control = bytearray(IcmdCtrl.SIZE)
        self._view = IcmdCtrl(self._control)
        self._mailbox = bytearray(MAILBOX_BYTES)
        self._syndrome = 0
        self._epoch = object()
        self.commands = 0

    def reset(self) -> None:
        """As after power on; a command that was running never ends."""
        self._epoch = object()
        self._control[:] = bytes(IcmdCtrl.SIZE)
        self._mailbox[:] = bytes(MAILBOX_BYTES)
        self._syndrome = 0

    def read(self, address: int) -> int | None:
        """A word of control, mailbox size, syndrome or mailbox."""
        if address == icmd.CONTROL:
            return int.from_bytes(self._control, "big")
        if address == icmd.MAILBOX_SIZE:
            return MAILBOX_BYTES
        if address == icmd.SYNDROME:
            return self._syndrome
        at = address - icmd.MAILBOX
        return int.from_bytes(self._mailbox[at : at + 4], "big") if 0 <= at < MAILBOX_BYTES else None

    def write(self, address: int, value: int) -> bool:
        """Write control or mailbox; while a command runs both stay as they are."""
        at = address - icmd.MAILBOX
        if address != icmd.CONTROL and not 0 <= at < MAILBOX_BYTES:
            return False
        if self._view.busy:
            return True
        if address == icmd.CONTROL:
            self._control[:] = value.to_bytes(4, "big")
            if self._view.busy:
                epoch = self._epoch
                self._device.engine.post(lambda: self._run(epoch))
        else:
            self._mailbox[at : at + 4] = value.to_bytes(4, "big")
        return True

    def _run(self, epoch: object) -> None:
        """Engine task: carry out what control says."""
        if epoch is not self._epoch:
            return
        handler = _HANDLERS.get(self._view.opcode)
        if self._view.exmb:
            status, self._syndrome = IcmdStatus.BAD_PARAM, 0
        elif handler is None:
            status, self._syndrome = IcmdStatus.INVALID_OPCODE, 0
        else:
            status, self._syndrome = handler(self._device, self._mailbox)
        self._view.status = status
        self._view.busy = 0
        self.commands += 1


def _access_register(device: Hca, mailbox: bytearray) -> tuple[IcmdStatus, int]:
    """ACCESS_REGISTER: an operation TLV, then a register TLV with the contents, which are replaced by the answer."""
    operation, head = OperationTlv(mailbox), RegTlv(mailbox, OperationTlv.SIZE)
    start = OperationTlv.SIZE + RegTlv.SIZE
    size = head.len * 4 - RegTlv.SIZE
    method = _METHODS.get(operation.method)
    if operation.type != TlvType.OPERATION or head.type != TlvType.REGISTER or method is None:
        return IcmdStatus.BAD_PARAM, 0
    if not 0 <= size <= len(mailbox) - start:
        return IcmdStatus.BAD_PARAM, 0
    function = device.function
    if function.stage not in _STAGES:
        return IcmdStatus.OPERATIONAL_ERROR, 0
    try:
        contents = access(function, operation.register_id, method, bytes(mailbox[start : start + size]))
    except CommandError as error:
        operation.status = _STATUS
        operation.r = 1
        return IcmdStatus.OK, error.syndrome.number
    mailbox[start : start + size] = contents
    operation.status = 0
    operation.r = 1
    return IcmdStatus.OK, 0


_HANDLERS: dict[int, Callable[[Hca, bytearray], tuple[IcmdStatus, int]]] = {
    IcmdOpcode.ACCESS_REGISTER: _access_register,
}
