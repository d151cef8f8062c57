"""The stream around the learners: records in, predictions out, and a job that goes on after any end."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stream_hc.runtime.building import build_processor
    from stream_hc.runtime.config import Config, load_config
    from stream_hc.runtime.events import Event, Standing
    from stream_hc.runtime.filing import Filed, Filer
    from stream_hc.runtime.job import Job
    from stream_hc.runtime.jsonl import Line, LineReader
    from stream_hc.runtime.outcome import Outcome
    from stream_hc.runtime.processor import Processor
    from stream_hc.runtime.records import (
        Document,
        Label,
        LabelRequest,
        Prediction,
        RecordError,
        Reject,
        parse_document,
        parse_record,
    )
    from stream_hc.runtime.watcher import Watcher

__all__ = [
    "Config",
    "Document",
    "Event",
    "Filed",
    "Filer",
    "Job",
    "Label",
    "LabelRequest",
    "Line",
    "LineReader",
    "Outcome",
    "Prediction",
    "Processor",
    "RecordError",
    "Reject",
    "Standing",
    "Watcher",
    "build_processor",
    "load_config",
    "parse_document",
    "parse_record",
]

# Looked up on first use: who reads records needs no job, with its processes and models.
_HOME = {
    "Config": "config",
    "Document": "records",
    "Event": "events",
    "Filed": "filing",
    "Filer": "filing",
    "Job": "job",
    "Label": "records",
    "LabelRequest": "records",
    "Line": "jsonl",
    "LineReader": "jsonl",
    "Outcome": "outcome",
    "Prediction": "records",
    "Processor": "processor",
    "RecordError": "records",
    "Reject": "records",
    "Standing": "events",
    "Watcher": "watcher",
    "build_processor": "building",
    "load_config": "config",
    "parse_document": "records",
    "parse_record": "records",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'stream_hc.runtime' has no attribute {name!r}")
    return getattr(importlib.import_module(f"stream_hc.runtime.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
