from __future__ import annotations

import pytest

from softhca.guest.headers import header_folder
from tests.prm.ifc_header import Header


@pytest.fixture(scope="session")
def header() -> Header:
    """The mlx5 headers of the distribution's stable kernel."""
    return Header(header_folder())
