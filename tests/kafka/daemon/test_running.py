"""The daemon in this process: what it does with a small stream, beginning to end, whatever comes between."""

import json
import os
import re
import time

import msgspec
import pytest
from kafka import KafkaAdminClient, TopicPartition

from consumers.daemon import Daemon
from consumers.errors import KafkaProblem
from deploy.kafka.settings import free_port
from stream_hc.runtime.disk import JournalError
from stream_hc.runtime.disk.commands import post
from stream_hc.runtime.disk.lock import lock_folder
from tests.kafka.daemon.running import Killed, SmallWorld

pytestmark = pytest.mark.kafka


@pytest.fixture
def world(kafka, tmp_path):
    return lambda **options: SmallWorld(kafka, tmp_path, **options)


def limited(here, n, **tables):
    """Return the configuration with a limit, and with other changes to its tables."""
    changes = {name: msgspec.structs.replace(getattr(here.config, name), **of) for name, of in tables.items()}
    stream = msgspec.structs.replace(here.config.stream, limit=n)
    return msgspec.structs.replace(here.config, stream=stream, **changes)


def kill_after(batches):
    """Return what kills a daemon when so many batches are published."""
    left = [batches]

    def count(job):
        left[0] -= 1
        if not left[0]:
            raise Killed

    return count


def killed(here, batches):
    with here.running(processed=kill_after(batches)) as running:
        running.wait()
        assert isinstance(running.error, Killed)
        running.error = None


def has_read(running, n):
    """Whether so many records are learned and published, labels behind the last document included."""
    jobs = running.watcher.jobs
    return bool(jobs) and sum(jobs[-1]._offsets.values()) == n


def problem_of(running):
    """Return why a daemon ends that cannot go on."""
    with running:
        running.wait()
        error, running.error = running.error, None
    assert isinstance(error, KafkaProblem), error
    return str(error)


def test_a_stream_comes_out_and_the_time_in_it_is_told(world):
    here = world(state="every = 40")
    stream = list(here.records(60, delay=10, poison=20))
    here.send(stream, seconds=7)
    lags = []
    with here.running(limited(here, len(stream)), saved=lambda job: lags.append(job.lag)) as running:
        running.wait()
    here.check(60, letters=3)
    assert here.parts() == here.calm_parts()
    job = running.job
    assert job.processor.room.now > 1000.0  # told by the records, not by the machine
    assert job.counts["snapshots"] >= 3  # the first, some on the way, the last
    assert job.transactions.counts["committed"] >= 7  # batches of 20
    assert lags[0] == {}
    assert lags[-1] == {TopicPartition(here.topics["documents"], 0): 0}
    assert running.said == []
    assert running.watcher.happened[:3] == ["saved", "begin", "live"]


def test_killed_between_two_batches_it_goes_on_as_if_nothing_had_been(world):
    here = world()
    stream = list(here.records(60, delay=10))
    here.send(stream, seconds=7)
    killed(here, 3)
    assert 0 < len(here.predicted()) < 60
    with here.running(limited(here, len(stream))) as running:
        running.wait()
    here.check(60)
    assert here.parts() == here.calm_parts()
    assert running.said == []


def lose_the_end_of_the_journal(here):
    journal = here.folder / "state" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    assert len(lines) > 2
    journal.write_bytes(lines[0])


def test_a_journal_that_lost_its_end_is_read_on_behind_and_that_is_said(world):
    here = world()
    stream = list(here.records(60, delay=10))
    here.send(stream[:60])
    killed(here, 3)
    published = here.predicted()
    lose_the_end_of_the_journal(here)
    with here.running(limited(here, 60)) as running:
        running.wait()
    assert running.said == [
        f"the journal ends before what is published: reading on in {here.topics['documents']}:0"
    ]
    assert here.predicted()[: len(published)] == published
    assert len(set(here.predicted())) == len(here.predicted())
    assert here.parts() == here.calm_parts()


def test_behind_a_journal_that_lost_its_end_everything_is_published(world):
    here = world()
    stream = list(here.records(60, delay=10))
    here.send(stream)
    killed(here, 4)
    lose_the_end_of_the_journal(here)
    with here.running(limited(here, len(stream))) as running:
        running.wait()
    here.check(60)
    assert here.parts() == here.calm_parts()


def test_records_that_are_deleted_before_they_are_read_are_a_problem(world, kafka):
    here = world()
    here.send(here.records(30, delay=10))

    def delete(job):
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap) as admin:
            admin.delete_records({TopicPartition(here.topics["documents"], 0): 20})

    assert re.search("records were deleted before they were read", problem_of(here.running(live=delete)))
    assert here.predicted() == []


