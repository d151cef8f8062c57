"""Predicted rows -> predictions, a batch at a time: as objects, or at once as lines of JSON."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from stream_hc.kernels import Bools, Bytes, Longs
from stream_hc.kernels import json_lines as kernels
from stream_hc.kernels.labels import most_specific
from stream_hc.runtime.records import Prediction, Ts
from stream_hc.taxonomy import Taxonomy
from stream_hc.vectorize import Rows

__all__ = ["Answers", "Signature"]

_encoder = msgspec.json.Encoder()


class Signature:
    """What all answers of a model have in common: its name, and the names of the nodes, also as JSON."""

    def __init__(self, taxonomy: Taxonomy, model: str) -> None:
        self.taxonomy = taxonomy
        self.model = model
        self.model_json = _bytes(_encoder.encode(model))
        names = [_encoder.encode(name) for name in taxonomy.nodes]
        self.names_json = _bytes(b"".join(names))
        self.name_ptr = np.cumsum([0, *map(len, names)])


@dataclass(frozen=True)
class Answers:
    """The predictions of some documents.

    Parameters
    ----------
    signature
        Of the model that predicted.
    ids
        Of the documents.
    scored
        The margins of each of them at the nodes predicted.
    versions
        Of the model, for each document.
    stamps
        The time stamps that came with the documents, if any did.
    """

    signature: Signature
    ids: Sequence[str]
    scored: Rows
    versions: Longs
    stamps: Sequence[Ts] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def predictions(self) -> list[Prediction]:
        """Return them one by one."""
        scored, specific = self.scored, self._specific()
        names = self.signature.taxonomy.nodes
        ends = np.concatenate([[0], np.cumsum(specific)])[scored.indptr[1:]].tolist()
        ends_names = [names[node] for node in scored.indices[specific].tolist()]
        path_names = [names[node] for node in scored.indices.tolist()]
        margins = np.round(scored.values.astype(np.float64), 6).tolist()
        predictions, first, first_end = [], 0, 0
        stamps = [None] * len(self) if self.stamps is None else self.stamps
        rows = zip(self.ids, scored.indptr[1:].tolist(), ends, self.versions.tolist(), stamps, strict=True)
        for name, last, last_end, version, stamp in rows:
            path = path_names[first:last]
            predictions.append(
                Prediction(
                    name,
                    ends_names[first_end:last_end],
                    path,
                    dict(zip(path, margins[first:last], strict=True)),
                    self.signature.model,
                    version,
                    msgspec.UNSET if stamp is None else stamp,
                )
            )
            first, first_end = last, last_end
        return predictions

    def json_lines(self) -> bytes:
        """Return them as `predictions`, written as JSON, each with a newline behind."""
        millionths = np.rint(self.scored.values.astype(np.float64) * 1e6)
        if not np.abs(millionths).max(initial=0.0) < kernels.LARGEST:
            return _encoder.encode_lines(self.predictions())
        signature = self.signature
        ids = _encoder.encode_lines(self.ids)
        stamps = b"" if self.stamps is None else _encoder.encode_lines(self.stamps)
        nodes = self.scored.indices
        name_lengths = np.diff(signature.name_ptr)[nodes].sum()
        # A node stands in three lists, with a comma or a colon; a line has two numbers at most beside scores.
        room = (
            len(ids)
            + len(stamps)
            + (kernels.FIXED + signature.model_json.size + kernels.LONGEST_NUMBER) * len(self)
            + 3 * name_lengths
            + (4 + kernels.LONGEST_NUMBER) * nodes.size
        )
        out = np.empty(room, np.uint8)
        length = kernels.prediction_lines(
            _bytes(ids),
            _bytes(stamps),
            signature.model_json,
            self.versions,
            self.scored.indptr,
            nodes,
            millionths.astype(np.int64),
            self._specific(),
            signature.names_json,
            signature.name_ptr,
            out,
        )
        return out[:length].tobytes()

    def _specific(self) -> Bools:
        taxonomy = self.signature.taxonomy
        ptr, nodes, _ = self.scored
        return most_specific(ptr, nodes, taxonomy.parent_ptr, taxonomy.parent_idx)


def _bytes(json: bytes) -> Bytes:
    return np.frombuffer(json, np.uint8)
