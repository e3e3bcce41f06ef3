"""The main formats, against bytes that come from elsewhere: public dumps of real cards, and offsets measured on Linux.

Each has the same tests: take apart, put together, and where a text exists, parse and print it.
"""

from __future__ import annotations

from functools import reduce
from operator import xor

import pytest

from softhca.prm.cmd import MAILBOX_DATA, CmdLayout, CmdProtBlock, InputHeader, OutputHeader
from softhca.prm.cqe import Cqe64, Cqe128, CqeOpcode, CqeSyndrome, ErrCqe
from softhca.prm.eq import CreateEqIn
from softhca.prm.events import Eqe, EventType
from softhca.prm.function import TeardownHcaIn, TeardownHcaOut, TeardownProfile
from softhca.prm.hexdump import parse_hex
from softhca.prm.init_segment import HealthBuffer, HealthSyndrome, InitialSeg
from softhca.prm.layout import Layout
from softhca.prm.mkey import CreateMkeyIn
from softhca.prm.opcodes import Opcode
from softhca.prm.qp import CreateQpIn, CreateQpOut
from softhca.prm.srq import CreateRmpIn
from softhca.prm.status import CommandStatus
from softhca.prm.wqe import WqeCtrlSeg, WqeDataSeg, WqeOpcode, WqeRaddrSeg

# Kernel mailing list, kexec shutdown on Linux 5.13: the driver's own dump of two command queue entries.
DESTROY_FLOW_TABLE = """\
dump_buf:272: cmd[0]: 000: 07000000 00000040 00000001 347e4400
dump_buf:272: cmd[0]: 010: 09310000 00000000 00000000 00000000
dump_buf:272: cmd[0]: 020: 00000000 00000000 00000000 00000000
dump_buf:272: cmd[0]: 030: 00000000 00000000 00000010 40de0001
"""
TEARDOWN_HCA_DONE = """\
dump_buf:272: cmd[0]: 000: 07000000 00000010 00000000 00000000
dump_buf:272: cmd[0]: 010: 01030000 00000000 00000001 00000000
dump_buf:272: cmd[0]: 020: 00000000 00000000 00000000 00000001
dump_buf:272: cmd[0]: 030: 00000000 00000000 00000010 3fc50000
"""
# linux-rdma 2022-06-27, "Unable to create max_qp QPs on ConnectX-4/6": input and output of a CREATE_QP that failed.
CREATE_QP_INPUT = """\
[  969.559031] cmd[0]: 000: 05000002 00000000 00000000 00000000
[  969.559034] cmd[0]: 010: 00000000 00000000 00001800 00000018
[  969.559036] cmd[0]: 020: 00384800 00000016 0003ff5f 00000000
[  969.559037] cmd[0]: 030: 00000000 00000000 00000000 00000000
[  969.559039] cmd[0]: 040: 00000000 00000000 00000000 00000000
[  969.559041] cmd[0]: 050: 00000000 00000000 00000000 00000000
[  969.559042] cmd[0]: 060: 00000000 00000000 00000000 00000000
[  969.559044] cmd[0]: 070: 00000000 00000000 00000000 00000000
[  969.559045] cmd[0]: 080: 00000000 00000000 00000000 00000000
[  969.559047] cmd[0]: 090: 00000000 0000010d 00000000 00000000
[  969.559049] cmd[0]: 0a0: 00000000 00000000 00000000 00000000
[  969.559051] cmd[0]: 0b0: 00000011 0000010d 00000005 5b6fe840
[  969.559052] cmd[0]: 0c0: 00000000 00000101 00000000 00000000
[  969.559054] cmd[0]: 0d0: 00000000 00000000 00000000 00000001
[  969.559055] cmd[0]: 0e0: 00000000 00000000 00000000 00000000
[  969.559057] cmd[0]: 0f0: 00000000 00000000 00000000 00000000
[  969.559058] cmd[0]: 100: 00000000 00000000 00000000 00000000
[  969.559060] cmd[0]: 110: 00000001 d3ae6000 00000002 f1ef7000
[  969.559062] cmd[0]: 120: 00000003 ae09f000 00000001 28268000
"""
CREATE_QP_OUTPUT = "[  969.559517] cmd[0]: 000: 05000000 0065b500 00000000 00000000"


