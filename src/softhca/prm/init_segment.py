"""The initialization segment at BAR0 offset 0, and the health buffer in it."""

from enum import IntEnum, unique

from softhca.prm.layout import Layout, array, bits, nested, u64


@unique
class NicInterface(IntEnum):
    """Initialization segment 0x14 [9:8]."""

    FULL_DRIVER = 0x0
    DISABLED = 0x1
    NO_DRAM_NIC = 0x2


@unique
class HealthSyndrome(IntEnum):
    """Health buffer 0x3C [23:16]: why the device is not well."""

    OK = 0x0
    FW_INTERNAL_ERR = 0x1
    DEAD_IRISC = 0x7
    HW_FATAL_ERR = 0x8
    FW_CRC_ERR = 0x9
    ICM_FETCH_PCI_ERR = 0xA
    ICM_PAGE_ERR = 0xB
    ASYNCHRONOUS_EQ_BUF_OVERRUN = 0xC
    EQ_IN_ERR = 0xD
    EQ_INV = 0xE
    FFSER_ERR = 0xF
    HIGH_TEMP_ERR = 0x10
    ICM_PCI_POISONED_ERR = 0x12


class HealthBuffer(Layout, size=0x40):
    """Health buffer: what a device that is not well says about itself."""

    assert_var = array(0x00, 6, 32)
    assert_existptr = bits(0x20, 31, 0)
    assert_callra = bits(0x24, 31, 0)
    time = bits(0x2C, 31, 0)
    fw_version = bits(0x30, 31, 0)
    hw_id = bits(0x34, 31, 0)
    rfr = bits(0x38, 31)
    valid = bits(0x38, 27)
    severity = bits(0x38, 26, 24)
    irisc_index = bits(0x3C, 31, 24)
    synd = bits(0x3C, 23, 16, HealthSyndrome)
    ext_synd = bits(0x3C, 15, 0)


class InitialSeg(Layout, size=0x400C):
    """Initialization segment."""

    fw_rev_minor = bits(0x00, 31, 16)
    fw_rev_major = bits(0x00, 15, 0)
    cmd_interface_rev = bits(0x04, 31, 16)
    fw_rev_subminor = bits(0x04, 15, 0)
    cmdq_phy_addr_63_32 = bits(0x10, 31, 0)
    cmdq_phy_addr_31_12 = bits(0x14, 31, 12)
    nic_interface = bits(0x14, 9, 8, NicInterface)
    log_cmdq_size = bits(0x14, 7, 4)
    log_cmdq_stride = bits(0x14, 3, 0)
    command_doorbell_vector = bits(0x18, 31, 0)
    initializing = bits(0x1FC, 31)
    nic_interface_supported = bits(0x1FC, 26, 24)
    embedded_cpu = bits(0x1FC, 23)
    health_buffer = nested(0x200, HealthBuffer)
    no_dram_nic_offset = bits(0x240, 31, 0)
    cmd_exec_to = bits(0xFF8, 31, 0)
    cmd_q_init_to = bits(0xFFC, 31, 0)
    internal_timer_h = bits(0x1000, 31, 0)
    internal_timer_l = bits(0x1004, 31, 0)
    clear_int = bits(0x100C, 0)
    health_syndrome = bits(0x1010, 31, 24, HealthSyndrome)
    health_counter = bits(0x1010, 23, 0)
    real_time_h = bits(0x1040, 31, 0)
    real_time_l = bits(0x1044, 31, 0)
    ieee1588_clk = u64(0x2000)
    ieee1588_clk_type = bits(0x2008, 31, 0)
    clr_intx = bits(0x200C, 31, 0)
