"""`stream-hc kafka doctor` and `stream-hc doctor --kafka`: what they say of a job, and how they end."""

import os
import sys
import time
import tomllib
import uuid
from importlib.metadata import EntryPoint

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from msgspec.structs import replace

from consumers.clients import patiently
from consumers.doctor import examine_kafka
from consumers.offsets import Named, for_place, offsets_to_commit
from consumers.settings import client_settings
from consumers.topics import create_missing
from deploy.kafka.settings import free_port
from stream_hc.cli import checking, doctor, main
from stream_hc.runtime.building import build_processor
from stream_hc.runtime.config import Config, ModelConfig, StateConfig
from stream_hc.runtime.config.kafka import KafkaConfig
from stream_hc.runtime.disk import Keeper, Place
from stream_hc.taxonomy import Taxonomy
from tests.conftest import ROOT

TREE = Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)])
NAMED = Named("job-1", 1, "digest")


class Patient:
    """A job with topics, a taxonomy and a state folder of its own, as the doctor sees it."""

    def __init__(self, kafka, folder):
        end = uuid.uuid4().hex[:8]
        names = {role: f"{role}-{end}" for role in ("documents", "predictions", "dead_letters")}
        names |= {"labels": None, "events": None, "group": f"group-{end}"}
        table = KafkaConfig(bootstrap=kafka.bootstrap, request_timeout=20.0, **names)
        self.tree, self.state = folder / "tree.tsv", folder / "state"
        TREE.write(self.tree)
        model = ModelConfig(taxonomy=str(self.tree), n_features=64)
        self.config = Config(model=model, state=StateConfig(folder=str(self.state)), kafka=table)
        self.partition = TopicPartition(table.documents, 0)
        with KafkaAdminClient(**client_settings(table)) as admin:
            create_missing(admin, table)

    def examine(self, **changes):
        """Return the exit code, and what is not fine; `kafka` changes that table."""
        lines = []
        table = replace(self.config.kafka, **changes.pop("kafka", {}))
        code = examine_kafka(replace(self.config, kafka=table, **changes), lines.append)
        assert all(line[:9] in ("ok       ", "warning  ", "problem  ") for line in lines)
        self.fine = [line[9:] for line in lines if line.startswith("ok ")]
        return code, [line for line in lines if not line.startswith("ok ")]

    def send(self, n):
        with KafkaProducer(bootstrap_servers=self.config.kafka.bootstrap) as producer:
            for _ in range(n):
                producer.send(self.partition.topic, b"{}", partition=0).get(20)

    def save(self, offset, job=NAMED.job, tree=TREE):
        """Take a snapshot that includes the records before an offset."""
        processor = build_processor(self.config, tree)
        processor.progress.records = offset
        place = Place(offsets=for_place([(self.partition, offset)]), job=job)
        with Keeper(self.state, 3) as keeper:
            return keeper.path(keeper.save(processor.parts(), place.extra()))

    def commit(self, offset, named=NAMED):
        group, offsets = self.config.kafka.group, offsets_to_commit({self.partition: offset}, named)
        with KafkaAdminClient(**client_settings(self.config.kafka)) as admin:
            patiently(lambda: admin.alter_group_offsets(group, offsets), 20.0)

    def drop(self, offset):
        """Let the broker forget the records before an offset, as it does when they are too old."""
        with KafkaAdminClient(**client_settings(self.config.kafka)) as admin:
            admin.delete_records({self.partition: offset})


@pytest.fixture
def patient(kafka, tmp_path):
    return Patient(kafka, tmp_path)


def test_a_new_job_and_one_that_goes_on_are_fine(patient):
    assert patient.examine() == (0, [])
    group = patient.config.kafka.group
    assert patient.fine[0] == f"state folder {patient.state}: new"
    assert patient.fine[1] == f"taxonomy {patient.tree}: 3 nodes"
    assert f"topic {patient.partition.topic}: 1 partition, 1 replica, kept for 7 days" in patient.fine
    assert f"this client may read, write and commit as {group}" in patient.fine
    assert patient.fine[-1] == f"group {group}: 0 records are to be read"
    assert not patient.state.exists(), "the doctor changes nothing"
    patient.send(5)
    patient.save(2)
    patient.commit(3)
    assert patient.examine() == (0, [])
    assert patient.fine[0] == f"state folder {patient.state}: snapshot 1, after 2 records"
    assert patient.fine[-1] == f"group {group}: 2 records are to be read"