def entry(text: str) -> CmdLayout:
    return CmdLayout(bytearray(parse_hex(text)))


def test_a_command_entry_is_taken_apart() -> None:
    values = entry(DESTROY_FLOW_TABLE).to_dict()
    assert values == {
        "type": 7,
        "inlen": 64,
        "in_ptr": 0x1347E4400,
        "in_": bytes.fromhex("0931" + "00" * 14),
        "out": bytes(16),
        "out_ptr": 0,
        "outlen": 16,
        "token": 0x40,
        "sig": 0xDE,
        "status": 0,
        "ownership": 1,
    }


def test_a_command_entry_is_put_together() -> None:
    packed = CmdLayout.pack(type=7, inlen=64, in_ptr=0x1347E4400, in_=b"\x09\x31" + bytes(14), outlen=16, token=0x40)
    view = CmdLayout(bytearray(packed))
    view.ownership = 1
    view.sig = reduce(xor, bytes(view)) ^ 0xFF
    assert bytes(view) == parse_hex(DESTROY_FLOW_TABLE)


def test_a_command_inside_its_entry() -> None:
    done = entry(TEARDOWN_HCA_DONE)
    request, reply = TeardownHcaIn(done.in_), TeardownHcaOut(done.out)
    assert (request.opcode, request.profile) == (Opcode.TEARDOWN_HCA, TeardownProfile.FORCE_CLOSE)
    assert (reply.status, reply.state) == (CommandStatus.OK, 1)
    assert TeardownHcaIn.pack(opcode=0x103, profile=1) == done.in_


def test_a_mailbox() -> None:
    packed = CmdProtBlock.pack(
        data=b"\x11" * MAILBOX_DATA, next=0x123456000, block_num=3, token=0x40, ctrl_sig=0xAB, sig=0xCD
    )
    assert len(packed) == 576
    assert packed[560:568] == bytes.fromhex("0000000123456000")
    assert packed[568:572] == bytes.fromhex("00000003")
    assert packed[573:576] == bytes.fromhex("40abcd")
    assert packed[512:560] == bytes(48)
    assert CmdProtBlock(packed).to_dict()["next"] == 0x123456000


def test_a_queue_pair_is_taken_apart() -> None:
    request = CreateQpIn(parse_hex(CREATE_QP_INPUT))
    qpc = request.qpc
    assert (request.opcode, request.uid, request.op_mod) == (Opcode.CREATE_QP, 2, 0)
    assert (qpc.st, qpc.pm_state, qpc.pd) == (0, 3, 0x18)
    assert (qpc.log_rq_size, qpc.log_rq_stride, qpc.log_sq_size) == (7, 0, 9)
    assert (qpc.uar_page, qpc.user_index) == (0x16, 0x3FF5F)
    assert (qpc.cqn_snd, qpc.cqn_rcv, qpc.xrcd, qpc.srqn_rmpn_xrqn) == (0x10D, 0x10D, 0x11, 0x101)
    assert (qpc.log_page_size, qpc.page_offset, qpc.dbr_addr) == (0, 0, 0x55B6FE840)
    assert list(request.pas) == [0x1D3AE6000, 0x2F1EF7000, 0x3AE09F000, 0x128268000]


def test_a_queue_pair_is_put_together() -> None:
    packed = CreateQpIn.pack(
        opcode=Opcode.CREATE_QP,
        uid=2,
        qpc={
            "pm_state": 3,
            "pd": 0x18,
            "log_rq_size": 7,
            "log_sq_size": 9,
            "uar_page": 0x16,
            "user_index": 0x3FF5F,
            "cqn_snd": 0x10D,
            "cqn_rcv": 0x10D,
            "xrcd": 0x11,
            "srqn_rmpn_xrqn": 0x101,
            "dbr_addr": 0x55B6FE840,
            "cs_res": 1,
        },
        pas=[0x1D3AE6000, 0x2F1EF7000, 0x3AE09F000, 0x128268000],
    )
    assert packed == parse_hex(CREATE_QP_INPUT)


