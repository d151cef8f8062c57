"""The models that predict side by side, and which of them answers.

Online learners are always there and learn from every label. Fitted ones come and go: one that answers, the
one it replaced, and a candidate that has just been fitted.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from stream_hc.kernels import Longs
from stream_hc.learners import OnlineLearner
from stream_hc.learners.base import LabelRows, Predicted
from stream_hc.losses.mistakes import as_rows
from stream_hc.maxmargin import HM3
from stream_hc.runtime.config import JudgeConfig
from stream_hc.runtime.events import Happening
from stream_hc.runtime.scoring import Scoreboard
from stream_hc.vectorize import Rows

__all__ = ["Contender", "FittedModel", "LineUp", "OnlineModel", "Seats", "fitted_name"]

Tell = Callable[[Happening, str, str, str], None]  # what, model, before, detail


class Contender(Protocol):
    """A model that predicts."""

    @property
    def model(self) -> str:
        """Its name in predictions."""

    @property
    def version(self) -> int:
        """How many labelled documents of the stream it knows."""

    def predict(self, rows: Rows) -> Predicted:
        """Return labels with their margins."""


class OnlineModel:
    """A learner, which also learns."""

    def __init__(self, name: str, learner: OnlineLearner) -> None:
        self.model = name
        self.learner = learner

    @property
    def version(self) -> int:
        """How many labelled documents it has learned."""
        return self.learner.n_learned

    def predict(self, rows: Rows) -> Predicted:
        """Return labels with their margins."""
        return self.learner.file_rows(rows)

    def predict_then_learn(self, rows: Rows, labels: LabelRows) -> Predicted:
        """Predict each row and learn it at once, in order."""
        return self.learner.file_rows(rows, labels)

    def follow(self, rows: Rows, taught: Rows, labels: LabelRows, until: Longs) -> Predicted:
        """Predict each row after `until` of the taught ones have been learned; learn the rest at the end."""
        return self.learner.file_in_turn(rows, taught, labels, until)


class FittedModel:
    """A max-margin model, fitted to the window that ended with labelled document `version`."""

    model = "hm3"

    def __init__(self, fitted: HM3, version: int) -> None:
        self.fitted = fitted
        self.version = version

    def predict(self, rows: Rows) -> Predicted:
        """Return labels with their margins."""
        shape = (rows.indptr.size - 1, self.fitted.n_features)
        X = csr_array((rows.values, rows.indices, rows.indptr), shape=shape)
        predicted = self.fitted.predict_many(X, scores=True)
        return Predicted(*as_rows(predicted), predicted.data.astype(np.float32, copy=False))


def fitted_name(number: int) -> str:
    """Return the name of the model of a fit."""
    return f"{FittedModel.model}-{number}"


class Seats(Protocol):
    """Who answers, as kept in the snapshot: written by `LineUp`."""

    champion: str
    previous: str | None
    swapped_at: int  # documents scored by then


class LineUp:
    """The models, the champion among them, and the one that it replaced.

    Parameters
    ----------
    online
        Learners by name.
    seats
        Where champion and predecessor are written down.
    board
        The losses by which they are judged.
    config
        What it takes to become the champion.
    tell
        Called with every change.
    """

    def __init__(
        self,
        online: dict[str, OnlineLearner],
        seats: Seats,
        board: Scoreboard,
        config: JudgeConfig,
        tell: Tell,
    ) -> None:
        self.online = {name: OnlineModel(name, learner) for name, learner in online.items()}
        self.fitted: dict[str, FittedModel] = {}
        self._seats = seats
        self._board = board
        self._config = config
        self._tell = tell

    @property
    def champion(self) -> str:
        """The name of the model that answers."""
        return self._seats.champion

    @property
    def names(self) -> tuple[str, ...]:
        """All models, the champion first."""
        others = (name for name in (*self.online, *self.fitted) if name != self.champion)
        return (self.champion, *others)

    def __getitem__(self, name: str) -> Contender:
        online = self.online.get(name)
        return self.fitted[name] if online is None else online

    def __contains__(self, name: str) -> bool:
        return name in self.online or name in self.fitted

    @property
    def candidates(self) -> list[str]:
        """Fitted models that have never answered and did not answer before the champion."""
        return [name for name in self.fitted if name not in (self.champion, self._seats.previous)]

    def add(self, name: str, model: FittedModel) -> None:
        """Let a fitted model predict beside the others; candidates before it go."""
        for old in self.candidates:
            self.drop(old, f"{name} was fitted to newer documents")
        self.fitted[name] = model
        self._tell("candidate", name, self.champion, f"fitted to {model.version} labelled documents")

    def drop(self, name: str, detail: str) -> None:
        """Let a fitted model go."""
        del self.fitted[name]
        self._board.forget(name)
        self._tell("dropped", name, self.champion, detail)

    def judge(self) -> None:
        """Swap where another model is surely ahead; go back where the last swap was a mistake."""
        seats, config = self._seats, self._config
        since = self._board.n_scored - seats.swapped_at
        # To go back takes less than to go on: what was there before has shown what it can do.
        if seats.previous is not None and self._is_ahead(seats.previous, since, config.sureness / 2):
            before, detail = seats.champion, self._shown(seats.previous, since)
            self.put(seats.previous, "rollback", detail)
            if before in self.fitted:  # it has had its chance
                seats.previous = None
                self.drop(before, "did worse than what it had replaced")
            return
        others = [name for name in self.names[1:] if self._is_ahead(name, config.sample, config.sureness)]
        if others:
            best = min(others, key=lambda name: self._board.score(name).recent)
            self.put(best, "swap", self._shown(best, config.sample))
        for name in self.candidates:
            if self._board.count(name) >= config.sample:
                self.drop(name, f"not ahead: {self._shown(name, config.sample)}")

    def _is_ahead(self, name: str, last: int, sureness: float) -> bool:
        lead = self._board.lead(name, self.champion, last)
        enough = lead.n_documents >= self._config.least
        return enough and lead.share > self._config.margin and lead.sureness > sureness

    def _shown(self, name: str, last: int) -> str:
        lead = self._board.lead(name, self.champion, last)
        words = f"{100 * lead.share:.1f} % lower" if lead.share >= 0 else f"{-100 * lead.share:.1f} % higher"
        return f"H-loss {words} on {lead.n_documents} documents"

    def put(self, name: str, what: Happening, detail: str) -> None:
        """Let a model answer from now on."""
        before, seats = self.champion, self._seats
        if before == name:
            return
        seats.champion, seats.previous, seats.swapped_at = name, before, self._board.n_scored
        self._tell(what, name, before, detail)
