"""State folders of all shards -> those of another plan: each begins with a snapshot of the same moment."""

import os
import shutil
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import msgspec

from stream_hc.runtime.config import Config, StateConfig
from stream_hc.runtime.disk import Place, StateFolder
from stream_hc.runtime.resharding.parts import reshard
from stream_hc.sharding import Plan

__all__ = ["reshard_folders"]


def reshard_folders(
    sources: Sequence[str],
    targets: Sequence[str],
    plan: Plan | None,
    config: Config,
    any_order: bool = False,
) -> list[int]:
    """Write the states in some folders, anew, to those of another plan; return the numbers of the snapshots.

    See `reshard` for what becomes of each part. The new jobs go on where the old ones stopped: their places
    in the input are the same, their journals empty, and each has a name of its own. The old folders stay as
    they are. After an error the new ones are not there.

    Parameters
    ----------
    sources
        The state folders of all shards of one plan, in any order, or that of one job with the whole taxonomy.
        Nobody may use them.
    targets
        A new or empty folder for each shard of `plan`, in order.
    plan
        The one to go over to; None for one job with the whole taxonomy.
    config
        That of the stream; its state folder is not looked at.
    any_order
        As for `reshard`.

    Raises
    ------
    ValueError
        A source is in use (`KeeperLocked`), has no sound snapshot or was not stopped cleanly, the sources are
        not at the same place, or a target is not empty.
    """
    n_targets = 1 if plan is None else plan.n_shards
    if len(targets) != n_targets:
        raise ValueError(f"{len(targets)} target folders for {n_targets} shards")
    names = [os.path.realpath(path) for path in (*sources, *targets)]
    if len(set(names)) < len(names):
        raise ValueError("every source and every target must be a folder of its own")
    for path in targets:
        if os.path.lexists(path) and not (os.path.isdir(path) and not os.listdir(path)):
            raise ValueError(f"{path}: not an empty folder: choose a new one")
    with ExitStack() as stack:
        states = [stack.enter_context(_opened(path, config)) for path in sources]
        loaded = [state.loaded for state in states]
        place = _common_place(sources, states, any_order)
        made = reshard([each.parts for each in loaded if each is not None], plan, config, any_order)
        return _written(targets, made, place, config)


def _opened(path: str, config: Config) -> StateFolder:
    """Open a folder in which a job has stopped: everything it knows is in its snapshot."""
    if not os.path.isdir(path):  # or it would be made
        raise ValueError(f"{path}: no such folder")
    state = StateFolder(_state_config(path, config))
    try:
        if state.loaded is None:
            raise ValueError(f"{path}: has no snapshot: it is not the state folder of a job")
        n_behind = sum(1 for _ in state.journal.after(state.place.journal))
        if n_behind:
            problem = f"the journal has {n_behind} entries behind the snapshot"
            raise ValueError(f"{path}: {problem}: start the job once more and stop it, so that it saves")
    except BaseException:
        state.__exit__()
        raise
    return state


def _common_place(sources: Sequence[str], states: Sequence[StateFolder], any_order: bool) -> Place:
    """Return where all jobs stand; `ValueError` names two that stand apart."""
    first = states[0].place
    for path, state in zip(sources, states, strict=True):
        place = state.place
        for key in sorted(place.offsets.keys() | first.offsets.keys()):
            one, other = first.offsets.get(key), place.offsets.get(key)
            if one != other:
                at = f"{sources[0]} is at {one}, {path} at {other}"
                raise ValueError(f"the jobs have not read equally far: in {key} {at}")
        if place.positions != first.positions or (place.stamp != first.stamp and not any_order):
            raise ValueError(f"the jobs have not read equally far: {sources[0]} and {path} differ")
    stamps = [state.place.stamp for state in states if state.place.stamp is not None]
    stamp = max(stamps, default=None)
    return Place(positions=first.positions, offsets=first.offsets, job=first.job, stamp=stamp)


def _written(
    targets: Sequence[str], made: Sequence[dict[str, Any]], place: Place, config: Config
) -> list[int]:
    """Write a snapshot to each target; after an error none of them is left."""
    existed = [os.path.isdir(path) for path in targets]
    numbers = list[int]()
    try:
        for path, parts in zip(targets, made, strict=True):
            # A name of its own: what the group has committed for the old one does not count.
            own = msgspec.structs.replace(place, job=uuid.uuid4().hex if place.job else "")
            with StateFolder(_state_config(path, config)) as state:
                numbers.append(state.save(parts, own, ()))
    except BaseException:
        for path, there_before in zip(targets, existed, strict=True):
            shutil.rmtree(path, ignore_errors=True)
            if there_before:
                os.mkdir(path)
        raise
    return numbers


def _state_config(path: str, config: Config) -> StateConfig:
    return msgspec.structs.replace(config.state, folder=path)
