"""A ConnectX-class RDMA HCA in software."""

__version__ = "0.1.0"
