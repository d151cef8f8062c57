"""`stream-hc kafka reset`: a job is moved, or not, whenever that is killed; never while somebody runs it."""

import io
import os
import sys
import time
from datetime import UTC, datetime

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from consumers.daemon.beginning import Ends, begin_anew, go_on
from consumers.errors import KafkaProblem
from consumers.offsets import Named, for_place
from consumers.tools.groups import Group
from stream_hc.runtime.building import build_processor
from stream_hc.runtime.config import load_config
from stream_hc.runtime.disk import Batch, Journal, Keeper, Place, StateFolder
from stream_hc.snapshot import dump_bytes, inspect, load
from stream_hc.taxonomy import Taxonomy
from tests.kafka.daemons import World
from tests.kafka.tools import NAMES, Tools

pytestmark = pytest.mark.kafka

JOB = "0123456789abcdef"


class Job(Tools):
    """A job that has stopped: ten documents and four labels, of which it has read some."""

    def __init__(self, kafka, monkeypatch, capfd, folder):
        super().__init__(kafka, monkeypatch, capfd, documents=2)
        self.folder = folder / "state"
        self.partitions = [
            TopicPartition(self.documents, 0),
            TopicPartition(self.documents, 1),
            TopicPartition(self.labels, 0),
        ]
        for partition, count in zip(self.partitions, (6, 4, 4), strict=True):
            self.send(partition.topic, *[b"{}"] * count, partition=partition.partition)
        self.config = load_config(None, {}, {"model.n_features": 64, "state.folder": str(self.folder)}).config

    def save(self, *offsets, job=JOB):
        """Save a snapshot that includes the records before these offsets."""
        processor = build_processor(self.config, Taxonomy([("sport", None), ("tennis", "sport")]))
        with Keeper(self.folder, 99) as keeper, Journal(self.folder / "journal.jsonl") as journal:
            at = dict(zip(self.partitions, offsets, strict=True))
            place = Place(journal=journal.last, offsets=for_place(at.items()), job=job, fitted=3)
            number = keeper.save(processor.parts(), place.extra())
            journal.append(Batch(0, "documents", 7))
        return number

    def commit(self, *offsets, job=JOB, snapshot=1):
        text = Named(job, snapshot, "0f").text() if job else ""
        at = dict(zip(self.partitions, offsets, strict=True))
        wanted = {each: OffsetAndMetadata(offset, text, -1) for each, offset in at.items()}
        self.admin.alter_group_offsets(self.group, wanted)

    @property
    def committed(self):
        found = self.admin.list_group_offsets({self.group: None})[self.group]
        return [found[each].offset for each in self.partitions] if found else None

    @property
    def named(self):
        found = self.admin.list_group_offsets({self.group: None})[self.group]
        names = {Named.of(at.metadata) for at in found.values()}
        assert len(names) == 1
        return names.pop()

    def newest(self):
        """Return number, place and content of the newest snapshot, and the last entry of the journal."""
        with StateFolder(self.config.state) as state:
            parts = dump_bytes(state.loaded.parts)
            return state.loaded.number, state.place, parts, state.journal.last

    def start(self):
        """Return where a job that is started now begins, as the daemon finds it."""
        ends = Ends(dict.fromkeys(self.partitions, 0), dict(zip(self.partitions, (6, 4, 4), strict=True)))
        committed = self.admin.list_group_offsets({self.group: None})[self.group]
        if not self.folder.exists():
            found = begin_anew(str(self.folder), self.group, committed, ends, "earliest")
        else:
            found = go_on(self.newest()[1], False, self.group, committed, ends)
        assert found.published == found.offsets, "it would learn in silence"
        return [found.offsets[each] for each in self.partitions]

    def reset(self, *args):
        return self("reset", *args, state__folder=self.folder)


@pytest.fixture
def job(kafka, monkeypatch, capfd, tmp_path):
    with Job(kafka, monkeypatch, capfd, tmp_path) as made:
        yield made


def check_moved(job, offsets, before):
    """The models are the same, and everything else says that the job stands at these offsets."""
    number, place, parts, last = job.newest()
    assert job.committed == offsets
    assert [place.offsets[f"{each.topic}:{each.partition}"] for each in job.partitions] == offsets
    named = job.named
    assert (named.job, named.snapshot, named.journal) == (place.job, number, last)
    assert named.digest == inspect(job.folder / f"snapshot-{number:08d}.snap").sha256
    assert parts == before
    assert (place.journal, place.fitted) == (last, 3)
    assert place.job not in ("", JOB)
    assert job.start() == offsets


