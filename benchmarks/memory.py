"""`make bench-memory`: what a device takes of memory, each in a process of its own.

The figure is the peak of the resident set, interpreter, driver and the host's ICM pages included. The buffers of all
queues of a kind are one page of the host, since a host's buffers are not the device's memory.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.card import machine
from benchmarks.report import Line, NotMeasured, amount, show
from softhca.driver import Driver, bring_up
from softhca.driver.memory import Buffer
from softhca.prm.cq import CreateCqIn, CreateCqOut
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import CreateQpIn, CreateQpOut

QPS = 16_384
CQS = 32_768
HOST_MEMORY = 512 << 20
MIB = 1 << 20


def peak() -> int:
    """Bytes that this process had resident at most."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def populate(driver: Driver, qps: int, cqs: int) -> None:
    """Create that many CQs and RC QPs in state RST on a function that is up; each QP has two CQs of its own."""
    if driver.uar is None or driver.completion_eq is None:
        raise NotMeasured("the driver has no UAR or no completion EQ")
    queue, record = Buffer(driver.memory, 4096), Buffer(driver.memory, 64)
    uar, channel = driver.uar.number, driver.channel
    cq = {
        "log_cq_size": 4,
        "uar_page": uar,
        "c_eqn_or_apu_element": driver.completion_eq.number,
        "dbr_addr": record.iova,
    }
    numbers = [
        channel.execute(Opcode.CREATE_CQ, CreateCqIn.new(cq_context=cq, pas=queue.pages), CreateCqOut).cqn
        for _ in range(cqs)
    ]
    qp = {
        "pm_state": 3,
        "pd": driver.create_pd().number,
        "uar_page": uar,
        "log_sq_size": 4,
        "log_rq_size": 4,
        "log_rq_stride": 2,
        "dbr_addr": record.iova,
    }
    for index in range(qps):
        pair = {"cqn_snd": numbers[2 * index % cqs], "cqn_rcv": numbers[(2 * index + 1) % cqs]}
        channel.execute(Opcode.CREATE_QP, CreateQpIn.new(qpc=qp | pair, pas=queue.pages), CreateQpOut)


def measure(qps: int, cqs: int) -> int:
    """Bytes of this process with a device that is up and has that many objects.

    Raises:
        NotMeasured: the device says that it has others.
    """
    card, _, driver = machine(HOST_MEMORY)
    bring_up(driver)
    if cqs:
        populate(driver, qps, cqs)
    objects = card.summary()["objects"]
    if (objects.get("QP", 0), objects.get("CQ", 0)) != (qps, cqs):
        raise NotMeasured(f"{qps} QPs and {cqs} CQs were created, the device has {objects}")
    return peak()


def in_fresh_process(qps: int, cqs: int) -> float:
    """MiB that :func:`measure` finds in a process of its own.

    Raises:
        NotMeasured: it failed.
    """
    command = [sys.executable, "-m", "benchmarks.memory", "--qps", str(qps), "--cqs", str(cqs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotMeasured(f"exit status {done.returncode}: {done.stderr.strip()[-300:]}")
    return int(done.stdout) / MIB


def figures() -> list[Line]:
    """Both figures of the device."""
    return [
        amount("an idle device, brought up", 60, lambda: in_fresh_process(0, 0), unit="MiB"),
        amount(f"a device with {QPS:,} QPs, {CQS:,} CQs", 1024, lambda: in_fresh_process(QPS, CQS), unit="MiB"),
    ]


def main() -> int:
    """Print the figures; with --qps and --cqs only the bytes of this process with that many."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__.splitlines()[0])
    parser.add_argument("--qps", type=int, help="print the bytes that this process takes with that many QPs")
    parser.add_argument("--cqs", type=int, default=0, help="and that many CQs")
    given = parser.parse_args()
    if given.qps is None:
        return show(figures())
    print(measure(given.qps, given.cqs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
