"""Clients that prove who they are to a real broker, and lines that say why one does not let them in."""

import base64
import json
import logging
import os
import socket
import threading
import time
import uuid

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka.errors import KafkaError
from msgspec.structs import replace

from consumers.checking.brokers import check_brokers
from consumers.checking.rights import check_rights
from consumers.checking.topics import check_topics
from consumers.errors import KafkaProblem, explained
from consumers.settings import client_settings
from consumers.topics import create_missing, describe
from deploy.kafka.broker import Broker
from deploy.kafka.settings import Node, free_port
from stream_hc.runtime.config.kafka import KafkaConfig
from tests.kafka.certificates import Authority, encrypted
from tests.kafka.conftest import running

PASSWORD = "canary-Zm9vYmFy"
QUICKLY = 15.0  # seconds, on a machine with much else to do; a client of kafka-python would take PATIENCE
PATIENCE = 40.0


def token(seconds):
    """Return a token that nobody signed, good for so long."""
    now = int(time.time())
    claims = {"sub": "olga", "iat": now - 60, "exp": now + seconds}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()) for part in ({"alg": "none"}, claims)]
    return f"{'.'.join(part.decode().rstrip('=') for part in parts)}."


class Secured:
    """A broker with four listeners: for anybody, for those who sign in, for those who show a certificate.

    Whoever comes to the fourth is sent to where nobody is.
    """

    def __init__(self, folder):
        self.folder, self.authority = folder, Authority(folder)
        self.stranger = Authority(folder, "stranger")
        self.client = self.authority.sign("client")
        self.node, self.mutual = Node(1, free_port(), free_port(), free_port()), free_port()
        self.astray, self.nowhere = free_port(), free_port()
        ports = {"PLAINTEXT": self.node.port, "SECURE": self.node.secure, "MUTUAL": self.mutual}
        ports |= {"ASTRAY": self.astray}
        clients = [f"{name}://127.0.0.1:{port}" for name, port in ports.items()]
        protocols = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL,MUTUAL:SSL,ASTRAY:PLAINTEXT"
        self.options = {
            "tls": self.authority.server(),
            "scram": {"anna": PASSWORD},
            "plain": {"paul": PASSWORD},
            "oauth": True,
            "authorizer": True,
            "quorum": [self.node],
            "settings": {
                "listeners": ",".join([*clients, f"CONTROLLER://127.0.0.1:{self.node.controller}"]),
                "advertised.listeners": ",".join(clients).replace(str(self.astray), str(self.nowhere)),
                "listener.security.protocol.map": protocols,
                "listener.name.mutual.ssl.client.auth": "required",
            },
        }

    @property
    def bootstrap(self):
        """For anybody, who may do anything there."""
        return f"127.0.0.1:{self.node.port}"

    def file(self, text):
        path = self.folder / uuid.uuid4().hex
        path.write_text(text)
        path.chmod(0o600)
        return str(path)

    def table(self, way="scram-sha-256", **changes):
        """Return how to come in by one of the ways."""
        table = {
            "bootstrap": f"127.0.0.1:{self.node.secure}",
            "security": "sasl_ssl",
            "ca": str(self.authority.certificate),
            "request_timeout": PATIENCE,
        }
        if way == "certificate":
            files = {"certificate": str(self.client.certificate), "key": str(self.client.key)}
            table |= {"bootstrap": f"127.0.0.1:{self.mutual}", "security": "ssl", **files}
        elif way == "oauthbearer":
            table |= {"sasl": way, "token_file": self.file(token(3600))}
        else:
            table |= {"sasl": way, "username": "paul" if way == "plain" else "anna", "password": PASSWORD}
        return KafkaConfig(**table | changes)


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    made = Secured(tmp_path_factory.mktemp("secured"))
    with running(Broker, **made.options):
        yield made


def refusal(config, client=KafkaAdminClient):
    """Return the line that says why a client cannot begin, and how long that took."""
    began = time.monotonic()
    with pytest.raises(KafkaError) as error:
        client(**client_settings(config))
    return explained(error.value, config), time.monotonic() - began


