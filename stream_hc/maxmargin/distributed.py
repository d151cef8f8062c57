"""Shards of H-M³ on the workers of Dask: processes of this machine, or a cluster that is there already.

Dask and its scheduler start the processes, notice when one is gone and carry the calls; this is the one
module that knows of it. Workers of Dask exchange pickled objects: use a scheduler only if you trust it.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from stream_hc.checks import whole_number
from stream_hc.maxmargin.crew import Call, Lost, WorkersError, nothing
from stream_hc.maxmargin.shards import Blueprint, OutOfStepError, Shard

__all__ = ["DaskWorkers", "Sealed", "SealedShard", "dask_workers"]

LOOK_SECONDS = 0.5  # how often it is asked whether a worker that has not answered is still there
CONNECT_SECONDS = 10.0
JOIN_SECONDS = 60.0  # to wait for a worker, if there is none at the moment
TRIES = 10  # to make one shard
SETTINGS = {
    "distributed.admin.tick.limit": "1h",  # kernels hold up nothing that matters
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.target": False,  # weights cannot be put aside to disk
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
}
CALM = "import signal\n\ndef dask_setup(worker):\n    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"


@dataclass(frozen=True)
class Sealed:
    """Something that Dask carries as one piece: a tuple of arrays it would take apart, in twice the time."""

    content: Any


class SealedShard:
    """A shard whose calls and answers are sealed."""

    def __init__(self, blueprint: Blueprint) -> None:
        self._shard = Shard(blueprint)

    def do(self, call: Sealed) -> Sealed:
        """Answer a call."""
        return Sealed(self._shard.do(*call.content))


class DaskWorkers:
    """Shards as actors: each stays with one worker, and moves to another one if that is lost.

    Parameters
    ----------
    client
        A `distributed.Client`.
    n_shards
        How many shards; best as many as workers.
    is_local
        Whether the workers are processes of this machine: `HM3(max_memory=...)` then counts what they need.

    Attributes
    ----------
    n_built
        How many shards were made: more than `n_shards` in one fit means that some were lost.
    """

    def __init__(self, client: Any, n_shards: int, is_local: bool = False) -> None:
        self.client = client
        self.n_shards = whole_number("n_shards", n_shards, 1, 1024)
        self.n_here = self.n_shards if is_local else 0
        self.n_built = 0
        self._cancelled = threading.Event()
        self._actors: dict[int, tuple[str, Any, Any]] = {}  # the address, the future that keeps it, the actor
        errors = _distributed()
        self._gone = (OSError, errors.KilledWorker, errors.client.FutureCancelledError)

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Let the fit stop soon, from any thread, with the model as far as it has come."""
        self._cancelled.set()

    def build(self, blueprint: Blueprint) -> None:
        """Make a shard on the worker that has the fewest."""
        why = ""
        for _ in range(TRIES):
            self._actors.pop(blueprint.number, None)
            address = self._least_busy()
            self.n_built += 1
            try:
                # Sent to the one worker, not through the scheduler: it may be large.
                [data] = self.client.scatter([blueprint], workers=[address], hash=False)
                future = self.client.submit(
                    SealedShard, data, actor=True, workers=[address], pure=False, allow_other_workers=False
                )
                actor = self._answer(address, future)
            except self._gone as error:  # it died on the way
                actor = Lost(f"{address} ({type(error).__name__})")
            if not isinstance(actor, Lost):
                self._actors[blueprint.number] = address, future, actor
                return
            why = actor.why
            time.sleep(LOOK_SECONDS)  # the scheduler may not know yet that it is gone
        raise WorkersError(f"no worker takes documents, the last one was {why}: look at their logs")

    def call(self, calls: dict[int, Call], meanwhile: Callable[[], None] = nothing) -> dict[int, Any]:
        """Return the answers of some shards, which work at the same time; `Lost` where one is gone."""
        asked = {number: self._ask(number, call) for number, call in calls.items()}
        meanwhile()
        answers = {}
        for number, answer in asked.items():
            if not isinstance(answer, Lost):
                answer = self._answer(self._actors[number][0], answer)
            answers[number] = answer if isinstance(answer, Lost) else answer.content
        return answers

    def release(self) -> None:
        """Forget all shards."""
        self._actors.clear()

    def _ask(self, number: int, call: Call) -> Any:
        address, _, actor = self._actors[number]
        try:
            return actor.do(Sealed(call))
        except RuntimeError as error:  # Dask knows already that it is gone
            return Lost(f"{address} ({error})")

    def _answer(self, address: str, future: Any) -> Any:
        """Wait for an answer as long as its worker is there."""
        while True:
            try:
                return future.result(timeout=LOOK_SECONDS)
            except TimeoutError:
                if address not in self._present():
                    return Lost(address)
            except (OutOfStepError, *self._gone) as error:
                return Lost(f"{address} ({type(error).__name__})")

    def _present(self) -> list[str]:
        """Return the addresses of the workers there are."""
        try:
            return list(self.client.nthreads())
        except (OSError, TimeoutError) as error:
            raise WorkersError(
                f"the scheduler of Dask is gone ({type(error).__name__}): start it again, or leave it out"
            ) from error

    def _least_busy(self) -> str:
        with suppress(TimeoutError, OSError):
            self.client.wait_for_workers(1, timeout=JOIN_SECONDS)
        busy = [address for address, _, _ in self._actors.values()]
        found = sorted(self._present(), key=lambda address: (busy.count(address), address))
        if not found:
            raise WorkersError(
                "the cluster has no workers: start some with dask worker, or leave the scheduler out"
            )
        return found[0]


