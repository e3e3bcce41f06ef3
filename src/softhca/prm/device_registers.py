"""Registers that Linux declares as plain C structures (main.c of mlx5_core and mlx5_ib), not in mlx5_ifc.h."""

from softhca.prm.layout import Layout, bits, raw


class HostEndiannessReg(Layout, size=0x10, manual="HOST_ENDIANNESS register; struct mlx5_reg_host_endianness"):
    """HOST_ENDIANNESS: 0 for a little-endian host, 0x80 for a big-endian one."""

    he = bits(0x00, 31, 24)


class NodeDescReg(Layout, size=0x40, manual="NODE_DESC register; struct mlx5_reg_node_desc"):
    """NODE_DESC: the node description, ASCII, padded with zeros."""

    desc = raw(0x00, 64)
