"""The gateway of the vendor-specific capability, and ICMD behind it: a tool's way in (source 5.7, E7).

Whoever wants the gateway takes its semaphore, uses it, and gives it back; addresses and data of two users never mix.
Its success and a command's success are two things.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from softhca.bus import Engine
from softhca.driver.errors import DriverError, NotReady, UnsupportedDevice
from softhca.driver.pci import PciFunction
from softhca.prm import icmd, vsc
from softhca.prm.icmd import IcmdCtrl, IcmdOpcode, IcmdStatus, OperationTlv, RegTlv, TlvMethod, TlvType
from softhca.prm.layout import Layout
from softhca.prm.registers import RegisterId
from softhca.prm.vsc import Space

CAPABILITY = 0x09
TIMEOUT = 10_000_000_000
"""Nanoseconds of the device's clock for the semaphore, an access, and a command."""


class GatewayError(DriverError):
    """The gateway itself failed: no such space or address, or somebody else has it."""


class IcmdError(DriverError):
    """A command behind the gateway failed.

    Attributes:
        status: of the command's control word.
        syndrome: further result information.
    """

    def __init__(self, what: str, status: int, syndrome: int) -> None:
        super().__init__(f"ICMD: {what}: status {status:#x}, syndrome {syndrome:#010x}")
        self.status = status
        self.syndrome = syndrome


class Gateway:
    """The gateway of a function.

    Args:
        pci: the function's configuration space.
        engine: runs the device, and tells the time.

    Raises:
        UnsupportedDevice: it has no vendor-specific capability.
    """

    def __init__(self, pci: PciFunction, engine: Engine) -> None:
        at = pci.capabilities().get(CAPABILITY)
        if at is None:
            raise UnsupportedDevice("PCI: the function has no vendor-specific capability (0x09)")
        self._pci = pci
        self._engine = engine
        self._at = at

    def _get(self, register: int) -> int:
        return self._pci.read(self._at + register, 4)

    def _set(self, register: int, value: int) -> None:
        self._pci.write(self._at + register, value, 4)

    @contextmanager
    def space(self, space: Space) -> Iterator[Gateway]:
        """Take the gateway, select a space; give it back at the end.

        Raises:
            GatewayError: somebody else keeps the gateway, or there is no such space.
        """
        if not self._engine.wait(self._take, TIMEOUT):
            raise GatewayError(f"VSC: the semaphore is {self._get(vsc.SEMAPHORE):#x}, somebody else's")
        try:
            self._set(vsc.CONTROL, space)
            if self._get(vsc.CONTROL) >> 29 == 0:
                raise GatewayError(f"VSC: space {space.name} ({space:#x}) is not supported")
            yield self
        finally:
            self._set(vsc.SEMAPHORE, 0)

    def _take(self) -> bool:
        """Write the counter's ticket into a free semaphore; whose ticket it has then has the gateway."""
        if self._get(vsc.SEMAPHORE):
            return False
        ticket = self._get(vsc.COUNTER)
        self._set(vsc.SEMAPHORE, ticket)
        return self._get(vsc.SEMAPHORE) == ticket

    def read(self, address: int) -> int:
        """A word of the selected space.

        Raises:
            GatewayError: there is none, or the gateway does not answer.
        """
        self._set(vsc.ADDRESS, address)
        self._done(address, vsc.FLAG)
        return self._get(vsc.DATA)

    def write(self, address: int, value: int) -> None:
        """Write a word of the selected space.

        Raises:
            GatewayError: there is none, or the gateway does not answer.
        """
        self._set(vsc.DATA, value)
        self._set(vsc.ADDRESS, address | vsc.FLAG)
        self._done(address, 0)

    def _done(self, address: int, flag: int) -> None:
        if not self._engine.wait(lambda: self._get(vsc.ADDRESS) & vsc.FLAG == flag, TIMEOUT):
            raise GatewayError(f"VSC: the access to {address:#x} does not end")
        if self._get(vsc.ADDRESS) & vsc.SYNDROME:
            raise GatewayError(f"VSC: the access to {address:#x} failed")


class Icmd:
    """Commands through the internal mailbox.

    Args:
        gateway: of the function.
        engine: runs the device, and tells the time.
    """

    def __init__(self, gateway: Gateway, engine: Engine) -> None:
        self._gateway = gateway
        self._engine = engine

    def execute(self, opcode: int, message: bytes, *, external: bool = False) -> bytes:
        """Run one command.

        Args:
            opcode: which.
            message: its input; the rest of the mailbox is zero.
            external: use a mailbox in host memory; this driver knows no device that claims it (icmd_exmb).

        Returns:
            The mailbox after it, as long as the message.

        Raises:
            GatewayError: the gateway failed, or another command runs.
            IcmdError: the command failed.
            UnsupportedDevice: `external`.
        """
        if external:
            raise UnsupportedDevice("ICMD: the external mailbox needs icmd_exmb, which the device does not claim")
        with self._gateway.space(Space.ICMD) as gateway:
            if gateway.read(icmd.CONTROL) & 1:
                raise GatewayError("ICMD: another command runs")
            room = gateway.read(icmd.MAILBOX_SIZE)
            if len(message) > room:
                raise GatewayError(f"ICMD: {len(message)} bytes, the mailbox has {room}")
            for at in range(0, room, 4):
                word = message[at : at + 4].ljust(4, b"\0")
                gateway.write(icmd.MAILBOX + at, int.from_bytes(word, "big"))
            gateway.write(icmd.CONTROL, int.from_bytes(IcmdCtrl.pack(opcode=opcode, busy=1), "big"))
            if not self._engine.wait(lambda: not gateway.read(icmd.CONTROL) & 1, TIMEOUT):
                raise NotReady(f"ICMD: command {opcode:#x} stays busy")
            control = IcmdCtrl(gateway.read(icmd.CONTROL).to_bytes(4, "big"))
            if control.status != IcmdStatus.OK:
                raise IcmdError(f"command {opcode:#x}", control.status, gateway.read(icmd.SYNDROME))
            words = [gateway.read(icmd.MAILBOX + at) for at in range(0, len(message), 4)]
            syndrome = gateway.read(icmd.SYNDROME)
        answer = b"".join(word.to_bytes(4, "big") for word in words)
        if syndrome and opcode == IcmdOpcode.ACCESS_REGISTER:
            raise IcmdError("register access", OperationTlv(answer).status, syndrome)
        return answer

    def read_register(self, register: RegisterId, contents: Layout) -> bytes:
        """ACCESS_REGISTER by ICMD, a query: the contents of a register.

        Args:
            register: which.
            contents: with the fields that select what is read.

        Raises:
            GatewayError, IcmdError: see :meth:`execute`.
        """
        body = bytes(contents)
        operation = OperationTlv.pack(
            type=TlvType.OPERATION, len=OperationTlv.SIZE // 4, register_id=register, method=TlvMethod.QUERY, class_=1
        )
        head = RegTlv.pack(type=TlvType.REGISTER, len=len(body) // 4 + 1)
        answer = self.execute(IcmdOpcode.ACCESS_REGISTER, bytes(operation) + bytes(head) + body)
        return answer[OperationTlv.SIZE + RegTlv.SIZE :]
