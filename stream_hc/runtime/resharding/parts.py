"""The parts of processors, from one plan to another: learners joined and cut, the rest carried over."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stream_hc.learners import OnlineLearner
from stream_hc.runtime.building import check_built
from stream_hc.runtime.charging import Charges
from stream_hc.runtime.config import Config
from stream_hc.runtime.drift import DriftDetector
from stream_hc.runtime.node_counts import NodeCounts
from stream_hc.runtime.processor import ONLINE, SHARD, Processor
from stream_hc.runtime.resharding.predicted import cut_predicted, in_one_order, join_predicted
from stream_hc.runtime.scoring import Scoreboard
from stream_hc.sharding import Plan, Shard, cut_learner, join_learners
from stream_hc.taxonomy import Taxonomy

__all__ = ["reshard"]

OF_A_SHARD = ("predicted", "predicted_ptr")  # what the rooms of two shards need not have in common


def reshard(
    parts: Sequence[Mapping[str, Any]], plan: Plan | None, config: Config, any_order: bool = False
) -> list[dict[str, Any]]:
    """Return the parts of the processors of another plan, in the order of its shards, from those of all now.

    Learners are joined and cut: they go on as if they had always been cut so. Vectorizer, waiting documents
    and labels, window and progress are carried over, waiting predictions and the counts by node are those of
    the owner of each node. Scores by model and depth, and what drift is told by, begin anew: they are sums
    over all nodes of a shard, and nobody knows the share of each.

    Parameters
    ----------
    parts
        As loaded from the snapshots of all shards of one plan, in any order, or of one processor that has
        the whole taxonomy. They are not changed.
    plan
        The one to go over to; None for a processor of the whole taxonomy.
    config
        That of the stream, before and after.
    any_order
        The shards may have processed the same records in different orders. Each node then is as its owner has
        it, and what is not about nodes is as in the first shard.

    Raises
    ------
    ValueError
        A shard is missing, or behind another one; the plans are not of the same taxonomy; there are models
        that cannot be cut.

    Examples
    --------
    >>> from stream_hc.runtime import Line, build_processor
    >>> from stream_hc.runtime.config import ModelConfig, RefitConfig
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)])
    >>> config = Config(model=ModelConfig(learners=["h-arow"]), refit=RefitConfig(enabled=False))
    >>> one = build_processor(config, tax)
    >>> outcome = one.process([Line(1, b'{"id": "a", "text": "ace", "labels": ["tennis"]}')])
    >>> [each["shard"].taxonomy.nodes for each in reshard([one.parts()], Plan.cut(tax, 2), config)]
    [('sport', 'politics'), ('sport', 'tennis')]
    """
    olds = _in_order(parts)
    first, shards = olds[0], [each.get(SHARD) for each in olds]
    for each in olds:  # whatever does not fit together is found before anything is done
        check_built(Processor.from_parts(each, config, shard=each.get(SHARD)), config)
    whole: Taxonomy = first["window"].taxonomy
    if plan is not None and plan.taxonomy != whole:
        raise ValueError("the plan is that of another taxonomy than that of the stream")
    if plan is None and shards[0] is None:
        return [dict(first)]
    _check_level(olds, any_order)
    name = _only_learner(first)
    learner: OnlineLearner = first[ONLINE + name]
    if shards[0] is not None:
        learners = [each[ONLINE + name] for each in olds]
        is_level = not any_order or len({each.n_learned for each in learners}) == 1
        learner = join_learners(Plan(whole, shards[0].owner), learners, is_level)
    rooms = in_one_order([each["waiting"].state() for each in olds])
    predicted = join_predicted(rooms, shards)
    counts = _joined_counts(olds, shards)
    new: Sequence[Shard | None] = [None] if plan is None else plan.shards
    made = []
    for shard in new:
        room = {**rooms[0], **cut_predicted(predicted, shard)}
        n_depths = Charges(whole, config.model.costs, shard).n_depths
        progress = _copied(first["progress"])
        progress.swapped_at = 0  # counted in scores
        made.append(
            {
                "progress": progress,
                "vectorizer": _copied(first["vectorizer"]),
                "waiting": type(first["waiting"]).from_state(room),
                "window": _copied(first["window"]),
                "scores": Scoreboard(config.judge.sample, n_depths),
                "drift": DriftDetector(),
                **_cut_counts(counts, shard),
                **({} if shard is None else {SHARD: shard}),
                ONLINE + name: learner if shard is None else cut_learner(learner, shard),
            }
        )
    return made


def _in_order(parts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the parts by the numbers of their shards: all of one plan, or that of a whole taxonomy."""
    shards = [each.get(SHARD) for each in parts]
    if len(parts) == 1 and shards[0] is None:
        return list(parts)
    found = [shard for shard in shards if shard is not None]
    if len(found) < len(parts) or not parts:
        raise ValueError(f"{len(parts)} states, {len(found)} of them of a shard: give those of all shards")
    for shard in found:
        if shard.digest != found[0].digest:
            raise ValueError(f"the shards are of different plans: {found[0]} and {shard}")
    numbers = [shard.number for shard in found]
    missing = sorted(set(range(found[0].n_shards)) - set(numbers))
    if missing:
        names = ", ".join(map(str, missing))
        raise ValueError(f"of {found[0].n_shards} shards these are missing: {names}")
    if len(numbers) > found[0].n_shards:
        twice = next(number for number in numbers if numbers.count(number) > 1)
        raise ValueError(f"shard {twice} is there twice")
    return [parts[numbers.index(number)] for number in range(len(numbers))]


