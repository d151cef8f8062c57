"""What Prometheus is told is what happened: numbers are worked out once more from the files of the job."""

import math
from collections import Counter

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from stream_hc import losses
from stream_hc.runtime.config import JudgeConfig, ModelConfig, RefitConfig
from stream_hc.runtime.refit.outcome import Finished
from stream_hc.runtime.telemetry import PREFIX
from stream_hc.runtime.watcher import Watcher
from stream_hc.taxonomy import Taxonomy
from tests.runtime.streams import delayed, jumbled, news, poison
from tests.telemetry.watched import LEARNERS, Watched, write_lines

N, DELAY = 300, 20

# As the design names them; what is not there cannot be alerted on.
PROMISED = {
    *("documents_consumed_total", "predictions_total", "node_updates_total", "hloss_total", "scored_total"),
    *("hloss_window_mean", "hloss_by_depth_total", "labels_total", "pending_documents", "model_info"),
    *("dead_letters_total", "label_requests_total", "stored_instances", "model_bytes", "refits_total"),
    *("refit_duration_seconds_bucket", "refit_duality_gap", "model_swaps_total", "drift_detected_total"),
    *("consumer_lag_records", "snapshot_last_success_timestamp_seconds", "transactions_total"),
    *("predict_duration_seconds_bucket", "update_duration_seconds_bucket", "label_delay_seconds_bucket"),
    "commit_duration_seconds_bucket",
}


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    job = Watched(tmp_path_factory.mktemp("job"), N, DELAY)
    job.run()
    return job


def samples(job):
    text = generate_latest(job.telemetry.registry).decode()
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def test_documents_and_labels_are_counted(watched):
    assert watched.value("documents_consumed_total") == N
    assert sum(watched.value("predictions_total", model=name) or 0 for name in LEARNERS) == N
    assert watched.value("labels_total", outcome="joined") == N - DELAY
    assert watched.value("scored_total", model="served") == N - DELAY
    assert watched.value("pending_documents") == DELAY
    assert watched.value("replayed_documents_total") == 0
    assert watched.value("ready") == 1


def test_the_loss_is_that_of_what_was_published(watched):
    answers, data = watched.answers, watched.data
    predicted = [answers[name] for name in data.ids[: N - DELAY]]
    loss = losses.h_loss(data.taxonomy, predicted, data.labels[: N - DELAY])
    assert watched.value("hloss_total", model="served", costs="uniform") == pytest.approx(loss.sum())
    recent = watched.value("hloss_window_mean", model="served", costs="uniform")
    assert recent == pytest.approx(loss[-100:].mean())
    depths = losses.h_loss_by_depth(data.taxonomy, predicted, data.labels[: N - DELAY]) * (N - DELAY)
    for depth, expected in enumerate(depths):
        found = watched.value("hloss_by_depth_total", model="served", depth=str(depth))
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("model", [*LEARNERS, "served"])
def test_the_depths_share_out_the_loss(watched, model):
    depths = range(int(watched.taxonomy.depth.max()) + 1)
    by_depth = [watched.value("hloss_by_depth_total", model=model, depth=str(depth)) for depth in depths]
    assert sum(by_depth) == pytest.approx(watched.value("hloss_total", model=model, costs="uniform"))
    assert watched.value("hloss_total", model=model, costs="uniform") > 0


def test_durations_are_counted_for_every_document(watched):
    assert watched.value("predict_duration_seconds_count") == N
    assert watched.value("update_duration_seconds_count") == N - DELAY
    assert watched.value("label_delay_seconds_count") == N - DELAY
    assert watched.value("predict_duration_seconds_sum") > 0


def test_models_are_told_apart(watched):
    board = watched.job.processor.contest.board
    for name in LEARNERS:
        score = board.score(name)
        assert watched.value("scored_total", model=name) == score.scored == N - DELAY
        total = watched.value("hloss_total", model=name, costs="uniform")
        assert total == pytest.approx(score.mean * score.scored)
        assert watched.value("model_bytes", model=name) > 0
    updates = watched.job.processor.line_up.online["node-pa"].learner.n_updates
    depths = watched.taxonomy.depth
    for depth in range(depths.max() + 1):
        found = watched.value("node_updates_total", model="node-pa", depth=str(depth))
        assert found == updates[depths == depth].sum()


