"""What goes in and out as JSON: documents, predictions, rejected lines; and what a document may not be.

A document is `{"id": ..., "text": ... | "features": {...} | "vector": [...], "labels": [...], "ts": ...}`,
labels that come later are `{"id": ..., "labels": [...]}`.
Unknown fields are ignored, `null` stands for a field that is not there, of a key given twice the last counts.
No clock is read here: a `ts` that came with the document goes out again with its prediction.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from stream_hc.vectorize import LARGEST_FEATURE

__all__ = [
    "MAX_FEATURES",
    "MAX_ID",
    "MAX_LABELS",
    "MAX_LINE_BYTES",
    "MAX_TS",
    "MAX_VECTOR",
    "Document",
    "Label",
    "LabelRequest",
    "Prediction",
    "RecordError",
    "Reject",
    "Ts",
    "parse_document",
    "parse_record",
    "parse_records",
]

MAX_LINE_BYTES = 2**20
MAX_ID = 512  # characters
MAX_TS = 64  # characters, if it is text
MAX_LABELS = 1_000
MAX_FEATURES = 100_000
MAX_VECTOR = 100_000
TOGETHER = 64  # lines decoded at once; if one is bad they are all decoded again, one by one

_RANGE = f"numbers must be finite and at most {LARGEST_FEATURE:.0e}: scale them"

Ts = str | int | float | None


class RecordError(ValueError):
    """A record that cannot be used.

    Attributes
    ----------
    reason
        One of a fixed list of words, for programs and counters.
    detail
        A sentence for people: what is wrong and what would be right.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class Document(msgspec.Struct, frozen=True, gc=False):
    """One document; exactly one of `text`, `features` and `vector` is given."""

    id: str
    text: str | None = None
    features: dict[str, float] | None = None
    vector: list[float] | None = None
    labels: list[str] | None = None
    ts: Ts = None


class Label(msgspec.Struct, frozen=True, gc=False):
    """The labels of a document that came, or will come, on its own."""

    id: str
    labels: list[str]


class LabelRequest(msgspec.Struct, frozen=True, gc=False):
    """A document whose labels would be worth having, and the nodes in doubt about it, with their margins."""

    id: str
    nodes: dict[str, float]


class Prediction(msgspec.Struct, frozen=True, gc=False):
    """The answer to a document.

    `labels` are the most specific ones, `path_labels` all of them, both in the order of the taxonomy;
    `scores` are the margins of `path_labels`, rounded to six decimals. `model_version` is the number of
    documents the model had learned from when it predicted.
    """

    id: str
    labels: list[str]
    path_labels: list[str]
    scores: dict[str, float]
    model: str
    model_version: int
    ts: str | int | float | msgspec.UnsetType = msgspec.UNSET


class Reject(msgspec.Struct, frozen=True, gc=False):
    """A line that was not filed: where it stood, why, and the line itself (cut off if `truncated`).

    Where lines come from two files, `source` says which.
    """

    line_number: int
    reason: str
    detail: str
    line: str
    truncated: bool = False
    source: str | msgspec.UnsetType = msgspec.UNSET


class _Plain(Document, frozen=True, gc=False):
    """What nearly every record is: a text, or labels alone, within all limits; anything else is looked at."""

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID)]
    text: str | None = None
    features: None = None
    vector: None = None
    labels: Annotated[list[str], msgspec.Meta(max_length=MAX_LABELS)] | None = None
    ts: None = None


_decoder = msgspec.json.Decoder(Document)
_plain_decoder = msgspec.json.Decoder(_Plain)
_WORD_OF_JSON = re.compile(rb"(?<![\w\"])-?(NaN|Infinity)(?![\w\"])")


def parse_document(line: bytes, max_bytes: int = MAX_LINE_BYTES) -> Document:
    """Return the document in a line of JSON, or raise `RecordError`.

    >>> parse_document(b'{"id": "7", "text": "rates rise", "labels": ["markets"]}').labels
    ['markets']
    >>> parse_document(b'{"id": "7"}')
    Traceback (most recent call last):
    ...
    stream_hc.runtime.records.RecordError: no_content: give one of "text", "features" and "vector", found none
    """
    document = _decoded(line, max_bytes)
    _check(document)
    return document


def parse_records(lines: Sequence[bytes]) -> list[Document | Label | RecordError]:
    """Return what `parse_record` returns, or raises, for each line; together they take a third of the time.

    >>> parse_records([b'{"id": "7", "text": "rates rise"}', b"{"])[1].reason
    'not_json'
    """
    records: list[Document | Label | RecordError] = []
    for first in range(0, len(lines), TOGETHER):
        some = lines[first : first + TOGETHER]
        records += _plain_records(some) or [_record_or_error(line) for line in some]
    return records


