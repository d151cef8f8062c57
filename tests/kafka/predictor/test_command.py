"""`stream-hc kafka predict` and `train` in this process: options, what they say, their exit codes."""

import re
import threading
import time
import urllib.request

import pytest

from consumers.daemon import Fenced
from consumers.predicting import predictor_config
from consumers.predictor.predictor import Predictor
from deploy.kafka.settings import free_port
from stream_hc.datasets import make_news
from stream_hc.runtime.config import Config, KafkaConfig, StateConfig
from tests.kafka.daemons import stream
from tests.kafka.tools import Tools

pytestmark = pytest.mark.kafka


@pytest.fixture
def tools(kafka, monkeypatch, capfd, tmp_path):
    with Tools(kafka, monkeypatch, capfd) as made:
        make_news(10, seed=3).taxonomy.write(tmp_path / "tree.tsv")
        made.models = f"models-{made.group}"
        made.here = {
            "model__n_features": 1024,
            "kafka__events": "none",
            "kafka__session_timeout": 6,
            "kafka__models": made.models,
        }
        made.given = ("--taxonomy", tmp_path / "tree.tsv", "--state", tmp_path / "state", "--create-topics")
        yield made


def feed(tools, n, first=0):
    for number, (text, labels) in enumerate(stream(n, 3), first):
        tools.send(tools.documents, {"id": f"d{number}", "text": text, "labels": labels})


def test_one_trains_and_one_predicts(tools, tmp_path):
    feed(tools, 20)
    code, out, err = tools("train", *tools.given, "--limit", 20, **tools.here)
    assert (code, out) == (0, ""), err
    assert f"reading {tools.documents}, {tools.labels} as {tools.group}-train-0-of-1" in err
    assert tools.read(tools.predictions, 0) == []
    port, told = free_port(), {}

    def look():
        end = time.monotonic() + 60
        while time.monotonic() < end and "streamhc_predictions_total{" not in told.get("/metrics", ""):
            for path in ("/readyz", "/metrics", "/api/status"):
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                        told[path] = answer.read().decode()
                except OSError:
                    pass
            time.sleep(0.05)
        feed(tools, 5, first=20)

    looking = threading.Thread(target=look)
    looking.start()
    code, out, err = tools("predict", "--limit", 25, "--http", port, **tools.here)
    looking.join()
    assert (code, out) == (0, ""), err
    assert "waiting for a model" in err
    assert "h-arow answers, 20 documents learned" in err
    assert f"predicting {tools.documents}:0" in err
    assert "25 documents predicted with 1 versions of the model" in err
    assert len(tools.read(tools.predictions, 25)) == 25
    assert told["/readyz"] == "ready\n"
    assert 'streamhc_predictions_total{model="h-arow"} 20.0' in told["/metrics"]
    assert re.search(r'streamhc_model_info{model="h-arow",version="20"} 1\.0', told["/metrics"])
    assert (tmp_path / "state" / "0-of-1" / "published.json").exists()


def test_a_plan_is_shown_and_nothing_else_happens(tools, tmp_path):
    code, out, _ = tools("train", *tools.given, "--shards", 2, "--show-plan", **tools.here)
    assert code == 0
    assert out.startswith("shard  own nodes  ancestors  work")
    assert len(out.splitlines()) == 3
    lines = [f'{{"id": "{n}", "labels": ["{label}"]}}' for n, label in enumerate(["sport"] * 9 + ["economy"])]
    taxonomy = (tmp_path / "tree.tsv").read_text()
    names = [line.split("\t")[0] for line in taxonomy.splitlines() if "\t" in line]
    (tmp_path / "traffic.jsonl").write_text(
        "\n".join(lines).replace("economy", names[0]).replace("sport", names[1])
    )
    code, weighted, err = tools(
        "train",
        *tools.given,
        "--shards",
        2,
        "--show-plan",
        "--traffic",
        tmp_path / "traffic.jsonl",
        **tools.here,
    )
    assert code == 0, err
    assert weighted != out
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--shards", 0), "--shards 0: choose 1 to 9999"),
        (("--shards", 2, "--shard", 2), "--shard 2: of 2 shards the last is 1"),
        (("--shards", 99), "--shards 99: 99 shards, but siblings stay together"),
        (
            ("--shards", 2, "--learner", "h-arow", "--learner", "node-pa"),
            "shards train one of them: choose it",
        ),
        (("--shards", 2, "--refit"), "H-M³ needs the whole taxonomy: leave it out"),
        (("--shards", 2, "--learner", "hpa"), "HPA cannot be sharded: choose one of"),
        (("--shards", 2, "--set", "kafka.start=latest"), "shards would begin at different records"),
        (("--shards", 2, "--set", "kafka.requests=asked", "--shard", 0), "shards cannot ask for labels"),
        (("--shards", 2, "--traffic", "no-such-file"), "--traffic no-such-file"),
    ],
)
def test_what_trainers_cannot_do_is_one_line(tools, arguments, words):
    code, out, err = tools("train", *tools.given, *arguments, **tools.here)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.strip().splitlines()) == 1


def test_what_is_missing_is_one_line(tools, tmp_path):
    code, _, err = tools("train", "--shards", 2, **tools.here)
    assert (code, "--taxonomy is missing" in err) == (2, True)
    code, _, err = tools("train", "--show-plan", **tools.here)
    assert (code, "--taxonomy is missing" in err) == (2, True)
    code, _, err = tools("train", "--taxonomy", tmp_path / "tree.tsv", **tools.here)
    assert (code, "a trainer needs a folder" in err) == (2, True)
    (tmp_path / "empty.jsonl").write_text('{"id": "a", "text": "b"}\n')
    code, _, err = tools(
        "train", *tools.given, "--shards", 2, "--traffic", tmp_path / "empty.jsonl", **tools.here
    )
    assert (code, "no labels" in err) == (2, True)
    code, _, err = tools("predict", **tools.here)
    assert code == 3
    assert f"topic {tools.models} (kafka.models) is missing" in err


def test_whoever_is_shut_out_ends_with_a_code_of_its_own(tools, monkeypatch):
    def fenced(self):
        raise Fenced("another process is one of them now")

    monkeypatch.setattr(Predictor, "run", fenced)
    code, _, err = tools("predict", "--instance", "one", **tools.here)
    assert code == 6
    assert "this one ends, and must not be started again" in err


def test_the_configuration_of_a_predictor():
    kafka = KafkaConfig(group="news", instance="trainer", requests="asked", transaction_timeout=60.0)
    config = predictor_config(Config(kafka=kafka, state=StateConfig(folder="state")), None)
    own = config.kafka
    assert (own.group, own.instance, own.models, own.labels) == ("news-predict", None, "models", None)
    assert (own.requests, own.events, own.transaction_timeout) == (None, None, 10.0)
    assert config.state.folder is None
    assert predictor_config(Config(), "a").kafka.instance == "a"
