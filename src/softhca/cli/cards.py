"""Cards of one fabric, for the sub-commands that serve them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from softhca.hca.device import Hca


def build_cards(profile: str, count: int) -> list[Hca]:
    """Cards of the named profile that share an engine on the real clock and a fabric, with addresses of their own.

    Raises:
        click.BadParameter: there is no such profile, or its addresses do not reach so far.
    """
    from softhca.bus import Engine
    from softhca.hca.device import Hca
    from softhca.hca.fabric import Fabric
    from softhca.hca.profile import load_profile

    engine, fabric = Engine(), Fabric()
    try:
        model = load_profile(profile)
        return [Hca(engine, model.numbered(index), fabric=fabric) for index in range(count)]
    except (ValueError, FileNotFoundError) as error:
        raise click.BadParameter(str(error), param_hint="--profile") from error
