"""What became of it: counted in the topics, and told."""

import os
import shlex
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from deploy.cluster_demo.diary import clock, listed
from deploy.cluster_demo.feeding import Feed
from deploy.cluster_demo.fleet import Member
from deploy.cluster_demo.incidents import PredictorKilled, TrainerKilled
from deploy.cluster_demo.job import PARTITIONS, SHARDS, Stage
from deploy.cluster_demo.watching import Prediction, Watch, decode, read_all
from stream_hc.cli.console import out
from stream_hc.losses import h_loss

__all__ = ["Counted", "count", "tell"]

WIDTH = 110  # columns of the story at most


@dataclass(frozen=True)
class Counted:
    """What is in the topics.

    Attributes
    ----------
    predictions
        All that are committed.
    twice, missing, strange
        Documents with several, documents with none, predictions of documents that were never sent.
    letters
        Records in the topic of dead letters.
    learned
        Documents that the last model of each shard has learned.
    losses
        Mean H-loss of the predictions in each quarter of the stream.
    """

    sent: int
    predictions: int
    twice: int
    missing: int
    strange: int
    letters: int
    learned: Sequence[int]
    losses: Sequence[float]

    def problems(self) -> list[str]:
        """Return what is not as promised."""
        wrong = {
            "documents have several predictions": self.twice,
            "documents have no prediction": self.missing,
            "predictions are of documents that were never sent": self.strange,
            "records are in the dead letters": self.letters,
        }
        found = [f"{number:,} {what}" for what, number in wrong.items() if number]
        if set(self.learned) != {self.sent}:
            found.append(
                f"the trainers have learned {' and '.join(map(str, self.learned))} of {self.sent} documents"
            )
        return found


def count(stage: Stage, watch: Watch) -> Counted:
    """Read the topics once more, from the beginning, and compare them with what was sent."""
    kafka, names = stage.config.kafka, stage.news.ids
    found = [decode(record.value) for record in read_all(stage, str(kafka.predictions))]
    counted = Counter(each.id for each in found)
    known = set(names)
    return Counted(
        len(names),
        len(found),
        sum(number > 1 for name, number in counted.items() if name in known),
        sum(name not in counted for name in names),
        sum(number for name, number in counted.items() if name not in known),
        sum(1 for _ in read_all(stage, str(kafka.dead_letters))),
        [watch.published[shard][-1].learned for shard in range(SHARDS)],
        _losses(stage, found),
    )


def _losses(stage: Stage, found: Sequence[Prediction]) -> list[float]:
    answers = {each.id: each.path_labels for each in found}
    names, labels = stage.news.ids, dict(zip(stage.news.ids, stage.news.labels, strict=True))
    quarters = [names[len(names) * part // 4 : len(names) * (part + 1) // 4] for part in range(4)]
    means = []
    for quarter in quarters:
        there = [name for name in quarter if name in answers]
        losses = h_loss(
            stage.news.taxonomy, [answers[name] for name in there], [labels[name] for name in there]
        )
        means.append(float(losses.mean()) if there else 0.0)
    return means


def tell(
    stage: Stage,
    counted: Counted,
    feed: Feed,
    watch: Watch,
    trainer: TrainerKilled,
    predictor: PredictorKilled,
) -> None:
    """Tell the story, and what to try next."""
    assert trainer.victim is not None
    assert trainer.heir is not None
    assert predictor.victim is not None
    session = f"{stage.config.kafka.session_timeout:g}"
    versions = [len(watch.published[shard]) for shard in range(SHARDS)]
    shards = " and ".join(f"{number} of shard {shard}" for shard, number in enumerate(versions))
    had = listed("partition", predictor.partitions)
    learned = " and ".join(f"{each:,}" for each in counted.learned)
    heir = trainer.heir.name.capitalize()
    sentences = [
        f"{counted.sent:,} documents were sent in {feed.seconds:.0f} s, to a topic with {PARTITIONS} "
        f"partitions. {counted.predictions:,} predictions are committed: {counted.twice} documents were "
        f"answered twice, {counted.missing} not at all.",
        f"At {clock(trainer.at)} {trainer.victim.name} was killed (kill -9). {heir}, which stood "
        f"by, went on {trainer.learning:.1f} s later; {trainer.publishing:.1f} s after the kill there was a "
        "newer model. Meanwhile the predictors answered with the one before.",
        f"At {clock(predictor.at)} {predictor.victim.name} was killed. {predictor.answering:.1f} s later the "
        f"others answered its {had}, from the first document on that had no committed prediction.",
        f"Up to {session} s of each are patience: so long may a process be silent before its group gives it "
        "up (kafka.session_timeout; by default 45).",
        f"The last models of the two shards have learned {learned} documents, as many as there are.",
        f"{sum(versions)} versions were published ({shards}). The predictions name {len(watch.versions)} "
        f"versions of the joined model: the first knew {min(watch.versions):,} documents, the last "
        f"{max(watch.versions):,}.",
        f"The H-loss of the predictions was {counted.losses[0]:.3f} in the first quarter of the stream and "
        f"{counted.losses[-1]:.3f} in the last.",
    ]
    out().print(Text("What happened\n", "bold"))
    for sentence in sentences:
        wrapped = textwrap.fill(
            sentence, min(out().width, WIDTH), initial_indent="  • ", subsequent_indent="    "
        )
        out().print(wrapped, soft_wrap=True)
    out().print(Text("\nWhat to try next\n", "bold"))
    for what, command in _commands(stage, trainer.heir):
        out().print(f"  # {what}", soft_wrap=True)
        out().print(f"  {command}\n", soft_wrap=True)


def _commands(stage: Stage, heir: Member) -> list[tuple[str, str]]:
    program = Path(sys.executable).with_name("stream-hc")
    job = shlex.quote(str(stage.job))
    return [
        (
            "which part of the taxonomy each shard has learned",
            f"{_short(program)} kafka train --config {job} --shards {SHARDS} --show-plan",
        ),
        (f"what {heir.name} said when it took over", f"cat {shlex.quote(str(heir.log))}"),
        ("a broker that stays, for a fleet of your own: docs/scale.md goes on from here", "make kafka"),
    ]


def _short(path: Path) -> str:
    return shlex.quote(os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path))
