"""One run: a guest is started with served devices, carries out a command, and is judged."""

from __future__ import annotations

import json
import shutil
import stat
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softhca.bus import Device
from softhca.guest import complaints, lab
from softhca.guest.accelerator import accelerator
from softhca.guest.agent import Agent, Sink
from softhca.guest.cache import Cache
from softhca.guest.errors import LabError, LabTimeout
from softhca.guest.kernels import DISTRIBUTED
from softhca.guest.machine import DEFAULT_MEMORY, DEFAULT_SLOTS, Hardware, Image, Machine, MachineGone
from softhca.guest.progress import Progress
from softhca.guest.terminal import interactive_shell
from softhca.guest.verdict import Outcome
from softhca.vfio_user.loop import Loop
from softhca.vfio_user.server import Server

MAX_DEVICES = 16
_NOBODY_READS = 128 + 13
"""Exit status of a run whose output nobody takes any more: as of a program that SIGPIPE ended."""
_DRIVER = "mlx5_core"
_LOAD_DRIVER = f"""
modprobe -a mlx5_core mlx5_ib ib_uverbs ib_umad || exit 1
for round in $(seq 100); do
    bound=(/sys/bus/pci/drivers/{_DRIVER}/0000:*)
    [ -e "${{bound[0]}}" ] || bound=()
    [ ${{#bound[@]}} -ge $DEVICES ] && exit 0
    sleep 0.1
done
echo "{_DRIVER} has bound to ${{#bound[@]}} of $DEVICES devices" >&2
exit 1
"""
_WAIT_FOR_DEVICES = """
for round in $(seq 200); do
    count=0
    for path in /sys/bus/pci/devices/*; do
        case ${path##*/} in 0000:00:*) ;; *) count=$((count + 1)) ;; esac
    done
    [ $count -ge $DEVICES ] && exit 0
    sleep 0.05
done
echo "the guest sees $count of $DEVICES devices" >&2
exit 1
"""


@dataclass(frozen=True)
class Served:
    """A device that a guest gets.

    Attributes:
        device: what is served.
        summary: says what became of it, as JSON.
    """

    device: Device
    summary: Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Options:
    """How a run is to be.

    Attributes:
        kernel: `stable`, `newest` or `VMLINUZ:MODULES_DIR`.
        packages: more packages for the image.
        memory: MiB.
        boot: boot really, even if a saved state would do.
        mirror: URI of a package mirror; None takes the host's.
        timeout: seconds that the command may take.
        keep: folder that the logs are copied to.
        copy_in: files for the command's working folder.
        copy_out: (file in the guest, file here).
        load_modules: whether the driver is loaded before the command starts.
        allow_kernel: complaints that do not fail the run, see :func:`complaints.find`.
    """

    kernel: str = "stable"
    packages: list[str] = field(default_factory=list)
    memory: int = DEFAULT_MEMORY
    boot: bool = False
    mirror: str | None = None
    timeout: float = 300.0
    keep: Path | None = None
    copy_in: list[Path] = field(default_factory=list)
    copy_out: list[tuple[str, Path]] = field(default_factory=list)
    load_modules: bool = True
    allow_kernel: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Streams:
    """Where a command's output goes."""

    output: Sink
    error: Sink


