"""Learners cut into those of shards, and joined again."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stream_hc.learners import HAROW, HRLS, LEARNERS, HPerceptron, NodePA, OnlineLearner, Perceptron
from stream_hc.sharding.plan import Plan
from stream_hc.sharding.shard import Shard
from stream_hc.sharding.stored import cut_stored, join_stored
from stream_hc.sharding.weights import cut_weights, join_weights
from stream_hc.taxonomy import Taxonomy

__all__ = ["check_shardable", "cut_learner", "join_learners"]

APART = (HPerceptron, Perceptron, HAROW, NodePA, HRLS)  # train each node from true labels
OF_THE_WHOLE = ("taxonomy", "grows", "t")


def check_shardable(learner: OnlineLearner, taxonomy: Taxonomy | None = None) -> None:
    """Raise `ValueError` if the nodes of a learner cannot be trained apart.

    `taxonomy` is the whole one, where the learner is that of a shard.

    >>> from stream_hc import HPA
    >>> check_shardable(HPA(Taxonomy([("sport", None)])))
    Traceback (most recent call last):
    ...
    ValueError: HPA cannot be sharded: choose one of h-perceptron, perceptron, h-arow, node-pa, h-rls
    """
    if type(learner) not in APART:
        names = ", ".join(name for name, kind in LEARNERS.items() if kind in APART)
        raise ValueError(f"{type(learner).__name__} cannot be sharded: choose one of {names}")
    whole = learner.taxonomy if taxonomy is None else taxonomy
    if learner.taxonomy is None or whole is None:
        raise ValueError("labels that turn up one by one cannot be cut into shards: give a taxonomy")
    by_path = isinstance(learner, HPerceptron) and (learner.judged_by, learner.parents) == ("path", "any")
    if by_path and not whole.is_tree:
        # Where any parent is enough, a node that is on switches on all above it, so these depend on it.
        remedy = 'set parents="all" or judged_by="node"'
        raise ValueError(f"in a DAG a path may depend on nodes of other shards: {remedy}")


def cut_learner(learner: OnlineLearner, shard: Shard) -> OnlineLearner:
    """Return the learner of a shard that knows what this one, of the whole taxonomy, knows about its nodes.

    Examples
    --------
    >>> tax = Taxonomy([("sport", None), ("tennis", "sport")])
    >>> model, plan = NodePA(tax, n_features=64), Plan.cut(tax, 2)
    >>> model.learn_one({"racket": 1.0}, {"tennis"})
    >>> parts = [cut_learner(model, shard) for shard in plan.shards]
    >>> parts[0].nodes, parts[1].nodes
    (('sport',), ('sport', 'tennis'))
    >>> join_learners(plan, parts).predict_one({"racket": 1.0})
    {'sport': True, 'tennis': True}
    """
    check_shardable(learner)
    if learner.taxonomy != shard.whole:
        raise ValueError("the learner was made for another taxonomy than that which was cut")
    state = learner.state()
    cut = cut_stored if isinstance(learner, HRLS) else cut_weights
    own = {"taxonomy": shard.taxonomy.to_json(), **cut(state, shard)}
    return type(learner).from_state({**state, **own})


def join_learners(plan: Plan, learners: Sequence[OnlineLearner], level: bool = True) -> OnlineLearner:
    """Return the learner of the whole taxonomy from those of its shards, in their order.

    If all have learned the same stream it is, bit for bit, what one learner would have become. With
    `level=False` some may have learned more of it than others, or its documents in another order: each node
    is then what its owner has made of it, which is good for predictions, not to learn on. The whole counts as
    many documents as the one that is behind.
    """
    if len(learners) != plan.n_shards:
        raise ValueError(f"{len(learners)} learners for {plan.n_shards} shards")
    for shard, learner in zip(plan.shards, learners, strict=True):
        check_shardable(learner, plan.taxonomy)
        if type(learner) is not type(learners[0]):
            kinds = f"{type(learners[0]).__name__}, that of shard {shard.number} {type(learner).__name__}"
            raise ValueError(f"the learner of shard 0 is {kinds}")
        if learner.taxonomy != shard.taxonomy:
            raise ValueError(f"the learner of shard {shard.number} has other nodes than the plan gives it")
    states = [learner.state() for learner in learners]
    for number, state in enumerate(states):
        _check_settings(states[0], state, number)
    counts = [learner.n_learned for learner in learners]
    if level and min(counts) < max(counts):
        each = ", ".join(f"shard {number} {count}" for number, count in enumerate(counts))
        raise ValueError(f"the shards have not learned equally many documents: {each}")
    if isinstance(learners[0], HRLS):
        arrays = join_stored(states, plan.shards, level)
    else:
        arrays = join_weights(states, plan.shards)
    own = {"taxonomy": plan.taxonomy.to_json(), "t": min(counts), **arrays}
    return type(learners[0]).from_state({**states[0], **own})


def _check_settings(first: Mapping[str, Any], state: Mapping[str, Any], number: int) -> None:
    for name, value in first.items():
        if isinstance(value, np.ndarray) or name in OF_THE_WHOLE:
            continue
        if state[name] != value:
            there = f"shard {number} {state[name]!r}"
            raise ValueError(
                f"the shards were trained differently: {name} is {value!r} in shard 0, in {there}"
            )
