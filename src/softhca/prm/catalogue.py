"""Every layout: importing this module declares them all; commands by opcode with their input and output."""

from softhca.prm import (  # noqa: F401 - imported so that they are declared
    adapter,
    cmd,
    cq,
    cqe,
    device_registers,
    eq,
    events,
    flow_table_cap,
    function,
    hca_cap,
    hca_vport,
    ib_packet,
    icmd,
    init_segment,
    mad,
    mcg,
    mkey,
    offload_cap,
    pages,
    pd,
    pma,
    ppcnt,
    q_counter,
    qp,
    registers,
    roce,
    sa,
    smp,
    special_contexts,
    sq,
    srq,
    transport_cap,
    uar,
    vport,
    wqe,
)
from softhca.prm.layout import LAYOUTS, Layout
from softhca.prm.opcodes import Opcode

__all__ = ["COMMANDS", "LAYOUTS", "NAMES"]

NAMES = {
    Opcode.SQD_RTS_QP: "sqd2rts_qp",
    Opcode.TO_ERR_QP: "qp_2err",
    Opcode.TO_RST_QP: "qp_2rst",
    Opcode.ACCESS_REG: "access_register",
}
"""Commands whose layouts are not named after their opcode."""


def _commands() -> dict[Opcode, tuple[type[Layout], type[Layout]]]:
    found = {}
    for opcode in Opcode:
        stem = NAMES.get(opcode, opcode.name.lower())
        request, reply = LAYOUTS.get(f"{stem}_in"), LAYOUTS.get(f"{stem}_out")
        if request is not None and reply is not None:
            found[opcode] = (request, reply)
    return found


COMMANDS = _commands()
"""Opcode -> layouts of its input and output."""
