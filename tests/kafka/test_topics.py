"""What there is of the topics, how they are made, and what is said of those that lose records."""

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaConnectionError
from msgspec.structs import replace

from consumers.checking.brokers import check_brokers, check_limits
from consumers.checking.topics import check_age, check_names, check_topics
from consumers.checks import check_cluster
from consumers.errors import KafkaProblem
from consumers.settings import client_settings
from consumers.topics import ROLES, Found, create_missing, describe
from stream_hc.runtime.config.kafka import KafkaConfig

DAY = 86_400_000


@pytest.fixture
def config(kafka):
    """Return a configuration whose topics and group nobody else has; none of them exists."""
    end = uuid.uuid4().hex[:8]
    names = {role: f"{role}-{end}" for role in ROLES}
    return KafkaConfig(bootstrap=kafka.bootstrap, group=f"group-{end}", request_timeout=20.0, **names)


@pytest.fixture
def admin(config):
    with KafkaAdminClient(**client_settings(config)) as made:
        yield made


@pytest.fixture
def changed(admin):
    """Return a function that changes the settings of a topic."""

    def change(name, **settings):
        wanted = {key.replace("_", "."): str(value) for key, value in settings.items()}
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, wanted)])
        asked, end = ConfigResource(ConfigResourceType.TOPIC, name, list(wanted)), time.monotonic() + 20
        while time.monotonic() < end:  # the broker hears of it a little later
            found = admin.describe_configs([asked], config_filter="all")["topic"][name]
            if {key: each["value"] for key, each in found.items()} == wanted:
                return
        raise AssertionError(f"{name} has not changed: {found}")

    return change


def told(findings):
    """Return the findings that are not fine."""
    return [f"{finding.verdict}: {finding.text}" for finding in findings if finding.verdict != "ok"]


def test_missing_topics_are_made_with_the_settings_asked_for(admin, config):
    assert {found.state for found in describe(admin, config).values()} == {"missing"}
    config = replace(config, partitions=3)
    made = create_missing(admin, config)
    assert made == sorted(getattr(config, role) for role in ROLES)
    found = describe(admin, config)
    assert {role: topic.partitions for role, topic in found.items()} == {
        "documents": 3,
        "labels": 3,
        "predictions": 3,
        "dead_letters": 1,
        "requests": 1,
        "events": 1,
        "models": 1,
    }
    models = found.pop("models")
    assert models.settings["cleanup.policy"] == "compact"
    assert {role: topic.number("retention.ms") for role, topic in found.items()} == {
        "documents": 7 * DAY,
        "labels": 7 * DAY,
        "predictions": 7 * DAY,
        "dead_letters": 30 * DAY,
        "requests": 7 * DAY,
        "events": 30 * DAY,
    }
    assert {topic.settings["cleanup.policy"] for topic in found.values()} == {"delete"}
    assert found["dead_letters"].number("max.message.bytes") == 2 * 2**20
    assert {"READ", "WRITE"} <= found["documents"].allowed
    assert create_missing(admin, config) == [], "and once only"
    assert told(check_cluster(admin, config)) == []


def test_only_what_is_missing_is_made_and_has_room_for_large_records(admin, config, topic):
    large = topic("large", max_message_bytes=5_000_000)
    config = replace(config, documents=large, labels=None, requests=None, models=None)
    assert create_missing(admin, config) == sorted([config.predictions, config.dead_letters, config.events])
    assert describe(admin, config)["dead_letters"].number("max.message.bytes") == 5_000_000 + 2**20


def test_several_may_make_topics_at_once(config):
    def make(_):
        with KafkaAdminClient(**client_settings(config)) as admin:
            return create_missing(admin, config)

    with ThreadPoolExecutor(4) as pool:
        made = [name for names in pool.map(make, range(4)) for name in names]
    assert sorted(made) == sorted(getattr(config, role) for role in ROLES), "each by one of them"


def test_more_replicas_than_brokers_are_refused_in_one_line(admin, config):
    with pytest.raises(KafkaProblem) as error:
        create_missing(admin, replace(config, replication=3))
    assert "cannot be made: not so many brokers (InvalidReplicationFactorError: " in str(error.value)
    assert "lower kafka.replication" in str(error.value)
    assert {found.state for found in describe(admin, config).values()} == {"missing"}


def test_every_topic_that_is_missing_is_named_with_the_way_to_make_it(admin, config):
    found = describe(admin, config)
    assert told(check_topics(found, config, 1)) == [
        f"problem: topic {getattr(config, role)} (kafka.{role}) is missing: --create-topics, or "
        "kafka.create_topics = true, makes it"
        for role in ROLES
    ]
    assert told(check_topics(found, replace(config, create_topics=True), 1)) == []


def test_a_topic_for_two_things_is_a_problem(config):
    twice = replace(config, predictions=config.documents, events=config.documents)
    assert told(check_names(twice)) == [
        f"problem: kafka.{role} is the same topic as kafka.documents, {config.documents}: name another topic"
        for role in ("predictions", "events")
    ]
    assert told(check_names(replace(config, labels=config.documents))) == [], (
        "labels among documents are fine"
    )


