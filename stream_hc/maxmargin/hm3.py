"""H-M³: max-margin learning of whole multilabels (Rousu, Saunders, Szedmak and Shawe-Taylor, 2005 and 2006).

Notation: μ -> `duals_`; w -> `weights` of `state`; ℓ_H̃, ℓ_Δ -> `loss`.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stream_hc.checks import one_of, positive, whole_number
from stream_hc.kernels import Doubles, Floats, Ints
from stream_hc.losses import h_tilde_loss, symmetric_difference
from stream_hc.maxmargin.crew import Workers
from stream_hc.maxmargin.edges import edge_weights, edges_of, node_weights, summed_weights
from stream_hc.maxmargin.memory import check_memory
from stream_hc.maxmargin.passes import Point
from stream_hc.maxmargin.problem import Problem
from stream_hc.maxmargin.reading import best_labels, chances, preferences, stacked
from stream_hc.maxmargin.rounds import ascend_together
from stream_hc.maxmargin.solver import Epoch, Limits, Stopped, ascend
from stream_hc.maxmargin.states import check_arrays
from stream_hc.maxmargin.window import kernel_problem, row_problem, warm_duals
from stream_hc.taxonomy import CostScheme, Taxonomy, TaxonomyError
from stream_hc.vectorize import Rows, feature_rows

__all__ = ["HM3"]

Loss = Literal["h_tilde", "symmetric_difference"]
LabelSet = Literal["consistent", "all"]
Costs = CostScheme | NDArray[np.floating[Any]] | Sequence[float]
Progress = Callable[[dict[str, float]], object]
AT_A_TIME = 2000  # rows: so many are predicted with dense numbers for all nodes


class HM3:
    """Learns whole multilabels with a large margin: a wrong one scores the lower, the more it would cost.

    Every edge of the taxonomy, from a virtual root that is always on, has weights for each way it may be
    labelled; the score of a multilabel adds up those of its edges, and the best one is predicted. Training
    maximises the dual objective by ascent in the subspace of one document after the other, and knows at any
    time how far the optimum is: `duality_gap_` is at least what is missing. Over consistent multilabels the
    best one is found exactly, by dynamic programming in a forest and by a minimum cut in a DAG, so the gap is
    certified in both.

    `margins` says by how much the best multilabel with a node is ahead of the best one without it.
    `predict_proba` gives multilabels the chance exp(score) / Z and adds up those with a node; in a DAG it is
    1 / (1 + e^−margin), lowered to that of the parents where it is higher. Neither is calibrated.

    Parameters
    ----------
    taxonomy
        Labels and their parents, a forest or a DAG.
    loss
        What a wrong multilabel costs in training: "h_tilde", every wrong node under a right parent (forests
        only), or "symmetric_difference", every wrong node.
    costs
        What a wrong node costs: "uniform", "normalized", "sibling", "subtree" or a number for each.
    C
        How much a loss in training counts against the size of the weights.
    tol
        It stops when the duality gap is at most this share of the dual objective.
    max_epochs, max_seconds
        It stops after so many looks at all documents, or so much time, whatever the gap.
    label_set
        Over which multilabels to train: "consistent" ones or "all" (forests only). Predictions are always
        consistent.
    seed
        Draws the order of the documents: with n_jobs=1 the same seed gives the same bits.
    n_jobs
        How many threads work at a time, each on its share of the documents. With more than one the weights
        are shared while they work, and the result, with its gap, differs a little from run to run.
    max_memory
        Bytes it may need at most, with those of workers on this machine; `MemoryError` before anything is
        done otherwise.
    n_features
        Number of columns of the documents.

    Attributes
    ----------
    dual_objective_, duality_gap_
        Sums over the documents.
    history_
        A dict for each epoch: epoch, seconds, dual_objective, duality_gap, and held_out_loss if asked for.
    stopped_
        Why it stopped: "gap", "epochs", "seconds", "callback" (held-out loss, or cancelled) or
        "interrupted".
    duals_
        The dual variables of the documents, divided by C, for a warm start.

    Examples
    --------
    >>> from stream_hc import Taxonomy, TextVectorizer
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("golf", "sport"), ("politics", None)])
    >>> words = TextVectorizer()
    >>> X = words.learn_transform(["a racket and a net", "a club and a hole", "votes for a law"])
    >>> model = HM3(tax, costs="subtree").fit(X, tax.encode([{"tennis"}, {"golf"}, {"politics"}]))
    >>> tax.decode(model.predict_many(words.transform(["the racket", "votes"]))) == [
    ...     {"sport", "tennis"}, {"politics"}]
    True
    >>> model.duality_gap_ <= 0.01 * model.dual_objective_
    True
    """

    dual_objective_: float
    duality_gap_: float
    history_: list[dict[str, float]]
    stopped_: Stopped
    duals_: Doubles

    def __init__(
        self,
        taxonomy: Taxonomy,
        loss: Loss = "h_tilde",
        costs: Costs = "uniform",
        C: float = 1.0,
        tol: float = 0.01,
        max_epochs: int = 1000,
        max_seconds: float | None = None,
        label_set: LabelSet = "consistent",
        seed: int = 0,
        n_jobs: int = 1,
        max_memory: int | None = None,
        n_features: int = 2**18,
    ) -> None:
        if not isinstance(taxonomy, Taxonomy):
            raise ValueError(f"taxonomy must be a Taxonomy, not {type(taxonomy).__name__}")
        one_of("loss", loss, Loss)
        one_of("label_set", label_set, LabelSet)
        if not taxonomy.is_tree and (loss == "h_tilde" or label_set == "all"):
            raise TaxonomyError(
                "in a DAG HM3 trains with loss='symmetric_difference' over label_set='consistent' only"
            )
        self.taxonomy = taxonomy
        self.loss: Loss = loss
        self.costs = costs
        self.C = positive("C", C)
        self.tol = positive("tol", tol)
        self.max_epochs = whole_number("max_epochs", max_epochs, 0)
        self.max_seconds = None if max_seconds is None else positive("max_seconds", max_seconds)
        self.label_set: LabelSet = label_set
        self.seed = whole_number("seed", seed, 0)
        self.n_jobs = whole_number("n_jobs", n_jobs, 1, 1024)
        self.max_memory = None if max_memory is None else whole_number("max_memory", max_memory, 1)
        self.n_features = whole_number("n_features", n_features, 1, 2**31 - 1)
        self._node_costs = taxonomy.costs(costs)
        self._columns: Ints = np.zeros(0, np.int32)
        self._places: Ints | None = None  # of the features among the columns, made when first asked for
        self._edge_weights: Callable[[], Floats] | None = None
        self._node_weights: Floats | None = None
        self._coefficients: Doubles | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of what predicts, and of the dual variables."""
        held = (self._columns, self._places, self._node_weights, self._coefficients)
        duals = getattr(self, "duals_", None)
        return sum(array.nbytes for array in (*held, duals) if array is not None)

    # Training

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        warm_start: tuple[Any, Any] | None = None,
        validation: tuple[Any, Any] | None = None,
        patience: int = 3,
        progress: Progress | None = None,
        workers: Workers | None = None,
    ) -> Self:
        """Train on rows (n × n_features) and their labels; what was learned before is forgotten.

        `warm_start` is (duals, row_ids): `duals[k]`, from `duals_` of an earlier fit, belongs to row
        `row_ids[k]` of X, or to none any more if that is negative; the other rows begin anew. With
        `validation`, rows and labels held out, it stops when their loss has not become less for `patience`
        epochs, and goes back to the best. `progress` is called with each entry of `history_`.

        With `workers`, from `maxmargin.distributed.dask_workers`, the documents are spread over other
        processes or machines. The same number of shards gives the same bits, also if workers are lost.

        Ctrl-C leaves the model as far as it has come, with its gap, and then goes on its way.
        """
        problem, columns = row_problem(X, Y, **self._settings())
        whole_number("patience", patience, 1)
        held_out = None if validation is None else self._held_out(validation, columns)
        return self._fit(problem, columns, warm_start, held_out, patience, progress, workers)

    def fit_kernel(
        self,
        K: Any,
        Y: Any,
        *,
        warm_start: tuple[Any, Any] | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Train on a kernel, K[m, n] for documents m and n; predict by `predict_kernel`."""
        problem = kernel_problem(K, Y, **self._settings())
        return self._fit(problem, np.zeros(0, np.int32), warm_start, None, 1, progress)

    def _settings(self) -> dict[str, Any]:
        return {
            "taxonomy": self.taxonomy,
            "costs": self._node_costs,
            "is_tilde": self.loss == "h_tilde",
            "is_free": self.label_set == "all",
            "C": self.C,
            "n_features": self.n_features,
        }

    def _fit(
        self,
        problem: Problem,
        columns: Ints,
        warm_start: tuple[Any, Any] | None,
        held_out: Callable[[Doubles], float] | None,
        patience: int,
        progress: Progress | None,
        workers: Workers | None = None,
    ) -> Self:
        n_edges = edges_of(self.taxonomy)[0].size
        n_shards = 0 if workers is None else workers.n_here
        check_memory(problem, n_edges, self.n_jobs, self.max_memory, n_shards)
        marginals = problem.start() if warm_start is None else warm_duals(problem, *warm_start)
        history: list[dict[str, float]] = []
        losses: list[float] = []
        best: list[Point] = []

        def on_epoch(epoch: Epoch, point_of: Callable[[], Point]) -> bool:
            entry = {name: float(value) for name, value in epoch._asdict().items()} | {"epoch": epoch.epoch}
            if held_out is not None:
                here = point_of()
                losses.append(held_out(here.table))
                entry["held_out_loss"] = losses[-1]
                if losses[-1] <= min(losses):
                    best[:] = [Point(here.marginals.copy(), here.table.copy(), here.objective)]
            history.append(entry)
            if progress is not None:
                progress(dict(entry))
            return held_out is not None and len(losses) - 1 - int(np.argmin(losses)) >= patience

        limits = Limits(self.tol, self.max_epochs, self.max_seconds or np.inf)
        if workers is None:
            solution = ascend(problem, marginals, limits, self.seed, self.n_jobs, on_epoch)
        else:
            solution = ascend_together(problem, marginals, limits, self.seed, workers, on_epoch)
        point, at = solution.point, len(history) - 1
        if best:
            point, at = best[0], at - int(np.argmin(losses[::-1]))  # the last one among equals
        # From here on nothing can fail: the model changes all at once.
        self._columns, self._places = columns, None
        self._node_weights = self._edge_weights = self._coefficients = None
        if problem.by_kernel:
            self._coefficients = problem.start() - point.marginals
        else:
            self._node_weights = node_weights(self.taxonomy, point.table)
            # Three times the size of the table: made when asked for.
            self._edge_weights = partial(edge_weights, self.taxonomy, point.table, problem.is_free)
        self.history_, self.stopped_ = history, solution.stopped
        self.dual_objective_ = history[at]["dual_objective"]
        self.duality_gap_ = history[at]["duality_gap"]
        self.duals_ = point.marginals / self.C
        if solution.stopped == "interrupted":
            raise KeyboardInterrupt
        return self

    def _held_out(self, validation: tuple[Any, Any], columns: Ints) -> Callable[[Doubles], float]:
        X, Y = validation
        rows = feature_rows(X, self.n_features)
        matrix = csr_array((rows.values, rows.indices, rows.indptr), (rows.indptr.size - 1, self.n_features))
        matrix, true = matrix[:, columns], self.taxonomy.label_rows(Y, close=True)
        if true.shape[0] != matrix.shape[0]:
            raise ValueError(f"{matrix.shape[0]} held-out documents, but labels for {true.shape[0]}")
        if matrix.shape[0] == 0:
            raise ValueError("no held-out documents: give some, or no validation")

        def loss(table: Doubles) -> float:
            numbers = np.asarray(matrix @ node_weights(self.taxonomy, table), np.float64)
            predicted = best_labels(self.taxonomy, numbers)
            measure = h_tilde_loss if self.loss == "h_tilde" else symmetric_difference
            return float(measure(self.taxonomy, predicted, true, self._node_costs).mean())

        return loss

    # Prediction

    def predict_many(self, X: Any, scores: bool = False) -> csr_array:
        """Return the predicted labels of each row of `X` (n × n_features) as bool rows (n × N).

        With `scores` the rows hold the margin of each predicted label instead of True.
        """
        parts = [best_labels(self.taxonomy, numbers, scores) for numbers in self._numbers(X)]
        return stacked(parts, len(self.taxonomy), np.float32 if scores else np.bool_)

    def margins(self, X: Any) -> Floats:
        """Return by how much the best multilabel with each node is ahead of the best one without it."""
        parts = [preferences(self.taxonomy, numbers) for numbers in self._numbers(X)]
        return np.vstack([np.zeros((0, len(self.taxonomy)), np.float32), *parts]).astype(np.float32)

    def predict_proba(self, X: Any) -> Doubles:
        """Return a number between 0 and 1 for each row and node; the class says what it means."""
        parts = [chances(self.taxonomy, numbers) for numbers in self._numbers(X)]
        return np.vstack([np.zeros((0, len(self.taxonomy))), *parts])

    def predict_kernel(self, K: Any) -> csr_array:
        """Return the predicted labels from K (m × n), inner products with the n documents trained on."""
        if self._coefficients is None:
            raise ValueError("not trained on a kernel: call fit_kernel first, or predict_many")
        gram = np.asarray(K, np.float64)
        if gram.ndim != 2 or gram.shape[1] != self._coefficients.shape[0]:
            raise ValueError(f"K must be m × {self._coefficients.shape[0]}, not {gram.shape}")
        if not np.isfinite(gram).all():
            raise ValueError("K holds NaN or infinity")
        numbers = node_weights(self.taxonomy, gram @ self._coefficients).astype(np.float64)
        return best_labels(self.taxonomy, numbers)

    def _numbers(self, X: Any) -> Any:
        if self._node_weights is None:
            hint = "predict_kernel" if self._coefficients is not None else "fit"
            raise ValueError(f"not trained on rows: call {hint} first")
        used = self._used(feature_rows(X, self.n_features))
        n_rows = used.shape[0]
        for first in range(0, n_rows, AT_A_TIME):
            part = used if n_rows <= AT_A_TIME else used[first : first + AT_A_TIME]
            yield np.asarray(part @ self._node_weights, np.float64)

    def _used(self, rows: Rows) -> csr_array:
        """Return the features that were trained on, by their places: the work depends on the rows alone."""
        if self._places is None:
            places = np.full(self.n_features, -1, np.int32)
            places[self._columns] = np.arange(self._columns.size, dtype=np.int32)
            self._places = places  # complete before another thread can see it
        found = self._places[rows.indices]
        kept = found >= 0
        indptr = np.concatenate([[0], np.cumsum(kept)])[rows.indptr]
        shape = (rows.indptr.size - 1, self._columns.size)
        return csr_array((rows.values[kept], found[kept], indptr), shape=shape)

    # What it knows

    def state(self) -> dict[str, Any]:
        """Return what predictions need as plain numbers, strings and copied arrays; not the dual variables.

        `columns` are the features used, `weights` (edges, 3, columns) those of the labellings (0,0), (1,0)
        and (1,1) of each edge: in a forest one for each node. `node_weights` (columns, nodes) follow from
        them, and are kept so that a model that was loaded predicts with the same bits.
        """
        if self._edge_weights is None or self._node_weights is None:
            raise ValueError("nothing to save: call fit first (a model fitted on a kernel has no weights)")
        return {
            **{name: getattr(self, name) for name in _plain_parameters()},
            "costs": self._node_costs.copy(),
            "taxonomy": self.taxonomy.to_json(),
            "columns": self._columns.copy(),
            "weights": self._edge_weights().copy(),
            "node_weights": self._node_weights.copy(),
            "dual_objective": self.dual_objective_,
            "duality_gap": self.duality_gap_,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return a model that predicts as the one whose state was taken."""
        taxonomy = Taxonomy.from_json(state["taxonomy"])
        params = {name: state[name] for name in _plain_parameters()}
        model = cls(taxonomy, costs=state["costs"], **params)
        columns, weights, nodes = state["columns"], state["weights"], state["node_weights"]
        n_edges = edges_of(taxonomy)[0].size
        shapes = {"weights": (n_edges, 3, columns.size), "node_weights": (columns.size, len(taxonomy))}
        check_arrays(state, model.n_features, shapes)
        size = float(np.abs(weights).max(initial=0.0))
        if not np.allclose(summed_weights(taxonomy, weights), nodes, rtol=1e-4, atol=1e-4 * size):
            raise ValueError("node_weights must follow from weights")
        model._columns, model._node_weights = columns.copy(), nodes.copy()
        model._edge_weights = weights.copy
        model.dual_objective_, model.duality_gap_ = (
            float(state["dual_objective"]),
            float(state["duality_gap"]),
        )
        if state.keys() != model.state().keys():
            raise ValueError(f"unknown entries: {sorted(state.keys() - model.state().keys())}")
        return model


def _plain_parameters() -> list[str]:
    return [name for name in inspect.signature(HM3).parameters if name not in ("taxonomy", "costs")]
