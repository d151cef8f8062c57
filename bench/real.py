"""The real data sets, where their folder is present."""

import os
from collections.abc import Iterator
from pathlib import Path

from bench.streams import Stream
from stream_hc.datasets import load

__all__ = ["real_streams"]

NAMES = ("reuters21578", "newsgroups20")
BESIDE = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


def real_streams(limit: int | None = None) -> Iterator[Stream]:
    """Yield the sets found in the folder STREAM_HC_DATA (default: shared/data beside the checkout)."""
    folder = Path(os.environ.get("STREAM_HC_DATA", BESIDE))
    for name in NAMES:
        if (folder / name).is_dir():
            data = load(folder / name, limit)
            texts = [document for document in data.documents if isinstance(document, str)]
            yield Stream(name, data.taxonomy, texts, data.labels)
