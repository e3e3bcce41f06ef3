"""Close: stop, drop references, tear down, take every page back, disable (source 6, F1-F5, F7).

The same path undoes a partial bring-up: it only touches what was reached. A page is freed only on the device's word,
and when a closing command fails nothing is freed as if it had succeeded.
"""

from __future__ import annotations

from dataclasses import dataclass

from softhca.driver.driver import Driver, Reached
from softhca.driver.errors import Unconfirmed
from softhca.prm.function import (
    DisableHcaIn,
    DisableHcaOut,
    ForceState,
    TeardownHcaIn,
    TeardownHcaOut,
    TeardownProfile,
)
from softhca.prm.init_segment import NicInterface
from softhca.prm.opcodes import Opcode


@dataclass(frozen=True)
class Closed:
    """How a close ended: two facts, told apart (F4).

    Attributes:
        torn_down: TEARDOWN_HCA succeeded (false also when there was nothing to tear down).
        reclaimed: pages that came back during the close.
        outstanding: pages that the device still has.
    """

    torn_down: bool
    reclaimed: int
    outstanding: int


def close(driver: Driver, *, fast: bool = False) -> Closed:
    """Undo what was reached, in the order of F2 to F4.

    Args:
        driver: how far it came, it knows itself.
        fast: let the device stop at once, where it can, instead of destroying object by object (F6).

    Raises:
        DriverError: a command failed; what the device may still access stays allocated (F5). What became of it only a
            reset can tell: :func:`softhca.driver.recovery.reset_function`.
    """
    reclaimed = 0
    torn_down = False
    if driver.reached >= Reached.INITIALIZED:
        if fast and tear_down_fast(driver):
            driver.pci.disable_msix()
            driver.pci.disable_bus_master()
            return Closed(torn_down=True, reclaimed=driver.forget(), outstanding=0)
        destroy_objects(driver)
        destroy_event_queues(driver)
        driver.channel.execute(
            Opcode.TEARDOWN_HCA, TeardownHcaIn.new(profile=TeardownProfile.GRACEFUL_CLOSE), TeardownHcaOut
        )
        driver.reached = Reached.ENABLED
        torn_down = True
    if driver.reached >= Reached.ENABLED:
        reclaimed = driver.ledger.reclaim()
        driver.channel.execute(Opcode.DISABLE_HCA, DisableHcaIn.new(), DisableHcaOut)
        driver.reached = Reached.QUEUE
    outstanding = driver.ledger.outstanding if driver.has_channel else 0
    if driver.has_channel:
        release_channel(driver)
    return Closed(torn_down, reclaimed, outstanding)


def tear_down_fast(driver: Driver) -> bool:
    """TEARDOWN_HCA(prepare fast teardown), then nic_interface = disabled, confirmed; tell whether the device could.

    Raises:
        DriverError: the command failed, or the device does not confirm.
    """
    if not driver.capabilities.fast_teardown:
        return False
    request = TeardownHcaIn.new(profile=TeardownProfile.PREPARE_FAST_TEARDOWN)
    reply = driver.channel.execute(Opcode.TEARDOWN_HCA, request, TeardownHcaOut)
    if reply.state != ForceState.SUCCESS:
        return False
    driver.segment.disable_interface(NicInterface.DISABLED, driver.timeout)
    return True


def destroy_objects(driver: Driver) -> None:
    """Data objects in the order of their references: QPs, then CQs and MKeys, then PDs (F2, A8).

    Destroying a QP ends its work and what remote peers still ask of it (F1).
    """
    for qp in list(driver.qps.values()):
        qp.destroy()
        del driver.qps[qp.number]
    for cq in list(driver.cqs.values()):
        cq.destroy()
        del driver.cqs[cq.number]
    while driver.regions:
        region, buffer = driver.regions[-1]
        region.deregister(driver.channel)
        driver.regions.pop()
        buffer.free()
    while driver.pds:
        driver.pds[-1].deallocate(driver.channel)
        driver.pds.pop()


def destroy_event_queues(driver: Driver) -> None:
    """Completion EQ, then, polling again, the EQ of commands and page requests, then the UAR (F3)."""
    if driver.completion_eq is not None:
        driver.completion_eq.destroy()
        driver.completion_eq = None
    if driver.command_eq is not None:
        driver.channel.use_polling()
        driver.command_eq.destroy()
        driver.command_eq = None
    if driver.uar is not None:
        driver.uar.deallocate(driver.channel)
        driver.uar = None


def release_channel(driver: Driver) -> None:
    """Stop the device's DMA, then free queue and mailboxes.

    Raises:
        Unconfirmed: slots are in quarantine: their commands may still run, and what became of them is not known (D10).
    """
    if driver.channel.recover():
        names = ", ".join(
            f"{submission.opcode.name} in slot {slot}" for slot, submission in sorted(driver.channel.quarantine.items())
        )
        raise Unconfirmed(f"command channel: {names} never completed; only a reset tells that the device is still")
    driver.pci.disable_msix()
    driver.pci.disable_bus_master()
    driver.drop_channel()
    driver.reached = Reached.ENUMERATED
