"""Read a data set from a folder: `docs.jsonl` or `docs.jsonl.gz`, and `taxonomy.tsv` or `taxonomy.json`.

A line of `docs.jsonl` is an object with `id`, `labels` and either `text` or `features`, perhaps `split`;
other fields are ignored. An error is one line that names the file and the line in it.
"""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from stream_hc.datasets.dataset import Dataset, DatasetError
from stream_hc.taxonomy import Taxonomy, TaxonomyError

__all__ = ["check_limit", "find_file", "load", "numbered_lines"]


class _Record(msgspec.Struct):
    id: str
    labels: list[str]
    text: str | msgspec.UnsetType = msgspec.UNSET
    features: dict[str, float] | msgspec.UnsetType = msgspec.UNSET
    split: str | None = None


def load(folder: str | Path, limit: int | None = None) -> Dataset:
    """Read the data set in a folder.

    Parameters
    ----------
    folder
        Holds `docs.jsonl` (or `docs.jsonl.gz`) and `taxonomy.tsv` (or `taxonomy.json`). Its name becomes the
        name of the data set.
    limit
        Read only so many documents.
    """
    folder = Path(folder)
    check_limit(limit)
    docs = find_file(folder, "docs.jsonl", "docs.jsonl.gz")
    tree = find_file(folder, "taxonomy.tsv", "taxonomy.json")
    try:
        taxonomy = Taxonomy.read(tree)
    except TaxonomyError as error:
        raise DatasetError(str(error)) from None
    known = frozenset(taxonomy.nodes)
    decoder = msgspec.json.Decoder(_Record)
    ids: list[str] = []
    texts: list[str] = []
    features: list[dict[str, float]] = []
    labels: list[frozenset[str]] = []
    splits: list[str] = []
    for number, line in numbered_lines(docs):
        try:
            record = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DatasetError(f"{docs}, line {number}: {_explain(error)}") from None
        if isinstance(record.text, str) and record.features is msgspec.UNSET:
            texts.append(record.text)
        elif isinstance(record.features, dict) and record.text is msgspec.UNSET:
            features.append(record.features)
        else:
            found = "neither" if record.text is msgspec.UNSET else "both"
            raise DatasetError(f'{docs}, line {number}: give "text" or "features", found {found}')
        if texts and features:
            raise DatasetError(f"{docs}, line {number}: texts and features in one file: use one kind only")
        given = frozenset(record.labels)
        if not given <= known:
            raise DatasetError(
                f"{docs}, line {number}: unknown label {min(given - known)!r}: add it to the taxonomy"
            )
        ids.append(record.id)
        labels.append(given)
        splits.append(record.split or "")
        if len(ids) == limit:
            break
    if not ids:
        raise DatasetError(f"{docs}: the file is empty: write one JSON object a line")
    return Dataset(
        folder.resolve().name, taxonomy, ids, texts or features, labels, splits if any(splits) else None
    )


def check_limit(limit: int | None) -> None:
    """Refuse a limit that leaves nothing."""
    if limit is not None and limit < 1:
        raise DatasetError(f"limit is {limit}: it must be at least 1, or None for everything")


def find_file(folder: Path, *names: str) -> Path:
    """Return the one of these files that is in the folder."""
    wanted = " or ".join(names)
    if not folder.is_dir():
        raise DatasetError(f"{folder}: no such folder: it should hold {wanted}")
    found = [folder / name for name in names if (folder / name).is_file()]
    if not found:
        raise DatasetError(f"{folder}: {wanted} is missing: put the file there or name another folder")
    if len(found) > 1:
        raise DatasetError(
            f"{folder}: found {' and '.join(path.name for path in found)}: keep only the right one"
        )
    return found[0]


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, counted from 1, of a plain or gzip file."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.isspace():
                    yield number, line
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{path}: cannot read the file, it may be damaged: {error}") from error


def _explain(error: Exception) -> str:
    """Say in one line what is wrong with a line of JSON."""
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8: save the file as UTF-8"
    if isinstance(error, RecursionError):
        return "nested too deeply: write one flat JSON object a line"
    if isinstance(error, msgspec.ValidationError):
        expected = '{"id": "...", "text": "..." or "features": {name: number}, "labels": [...]}'
        return f"{error}: expected {expected}"
    return f"{error}: write one JSON object a line, without NaN or infinity"
