"""Our side: the learners on rows and dictionaries, the vectorizer, the whole way from a line of JSON."""

from collections.abc import Callable
from typing import Any

from bench.contest import Contestant, Entrant, mid_stream
from bench.material import Material, Split
from stream_hc import HAROW, HPA, HPerceptron, NodePA, Perceptron, Taxonomy, TextVectorizer
from stream_hc.learners import LinearLearner, OnlineLearner
from stream_hc.runtime import Line
from stream_hc.runtime.pipeline import Pipeline
from stream_hc.runtime.processor import Processor

__all__ = ["BATCH", "DICTS", "JSON_LINES", "LEARNERS", "TEXTS", "entrants", "from_dicts", "from_json"]
__all__ += ["HPA_LINES", "HPA_ROWS", "from_rows", "from_texts", "of_paths"]

BATCH = 1_000
LINES = 2_000  # a batch: about what `stream-hc run` reads at a time
TEXTS = "TextVectorizer"
JSON_LINES = "JSON lines → H-PERC → JSON"
DICTS = "H-PERC, dicts"
HPA_ROWS = "HPA"
HPA_LINES = "JSON lines → HPA → JSON"

ROWS_GROUP = "rows → predict + learn"
TEXT_GROUP = "text → rows"
RAW_GROUP = "raw text → predict + learn"
DICT_GROUP = "dicts, one by one → predict + learn"

Make = Callable[[Taxonomy], LinearLearner]

LEARNERS: dict[str, Make] = {
    "H-PERC": HPerceptron,
    "H-PERC, judged by node": lambda taxonomy: HPerceptron(taxonomy, judged_by="node"),
    "PERC": Perceptron,
    "node PA": NodePA,
    "H-AROW": HAROW,
}


def from_rows(material: Material, names: list[str] | None = None) -> list[Contestant]:
    """Learners on sparse rows."""
    X, Y, taxonomy = material.X, material.Y, material.stream.taxonomy

    def contestant(name: str, make: Make) -> Contestant:
        return Contestant(
            name,
            ROWS_GROUP,
            X.shape[0],
            lambda model: model.predict_then_learn(X, Y),
            lambda: make(taxonomy),
            ours=True,
        )

    return [contestant(name, LEARNERS[name]) for name in names or LEARNERS]


def from_texts(material: Material) -> Contestant:
    """Tokens, hash, counts, weights."""
    texts = material.stream.texts
    learned = TextVectorizer()
    learned.learn(texts)
    return Contestant(TEXTS, TEXT_GROUP, len(texts), lambda _: learned.transform(texts), ours=True)


def from_json(
    material: Material, name: str = JSON_LINES, make: Callable[[Taxonomy], OnlineLearner] = HPerceptron
) -> Contestant:
    """Do what `stream-hc run` does between reading and writing."""
    lines = [Line(number, data) for number, data in enumerate(material.lines, 1)]
    taxonomy = material.stream.taxonomy
    batches = [lines[start : start + LINES] for start in range(0, len(lines), LINES)]

    def run(processor: Processor) -> list[bytes]:
        with Pipeline(processor) as pipeline:
            done = [*(pipeline.put("lines", batch) for batch in batches), pipeline.flush()]
        return [part.json_lines() for each in done if each for part in each.outcome.answers]

    return Contestant(
        name,
        RAW_GROUP,
        len(lines),
        run,
        lambda: Processor(taxonomy, {"learner": make(taxonomy)}),
        ours=True,
    )


def of_paths(material: Material) -> list[Contestant]:
    """Return HPA, which stands thousands of nodes, on sparse rows and from lines of JSON."""
    X, Y, taxonomy = material.X, material.Y, material.stream.taxonomy
    rows = Contestant(
        HPA_ROWS,
        ROWS_GROUP,
        X.shape[0],
        lambda model: model.predict_then_learn(X, Y),
        lambda: HPA(taxonomy),
        ours=True,
    )
    return [rows, from_json(material, HPA_LINES, HPA)]


def from_dicts(material: Material) -> Contestant:
    """River's interface: a dictionary in, a dictionary out, then one to learn."""
    stream = material.stream
    return mid_stream(
        DICTS,
        DICT_GROUP,
        len(stream.texts),
        lambda: list(zip(material.dicts, stream.labels, strict=True)),
        lambda: HPerceptron(stream.taxonomy),
        ours=True,
    )


def entrants() -> list[Entrant]:
    """All learners, with the settings worth a row in the table."""
    makes = LEARNERS | {
        "H-AROW, r=1": lambda taxonomy: HAROW(taxonomy, r=1.0),
        "H-AROW, r=3, learned thresholds": lambda taxonomy: HAROW(taxonomy, r=3.0, threshold="learned"),
        "node PA, C=0.7, threshold −0.2": lambda taxonomy: NodePA(taxonomy, C=0.7, threshold=-0.2),
        # Chosen on seed 1 among some 100 settings, most of them ways to learn the thresholds.
        "node PA, C=0.5, learned thresholds": lambda taxonomy: NodePA(taxonomy, C=0.5, threshold="learned"),
    }

    def entrant(name: str, make: Make) -> Entrant:
        def predict(split: Split) -> Any:
            model = make(split.train.stream.taxonomy)
            model.learn_many(split.X_train, split.train.Y)
            return model.predict_many(split.X_test)

        return Entrant(name, predict, ours=True)

    return [entrant(name, make) for name, make in makes.items()]
