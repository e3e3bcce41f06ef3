"""For tests of other people's drivers: :mod:`softhca.testing.plugin` is a pytest plugin that needs no import."""
