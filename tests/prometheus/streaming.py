"""A real job in a process of its own: `stream-hc run`, which follows a file that the test writes."""

import itertools
import json
import sys
import time

from deploy.kafka.process import Process
from deploy.kafka.settings import free_port
from stream_hc.datasets import make_news
from tests.prometheus.server import fetch, wait_for

__all__ = ["Stream"]

DELAY = 50  # documents until labels come
SETTINGS = {
    "labels.seconds": 100,  # so that the time is told every second
    "refit.window": 500,
    "refit.least": 500,
    "refit.every": "none",  # but once at the beginning and on drift
    "refit.max_seconds": 1,
    "state.seconds": 2,
}


class Stream:
    """Synthetic news whose topics change in the middle, written as fast as the test wants."""

    def __init__(self, folder, n_documents):
        self._documents = folder / "documents.jsonl"
        self._documents.touch()
        news = make_news(n_documents, seed=7, drift="sudden")
        news.taxonomy.write(folder / "taxonomy.tsv")
        self._lines = self._written(news)
        self.port = free_port()
        names = [
            "documents.jsonl",
            "-t",
            "taxonomy.tsv",
            "-l",
            "h-arow",
            "-l",
            "node-pa",
            "--follow",
            "--refit",
        ]
        paths = ["-o", "predictions.jsonl", "--rejects", "rejects.jsonl", "--state", "state"]
        settings = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
        command = [sys.executable, "-m", "stream_hc.cli", "run", *names, *paths, *settings]
        command += ["--http", str(self.port)]
        here = f"import os, sys; os.chdir({str(folder)!r}); os.execv(sys.argv[1], sys.argv[1:])"
        self._process = Process("stream-hc", [sys.executable, "-c", here, *command], folder / "job.log")

    def __enter__(self):
        self._process.start()
        return self

    def __exit__(self, *_):
        self._process.kill()

    def kill(self):
        self._process.kill()

    def write(self, n_documents, pause=0.0):
        """Write so many documents, and what comes between them; pause after each."""
        with self._documents.open("a") as file:
            for lines in itertools.islice(self._lines, n_documents):
                file.write(lines)
                if pause:
                    file.flush()
                    time.sleep(pause)

    def metrics(self):
        return fetch(f"http://127.0.0.1:{self.port}/metrics")

    def status(self):
        return json.loads(fetch(f"http://127.0.0.1:{self.port}/api/status"))

    def wait_until_done(self, n_documents, seconds=90.0):
        try:
            wait_for(
                "documents are answered", lambda: self.status().get("documents", 0) >= n_documents, seconds
            )
        except AssertionError as error:
            raise AssertionError(self._process.output()) from error

    def _written(self, news):
        for row, (name, text) in enumerate(zip(news.ids, news.documents, strict=True)):
            records = [{"id": name, "text": str(text)}]
            if row >= DELAY:
                records.append({"id": news.ids[row - DELAY], "labels": sorted(news.labels[row - DELAY])})
            lines = "".join(f"{json.dumps(record)}\n" for record in records)
            yield lines + ("no JSON\n" if row % 1000 == 10 else "")
