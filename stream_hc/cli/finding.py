"""What a path holds: one model, the snapshot of a job, or the newest sound one of a state folder."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stream_hc import snapshot
from stream_hc.cli.errors import CliError, Code, usage_error
from stream_hc.cli.making import name_of
from stream_hc.explain.views import taxonomy_of
from stream_hc.runtime.processor import FITTED, ONLINE
from stream_hc.runtime.progress import Progress
from stream_hc.runtime.scoring import Scoreboard
from stream_hc.runtime.waiting import WaitingRoom
from stream_hc.snapshot import SnapshotError
from stream_hc.taxonomy import Taxonomy
from stream_hc.vectorize import SequenceVectorizer, TextVectorizer

__all__ = ["Found", "find", "model_of"]

Vectorizer = TextVectorizer | SequenceVectorizer


@dataclass(frozen=True)
class Found:
    """What was found.

    Attributes
    ----------
    path
        Of the file; in a state folder that of the snapshot.
    models
        By name.
    champion
        Which of them answers.
    vectorizer
        None where a model was saved without it.
    parts
        All parts of the snapshot of a job; empty for a model.
    """

    path: Path
    models: dict[str, Any]
    champion: str
    vectorizer: Vectorizer | None
    parts: dict[str, Any]

    @property
    def taxonomy(self) -> Taxonomy:
        """That of the models."""
        return taxonomy_of(self.models[self.champion])


def find(path: Path) -> Found:
    """Load what a path holds, without disturbing a job that may be running."""
    if not path.is_dir():
        return _of_file(path)
    problem = "no snapshots there: name the --state folder of a job that has saved once"
    for file in sorted(path.glob("snapshot-*.snap"), reverse=True):
        try:
            found = _of_file(file)
        except SnapshotError as error:  # damaged, or replaced by a newer one just now
            problem = f"no sound snapshot there: {error}"
            continue
        if found.parts:
            return found
        problem = f"{file.name} is not of a job"
    raise CliError(f"{path}: {problem}", Code.BAD_INPUT)


def _of_file(path: Path) -> Found:
    loaded = snapshot.load(path)
    if not isinstance(loaded, dict):
        loaded = {"learner": loaded}
    progress = loaded.get("progress")
    if isinstance(progress, Progress):
        models = {
            name.removeprefix(begin): part
            for begin in (ONLINE, FITTED)
            for name, part in loaded.items()
            if name.startswith(begin)
        }
        _check(path, progress.champion, models, loaded)
        return Found(path, models, progress.champion, loaded.get("vectorizer"), loaded)
    model = loaded.get("learner")
    if not hasattr(model, "predict_many"):
        kinds = ", ".join(type(part).__name__ for part in loaded.values())
        raise CliError(f"{path}: neither a model nor the state of a job: found {kinds}", Code.BAD_SNAPSHOT)
    name, vectorizer = name_of(model), loaded.get("vectorizer")
    if vectorizer is not None and not _fit(vectorizer, model):
        raise CliError(f"{path}: its vectorizer is not that of the model", Code.BAD_SNAPSHOT)
    return Found(path, {name: model}, name, vectorizer, {})


def _check(path: Path, champion: str, models: dict[str, Any], parts: dict[str, Any]) -> None:
    """Refuse what no job has written."""
    if champion not in models:
        raise SnapshotError(f"{path}: lacks the model that answers, {champion}")
    taxonomy = taxonomy_of(models[champion])
    fit = all(
        _fit(parts.get("vectorizer"), model) and taxonomy_of(model) == taxonomy for model in models.values()
    )
    kinds = (parts.get("scores"), Scoreboard), (parts.get("waiting"), WaitingRoom)
    if not fit or not all(isinstance(part, kind) for part, kind in kinds):
        raise SnapshotError(f"{path}: its parts do not fit together")


def _fit(vectorizer: Any, model: Any) -> bool:
    return isinstance(vectorizer, Vectorizer) and vectorizer.n_features == model.n_features


def model_of(found: Found, name: str | None) -> tuple[str, Any]:
    """Return the model of that name, or the champion."""
    wanted = found.champion if name is None else name
    if wanted not in found.models:
        raise usage_error(f"there is no model {wanted!r}: choose one of {', '.join(found.models)}")
    return wanted, found.models[wanted]
