"""Where the results of a job go: predictions, rejected lines, requests for labels, and the log."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import msgspec

from stream_hc.runtime.disk.sinks import FileSink
from stream_hc.runtime.log import encode_line
from stream_hc.runtime.outcome import Outcome
from stream_hc.runtime.records import Reject

__all__ = ["LOG", "Outlets"]

LOG = "log.jsonl"  # in the state folder


class Outlets:
    """The files of a job; those that are not asked for are not there.

    Parameters
    ----------
    paths
        Of `output`, `rejects`, `requests` and `log`; None for what is not wanted.
    lengths
        Of an earlier run that goes on: what is behind them is cut off. Without it the files begin anew.
    append
        Go on behind whatever the files hold.
    names_source
        Say of a rejected line which source it is from.
    """

    def __init__(
        self,
        paths: Mapping[str, str | None],
        lengths: Mapping[str, int] | None = None,
        append: bool = False,
        names_source: bool = False,
    ) -> None:
        self._names_source = names_source
        self._encoder = msgspec.json.Encoder()
        self._sinks: dict[str, FileSink] = {}
        with ExitStack() as stack:
            for name, path in paths.items():
                if path is not None:
                    length = _size(path) if append else (lengths or {}).get(name)
                    self._sinks[name] = stack.enter_context(FileSink(path, length))
            self._closing = stack.pop_all()

    def write(self, outcome: Outcome, source: str) -> None:
        """Write all of an outcome; nothing stays in a buffer."""
        if "output" in self._sinks:
            self._put("output", b"".join(answers.json_lines() for answers in outcome.answers))
        if outcome.rejects and "rejects" in self._sinks:
            named = source if self._names_source else msgspec.UNSET
            rejects = [
                Reject(
                    line.number,
                    error.reason,
                    error.detail,
                    line.data.decode(errors="backslashreplace"),
                    line.too_long,
                    named,
                )
                for line, error in outcome.rejects
            ]
            self._put("rejects", self._encoder.encode_lines(rejects))
        self._put("requests", self._encoder.encode_lines(outcome.requests) if outcome.requests else b"")
        self._put("log", b"".join(map(encode_line, outcome.log)))

    def _put(self, name: str, data: bytes) -> None:
        sink = self._sinks.get(name)
        if sink is not None and data:
            sink.write(data)

    @property
    def lengths(self) -> dict[str, int]:
        """Bytes of each file that can be cut back."""
        return {name: sink.length for name, sink in self._sinks.items() if sink.length is not None}

    @property
    def paths(self) -> list[str]:
        """The files that can be cut back."""
        return [self._sinks[name].path for name in self.lengths]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()


def _size(path: str) -> int | None:
    file = Path(path)
    return file.stat().st_size if path != "-" and file.is_file() else None
