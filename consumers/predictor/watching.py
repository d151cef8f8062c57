"""What a predictor says: to people on standard error, and to Prometheus."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence

from kafka import TopicPartition

from consumers.daemon.transactions import Transactions
from consumers.predictor.served import Answered, ServedModel
from stream_hc.cli.console import say
from stream_hc.runtime.telemetry import Telemetry

__all__ = ["PredictWatcher"]

OUTCOMES = ("committed", "aborted")


class PredictWatcher:
    """Is told what a predictor does; writes one line now and then.

    Parameters
    ----------
    seconds
        Between two lines about how it goes.
    quiet
        Say only what somebody should know.
    telemetry
        Told, too, if there is one.
    """

    def __init__(self, seconds: float, quiet: bool = False, telemetry: Telemetry | None = None) -> None:
        self._seconds = seconds
        self._quiet = quiet
        self._telemetry = telemetry
        self._model: ServedModel | None = None
        self._began = self._said = time.monotonic()
        self._counted: Counter[str] = Counter()
        self._n_refused = self.n_swaps = self.n_answered = self.n_rejected = 0
        self._lag, self._read = 0, ""

    def note(self, text: str) -> None:
        """Say what somebody should know."""
        say(text, "yellow")

    def reading(self, partitions: Sequence[str]) -> None:
        """Say what the group has given to this one."""
        told = f"predicting {', '.join(partitions)}"
        if told != self._read:
            self._say(told)
        self._read = told

    def swapped(self, model: ServedModel) -> None:
        """Say which model answers from now on."""
        before, self._model = self._model, model
        self.n_swaps += 1
        age = model.age(time.time())
        if before is None or before.model != model.model or time.monotonic() > self._said + self._seconds:
            self._say(f"{model.model} answers, {model.learned:,} documents learned, {age:.1f} s old")
        if self._telemetry is not None:
            with self._telemetry.lock:
                catalogue = self._telemetry.catalogue
                catalogue.model_info.replace({(model.model, str(model.learned)): 1.0})
                catalogue.model_versions.add(1, "taken")
                catalogue.ready.set(1.0)

    def refused(self, n_refused: int) -> None:
        """Count the versions that could not be used; they were noted when it happened."""
        new, self._n_refused = n_refused - self._n_refused, n_refused
        if new and self._telemetry is not None:
            with self._telemetry.lock:
                self._telemetry.catalogue.model_versions.add(new, "refused")

    def answered(
        self, model: ServedModel, answered: Answered, seconds: float, transactions: Transactions
    ) -> None:
        """Count what is committed, and say how it goes if it is time."""
        n_answers, n_rejects = len(answered.answers), len(answered.rejects)
        self.n_answered += n_answers
        self.n_rejected += n_rejects
        if self._telemetry is not None:
            with self._telemetry.lock:
                catalogue = self._telemetry.catalogue
                catalogue.documents_consumed.add(n_answers)
                catalogue.predictions.add(n_answers, model.model)
                for _, error in answered.rejects:
                    catalogue.dead_letters.add(1, error.reason)
                if n_answers:
                    catalogue.predict_duration.observe(seconds / n_answers, n_answers)
        self._count(transactions)
        now = time.monotonic()
        if now - self._said >= self._seconds:
            self._said = now
            rate = self.n_answered / (now - self._began)
            age = model.age(time.time())
            told = f"{self.n_answered:,} documents predicted ({rate:,.0f}/s), {self._lag:,} behind"
            self._say(f"{told}; {model.model} {model.learned} is {age:.1f} s old")

    def looked(self, lag: Mapping[TopicPartition, int]) -> None:
        """Say how far it is behind, and how old the model is."""
        self._lag = sum(lag.values())
        if self._telemetry is not None:
            self._telemetry.set_lag({(each.topic, each.partition): n for each, n in lag.items()})
            if self._model is not None:
                with self._telemetry.lock:
                    age = self._model.age(time.time())
                    self._telemetry.catalogue.model_age.replace({(self._model.model,): age})

    def summary(self) -> str:
        """Say in one line what was done."""
        told = f"{self.n_answered:,} documents predicted with {self.n_swaps} versions of the model"
        return told + (f", {self.n_rejected:,} records rejected" if self.n_rejected else "")

    def _count(self, transactions: Transactions) -> None:
        counts = transactions.counts
        for outcome in OUTCOMES if self._telemetry is not None else ():
            for _ in range(counts[outcome] - self._counted[outcome]):
                seconds = transactions.seconds if outcome == "committed" else None
                self._telemetry.transaction(outcome, seconds)  # type: ignore[union-attr]
        self._counted = counts.copy()

    def _say(self, text: str) -> None:
        if not self._quiet:
            say(text)
