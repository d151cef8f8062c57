"""What the demo begins with: a folder with a job and a taxonomy, its topics, and the news."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from consumers.clients import administrator
from consumers.topics import create_missing
from stream_hc.datasets import Dataset, make_news
from stream_hc.runtime.config import Config, load_config

__all__ = ["PARTITIONS", "SHARDS", "DemoError", "Stage", "claim", "partition_of", "prepare"]

JOB, TAXONOMY, STATE = "job.toml", "taxonomy.tsv", "state"
SHARDS, PARTITIONS = 2, 4
LATER = 20  # labels come after one document in so many of the stream
FIRST_LINE = "# The job of make demo-cluster."  # tells that a folder is a demo's, and may be overwritten
# No address: the broker of the demo is gone afterwards, and the job is as good for one at 127.0.0.1:9092.
TEMPLATE = """\
{first_line} All processes share it; the other keys have their defaults.

[model]
taxonomy = "{taxonomy}"
learners = ["h-arow"]
n_features = 8192

[state]
folder = "{state}"
seconds = 1.5  # between two snapshots: each is a new version of the model for the predictors

[kafka]
models = "models"
events = "none"
partitions = {partitions}  # of documents: so many predictors can share them
session_timeout = 5.0  # seconds of silence until others take over: short, since somebody is watching
transaction_timeout = 5.0
"""


class DemoError(RuntimeError):
    """The demo does not come to its end, and why."""


@dataclass(frozen=True)
class Stage:
    """Everything the demo needs but processes.

    Attributes
    ----------
    folder
        Job, taxonomy, state and logs.
    config
        The job, at the broker of the demo.
    news
        What is streamed.
    delay
        After how many more documents labels come.
    """

    folder: Path
    config: Config
    news: Dataset
    delay: int

    @property
    def job(self) -> Path:
        """The file of the job."""
        return self.folder / JOB

    def records(self) -> Iterator[tuple[bool, int, bytes]]:
        """Yield whether it is a document, its place in the stream, and the record; labels come later."""
        for place, (name, text) in enumerate(zip(self.news.ids, self.news.documents, strict=True)):
            yield True, place, json.dumps({"id": name, "text": text}).encode()
            if place >= self.delay:
                yield False, place - self.delay, self._labels(place - self.delay)
        for place in range(max(0, len(self.news) - self.delay), len(self.news)):
            yield False, place, self._labels(place)

    def _labels(self, place: int) -> bytes:
        return json.dumps({"id": self.news.ids[place], "labels": sorted(self.news.labels[place])}).encode()


def partition_of(place: int) -> int:
    """Return the partition of a document: they take turns."""
    return place % PARTITIONS


def prepare(folder: Path, bootstrap: str, n_documents: int, seed: int) -> Stage:
    """Write the files, and make the topics."""
    news = make_news(n_documents, seed)
    names = {"taxonomy": TAXONOMY, "state": STATE, "partitions": PARTITIONS}
    (folder / JOB).write_text(TEMPLATE.format(first_line=FIRST_LINE, **names), encoding="utf-8")
    news.taxonomy.write(folder / TAXONOMY)
    config = load_config(str(folder / JOB), {}, {"kafka.bootstrap": bootstrap}).config
    with administrator(config.kafka) as admin:
        create_missing(admin, config.kafka)
    return Stage(folder, config, news, max(1, n_documents // LATER))


def claim(folder: Path) -> None:
    """Make the folder, and remove what an earlier demo left; refuse one with somebody's files."""
    job = folder / JOB
    if folder.exists() and not folder.is_dir():
        raise DemoError(f"{folder}: not a folder: choose another --output")
    theirs = folder.is_dir() and any(folder.iterdir())
    if theirs and not (job.is_file() and job.read_bytes().startswith(FIRST_LINE.encode())):
        raise DemoError(f"{folder}: has files that are not of this demo: choose another --output")
    shutil.rmtree(folder / STATE, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    job.write_text(f"{FIRST_LINE}\n", encoding="utf-8")
    for log in folder.glob("*.log"):
        log.unlink()
