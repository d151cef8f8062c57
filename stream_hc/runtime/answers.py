"""Predicted rows -> predictions, a batch at a time."""

from collections.abc import Sequence

import msgspec
import numpy as np
from scipy.sparse import csr_array

from stream_hc.kernels.labels import most_specific
from stream_hc.runtime.records import Document, Prediction
from stream_hc.taxonomy import Taxonomy

__all__ = ["write_predictions"]


def write_predictions(
    taxonomy: Taxonomy,
    documents: Sequence[Document],
    scored: csr_array,
    model: str,
    version: int,
    learning: bool,
) -> list[Prediction]:
    """Return the prediction of each document from the row of its margins.

    `model` is the name of who predicted, `version` that of the first; with `learning` each adds one.
    """
    indptr, nodes = (
        scored.indptr.astype(np.int64, copy=False),
        scored.indices.astype(np.int32, copy=False),
    )
    specific = most_specific(indptr, nodes, taxonomy.parent_ptr, taxonomy.parent_idx)
    ends = np.concatenate([[0], np.cumsum(specific)])[indptr[1:]].tolist()
    names = taxonomy.nodes
    ends_names = [names[node] for node in nodes[specific].tolist()]
    path_names = [names[node] for node in nodes.tolist()]
    margins = np.round(scored.data.astype(np.float64), 6).tolist()
    predictions, first, first_end = [], 0, 0
    for document, last, last_end in zip(documents, indptr[1:].tolist(), ends, strict=True):
        path = path_names[first:last]
        predictions.append(
            Prediction(
                document.id,
                ends_names[first_end:last_end],
                path,
                dict(zip(path, margins[first:last], strict=True)),
                model,
                version,
                msgspec.UNSET if document.ts is None else document.ts,
            )
        )
        first, first_end = last, last_end
        version += learning
    return predictions