@pytest.mark.parametrize(
    ("to", "offsets"),
    [
        ("earliest", [0, 0, 0]),
        ("latest", [6, 4, 4]),
        ("snapshot", [3, 2, 1]),
        ("{documents}:1=4, {labels}:0=0", [5, 4, 0]),
        ("1970-01-01", [0, 0, 0]),
        ("2999-12-31T23:59:59+01:00", [6, 4, 4]),
    ],
)
def test_it_is_moved_with_all_that_it_has_learned(job, to, offsets):
    job.save(3, 2, 1)
    job.commit(5, 3, 4)
    *_, before, _ = job.newest()
    code, out, err = job.reset("--yes", "--to", to.format(documents=job.documents, labels=job.labels))
    assert code == 0, err
    check_moved(job, offsets, before)
    assert err.endswith("is moved: it goes on from snapshot 2 when it is started\n")
    assert "what was learned from 6 records since snapshot 1 is lost: " in err
    rows = {line.split()[0]: line.split() for line in out.splitlines() if ":" in line}
    for partition, was, now in zip(job.partitions, (5, 3, 4), offsets, strict=True):
        row = rows[f"{partition.topic}:{partition.partition}"]
        assert row[1:3] == [str(was), str(now)]
        told = f"{abs(now - was)} records are {'skipped' if now > was else 'read again'}".split()
        assert row[3:] == ([] if now == was else told)
    skips = any(now > was for was, now in zip((5, 3, 4), offsets, strict=True))
    assert ("never predicted" in err) == skips


def test_records_since_a_time_are_read_again(job):
    job.save(6, 4, 4)
    job.commit(6, 4, 4)
    time.sleep(0.05)
    since = datetime.now(UTC)
    time.sleep(0.05)
    job.send(job.documents, b"{}", partition=1)
    assert job.reset("--yes", "--to", since.isoformat())[0] == 0
    assert job.committed == [6, 4, 4]
    assert job.reset("--yes", "--to", since.replace(tzinfo=None).isoformat())[0] == 0
    assert job.committed == [6, 4, 4]


def test_offsets_that_the_brokers_forgot_come_back_from_the_snapshot(job):
    job.save(3, 2, 1)
    *_, before, _ = job.newest()
    code, out, _ = job.reset("--yes", "--to", "snapshot")
    assert code == 0
    assert out.count(" - ") == 3
    check_moved(job, [3, 2, 1], before)


def test_it_asks_for_the_name_of_the_group(job, monkeypatch):
    job.save(3, 2, 1)
    job.commit(5, 3, 4)
    for typed, code in ((b"yes\n", 2), (b"", 2), (f"{job.group}\n".encode(), 0)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed)))
        ended, _, err = job.reset("--to", "earliest")
        assert ended == code
        assert f"Type the name of the group to go on ({job.group}):" in err
        assert job.committed == ([5, 3, 4] if code else [0, 0, 0])
    assert len(list(job.folder.glob("*.snap"))) == 2


def test_not_while_somebody_is_in_the_group(job, kafka):
    job.save(3, 2, 1)
    job.commit(5, 3, 4)
    consumer = KafkaConsumer(
        job.documents, bootstrap_servers=kafka.bootstrap, group_id=job.group, client_id="anna"
    )
    try:
        while not consumer.assignment():
            consumer.poll(100)
        for options in (("--to", "latest"), ("--forget",)):
            code, _, err = job.reset("--yes", *options)
            assert (code, err.count("\n")) == (3, 1)
            assert f"error: group {job.group} has 1 members (anna at 127.0.0.1): stop them first" in err
    finally:
        consumer.close(autocommit=False)
    assert (job.committed, job.newest()[0]) == ([5, 3, 4], 1)


def test_not_if_somebody_comes_in_between(job, kafka, monkeypatch):
    job.save(3, 2, 1)
    job.commit(5, 3, 4)
    consumers = []
    commit = Group.commit

    def late(self, offsets):
        consumers.append(KafkaConsumer(job.documents, bootstrap_servers=kafka.bootstrap, group_id=job.group))
        while not consumers[0].assignment():
            consumers[0].poll(100)
        commit(self, offsets)

    monkeypatch.setattr(Group, "commit", late)
    code, _, err = job.reset("--yes", "--to", "latest")
    consumers[0].close(autocommit=False)
    assert (code, "stop them first" in err) == (3, True)
    assert job.committed == [5, 3, 4]


def test_not_while_somebody_has_the_state_folder(job):
    job.save(3, 2, 1)
    job.commit(5, 3, 4)
    with Keeper(job.folder, 5):
        for options in (("--to", "latest"), ("--forget",)):
            code, _, err = job.reset("--yes", *options)
            assert (code, err.count("\n")) == (4, 1)
            assert f"in use by the job with process id {os.getpid()}" in err
    assert (job.committed, job.newest()[0]) == ([5, 3, 4], 1)


