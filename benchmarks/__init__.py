"""Speed and memory against targets; `make bench` and `make bench-memory`."""
