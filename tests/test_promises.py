"""What the kernels and the package promise beyond right answers: no GIL, no allocations, a quick start."""

import importlib
import os
import pkgutil
import resource
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import _nrt_python, rtsys

import stream_hc.kernels
from stream_hc import TextVectorizer
from stream_hc.datasets import make_news
from stream_hc.learners import LEARNERS, LinearLearner
from stream_hc.learners.base import LabelRows
from stream_hc.vectorize import feature_rows

LINEAR = [kind for kind in LEARNERS.values() if issubclass(kind, LinearLearner)]


def every_kernel():
    for module in pkgutil.iter_modules(stream_hc.kernels.__path__):
        for name, value in vars(importlib.import_module(f"stream_hc.kernels.{module.name}")).items():
            if isinstance(value, Dispatcher):
                yield f"{module.name}.{name}", value


@pytest.mark.compiled
def test_every_kernel_is_cached_and_runs_without_the_gil():
    kernels = dict(every_kernel())
    assert len(kernels) > 10
    assert [name for name, kernel in kernels.items() if not kernel.targetoptions.get("nogil")] == []
    assert [name for name, kernel in kernels.items() if kernel._cache.cache_path is None] == []


def rows(n):
    news = make_news(n)
    return (
        news.taxonomy,
        TextVectorizer(2**12).learn_transform(news.documents),
        news.taxonomy.encode(news.labels),
    )


@pytest.mark.compiled
def test_other_threads_run_while_a_batch_is_learned():
    taxonomy, X, Y = rows(20_000)
    model = LINEAR[0](taxonomy, n_features=2**12)
    model.predict_then_learn(X[:10], Y[:10])
    documents = feature_rows(X, 2**12)
    labels = LabelRows(Y.indptr.astype(np.int64), Y.indices.astype(np.int32))
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    ticking = threading.Thread(target=tick)
    ticking.start()
    begin = time.perf_counter()
    model._stream(documents, labels, delay=0)
    end = time.perf_counter()
    done.set()
    ticking.join()
    inside = [t for t in ticks if begin < t < end]
    assert len(inside) > 3
    assert max(np.diff([begin, *inside, end])) < (end - begin) / 2


@pytest.mark.compiled
@pytest.mark.parametrize("kind", LINEAR)
def test_a_kernel_allocates_per_batch_not_per_document(kind):
    taxonomy, X, Y = rows(4_000)
    model = kind(taxonomy, n_features=2**12)
    model.predict_then_learn(X, Y)  # every feature has its row now

    def allocations(n):
        before = rtsys.get_allocation_stats().alloc
        model.predict_then_learn(X[:n], Y[:n])
        return rtsys.get_allocation_stats().alloc - before

    enabled = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    try:
        assert allocations(100) > 0
        assert allocations(4_000) <= allocations(500) + 4  # the list of predictions may double now and then
    finally:
        if not enabled:
            _nrt_python.memsys_disable_stats()


@pytest.mark.compiled
@pytest.mark.parametrize("kind", LINEAR)
def test_the_same_bits_on_repetition(kind):
    taxonomy, X, Y = rows(2_000)
    states = []
    for _ in range(2):
        model = kind(taxonomy, n_features=2**12)
        model.predict_then_learn(X, Y)
        states.append(model.state())
    assert states[0]["weights"].tobytes() == states[1]["weights"].tobytes()


def test_import_takes_well_under_a_second():
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import stream_hc"], check=True, env=os.environ)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.7


@pytest.mark.compiled
def test_the_first_learner_does_not_compile_anything():
    code = (
        "from stream_hc import HPerceptron, Taxonomy\n"
        "tax = Taxonomy([('a', None)])\n"
        "model = HPerceptron(tax)\n"
        "model.learn_one({'x': 1.0}, {'a'})\n"
        "model.predict_one({'x': 1.0})\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # fills the cache
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime - before.ru_utime)
    assert min(seconds) < 2.0  # compiling takes more than five