def test_the_champion_is_named(watched):
    named = [sample for sample in samples(watched) if sample.name == "streamhc_model_info"]
    (champion,) = named
    assert champion.labels["model"] == watched.job.processor.line_up.champion


def test_everything_promised_has_its_name(watched):
    catalogue = watched.telemetry.catalogue
    catalogue.stored_instances.set(1, "h-rls")
    watched.telemetry.set_lag({("documents", 0): 7})
    watched.telemetry.transaction("committed", 0.02)
    watched.telemetry.fitted(Finished(1, "crashed", 3.0, None, "killed"))
    catalogue.refit_gap.set(0.5)
    catalogue.model_swaps.add(1, "swap")
    catalogue.dead_letters.add(0, "not_json")
    names = {sample.name for sample in samples(watched)}
    assert {PREFIX + name for name in PROMISED} <= names
    assert watched.value("consumer_lag_records", topic="documents", partition="0") == 7
    assert watched.value("transactions_total", outcome="committed") == 1
    assert watched.value("commit_duration_seconds_bucket", le="0.025") == 1
    assert watched.value("refits_total", outcome="crashed") == 1
    assert watched.value("refit_duration_seconds_sum") == 3


def test_no_series_has_a_creation_time(watched):
    assert [sample.name for sample in samples(watched) if sample.name.endswith("_created")] == []


def test_every_kind_of_record_is_counted(tmp_path):
    data = news(200)
    records = [*jumbled(data, seed=3), *poison()]
    job = Watched(tmp_path, 200, records=records)
    job.run()
    room = job.job.processor.room
    for reason, number in room.rejected.items():
        assert job.value("dead_letters_total", reason=reason) == number
    assert sum(room.rejected.values()) == len((tmp_path / "rejects.jsonl").read_text().splitlines())
    for outcome, number in room.outcomes.items():
        assert job.value("labels_total", outcome=outcome) == number
    assert Counter(room.outcomes)["duplicate"] > 0


def test_fits_and_swaps_are_counted(tmp_path):
    refit = RefitConfig(enabled=True, window=200, least=60, every=100, in_step=True, lag=10, max_seconds=5.0)
    judge = JudgeConfig(sample=100, least=20, every=10, sureness=0.0)
    job = Watched(tmp_path, 300, delay=5, refit=refit, judge=judge)
    telemetry = job.run()
    happened = job.job.processor.progress.happened
    assert job.value("refits_total", outcome="done") == job.job.counts["refits_done"] >= 2
    assert job.value("refit_duration_seconds_count") == job.job.counts["refits_done"]
    assert job.value("refit_duality_gap_ratio") <= refit.tol * 1.0001
    for what in ("swap", "dropped", "rollback"):
        assert (job.value("model_swaps_total", outcome=what) or 0) == happened.get(what, 0)
    fitted = [name for name in job.job.processor.line_up.names if name.startswith("hm3")]
    assert fitted, "nothing to compare"
    depths = range(int(job.taxonomy.depth.max()) + 1)
    by_depth = [job.value("hloss_by_depth_total", model="hm3", depth=str(depth)) or 0 for depth in depths]
    # Documents that came before the model did not wait for it: they are not among its losses.
    assert sum(by_depth) == pytest.approx(job.value("hloss_total", model="hm3", costs="uniform"))
    models = {sample.labels["model"] for sample in samples(job) if "model" in sample.labels}
    assert {name for name in models if name.startswith("hm3-")} <= {telemetry.told.standing.champion}


def test_a_fit_that_failed_is_counted(watched):
    before = watched.value("refits_total", outcome="timeout") or 0
    watched.telemetry.fitted(Finished(9, "timeout", 300.0, None, "took too long"))
    assert watched.value("refits_total", outcome="timeout") == before + 1


