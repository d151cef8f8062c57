"""What all running metrics share: rows in, exact counts inside, a number out."""

import json
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from river.base import Estimator, MultiLabelClassifier
from river.metrics.base import Metric, Metrics
from river.metrics.multioutput.base import MultiOutputClassificationMetric

from stream_hc.kernels import labels as kernels
from stream_hc.losses.mistakes import Rows, row_pair
from stream_hc.metrics.counts import Counts, Weight
from stream_hc.taxonomy import Labels, Taxonomy, TaxonomyError
from stream_hc.taxonomy.rows import label_columns

__all__ = ["HierarchicalMetric"]


class HierarchicalMetric(Metric):
    """A running metric over the label sets of a taxonomy, with an exact `revert`.

    A subclass says which slots two rows of labels count in (`_slots`) and what the counts mean (`get`). One
    more slot, the last, counts the rows. The value is a function of exact counts, so `revert` undoes
    `update` to the last bit, in any order and with any weights.
    """

    _fmt: ClassVar[str] = ",.6f"
    _close_pred: ClassVar[bool] = False

    def __init__(self, taxonomy: Taxonomy, slots: int = 0, slots_per_node: int = 0) -> None:
        if not isinstance(taxonomy, Taxonomy):
            raise TaxonomyError(f"{type(self).__name__} needs a Taxonomy, not {taxonomy!r}")
        self.taxonomy = taxonomy
        self._counts = Counts(slots + slots_per_node * len(taxonomy) + 1)

    @abstractmethod
    def _slots(self, pred: Rows, true: Rows) -> NDArray[np.signedinteger[Any]]:
        """Return the slots that these rows count in, each as often as it is counted."""

    def update(self, y_true: Labels, y_pred: Labels, w: Weight = 1.0) -> None:
        """Count one document; labels are a dict name -> bool, or a set or list of names."""
        self._add(*self._one_row(y_true, y_pred), w, 1)

    def revert(self, y_true: Labels, y_pred: Labels, w: Weight = 1.0) -> None:
        """Undo `update` with the same arguments, exactly."""
        self._add(*self._one_row(y_true, y_pred), w, -1)

    def update_many(self, Y_true: Any, Y_pred: Any, w: Weight = 1.0) -> None:
        """Count many documents (rows n × N or a list of label sets): the same as one by one, and fast."""
        self._add(*row_pair(self.taxonomy, Y_pred, Y_true, self._close_pred), w, 1)

    def revert_many(self, Y_true: Any, Y_pred: Any, w: Weight = 1.0) -> None:
        """Undo `update_many` with the same arguments, exactly."""
        self._add(*row_pair(self.taxonomy, Y_pred, Y_true, self._close_pred), w, -1)

    def _add(self, pred: Rows, true: Rows, w: Weight, sign: int) -> None:
        n_rows = pred[0].size - 1
        row_slots = np.full(n_rows, self._counts.whole.size - 1)
        self._counts.add(np.concatenate([self._slots(pred, true), row_slots]), w, sign)

    def _one_row(self, y_true: Labels, y_pred: Labels) -> tuple[Rows, Rows]:
        return self._row(y_pred, self._close_pred), self._row(y_true, close=True)

    def _row(self, labels: Labels, close: bool) -> Rows:
        nodes = np.array(sorted(set(label_columns(labels, self.taxonomy.column_of))), np.int32)
        ptr = np.array([0, nodes.size], np.int64)
        if not close:
            return ptr, nodes
        closed: Rows = kernels.close_rows(ptr, nodes, self.taxonomy.parent_ptr, self.taxonomy.parent_idx)
        return closed

    # What river asks

    @property
    def bigger_is_better(self) -> bool:
        """Whether a high value is better than a low one."""
        return False

    @property
    def requires_labels(self) -> bool:
        """Whether labels are needed, not probabilities: yes."""
        return True

    def works_with(self, model: Estimator) -> bool:
        """Whether the model, or the last step of the pipeline, is a multi-label classifier."""
        return isinstance(model, MultiLabelClassifier)

    def __add__(self, other: object) -> Metrics:
        if not isinstance(other, HierarchicalMetric | MultiOutputClassificationMetric):
            raise ValueError(f"{type(self).__name__} and {type(other).__name__} metrics are not compatible")
        return Metrics([self, other])  # type: ignore[no-untyped-call]

    def __radd__(self, other: object) -> Metrics:
        both = self + other  # asked where `other` is a metric of river's that cannot add
        both.reverse()
        return both

    # Snapshots

    def state(self) -> dict[str, Any]:
        """Return arguments and counts as text, numbers and arrays, without rounding."""
        arguments = {
            name: value if isinstance(value, str | int) else np.array(value, np.float64)
            for name, value in self._get_params().items()
            if name != "taxonomy"
        }
        return {"taxonomy": json.dumps(self.taxonomy.edges), **arguments, **self._counts.state()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return a metric that goes on where `state()` was taken."""
        arguments = {name: value for name, value in state.items() if name not in ("whole", "rest")}
        arguments["taxonomy"] = Taxonomy(json.loads(arguments["taxonomy"]))
        metric = cls(**arguments)
        metric._counts = Counts.from_state(state, metric._counts.whole.size)
        return metric