class Run:
    """One run of a guest.

    Args:
        options: how it is to be.
        devices: what the guest gets, at most 16.
        streams: where the command's output goes.
        progress: told about what takes long, and about what goes another way than expected.
        cache: the lab's; by default the user's.
        loop: serves the devices; by default one of its own.
    """

    def __init__(
        self,
        options: Options,
        devices: list[Served],
        streams: Streams,
        progress: Progress,
        cache: Cache | None = None,
        loop: Loop | None = None,
    ) -> None:
        self._options = options
        self._devices = devices
        self._streams = streams
        self._progress = progress
        self._cache = cache
        self._loop = loop if loop is not None else Loop()
        self._folder = Path(tempfile.mkdtemp(prefix="softhca-"))
        self._servers: list[Server] = []
        self._machine: Machine | None = None
        self._agent: Agent | None = None
        self._outcome = Outcome()

    def carry_out(self, command: str | None) -> Outcome:
        """Start the guest, run the bash script `command` (None: an interactive shell), judge, end the guest."""
        outcome = self._outcome
        try:
            self._check_options()
            self._start()
            self._ready_devices()
            self._copy_in()
            self._command(command)
            if not outcome.timed_out:
                self._copy_out()
        except MachineGone as error:
            self._read_last_lines()
            if not self._complaints():
                outcome.lab_error = str(error)
        except BrokenPipeError:
            outcome.status = _NOBODY_READS
        except (LabError, OSError, ValueError) as error:
            outcome.lab_error = f"{error}"
        except Exception:  # noqa: BLE001 - a defect in a device or in the lab ends the run, and the verdict shows it whole
            outcome.lab_error = traceback.format_exc()
        finally:
            outcome.complaints = self._complaints()
            outcome.devices = [served.summary() for served in self._devices]
            self._end()
        return outcome

    def _check_options(self) -> None:
        if len(self._devices) > MAX_DEVICES:
            raise LabError(f"{len(self._devices)} devices: at most {MAX_DEVICES}")
        for path in self._options.copy_in:
            if not path.is_file():
                raise LabError(f"--copy-in {path}: there is no such file")
        complaints.find([], self._options.allow_kernel)

    def _serve(self) -> list[Path]:
        paths = []
        for number, served in enumerate(self._devices):
            path = self._folder / f"device{number}.sock"
            self._servers.append(Server(self._loop, served.device, path))
            paths.append(path)
        return paths

    def _start(self) -> None:
        options = self._options
        cache = self._cache if self._cache is not None else Cache(progress=self._progress)
        parts = lab.obtain(cache, options.mirror, options.kernel, options.packages, self._progress)
        sockets = self._serve()
        slots = max(DEFAULT_SLOTS, len(sockets))
        kind = accelerator()
        try:
            self._start_on(Hardware(kind, options.memory, slots), cache, parts, sockets)
        except LabTimeout as error:
            if kind == "tcg":
                raise
            self._progress(f"the guest does not start with {kind}, emulating instead: {error}")
            self._drop_machine()
            self._start_on(Hardware("tcg", options.memory, slots), cache, parts, sockets)

    def _start_on(self, hardware: Hardware, cache: Cache, parts: lab.Parts, sockets: list[Path]) -> None:
        reason = self._why_boot(hardware.slots)
        if reason is None:
            try:
                self._restore(lab.snapshot(cache, parts, hardware, self._progress), parts, hardware, sockets)
            except LabError as error:
                self._progress(f"the start from the saved state failed, booting instead: {error}")
                self._drop_machine()
            else:
                return
        else:
            self._progress(f"booting ({reason})")
        self._boot(parts, hardware, sockets)

    def _why_boot(self, slots: int) -> str | None:
        """Why the saved state does not do for this run; None if it does."""
        options = self._options
        if options.boot:
            return "--boot"
        if options.kernel != "stable":
            return "the saved state has the stable kernel"
        if options.packages:
            return "the saved state has no more packages"
        if options.memory != DEFAULT_MEMORY:
            return f"the saved state has {DEFAULT_MEMORY} MiB of memory"
        if slots != DEFAULT_SLOTS:
            return f"the saved state has {DEFAULT_SLOTS} slots"
        return None

    def _restore(self, snapshot: lab.Snapshot, parts: lab.Parts, hardware: Hardware, sockets: list[Path]) -> None:
        image = Image(parts.kernel, snapshot.initrd, parts.userland)
        machine, agent = self._new_machine(parts, hardware, image)
        machine.start(incoming=True)
        machine.load(snapshot.state)
        agent.set_clock(int(time.time()))
        for count, path in enumerate(sockets, 1):
            machine.plug(path)
            self._helper(_WAIT_FOR_DEVICES, count, 30, "the guest to see its devices")  # in the order of their slots

    def _boot(self, parts: lab.Parts, hardware: Hardware, sockets: list[Path]) -> None:
        initrd = self._folder / "initrd"
        initrd.write_bytes(parts.kernel.initrd())
        machine, agent = self._new_machine(parts, hardware, Image(parts.kernel, initrd, parts.userland))
        machine.start(sockets)
        own = self._options.kernel not in DISTRIBUTED
        try:
            agent.wait_ready(lab.BOOT_TIMEOUT_OF_OWN_KERNEL if own else lab.BOOT_TIMEOUT)
        except LabError as error:
            raise type(error)(f"{error}; {machine.console_tail()}") from error
        lab.prepare(agent)

    def _new_machine(self, parts: lab.Parts, hardware: Hardware, image: Image) -> tuple[Machine, Agent]:
        self._machine = Machine(self._loop, parts.programs, hardware, image, self._folder)
        self._agent = Agent(self._machine)
        return self._machine, self._agent

    def _drop_machine(self) -> None:
        if self._machine is not None:
            self._machine.close()
        self._machine = self._agent = None

    def _ready_devices(self) -> None:
        if not self._devices:
            return
        count = len(self._devices)
        self._helper(_WAIT_FOR_DEVICES, count, 30, "the guest to see its devices")
        if self._options.load_modules:
            self._helper(_LOAD_DRIVER, count, 120, "the driver to bind")

    def _helper(self, script: str, devices: int, timeout: float, what: str) -> None:
        """Run a script of our own in the guest, with a number of devices to expect; its failure is the lab's."""
        printed = bytearray()
        script = f"DEVICES={devices}\n{script}"
        status = self._running_agent().run(script, printed.extend, printed.extend, timeout, what)
        if status:
            raise LabError(f"{what}: {printed.decode(errors='replace').strip() or f'status {status}'}")

    def _copy_in(self) -> None:
        for path in self._options.copy_in:
            self._running_agent().put(path.name, path.read_bytes(), stat.S_IMODE(path.stat().st_mode))

    def _copy_out(self) -> None:
        for name, path in self._options.copy_out:
            data = self._running_agent().get(name)
            if data is None:
                raise LabError(f"--copy-out {name}: the guest has no such file")
            path.write_bytes(data)

    def _command(self, command: str | None) -> None:
        agent, outcome = self._running_agent(), self._outcome
        if command is None:
            assert self._machine is not None
            outcome.status = interactive_shell(self._loop, self._machine, agent)
            return
        try:
            outcome.status = agent.run(command, self._streams.output, self._streams.error, self._options.timeout)
        except LabTimeout:
            outcome.timed_out = True

    def _running_agent(self) -> Agent:
        if self._agent is None:
            raise LabError("no guest runs")
        return self._agent

    def _complaints(self) -> list[complaints.Complaint]:
        return complaints.find(self._agent.log.lines, self._options.allow_kernel) if self._agent is not None else []

    def _read_last_lines(self) -> None:
        """After the guest's end: what it could no longer send stands on its console."""
        console = self._folder / "console.log"
        if self._agent is not None and console.is_file():
            known = self._agent.log.lines
            last = known[-1].seconds if known else -1.0
            known.extend(complaints.read_console(console.read_text(errors="replace"), last))

    def _end(self) -> None:
        if self._agent is not None:
            lines = "".join(f"<{line.level}>{line}\n" for line in self._agent.log.lines)
            (self._folder / "kernel.log").write_text(lines)
        self._drop_machine()
        for server in self._servers:
            server.close()
        (self._folder / "initrd").unlink(missing_ok=True)
        (self._folder / "verdict.json").write_text(json.dumps(self._outcome.as_json(), indent=1) + "\n")
        if self._options.keep is not None:
            shutil.copytree(self._folder, self._options.keep, dirs_exist_ok=True)
        started = (self._folder / "qemu.command").is_file()
        if self._outcome.verdict in ("ok", "command") or self._options.keep is not None or not started:
            shutil.rmtree(self._folder)
        else:
            self._progress(f"logs are kept in {self._folder}")