def test_who_was_killed_in_a_transaction_is_shut_out_first(job, kafka):
    job.save(3, 2, 1)
    job.commit(5, 3, 4)
    old = KafkaProducer(bootstrap_servers=kafka.bootstrap, transactional_id=job.group)
    old.init_transactions()
    old.begin_transaction()
    old.send(job.predictions, b"{}").get(20)
    late = {job.partitions[0]: OffsetAndMetadata(6, "", -1)}
    old.send_offsets_to_transaction(late, job.group)
    assert job.reset("--yes", "--to", "earliest")[0] == 0
    with pytest.raises(Exception, match="Fenced"):
        old.commit_transaction()
    old.close(timeout=1)
    assert job.committed == [0, 0, 0]


class TestKilled:
    """Raising where a kill would end it leaves the same behind."""

    def kill(self, monkeypatch, where, name):
        def killed(*args, **options):
            raise KeyboardInterrupt

        monkeypatch.setattr(where, name, killed)

    @pytest.mark.parametrize("to", ["earliest", "latest"])
    def test_before_it_has_committed_nothing_fits_and_the_next_attempt_begins_with_the_old(
        self, job, monkeypatch, to
    ):
        job.save(3, 2, 1)
        job.commit(5, 3, 4)
        *_, before, _ = job.newest()
        with monkeypatch.context() as patch:
            self.kill(patch, Group, "commit")
            assert job.reset("--yes", "--to", to)[0] == 130
        assert job.committed == [5, 3, 4]
        number, place, _, _ = job.newest()
        assert (number, job.named.job) == (2, JOB)
        assert place.job != JOB
        with pytest.raises(KafkaProblem, match="those of another job"):
            job.start()
        _, out, _ = job.reset("--yes", "--to", "snapshot")
        assert "2 records are read again" in out
        check_moved(job, [3, 2, 1], before)

    def test_after_it_has_committed_it_is_moved(self, job, monkeypatch):
        job.save(3, 2, 1)
        job.commit(5, 3, 4)
        *_, before, _ = job.newest()
        commit = Group.commit

        def killed(self, offsets):
            commit(self, offsets)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Group, "commit", killed)
            assert job.reset("--yes", "--to", "earliest")[0] == 130
        check_moved(job, [0, 0, 0], before)

    def test_while_it_saves_nothing_has_happened(self, job, monkeypatch):
        job.save(3, 2, 1)
        job.commit(5, 3, 4)
        before = job.newest()
        with monkeypatch.context() as patch:
            self.kill(patch, os, "replace")
            assert job.reset("--yes", "--to", "earliest")[0] == 130
        assert (job.committed, job.newest()) == ([5, 3, 4], before)

    @pytest.mark.parametrize("to", [(), ("--to", "latest")])
    def test_behind_the_folder_the_next_attempt_forgets_the_group(self, job, monkeypatch, to):
        job.save(3, 2, 1)
        job.commit(5, 3, 4)
        with monkeypatch.context() as patch:
            self.kill(patch, Group, "commit" if to else "delete")
            assert job.reset("--yes", "--forget", *to)[0] == 130
        assert (job.folder.exists(), job.named.job) == (False, JOB)
        with pytest.raises(KafkaProblem, match="goes on from snapshot 1, which is not in"):
            job.start()
        code, _, err = job.reset("--yes", "--forget", *to)
        assert (code, err.splitlines()[-1]) == (0, f"{job.group} begins anew")
        assert job.committed == ([6, 4, 4] if to else None)
        assert job.start() == ([6, 4, 4] if to else [0, 0, 0])
        assert len(list(job.folder.parent.glob("state.before-*"))) == 1


class TestForget:
    def test_the_group_is_new_and_the_folder_is_aside(self, job):
        for number in (1, 2):
            job.save(3, 2, 1)
            job.commit(5, 3, 4)
            code, _, err = job.reset("--yes", "--forget")
            assert code == 0
            assert err.endswith(f"begins anew; what it knew is in {job.folder}.before-{number}\n")
            assert (job.committed, job.folder.exists()) == (None, False)
        assert load(job.folder.with_name("state.before-2") / "snapshot-00000001.snap")

    def test_it_can_begin_anew_elsewhere(self, job):
        job.save(3, 2, 1)
        job.commit(5, 3, 4)
        assert job.reset("--yes", "--forget", "--to", f"{job.documents}:0=4")[0] == 0
        assert job.committed == [4, 3, 4]
        assert job.named is None
        assert job.start() == [4, 3, 4]


