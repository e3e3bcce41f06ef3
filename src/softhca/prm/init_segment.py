"""The initialization segment at BAR0 offset 0, and the health buffer in it."""

from softhca.prm.layout import Layout, bits, nested


class HealthBuffer(Layout, size=0x40):
    """Health buffer."""

    assert_existptr = bits(0x20, 31, 0)
    assert_callra = bits(0x24, 31, 0)
    time = bits(0x2C, 31, 0)
    fw_version = bits(0x30, 31, 0)
    hw_id = bits(0x34, 31, 0)
    rfr = bits(0x38, 31)
    valid = bits(0x38, 27)
    severity = bits(0x38, 26, 24)
    irisc_index = bits(0x3C, 31, 24)
    synd = bits(0x3C, 23, 16)
    ext_synd = bits(0x3C, 15, 0)


class InitialSeg(Layout, size=0x400C):
    """Initial seg."""

    fw_rev_minor = bits(0x00, 31, 16)
    fw_rev_major = bits(0x00, 15, 0)
    cmd_interface_rev = bits(0x04, 31, 16)
    fw_rev_subminor = bits(0x04, 15, 0)
    cmdq_phy_addr_63_32 = bits(0x10, 31, 0)
    cmdq_phy_addr_31_12 = bits(0x14, 31, 12)
    nic_interface = bits(0x14, 9, 8)
    log_cmdq_size = bits(0x14, 7, 4)
    log_cmdq_stride = bits(0x14, 3, 0)
    command_doorbell_vector = bits(0x18, 31, 0)
    initializing = bits(0x1FC, 31)
    nic_interface_supported = bits(0x1FC, 26, 24)
    embedded_cpu = bits(0x1FC, 23)
    health_buffer = nested(0x200, HealthBuffer)
    no_dram_nic_offset = bits(0x240, 31, 0)
    clear_int = bits(0x100C, 0)
    health_syndrome = bits(0x1010, 31, 24)
    health_counter = bits(0x1010, 23, 0)