@pytest.mark.parametrize("way", ["scram-sha-256", "scram-sha-512", "plain", "oauthbearer", "certificate"])
def test_all_clients_come_in(secured, topic, way):
    config = secured.table(way)
    name = topic("documents", at=secured)
    settings = client_settings(config)
    with KafkaProducer(**settings) as producer:
        producer.send(name, way.encode()).get(20)
    consumer = KafkaConsumer(**settings, auto_offset_reset="earliest", group_id=None)
    consumer.bootstrap(20_000, refresh=True)  # once more is fine
    consumer.assign([TopicPartition(name, 0)])
    values, end = [], time.monotonic() + 20
    while not values and time.monotonic() < end:
        values = [record.value for batch in consumer.poll(100).values() for record in batch]
    consumer.close()
    assert values == [way.encode()]
    with KafkaAdminClient(**settings) as admin:
        assert name in admin.list_topics()


def test_a_name_with_signs_that_scram_needs_itself_comes_in(secured):
    with KafkaAdminClient(bootstrap_servers=secured.bootstrap) as admin:
        mechanism = ScramMechanism.SCRAM_SHA_256
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion("a=b,c", mechanism, PASSWORD)])
    KafkaAdminClient(**client_settings(secured.table(username="a=b,c"))).close()


def test_a_key_that_only_a_password_opens(secured):
    key = str(encrypted(secured.client.key, PASSWORD))
    config = secured.table("certificate", key=key, key_password=PASSWORD)
    KafkaAdminClient(**client_settings(config)).close()


@pytest.mark.parametrize("way", ["scram-sha-256", "scram-sha-512", "plain"])
@pytest.mark.parametrize("client", [KafkaAdminClient, KafkaConsumer, KafkaProducer])
def test_a_wrong_password_is_told_quickly(secured, way, client):
    line, seconds = refusal(config := secured.table(way, password="guessed"), client)
    assert line == (
        f"{config.bootstrap} does not let {config.username} in ({way}): "
        "check kafka.username and the password in STREAM_HC_KAFKA_PASSWORD"
    )
    assert seconds < QUICKLY


def test_a_token_that_was_good_yesterday_is_told_and_read_again(secured):
    config = secured.table("oauthbearer", token_file=secured.file(token(-30)))
    settings = client_settings(config)
    line, seconds = refusal(config)
    assert line.endswith(f"does not accept the token in {config.token_file}: has it expired?")
    assert seconds < QUICKLY
    with open(config.token_file, "w") as stream:
        stream.write(token(3600))
    KafkaAdminClient(**settings).close()