def test_records_that_are_deleted_before_they_are_read_again_are_a_problem(world, kafka):
    here = world()
    here.send(here.records(30, delay=10))
    killed(here, 2)

    def delete(job):
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap) as admin:
            admin.delete_records({TopicPartition(here.topics["documents"], 0): 20})

    assert re.search("records are gone that the journal names", problem_of(here.running(begin=delete)))


def test_records_that_are_not_all_there_any_more_are_a_problem(world):
    here = world()
    here.send(here.records(30, delay=10))
    killed(here, 2)

    def lose_one(job):
        take = job._reader.take
        job._reader.take = lambda *asked: take(*asked)[:-1]

    assert re.search(
        r"1 of \d+ records in entry 1 of the journal are gone", problem_of(here.running(begin=lose_one))
    )


def test_stopped_while_it_catches_up_it_says_so_and_loses_nothing(world):
    here = world()
    stream = list(here.records(30, delay=10))
    here.send(stream)
    killed(here, 2)

    def stop(job):
        running.requested = True

    with here.running(begin=stop) as running:
        running.wait()
    assert running.said == ["stopped while it caught up"]
    with here.running(limited(here, len(stream))) as running:
        running.wait()
    here.check(30)
    assert here.parts() == here.calm_parts()


def test_a_journal_that_does_not_reach_the_disk_is_said(world):
    here = world(together=False)
    stream = list(here.records(10, delay=5))
    here.send(stream)

    def break_disk(job):
        def fail():
            raise JournalError("the disk is full")

        job._state.journal.sync = fail

    with here.running(limited(here, len(stream)), live=break_disk) as running:
        running.wait()
    assert running.said[0] == ("the disk is full: a power cut may change the order of records read again")
    assert running.job.counts["journal_failures"] == len(running.said)
    here.check(10)


def test_a_second_one_stands_by_and_takes_over(world):
    here = world(instance="none")
    stream, told = list(here.records(40, delay=10)), []
    here.send(stream[:40])
    with here.running() as first:
        first.until(lambda: len(here.predicted()) > 10)
        with here.running(standing_by=lambda: told.append(1)) as second:
            second.until_noted(f"standing by in the group {here.group}")
            first.requested = True
            first.wait()
            here.send(stream[40:])
            second.until(lambda: has_read(second, len(stream)))
    assert told == [1]
    here.check(40)
    assert here.parts() == here.calm_parts()


def test_one_that_loses_its_partitions_stands_by(world):
    here = world(instance="none")
    stream = list(here.records(40, delay=10))
    here.send(stream[:40])
    leave = []

    def looked(job):
        if leave:
            leave.clear()
            job.membership.consumer._coordinator.maybe_leave_group()
            time.sleep(3.0)  # until the other one has them

    with here.running(looked=looked) as first:
        first.until(lambda: len(here.predicted()) > 10)
        with here.running() as second:
            second.until_noted("standing by")
            leave.append(1)
            second.until(lambda: second.watcher.jobs)
            here.send(stream[40:])
            first.until_noted("not reading any more: ")
            second.until(lambda: has_read(second, len(stream)))
            first.requested = True
            first.wait()
    here.check(40)
    assert here.parts() == here.calm_parts()


def test_while_another_has_the_state_folder_it_waits(world):
    here = world()
    here.send(here.records(20, delay=5))
    (here.folder / "state").mkdir()
    lock = lock_folder(str(here.folder / "state"))
    try:
        with here.running(limited(here, 40)) as running:
            running.until_noted("in use by the job with process id")
            assert running.watcher.jobs == []
            os.close(lock)
            lock = None
            running.wait()
    finally:
        if lock is not None:
            os.close(lock)
    (note,) = running.said
    assert note.endswith(": waiting")
    here.check(20)


def test_stopped_while_another_has_the_state_folder_it_says_so(world):
    here = world()
    (here.folder / "state").mkdir()
    lock = lock_folder(str(here.folder / "state"))
    try:
        with here.running() as running:
            running.until_noted("in use by")
    finally:
        os.close(lock)
    assert running.notes[-1] == "stopped while another process had the state folder"


def test_brokers_that_are_away_at_the_start_are_waited_for(world):
    here = world()
    nowhere = msgspec.structs.replace(
        here.config.kafka, bootstrap=f"127.0.0.1:{free_port()}", request_timeout=1.0, username="somebody"
    )
    with here.running(msgspec.structs.replace(here.config, kafka=nowhere)) as running:
        running.until_noted("trying again until it works")
    assert running.said[0].startswith("warning: kafka.username is set")
    assert running.notes[-1] == "stopped while the brokers were away"


