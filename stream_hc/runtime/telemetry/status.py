"""What the live page is told, as JSON: plain numbers and names, from the state of the stream."""

from typing import Any

import msgspec

import stream_hc
from stream_hc.runtime.events import Score
from stream_hc.runtime.refit.outcome import Finished
from stream_hc.runtime.telemetry.watching import Telemetry

__all__ = ["node_detail", "node_rows", "series", "status"]


def status(telemetry: Telemetry) -> dict[str, Any]:
    """Return where everything stands; few keys before the stream has begun."""
    with telemetry.lock:
        telemetry.catch_up()
        found: dict[str, Any] = {
            "version": stream_hc.__version__,
            "ready": telemetry.is_ready,
            "started": telemetry.started,
            "now": telemetry.clock(),
        }
        told, job = telemetry.told, telemetry.job
        if told is None or job is None or telemetry.nodes is None:
            return found
        standing, config = told.standing, job.processor.config
        everything, recently = telemetry.nodes.by_depth()
        return found | {
            "documents": standing.documents,
            "labelled": standing.labelled,
            "documents_per_second": round(telemetry.throughput.at(telemetry.steady()), 3),
            "costs": config.model.costs,
            "window": config.judge.sample,
            "champion": {
                "model": standing.champion,
                "version": standing.version,
                "since": telemetry.champion_since,
            },
            "previous": told.previous,
            "candidates": list(told.candidates),
            "served": standing.served,
            "models": {name: _model(telemetry, name, score) for name, score in standing.scores.items()},
            "by_depth": {"served": {"all": everything, "recent": recently}},
            "pending": {"documents": standing.waiting_documents, "labels": standing.waiting_labels},
            "labels": standing.outcomes,
            "dead_letters": standing.rejected,
            "label_requests": int(telemetry.catalogue.label_requests.values[()]),
            "refit": _refit(telemetry),
            "snapshots": _snapshots(telemetry),
            "lag": [
                {"topic": topic, "partition": int(partition), "records": int(records)}
                for (topic, partition), records in sorted(telemetry.catalogue.consumer_lag.values.items())
            ],
            "happened": dict(told.happened),
        }


def _model(telemetry: Telemetry, name: str, score: Score) -> dict[str, Any]:
    assert telemetry.job is not None
    line_up = telemetry.job.processor.line_up
    online, fitted = line_up.online.get(name), line_up.fitted.get(name)
    model: Any = online.learner if online is not None else None if fitted is None else fitted.fitted
    stored = getattr(model, "n_stored", None)
    return msgspec.structs.asdict(score) | {
        "kind": "online" if online is not None else "fitted",
        "bytes": getattr(model, "nbytes", 0),
        "stored": None if stored is None else int(stored.sum()),
    }


def _refit(telemetry: Telemetry) -> dict[str, Any]:
    assert telemetry.job is not None
    refitter = telemetry.job.refitter
    running = refitter is not None and refitter.running is not None
    outcomes = {labels[0]: int(number) for labels, number in telemetry.catalogue.refits.values.items()}
    return {
        "enabled": refitter is not None,
        "running": running,
        "progress": refitter.progress() if refitter is not None and running else None,
        "outcomes": outcomes,
        "last": None if telemetry.last_fit is None else _fit(telemetry.last_fit),
    }


def _fit(finished: Finished) -> dict[str, Any]:
    return {
        "number": finished.number,
        "outcome": finished.outcome,
        "seconds": round(finished.seconds, 3),
        "duality_gap": finished.duality_gap,
        "dual_objective": finished.dual_objective,
        "problem": finished.problem,
    }


def _snapshots(telemetry: Telemetry) -> dict[str, Any]:
    assert telemetry.job is not None
    return {
        "saved": int(telemetry.catalogue.snapshots.values.get(("saved",), 0)),
        "failed": telemetry.job.counts["snapshot_failures"],
        "last_success": telemetry.catalogue.snapshot_time.values.get(()),
    }


def node_rows(telemetry: Telemetry) -> dict[str, Any]:
    """Return the table of all nodes."""
    with telemetry.lock:
        telemetry.catch_up()
        if telemetry.nodes is None or telemetry.job is None:
            return {"labelled": 0, "recent_labelled": 0, "costs": None, "nodes": []}
        labelled, recent = telemetry.nodes.counted()
        costs = telemetry.job.processor.config.model.costs
        rows = telemetry.nodes.rows()
        return {"labelled": labelled, "recent_labelled": recent, "costs": costs, "nodes": rows}


def node_detail(telemetry: Telemetry, name: str) -> dict[str, Any] | None:
    """Return one node with its last mistakes; None if there is no such node."""
    with telemetry.lock:
        telemetry.catch_up()
        nodes, mistakes = telemetry.nodes, telemetry.mistakes
        if nodes is None or mistakes is None or name not in nodes.taxonomy:
            return None
        node = nodes.taxonomy.index(name)
        (row,) = nodes.rows([node])
        return {"node": row, "mistakes": mistakes.at_node(node)}


def series(telemetry: Telemetry) -> dict[str, Any]:
    """Return the running H-loss of all models so far, and what happened."""
    with telemetry.lock:
        telemetry.catch_up()
        history = telemetry.history
        return {"started": telemetry.started, "points": history.points(), "events": history.events}
