"""Whatever a host sends to the commands of ports and capabilities, they succeed or fail as commands do."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softhca.hca.command import COMMANDS, Stage
from softhca.hca.errors import CommandError
from softhca.hca.registers import REGISTERS
from softhca.prm.layout import Layout
from softhca.prm.opcodes import Opcode
from softhca.prm.registers import AccessRegisterIn
from softhca.prm.syndromes import Syndrome
from tests.hca.ports_bench import ETH, IB, PortsBench

OPCODES = (
    Opcode.QUERY_HCA_CAP,
    Opcode.SET_HCA_CAP,
    Opcode.QUERY_ADAPTER,
    Opcode.QUERY_SPECIAL_CONTEXTS,
    Opcode.MAD_IFC,
    Opcode.QUERY_VPORT_STATE,
    Opcode.MODIFY_VPORT_STATE,
    Opcode.QUERY_NIC_VPORT_CONTEXT,
    Opcode.MODIFY_NIC_VPORT_CONTEXT,
    Opcode.QUERY_ROCE_ADDRESS,
    Opcode.SET_ROCE_ADDRESS,
    Opcode.QUERY_HCA_VPORT_CONTEXT,
    Opcode.MODIFY_HCA_VPORT_CONTEXT,
    Opcode.QUERY_HCA_VPORT_GID,
    Opcode.QUERY_HCA_VPORT_PKEY,
    Opcode.ACCESS_REG,
)
BENCHES = {
    (profile, stage): PortsBench(profile, stage) for profile in (IB, ETH) for stage in (Stage.READY, Stage.INITIALIZED)
}
benches = st.sampled_from(sorted(BENCHES)).map(BENCHES.__getitem__)


def sent(opcode: Opcode, noise: bytes, kept: int, extra: int) -> Layout:
    """A request whose first bytes are noise, over zeros, with `extra` bytes behind it."""
    layout = COMMANDS[opcode].request
    message = bytearray(layout.SIZE + extra)
    noise = noise[: min(kept, len(message))]
    message[: len(noise)] = noise
    return layout(message)


def outcome(bench: PortsBench, opcode: Opcode, request: Layout, room: int) -> Syndrome | None:
    """The syndrome that the command fails with; None when it succeeds. Any other exception is a fault of the device."""
    entry = COMMANDS[opcode]
    reply = entry.reply(bytearray(entry.reply.SIZE + room))
    try:
        entry.handler(bench.fn, request, reply)
    except CommandError as error:
        return error.syndrome
    return None


def check(bench: PortsBench, opcode: Opcode, request: Layout, room: int) -> None:
    syndrome = outcome(bench, opcode, request, room)
    assert syndrome is None or syndrome.number >> 16 == 0xCA03


@pytest.mark.parametrize("opcode", OPCODES)
@given(
    bench=benches,
    noise=st.binary(min_size=64, max_size=600),
    kept=st.integers(4, 600),
    extra=st.integers(0, 80),
    room=st.integers(0, 80),
)
@settings(max_examples=60, deadline=None)
def test_any_message(opcode: Opcode, bench: PortsBench, noise: bytes, kept: int, extra: int, room: int) -> None:
    bench.fn.vport.roce_enabled = True
    check(bench, opcode, sent(opcode, noise, kept, extra), room)


@pytest.mark.parametrize("number", sorted(REGISTERS))
@given(
    bench=benches, op_mod=st.sampled_from((0, 1)), noise=st.binary(min_size=64, max_size=64), room=st.integers(0, 80)
)
@settings(max_examples=60, deadline=None)
def test_any_register_contents(number: int, bench: PortsBench, op_mod: int, noise: bytes, room: int) -> None:
    size = REGISTERS[number].layout.SIZE
    fixed = AccessRegisterIn.pack(opcode=Opcode.ACCESS_REG, op_mod=op_mod, register_id=number)
    payload = bytearray(noise[:size])
    payload[1] = 1
    check(bench, Opcode.ACCESS_REG, AccessRegisterIn(bytearray(fixed + payload)), room)
