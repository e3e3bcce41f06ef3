"""What happened, as events: recorded as lines of JSON, read again, told as a story, exported.

:mod:`softhca.trace.recorder` writes what the points of a card tell, :mod:`softhca.trace.reader` reads it.
"""
