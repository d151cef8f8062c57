"""Several nodes at a time: kernels release the interpreter, and no node depends on another."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

__all__ = ["Workers", "processors"]

Task = TypeVar("Task")
Answer = TypeVar("Answer")


class Workers:
    """Threads for kernels that write to different places: which one does what never changes the answer."""

    def __init__(self) -> None:
        self.n_threads = processors()
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def map(self, call: Callable[[Task], Answer], tasks: Iterable[Task]) -> list[Answer]:
        """Return what each call returns; as many run at a time as there are processors."""
        tasks = list(tasks)
        if len(tasks) < 2 or self.n_threads == 1:
            return [call(task) for task in tasks]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_threads)
        return list(self._pool.map(call, tasks))


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
