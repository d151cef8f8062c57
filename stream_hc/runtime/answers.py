"""Predicted rows -> predictions, a batch at a time."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np
from scipy.sparse import csr_array

from stream_hc.kernels.labels import most_specific
from stream_hc.runtime.records import Document, Prediction
from stream_hc.taxonomy import Taxonomy

__all__ = ["Answers"]


class Answers:
    """Writes predictions.

    Parameters
    ----------
    taxonomy
        Gives the columns their names.
    """

    def __init__(self, taxonomy: Taxonomy) -> None:
        self._taxonomy = taxonomy
        self._names = np.array(taxonomy.nodes, dtype=object)

    def write(
        self, documents: Sequence[Document], scored: csr_array, model: str, version: int, learning: bool
    ) -> list[Prediction]:
        """Return the prediction of each document from the row of its margins.

        `model` is the name of who predicted, `version` that of the first; with `learning` each adds one.
        """
        indptr, nodes = (
            scored.indptr.astype(np.int64, copy=False),
            scored.indices.astype(np.int32, copy=False),
        )
        specific = most_specific(indptr, nodes, self._taxonomy.parent_ptr, self._taxonomy.parent_idx)
        ends = np.concatenate([[0], np.cumsum(specific)])[indptr].tolist()
        ends_names = self._names[nodes[specific]].tolist()
        paths = self._names[nodes].tolist()
        margins = np.round(scored.data.astype(np.float64), 6).tolist()
        predictions = []
        for row, (document, (first, last)) in enumerate(
            zip(documents, pairwise(indptr.tolist()), strict=True)
        ):
            path = paths[first:last]
            predictions.append(
                Prediction(
                    document.id,
                    ends_names[ends[row] : ends[row + 1]],
                    path,
                    dict(zip(path, margins[first:last], strict=True)),
                    model,
                    version + row if learning else version,
                    msgspec.UNSET if document.ts is None else document.ts,
                )
            )
        return predictions
