"""The device: firmware start, functions, command interface, ICM pages, object tables, queues, transports."""
