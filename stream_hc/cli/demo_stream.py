"""The files `stream-hc demo` begins with: topics, a stream with late labels and bad lines, and its job."""

import json
from collections.abc import Iterator
from pathlib import Path

from stream_hc.datasets import Dataset, make_news

__all__ = [
    "FIRST_LINE",
    "JOB",
    "MORE",
    "PREDICTIONS",
    "REJECTS",
    "STATE",
    "STREAM",
    "TAXONOMY",
    "delay_of",
    "write_files",
]

TAXONOMY, STREAM, MORE, JOB = "taxonomy.tsv", "stream.jsonl", "docs.jsonl", "job.toml"
PREDICTIONS, REJECTS, STATE = "predictions.jsonl", "rejects.jsonl", "state"

USUAL_LENGTH = 12_000
N_MORE = 1_000
UNLABELLED = 50  # of so many documents one never gets its labels
# What goes wrong in real streams: a line cut off, a topic that is not there, a number that is none, no text.
BAD_LINES = (
    '{"id": "cut-off", "text": "Rates rise ag',
    '{"id": "unknown-topic", "text": "Rates rise again", "labels": ["gossip"]}',
    '{"id": "no-number", "features": {"rates": NaN}}',
    '{"id": "no-text"}',
)
BAD_PLACES = (3, 19, 28, 44, 57, 73, 90)  # in hundredths of the stream

FIRST_LINE = "# The job of stream-hc demo."  # tells that a folder is a demo's, and may be overwritten
# What counts documents is in proportion to the length of the stream.
TEMPLATE = """\
{first_line} To do all of it again: remove the folder {state}, then
#     stream-hc run --config {job}
# All other keys have their defaults: stream-hc config check {job}

[stream]
documents = "{stream}"
output = "{predictions}"
rejects = "{rejects}"

[model]
taxonomy = "{taxonomy}"
learners = ["h-arow", "node-pa", "h-perceptron"]  # all learn; the first one answers until another is better

[refit]  # H-M3, in another process
enabled = true
window = {window}
least = {least}
every = {every}
costs = "subtree"
C = 0.03
in_step = true  # its model comes {lag} labelled documents later, on every machine
lag = {lag}

[judge]
sample = {sample}
least = {enough}

[state]
folder = "{state}"
"""
# In documents, for a stream of USUAL_LENGTH.
NUMBERS = {"window": 3_500, "least": 1_500, "every": 1_650, "lag": 300, "sample": 1_000, "enough": 250}


def delay_of(n_documents: int) -> int:
    """Return after how many more documents labels arrive."""
    return max(1, n_documents // 50)


def write_files(folder: Path, n_documents: int, seed: int) -> Dataset:
    """Write job, topics, stream and what may come after it; returns the news of the stream."""
    numbers = {name: max(10, n_documents * number // USUAL_LENGTH) for name, number in NUMBERS.items()}
    numbers["every"] = max(numbers["every"], 400)  # a fit takes a second or two, however small it is
    names = {"taxonomy": TAXONOMY, "stream": STREAM, "job": JOB, "predictions": PREDICTIONS}
    job = TEMPLATE.format(**names, rejects=REJECTS, state=STATE, first_line=FIRST_LINE, **numbers)
    (folder / JOB).write_text(job, encoding="utf-8")
    news = make_news(n_documents, seed, "sudden")
    news.taxonomy.write(folder / TAXONOMY)
    _write_lines(folder / STREAM, _late(news))
    after = make_news(max(n_documents, 2 * N_MORE), seed + 1, "sudden")
    _write_lines(folder / MORE, _labelled(after, len(after) - N_MORE))
    return news


def _late(news: Dataset) -> Iterator[str]:
    """Write the documents without labels, and `delay_of` documents later their labels, but for a few."""
    delay = delay_of(len(news))
    bad = {len(news) * place // 100: BAD_LINES[k % len(BAD_LINES)] for k, place in enumerate(BAD_PLACES)}
    for row, (name, text) in enumerate(zip(news.ids, news.documents, strict=True)):
        yield json.dumps({"id": name, "text": text})
        if row in bad:
            yield bad[row]
        labelled = row - delay
        if labelled >= 0 and (labelled + 1) % UNLABELLED:
            yield json.dumps({"id": news.ids[labelled], "labels": sorted(news.labels[labelled])})


def _labelled(news: Dataset, first: int) -> Iterator[str]:
    """Write documents with their labels, from the world after the drift."""
    for row in range(first, len(news)):
        name, labels = f"more-{row - first + 1:04d}", sorted(news.labels[row])
        yield json.dumps({"id": name, "text": news.documents[row], "labels": labels})


def _write_lines(path: Path, lines: Iterator[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)
