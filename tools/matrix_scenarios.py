"""The scenarios of guest_matrix.py. Each returns a few words on what the driver did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from matrix_bench import Bench, Command, Wrong
from softhca.prm.init_segment import HealthSyndrome
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus

ANY_OF_THE_DRIVER = ("driver",)
"""A driver may complain of a fault as much as it likes."""
SHORT = (
    "ENABLE_HCA 0x0 fails",
    "MANAGE_PAGES 0x1 fails",
    "INIT_HCA 0x0 fails",
    "CREATE_EQ 0x0 fails",
    "QUERY_HCA_VPORT_CONTEXT 0x0 fails",
    "CREATE_QP 0x0 fails",
)
"""The faults that `make test` runs: before and after INIT_HCA, in mlx5_core, in mlx5_ib, and in the MAD layer."""

LOST_OR_LATE = ("QUERY_ISSI 0x0", "QUERY_HCA_CAP 0x1", "SET_HCA_CAP 0x0", "QUERY_ADAPTER 0x0", "ALLOC_UAR 0x0")
"""Commands that the driver can do without an answer of: what it does next undoes what they have done."""
LOST_WITH_A_STAGE = ("ENABLE_HCA 0x0", "MANAGE_PAGES 0x1", "INIT_HCA 0x0")
"""Commands whose effect stays: the driver takes a lost one for one that was not carried out, and undoes nothing. Only a
reset of the function brings both together again."""
LATE = 8
"""Seconds; the driver waits for a shorter time, see :data:`matrix_bench.TIMEOUT`."""


@dataclass(frozen=True)
class Scenario:
    """A row of the matrix.

    Attributes:
        group: what kind of scenario it is.
        name: what is done.
        carry_out: does it; raises Wrong.
        short: whether `make test` runs it too.
        noise: what the driver may complain of, as of `softhca guest --allow-kernel`; never what is fatal.
    """

    group: str
    name: str
    carry_out: Callable[[Bench], str]
    short: bool = False
    noise: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Group and name."""
        return f"{self.group}: {self.name}"


def name_of(command: Command) -> str:
    """As rules and tables have it."""
    opcode, op_mod = command
    try:
        return f"{Opcode(opcode).name} {op_mod:#x}"
    except ValueError:
        return f"{opcode:#x} {op_mod:#x}"


# --- faults of commands -----------------------------------------------------------------------------------------------


def record(bench: Bench) -> list[Command]:
    """The first occurrences of the commands of a probe, in order."""
    bench.begin()
    bench.recorder.commands.clear()
    bench.must("bind && active")
    commands = bench.recorder.first()
    bench.must("unbind")
    bench.expect_clean("after the recorded probe")
    return commands


def _gave_up(bench: Bench) -> str:
    """Which driver's probe failed, and how."""
    failed = bench.said(r"probe with driver (\S+ failed with error -\d+)")
    return ", ".join(text.replace(" failed with error", "") for text in failed)


def faulty_probe(bench: Bench, rule: str, reset: bool = False) -> str:
    """A probe with a fault, then one without.

    Args:
        bench: the guest.
        rule: the fault.
        reset: the function is reset (FLR) in between.
    """
    bench.fault(rule)
    done = bench.run("bind; status=$?; ls /sys/class/infiniband; unbind || exit 100; exit $status")
    if done.status == 100:
        raise Wrong(f"the driver cannot be unbound: {done.output}")
    bench.no_fault()
    if reset:
        bench.must("echo 1 >/sys/bus/pci/devices/$card/reset")
    bench.expect_clean("after the faulty probe")
    bench.works()
    if done.status:
        return f"gives up: {_gave_up(bench) or 'no word in the log'}"
    if "mlx5_0" not in done.output:
        return f"no RDMA device: {_gave_up(bench) or 'no word in the log'}"
    return "goes on"


def status_faults(commands: list[Command], status: CommandStatus) -> list[Scenario]:
    """A scenario for each command: its first occurrence in a probe fails."""

    def scenario(command: Command) -> Scenario:
        opcode, op_mod = name_of(command).split()
        rule = f"command={opcode} op_mod={op_mod} status={status.name}"
        name = f"{opcode} {op_mod} fails"
        return Scenario("fault", name, partial(faulty_probe, rule=rule), name in SHORT, noise=ANY_OF_THE_DRIVER)

    return [scenario(command) for command in commands]


def timing_faults() -> list[Scenario]:
    """Scenarios for commands that are lost, or late: later than the driver waits."""

    def scenario(command: str, effect: str, how: str, reset: bool = False) -> Scenario:
        opcode, op_mod = command.split()
        rule = f"command={opcode} op_mod={op_mod} {effect}"
        carry_out = partial(faulty_probe, rule=rule, reset=reset)
        return Scenario("fault", f"{command} {how}", carry_out, noise=ANY_OF_THE_DRIVER)

    effects = (("lost=true", "is lost"), (f"late={LATE}s", "is late"))
    simple = [scenario(command, *effect) for command in LOST_OR_LATE for effect in effects]
    return [*simple, *(scenario(command, *effect, reset=True) for command in LOST_WITH_A_STAGE for effect in effects)]


# --- without faults ---------------------------------------------------------------------------------------------------


def unbind_bind(bench: Bench) -> str:
    """The driver is unbound and bound again, with data moved in between."""
    bench.must("bind && active && traffic")
    for _ in range(3):
        bench.must("unbind && bind && active")
    bench.must("traffic && unbind")
    bench.expect_clean("after unbind")
    return "data moved, 4 times bound"


