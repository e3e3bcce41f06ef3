"""The parts of the lab, and the saved state of a booted guest."""

from __future__ import annotations

import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from softhca.guest import kernels, programs, userland
from softhca.guest.agent import Agent
from softhca.guest.cache import Cache, key_of
from softhca.guest.errors import LabError
from softhca.guest.kernels import Kernel
from softhca.guest.machine import PORTS, Hardware, Image, Machine
from softhca.guest.programs import Programs
from softhca.guest.progress import Progress, step
from softhca.vfio_user.loop import Loop

BOOT_TIMEOUT = 120.0
"""Seconds that a guest may take to boot."""
BOOT_TIMEOUT_OF_OWN_KERNEL = 600.0
"""The same for a kernel given by path: one with lock checking or address sanitizer is slow under emulation."""
CORE_MODULES = "ib_core ib_uverbs ib_umad rdma_cm rdma_ucm"
PREPARE = f"modprobe -a {CORE_MODULES}"
"""What a guest runs right after its boot, in a saved state too: the RDMA core, but no driver."""
_RECIPE = 2


@dataclass(frozen=True)
class Parts:
    """What guests are started from."""

    programs: Programs
    kernel: Kernel
    userland: Path
    key: str


def obtain(cache: Cache, mirror: str | None, kernel: str, packages: list[str], progress: Progress) -> Parts:
    """All parts of the lab for a kernel and a list of more packages; what is missing is built.

    Raises:
        LabError: something cannot be built.
    """
    tools = programs.obtain(cache, mirror, progress)
    with ThreadPoolExecutor(2) as pool:
        making = pool.submit(kernels.obtain, cache, mirror, kernel, tools, progress)
        image = userland.obtain(cache, mirror, packages, tools, progress)
        prepared = making.result()
    key = key_of(programs.key(), prepared.folder.name, image.parent.name, kernels.guest_programs())
    return Parts(tools, prepared, image, key)


@dataclass(frozen=True)
class Snapshot:
    """The saved state of a booted guest without devices."""

    folder: Path

    @property
    def state(self) -> Path:
        """QEMU's state file."""
        return self.folder / "state"

    @property
    def initrd(self) -> Path:
        """The first root that it was booted with; a restored machine must be given the same one."""
        return self.folder / "initrd"


def snapshot(cache: Cache, parts: Parts, hardware: Hardware, progress: Progress) -> Snapshot:
    """The saved state for these parts; made by booting once if it is missing.

    Raises:
        LabError: the guest does not boot or cannot be saved.
    """

    def make(work: Path) -> None:
        (work / "initrd").write_bytes(parts.kernel.initrd())
        logs = Path(tempfile.mkdtemp(prefix="softhca-snapshot-"))
        image = Image(parts.kernel, work / "initrd", parts.userland)
        machine = Machine(Loop(), parts.programs, hardware, image, logs)
        try:
            with step(progress, "booting a guest to save its state"):
                machine.start()
                agent = Agent(machine)
                agent.wait_ready(BOOT_TIMEOUT)
                prepare(agent)
                machine.save(work / "state")
        finally:
            machine.close()
            shutil.rmtree(logs)

    key = key_of("snapshot", _RECIPE, parts.key, hardware.arguments(), PORTS, PREPARE, processor())
    return Snapshot(cache.obtain("snapshot", key, make))


def processor() -> str:
    """The host's processor: a booted guest knows the rate of its time stamp counter, which is the host's."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line for line in lines if line.startswith("model name")), "")


def prepare(agent: Agent) -> None:
    """Load the RDMA core.

    Raises:
        LabError: it does not load.
    """
    printed = bytearray()
    status = agent.run(PREPARE, printed.extend, printed.extend, 60, "the RDMA core to load")
    if status:
        raise LabError(f"the RDMA core does not load: {printed.decode(errors='replace').strip()}")
