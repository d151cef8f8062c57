"""A plausible log: three learners, a drift half-way, re-fits, H-M³ swapped in, rolled back, and in again."""

import math
import random

from stream_hc.runtime.events import Event, Score, Standing
from stream_hc.runtime.log import RunLog

LEARNERS = {"h-arow": (0.55, 1500), "h-perc": (0.78, 900), "hpa": (0.66, 2200)}  # where it settles, how fast
DRIFT, HM3_IN, BACK, HM3_AGAIN = 6_000, 3_200, 6_350, 8_400


# First and last labelled document of each fitted model.
FITS = {"hm3-1": (2_300, BACK), "hm3-2": (4_100, 4_900), "hm3-3": (8_100, 99_999), "hm3-4": (11_200, 99_999)}


def champion_at(labelled: int) -> str:
    if HM3_IN <= labelled < BACK:
        return "hm3-1"
    return "h-arow" if labelled < HM3_AGAIN else "hm3-3"


def loss_at(model: str, labelled: int) -> float:
    after_drift = labelled - DRIFT
    if model in FITS:
        fitted = 0.47 + 0.03 * math.cos(labelled / 500) + (0.06 if model == "hm3-2" else 0)
        return fitted if after_drift < 0 or labelled > 8_000 else 1.15 - 0.2 * math.exp(-after_drift / 800)
    settles, speed = LEARNERS[model]
    since = labelled if labelled < DRIFT else after_drift
    return settles + (1.6 - settles) * math.exp(-since / speed) * (1 if labelled < DRIFT else 0.55)


def make_log(n_labelled: int = 12_000, step: int = 100, seed: int = 7, delay: int = 500) -> RunLog:
    rng = random.Random(seed)
    sums: dict[str, float] = {}
    scored: dict[str, int] = {}
    served_sum, recents = 0.0, {}
    standings = []
    for labelled in range(step, n_labelled + 1, step):
        models = [*LEARNERS, *(fit for fit, (first, last) in FITS.items() if first < labelled < last)]
        for model in models:
            loss = max(0.05, loss_at(model, labelled) + rng.gauss(0, 0.035))
            sums[model] = sums.get(model, 0.0) + loss * step
            scored[model] = scored.get(model, 0) + step
            recents[model] = 0.6 * recents.get(model, loss) + 0.4 * loss
        champion = champion_at(labelled)
        served_sum += recents[champion] * step
        mean = served_sum / labelled
        standings.append(
            Standing(
                documents=labelled + delay,
                labelled=labelled,
                champion=champion,
                version=labelled,
                served=Score(labelled, mean, recents[champion] * 1.01),
                scores={
                    model: Score(scored[model], sums[model] / scored[model], recents[model])
                    for model in models
                },
                by_depth=[served_sum * share for share in (0.31, 0.38, 0.24, 0.07)],
                waiting_documents=delay,
                waiting_labels=labelled % 7,
                outcomes={
                    "joined": labelled,
                    "expired": labelled // 900,
                    "orphan": 3,
                    "duplicate": 12,
                    "changed": 2,
                },
                rejected={"not_json": labelled // 2_000, "unknown_label": labelled // 3_000, "empty_id": 1},
            )
        )
    happened: list[tuple[str, int, str, str, str]] = [
        ("refit", 1_000, "", "", "the window has 1,000 documents"),
        ("refit_failed", 1_240, "", "", "the job took more than 4.0 GiB"),
        ("refit", 2_000, "", "", "2,000 labelled documents since the last one"),
        ("candidate", 2_300, "hm3-1", "h-arow", "fitted to 2000 labelled documents"),
        ("swap", HM3_IN, "hm3-1", "h-arow", "H-loss 19.7 % lower on 700 documents"),
        ("refit", 4_000, "", "", "2,000 labelled documents since the last one"),
        ("candidate", 4_100, "hm3-2", "hm3-1", "fitted to 4000 labelled documents"),
        ("dropped", 4_900, "hm3-2", "hm3-1", "H-loss 6.0 % higher on 800 documents"),
        ("drift", DRIFT + 140, "hm3-1", "", "from 0.48 to 0.97"),
        ("refit", DRIFT + 140, "", "", "drift"),
        ("rollback", BACK, "h-arow", "hm3-1", "H-loss 4.1 % lower on 200 documents"),
        ("dropped", BACK, "hm3-1", "h-arow", "did worse than what it had replaced"),
        ("refit", 8_000, "", "", "2,000 labelled documents since the last one"),
        ("candidate", 8_100, "hm3-3", "h-arow", "fitted to 8000 labelled documents"),
        ("swap", HM3_AGAIN, "hm3-3", "h-arow", "H-loss 19.3 % lower on 300 documents"),
        ("refit", 11_000, "", "", "2,000 labelled documents since the last one"),
        ("candidate", 11_200, "hm3-4", "hm3-3", "fitted to 11000 labelled documents"),
    ]
    events = tuple(
        Event(what, at + delay, at, model, before, detail)  # type: ignore[arg-type]
        for what, at, model, before, detail in happened
        if at <= n_labelled
    )
    return RunLog(tuple(standings), events)