def modules_again(bench: Bench) -> str:
    """The modules are removed and loaded."""
    bench.must("bind && active && modprobe -r mlx5_ib mlx5_core")
    bench.expect_clean("after modprobe -r")
    bench.must("load && active && unbind")
    bench.expect_clean("after unbind")
    return "removed and loaded"


def reset_unbound(bench: Bench) -> str:
    """FLR while no driver is bound."""
    bench.must("echo 1 >/sys/bus/pci/devices/$card/reset")
    bench.works()
    return "bound after the reset"


def devlink_reload(bench: Bench) -> str:
    """`devlink dev reload`."""
    bench.must("bind && active && traffic && devlink dev reload pci/$card && active && traffic && unbind")
    bench.expect_clean("after unbind")
    return "data moved before and after"


def unbind_under_traffic(bench: Bench) -> str:
    """The driver is unbound while data moves; programs lose their device, and it comes back."""
    bench.must("bind && active && begin_traffic && unbind && end_traffic")
    bench.expect_clean("after unbind")
    bench.works()
    return "unbound while ib_write_bw ran"


def remove_under_traffic(bench: Bench) -> str:
    """The modules are removed while data moves: no program of user space holds mlx5_ib, which can let go of them."""
    bench.must("bind && active && begin_traffic && modprobe -r mlx5_ib mlx5_core && end_traffic")
    bench.expect_clean("after modprobe -r")
    bench.must("load && active && unbind")
    bench.expect_clean("after unbind")
    return "removed while ib_write_bw ran"


def reset_under_driver(bench: Bench) -> str:
    """FLR behind the driver's back, while data moves: its health poll sees the disabled function, and it recovers."""
    bench.must("bind && active && begin_traffic && echo 1 >/sys/bus/pci/devices/$card/reset && recovered")
    bench.must("end_traffic && active && traffic && unbind")
    bench.expect_clean("after unbind")
    return "recovers by itself"


def surprise_removal(bench: Bench) -> str:
    """The card is pulled out while data moves: it reads as ones. The driver lets go, and finds it when it is back.

    The card itself does this, since QEMU 11.1 aborts when a vfio-user device with MSI-X is unplugged: the finalizer in
    hw/vfio-user/pci.c takes a memory region out that has gone already.
    """
    bench.must("bind && active && begin_traffic")
    bench.card.remove()
    bench.must("echo 1 >/sys/bus/pci/devices/$card/remove && end_traffic")
    bench.expect_clean("after the removal")
    bench.card.insert()
    bench.must("echo 1 >/sys/bus/pci/rescan; found && active && traffic && unbind")
    bench.expect_clean("after unbind")
    return "lets go of it, and finds it again"


def noticed_removal(bench: Bench) -> str:
    """The card is pulled out; the driver's health poll notices before the bus does."""
    bench.must("bind && active")
    bench.card.remove()
    bench.must("noticed && echo 1 >/sys/bus/pci/devices/$card/remove")
    bench.expect_clean("after the removal")
    bench.card.insert()
    bench.must("echo 1 >/sys/bus/pci/rescan; found && active && traffic && unbind")
    return "notices by its health poll, lets go of it, and finds it again"


def deadly_syndrome(bench: Bench, syndrome: HealthSyndrome) -> str:
    """The firmware dies of a health syndrome while data moves, and asks for a reset."""
    bench.must("bind && active && begin_traffic")
    bench.fault(f"point=command.received raise={syndrome.name} fatal=true")
    bench.must("ibv_devinfo >/dev/null; recovered && end_traffic && active && traffic && unbind", 120)
    bench.no_fault()
    bench.expect_clean("after unbind")
    return "recovers by itself"


def taken_off_the_bus(bench: Bench) -> str:
    """The kernel takes the card off the bus while data moves, as hot-unplug does, and finds it again."""
    bench.must("bind && active && begin_traffic && echo 1 >/sys/bus/pci/devices/$card/remove && end_traffic")
    bench.expect_clean("after the removal")
    bench.must("echo 1 >/sys/bus/pci/rescan; found && active && traffic && unbind")
    bench.expect_clean("after unbind")
    return "removed while ib_write_bw ran, and found again"


def whole_life() -> list[Scenario]:
    """What needs no fault of a command."""
    return [
        Scenario("life", "unbind and bind", unbind_bind, short=True),
        Scenario("life", "modules removed and loaded", modules_again),
        Scenario("life", "FLR without driver", reset_unbound, short=True),
        Scenario("life", "devlink dev reload", devlink_reload),
        Scenario("life", "unbind under traffic", unbind_under_traffic),
        Scenario("life", "rmmod under traffic", remove_under_traffic),
        Scenario("life", "FLR under the driver and traffic", reset_under_driver, noise=ANY_OF_THE_DRIVER),
        Scenario("life", "surprise removal under traffic", surprise_removal, noise=ANY_OF_THE_DRIVER),
        Scenario("life", "surprise removal, noticed by the driver", noticed_removal, noise=ANY_OF_THE_DRIVER),
        *(
            Scenario("life", f"dies of {one.name}", partial(deadly_syndrome, syndrome=one), noise=ANY_OF_THE_DRIVER)
            for one in (HealthSyndrome.FW_INTERNAL_ERR, HealthSyndrome.HW_FATAL_ERR)
        ),
        Scenario("life", "taken off the bus under traffic", taken_off_the_bus),
    ]
