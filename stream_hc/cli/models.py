"""`stream-hc models | promote | rollback`: see the models of a job, and say which one answers."""

import fcntl
import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from stream_hc.cli.console import clean, out, say
from stream_hc.cli.errors import CliError, Code, usage_error

if TYPE_CHECKING:
    from stream_hc.runtime.events import Standing
    from stream_hc.runtime.progress import Progress

__all__ = ["models", "promote", "rollback"]

FolderArgument = Annotated[
    Path, typer.Argument(metavar="STATE", help="The state folder of the job.", show_default=False)
]


class Model(NamedTuple):
    """A model of a job, as far as its last snapshot and its log know it."""

    name: str
    role: str
    version: int
    scored: int
    mean: float | None
    recent: float | None


def models(
    folder: FolderArgument,
    json: Annotated[bool, typer.Option("--json", help="The same as a JSON list.")] = False,
) -> None:
    """List the models of a job with their H-loss, as of its last snapshot.

    The champion answers; the one it replaced stands by for a rollback; a candidate is being judged.
    """
    found = _models(folder)
    if json:
        typer.echo(json_format.dumps([model._asdict() for model in found], indent=2, ensure_ascii=False))
        return
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table("model", "role", "knows", "scored", "H-loss", "lately")
    for column in table.columns[2:]:
        column.justify = "right"
    for model in found:
        losses = ["" if loss is None else f"{loss:.4f}" for loss in (model.mean, model.recent)]
        cells = [model.name, model.role, f"{model.version:,}", f"{model.scored:,}", *losses]
        style = "bold" if model.role == "champion" else ""
        table.add_row(*(Text(clean(cell), style=style) for cell in cells))
    out().print(table)


def promote(
    folder: FolderArgument,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Its name in the list of models.")],
) -> None:
    """Let a model answer from now on: at once in a job that runs, else when it is started again."""
    from stream_hc.runtime.disk.commands import post  # noqa: PLC0415

    names = [found.name for found in _models(folder)]
    if model not in names:
        raise usage_error(f"there is no model {model!r}: choose one of {', '.join(names)}")
    post(folder, "promote", model)
    say(f"asked for {model}: {_when(folder)}")


def rollback(folder: FolderArgument) -> None:
    """Let the model before the last swap answer again: at once in a job that runs, or when it starts."""
    from stream_hc.runtime.disk.commands import post  # noqa: PLC0415

    _progress(folder)
    post(folder, "rollback")
    say(f"asked for a rollback: {_when(folder)}")


def _models(folder: Path) -> list[Model]:
    progress, versions = _progress(folder)
    standing = _last_standing(folder)
    scores = {} if standing is None else standing.scores
    roles = {progress.champion: "champion", progress.previous: "stands by"}
    found = []
    for name, version in versions.items():
        score = scores.get(name)
        role = roles.get(name, "candidate" if name in progress.fitted_versions else "learns")
        known = score is not None and score.scored > 0
        losses = (score.mean, score.recent) if score is not None and known else (None, None)
        found.append(Model(name, role, version, 0 if score is None else score.scored, *losses))
    return found


def _progress(folder: Path) -> tuple["Progress", dict[str, int]]:
    """Return what the header of the newest sound snapshot tells: quick, however large the models are."""
    from stream_hc.runtime.processor import ONLINE  # noqa: PLC0415
    from stream_hc.runtime.progress import Progress  # noqa: PLC0415
    from stream_hc.snapshot import SnapshotError, inspect  # noqa: PLC0415

    problem = "no snapshots there: name the --state folder of a job that has saved once"
    for path in sorted(folder.glob("snapshot-*.snap"), reverse=True):
        try:
            parts = {part.name: part for part in inspect(path).parts}
            progress = Progress.from_state(parts["progress"].scalars)
        except (SnapshotError, KeyError, ValueError) as error:
            problem = f"no sound snapshot of a job there: {error}"
            continue
        online: dict[str, Any] = {
            name.removeprefix(ONLINE): part.scalars["t"]
            for name, part in parts.items()
            if name.startswith(ONLINE)
        }
        return progress, {**online, **progress.fitted_versions}
    raise CliError(f"{folder}: {problem}", Code.BAD_INPUT)


def _last_standing(folder: Path) -> "Standing | None":
    """Return the last standing in the log; a job that runs may just be writing the line behind it."""
    import msgspec  # noqa: PLC0415

    from stream_hc.runtime.disk.outlets import LOG  # noqa: PLC0415
    from stream_hc.runtime.events import Standing  # noqa: PLC0415

    log = folder / LOG
    whole, _, _ = log.read_bytes().rpartition(b"\n") if log.exists() else (b"", b"", b"")
    found = [line for line in whole.split(b"\n") if line.startswith(b'{"line":"standing"')]
    try:
        return msgspec.json.decode(found[-1], type=Standing) if found else None
    except msgspec.DecodeError as error:
        raise CliError(f"{log}: damaged: {error}", Code.BAD_INPUT) from None


def _when(folder: Path) -> str:
    """Say when a request will be carried out: a job that runs holds the lock of its folder."""
    with open(folder / "lock", "rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return "the job takes it up at once"
    return "the job takes it up when it is started"
