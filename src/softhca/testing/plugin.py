"""The pytest plugin: fixtures `hca`, `hca_pair`, `driver`, `guest` and `fault`; on failure the trace of the test.

A test chooses its card with a marker: ``@pytest.mark.softhca(profile="connectx-7-ib", seed=3, clock="real")``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from softhca.driver import Driver
    from softhca.testing.bench import Bench, Machine

_BENCH = pytest.StashKey["Bench"]()
_ALLOWED = ("profile", "seed", "clock")


def pytest_configure(config: pytest.Config) -> None:
    """Tell of the marker."""
    config.addinivalue_line("markers", "softhca(profile, seed, clock): which card the fixtures of softhca are")


@pytest.fixture
def softhca_bench(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[Bench]:
    """All that a test has of softhca; the other fixtures are made from it."""
    from softhca.testing.bench import Bench

    marker = request.node.get_closest_marker("softhca")
    chosen = {} if marker is None else dict(marker.kwargs)
    strange = [key for key in chosen if key not in _ALLOWED]
    if strange or (marker is not None and marker.args):
        raise pytest.UsageError(
            f"{request.node.nodeid}: marker softhca: {strange or marker.args}, allowed are {', '.join(_ALLOWED)}"
        )
    try:
        bench = Bench(tmp_path / "softhca.jsonl", **chosen)
    except (ValueError, FileNotFoundError) as error:
        raise pytest.UsageError(f"{request.node.nodeid}: marker softhca: {error}") from error
    request.node.stash[_BENCH] = bench
    yield bench
    bench.close()


@pytest.fixture
def hca(softhca_bench: Bench) -> Machine:
    """A card in a machine of this process: `hca.card`, `hca.host`, `hca.engine`."""
    return softhca_bench.machines(1)[0]


@pytest.fixture
def hca_pair(softhca_bench: Bench) -> tuple[Machine, Machine]:
    """Two cards of one fabric, each in a machine of its own."""
    first, second = softhca_bench.machines(2)
    return first, second


@pytest.fixture
def driver(hca: Machine) -> Iterator[Driver]:
    """The driver of softhca, brought up on `hca`; at the end everything has to come back."""
    from softhca.driver import bring_up, roll_back

    found = hca.new_driver()
    bring_up(found)
    yield found
    roll_back(found)
    assert found.account[2] == 0, f"{found.account[2]} pages are still the device's"
    assert hca.host.allocations == 0, f"{hca.host.allocations} allocations of the driver were not freed"


@pytest.fixture
def guest(softhca_bench: Bench) -> Callable[..., Any]:
    """Run a command in a Linux guest with a card; see :meth:`softhca.testing.bench.Bench.guest`."""
    return softhca_bench.guest


@pytest.fixture
def fault(softhca_bench: Bench) -> Callable[..., Any]:
    """Let something go wrong: ``fault("command=CREATE_CQ nth=2 status=NO_RESOURCES")``."""
    return softhca_bench.fault


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Attach the trace to what is told of a failed test."""
    report = yield
    bench = item.stash.get(_BENCH, None)
    if bench is not None and report.failed:
        report.sections.append(("softhca trace", bench.told()))
    return report
