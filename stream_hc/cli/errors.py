"""Exit codes, and errors as one clean line."""

import enum
import os
import traceback

import typer

from stream_hc.cli.console import say

__all__ = ["EPILOG", "CliError", "Code", "debugging", "explain", "usage_error"]

DEBUG = "STREAM_HC_DEBUG"


class Code(enum.IntEnum):
    """What the exit code of `stream-hc` means."""

    FINE = 0
    BUG = 1
    USAGE = 2
    BAD_INPUT = 3
    BAD_SNAPSHOT = 4
    REJECTED = 5
    FENCED = 6
    STUCK = 7
    CHILD = 8
    INTERRUPTED = 130


EPILOG = (
    "Exit codes: 0 fine; 1 a bug; 2 wrong usage; 3 bad input (file, taxonomy, data set); 4 damaged or "
    "unfitting snapshot; 5 finished, but lines were rejected and no --rejects file was given; 6 another "
    "process has taken the place of this one; 7 nothing moved for too long; 8 a process that was started has "
    "failed; 130 interrupted."
)

# Typer used to take the class from click and now has its own copy: this finds it in both.
ClickException = next(cls for cls in typer.BadParameter.__mro__ if cls.__name__ == "ClickException")


class CliError(Exception):
    """Something the user can put right: one line, and the exit code."""

    def __init__(self, message: str, code: Code) -> None:
        super().__init__(message)
        self.code = code


def usage_error(message: str) -> CliError:
    """Return the error for options that do not go together or make no sense."""
    return CliError(message, Code.USAGE)


def debugging() -> bool:
    """Whether tracebacks are wanted: `--debug`, or the variable it sets."""
    return os.environ.get(DEBUG, "0") not in ("", "0")


def explain(error: Exception) -> int:
    """Write what went wrong to standard error, one line, and return the exit code."""
    if debugging():
        traceback.print_exception(error)
    message, code = _verdict(error)
    if message:
        say(f"error: {message}", style="red")
    return code


def _verdict(error: Exception) -> tuple[str, int]:
    if isinstance(error, CliError):
        return str(error), error.code
    if type(error).__name__ == "NoArgsIsHelpError":  # a group without a command
        typer.echo(str(error), err=True)
        return "", Code.USAGE
    if isinstance(error, ClickException):
        return _usage(error), Code.USAGE
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}", Code.BAD_INPUT
    # Only now: a wrong option should not wait for the learners to be imported.
    from stream_hc.datasets import DatasetError  # noqa: PLC0415
    from stream_hc.runtime.config import ConfigError  # noqa: PLC0415
    from stream_hc.runtime.disk import JournalError, SinkError  # noqa: PLC0415
    from stream_hc.runtime.jsonl import SourceError  # noqa: PLC0415
    from stream_hc.snapshot import SnapshotError  # noqa: PLC0415
    from stream_hc.taxonomy import TaxonomyError  # noqa: PLC0415

    if isinstance(error, SnapshotError):
        return str(error), Code.BAD_SNAPSHOT
    if isinstance(error, TaxonomyError | DatasetError | SourceError | SinkError | JournalError | ConfigError):
        return str(error), Code.BAD_INPUT
    if isinstance(error, MemoryError):
        return f"out of memory: try fewer documents or a smaller --n-features ({error})", Code.BUG
    remedy = (
        "please report it" if debugging() else "run stream-hc --debug ... for the traceback and report it"
    )
    return f"this is a bug: {type(error).__name__}: {error} ({remedy})", Code.BUG


def _usage(error: Exception) -> str:
    message = str(getattr(error, "format_message", lambda: error)()).strip()
    context = getattr(error, "ctx", None)
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    return f"{message[0].lower()}{message[1:].rstrip('.')}{hint}"
