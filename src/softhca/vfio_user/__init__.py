"""Serves any device of the bus to a virtual machine monitor over a UNIX socket (vfio-user protocol 0.0)."""