@pytest.mark.parametrize(
    ("way", "changes", "line"),
    [
        (
            "plain",
            {"ca": "stranger"},
            "the certificate of {} is not to be trusted (unable to get local issuer",
        ),
        ("plain", {"ca": None}, "the certificate of {} is not to be trusted (unable to get local issuer"),
        (
            "plain",
            {"bootstrap": "localhost:{secure}"},
            "the certificate of {} is for another name (Hostname mis",
        ),
        ("certificate", {"certificate": None, "key": None}, "{} wants to see a certificate ("),
        ("certificate", {"certificate": "stranger", "key": "stranger"}, "{} does not accept "),
        (
            "scram-sha-256",
            {"bootstrap": "127.0.0.1:{port}", "security": "sasl_plaintext", "ca": None},
            "{} lets nobo",
        ),
        (
            "scram-sha-256",
            {"security": "sasl_plaintext", "ca": None},
            "{} does not understand us (InvalidReceiveErr",
        ),
    ],
)
def test_what_no_waiting_mends_is_told_quickly(secured, way, changes, line):
    ports = {"secure": secured.node.secure, "port": secured.node.port}
    changes = {key: value and value.format(**ports) for key, value in changes.items()}
    files = {"ca": "certificate", "certificate": "certificate", "key": "key"}
    for key, value in changes.items():
        if value == "stranger":
            changes[key] = str(getattr(secured.stranger, files[key]))
    config = secured.table(way, **changes)
    told, seconds = refusal(config)
    assert told.startswith(line.format(config.bootstrap))
    assert seconds < QUICKLY


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"bootstrap": "127.0.0.1:{closed}"},
            "no broker answers at 127.0.0.1:{closed} (111 ECONNREFUSED): is it up",
        ),
        (
            {"bootstrap": "127.0.0.1:{controller}"},
            "what answers at 127.0.0.1:{controller} is no broker for clients",
        ),
        ({"bootstrap": "127.0.0.1:{port}", "security": "ssl"}, "no TLS with 127.0.0.1:{port} ("),
        (
            {"bootstrap": "127.0.0.1:{secure}", "security": "ssl"},
            "127.0.0.1:{secure} does not understand us (socket",
        ),
    ],
)
def test_what_may_pass_is_told_when_the_time_is_up(secured, changes, line):
    ports = {name: getattr(secured.node, name) for name in ("controller", "port", "secure")}
    ports["closed"] = free_port()
    changes = {key: value.format(**ports) for key, value in changes.items()}
    if "security" in changes:
        changes["ca"] = str(secured.authority.certificate)
    told, seconds = refusal(KafkaConfig(**changes, request_timeout=1.0))
    assert told.startswith(line.format(**ports))
    assert seconds < QUICKLY


def test_one_broker_of_several_is_enough_and_a_wrong_password_at_one_too_much(secured):
    nobody = f"127.0.0.1:{free_port()}"
    both = f"{nobody},{secured.table().bootstrap}"
    KafkaAdminClient(**client_settings(secured.table(bootstrap=both))).close()
    line, seconds = refusal(secured.table(bootstrap=both, password="guessed"))
    assert line.startswith(f"{secured.table().bootstrap} does not let anna in")
    assert seconds < QUICKLY


@pytest.mark.parametrize("security", ["plaintext", "ssl"])
def test_who_accepts_and_says_nothing_is_given_up(security):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        line, seconds = refusal(KafkaConfig(bootstrap=address, security=security, request_timeout=1.0))
    assert line.startswith(f"no broker answers at {address} (")
    assert seconds < QUICKLY


def test_files_that_vanish_later_are_told(secured):
    copy = secured.folder / "copy.pem"
    copy.write_bytes(secured.authority.certificate.read_bytes())
    config = secured.table(ca=str(copy), request_timeout=1.0)
    settings = client_settings(config)
    copy.unlink()
    with pytest.raises(KafkaError) as error:
        KafkaAdminClient(**settings)
    assert "([Errno 2] No such file or directory)" in explained(error.value, config)


@pytest.mark.filterwarnings("error:unclosed:ResourceWarning")
def test_a_client_that_cannot_begin_leaves_nothing_behind(secured):
    def left():
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    refusal(secured.table(password="guessed"))
    before = left()
    for client in (KafkaAdminClient, KafkaConsumer, KafkaProducer):
        refusal(secured.table(password="guessed"), client)
        refusal(secured.table(ca=str(secured.stranger.certificate)), client)
    refusal(KafkaConfig(bootstrap=f"127.0.0.1:{free_port()}", request_timeout=1.0))
    assert left() == before


@pytest.mark.parametrize("way", ["scram-sha-256", "plain", "oauthbearer", "certificate"])
def test_nothing_shows_a_secret(secured, caplog, way):
    changes = {}
    if way == "certificate":
        changes = {"key": str(encrypted(secured.client.key, PASSWORD)), "key_password": PASSWORD}
    config = secured.table(way, **changes)
    secrets = [PASSWORD]
    if way == "oauthbearer":
        with open(config.token_file) as stream:
            secrets = [stream.read()]
    caplog.set_level(1)
    with KafkaAdminClient(**client_settings(config)) as admin:
        admin.list_topics()
        shown = repr(admin.config)
    with KafkaProducer(**client_settings(config)) as producer:
        shown += repr(producer.config)
    if way in ("scram-sha-256", "plain"):
        line, _ = refusal(secured.table(way, username="nobody"))
        shown += line
    assert "Request" in caplog.text, "the client logs what it does"
    assert [secret for secret in secrets if secret in caplog.text + shown + repr(config)] == []
    assert len([record for record in caplog.records if record.levelno == logging.DEBUG]) > 10


