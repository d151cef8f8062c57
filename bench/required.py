"""What has to hold in every run, as ratios between contestants of that run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench import ours
from bench.accuracy import Score
from bench.endless import Endless
from bench.limit import GATHER

__all__ = ["LEAST", "Verdict", "accuracy_verdict", "endless_verdicts", "speed_verdicts"]

# (faster, slower): the least ratio of documents a second. The names of the peers are spelled out, so that
# the list can be read, and tested, where they are not installed.
LEAST: dict[tuple[str, str], float] = {
    ("H-PERC", GATHER): 0.6,
    ("H-PERC", "VW multilabel_oaa"): 6.0,
    ("H-PERC", "scikit-learn Perceptron per node"): 10.0,
    ("H-PERC", "scikit-learn SGD pa1 per node"): 10.0,
    ("H-AROW", "H-PERC"): 0.4,
    (ours.TEXTS, "scikit-learn HashingVectorizer"): 10.0,
    (ours.JSON_LINES, "VW multilabel_oaa"): 3.0,
    (ours.JSON_LINES, "VW multilabel_oaa, answers written"): 3.0,
    (ours.DICTS, "river perceptrons, top-down"): 25.0,
}
MOST_SLOWDOWN = 1.25


@dataclass(frozen=True)
class Verdict:
    """One requirement and what was measured."""

    what: str
    value: float
    bound: float
    at_least: bool = True

    @property
    def met(self) -> bool:
        """Whether the value is on the right side of the bound."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    @property
    def measured(self) -> str:
        """The value for a table."""
        return f"{self.value:.3g}"

    @property
    def required(self) -> str:
        """The bound for a table."""
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}"

    def __str__(self) -> str:
        return f"{'met' if self.met else 'MISSED'}: {self.what}: {self.measured}, required {self.required}"


def speed_verdicts(ratios: Mapping[tuple[str, str], float]) -> list[Verdict]:
    """Judge the ratios that were measured."""
    return [
        Verdict(f"{fast} ÷ {slow}", ratios[fast, slow], least)
        for (fast, slow), least in LEAST.items()
        if (fast, slow) in ratios
    ]


def endless_verdicts(endless: Endless) -> list[Verdict]:
    """Judge cost and memory of the endless stream."""
    of_bound = endless.held[-1] / endless.bound
    return [
        Verdict(
            "time a document, last fifth ÷ second fifth", endless.slowdown, MOST_SLOWDOWN, at_least=False
        ),
        Verdict("bytes held, end ÷ middle", endless.growth, 1.0, at_least=False),
        Verdict("bytes held ÷ what the columns allow", of_bound, 1.0, at_least=False),
    ]


def accuracy_verdict(scores: Sequence[Score]) -> Verdict:
    """Ask for one entrant of ours ahead of every peer, however mended, on every measure."""
    peers = [score for score in scores if not score.ours]
    behind = {
        score.name: [peer.name for peer in peers if not score.ahead_of(peer)]
        for score in scores
        if score.ours
    }
    best = min(behind, key=lambda name: len(behind[name]))
    what = f"peers' results that {best} is ahead of on all measures"
    return Verdict(what, float(len(peers) - len(behind[best])), float(len(peers)))
