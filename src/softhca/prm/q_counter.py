"""Queue counters."""

from softhca.prm.layout import Layout, bits
from softhca.prm.opcodes import Opcode
from softhca.prm.status import CommandStatus


class AllocQCounterIn(Layout, size=0x10, name="alloc_q_counter_in"):
    """ALLOC_Q_COUNTER: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    uid = bits(0x00, 15, 0)
    op_mod = bits(0x04, 15, 0)


class AllocQCounterOut(Layout, size=0x10, name="alloc_q_counter_out"):
    """ALLOC_Q_COUNTER: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    counter_set_id = bits(0x08, 7, 0)


class DeallocQCounterIn(Layout, size=0x10, name="dealloc_q_counter_in"):
    """DEALLOC_Q_COUNTER: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    counter_set_id = bits(0x08, 7, 0)


class DeallocQCounterOut(Layout, size=0x10, name="dealloc_q_counter_out"):
    """DEALLOC_Q_COUNTER: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)


class QueryQCounterIn(Layout, size=0x20, name="query_q_counter_in"):
    """QUERY_Q_COUNTER: input."""

    opcode = bits(0x00, 31, 16, Opcode)
    op_mod = bits(0x04, 15, 0)
    other_vport = bits(0x08, 31)
    vport_number = bits(0x08, 15, 0)
    clear = bits(0x18, 31)
    aggregate = bits(0x18, 30)
    counter_set_id = bits(0x1C, 7, 0)


class QueryQCounterOut(Layout, size=0x100, name="query_q_counter_out"):
    """QUERY_Q_COUNTER: output."""

    status = bits(0x00, 31, 24, CommandStatus)
    syndrome = bits(0x04, 31, 0)
    rx_write_requests = bits(0x10, 31, 0)
    rx_read_requests = bits(0x18, 31, 0)
    rx_atomic_requests = bits(0x20, 31, 0)
    rx_dct_connect = bits(0x28, 31, 0)
    out_of_buffer = bits(0x30, 31, 0)
    out_of_sequence = bits(0x38, 31, 0)
    duplicate_request = bits(0x40, 31, 0)
    rnr_nak_retry_err = bits(0x48, 31, 0)
    packet_seq_err = bits(0x50, 31, 0)
    implied_nak_seq_err = bits(0x58, 31, 0)
    local_ack_timeout_err = bits(0x60, 31, 0)
    req_rnr_retries_exceeded = bits(0x70, 31, 0)
    resp_local_length_error = bits(0x78, 31, 0)
    req_local_length_error = bits(0x7C, 31, 0)
    resp_local_qp_error = bits(0x80, 31, 0)
    local_operation_error = bits(0x84, 31, 0)
    resp_local_protection = bits(0x88, 31, 0)
    req_local_protection = bits(0x8C, 31, 0)
    resp_cqe_error = bits(0x90, 31, 0)
    req_cqe_error = bits(0x94, 31, 0)
    req_mw_binding = bits(0x98, 31, 0)
    req_bad_response = bits(0x9C, 31, 0)
    req_remote_invalid_request = bits(0xA0, 31, 0)
    resp_remote_invalid_request = bits(0xA4, 31, 0)
    req_remote_access_errors = bits(0xA8, 31, 0)
    resp_remote_access_errors = bits(0xAC, 31, 0)
    req_remote_operation_errors = bits(0xB0, 31, 0)
    req_transport_retries_exceeded = bits(0xB4, 31, 0)
    cq_overflow = bits(0xB8, 31, 0)
    resp_cqe_flush_error = bits(0xBC, 31, 0)
    req_cqe_flush_error = bits(0xC0, 31, 0)
    roce_adp_retrans = bits(0xC8, 31, 0)
    roce_adp_retrans_to = bits(0xCC, 31, 0)
    roce_slow_restart = bits(0xD0, 31, 0)
    roce_slow_restart_cnps = bits(0xD4, 31, 0)
    roce_slow_restart_trans = bits(0xD8, 31, 0)