def _check_level(olds: Sequence[Mapping[str, Any]], any_order: bool) -> None:
    """Raise `ValueError` unless all have processed the same records, in the same order if that matters."""
    if any_order:
        records = [each["progress"].records for each in olds]
        if len(set(records)) > 1:
            raise ValueError(
                f"the shards have processed {', '.join(map(str, records))} records: not the same"
            )
        return
    places = [(each["progress"].records, each["progress"].labelled) for each in olds]
    records, labelled = max(places)
    behind = [
        f"shard {number} by {records - there} records and {labelled - learned} learned"
        for number, (there, learned) in enumerate(places)
        if (there, learned) != (records, labelled)
    ]
    if behind:
        raise ValueError(f"these are behind the others: {', '.join(behind)}: let all read the same records")
    first = _shared_states(olds[0])
    for number, each in enumerate(olds[1:], 1):
        for part, state in _shared_states(each).items():
            if any(not np.array_equal(value, first[part][key]) for key, value in state.items()):
                problem = f"shards 0 and {number} differ in their part {part}"
                raise ValueError(f"{problem}: they have read different records, or in another order")


def _shared_states(parts: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what all shards have in common where they have processed the same records."""
    states = {name: dict(parts[name].state()) for name in ("waiting", "window", "vectorizer")}
    for name in OF_A_SHARD:
        del states["waiting"][name]
    return states


def _only_learner(parts: Mapping[str, Any]) -> str:
    names = [name.removeprefix(ONLINE) for name in parts if name.startswith(ONLINE)]
    progress = parts["progress"]
    if len(names) != 1 or progress.fitted_versions or progress.outstanding is not None:
        models = ", ".join([*names, *progress.fitted_versions])
        raise ValueError(f"a stream can be cut that has one learner and no re-fits, not {models}")
    return names[0]


def _joined_counts(olds: Sequence[Mapping[str, Any]], shards: Sequence[Shard | None]) -> dict[str, Any]:
    """Return the counts of all nodes, each from its owner; nothing where a version before did not count."""
    states = [each["nodes"].state() for each in olds if "nodes" in each]
    if len(states) < len(olds):
        return {}
    if shards[0] is None:
        return dict(states[0])
    counts = np.empty((3, len(shards[0].whole), states[0]["counts"].shape[2]), np.int64)
    for state, shard in zip(states, shards, strict=True):
        assert shard is not None
        counts[:, shard.columns[shard.own]] = state["counts"][:, shard.own]
    return {**states[0], "counts": counts}


def _cut_counts(counts: dict[str, Any], shard: Shard | None) -> dict[str, Any]:
    if not counts:
        return {}
    kept = counts["counts"] if shard is None else counts["counts"][:, shard.columns]
    return {"nodes": NodeCounts.from_state({**counts, "counts": kept})}


def _copied(part: Any) -> Any:
    return type(part).from_state(part.state())
