"""The header of a snapshot, for people and as JSON."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from stream_hc.cli.console import clean, out
from stream_hc.snapshot import SnapshotInfo

__all__ = ["as_json", "show", "size", "verdict"]

LONGEST = 60


def as_json(info: SnapshotInfo) -> str:
    """Return all of the header; NaN and infinity, which JSON lacks, as text."""
    return json.dumps(_plain(asdict(info)), indent=2, ensure_ascii=False, allow_nan=False)


def show(name: str, info: SnapshotInfo) -> None:
    """Print parts, scalars and arrays."""
    out().print(
        clean(f"{name}: {size(info.total_bytes)}, format {info.format_version}, by {info.created_by}")
    )
    if info.extra:
        out().print(clean(", ".join(f"{key}={value}" for key, value in info.extra.items())))
    for part in info.parts:
        table = Table("key", "value", title=_text(f"{part.name}: {part.kind}"), title_justify="left")
        for key, value in part.scalars.items():
            table.add_row(_text(key), _text(_short(value)))
        for array in part.arrays:
            shape = " × ".join(map(str, array.shape)) or "scalar"
            table.add_row(_text(array.key), _text(f"{array.dtype}[{shape}], {size(array.bytes)}"))
        out().print(table)
    out().print(f"content {info.sha256}", soft_wrap=True)


def verdict(name: str, info: SnapshotInfo) -> str:
    """Return one line about a snapshot that was checked."""
    n_arrays = sum(len(part.arrays) for part in info.parts)
    kinds = ", ".join(f"{part.name} ({part.kind})" for part in info.parts)
    return clean(f"{name}: fine: {kinds}; {n_arrays} arrays, {size(info.total_bytes)} checked")


def size(n_bytes: int) -> str:
    """Return a number of bytes as people say it.

    >>> size(999), size(1_540_000)
    ('999 bytes', '1.5 MB')
    """
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    power = min((len(str(n_bytes)) - 1) // 3, 4)
    return f"{n_bytes / 1000**power:.1f} {('kB', 'MB', 'GB', 'TB')[power - 1]}"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"


def _text(value: str) -> Text:
    return Text(clean(value))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return str(value)
    return value