def test_stored_documents_are_counted(tmp_path):
    job = Watched(tmp_path, 60, model=ModelConfig(learners=["h-rls", "pa"], n_features=1024))
    job.run()
    learner = job.job.processor.line_up.online["h-rls"].learner
    assert job.value("stored_instances", model="h-rls") == learner.n_stored.sum() > 0
    assert job.value("node_updates_total", model="pa", depth="all") > 0


def test_a_restart_counts_from_nothing_and_shows_everything(tmp_path):
    job = Watched(tmp_path, N, DELAY)
    job.run()
    before = job.job.processor.nodes.all()
    more = delayed(news(N + 50), DELAY)[len(delayed(job.data, DELAY)) :]
    write_lines(tmp_path / "stream.jsonl", more)
    job.run()
    assert job.value("documents_consumed_total") == 50
    assert job.value("scored_total", model="served") == 50
    assert job.value("hloss_total", model="served", costs="uniform") <= 50 * 10
    assert job.value("replayed_documents_total") == 0
    assert job.telemetry.told.standing.documents == N + 50
    after = job.job.processor.nodes.all()
    assert after.n_documents == before.n_documents + 50
    assert (after.counts >= before.counts).all()


class PowerCut(Watcher):
    """Comes when everything is done and nothing is saved."""

    def save(self, job):
        raise RuntimeError("no power")


def test_a_replay_is_not_counted(tmp_path):
    job = Watched(tmp_path, N, DELAY)
    with pytest.raises(RuntimeError, match="no power"):
        job.run(PowerCut())
    assert job.value("documents_consumed_total") == N
    losses_before = job.value("hloss_total", model="served", costs="uniform")
    job.run()
    assert job.value("replayed_documents_total") == N
    assert job.value("documents_consumed_total") == 0
    assert job.value("scored_total", model="served") == 0
    assert job.value("node_updates_total", model="node-pa", depth="0") == 0
    served = job.telemetry.told.standing.served
    assert served.mean * served.scored == pytest.approx(losses_before)


def test_few_series_whatever_the_taxonomy(tmp_path):
    pairs = [("root", None), *((f"node {number}", "root") for number in range(400))]
    tree = Taxonomy(pairs)
    records = [
        {"id": str(k), "text": f"word{k % 40} word{k % 7}", "labels": [f"node {k % 400}"]} for k in range(500)
    ]
    job = Watched(tmp_path, 10, records=records, taxonomy=tree)
    job.run()
    found = [sample for sample in samples(job) if sample.name.startswith(PREFIX)]
    nodes = {sample.labels["node"] for sample in found if "node" in sample.labels}
    assert len(nodes) == 10
    assert len(found) < 250


def test_the_worst_nodes_come_first_and_are_true(watched):
    worst = watched.telemetry.nodes.worst(3)
    everything = watched.telemetry.nodes.worst(10_000)
    assert everything[:3] == worst
    _, recent = watched.telemetry.nodes.counted()
    assert math.fsum(node.hloss for node in everything) == pytest.approx(
        sum(watched.telemetry.nodes.by_depth()[1])
    )
    for node in worst:
        assert 0 < node.error <= 1
        assert node.documents <= 2 * recent
        assert watched.value("worst_node_hloss_mean", node=node.name) == pytest.approx(node.hloss)


def test_hostile_names_stay_what_they_are(tmp_path):
    names = ['a"} 1\nevil{x="', "back\\slash", "<script>alert(1)</script>", "ü\u2028\u202e", "x" * 300]
    tree = Taxonomy([(name, None) for name in names])
    records = [{"id": str(k), "text": f"w{k}", "labels": [names[k % 5]]} for k in range(50)]
    job = Watched(tmp_path, 10, records=records, taxonomy=tree)
    job.run()
    found = {sample.labels["node"] for sample in samples(job) if "node" in sample.labels}
    assert {name for name in names if len(name) < 300} <= found
    assert all(len(name) < 250 for name in found)
    assert not any(sample.name.startswith("evil") for sample in samples(job))
