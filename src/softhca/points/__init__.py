"""Named points of a card: where it tells what happens, and where a fault can be put in (source 3 to 6, D7, D10, E3, F).

A card that nobody watches has `probe` None, and a point costs that one test. :mod:`softhca.points.catalogue` lists the
points; :class:`Probe` carries what passes them to a recorder and to fault rules.
"""

from softhca.points.point import Effect, Field, Kind, Point
from softhca.points.probe import Fault, Probe

__all__ = ["Effect", "Fault", "Field", "Kind", "Point", "Probe"]
