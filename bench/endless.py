"""A stream that never stops bringing new words: what a document costs, and what is held, after a million.

Every document is filed as usual: words are hashed into the columns of the vectorizer, the rows predicted
and learned. A fifth of the words of a document was never seen before and will not be seen again.
"""

import statistics
import time
from dataclasses import dataclass

import numpy as np

from bench.rounds import progress
from bench.streams import news_like
from stream_hc import HAROW, TextVectorizer

__all__ = ["Endless", "run_endless"]

N_FEATURES = 2**16  # small enough that every column is in use long before the end
BATCH = 10_000
STEPS = 10  # how many lines the report has


@dataclass(frozen=True)
class Endless:
    """Measurements of one run; the lists have an entry for each tenth of it.

    `slowdown` is the median time of a batch in the last fifth over that in the second fifth.
    """

    documents: int
    rates: list[float]
    held: list[int]
    bound: int
    slowdown: float

    @property
    def growth(self) -> float:
        """Bytes held at the end over bytes held after the first half."""
        return self.held[-1] / self.held[STEPS // 2 - 1]


def run_endless(documents: int = 1_000_000, seed: int = 0) -> Endless:
    """File so many documents, batch after batch."""
    batches = max(STEPS, documents // BATCH)
    size = documents // batches
    stream = news_like(size, seed)
    Y = stream.taxonomy.encode(stream.labels)
    vectorizer, model = TextVectorizer(N_FEATURES), HAROW(stream.taxonomy, N_FEATURES)
    rng = np.random.default_rng(seed)
    seconds, held, fresh = [], [], 0
    with progress() as bar:
        task = bar.add_task("endless vocabulary", total=batches)
        for batch in range(batches):
            texts, fresh = _with_new_words(stream.texts, fresh)
            order = rng.permutation(size)
            shuffled = [texts[row] for row in order.tolist()]
            labels = Y[order]
            start = time.process_time()  # of this process alone: a batch is compared with one minutes later
            model.predict_then_learn(vectorizer.learn_transform(shuffled), labels)
            seconds.append(time.process_time() - start)
            if (batch + 1) % (batches // STEPS) == 0:
                held.append(model.nbytes + _bytes_of(vectorizer))
            bar.update(task, advance=1, refresh=True)
    tenth, fifth = batches // STEPS, batches // 5
    rates = [size / statistics.median(seconds[k * tenth : (k + 1) * tenth]) for k in range(STEPS)]
    slowdown = statistics.median(seconds[-fifth:]) / statistics.median(seconds[fifth : 2 * fifth])
    return Endless(size * batches, rates, held[:STEPS], _bound(len(stream.taxonomy)), slowdown)


def _with_new_words(texts: list[str], fresh: int) -> tuple[list[str], int]:
    """Append 18 numbered words to every text, none of them used before."""
    numbers = range(fresh, fresh + 18 * len(texts))
    words = [f"n{number:x}" for number in numbers]
    longer = [f"{text} {' '.join(words[18 * k : 18 * k + 18])}" for k, text in enumerate(texts)]
    return longer, numbers.stop


def _bytes_of(vectorizer: TextVectorizer) -> int:
    """Count how many documents each column was seen in: 4 bytes a column, and nothing else."""
    return 4 * vectorizer.n_features


def _bound(n_nodes: int) -> int:
    """Return what is held at most: a weight and a variance of each padded node in each column, and counts."""
    width = -(-n_nodes // 16) * 16
    return (N_FEATURES + 1) * width * 4 * 2 + 4 * N_FEATURES
