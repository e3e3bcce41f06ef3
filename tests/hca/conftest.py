"""Fixtures of the device's tests."""

from __future__ import annotations

import pytest

from tests.hca.raw_host import RawHost


@pytest.fixture
def host() -> RawHost:
    """A machine with a card after reset; nothing has been set up."""
    return RawHost()