def test_topics_that_are_missing_are_made_or_missed(world):
    here = world()
    missing = msgspec.structs.replace(here.config.kafka, predictions=f"more-{here.group}")
    assert re.search(
        f"topic more-{here.group} .* is missing",
        problem_of(here.running(msgspec.structs.replace(here.config, kafka=missing))),
    )
    making = msgspec.structs.replace(missing, create_topics=True)
    with here.running(msgspec.structs.replace(here.config, kafka=making)) as running:
        running.until(lambda: "live" in running.watcher.happened)
    assert running.said[0] == f"made the topic more-{here.group}"


def test_all_that_is_wrong_with_the_topics_is_said(world):
    here = world()
    wrong = msgspec.structs.replace(here.config.kafka, predictions="missing-1", dead_letters="missing-2")
    running = here.running(msgspec.structs.replace(here.config, kafka=wrong))
    assert problem_of(running).startswith("topic missing-1")
    assert any(note.startswith("problem: topic missing-2") for note in running.notes)


def test_what_somebody_asks_for_is_done_once_and_told_while_nothing_comes(world):
    here = world(learners=("h-arow", "node-pa"))
    here.send(here.records(20, delay=5))
    with here.running() as running:
        running.until(lambda: len(here.predicted()) == 20)
        post(here.folder / "state", "promote", "node-pa")
        running.until(lambda: promotions(here))
    assert promotions(here) == ["node-pa"]
    here.send(here.records(10, seed=4, delay=5))
    with here.running(limited(here, 60)) as running:
        running.wait()
    assert promotions(here) == ["node-pa"]
    assert json.loads(here.read("predictions")[-1].value)["model"] == "node-pa"


def promotions(here):
    lines = [json.loads(record.value) for record in here.read("events")]
    return [line["model"] for line in lines if line.get("what") == "promoted"]


def test_what_somebody_asked_for_is_done_again_after_a_kill_and_told_once(world):
    here = world(learners=("h-arow", "node-pa"))
    here.send(here.records(20, delay=5))

    def looked(job):
        if job.processor.contest.line_up.champion == "node-pa" and not job._events:
            raise Killed

    with here.running(looked=looked) as running:
        running.until(lambda: len(here.predicted()) == 20)
        post(here.folder / "state", "promote", "node-pa")
        running.wait()
        assert isinstance(running.error, Killed)
        running.error = None
    here.send(here.records(10, seed=4, delay=5))
    with here.running(limited(here, 60)) as running:
        running.wait()
    assert promotions(here) == ["node-pa"]
    assert json.loads(here.read("predictions")[-1].value)["model"] == "node-pa"


def test_partitions_that_come_while_it_runs_are_read_from_their_beginning(world, kafka):
    here = world()
    stream = list(here.records(40, delay=10))
    here.send(stream[:40])

    def looked(job):
        job.membership.consumer._client.cluster.request_update()  # it would ask every five minutes

    with here.running(looked=looked) as running:
        running.until(lambda: len(here.predicted()) > 10)
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap) as admin:
            admin.create_partitions({here.topics["documents"]: 2})
        here.send(stream[40:], partition=1)
        running.until(lambda: len(here.predicted()) == 40)
        running.until(lambda: sum(running.job.lag.values()) == 0)
    here.check(40)
    with here.running() as running:  # and it goes on with both
        running.until(lambda: "live" in running.watcher.happened)
        assert len(running.job._offsets) == 2


def test_several_partitions_are_read_again_in_the_order_they_had(world):
    here = world(together=False, partitions=2)
    stream = list(here.records(40, delay=10))
    for number in range(0, len(stream), 5):
        here.send(stream[number : number + 5], partition=number // 5 % 2)
    killed(here, 3)
    before = here.read("predictions")
    with here.running(limited(here, len(stream))) as running:
        running.wait()
    here.check(40)
    assert running.said == []
    assert before
    assert running.job.processor.progress.records == len(stream)


def test_a_new_job_needs_a_taxonomy(world):
    here = world()
    running = here.running()
    running._daemon._taxonomy = None
    assert problem_of(running).startswith("--taxonomy is missing: name the file, or a --state folder")


def test_a_job_without_a_state_folder_is_refused(world):
    here = world()
    state = msgspec.structs.replace(here.config.state, folder=None)
    with pytest.raises(KafkaProblem, match="a job on topics needs a state folder"):
        Daemon(msgspec.structs.replace(here.config, state=state), None, None, None)
