"""A job that runs for long takes no more memory than one that runs for a while."""

import gc
import json
import random
from pathlib import Path

import pytest

from stream_hc.runtime import job as job_module
from stream_hc.runtime.building import build_processor
from stream_hc.runtime.config import (
    Config,
    JudgeConfig,
    LabelsConfig,
    ModelConfig,
    RefitConfig,
    StateConfig,
    StreamConfig,
)
from stream_hc.runtime.job import Job
from stream_hc.runtime.watcher import Watcher
from stream_hc.taxonomy import Taxonomy

MB = 2**20
TREE = Taxonomy([(f"n{k}", None if k < 5 else f"n{k // 5 - 1}") for k in range(30)])
WORDS = [f"word{k}" for k in range(400)]  # few, so that the models do not grow
LOOKS = 20


def write_documents(path: Path, n_documents: int) -> None:
    """Write documents of which two in five get labels, soon; the others and some labels wait in vain."""
    draw = random.Random(7)
    with path.open("w") as file:
        for k in range(n_documents):
            nodes = draw.choice(TREE.nodes)
            text = " ".join([*draw.choices(WORDS, k=8), f"{WORDS[TREE.nodes.index(nodes)]} " * 3])
            file.write(json.dumps({"id": f"document {k}", "text": text}) + "\n")
            if k % 5 < 2:
                file.write(json.dumps({"id": f"document {k}", "labels": [nodes]}) + "\n")
            if k % 5 == 4:
                file.write(json.dumps({"id": f"nobody {k}", "labels": [nodes]}) + "\n")
            if k % 500 == 0:
                file.write("{\n")


class Scale(Watcher):
    """Weighs the process after every so many records."""

    def __init__(self, every: int) -> None:
        self.every, self.weights = every, list[int]()

    def processed(self, job, done):
        if job._taken >= self.every * (len(self.weights) + 1):
            gc.collect()
            self.weights.append(resident())


def resident() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def weigh(folder: Path, n_documents: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Run everything but fits, whose window and models have their own size; return what it weighed."""
    monkeypatch.setattr(job_module, "LOOK_AROUND", 0.01)
    write_documents(folder / "stream.jsonl", n_documents)
    config = Config(
        stream=StreamConfig(
            documents=str(folder / "stream.jsonl"),
            output=str(folder / "output.jsonl"),
            rejects=str(folder / "rejects.jsonl"),
        ),
        model=ModelConfig(learners=["h-arow", "node-pa"], n_features=2**12),
        labels=LabelsConfig(documents=1000, early=500),
        refit=RefitConfig(window=1000, least=1000),
        judge=JudgeConfig(sample=500),
        state=StateConfig(folder=str(folder / "state"), every=n_documents // 10, keep=2),
    )
    n_records = n_documents * 8 // 5
    scale = Scale(n_records // LOOKS)

    class Slices(Job):
        """In batches of a size at which the process can be weighed often enough."""

        def _most(self) -> int | None:
            return min(1000, super()._most() or 1000)

    job = Slices(config, lambda fetch: build_processor(config, TREE, fetch), watcher=scale)
    job.run()
    room = job.processor.room
    assert (room.n_documents, room.n_labels) == (1000, 500)
    assert room.outcomes["joined"] == n_documents * 2 // 5
    assert job.counts["snapshots"] > 2
    assert len((folder / "output.jsonl").read_bytes().splitlines()) == n_documents
    return scale.weights


def check(weights: list[int]) -> None:
    """Compare with the time after a fifth, when the last buffers reach their size, and after a half."""
    assert len(weights) >= LOOKS - 1
    assert weights[-1] - weights[LOOKS // 5] < 16 * MB
    assert weights[-1] - weights[LOOKS // 2] < 4 * MB


@pytest.mark.compiled
def test_memory_stays_flat(tmp_path, monkeypatch):
    check(weigh(tmp_path, 30_000, monkeypatch))


@pytest.mark.compiled
@pytest.mark.soak
def test_memory_stays_flat_over_300_000_documents(tmp_path, monkeypatch):
    check(weigh(tmp_path, 300_000, monkeypatch))
