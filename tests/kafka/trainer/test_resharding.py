"""Shards cut anew through the commands, in this process: level first, and said again if it was killed."""

import shutil

import pytest

from consumers.models.manifest import ShardKey
from consumers.trainer import resharding
from consumers.trainer.settings import letters_about, shard_folder, trainer_config
from stream_hc import snapshot
from stream_hc.datasets import make_news
from stream_hc.runtime.config import Config, KafkaConfig, StateConfig
from stream_hc.sharding import Plan, join_learners
from stream_hc.snapshot import dump_bytes
from tests.kafka.daemons import stream
from tests.kafka.tools import Tools

pytestmark = pytest.mark.kafka


class Training(Tools):
    """Trains shards of a small stream, one after the other."""

    def __init__(self, kafka, monkeypatch, capfd, folder, **partitions):
        super().__init__(kafka, monkeypatch, capfd, **partitions)
        self.folder, self.state = folder, folder / "state"
        make_news(10, seed=3).taxonomy.write(folder / "tree.tsv")
        self.sent = 0
        self.own = {
            "model__n_features": 512,
            "model__taxonomy": folder / "tree.tsv",
            "kafka__events": "none",
            "kafka__session_timeout": 6,
            "kafka__models": f"models-{self.group}",
            "kafka__create_topics": "true",
            "state__folder": self.state,
        }

    def feed(self, n):
        for text, labels in list(stream(self.sent + n, 3))[self.sent :]:
            self.send(self.documents, {"id": f"d{self.sent}", "text": text, "labels": labels})
            self.sent += 1

    def train(self, n_shards, *limits):
        for shard, limit in enumerate(limits):
            code, _, err = self(
                "train", "--shards", n_shards, "--shard", shard, "--limit", limit, "-q", **self.own
            )
            assert code == 0, err

    def reshard(self, n_shards, *more):
        return self("reshard", "--shards", n_shards, *more, **self.own)

    def folders(self):
        return sorted(each.name for each in self.state.iterdir())

    def learner(self, n_shards):
        """Return the learner of all shards, joined."""
        parts = [
            snapshot.load(max((self.state / f"{n}-of-{n_shards}").glob("snapshot-*.snap")))
            for n in range(n_shards)
        ]
        learners = [each["learner h-arow"] for each in parts]
        if n_shards == 1:
            return learners[0]
        shard = parts[0]["shard"]
        return join_learners(Plan(shard.whole, shard.owner), learners)


@pytest.fixture
def tools(kafka, monkeypatch, capfd, tmp_path):
    with Training(kafka, monkeypatch, capfd, tmp_path) as made:
        yield made


def test_other_shards_go_on_where_these_were(tools):
    tools.feed(24)
    tools.train(2, 10, 17)
    code, _, err = tools.reshard(3, "--yes")
    assert code == 0, err
    assert "0-of-2 is 7 records behind the others: it reads them now" in err
    assert "3 shards go on where 2 were: start stream-hc kafka train --shards 3" in err
    assert tools.folders() == ["0-of-2.before-1", "0-of-3", "1-of-2.before-1", "1-of-3", "2-of-3"]
    tools.train(3, 24, 24, 24)
    joined = tools.learner(3)
    # As one trainer would have made it.
    shutil.rmtree(tools.state)
    tools.group += "-alone"
    tools.train(1, 24)
    assert dump_bytes(joined) == dump_bytes(tools.learner(1))
    assert joined.n_learned == 24


def test_killed_on_the_way_it_is_said_again(tools, monkeypatch):
    tools.feed(12)
    tools.train(2, 12, 12)
    before = dump_bytes(tools.learner(2))

    def killed(*_):
        raise KeyboardInterrupt

    real = resharding.Group.commit
    second = lambda self, offsets: (killed if "1-of-3" in self._name else real)(self, offsets)  # noqa: E731
    monkeypatch.setattr(resharding.Group, "commit", second)
    assert tools.reshard(3, "--yes")[0] == 130
    assert tools.folders() == ["0-of-2", "0-of-3", "1-of-2", "1-of-3", "2-of-3"]
    # Once more, up to where the old folders are put aside.
    monkeypatch.setattr(resharding.Group, "commit", real)
    put_aside = resharding.put_aside
    monkeypatch.setattr(resharding, "put_aside", killed)
    assert tools.reshard(3, "--yes")[0] == 130
    assert dump_bytes(tools.learner(3)) == before
    monkeypatch.setattr(resharding, "put_aside", put_aside)
    code, _, err = tools.reshard(3, "--yes")
    assert code == 0, err
    assert "the new shards are there already" in err
    assert tools.folders() == ["0-of-2.before-1", "0-of-3", "1-of-2.before-1", "1-of-3", "2-of-3"]
    tools.train(3, 12, 12, 12)
    assert dump_bytes(tools.learner(3)) == before


