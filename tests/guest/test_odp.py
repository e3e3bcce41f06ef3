"""On-demand paging under the real driver: rdma-core's own tests; see conftest.py for how to leave these out."""

from __future__ import annotations

import pytest

from tests.guest.conftest import Guest

pytestmark = [pytest.mark.guest, pytest.mark.timeout(300)]

_TESTS = (
    "rc_traffic",
    "rc_rdma_write",
    "rc_rdma_read",
    "rc_atomic_fetch_and_add",
    "xrc_traffic",
    "implicit_rc_traffic",
)
"""prof_sel=1 spares the driver its stock of keys."""
_NAMES = " ".join(f"tests.test_odp.OdpTestCase.test_odp_{name}" for name in _TESTS)
_SCRIPT = f"""
modprobe -r mlx5_ib mlx5_core && modprobe mlx5_core prof_sel=1 && modprobe -a mlx5_ib ib_uverbs rdma_ucm || exit 1
cd /usr/share/doc/rdma-core && python3 tests/run_tests.py -v {_NAMES}
"""


@pytest.mark.requirement("G4")
def test_rdma_cores_own_tests(guest: Guest) -> None:
    done = guest("--profile", "connectx-7-ib-odp", "--", _SCRIPT)
    assert (done.status, done.verdict["verdict"]) == (0, "ok"), f"{done.verdict}\n{done.output}\n{done.error}"
    assert (done.output + done.error).count("... ok") == len(_TESTS)
    assert done.verdict["devices"][0]["failed_commands"] == {}
