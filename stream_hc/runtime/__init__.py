"""The stream around the learners: records, JSON lines, filing documents one after the other."""

from stream_hc.runtime.filing import Filed, Filer
from stream_hc.runtime.jsonl import Line, LineReader
from stream_hc.runtime.records import Document, Prediction, RecordError, Reject, parse_document

__all__ = [
    "Document",
    "Filed",
    "Filer",
    "Line",
    "LineReader",
    "Prediction",
    "RecordError",
    "Reject",
    "parse_document",
]
