"""Requests to a job from outside: files in its state folder, taken between two batches.

They also wait there for a job that is not running, and are then taken when it starts.
"""

import os
import secrets
import time
from collections.abc import Container
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from stream_hc.snapshot.atomic import replacing

__all__ = ["Request", "post", "remove", "take"]

FOLDER = "commands"
MAX_BYTES = 10_000


class Request(NamedTuple):
    """What somebody wants: a model to answer, or the one before; `name` tells requests apart."""

    name: str
    what: Literal["promote", "rollback"]
    model: str = ""


class _Wanted(msgspec.Struct, frozen=True):
    what: Literal["promote", "rollback"]
    model: str = ""


def post(state_folder: str | Path, what: Literal["promote", "rollback"], model: str = "") -> Path:
    """Leave a request for the job with that state folder."""
    folder = Path(state_folder) / FOLDER
    folder.mkdir(exist_ok=True)
    path = folder / f"{time.time_ns():020d}-{secrets.token_hex(4)}.json"
    with replacing(str(path)) as stream:
        stream.write(msgspec.json.encode(_Wanted(what, model)))
    return path


def take(state_folder: str | Path, done: Container[str] = ()) -> list[Request]:
    """Return the requests that are there, oldest first; those `done` before and bad ones are removed."""
    folder = Path(state_folder) / FOLDER
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if entry.name.endswith(".json")]
            names = sorted(entry.name for entry in found if entry.is_file(follow_symlinks=False))
    except OSError:  # most often there is no such folder
        return []
    requests = []
    for name in names:
        path = folder / name
        with suppress(OSError, ValueError, RecursionError):  # whatever somebody put there
            if name not in done and path.stat().st_size <= MAX_BYTES:
                wanted = msgspec.json.decode(path.read_bytes(), type=_Wanted)
                requests.append(Request(name, wanted.what, wanted.model))
                continue
        remove(state_folder, name)
    return requests


def remove(state_folder: str | Path, name: str) -> None:
    """Remove a request, if it is there."""
    with suppress(OSError):
        (Path(state_folder) / FOLDER / name).unlink()
