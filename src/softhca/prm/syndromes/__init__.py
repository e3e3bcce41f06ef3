"""The syndromes that softhca gives: each number once, with its status and what it says.

A real card's syndromes are its firmware's own; these are ours. Numbers are 0xCA_AASSSS: AA is the area (a module of
this package), SSSS a serial. They never change their meaning; a number that is no longer given is not used again.
"""

from softhca.prm.syndromes import control, fabric, objects, ports, queues
from softhca.prm.syndromes.table import SYNDROMES, Syndrome

__all__ = ["SYNDROMES", "Syndrome", "control", "fabric", "objects", "ports", "queues"]