def test_a_failed_command_output() -> None:
    out = parse_hex(CREATE_QP_OUTPUT)
    assert (OutputHeader(out).status, OutputHeader(out).syndrome) == (CommandStatus.BAD_RESOURCE, 0x65B500)
    assert CreateQpOut.pack(status=5, syndrome=0x65B500) == out


def test_every_command_begins_with_the_same_words() -> None:
    assert InputHeader.pack(opcode=0x500, uid=2, op_mod=1) == bytes.fromhex("0500000200000001")
    assert bytes(OutputHeader(CreateQpOut.pack(status=5, syndrome=7))) == bytes.fromhex("0500000000000007")


@pytest.mark.parametrize(
    ("layout", "expected"), [(CreateEqIn, 272), (CreateQpIn, 272), (CreateMkeyIn, 272), (CreateRmpIn, 272)]
)
def test_page_lists_begin_at_byte_272(layout: type[Layout], expected: int) -> None:
    assert expected == layout.SIZE
    assert layout.open_ended()


# Public issues; columns: source, words 12 to 15 of the CQE, srqn, then what the tools of the time said of it.
ERRORS = [
    ("linux-rdma, ODP patch", "0f007806 25000058 00daacd2", 0, (0x0F, 0, 0x78, CqeSyndrome.MW_BIND_ERR), 0x58, 0xDA),
    (
        "netdev, AF_XDP patch",
        "60106801 0a001dbb 000f9fd2",
        0,
        (0x60, 1, 0x68, CqeSyndrome.LOCAL_LENGTH_ERR),
        0x1DBB,
        15,
    ),
    ("spdk/spdk#500", "9d005304 0800011b 0008d0d2", 1, (0x9D, 0, 0x53, CqeSyndrome.LOCAL_PROT_ERR), 0x11B, 8),
    ("openucx/ucx#1770", "00008a12 100023e8 00016cd2", 2, (0, 0, 0x8A, CqeSyndrome.REMOTE_INVAL_REQ_ERR), 0x23E8, 1),
    ("spdk/spdk#264", "00008813 10002c02 00112cd2", 4, (0, 0, 0x88, CqeSyndrome.REMOTE_ACCESS_ERR), 0x2C02, 0x11),
]
OPERATIONS = [WqeOpcode.UMR, WqeOpcode.SEND, WqeOpcode.RDMA_WRITE, WqeOpcode.RDMA_READ, WqeOpcode.RDMA_READ]


@pytest.mark.parametrize(
    ("case", "operation"), list(zip(ERRORS, OPERATIONS, strict=True)), ids=[case[0] for case in ERRORS]
)
def test_error_completions_of_real_cards(
    case: tuple[str, str, int, tuple[int, int, int, CqeSyndrome], int, int], operation: WqeOpcode
) -> None:
    _, words, srqn, (hw_syndrome, hw_type, vendor, syndrome), qpn, counter = case
    data = parse_hex(f"{'00000000 ' * 8}\n{srqn:08x} {'00000000 ' * 4}\n{words}")
    view = ErrCqe(data)
    assert (view.opcode, view.owner, view.srqn) == (CqeOpcode.REQ_ERR, 0, srqn)
    assert (view.hw_error_syndrome, view.hw_syndrome_type) == (hw_syndrome, hw_type)
    assert (view.vendor_err_synd, view.syndrome) == (vendor, syndrome)
    assert (view.qpn, view.s_wqe_opcode, view.wqe_counter) == (qpn, operation, counter)
    assert view.reserved_bits() == 0
    assert ErrCqe.pack(**view.to_dict()) == data


def test_a_completion() -> None:
    packed = Cqe64.pack(
        srqn=0x00ABCDEF,
        imm_inval_pkey=0x11223344,
        byte_cnt=4096,
        timestamp=0x0102030405060708,
        sop_drop_qpn=0x0A000051,
        wqe_counter=0x1234,
        opcode=CqeOpcode.RESP_SEND_IMM,
        owner=1,
    )
    assert packed[32:48] == bytes.fromhex("00abcdef 11223344 00000000 00001000")
    assert packed[48:64] == bytes.fromhex("0102030405060708 0a000051 12340031")
    assert Cqe64(packed).qpn == 0x51
    assert bytes(Cqe128(bytes(64) + packed).cqe64) == packed