def test_topics_that_lose_records_are_named(admin, config, changed):
    create_missing(admin, config)
    for name in (config.documents, config.dead_letters, config.predictions):
        changed(name, cleanup_policy="compact,delete")
    lines = told(check_topics(describe(admin, config), config, 1))
    assert lines == [
        f"problem: topic {config.documents}: cleanup.policy=compact lets records vanish: what is learned has "
        "holes: set it to delete",
        f"warning: topic {config.dead_letters}: cleanup.policy=compact lets letters of the same key vanish: "
        "set it to delete",
    ], "of predictions, the last one of a key may be enough"
    changed(config.models, cleanup_policy="delete")
    assert told(check_topics(describe(admin, config), config, 1))[-1] == (
        f"warning: topic {config.models}: cleanup.policy=delete lets models vanish: predictors that start "
        "later find none: set it to compact"
    )
    changed(config.models, cleanup_policy="compact")
    changed(config.documents, cleanup_policy="delete", min_insync_replicas=2)
    changed(config.dead_letters, cleanup_policy="delete", max_message_bytes=1_048_588)
    changed(config.predictions, max_message_bytes=50_000)
    documents, predictions, letters = told(check_topics(describe(admin, config), config, 1))
    assert documents.startswith(
        f"problem: topic {config.documents}: min.insync.replicas is 2, and there is 1 repl"
    )
    assert predictions.startswith(
        f"warning: topic {config.predictions}: max.message.bytes is 50000: predictions"
    )
    assert letters.startswith(
        f"warning: topic {config.dead_letters}: max.message.bytes is 1048588: the largest"
    )


def test_one_replica_on_several_brokers_is_frail(admin, config):
    create_missing(admin, config)
    lines = told(check_topics(describe(admin, config), config, 3))
    assert len(lines) == len(ROLES)
    assert lines[0] == (
        f"warning: topic {config.documents}: 1 replica on 3 brokers: with one of them, all its records may "
        "be lost: give it 3 replicas"
    )


def test_records_that_are_kept_shorter_than_the_snapshot_is_old_are_a_warning(admin, config, changed):
    create_missing(admin, config)
    found = describe(admin, config)
    assert told(check_age(found, 6 * 86_400.0)) == []
    documents, labels = told(check_age(found, 8 * 86_400.0))
    assert documents.startswith(
        f"warning: topic {config.documents}: kept for 7 days, and the newest snapshot is 8 days old: start"
    )
    assert labels.startswith(f"warning: topic {config.labels}: ")
    for name in (config.documents, config.labels):
        changed(name, retention_ms=-1)
    assert told(check_age(describe(admin, config), 1e9)) == [], "kept for good"


def test_partitions_without_a_leader_and_settings_unseen_are_named(config):
    found = {"documents": Found("documents", "in", "there", 3, 1, (0, 2))}
    leader, unseen = told(check_topics(found, config, 1))
    assert leader == "problem: topic in: no leader of partition 0, 2: start their brokers"
    assert unseen.startswith("warning: topic in: its settings may not be seen: allow DescribeConfigs")


def test_timeouts_that_the_brokers_refuse_are_named(admin, config):
    assert told(check_limits(admin, config)) == []
    longer = replace(config, transaction_timeout=1000.0, session_timeout=2000.0)
    transaction, session = told(check_limits(admin, longer))
    assert transaction == (
        "problem: kafka.transaction_timeout is 1000 seconds, the brokers allow 900: lower it, or raise their "
        "transaction.max.timeout.ms"
    )
    assert session.startswith("problem: kafka.session_timeout is 2000 seconds, the brokers allow ")
    assert told(check_limits(admin, replace(longer, transactions=False))) == [session]


def test_all_brokers_are_asked(admin, config):
    (finding,) = check_brokers(admin, config)
    assert finding.verdict == "ok"
    assert finding.text.startswith("1 broker of Kafka ")
    assert finding.text.endswith(f" at {config.bootstrap}")


class Aged:
    """A cluster such as no test can have: one broker is old, one is down, one is behind a wall."""

    def describe_cluster(self):
        brokers = [{"broker_id": n, "host": "b", "port": n, "is_fenced": n == 2} for n in (1, 2, 3)]
        return {"brokers": brokers}

    def get_broker_version_data(self, number):
        if number == 3:
            error = KafkaConnectionError("timed out")
            error.add_note("b:3")
            raise error
        return SimpleNamespace(broker_version=(2, 4), broker_version_str="2.4")


def test_brokers_that_are_too_old_or_away_are_named(config):
    assert told(check_brokers(Aged(), config)) == [
        "problem: 1 broker of Kafka 2.4: transactions need Kafka 2.5 or newer: upgrade the brokers",
        "warning: broker 2 at b:2 is down: start it",
        "warning: broker 3: no broker answers at b:3 (timed out): is it up, and are advertised.listeners "
        "right?",
    ]
