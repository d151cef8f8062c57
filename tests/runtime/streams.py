"""Streams for the tests of the runtime: lines of JSON with labels at once, later, earlier, twice or never."""

import json
import random

from stream_hc.datasets import Dataset, make_news
from stream_hc.runtime import Line

__all__ = ["delayed", "jumbled", "lines_of", "news", "poison"]


def news(n: int, seed: int = 0, drift: str = "none") -> Dataset:
    return make_news(n, seed, drift)


def lines_of(records: list) -> list[Line]:
    return [Line(number, _encoded(record)) for number, record in enumerate(records, 1)]


def _encoded(record) -> bytes:
    return record if isinstance(record, bytes) else json.dumps(record).encode()


def delayed(data: Dataset, delay: int) -> list[dict]:
    """Every label comes `delay` documents after its document; the last ones never."""
    records = []
    for row in range(len(data)):
        records.append({"id": data.ids[row], "text": str(data.documents[row])})
        if row >= delay:
            records.append({"id": data.ids[row - delay], "labels": sorted(data.labels[row - delay])})
    return records


def jumbled(data: Dataset, seed: int, bad: float = 0.05) -> list:
    """Labels at once, later, earlier, twice, changed or never; some records are poison."""
    draw = random.Random(seed)
    timed = []
    for row in range(len(data)):
        document = {"id": data.ids[row], "text": str(data.documents[row])}
        labels = sorted(data.labels[row])
        kind = draw.choice(["at once", "later", "later", "later", "earlier", "twice", "changed", "never"])
        if kind == "at once":
            document["labels"] = labels
        timed.append((row, document))
        label = {"id": data.ids[row], "labels": labels}
        if kind == "earlier":
            timed.append((row - draw.uniform(0, 9), label))
        if kind in ("later", "twice", "changed"):
            timed.append((row + draw.uniform(0, 30), label))
        if kind == "twice":
            timed.append((row + draw.uniform(30, 40), label))
        if kind == "changed":
            other = sorted(data.labels[draw.randrange(len(data))])
            timed.append((row + draw.uniform(30, 60), {"id": data.ids[row], "labels": other}))
        if draw.random() < bad:
            timed.append((row, draw.choice(poison())))
    return [record for _, record in sorted(timed, key=lambda pair: pair[0])]


def poison() -> list:
    """One bad record of every kind."""
    return [
        b"{",
        b"\xff\xfe",
        b"[" * 5000,
        b"null",
        b'{"id": "x"}',
        b'{"id": "", "text": "a"}',
        b'{"text": "no id"}',
        b'{"id": 7, "text": "a"}',
        b'{"id": "x", "text": 7}',
        b'{"id": "x", "text": "a", "vector": [1]}',
        b'{"id": "x", "vector": [1e400]}',
        b'{"id": "x", "features": {"a": NaN}}',
        b'{"id": "x", "text": "a", "labels": ["nonsense"]}',
        b'{"id": "x", "labels": ["nonsense"]}',
        b'{"id": "x", "labels": "sport"}',
        b'{"id": "' + b"x" * 600 + b'", "labels": []}',
        b'{"id": "x", "text": "a", "ts": "' + b"9" * 99 + b'"}',
        b'{"id": "x", "labels": ' + json.dumps(["a"] * 1001).encode() + b"}",
    ]
