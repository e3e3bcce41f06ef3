"""The ``softhca`` command."""