def test_records_that_are_gone_are_named_with_the_way_out(patient):
    patient.send(5)
    patient.save(1)
    patient.commit(1)
    patient.drop(4)
    code, (line,) = patient.examine()
    assert code == 1
    assert line.startswith(f"problem  records 1 to 3 of {patient.partition.topic}:0 are gone (")
    assert "stream-hc kafka reset --to earliest" in line


def test_a_snapshot_older_than_what_is_kept_is_a_warning(patient):
    path = patient.save(0)
    patient.commit(0)
    ago = time.time() - 8 * 86_400
    os.utime(path, (ago, ago))
    code, (line,) = patient.examine()
    assert code == 0
    assert line.startswith(
        f"warning  topic {patient.partition.topic}: kept for 7 days, and the newest snapshot is 8"
    )


def test_a_state_folder_of_another_job_is_named(patient):
    patient.send(1)
    patient.commit(1)
    code, (line,) = patient.examine()
    assert (code, line[:8]) == (1, "problem ")
    assert f"goes on from snapshot 1, which is not in {patient.state}" in line
    patient.save(1, job="another")
    code, (line,) = patient.examine()
    assert code == 1
    assert "are those of another job than the state folder's" in line


def test_a_taxonomy_that_has_changed_is_named(patient):
    patient.save(0)
    patient.commit(0)
    Taxonomy([("sport", None), ("politics", None)]).write(patient.tree)
    changed = (
        f"problem  {patient.tree}: the taxonomy has changed (3 nodes, now 2): give the old one, or an empty"
    )
    code, (line,) = patient.examine()
    assert (code, line[: len(changed)]) == (1, changed)
    patient.tree.write_text("tennis\tno such parent\n")
    assert patient.examine()[1][0].startswith("problem  model.taxonomy: ")
    patient.tree.unlink()
    assert patient.examine()[1][0].startswith("problem  model.taxonomy: ")
    without = replace(patient.config.model, taxonomy=None)
    assert patient.examine(model=without) == (0, []), "the snapshot has one"


def test_what_a_new_job_lacks_is_named(patient):
    code, lines = patient.examine(state=StateConfig(), model=replace(patient.config.model, taxonomy=None))
    assert (code, lines) == (
        1,
        ["problem  a job on topics needs a state folder: --state DIR, or state.folder"],
    )
    code, lines = patient.examine(model=replace(patient.config.model, taxonomy=None))
    assert lines == ["problem  a new job needs a taxonomy: --taxonomy FILE, or model.taxonomy"]
    file = StateConfig(folder=str(patient.tree / "state"))
    code, lines = patient.examine(state=file)
    assert lines == [
        f"problem  state.folder: {patient.tree / 'state'}: {patient.tree} is no folder that can be written to"
    ]


def test_a_damaged_snapshot_is_passed_over_and_told_if_it_is_the_only_one(patient):
    first = patient.save(0)
    patient.commit(0)
    second = patient.save(0)
    with open(second, "r+b") as stream:
        stream.write(b"nonsense")
    code, (line,) = patient.examine()
    assert code == 0
    assert line.startswith(f"warning  {second}: ")
    assert line.endswith(": a start goes on from snapshot 1")
    assert "snapshot 1, after 0 records" in patient.fine[0]
    os.truncate(first, 10)
    code, lines = patient.examine()
    assert code == 1
    assert lines[0].startswith("problem  no snapshot can be read (")
    assert lines[0].endswith(": put one back from a backup")