def test_a_place_that_makes_no_sense_is_one_line(job):
    job.save(3, 2, 1)
    job.commit(5, 3, 4)
    documents, labels = job.documents, job.labels
    for to, code, said in [
        ("yesterday", 2, "--to yesterday: expected earliest, latest, a time"),
        (f"{documents}:0", 2, ": expected earliest, latest, a time"),
        (f"{documents}:0=-1", 2, ": expected TOPIC:PARTITION=OFFSET"),
        (f"{documents}:0=1,", 2, "--to : expected TOPIC:PARTITION=OFFSET"),
        (f"{documents}:2=1", 2, f"the job does not read that, only {documents}:0, {documents}:1, {labels}:0"),
        (f"{documents}:0=7", 3, f"record 7 of {documents}:0 is not there yet: it has 0 to 6"),
        ("1900-01-01", 2, "before 1970 there were no records"),
    ]:
        ended, _, err = job.reset("--yes", "--to", to)
        assert (ended, err.count("\n")) == (code, 1)
        assert said in err
    assert job.committed == [5, 3, 4]


def test_records_that_are_gone_are_named(job):
    job.save(3, 2, 1)
    job.commit(5, 3, 4)
    job.admin.delete_records({job.partitions[0]: 4})
    code, _, err = job.reset("--yes", "--to", "snapshot")
    assert (code, err.count("\n")) == (3, 1)
    assert f"record 3 of {job.documents}:0 is gone by now: it has 4 to 6" in err
    assert job.reset("--yes", "--to", "earliest")[0] == 0
    assert job.committed == [4, 0, 0]


def test_what_is_missing_is_one_line(job):
    code, _, err = job.reset("--yes")
    assert (code, err) == (
        2,
        "error: say where: --to earliest, latest, a time, snapshot or offsets; or --forget\n",
    )
    code, _, err = job("reset", "--yes", "--to", "latest")
    assert (code, err.startswith("error: name the state folder of the job: ")) == (2, True)
    code, _, err = job.reset("--yes", "--to", "latest")
    assert (code, err.startswith(f"error: {job.folder}: no snapshot there")) == (3, True)
    assert not job.folder.exists()
    job.save(3, 2, 1)
    (job.folder / "snapshot-00000001.snap").write_bytes(b"damaged")
    code, _, err = job.reset("--yes", "--to", "latest")
    assert (code, "no sound snapshot" in err, err.count("\n")) == (4, True, 1)
    assert job.reset("--yes", "--forget", "--to", "snapshot")[0] == 2
    assert job.reset("--yes", "--forget")[0] == 0


def test_the_state_of_another_job_is_taken_only_as_it_is(job):
    job.commit(5, 3, 4)
    job.save(3, 2, 1, job="another")
    *_, before, _ = job.newest()
    for to in ("earliest", f"{job.documents}:0=5"):
        code, _, err = job.reset("--yes", "--to", to)
        assert (code, err.count("\n")) == (3, 1)
        assert err.startswith(
            f"error: {job.folder}: the state of another job than the one that has committed"
        )
    assert job.reset("--yes", "--to", "snapshot")[0] == 0
    check_moved(job, [3, 2, 1], before)
    job.save(3, 2, 1, job="")
    (job.folder / "snapshot-00000002.snap").unlink()
    (job.folder / "snapshot-00000001.snap").unlink()
    code, _, err = job.reset("--yes", "--to", "snapshot")
    assert (code, err.startswith(f"error: {job.folder}: the state of a job on files")) == (3, True)


@pytest.mark.compiled
def test_a_real_job_reads_again_what_it_is_told_to(kafka, tmp_path, monkeypatch, capfd):
    world = World(kafka, tmp_path, instance="none")
    n_records = sum(world.produce(world.records(300, delay=50)).values())
    world.run("--limit", n_records)
    with Tools(kafka, monkeypatch, capfd) as tools:
        for name in NAMES:
            setattr(tools, name, world.topics[name])
        tools.group = world.group
        options = ("--config", world.config_file, "--yes")
        code, out, err = tools("reset", "--to", f"{world.topics['documents']}:0=400", *options)
    assert code == 0, err
    assert f"{n_records - 400} records are read again" in out
    again = [
        record for record in world.read("documents") if record.offset >= 400 and b'"text"' in record.value
    ]
    world.run("--limit", 2 * n_records - 400, log="again.log")
    assert len(world.predicted()) == 300 + len(again)
    assert "300 documents" not in world.said("again.log")
