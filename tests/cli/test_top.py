from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from click.testing import CliRunner, Result

from softhca.bus import Engine, VirtualClock
from softhca.bus.local import LocalHost
from softhca.cli.figures import answer_figures, figures
from softhca.cli.top import short, top, with_rates
from softhca.driver import Driver, bring_up
from softhca.hca.device import Hca
from softhca.hca.profile import load_profile
from softhca.prm.init_segment import HealthSyndrome
from softhca.vfio_user import Loop
from softhca.vfio_user.control import Control


def running_card() -> Hca:
    card = Hca(Engine(VirtualClock()), load_profile("connectx-7-ib"))
    host = LocalHost()
    host.plug(card)
    driver = Driver(card, host)
    bring_up(driver)
    driver.create_pd()
    return card


@contextmanager
def served(path: Path, card: Hca) -> Iterator[None]:
    """Answer at a control socket, in another thread."""
    end = threading.Event()
    with closing(Loop()) as loop, closing(Control(loop, path)) as control:
        answer_figures(control, [card])

        def serve() -> None:
            while not end.is_set():
                loop.run(0.05)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(top, list(arguments))


def test_figures_of_a_card() -> None:
    card = running_card()
    card.health.report(HealthSyndrome.HIGH_TEMP_ERR)
    found = figures(card)
    assert (found["profile"], found["stage"], found["health"]) == ("connectx-7-ib", "INITIALIZED", "HIGH_TEMP_ERR")
    assert (found["objects"]["PD"], found["objects"]["EQ"]) == (1, 2)
    assert found["pages"] == len(card.function.icm.pages)
    assert found["commands"] == card.commands.commands > 20
    assert found["failed"] == 0


def test_one_view_for_programs(tmp_path: Path) -> None:
    with served(tmp_path / "ctl", running_card()):
        result = invoke(str(tmp_path / "ctl"), "--once", "--json", "--interval", "0.1")
    assert result.exit_code == 0, result.output
    (card,) = json.loads(result.output)
    assert card["rates"] == {"commands": 0, "completions": 0, "packets": 0, "bytes": 0}
    assert card["stage"] == "INITIALIZED"


def test_one_view_for_people(tmp_path: Path) -> None:
    with served(tmp_path / "ctl", running_card()):
        result = invoke(str(tmp_path / "ctl"), "--once", "--interval", "0.1")
    assert result.exit_code == 0, result.output
    assert "commands/s" in result.output


def test_nobody_listens(tmp_path: Path) -> None:
    result = invoke(str(tmp_path / "none"))
    assert result.exit_code == 1
    assert "is a card served with --control?" in result.output


def test_rates_are_by_the_second_and_begin_anew_with_the_card() -> None:
    old = {"commands": 10, "completions": 5, "packets": 0, "bytes": 0}
    new = {"commands": 30, "completions": 1, "packets": 4, "bytes": 4000}
    assert with_rates(old, new, 2.0)["rates"] == {"commands": 10, "completions": 0, "packets": 2, "bytes": 2000}


def test_short_numbers() -> None:
    assert [short(number) for number in (0, 7.25, 1234, 5e6, 2.5e9)] == ["0", "7.25", "1.23k", "5M", "2.5G"]
