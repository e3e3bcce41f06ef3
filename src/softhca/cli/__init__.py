"""The ``softhca`` command."""

DEFAULT_PROFILE = "connectx-6-ib"
"""The card that a sub-command takes unless told; equal to `hca.profile.DEFAULT`, which help does not import."""
