"""One guest of a run: its virtual machine, the devices that are served to it, and what is told about it."""

from __future__ import annotations

import stat
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from softhca.guest import complaints, lab
from softhca.guest.accelerator import accelerator
from softhca.guest.agent import Agent, Job, Sink
from softhca.guest.cache import Cache
from softhca.guest.channel import Channel
from softhca.guest.errors import LabError, LabTimeout
from softhca.guest.kernels import DISTRIBUTED
from softhca.guest.machine import DEFAULT_MEMORY, DEFAULT_SLOTS, Hardware, Image, Machine, MachineGone
from softhca.guest.options import Options, Served
from softhca.guest.progress import Progress
from softhca.guest.terminal import interactive_shell
from softhca.guest.verdict import Outcome
from softhca.vfio_user.loop import Loop
from softhca.vfio_user.server import Server

WAIT_FOR_DEVICES = """
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


class Guest:
    """One guest.

    Args:
        number: of the guest in its run, from 0.
        options: how the run is to be.
        devices: what it gets.
        folder: where its logs and sockets go; exists.
        loop: serves its devices.
        progress: told about what takes long, and about what goes another way than expected.

    Attributes:
        outcome: what the run brought here.
        failed: the guest cannot go on; the outcome says why.
    """

    def __init__(
        self, number: int, options: Options, devices: list[Served], folder: Path, loop: Loop, progress: Progress
    ) -> None:
        self.number = number
        self.devices = devices
        self.outcome = Outcome()
        self.failed = False
        self._options = options
        self._folder = folder
        self._loop = loop
        self._progress = progress
        self._servers: list[Server] = []
        self._machine: Machine | None = None
        self._agent: Agent | None = None
        self._job: Job | None = None

    @contextmanager
    def judged(self) -> Iterator[None]:
        """What goes wrong inside is this guest's failure, and goes no further; except that nobody reads the output.

        Raises:
            BrokenPipeError: of the command's output.
        """
        try:
            yield
        except BrokenPipeError:
            raise
        except MachineGone as error:
            self._read_last_lines()
            if not self._complaints():
                self.outcome.lab_error = str(error)
        except (LabError, OSError, ValueError) as error:
            self.outcome.lab_error = f"{error}"
        except Exception:  # noqa: BLE001 - a defect in a device or in the lab ends the run, and the verdict shows it whole
            self.outcome.lab_error = traceback.format_exc()
        else:
            return
        self.failed = True

    def start(self, cache: Cache, parts: lab.Parts, count: int) -> None:
        """Serve the devices and start the virtual machine with them; it is guest `number` of `count`.

        Raises:
            LabError: it does not start.
        """
        sockets = self._serve()
        slots = max(DEFAULT_SLOTS, len(sockets))
        kind = accelerator()
        try:
            self._start_on(Hardware(kind, self._options.memory, slots), cache, parts, sockets)
        except LabTimeout as error:
            if kind == "tcg":
                raise
            self._progress(f"the guest does not start with {kind}, emulating instead: {error}")
            self._drop_machine()
            self._start_on(Hardware("tcg", self._options.memory, slots), cache, parts, sockets)
        for variable in (f"GUEST={self.number}", f"GUESTS={count}"):
            self.agent.set_variable(variable)

    def _serve(self) -> list[Path]:
        paths = []
        for number, served in enumerate(self.devices):
            path = self._folder / f"device{number}.sock"
            self._servers.append(Server(self._loop, served.device, path))
            paths.append(path)
        return paths

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
            printed = bytearray()
            what = "the guest to see its devices"  # in the order of their slots
            status = agent.run(self.helper(WAIT_FOR_DEVICES, count), printed.extend, printed.extend, 30, what)
            self.check_helper(what, status, printed)

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

    @staticmethod
    def helper(script: str, devices: int) -> str:
        """A script of our own, with a number of devices to expect."""
        return f"DEVICES={devices}\n{script}"

    @staticmethod
    def check_helper(what: str, status: int, printed: bytes | bytearray) -> None:
        """The failure of a script of our own is the lab's.

        Raises:
            LabError: it failed.
        """
        if status:
            raise LabError(f"{what}: {printed.decode(errors='replace').strip() or f'status {status}'}")

    @property
    def agent(self) -> Agent:
        """The guest's agent.

        Raises:
            LabError: no guest runs.
        """
        if self._agent is None:
            raise LabError("no guest runs")
        return self._agent

    @property
    def barrier(self) -> Channel:
        """The channel of softhca-barrier.

        Raises:
            LabError: no guest runs.
        """
        if self._machine is None:
            raise LabError("no guest runs")
        return self._machine.channels["barrier"]

    def begin(self, script: str, output: Sink, error: Sink) -> None:
        """Let a script start, see :meth:`Agent.begin`; :meth:`poll` tells when it has ended."""
        self._job = self.agent.begin(script, output, error)

    def poll(self, what: str) -> int | None:
        """Pass on what the script that was begun has printed; its exit status, None while it runs.

        Raises:
            MachineGone: the guest ended; `what` was waited for.
        """
        job, machine = self._job, self._machine
        if job is None or machine is None:
            raise LabError("no script runs")
        running = machine.running  # before the last look at what it sent
        if job.poll():
            self._job = None
            return job.status
        if not running:
            raise MachineGone(f"QEMU ended while waiting for {what}: {machine.last_words()}")
        return None

    def shell(self, meanwhile: Callable[[], None]) -> int:
        """Run an interactive shell to its end; its exit status.

        Args:
            meanwhile: called whenever something came.
        """
        agent = self.agent
        assert self._machine is not None
        return interactive_shell(self._loop, self._machine, agent, meanwhile)

    def copy_in(self) -> None:
        """Bring the files of --copy-in into the working folder.

        Raises:
            LabError: the guest cannot write one.
        """
        for path in self._options.copy_in:
            self.agent.put(path.name, path.read_bytes(), stat.S_IMODE(path.stat().st_mode))

    def copy_out(self, suffix: str) -> None:
        """Fetch the files of --copy-out, to paths with a suffix.

        Raises:
            LabError: the guest does not have one.
        """
        for name, path in self._options.copy_out:
            data = self.agent.get(name)
            if data is None:
                raise LabError(f"--copy-out {name}: the guest has no such file")
            path.with_name(path.name + suffix).write_bytes(data)

    def _complaints(self) -> list[complaints.Complaint]:
        return complaints.find(self._agent.log.lines, self._options.allow_kernel) if self._agent is not None else []

    def _read_last_lines(self) -> None:
        """After the guest's end: what it could no longer send stands on its console."""
        console = self._folder / "console.log"
        if self._agent is not None and console.is_file():
            known = self._agent.log.lines
            last = known[-1].seconds if known else -1.0
            known.extend(complaints.read_console(console.read_text(errors="replace"), last))

    def judge(self) -> None:
        """Note in the outcome what kernel and devices have to say."""
        self.outcome.complaints = self._complaints()
        self.outcome.devices = [served.summary() for served in self.devices]

    def end(self) -> bool:
        """End the virtual machine and the servers; whether there are logs of it."""
        if self._agent is not None:
            lines = "".join(f"<{line.level}>{line}\n" for line in self._agent.log.lines)
            (self._folder / "kernel.log").write_text(lines)
        self._drop_machine()
        for server in self._servers:
            server.close()
        (self._folder / "initrd").unlink(missing_ok=True)
        return (self._folder / "qemu.command").is_file()
