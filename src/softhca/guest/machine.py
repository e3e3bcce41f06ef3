"""A virtual machine: its command line, its process, and the channels to it."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softhca.guest.channel import Channel, Monitor
from softhca.guest.errors import LabError, LabTimeout
from softhca.guest.kernels import Kernel
from softhca.guest.programs import Programs
from softhca.vfio_user.loop import Loop

DEFAULT_MEMORY = 1024
"""MiB."""
DEFAULT_SLOTS = 4
"""Root ports that devices are plugged into."""
PORTS = ("control", "input", "output", "error", "kernel", "barrier")
"""Names of the serial ports between this process and the agent, and softhca-barrier."""
_COMMAND_LINE = (
    "console=ttyS0 quiet loglevel=5 panic=-1 rodata=off cryptomgr.notests mitigations=off nokaslr "
    "printk.devkmsg=on log_buf_len=4M watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=120 tsc=reliable"
)


@dataclass(frozen=True)
class Hardware:
    """What a virtual machine is made of.

    Attributes:
        accelerator: `kvm` or `tcg`.
        memory: MiB.
        slots: root ports for devices.
        processors: virtual CPUs.
    """

    accelerator: str
    memory: int = DEFAULT_MEMORY
    slots: int = DEFAULT_SLOTS
    processors: int = 2

    def arguments(self) -> list[str]:
        """QEMU arguments that the state of a machine depends on, without its files."""
        processor = "host" if self.accelerator == "kvm" else "max"
        arguments = ["-accel", self.accelerator, "-cpu", processor, "-smp", str(self.processors)]
        arguments += ["-machine", "q35,memory-backend=mem,vmport=off,smm=off"]
        arguments += ["-object", f"memory-backend-memfd,id=mem,size={self.memory}M,share=on"]
        arguments += ["-m", f"{self.memory}M", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
        arguments += ["-append", _COMMAND_LINE, "-device", "vmgenid,guid=auto", "-device", "virtio-serial-pci,id=ports"]
        for slot in range(self.slots):
            window = "mem-reserve=4M,pref64-reserve=128M,io-reserve=0"
            arguments += ["-device", f"pcie-root-port,id=rp{slot},chassis={slot + 1},slot={slot + 1},{window}"]
        return arguments


@dataclass(frozen=True)
class Image:
    """What a virtual machine boots from."""

    kernel: Kernel
    initrd: Path
    userland: Path

    def arguments(self) -> list[str]:
        """The QEMU arguments for it."""
        arguments = ["-kernel", str(self.kernel.kernel), "-initrd", str(self.initrd)]
        for name, path in (("userland", self.userland), ("modules", self.kernel.modules)):
            file = {"driver": "file", "filename": str(path), "node-name": name, "read-only": True}
            arguments += ["-blockdev", json.dumps(file), "-device", f"virtio-blk-pci,drive={name}"]
        return arguments


class Machine:
    """A running QEMU.

    Args:
        loop: drives it, and serves the devices that are plugged into it.
        programs: where QEMU is.
        hardware: what it is made of.
        image: what it boots from.
        folder: where its logs go; exists.
    """

    def __init__(self, loop: Loop, programs: Programs, hardware: Hardware, image: Image, folder: Path) -> None:
        self.hardware = hardware
        self.folder = folder
        self._loop = loop
        self._programs = programs
        self._image = image
        self._process: subprocess.Popen[bytes] | None = None
        self._plugged = 0
        self.channels = {name: Channel(loop, name) for name in (*PORTS, "shell")}
        self._monitor_channel = Channel(loop, "monitor")
        self._monitor = Monitor(self._monitor_channel)

    def start(self, devices: list[Path] | None = None, incoming: bool = False) -> None:
        """Start QEMU and wait until its monitor answers.

        Args:
            devices: sockets of the devices that it shall have from the start.
            incoming: whether it waits for a saved state instead of booting.

        Raises:
            LabError: it does not start.
        """
        arguments = [*self.hardware.arguments(), *self._image.arguments(), *self._channel_arguments()]
        for path in devices or []:
            arguments += ["-device", json.dumps(self._device(path))]
        if incoming:
            arguments += ["-incoming", "defer"]
        arguments += ["-run-with", "exit-with-parent=on"]
        everything = [*self.channels.values(), self._monitor_channel]
        command = self._programs.qemu(*arguments)
        (self.folder / "qemu.command").write_text("\n".join(command) + "\n")
        with (self.folder / "qemu.log").open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._programs.environment(),
                pass_fds=[channel.theirs.fileno() for channel in everything],
                start_new_session=True,
            )
        for channel in everything:
            channel.theirs.close()
        self._wait_for_greeting()
        self.command("qmp_capabilities")

    def _wait_for_greeting(self) -> None:
        def greeted() -> bool:
            self._monitor.poll()
            return self._monitor.greeted

        self.pump(greeted, 60, "QEMU to start")

    def _channel_arguments(self) -> list[str]:
        arguments = ["-chardev", f"file,id=console,path={self.folder / 'console.log'}", "-serial", "chardev:console"]
        for name, channel in self.channels.items():
            arguments += ["-chardev", f"socket,id={name},fd={channel.theirs.fileno()}"]
            kind = "virtconsole" if name == "shell" else f"virtserialport,name=softhca.{name}"
            arguments += ["-device", f"{kind},bus=ports.0,chardev={name}"]
        arguments += ["-chardev", f"socket,id=monitor,fd={self._monitor_channel.theirs.fileno()}"]
        return [*arguments, "-object", "monitor-qmp,id=qmp,chardev=monitor"]

    def _device(self, path: Path) -> dict[str, Any]:
        """The QEMU description of the next device, in the next free slot."""
        if self._plugged >= self.hardware.slots:
            raise LabError(f"device {self._plugged}: the machine has {self.hardware.slots} slots")
        slot, self._plugged = self._plugged, self._plugged + 1
        address = {"type": "unix", "path": str(path)}
        return {"driver": "vfio-user-pci", "id": f"hca{slot}", "bus": f"rp{slot}", "socket": address}

    def plug(self, path: Path) -> None:
        """Plug a served device into the running machine.

        Raises:
            LabError: QEMU refuses it.
        """
        self.command("device_add", self._device(path))

    def pump(self, condition: Callable[[], bool], timeout: float, what: str) -> None:
        """Serve and move bytes until `condition()` holds.

        Args:
            condition: asked when a channel has brought something, and twice a second.
            timeout: seconds.
            what: what is waited for, for the message.

        Raises:
            LabTimeout: it took longer.
            MachineGone: QEMU ended.
        """
        end = time.monotonic() + timeout
        while not condition():
            left = end - time.monotonic()
            if left <= 0:
                raise LabTimeout(f"waited {timeout:.0f} s for {what}")
            if self._process is not None and self._process.poll() is not None and not condition():
                raise MachineGone(f"QEMU ended while waiting for {what}: {self.last_words()}")
            self._loop.run(min(left, 0.5))

    def command(self, name: str, arguments: dict[str, Any] | None = None, timeout: float = 60) -> Any:
        """Carry out a monitor command and return its answer.

        Raises:
            LabError: QEMU refused it, or took longer than `timeout` seconds.
        """
        serial = self._monitor.request(name, arguments)
        self.pump(lambda: self._monitor.answered(serial), timeout, f"QEMU to carry out {name}")
        return self._monitor.answer(serial)

    def save(self, path: Path) -> None:
        """Stop the machine and save its state to a file."""
        self.command("stop")
        self._set_migration_up()
        self.command("migrate", {"uri": f"file:{path}"})
        self._wait_for_migration("saving the machine's state")

    def load(self, path: Path) -> None:
        """Load a saved state (the machine was started with `incoming`) and let it go on.

        Raises:
            LabError: the state does not fit.
        """
        self._set_migration_up()
        self.command("migrate-incoming", {"uri": f"file:{path}"})
        self._wait_for_migration("loading the machine's state")
        self.command("cont")

    def _set_migration_up(self) -> None:
        on = [{"capability": name, "state": True} for name in ("mapped-ram", "events")]
        self.command("migrate-set-capabilities", {"capabilities": on})

    def _wait_for_migration(self, what: str) -> None:
        end = time.monotonic() + 120
        while True:
            state = self.command("query-migrate").get("status", "none")
            if state == "completed":
                return
            if state == "failed" or time.monotonic() > end:
                raise LabError(f"{what}: {state}; {self.last_words()}")
            self._loop.run_once(0.02)

    @property
    def running(self) -> bool:
        """Whether QEMU runs."""
        return self._process is not None and self._process.poll() is None

    def last_words(self) -> str:
        """The end of what QEMU printed."""
        log = self.folder / "qemu.log"
        lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        return "; ".join(lines[-3:]) or "it printed nothing"

    def console_tail(self) -> str:
        """The end of what the guest wrote on its console."""
        console = self.folder / "console.log"
        text = console.read_text(errors="replace") if console.is_file() else ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return "the console's end: " + " / ".join(lines[-8:]) if lines else "its console is empty"

    def close(self) -> None:
        """End QEMU, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        for channel in [*self.channels.values(), self._monitor_channel]:
            channel.close()


class MachineGone(LabError):
    """QEMU ended by itself: the guest powered off or its kernel died."""
