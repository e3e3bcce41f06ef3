"""The vfio-user server: any :class:`softhca.bus.Device` for a virtual machine monitor, over a UNIX socket."""

from softhca.vfio_user.loop import Loop
from softhca.vfio_user.server import Server

__all__ = ["Loop", "Server"]
