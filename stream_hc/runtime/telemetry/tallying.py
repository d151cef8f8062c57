"""What is counted of a batch, from where everything stood before it and where it stands behind it."""

from collections.abc import Mapping

import numpy as np

from stream_hc.kernels import Doubles, Ints
from stream_hc.runtime.contenders import FittedModel
from stream_hc.runtime.events import Score, Standing
from stream_hc.runtime.outcome import Lessons, Outcome
from stream_hc.runtime.pipeline import Processed
from stream_hc.runtime.telemetry.catalogue import Catalogue
from stream_hc.taxonomy import CostScheme, Taxonomy

__all__ = ["SERVED_MODEL", "Tally"]

SERVED_MODEL = "served"
SWAPS = ("swap", "rollback", "promoted", "dropped")


class Tally:
    """Counts batches.

    Parameters
    ----------
    catalogue
        Is written.
    taxonomy
        Tells depths.
    costs
        Of the H-loss.
    learners
        Names that stay as they are.
    standing
        Where everything stands at the beginning: what was before is not counted.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        taxonomy: Taxonomy,
        costs: CostScheme,
        learners: list[str],
        standing: Standing,
    ) -> None:
        self._catalogue = catalogue
        self._depth: Ints = taxonomy.depth
        self._depths = [str(depth) for depth in range(int(taxonomy.depth.max(initial=-1)) + 1)]
        self._costs = costs
        self._node_costs: Doubles = taxonomy.costs(costs)
        self._learners = frozenset(learners)
        self.standing = standing
        for name in (SERVED_MODEL, *learners):
            catalogue.hloss.add(0, name, costs)
            catalogue.scored.add(0, name)
            for depth in self._depths:
                catalogue.hloss_by_depth.add(0, name, depth)
        self._champion = ""
        self._show(standing)

    def label(self, model: str) -> str:
        """Return what Prometheus calls a model: fitted ones, which come and go, have one name."""
        return model if model in self._learners else FittedModel.model

    def count(self, done: Processed) -> None:
        """Count a batch."""
        outcome, catalogue = done.outcome, self._catalogue
        for answers in outcome.answers:
            catalogue.documents_consumed.add(len(answers))
            catalogue.predictions.add(len(answers), answers.signature.model)
        n_documents = sum(map(len, outcome.answers))
        if n_documents:
            catalogue.predict_duration.observe(sum(done.took), n_documents)
        n_lessons = sum(len(lessons.served) for lessons in outcome.lessons)
        if n_lessons:
            catalogue.update_duration.observe(done.took.apply, n_lessons)
        catalogue.label_requests.add(len(outcome.requests))
        for event in outcome.events:
            if event.what == "drift":
                catalogue.drift_detected.add(1)
            elif event.what in SWAPS:
                catalogue.model_swaps.add(1, event.what)
        if outcome.told is not None:
            self._count_up_to(outcome.told.standing, outcome)

    def skip(self, outcome: Outcome) -> None:
        """Take a batch that was counted before a restart."""
        self._catalogue.replayed_documents.add(sum(map(len, outcome.answers)))
        if outcome.told is not None:
            self.standing = outcome.told.standing
            self._show(self.standing)

    def _count_up_to(self, standing: Standing, outcome: Outcome) -> None:
        catalogue, before = self._catalogue, self.standing
        self._count_losses(SERVED_MODEL, before.served, standing.served)
        for name, score in standing.scores.items():
            self._count_losses(self.label(name), before.scores.get(name, Score(0, 0.0, 0.0)), score)
        pairs = zip(self._depths, before.by_depth, standing.by_depth, strict=True)
        for depth, then, now in pairs:
            catalogue.hloss_by_depth.add(now - then, SERVED_MODEL, depth)
        for lessons in outcome.lessons:
            self._count_depths(lessons, standing.scores)
            if lessons.delays:
                catalogue.label_delay.observe(lessons.delays)
        for outcome_name, number in standing.outcomes.items():
            catalogue.labels.add(number - before.outcomes.get(outcome_name, 0), outcome_name)
        for reason, number in standing.rejected.items():
            catalogue.dead_letters.add(number - before.rejected.get(reason, 0), reason)
        self.standing = standing
        self._show(standing)

    def _count_losses(self, label: str, before: Score, now: Score) -> None:
        if now.scored > before.scored:
            self._catalogue.scored.add(now.scored - before.scored, label)
            losses = now.mean * now.scored - before.mean * before.scored
            self._catalogue.hloss.add(losses, label, self._costs)

    def _count_depths(self, lessons: Lessons, there: Mapping[str, Score]) -> None:
        for name, charged in lessons.charged.items():
            if name in there:
                nodes, known = charged.nodes, ~np.isnan(charged.losses)
                if not known.all():
                    nodes = nodes[np.repeat(known, np.diff(charged.indptr))]
                counts = np.bincount(nodes, minlength=self._node_costs.size)
                sums = np.bincount(self._depth, counts * self._node_costs, len(self._depths))
                label = self.label(name)
                for depth, total in zip(self._depths, sums.tolist(), strict=True):
                    self._catalogue.hloss_by_depth.add(total, label, depth)

    def _show(self, standing: Standing) -> None:
        """Set what goes up and down."""
        catalogue = self._catalogue
        catalogue.pending_documents.set(standing.waiting_documents)
        catalogue.pending_labels.set(standing.waiting_labels)
        scores = {SERVED_MODEL: standing.served}
        for name, score in sorted(standing.scores.items(), key=lambda item: (len(item[0]), item[0])):
            scores[self.label(name)] = score  # of fitted ones the newest has the largest number
        means = {(name, self._costs): score.recent for name, score in scores.items() if score.scored}
        catalogue.hloss_window_mean.replace(means)
        if standing.champion != self._champion:
            self._champion = standing.champion
            catalogue.model_info.replace({(standing.champion, str(standing.version)): 1.0})
