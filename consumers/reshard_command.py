"""`stream-hc kafka reshard`: its options; the work is in `consumers.trainer.resharding`."""

from typing import Annotated

import typer

from consumers.options import BootstrapOption, ConfigOption, SettingsOption, YesOption, configured
from consumers.trainer.options import TrafficOption

__all__ = ["reshard"]


def reshard(
    shards: Annotated[
        int, typer.Option("--shards", metavar="K", min=1, max=9_999, help="Into how many parts from now on.")
    ],
    before: Annotated[
        int | None,
        typer.Option("--from", metavar="K", min=1, help="How many there were, where that is not clear."),
    ] = None,
    traffic: TrafficOption = None,
    config: ConfigOption = None,
    bootstrap: BootstrapOption = None,
    settings: SettingsOption = None,
    yes: YesOption = False,
) -> int:
    """Cut the taxonomy of trainers that do not run anew: what was learned goes over, to the last bit.

    Shards that were stopped apart first read on to where the furthest one is. The folders of the old shards
    are put aside, those of the new ones lie beside them, and their groups go on at the same records.
    """
    from consumers.trainer.resharding import Wanted, reshard  # noqa: PLC0415

    return reshard(Wanted(shards, before, traffic, yes), configured(config, bootstrap, settings))
