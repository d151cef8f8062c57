"""The work behind `stream-hc warmup`: call every kernel once, the way the commands call it."""

import time
from collections.abc import Callable
from functools import partial

from stream_hc import losses, metrics, snapshot
from stream_hc.cli.console import out, progress_bar, watched
from stream_hc.datasets import make_news
from stream_hc.evaluate import progressive, vectorize_dataset
from stream_hc.learners import HAROW, LEARNERS, NodePA, RankingPerceptron, SecondOrderLearner
from stream_hc.maxmargin import HM3, RankingSVM
from stream_hc.runtime import Document, Filer, Line, Processor
from stream_hc.taxonomy import Taxonomy, truncate_rows
from stream_hc.vectorize import SequenceVectorizer, TextVectorizer, hash_features

__all__ = ["steps", "warm_up"]

DIAMOND = Taxonomy([("a", None), ("b", "a"), ("c", "a"), ("d", "b"), ("d", "c")])


def warm_up() -> None:
    """Compile what is not compiled yet, with a progress bar on a terminal, and say how long it took."""
    began = time.perf_counter()
    with progress_bar("compiling", len(steps()), watched(output_is_stdout=False)) as update:
        for done, (name, step) in enumerate(steps().items()):
            update(done, name)
            step()
    out().print(f"all kernels are compiled ({time.perf_counter() - began:.1f} s)")


def steps() -> dict[str, Callable[[], object]]:
    """Return what there is to call, by name: in any order, and in any process."""
    return {
        "text": _text,
        **{name: partial(_learner, name) for name in LEARNERS},
        "max-margin": _max_margin,
        "losses": _losses,
        "metrics": _metrics,
    }


def _text() -> None:
    for words in (TextVectorizer(64), TextVectorizer(64, ngrams=(1, 2), tf="raw")):
        words.learn_transform(["plain text", "übergroße Wörter"])
        words.transform_one("a word")
    hash_features(["a word"])
    SequenceVectorizer(64).transform(["MELP"])


def _learner(name: str) -> None:
    news = make_news(64)  # enough for an index of what second-order learners have stored
    kind = LEARNERS[name]
    X = vectorize_dataset(news, 1024)
    Y = news.taxonomy.encode(news.labels)
    model = kind(news.taxonomy, n_features=1024)
    for delay in (0, 2):
        progressive(model, X, Y, delay=delay)
    model.margins(X)
    if isinstance(model, SecondOrderLearner):
        model.query_many(X)
    if isinstance(model, RankingPerceptron):
        model.clone().fit(X[:8], Y[:8], max_steps=8)
    growing = kind(n_features=1024)
    growing.learn_one({"word": 1.0, 3: 0.5}, {"sport"})
    growing.predict_proba_one({"word": 1.0})
    filer = Filer(news.taxonomy, snapshot.load_bytes(snapshot.dump_bytes(model)))
    filer = Filer(news.taxonomy, filer.learner, TextVectorizer(1024))
    documents = [Document("1", text="a word", labels=["sport"]), Document("2", features={"a": 1.0})]
    filer.file(documents).answers.json_lines()
    processor = Processor(news.taxonomy, {"a": HAROW(news.taxonomy), "b": NodePA(news.taxonomy)})
    lines = [f'{{"id": "{k}", "text": "a word", "labels": []}}'.encode() for k in range(400)]
    processor.process([Line(number, line) for number, line in enumerate(lines)])


def _max_margin() -> None:
    news = make_news(8)
    X = vectorize_dataset(news, 1024)
    dag = HM3(DIAMOND, "symmetric_difference", n_features=1024)
    models = [(HM3(news.taxonomy, n_features=1024), news.labels), (dag, [{"d"}, {"b"}] * 4)]
    for model, labels in models:
        model.fit(X, labels)
        model.predict_many(X, scores=True)
        model.predict_proba(X)
        model.fit_kernel((X @ X.T).toarray(), labels)
    ranking = RankingSVM(news.taxonomy, n_features=1024).fit(X, news.labels)
    ranking.predict_many(X)
    ranking.margins(X)


def _losses() -> None:
    news = make_news(8)
    for taxonomy, sets in ((news.taxonomy, news.labels), (DIAMOND, [{"d"}, {"b"}])):
        Y, Y_pred = taxonomy.encode(sets), taxonomy.encode(sets[::-1])
        for loss in (losses.zero_one, losses.symmetric_difference, losses.h_loss):
            loss(taxonomy, Y_pred, Y)
        if taxonomy.is_tree:
            losses.h_tilde_loss(taxonomy, Y_pred, Y)
        losses.h_loss_by_depth(taxonomy, Y_pred, Y)
        losses.tree_induced_error(taxonomy, taxonomy.nodes[0], taxonomy.nodes[-1])
        scores = Y_pred.toarray().astype(float)
        for measure in (losses.average_precision, losses.ranking_loss, losses.maximal_loss):
            measure(taxonomy, scores, Y)
        truncate_rows(taxonomy, Y)


def _metrics() -> None:
    news = make_news(8)
    for kind in (
        metrics.HLoss,
        metrics.HTildeLoss,
        metrics.ZeroOneLoss,
        metrics.MacroF1,
        metrics.HierarchicalF1,
    ):
        metric = kind(news.taxonomy)
        metric.update(news.labels[0], news.labels[1])
        metric.update_many(news.labels, news.labels[::-1])
