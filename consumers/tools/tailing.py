"""The work behind `stream-hc kafka tail`: predictions as they are committed, and how wrong they are."""

import signal
import sys
from contextlib import ExitStack
from typing import Any, NamedTuple

import msgspec

from consumers.clients import explaining, partitions_of, reader
from consumers.errors import KafkaProblem
from consumers.offsets import Offsets
from consumers.tools.reading import Reading
from consumers.tools.running_loss import RunningLoss
from stream_hc.cli.console import clean, say
from stream_hc.cli.errors import Code
from stream_hc.cli.making import read_taxonomy
from stream_hc.cli.signals import Stopper
from stream_hc.runtime.config import Config, KafkaConfig
from stream_hc.runtime.records import Prediction

__all__ = ["Wanted", "tail"]


class Wanted(NamedTuple):
    """What `tail` was asked to do, by the names of its options."""

    from_beginning: bool
    follow: bool
    limit: int | None
    json: bool
    quiet: bool


class _Labelled(msgspec.Struct, frozen=True, gc=False):
    """A document or labels, as far as they are of interest here."""

    id: str
    labels: list[str] | None = None


class _Running(msgspec.Struct, frozen=True):
    scored: int
    h_loss: float
    zero_one: float


_predictions = msgspec.json.Decoder(Prediction)
_labelled = msgspec.json.Decoder(_Labelled)
_encode = msgspec.json.Encoder().encode


def tail(wanted: Wanted, config: Config) -> int:
    """Show predictions until there are enough, or somebody has seen enough; return the exit code."""
    path = config.model.taxonomy
    taxonomy = None if path is None else read_taxonomy(path)
    shown = _Tail(wanted, config.kafka, RunningLoss(taxonomy, config.model.costs))
    with ExitStack() as stack:
        stop = stack.enter_context(Stopper())
        stack.enter_context(explaining(config.kafka))
        consumer = stack.enter_context(reader(config.kafka))
        partitions = partitions_of(consumer, shown.topics)
        ask = consumer.beginning_offsets if wanted.from_beginning else consumer.end_offsets
        starts: Offsets = dict(ask(partitions))
        shown.run(Reading(consumer, starts, config.kafka.request_timeout), stop)
    say(shown.summary())
    return Code.INTERRUPTED if stop.signal == signal.SIGINT else Code.FINE


class _Tail:
    def __init__(self, wanted: Wanted, config: KafkaConfig, loss: RunningLoss) -> None:
        if config.predictions is None:
            raise KafkaProblem("kafka.predictions is none: there are no predictions to show")
        self._wanted = wanted
        self._predictions = config.predictions
        self._loss = loss
        self._has_loss = loss.is_possible
        self._n_shown = 0
        self._n_odd = 0
        # Without a loss nobody needs the labels.
        labelled = (config.documents, config.labels) if self._has_loss else ()
        self.topics = [name for name in dict.fromkeys((config.predictions, *labelled)) if name is not None]

    def run(self, reading: Reading, stop: Stopper) -> None:
        if self._wanted.follow:
            while not stop.requested and not self._is_enough:
                self._show(reading.poll())
            return
        for records in reading.to_end():
            self._show(records)
            if stop.requested:
                return
            if self._is_enough:
                reading.leave(self._predictions)  # but their labels may be further on

    @property
    def _is_enough(self) -> bool:
        return self._n_shown == self._wanted.limit

    def _show(self, records: list[Any]) -> None:
        predictions = self._predictions
        for record in sorted(records, key=lambda each: each.topic == predictions):  # labels first
            if record.topic != predictions:
                self._labelled(record.value)
            elif not self._is_enough:
                self._predicted(record.value)
        sys.stdout.flush()

    def _predicted(self, value: bytes | None) -> None:
        try:
            prediction = _predictions.decode(value or b"")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._n_odd += 1
            return
        self._n_shown += 1
        self._loss.predict(prediction.id, prediction.path_labels)
        if self._wanted.quiet:
            return
        sys.stdout.write(self._as_json(prediction) if self._wanted.json else self._as_line(prediction))

    def _labelled(self, value: bytes | None) -> None:
        try:
            record = _labelled.decode(value or b"")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return  # a job says what it thinks of it among the dead letters
        if record.labels is not None:
            self._loss.label(record.id, record.labels)

    def _as_json(self, prediction: Prediction) -> str:
        found: dict[str, Any] = msgspec.to_builtins(prediction)  # without what is not set
        loss = self._loss
        running = _Running(loss.n_scored, loss.h_loss, loss.zero_one) if loss.n_scored else None
        return _encode({**found, "running": running}).decode() + "\n"

    def _as_line(self, prediction: Prediction) -> str:
        labels = ", ".join(prediction.labels) or "-"
        line = f"{prediction.id}  {labels}  ({prediction.model}, {prediction.model_version})"
        if self._loss.n_scored:
            line += f"  {self._losses()}"
        return clean(line) + "\n"

    def _losses(self) -> str:
        loss = self._loss
        return f"H-loss {loss.h_loss:.4f}, zero-one {loss.zero_one:.4f} of {loss.n_scored:,}"

    def summary(self) -> str:
        """Say in one line what was shown."""
        told = [f"{self._n_shown:,} documents"]
        if self._has_loss:
            told.append(f"{self._loss.n_scored:,} scored")
            if self._loss.n_scored:
                told.append(f"H-loss {self._loss.h_loss:.4f}, zero-one {self._loss.zero_one:.4f}")
            if self._loss.n_unknown:
                told.append(f"{self._loss.n_unknown:,} with nodes that are not in this taxonomy")
        else:
            told.append("no loss without a taxonomy: --set model.taxonomy=FILE")
        if self._n_odd:
            told.append(f"{self._n_odd:,} records are no predictions")
        return "; ".join(told)
