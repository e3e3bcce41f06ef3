"""Every layout: importing this module declares them all; commands by opcode with their input and output."""

from softhca.prm import (  # noqa: F401 - imported so that they are declared
    adapter,
    cmd,
    cq,
    cqe,
    eq,
    events,
    function,
    hca_cap,
    hca_vport,
    init_segment,
    mad,
    mkey,
    pages,
    pd,
    q_counter,
    qp,
    registers,
    roce,
    special_contexts,
    srq,
    uar,
    vport,
    wqe,
)
from softhca.prm.layout import LAYOUTS, Layout
from softhca.prm.opcodes import Opcode


def _commands() -> dict[Opcode, tuple[type[Layout], type[Layout]]]:
    found = {}
    for opcode in Opcode:
        stem = opcode.name.lower()
        stem = {"to_err_qp": "qp_2err", "to_rst_qp": "qp_2rst", "access_reg": "access_register"}.get(stem, stem)
        request, reply = LAYOUTS.get(f"{stem}_in"), LAYOUTS.get(f"{stem}_out")
        if request is not None and reply is not None:
            found[opcode] = (request, reply)
    return found


COMMANDS = _commands()
"""Opcode -> layouts of its input and output."""
