"""How right everyone is after one pass: zero-one, H-loss with two kinds of costs, micro-F1."""

from collections.abc import Sequence
from dataclasses import dataclass

from scipy.sparse import csr_array

from bench.contest import Entrant
from bench.labels import closed, truncated
from bench.material import Split
from bench.rounds import progress
from stream_hc import Taxonomy
from stream_hc.losses import h_loss, precision_recall_f1, zero_one

__all__ = ["MEASURES", "Score", "judge", "score"]

MEASURES = ("zero_one", "h_uniform", "h_normalized", "micro_f1")


@dataclass(frozen=True)
class Score:
    """The four measures of one entrant; `mended` says how its labels were made to respect the taxonomy."""

    name: str
    ours: bool
    mended: str
    zero_one: float
    h_uniform: float
    h_normalized: float
    micro_f1: float

    def ahead_of(self, other: "Score") -> bool:
        """Whether it is better on every measure."""
        losses = all(getattr(self, name) < getattr(other, name) for name in MEASURES[:3])
        return losses and self.micro_f1 > other.micro_f1


def judge(entrants: Sequence[Entrant], split: Split) -> list[Score]:
    """Let everyone learn and predict; both ways to mend the labels are listed, the better by H-loss first."""
    scores: list[Score] = []
    with progress() as bar:
        task = bar.add_task("accuracy", total=len(entrants))
        for entrant in entrants:
            bar.update(task, description=f"accuracy: {entrant.name}", refresh=True)
            scores += _both_ways(entrant, split)
            bar.advance(task)
    return scores


def _both_ways(entrant: Entrant, split: Split) -> list[Score]:
    taxonomy, predicted = split.test.stream.taxonomy, entrant.predict(split)
    if entrant.ours:
        return [score(entrant, "", taxonomy, predicted, split.test.Y)]
    scores = [
        score(entrant, "cut", taxonomy, truncated(predicted, taxonomy), split.test.Y),
        score(entrant, "closed", taxonomy, closed(predicted, taxonomy), split.test.Y),
    ]
    if scores[0].h_uniform == scores[1].h_uniform:
        return scores[:1]
    return sorted(scores, key=lambda result: result.h_uniform)


def score(entrant: Entrant, mended: str, taxonomy: Taxonomy, Y_pred: csr_array, Y_true: csr_array) -> Score:
    """Return the means over all documents."""
    return Score(
        entrant.name,
        entrant.ours,
        mended,
        float(zero_one(taxonomy, Y_pred, Y_true).mean()),
        float(h_loss(taxonomy, Y_pred, Y_true, "uniform").mean()),
        float(h_loss(taxonomy, Y_pred, Y_true, "normalized").mean()),
        precision_recall_f1(taxonomy, Y_pred, Y_true, "micro").f1,
    )