def test_a_broker_that_sends_us_astray_is_told(secured):
    config = KafkaConfig(bootstrap=f"127.0.0.1:{secured.astray}", request_timeout=5.0)
    with KafkaAdminClient(**client_settings(config)) as admin, pytest.raises(KafkaError) as error:
        list(check_brokers(admin, config))
    astray = (
        f"no broker answers at 127.0.0.1:{secured.nowhere} (111 ECONNREFUSED): is it up, and are advertised."
    )
    assert explained(error.value, config).startswith(astray)


# Access lists


def give(admin, who, operation, kind, name):
    """Allow something to somebody, and wait until the broker has heard of it; return the entry."""
    made = ACL(who, "*", operation, ACLPermissionType.ALLOW, ResourcePattern(kind, name))
    assert admin.create_acls([made])["failed"] == []
    end = time.monotonic() + 20
    while made not in admin.describe_acls(made)[0]:
        assert time.monotonic() < end, f"the broker has not heard of {made}"
    return made


@pytest.fixture(scope="module")
def forbidden(secured):
    """Return the configuration of one who may see nearly all, and do nothing: only another may."""
    name = uuid.uuid4().hex[:8]
    config = secured.table(documents=f"in-{name}", predictions=f"out-{name}", group=f"group-{name}")
    names = {config.documents: ResourceType.TOPIC, config.predictions: ResourceType.TOPIC}
    with KafkaAdminClient(bootstrap_servers=secured.bootstrap) as admin:
        admin.create_topics(list(names), wait_for_metadata=True)
        mine = [(kind, topic, ACLOperation.DESCRIBE) for topic, kind in names.items()]
        mine += [(ResourceType.GROUP, config.group, ACLOperation.DESCRIBE)]
        others = [(kind, topic, ACLOperation.ALL) for topic, kind in names.items()]
        names = (config.group, f"{config.group}-models", f"{config.group}-any")
        others += [(ResourceType.TRANSACTIONAL_ID, each, ACLOperation.ALL) for each in names]
        for who, rights in (("User:anna", mine), ("User:paul", others)):
            for kind, resource, operation in rights:
                give(admin, who, operation, kind, resource)
    return config


def test_checks_name_every_right_that_is_missing(forbidden):
    config = replace(forbidden, labels=None, dead_letters=None, events=None)
    with KafkaAdminClient(**client_settings(config)) as admin:
        found = describe(admin, config)
        assert {topic.state for topic in found.values()} == {"there"}
        assert [finding.verdict for finding in check_topics(found, config, 1)] == ["warning"] * 2
        findings = list(check_rights(admin, config, found))
    denied = [
        ("read", "topic", config.documents),
        ("write", "topic", config.predictions),
        ("read", "group", config.group),
        ("write", "transactional-id", config.group),
    ]
    command = "kafka-acls --add --allow-principal User:anna --operation"
    assert [tuple(finding) for finding in findings] == [
        (
            "problem",
            f"anna may not {what} {kind.replace('-', ' ')} {name}: {command} {what.title()} --{kind} {name}",
        )
        for what, kind, name in denied
    ]


def test_trainers_and_predictors_write_under_names_of_their_own(forbidden):
    config = replace(forbidden, labels=None, dead_letters=None, events=None, models="models")
    own = f"anna may not write transactional id {config.group}"
    with KafkaAdminClient(**client_settings(config)) as admin:
        of_trainer = [finding.text for finding in check_rights(admin, config, {})]
        of_predictor = [finding.text for finding in check_rights(admin, config, {}, ("documents", "models"))]
    assert [text.startswith(own) for text in of_trainer] == [False, True, True]
    assert [text.endswith("prefixed") for text in of_trainer] == [False, False, True]
    assert of_predictor[1:] == of_trainer[2:]


