"""Jobs for the tests of telemetry: on files, with somebody watching."""

import json
from pathlib import Path

from prometheus_client import CollectorRegistry

from stream_hc.runtime.building import build_processor
from stream_hc.runtime.config import Config, JudgeConfig, ModelConfig, RefitConfig, StateConfig, StreamConfig
from stream_hc.runtime.job import Job
from stream_hc.runtime.telemetry import Telemetry
from stream_hc.runtime.watcher import Watchers
from tests.runtime.streams import delayed, news

__all__ = ["LEARNERS", "Watched", "write_lines"]

LEARNERS = ["h-perceptron", "node-pa"]


class Watched:
    """A job on a folder; each `run` is a process of its own to the telemetry."""

    def __init__(self, folder: Path, n: int = 300, delay: int = 20, **changed) -> None:
        self.folder, self.data = folder, news(n)
        self.taxonomy = changed.pop("taxonomy", self.data.taxonomy)
        write_lines(folder / "stream.jsonl", changed.pop("records", None) or delayed(self.data, delay))
        tables = {
            "stream": StreamConfig(
                documents=str(folder / "stream.jsonl"),
                output=str(folder / "out.jsonl"),
                rejects=str(folder / "rejects.jsonl"),
            ),
            "model": ModelConfig(learners=LEARNERS, n_features=1024),
            "judge": JudgeConfig(sample=100, least=20, every=10),
            "refit": RefitConfig(),
            "state": StateConfig(folder=str(folder / "state")),
        }
        self.config = Config(**(tables | changed))
        self.telemetry: Telemetry | None = None

    def run(self, *others) -> Telemetry:
        telemetry = self.telemetry = Telemetry(CollectorRegistry())
        self.job = Job(self.config, self._build, None, Watchers(telemetry, *others))
        self.job.run()
        return telemetry

    def _build(self, fetch):
        return build_processor(self.config, self.taxonomy, fetch)

    def value(self, name: str, **labels: str) -> float | None:
        return self.telemetry.registry.get_sample_value(f"streamhc_{name}", labels)

    @property
    def answers(self) -> dict[str, set[str]]:
        lines = (self.folder / "out.jsonl").read_text().splitlines()
        return {answer["id"]: set(answer["path_labels"]) for answer in map(json.loads, lines)}


def write_lines(path: Path, records) -> None:
    with path.open("ab") as file:
        for record in records:
            file.write((record if isinstance(record, bytes) else json.dumps(record).encode()) + b"\n")
