"""Where a job stood when a snapshot was taken: how far it had read, written and decided."""

from collections.abc import Mapping
from typing import Any

import msgspec

from stream_hc.runtime.disk.positions import Position

__all__ = ["Place"]

KEY = "place"


class Place(msgspec.Struct, frozen=True):
    """Positions of the sources, lengths of the outputs, the last entry of the journal, and the newest fit.

    Where records come from topics, `offsets` says for each partition which record is the next, `stamp` is the
    time of the last one, and `job` the name that stands beside the offsets committed there.
    """

    positions: dict[str, Position | None] = {}
    lengths: dict[str, int] = {}
    journal: int = 0
    fitted: int | None = None
    offsets: dict[str, int] = {}
    job: str = ""
    stamp: float | None = None

    def extra(self) -> dict[str, str]:
        """Return it as what a snapshot carries beside its parts."""
        return {KEY: msgspec.json.encode(self).decode()}

    @classmethod
    def of(cls, extra: Mapping[str, Any]) -> "Place":
        """Return the place in a snapshot, or raise `ValueError`."""
        text = extra.get(KEY)
        if not isinstance(text, str):
            raise ValueError("the snapshot does not say where the job stood: it is not that of a job")
        return msgspec.json.decode(text, type=cls)