def test_several_partitions_keep_what_each_owner_knows(kafka, monkeypatch, capfd, tmp_path):
    with Training(kafka, monkeypatch, capfd, tmp_path, documents=2) as tools:
        tools.feed(30)
        tools.send(tools.documents, b"{", partition=1)
        tools.train(2, 31, 31)
        code, _, err = tools.reshard(1, "--yes")
        assert code == 0, err
        assert "each node is as its owner has it" in err
        assert tools.count(tools.dead_letters) == 0, "that is for predictors to say"
        assert tools.learner(1).n_learned == 30
        tools.feed(5)
        tools.train(1, 36)
        assert tools.learner(1).n_learned == 35


def test_shards_that_are_not_from_these_do_not_count(tools):
    """Somebody began anew by mistake: what the others know is not given up for it."""
    tools.feed(12)
    tools.train(2, 12, 12)
    code, _, err = tools("train", "--shards", 3, "--shard", 0, "--limit", 3, **tools.own)
    assert code == 2
    assert "has 2 shards, not 3: stream-hc kafka reshard --shards 3 goes on with what they know" in err
    aside = tools.state.rename(tools.folder / "aside")
    tools.train(3, 3, 3, 3)
    for each in aside.iterdir():
        each.rename(tools.state / each.name)
    code, _, err = tools.reshard(3, "--yes")
    assert code == 0, err
    assert err.count("is not from these shards: it is put aside") == 3
    assert tools.learner(3).n_learned == 12
    code, _, err = tools("reset", "--forget", "--yes", **tools.own)
    assert code == 2
    assert "has the folders of shards: name one of them, such as --set kafka.group=" in err


def test_what_cannot_be_done_is_one_line(tools):
    code, _, err = tools.reshard(2, "--yes")
    assert (code, "has no shards: name the state folder of trainers" in err) == (2, True)
    tools.feed(4)
    tools.train(2, 4, 4)
    code, _, err = tools.reshard(2, "--yes")
    assert (code, "has only 2 shards" in err) == (2, True)
    code, _, err = tools.reshard(3, "--yes", "--from", 5)
    assert (code, "--from 5" in err) == (2, True)
    (tools.state / "0-of-7").mkdir()
    code, _, err = tools.reshard(3, "--yes")
    assert (code, "cuts into 2, 7 shards: say which one, with --from" in err) == (2, True)
    code, _, err = tools.reshard(3, "--yes", "--from", 7)
    assert (code, "no snapshot: put it back" in err) == (3, True)
    odd = {**tools.own, "model__learners": "pa"}
    code, _, err = tools("reshard", "--shards", 3, "--yes", "--from", 2, **odd)
    assert (code, "PA cannot be sharded" in err) == (2, True)
    code, _, err = tools("reshard", "--shards", 2, "--yes", **{**tools.own, "state__folder": "none"})
    assert (code, "name the state folder of the trainers" in err) == (2, True)


def test_the_configuration_of_a_trainer():
    kafka = KafkaConfig(group="news", requests=None)
    config = Config(kafka=kafka, state=StateConfig(folder="state"))
    first, second = (trainer_config(config, ShardKey(number, 2)) for number in range(2))
    assert (first.kafka.group, second.kafka.group) == ("news-train-0-of-2", "news-train-1-of-2")
    assert (first.kafka.dead_letters, second.kafka.dead_letters) == ("dead-letters", None)
    assert (first.kafka.predictions, first.kafka.events, first.kafka.models) == (None, None, "models")
    assert second.state.folder == shard_folder("state", ShardKey(1, 2)) == "state/1-of-2"
    assert trainer_config(config, ShardKey(0, 1)).kafka.events == "model-events"
    assert letters_about(first) == ["labels"]
    for labels in (None, "documents"):
        assert letters_about(Config(kafka=KafkaConfig(labels=labels))) == []
