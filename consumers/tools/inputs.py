"""What `produce` reads: lines of a file or of standard input, or those of a data set."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from stream_hc.cli.errors import usage_error
from stream_hc.cli.making import load_dataset, writable_folder
from stream_hc.runtime.jsonl import Line, open_lines

__all__ = ["Input", "open_input"]

LONGEST_LINE = 1_000_000  # bytes: with what comes around it, a record fits what brokers take by default


class Input(NamedTuple):
    """Lines, and how far they are: `done` of `total`, which is None where nobody knows."""

    name: str
    lines: Iterator[Line]
    total: float | None
    done: Callable[[], float]


@contextmanager
def open_input(
    source: str, limit: int | None, taxonomy_out: str | None, wait: Callable[[int], bool]
) -> Iterator[Input]:
    """Open a file, standard input or a data set; the taxonomy of a data set is written where it is wanted.

    `wait` is called with the file descriptor before every read; False ends the lines there.
    """
    if source.split(":")[0] == "news" or os.path.isdir(source):
        if taxonomy_out is not None:
            writable_folder(taxonomy_out)
        data = load_dataset(source, limit)
        if taxonomy_out is not None:
            data.taxonomy.write(taxonomy_out)
        encode, taken = msgspec.json.Encoder().encode, 0

        def lines() -> Iterator[Line]:
            nonlocal taken
            for taken, record in enumerate(data.records(), 1):
                yield Line(taken, encode(record))

        yield Input(source, lines(), len(data), lambda: taken)
        return
    if taxonomy_out is not None:
        raise usage_error(f"--taxonomy-out: {source} has no taxonomy; synthetic news and data sets have one")
    with open_lines(source, LONGEST_LINE, wait) as reader:
        name = "standard input" if source == "-" else source
        yield Input(name, (line for batch in reader for line in batch), reader.size, reader.position)
