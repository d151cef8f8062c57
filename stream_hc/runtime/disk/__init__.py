"""What a job reads and what it leaves: sources, outputs, and all that it needs to go on after any end."""

from stream_hc.runtime.disk.commands import Request
from stream_hc.runtime.disk.entries import (
    Batch,
    Command,
    Entry,
    Numbered,
    Ranges,
    RefitDone,
    RefitFailed,
    Tick,
)
from stream_hc.runtime.disk.folder import FITS, StateFolder
from stream_hc.runtime.disk.journal import Journal, JournalError
from stream_hc.runtime.disk.keeper import Failed, Keeper, Loaded, Saved
from stream_hc.runtime.disk.lock import KeeperLocked
from stream_hc.runtime.disk.outlets import LOG, Outlets
from stream_hc.runtime.disk.place import Place
from stream_hc.runtime.disk.positions import Position
from stream_hc.runtime.disk.sinks import FileSink, SinkError
from stream_hc.runtime.disk.source import Source
from stream_hc.runtime.disk.sources import open_source, wait_for

__all__ = [
    "FITS",
    "LOG",
    "Batch",
    "Command",
    "Entry",
    "Failed",
    "FileSink",
    "Journal",
    "JournalError",
    "Keeper",
    "KeeperLocked",
    "Loaded",
    "Numbered",
    "Outlets",
    "Place",
    "Position",
    "Ranges",
    "RefitDone",
    "RefitFailed",
    "Request",
    "Saved",
    "SinkError",
    "Source",
    "StateFolder",
    "Tick",
    "open_source",
    "wait_for",
]