def _plain_records(lines: Sequence[bytes]) -> list[Document | Label | RecordError] | None:
    """Return documents and labels if they are all plain, else None."""
    data = b"\n".join(lines)
    decode = _plain_decoder.decode
    try:
        if not data.isascii():
            data.decode()
        # Each for itself: `decode_lines` takes an object that is spread over two lines, or two in one.
        found = [decode(line) for line in lines]
    except (UnicodeDecodeError, RecursionError, msgspec.DecodeError):
        return None
    if len(data) > MAX_LINE_BYTES or not all([each.id.strip() for each in found]):
        return None
    if any([each.text is None and each.labels is None for each in found]):
        return None
    return [each if each.text is not None else Label(each.id, each.labels or []) for each in found]


def _record_or_error(line: bytes) -> Document | Label | RecordError:
    try:
        return parse_record(line)
    except RecordError as error:
        return error


def parse_record(line: bytes, max_bytes: int = MAX_LINE_BYTES) -> Document | Label:
    """Return the document in a line of JSON, or the labels if there is nothing else beside the id.

    >>> parse_record(b'{"id": "7", "labels": ["markets"]}')
    Label(id='7', labels=['markets'])
    """
    document = _decoded(line, max_bytes)
    has_content = not (document.text is None and document.features is None and document.vector is None)
    if document.labels is None or has_content:
        _check(document)
        return document
    _check_common(document)
    return Label(document.id, document.labels)


def _decoded(line: bytes, max_bytes: int) -> Document:
    if len(line) > max_bytes:
        raise RecordError("line_too_long", f"more than {max_bytes} bytes: split the document or shorten it")
    try:
        if not line.isascii():
            line.decode()  # the JSON decoder does not look at the bytes of fields it ignores
        return _decoder.decode(line)
    except UnicodeDecodeError:
        raise RecordError("not_utf8", "not UTF-8: write the file as UTF-8") from None
    except RecursionError:
        raise RecordError("too_deep", "nested too deeply: write one flat JSON object a line") from None
    except msgspec.ValidationError as error:
        raise _wrong_shape(str(error)) from None
    except msgspec.DecodeError as error:
        raise _not_json(line, str(error)) from None


def _wrong_shape(message: str) -> RecordError:
    if message.startswith("Number out of range"):
        return RecordError("number_out_of_range", f"{message}: {_RANGE}")
    reason = "missing_field" if "missing required field" in message else "wrong_type"
    return RecordError(reason, message)


def _not_json(line: bytes, message: str) -> RecordError:
    found = _WORD_OF_JSON.search(line)
    if found:
        return RecordError("not_json", f"{found[0].decode()} is not JSON: numbers must be finite")
    return RecordError("not_json", f"{message}: write one JSON object a line")


def _check(document: Document) -> None:
    _check_common(document)
    if (document.text is None) + (document.features is None) + (document.vector is None) != 2:
        given = [name for name in ("text", "features", "vector") if getattr(document, name) is not None]
        reason, found = ("several_contents", " and ".join(given)) if given else ("no_content", "none")
        raise RecordError(reason, f'give one of "text", "features" and "vector", found {found}')
    if document.features is not None:
        _check_size("too_many_features", "features", document.features, MAX_FEATURES)
        _check_numbers(document.features)
    if document.vector is not None:
        _check_size("vector_too_long", "numbers in the vector", document.vector, MAX_VECTOR)
        _check_numbers(dict(enumerate(document.vector)))


def _check_common(document: Document) -> None:
    """Check what documents and labels have in common."""
    if not document.id.strip():
        raise RecordError("empty_id", 'the field "id" must not be empty')
    if len(document.id) > MAX_ID:
        raise RecordError("id_too_long", f"an id of {len(document.id)} characters, the limit is {MAX_ID}")
    if document.labels is not None:
        _check_size("too_many_labels", "labels", document.labels, MAX_LABELS)
    if document.ts is not None:
        _check_ts(document.ts)


def _check_size(reason: str, what: str, values: Any, limit: int) -> None:
    if len(values) > limit:
        raise RecordError(reason, f"{len(values)} {what}, the limit is {limit}")


def _check_numbers(numbers: dict[Any, float]) -> None:
    if numbers and not max(map(abs, numbers.values())) <= LARGEST_FEATURE:
        name, value = next((n, v) for n, v in numbers.items() if not abs(v) <= LARGEST_FEATURE)
        shown = repr(name)[:80]
        raise RecordError("number_out_of_range", f"{shown} is {value}: {_RANGE}")


def _check_ts(ts: Ts) -> None:
    if isinstance(ts, str) and len(ts) > MAX_TS:
        raise RecordError("bad_ts", f'a "ts" of {len(ts)} characters, the limit is {MAX_TS}')
    if isinstance(ts, int) and not -(2**63) <= ts < 2**63:
        raise RecordError("bad_ts", "'ts' is too large: whole numbers must fit in 64 bits")