def test_errors_name_what_is_not_allowed(forbidden):
    settings = client_settings(forbidden)
    lines = []

    def note(error):
        lines.append(explained(error.value, forbidden).partition(":")[0])

    with KafkaProducer(**settings) as producer:
        with pytest.raises(KafkaError) as error:
            producer.send(forbidden.predictions, b"x").get(20)
        note(error)
    with (
        pytest.raises(KafkaError) as error,
        KafkaProducer(**settings, transactional_id=forbidden.group) as writer,
    ):
        writer.init_transactions()
    note(error)
    for group, topic in ((None, forbidden.documents), (forbidden.group, "anything")):
        consumer = KafkaConsumer(**settings, group_id=group, auto_offset_reset="earliest")
        consumer.subscribe([topic]) if group else consumer.assign([TopicPartition(topic, 0)])
        with pytest.raises(KafkaError) as error:  # noqa: PT012
            end = time.monotonic() + 20
            while time.monotonic() < end:
                consumer.poll(100)
        note(error)
        consumer.close(autocommit=False, timeout_ms=500)
    assert lines == [
        f"anna may not write topic {forbidden.predictions}",
        f"anna may not write transactional id {forbidden.group}",
        f"anna may not read topic {forbidden.documents}",
        f"anna may not read group {forbidden.group}",
    ]


@pytest.fixture
def allowed(secured):
    """Return a function that allows something to one, and so forbids it to others, until the test ends."""
    given = []
    with KafkaAdminClient(bootstrap_servers=secured.bootstrap) as admin:

        def allow(who, operation, kind, name):
            given.append(give(admin, who, operation, kind, name))

        yield allow
        admin.delete_acls(given)


def test_topics_that_may_not_be_made_are_named(forbidden, allowed):
    name = f"new-{uuid.uuid4().hex}"
    allowed("User:anna", ACLOperation.DESCRIBE, ResourceType.TOPIC, name)
    allowed("User:paul", ACLOperation.ALL, ResourceType.CLUSTER, "kafka-cluster")
    config = replace(forbidden, documents=name, create_topics=True)
    with KafkaAdminClient(**client_settings(config)) as admin:
        found = {"documents": describe(admin, config)["documents"]}
        assert found["documents"].state == "missing"
        (finding, *_) = check_rights(admin, config, found)
        assert finding.text.startswith(f"anna may not create topic {name}: kafka-acls --add ")
        with pytest.raises(KafkaProblem, match=f"^topic {name} is missing and may not be made: allow Create"):
            create_missing(admin, replace(config, labels=None, dead_letters=None, events=None))


def test_who_may_make_topics_of_the_cluster_may_make_these(forbidden, allowed):
    name = f"new-{uuid.uuid4().hex}"
    allowed("User:anna", ACLOperation.DESCRIBE, ResourceType.TOPIC, name)
    config = replace(forbidden, documents=name, create_topics=True, group=f"mine-{name}")
    with KafkaAdminClient(**client_settings(config)) as admin:
        found = {"documents": describe(admin, config)["documents"]}
        assert [finding.verdict for finding in check_rights(admin, config, found)] == ["ok"]


def test_a_topic_that_may_not_even_be_seen_is_named(secured, forbidden):
    config = secured.table("certificate", documents=forbidden.documents, labels=None)
    with KafkaAdminClient(**client_settings(config)) as admin:
        found = describe(admin, config)
        assert found["documents"].state == "denied"
        (finding,) = check_rights(admin, config, {"documents": found["documents"]})
        assert finding.verdict == "ok", "it is told once"
    (finding, *_) = check_topics(found, config, 1)
    assert finding.verdict == "problem"
    assert finding.text.startswith(
        f"the owner of kafka.certificate may not read topic {forbidden.documents}: "
    )
