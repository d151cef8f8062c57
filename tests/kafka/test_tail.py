"""`stream-hc kafka tail`: what is committed is shown, and scored when its labels come, before or after."""

import json
import signal
import threading
import time

import pytest
from kafka import KafkaProducer

from consumers.tools import running_loss
from consumers.tools.running_loss import RunningLoss
from stream_hc.losses import h_loss, zero_one
from stream_hc.taxonomy import Taxonomy
from tests.cli.support import start
from tests.kafka.tools import Tools

pytestmark = pytest.mark.kafka

PARENTS = {"sport": None, "tennis": "sport", "football": "sport", "politics": None}


@pytest.fixture
def tools(kafka, monkeypatch, capfd):
    with Tools(kafka, monkeypatch, capfd, predictions=2) as made:
        yield made


@pytest.fixture
def tree(tmp_path):
    Taxonomy(list(PARENTS.items())).write(tmp_path / "tree.tsv")
    return tmp_path / "tree.tsv"


def prediction(name, *labels, version=3):
    path = sorted({*labels, *(PARENTS[label] for label in labels if PARENTS.get(label))})
    scores = dict.fromkeys(path, 0.5)
    return {
        "id": name,
        "labels": list(labels),
        "path_labels": path,
        "scores": scores,
        "model": "h-arow",
        "model_version": version,
    }


def fill(tools):
    """Labels inside documents, before and after their predictions, unknown ones and none."""
    tools.send(
        tools.documents, {"id": "1", "text": "x", "labels": ["tennis"]}, {"id": "2", "text": "x"}, b"\xff"
    )
    tools.send(tools.predictions, prediction("1", "tennis"), prediction("2", "sport"), partition=0)
    tools.send(tools.predictions, prediction("3", "politics"), prediction("4"), b"no JSON", partition=1)
    tools.send(
        tools.labels, {"id": "2", "labels": ["tennis"]}, {"id": "4", "labels": ["gossip"]}, {"id": "9"}
    )


def test_what_is_there_is_shown_and_scored(tools, tree):
    fill(tools)
    code, out, err = tools("tail", "--no-follow", model__taxonomy=tree)
    assert code == 0
    assert sorted(line.split("  H-loss")[0] for line in out.splitlines()) == [
        "1  tennis  (h-arow, 3)",
        "2  sport  (h-arow, 3)",
        "3  politics  (h-arow, 3)",
        "4  -  (h-arow, 3)",
    ]
    assert err == (
        "4 documents; 2 scored; H-loss 0.5000, zero-one 0.5000; 1 with nodes that are not in this taxonomy; "
        "1 records are no predictions\n"
    )


def test_as_json_every_line_tells_the_loss_so_far(tools, tree):
    tools.send(tools.labels, {"id": "1", "labels": ["tennis"]}, {"id": "2", "labels": ["politics"]})
    time.sleep(0.05)
    tools.send(
        tools.predictions, prediction("1", "tennis"), prediction("2", "sport"), prediction("3"), partition=0
    )
    _, out, err = tools("tail", "--no-follow", "--json", model__taxonomy=tree, model__costs="normalized")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [{**line, "running": None} for line in lines] == [
        {**prediction(name, *labels), "running": None}
        for name, *labels in (("1", "tennis"), ("2", "sport"), ("3",))
    ]
    assert err.startswith("3 documents; 2 scored; H-loss 0.5000, zero-one 0.5000")
    assert lines[-1]["running"] in (None, {"scored": 2, "h_loss": 0.5, "zero_one": 0.5})


def test_the_labels_of_those_that_were_shown_are_read_to_the_end(tools, tree):
    many = [prediction(str(number), "tennis") for number in range(30)]
    tools.send(tools.predictions, *many, partition=0)
    others = [{"id": f"other {number}", "labels": []} for number in range(3000)]  # more than come at once
    own = [{"id": str(number), "labels": ["football"]} for number in reversed(range(30))]
    tools.send(tools.labels, *others, *own)
    _, out, err = tools("tail", "--no-follow", "--limit", "5", model__taxonomy=tree)
    assert out.count("\n") == 5
    assert err == "5 documents; 5 scored; H-loss 2.0000, zero-one 1.0000\n"