@contextmanager
def dask_workers(
    n_workers: int | None = None, scheduler: str | None = None, n_shards: int | None = None
) -> Iterator[DaskWorkers]:
    """Yield workers for `HM3.fit`.

    Parameters
    ----------
    n_workers
        Processes of this machine, on its loopback address alone, which end with this one.
    scheduler
        The address of a cluster instead, such as "tcp://127.0.0.1:8786"; its workers need this package.
    n_shards
        How many shards the documents are dealt out to: as many as workers, if not given.

    Examples
    --------
    A script needs ``if __name__ == "__main__":`` around it, because the processes import its file.

    >>> from stream_hc import HM3, Taxonomy, TextVectorizer
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)])
    >>> X = TextVectorizer().learn_transform(["a racket and a net", "votes for a law"] * 4)
    >>> Y = tax.encode([{"tennis"}, {"politics"}] * 4)
    >>> with dask_workers(2) as workers:  # doctest: +SKIP
    ...     model = HM3(tax).fit(X, Y, workers=workers)

    Shards in this process are good to try things out: the same number of them gives the same model.

    >>> from stream_hc.maxmargin.crew import Here
    >>> model = HM3(tax).fit(X, Y, workers=Here(2))
    >>> model.duality_gap_ <= 0.01 * model.dual_objective_
    True
    """
    if (n_workers is None) == (scheduler is None):
        raise ValueError("give either n_workers or a scheduler")
    if n_workers is not None:
        whole_number("n_workers", n_workers, 1, 1024)
    dask, distributed = _dask(), _distributed()
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(SETTINGS))
        stack.enter_context(_quiet())
        if n_workers is not None:
            # Ctrl-C reaches them, too, but it is for the one who asks them.
            stack.enter_context(dask.config.set({"distributed.worker.preload": [CALM]}))
            cluster = distributed.LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",  # None is port 8787, for one fit at a time
                worker_dashboard_address=None,
                memory_limit=0,  # whoever limits this process limits its children
                silence_logs=logging.CRITICAL,
            )
            stack.enter_context(cluster)
            client = stack.enter_context(distributed.Client(cluster, direct_to_workers=True))
        else:
            try:
                client = distributed.Client(scheduler, timeout=CONNECT_SECONDS)
            except (OSError, ValueError) as error:
                raise WorkersError(
                    f"no scheduler of Dask at {scheduler}: "
                    "start one with dask scheduler, or look at the address"
                ) from error
            stack.enter_context(client)
        n_shards = n_shards or n_workers or max(1, len(client.nthreads()))
        yield DaskWorkers(client, n_shards, is_local=n_workers is not None)


@contextmanager
def _quiet() -> Iterator[None]:
    """Say nothing about workers that come and go: what matters becomes an error."""
    # Tornado, on which Dask is built, complains where Ctrl-C ends a call that has not begun.
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado.application")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _distributed() -> Any:
    try:
        import distributed  # noqa: PLC0415
    except ImportError:
        raise WorkersError(
            "Dask is not installed: pip install 'stream_hc[distributed]', or take one worker"
        ) from None
    return distributed


def _dask() -> Any:
    _distributed()
    import dask  # noqa: PLC0415

    return dask