def test_an_event() -> None:
    packed = Eqe.pack(type=EventType.CMD, owner=1, data={"cmd": {"vector": 0x80000001}})
    assert packed == bytes.fromhex("000a0000") + bytes(28) + bytes.fromhex("80000001") + bytes(27) + b"\x01"
    completion = Eqe(bytes(56) + bytes.fromhex("0000040a 00000000"))
    assert (completion.type, completion.data.comp.cqn) == (EventType.COMP, 0x40A)
    assert completion.alternative("data") == "comp"


# netdev, the same patch as the completion above: the work request that the card refused.
WORK_REQUEST = """\
WQE DUMP: WQ size 1024 WQ cur size 0, WQE index 0xf, len: 64
00000000: 00 00 0f 0a 00 1d bb 03 00 00 00 08 00 00 00 00
00000010: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
00000020: 00 00 00 2b 00 08 00 00 00 00 00 05 9e e3 08 00
00000030: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
"""


def test_a_work_request_is_taken_apart() -> None:
    data = parse_hex(WORK_REQUEST)
    control, segment = WqeCtrlSeg(data), WqeDataSeg(data, 0x20)
    assert (control.opmod, control.wqe_index, control.opcode) == (0, 0xF, WqeOpcode.SEND)
    assert (control.qp_or_sq, control.ds, control.ce, control.se, control.fm) == (0x1DBB, 3, 2, 0, 0)
    assert (segment.byte_count, segment.lkey, segment.addr) == (43, 0x80000, 0x59EE30800)


def test_a_work_request_is_put_together() -> None:
    control = WqeCtrlSeg.pack(wqe_index=0xF, opcode=WqeOpcode.SEND, qp_or_sq=0x1DBB, ds=3, ce=2)
    segment = WqeDataSeg.pack(byte_count=43, lkey=0x80000, addr=0x59EE30800)
    assert control + bytes(16) + segment + bytes(16) == parse_hex(WORK_REQUEST)
    assert WqeRaddrSeg.pack(raddr=0x7F0012345678, rkey=0xABC00) == bytes.fromhex("00007f0012345678 000abc00 00000000")


def test_the_initialization_segment() -> None:
    segment = InitialSeg(bytearray(InitialSeg.SIZE))
    segment.fw_rev_major, segment.fw_rev_minor, segment.fw_rev_subminor = 16, 35, 1010
    segment.cmd_interface_rev = 5
    segment.log_cmdq_size, segment.log_cmdq_stride = 5, 6
    segment.initializing = 1
    segment.internal_timer_h, segment.internal_timer_l = 0x01020304, 0x05060708
    segment.health_counter = 0x0A0B0C
    data = bytes(segment)
    assert data[0:8] == bytes.fromhex("00230010 000503f2")
    assert data[0x14:0x18] == bytes.fromhex("00000056")
    assert data[0x1FC] == 0x80
    assert data[0x1000:0x1008] == bytes.fromhex("0102030405060708")
    assert data[0x1010:0x1014] == bytes.fromhex("000a0b0c")


def test_the_health_buffer() -> None:
    """Figures of `devlink health diagnose` in the netdev patch of 2019-05; offsets of the driver's poll of it."""
    health = HealthBuffer.new(
        assert_var=[0xFC3FC043, 0x0001B41C],
        assert_existptr=0x008033B4,
        assert_callra=0x0080365C,
        fw_version=0x101803E8,
        hw_id=0x20D,
        synd=HealthSyndrome.HW_FATAL_ERR,
        ext_synd=0x3D,
    )
    segment = InitialSeg(bytearray(InitialSeg.SIZE))
    segment.health_buffer.assign(health)
    data = bytes(segment)
    assert data[0x200:0x208] == bytes.fromhex("fc3fc043 0001b41c")
    assert data[0x220:0x228] == bytes.fromhex("008033b4 0080365c")
    assert data[0x230:0x238] == bytes.fromhex("101803e8 0000020d")
    assert data[0x23D] == 8
    segment.health_buffer.rfr = 1
    assert bytes(segment)[0x238] == 0x80