def test_without_a_taxonomy_there_is_no_loss_and_labels_are_not_read(tools):
    fill(tools)
    code, out, err = tools("tail", "--no-follow", kafka__labels="no-such-topic")
    assert (code, "H-loss" in out) == (0, False)
    assert err.startswith("4 documents; no loss without a taxonomy: ")


def test_only_committed_predictions_are_shown(tools, kafka):
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap, transactional_id=tools.group)
    producer.init_transactions()
    for name, ends in (("1", producer.abort_transaction), ("2", producer.commit_transaction)):
        producer.begin_transaction()
        producer.send(tools.predictions, json.dumps(prediction(name)).encode(), partition=0).get(20)
        ends()
    producer.begin_transaction()
    producer.send(tools.predictions, json.dumps(prediction("3")).encode(), partition=0).get(20)
    code, out, err = tools("tail", "--no-follow")
    producer.abort_transaction()
    producer.close()
    assert (code, out) == (0, "2  -  (h-arow, 3)\n")
    assert err.startswith("1 documents; ")


def test_nothing_is_shown_of_empty_topics(tools, tree):
    assert tools("tail", "--no-follow", "-q", model__taxonomy=tree) == (0, "", "0 documents; 0 scored\n")


def test_what_steers_terminals_is_escaped(tools):
    hostile = prediction("\x1b]0;gotcha\x07", "a\nb") | {"model": "\x9b2J"}
    tools.send(tools.predictions, hostile, partition=0)
    _, out, _ = tools("tail", "--no-follow")
    assert out == "\\x1b]0;gotcha\\x07  a\\nb  (\\x9b2J, 3)\n"


def test_new_ones_are_followed_until_there_are_enough(tools, tree):
    tools.send(tools.predictions, prediction("old"), partition=0)
    sent = threading.Event()

    def later():
        while not sent.wait(0.3):  # it may take a while until somebody listens
            tools.send(tools.predictions, prediction("new", "tennis"), partition=1)

    thread = threading.Thread(target=later)
    thread.start()
    try:
        code, out, err = tools("tail", "--limit", "2", model__taxonomy=tree)
    finally:
        sent.set()
        thread.join()
    assert (code, out) == (0, "new  tennis  (h-arow, 3)\n" * 2)
    assert err == "2 documents; 0 scored\n"


def test_ctrl_c_ends_it_with_the_summary(tools):
    tools.send(tools.predictions, prediction("old"), partition=0)
    options = ["--set", f"kafka.predictions={tools.predictions}", "--bootstrap", tools.bootstrap]
    process = start("kafka", "tail", "--from-beginning", *options)
    try:
        assert process.stdout.readline() == b"old  -  (h-arow, 3)\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert err.startswith(b"1 documents; no loss without a taxonomy")
    assert err.count(b"\n") == 1


def test_a_topic_that_is_not_there_is_one_line(tools):
    code, out, err = tools("tail", kafka__predictions="no-such-topic")
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert err.startswith("error: there is no topic no-such-topic")


class TestRunningLoss:
    def test_it_is_the_mean_of_the_losses(self):
        taxonomy = Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)])
        pairs = [({"sport"}, {"tennis"}), ({"politics"}, {"politics"}), (set(), {"sport", "politics"})]
        loss = RunningLoss(taxonomy, "normalized")
        for number, (predicted, labels) in enumerate(pairs):
            calls = [(loss.predict, predicted), (loss.label, labels)]
            for call, nodes in calls if number % 2 else reversed(calls):
                call(str(number), sorted(nodes))
        predicted, labels = (list(each) for each in zip(*pairs, strict=True))
        assert loss.h_loss == pytest.approx(h_loss(taxonomy, predicted, labels, "normalized").mean())
        assert loss.zero_one == pytest.approx(zero_one(taxonomy, predicted, labels).mean())

    def test_memory_is_bounded_and_the_oldest_give_way(self, monkeypatch):
        monkeypatch.setattr(running_loss, "KEPT", 10)
        loss = RunningLoss(Taxonomy([("sport", None)]), "uniform")
        for number in range(30):
            loss.predict(f"p{number}", [])
            loss.label(f"l{number}", [])
        for number in range(30):
            loss.label(f"p{number}", ["sport"])
        assert loss.n_scored == 10
        loss.label("p29", [])  # a second time: its prediction was scored already
        assert (loss.n_scored, loss.h_loss) == (10, 1.0)