def test_a_table_that_makes_no_sense_is_told_and_nobody_is_called(patient):
    table = {"sasl": "plain", "ca": "missing.pem", "username": "anna", "bootstrap": "127.0.0.1"}
    code, lines = patient.examine(kafka=table)
    assert code == 1
    assert [line.split(":")[0] for line in lines] == [
        "warning  kafka.username is set, but kafka.security is plaintext",
        "problem  kafka.bootstrap",
        "problem  kafka.ca is for TLS, and kafka.security is plaintext",
        "problem  kafka.sasl is plain, and kafka.security plaintext",
    ]


def test_no_broker_is_told(patient):
    address = f"127.0.0.1:{free_port()}"
    code, (line,) = patient.examine(kafka={"bootstrap": address, "request_timeout": 1.0})
    assert code == 1
    assert line.startswith(f"problem  no broker answers at {address} (111 ECONNREFUSED): is it up")


def test_topics_that_are_missing_or_made_anew_are_told(patient):
    missing = {"documents": f"new-{uuid.uuid4().hex}"}
    code, (line,) = patient.examine(kafka=missing)
    assert (code, "is missing: --create-topics" in line) == (1, True)
    assert patient.examine(kafka=missing | {"create_topics": True}) == (0, [])
    patient.save(7)
    patient.commit(7)
    code, (line,) = patient.examine()
    assert (code, "was the topic made anew?" in line) == (1, True)


class Command:
    """Calls `stream-hc` as the script does."""

    def __init__(self, monkeypatch, capfd):
        self._monkeypatch, self._capfd = monkeypatch, capfd

    def __call__(self, *argv):
        self._monkeypatch.setattr(sys, "argv", ["stream-hc", *map(str, argv)])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = self._capfd.readouterr()
        return int(ended.value.code), shown.out, shown.err


@pytest.fixture
def command(monkeypatch, capfd):
    monkeypatch.setattr(checking, "examine", lambda echo: echo("ok       all of it") or 0)
    return Command(monkeypatch, capfd)


def entry_points(monkeypatch, *values):
    made = tuple(EntryPoint("kafka", value, doctor.GROUP) for value in values)
    monkeypatch.setattr(doctor.metadata, "entry_points", lambda **_: made)


def test_the_doctor_is_asked_about_kafka(patient, command, monkeypatch, tmp_path):
    entry_points(monkeypatch, "consumers.doctor:examine_kafka")
    kafka = patient.config.kafka
    lines = [f'[model]\ntaxonomy = "{patient.tree}"\n[state]\nfolder = "{patient.state}"\n[kafka]\n']
    lines += [
        f'{key} = "{getattr(kafka, key)}"\n' for key in ("bootstrap", "documents", "predictions", "group")
    ]
    lines += [f'dead_letters = "{kafka.dead_letters}"\nlabels = "none"\nevents = "none"\n']
    file = tmp_path / "job.toml"
    file.write_text("".join(lines))
    code, out, err = command("doctor", "--kafka", "--config", file)
    assert (code, err) == (0, "")
    assert out.startswith("ok       all of it\nok       state folder ")
    assert f"ok       group {kafka.group}: 0 records are to be read\n" in out
    code, out, _ = command("doctor", "--kafka", "--config", file, "--set", "kafka.documents=none-such")
    assert (code, "problem  topic none-such (kafka.documents) is missing" in out) == (1, True)
    assert command("doctor")[:2] == (0, "ok       all of it\n")


def test_options_that_would_have_no_effect_are_refused(command):
    code, _, err = command("doctor", "--config", "job.toml")
    assert (code, err) == (2, "error: --config and --set are for --kafka: say that, too\n")


def test_checks_that_cannot_be_loaded_are_told(command, monkeypatch):
    entry_points(monkeypatch)
    assert command("doctor", "--kafka")[2] == (
        "error: --kafka: no package adds these checks: install stream_hc again\n"
    )
    entry_points(monkeypatch, "no_such_package:examine")
    code, _, err = command("doctor", "--kafka")
    assert code == 1
    assert err.startswith("error: --kafka: no_such_package:examine cannot be loaded (ModuleNotFoundError: ")


def test_the_package_adds_its_checks():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"][doctor.GROUP] == {"kafka": "consumers.doctor:examine_kafka"}
