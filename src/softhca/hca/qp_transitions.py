"""The transitions of a queue pair: which are legal, what each one takes from the context given (G3).

A field is either required by a transition, and then always taken, or optional, and then taken when its bit in
opt_param_mask is set. All else in the context is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from softhca.hca.command import command
from softhca.hca.errors import CommandError
from softhca.hca.qp_context import CONNECTED, Qp
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import (
    Ads,
    Init2initQpIn,
    Init2initQpOut,
    Init2rtrQpIn,
    Init2rtrQpOut,
    Mtu,
    OptParam,
    PathMigration,
    Qp2errIn,
    Qp2errOut,
    Qp2rstIn,
    Qp2rstOut,
    Qpc,
    QpState,
    Rst2initQpIn,
    Rst2initQpOut,
    Rtr2rtsQpIn,
    Rtr2rtsQpOut,
    Rts2rtsQpIn,
    Rts2rtsQpOut,
    ServiceType,
    Sqd2rtsQpIn,
    Sqd2rtsQpOut,
    Sqerr2rtsQpIn,
    Sqerr2rtsQpOut,
)
from softhca.prm.syndromes import objects as syndromes
from softhca.prm.syndromes import queues

if TYPE_CHECKING:
    from softhca.hca.function import Function

_MTUS = range(Mtu.BYTES_256, Mtu.BYTES_4K + 1)
_PKEYS = 128
"""pkey_table_size 0; each step doubles it."""


_RIGHTS = OptParam.RRE | OptParam.RAE | OptParam.RWE
_NO_OPTIONS = OptParam(0)
_RELIABLE_ONLY = OptParam.RRE | OptParam.RAE | OptParam.RNR_TIMEOUT
"""Options that UC does not have."""


@dataclass(frozen=True)
class Transition:
    """One of the commands that move a QP.

    Attributes:
        opcode: the command.
        sources, target: states.
        connected, datagram: the optional fields that connected services and the others allow.
        takes_connected, takes_datagram: the required fields.
    """

    opcode: Opcode
    sources: frozenset[QpState]
    target: QpState
    connected: OptParam = _NO_OPTIONS
    datagram: OptParam = _NO_OPTIONS
    takes_connected: tuple[str, ...] = ()
    takes_datagram: tuple[str, ...] = ()


def _optional(qp: Qp, given: Qpc, mask: OptParam) -> None:
    context = qp.context
    if OptParam.RRE in mask:
        context.rre = given.rre
    if OptParam.RWE in mask:
        context.rwe = given.rwe
    if OptParam.RAE in mask:
        context.rae = given.rae
        context.atomic_mode = given.atomic_mode
    if OptParam.PKEY_INDEX in mask:
        context.primary_address_path.pkey_index = given.primary_address_path.pkey_index
    if OptParam.Q_KEY in mask:
        context.q_key = given.q_key
    if OptParam.RNR_TIMEOUT in mask:
        context.min_rnr_nak = given.min_rnr_nak
    if OptParam.LAG_TX_AFF in mask:
        context.lag_tx_port_affinity = given.lag_tx_port_affinity
    if OptParam.PRI_PORT in mask:
        context.primary_address_path.vhca_port_num = given.primary_address_path.vhca_port_num


def _check_port(fn: Function, path: Ads) -> None:
    ports = fn.caps.general.num_ports
    if not 1 <= path.vhca_port_num <= ports:
        raise CommandError(syndromes.PORT_INVALID, f"vhca_port_num {path.vhca_port_num}, allowed are 1 to {ports}")


def _check_pkey(fn: Function, path: Ads) -> None:
    size = _PKEYS << fn.caps.general.pkey_table_size
    if path.pkey_index >= size:
        raise CommandError(syndromes.PKEY_INDEX_INVALID, f"pkey_index {path.pkey_index}, allowed below {size}")


def _check_options(fn: Function, given: Qpc, mask: OptParam) -> None:
    if OptParam.PRI_PORT in mask:
        _check_port(fn, given.primary_address_path)
    if OptParam.PKEY_INDEX in mask:
        _check_pkey(fn, given.primary_address_path)
    if OptParam.PM_STATE in mask and given.pm_state != PathMigration.MIGRATED:
        raise CommandError(syndromes.PATH_MIGRATION_UNSUPPORTED, f"pm_state {given.pm_state}, allowed is 3 (MIGRATED)")


def _check_required(fn: Function, given: Qpc, names: tuple[str, ...]) -> None:
    caps = fn.caps.general
    if "port" in names:
        _check_port(fn, given.primary_address_path)
        _check_pkey(fn, given.primary_address_path)
    if "mtu" in names and given.mtu not in _MTUS:
        raise CommandError(syndromes.MTU_INVALID, f"mtu {given.mtu}, allowed are 1 to 5")
    if "log_msg_max" in names and given.log_msg_max > caps.log_max_msg:
        raise CommandError(
            syndromes.MESSAGE_SIZE_INVALID, f"log_msg_max {given.log_msg_max}, allowed up to {caps.log_max_msg}"
        )
    if "counter_set_id" in names and given.counter_set_id and fn.q_counters.find(given.counter_set_id) is None:
        raise CommandError(queues.COUNTER_SET_INVALID, f"counter_set_id {given.counter_set_id:#x}")
    for name, limit in (("log_sra_max", caps.log_max_ra_req_qp), ("log_rra_max", caps.log_max_ra_res_qp)):
        if name in names and getattr(given, name) > limit:
            raise CommandError(syndromes.READ_DEPTH_INVALID, f"{name} {getattr(given, name)}, allowed up to {limit}")


def _take(qp: Qp, given: Qpc, names: tuple[str, ...]) -> None:
    context = qp.context
    path, new = context.primary_address_path, given.primary_address_path
    for name in names:
        if name == "port":
            path.pkey_index = new.pkey_index
            path.vhca_port_num = new.vhca_port_num
        elif name == "path":
            kept = path.pkey_index, path.vhca_port_num, path.ack_timeout
            path.assign(bytes(new))
            path.pkey_index, path.vhca_port_num, path.ack_timeout = kept
        elif name == "ack_timeout":
            path.ack_timeout = new.ack_timeout
        elif name == "rlky":
            context.rlky |= given.rlky
        else:
            setattr(context, name, getattr(given, name))


def _move(fn: Function, transition: Transition, qpn: int, mask: int, given: Qpc) -> None:
    """Check everything, then take the fields and enter the state."""
    qp = fn.qps.get(qpn)
    if qp.state not in transition.sources:
        raise CommandError(
            syndromes.ILLEGAL_TRANSITION,
            f"QP {qpn:#x} is in {qp.state.name}, {transition.opcode.name} needs "
            f"{' or '.join(state.name for state in sorted(transition.sources))}",
        )
    connected = qp.service in CONNECTED
    allowed = transition.connected if connected else transition.datagram
    if qp.service is ServiceType.UC:
        allowed &= ~_RELIABLE_ONLY
    if mask & ~int(allowed):
        raise CommandError(
            syndromes.OPTIONAL_NOT_ALLOWED,
            f"{transition.opcode.name} of {qp.service.name}: opt_param_mask {mask:#x}, allowed {int(allowed):#x}",
        )
    required = transition.takes_connected if connected else transition.takes_datagram
    options = OptParam(mask)
    _check_required(fn, given, required)
    _check_options(fn, given, options)
    qp.settle()
    _take(qp, given, required)
    _optional(qp, given, options)
    qp.become(transition.target)
    qp.refresh()


_RST2INIT = Transition(
    Opcode.RST2INIT_QP,
    frozenset((QpState.RST,)),
    QpState.INIT,
    takes_connected=(
        "port", "rre", "rwe", "rae", "atomic_mode", "counter_set_id", "rlky", "lag_tx_port_affinity",
        "log_ack_req_freq",
    ),
    takes_datagram=("port", "q_key", "counter_set_id", "rlky", "lag_tx_port_affinity", "deth_sqpn"),
)  # fmt: skip
_INIT2INIT = Transition(
    Opcode.INIT2INIT_QP,
    frozenset((QpState.INIT,)),
    QpState.INIT,
    connected=_RIGHTS | OptParam.PKEY_INDEX | OptParam.PRI_PORT | OptParam.LAG_TX_AFF,
    datagram=OptParam.PKEY_INDEX | OptParam.Q_KEY | OptParam.PRI_PORT,
)
_INIT2RTR = Transition(
    Opcode.INIT2RTR_QP,
    frozenset((QpState.INIT,)),
    QpState.RTR,
    connected=_RIGHTS | OptParam.PKEY_INDEX | OptParam.LAG_TX_AFF,
    datagram=OptParam.PKEY_INDEX | OptParam.Q_KEY | OptParam.LAG_TX_AFF,
    takes_connected=(
        "mtu", "log_msg_max", "remote_qpn", "path", "next_rcv_psn", "log_rra_max", "min_rnr_nak", "log_ack_req_freq",
    ),
    takes_datagram=("mtu", "log_msg_max"),
)  # fmt: skip
_RTR2RTS = Transition(
    Opcode.RTR2RTS_QP,
    frozenset((QpState.RTR,)),
    QpState.RTS,
    connected=_RIGHTS | OptParam.PM_STATE | OptParam.RNR_TIMEOUT,
    datagram=OptParam.Q_KEY,
    takes_connected=(
        "next_send_psn", "log_sra_max", "ack_timeout", "retry_count", "rnr_retry", "log_ack_req_freq",
    ),
    takes_datagram=("next_send_psn",),
)  # fmt: skip
_RTS2RTS = Transition(
    Opcode.RTS2RTS_QP,
    frozenset((QpState.RTS,)),
    QpState.RTS,
    connected=_RIGHTS | OptParam.PM_STATE | OptParam.RNR_TIMEOUT,
    datagram=OptParam.Q_KEY,
)
_SQERR2RTS = Transition(
    Opcode.SQERR2RTS_QP,
    frozenset((QpState.SQER,)),
    QpState.RTS,
    connected=_RIGHTS | OptParam.RNR_TIMEOUT,
    datagram=OptParam.Q_KEY,
)
_SQD2RTS = Transition(
    Opcode.SQD_RTS_QP,
    frozenset((QpState.SQD,)),
    QpState.RTS,
    connected=_RIGHTS | OptParam.RNR_TIMEOUT,
    datagram=OptParam.Q_KEY,
)


@command(Opcode.RST2INIT_QP, Rst2initQpIn, Rst2initQpOut)
def rst2init_qp(fn: Function, request: Rst2initQpIn, reply: Rst2initQpOut) -> None:
    """RST -> INIT: port, P_Key, rights; receive WQEs may be posted from here on."""
    _move(fn, _RST2INIT, request.qpn, request.opt_param_mask, request.qpc)


@command(Opcode.INIT2INIT_QP, Init2initQpIn, Init2initQpOut)
def init2init_qp(fn: Function, request: Init2initQpIn, reply: Init2initQpOut) -> None:
    """INIT -> INIT: change what INIT set."""
    _move(fn, _INIT2INIT, request.qpn, request.opt_param_mask, request.qpc)


@command(Opcode.INIT2RTR_QP, Init2rtrQpIn, Init2rtrQpOut, partial="no alternate path")
def init2rtr_qp(fn: Function, request: Init2rtrQpIn, reply: Init2rtrQpOut) -> None:
    """INIT -> RTR: path, peer and MTU; requests of the peer are taken from here on."""
    _move(fn, _INIT2RTR, request.qpn, request.opt_param_mask, request.qpc)


@command(Opcode.RTR2RTS_QP, Rtr2rtsQpIn, Rtr2rtsQpOut, partial="no alternate path")
def rtr2rts_qp(fn: Function, request: Rtr2rtsQpIn, reply: Rtr2rtsQpOut) -> None:
    """RTR -> RTS: retries and timeout; send WQEs are carried out from here on."""
    _move(fn, _RTR2RTS, request.qpn, request.opt_param_mask, request.qpc)


@command(Opcode.RTS2RTS_QP, Rts2rtsQpIn, Rts2rtsQpOut, partial="no alternate path, no counter set")
def rts2rts_qp(fn: Function, request: Rts2rtsQpIn, reply: Rts2rtsQpOut) -> None:
    """RTS -> RTS: change optional fields."""
    _move(fn, _RTS2RTS, request.qpn, request.opt_param_mask, request.qpc)


@command(Opcode.SQERR2RTS_QP, Sqerr2rtsQpIn, Sqerr2rtsQpOut)
def sqerr2rts_qp(fn: Function, request: Sqerr2rtsQpIn, reply: Sqerr2rtsQpOut) -> None:
    """SQER -> RTS: go on after a failed send of an unreliable QP."""
    _move(fn, _SQERR2RTS, request.qpn, request.opt_param_mask, request.qpc)


@command(Opcode.SQD_RTS_QP, Sqd2rtsQpIn, Sqd2rtsQpOut)
def sqd_rts_qp(fn: Function, request: Sqd2rtsQpIn, reply: Sqd2rtsQpOut) -> None:
    """SQD -> RTS: go on sending."""
    _move(fn, _SQD2RTS, request.qpn, request.opt_param_mask, request.qpc)


@command(Opcode.TO_ERR_QP, Qp2errIn, Qp2errOut)
def to_err_qp(fn: Function, request: Qp2errIn, reply: Qp2errOut) -> None:
    """Any state -> ERR: what is posted is flushed (F1)."""
    qp = fn.qps.get(request.qpn)
    if qp.state is QpState.RST:
        qp.become(QpState.ERR)
    else:
        qp.enter_error()


@command(Opcode.TO_RST_QP, Qp2rstIn, Qp2rstOut)
def to_rst_qp(fn: Function, request: Qp2rstIn, reply: Qp2rstOut) -> None:
    """Any state -> RST: what is posted is forgotten; its counters begin at 0 again."""
    fn.qps.get(request.qpn).become(QpState.RST)
