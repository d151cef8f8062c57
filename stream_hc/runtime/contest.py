"""The models in competition: their losses are counted, now and then one is fitted anew or swapped in."""

from collections.abc import Callable, Mapping

from stream_hc.kernels import Doubles, Ints
from stream_hc.learners import OnlineLearner
from stream_hc.learners.base import LabelRows
from stream_hc.maxmargin import HM3
from stream_hc.runtime.config import Config
from stream_hc.runtime.contenders import FittedModel, LineUp, fitted_name
from stream_hc.runtime.drift import DriftDetector
from stream_hc.runtime.events import Event, Happening, Standing
from stream_hc.runtime.fitting import fit_failed, fit_reason, request_fit
from stream_hc.runtime.outcome import FitRequest, Fitted, Outcome
from stream_hc.runtime.progress import Progress
from stream_hc.runtime.scoring import SERVED, Scoreboard
from stream_hc.runtime.waiting import Census, WaitingRoom
from stream_hc.runtime.window import Window
from stream_hc.vectorize import Rows

__all__ = ["Contest", "Fetch"]

LOOKS_A_STANDING = 4  # so many looks at the models make one line of the log
Fetch = Callable[[FitRequest], Fitted]


class Contest:
    """Counts losses as labels come, and decides after every so many of them who answers.

    Parameters
    ----------
    learners
        By name.
    config
        Of the whole job.
    parts
        Progress, window, scoreboard and drift detector, from a snapshot or fresh.
    room
        Whose numbers belong to the standing.
    fetch
        Returns the model asked for, where fits go in step with the stream.
    """

    def __init__(
        self,
        learners: Mapping[str, OnlineLearner],
        config: Config,
        parts: tuple[Progress, Window, Scoreboard, DriftDetector],
        room: WaitingRoom,
        fetch: Fetch | None,
    ) -> None:
        self.progress, self.window, self.board, self.drift = parts
        self.line_up = LineUp(dict(learners), self.progress, self.board, config.judge, self._tell)
        self.outcome = Outcome()
        self._config = config
        self._room = room
        self._keeps_rows = config.refit.enabled or config.labels.changed == "learn"
        self._fetch = fetch
        self.request: FitRequest | None = None  # the fit under way

    @property
    def every(self) -> int:
        """How many labelled documents are between two looks; one learner alone is looked at for the log."""
        judge = self._config.judge
        is_alone = len(self.line_up.online) == 1 and not self._config.refit.enabled
        return judge.every * LOOKS_A_STANDING if is_alone else judge.every

    @property
    def until_look(self) -> int:
        """How many labelled documents are to come until the models are looked at."""
        return self.every - self.progress.labelled % self.every

    def count(
        self, rows: Rows, labels: LabelRows, losses: dict[str, Doubles], charged: tuple[Ints, Doubles]
    ) -> None:
        """Count labelled documents, up to the next look; `charged` are depths and costs of those served."""
        n_rows = int(rows.indptr.size - 1)
        self.board.add(
            {name: each for name, each in losses.items() if name in self.line_up or name == SERVED}, n_rows
        )
        self.board.add_depths(*charged)
        if self._keeps_rows:
            self.window.push(rows, labels)
        else:
            self.window.skip(n_rows)
        self.progress.labelled += n_rows
        if self._config.refit.enabled and self._config.refit.drift:
            self.drift.note(losses[SERVED])

    def _watch(self) -> None:
        if self.drift.look():
            recent = self.board.score(SERVED).recent
            self._tell("drift", self.line_up.champion, "", f"H-loss {recent:.3f} lately")
            self.progress.drift = True
            for name in self.line_up.candidates:
                self.line_up.drop(name, "fitted before the drift")

    def look(self, census: Census, ahead: int = 0) -> None:
        """Decide what is due after so many labelled documents; learners may be some documents ahead."""
        progress, config = self.progress, self._config
        self._watch()
        request, fetch = self.request, self._fetch
        if (
            request is not None
            and fetch is not None
            and progress.labelled >= request.window.end + config.refit.lag
        ):
            self.finish(fetch(request))
        if config.judge.enabled and progress.labelled >= progress.held_until:
            self.line_up.judge()
        self.ask_for_a_fit()
        if progress.labelled % (config.judge.every * LOOKS_A_STANDING) == 0:
            self.outcome.log.append(self.standing(census, ahead))

    def ask_for_a_fit(self) -> None:
        """Request a fit if one is due; while a candidate is being judged, none is."""
        progress, refit = self.progress, self._config.refit
        if self.line_up.candidates and self._config.judge.enabled:
            return
        reason = fit_reason(progress, refit, self._room.now)
        if reason is None:
            return
        request_fit(progress, reason, self._room.now)
        self._tell("refit", fitted_name(progress.fits), "", reason)
        self.renew_request(self.window.view())

    def renew_request(self, window: Window) -> None:
        """Ask for the fit under way, after a restart once more."""
        if self.progress.outstanding is not None:
            warm = self.progress.fitted if self._config.refit.warm else None
            self.request = FitRequest(self.progress.outstanding.number, window, warm)
            if self._fetch is None:
                self.outcome.fit = self.request

    def finish(self, fitted: Fitted) -> None:
        """Take the result of the fit under way; that of another one is ignored."""
        progress = self.progress
        if progress.outstanding is None or progress.outstanding.number != fitted.number:
            return
        self.request = None
        if fitted.model is None:
            self._tell("refit_failed", fitted_name(fitted.number), "", fitted.problem)
            fit_failed(progress)
            return
        version = progress.outstanding.labelled
        progress.outstanding, progress.failures, progress.fitted = None, 0, fitted.number
        self.add(fitted_name(fitted.number), fitted.model, version)

    def add(self, name: str, model: HM3, version: int) -> None:
        """Let a fitted model join in."""
        self.line_up.add(name, FittedModel(model, version))

    def promote(self, name: str) -> None:
        """Let a model answer because somebody says so; `ValueError` if there is no such model."""
        if name not in self.line_up:
            raise ValueError(f"there is no model {name}: choose one of {', '.join(self.line_up.names)}")
        self.line_up.put(name, "promoted", "on request")
        self._hold()

    def rollback(self) -> None:
        """Let the model before answer again because somebody says so; `ValueError` if there is none."""
        if self.progress.previous is None:
            raise ValueError(f"{self.line_up.champion} has replaced no model that is still there")
        self.line_up.put(self.progress.previous, "rollback", "on request")
        self._hold()

    def _hold(self) -> None:
        """Let nobody undo a request before there are labels for what came of it."""
        self.progress.held_until = self.progress.labelled + self._config.judge.sample

    def standing(self, census: Census | None = None, ahead: int = 0) -> Standing:
        """Return where everything stands; the census is that of now unless given."""
        census = self._room.census() if census is None else census
        progress, names = self.progress, self.line_up.names
        version = self.line_up[names[0]].version - (ahead if names[0] in self.line_up.online else 0)
        return Standing(
            progress.documents,
            progress.labelled,
            names[0],
            version,
            self.board.score(SERVED),
            {name: self.board.score(name) for name in sorted(names)},
            self.board.by_depth.tolist(),
            *census,
        )

    def _tell(self, what: Happening, model: str, before: str, detail: str) -> None:
        progress = self.progress
        progress.happened[what] = progress.happened.get(what, 0) + 1
        event = Event(what, progress.documents, progress.labelled, model, before, detail)
        self.outcome.log.append(event)
