"""What the table [kafka] means to a client, what can be wrong with it, and errors as one line; no broker."""

import copy
import logging
import ssl

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, errors
from kafka.protocol.sasl import SaslAuthenticateRequest

from consumers.errors import KafkaProblem, explained
from consumers.secrets import FileToken, Secret
from consumers.settings import client_settings, problems_of, warnings_of
from stream_hc.runtime.config import load_config
from stream_hc.runtime.config.kafka import KafkaConfig
from tests.kafka.certificates import Authority, encrypted

CANARY = "canary-Zm9vYmFy"
SIGNED_IN = {"sasl": "scram-sha-256", "username": "anna", "password": CANARY}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def secret_file(tmp_path):
    path = tmp_path / "secret"
    path.write_text(f"{CANARY}\nnot this line\n")
    path.chmod(0o600)
    return str(path)


def test_all_clients_take_the_settings(secret_file, authority):
    made = authority.sign("client")
    with open(secret_file, "w") as stream:
        stream.write("a.token.")
    tls = {"ca": str(authority.certificate), "certificate": str(made.certificate), "key": str(made.key)}
    configs = [
        KafkaConfig(),
        KafkaConfig(security="ssl", **tls),
        KafkaConfig(security="sasl_ssl", **tls, **SIGNED_IN),
        KafkaConfig(security="sasl_ssl", sasl="oauthbearer", token_file=secret_file, instance="one"),
    ]
    for config in configs:
        settings = client_settings(config)
        for client in (KafkaAdminClient, KafkaConsumer, KafkaProducer):
            assert settings.keys() <= client.DEFAULT_CONFIG.keys()


def test_the_table_becomes_settings(secret_file):
    config = KafkaConfig(
        bootstrap="broker-1:9092, [::1]:9093",
        security="sasl_plaintext",
        sasl="scram-sha-512",
        username="anna",
        password_file=secret_file,
        group="news",
        instance="one",
        request_timeout=2.5,
    )
    settings = client_settings(config)
    assert settings["bootstrap_servers"] == ["broker-1:9092", "[::1]:9093"]
    assert settings["client_id"] == "news-one"
    assert settings["security_protocol"] == "SASL_PLAINTEXT"
    assert settings["sasl_mechanism"] == "SCRAM-SHA-512"
    assert settings["sasl_plain_username"] == "anna"
    assert settings["sasl_plain_password"] == CANARY
    assert settings["request_timeout_ms"] == settings["bootstrap_timeout_ms"] == 2500
    assert 1000 <= settings["reconnect_backoff_max_ms"] <= 10_000
    assert not [key for key in settings if key.startswith("ssl_")]


def test_a_name_with_signs_that_scram_needs_itself_is_escaped():
    common = {"security": "sasl_ssl", "username": "a=b,c", "password": "x"}
    assert client_settings(KafkaConfig(sasl="scram-sha-256", **common))["sasl_plain_username"] == "a=3Db=2Cc"
    assert client_settings(KafkaConfig(sasl="plain", **common))["sasl_plain_username"] == "a=b,c"


def test_the_environment_is_enough_for_secrets():
    environment = {
        "STREAM_HC_KAFKA_SECURITY": "sasl_ssl",
        "STREAM_HC_KAFKA_SASL": "plain",
        "STREAM_HC_KAFKA_USERNAME": "anna",
        "STREAM_HC_KAFKA_PASSWORD": CANARY,
    }
    config = load_config(None, environment, {}).config
    assert client_settings(config.kafka)["sasl_plain_password"] == CANARY
    assert CANARY not in repr(config)


@pytest.mark.parametrize(
    ("table", "line"),
    [
        (
            {"bootstrap": "localhost"},
            "kafka.bootstrap: 'localhost' is no host:port: write such as broker-1:9092",
        ),
        ({"bootstrap": "a:1,,b:2"}, "kafka.bootstrap: '' is no host:port"),
        ({"bootstrap": "a:70000"}, "kafka.bootstrap: 'a:70000' is no host:port"),
        ({"bootstrap": "kafka://a:1"}, "kafka.bootstrap: 'kafka://a:1' is no host:port"),
        ({"request_timeout": 0.5}, "kafka.request_timeout is 0.5: give it 1 to 500 seconds"),
        ({"request_timeout": 600.0}, "kafka.request_timeout is 600: give it 1 to 500 seconds"),
        (
            {"security": "sasl_plaintext", "sasl": "plain", "username": "anna", "password": CANARY},
            "kafka.sasl is plain, which without TLS lets everybody read along: set kafka.security to",
        ),
        (
            {"security": "sasl_plaintext", "sasl": "oauthbearer"},
            "kafka.sasl is oauthbearer, which without TLS lets everybody read along",
        ),
        (
            {"security": "ssl", **SIGNED_IN},
            "kafka.sasl is scram-sha-256, and kafka.security ssl: set that to sasl_",
        ),
        (
            {"security": "sasl_ssl", "username": "anna"},
            "kafka.security is sasl_ssl without kafka.sasl: set it to",
        ),
        ({"security": "sasl_ssl", "sasl": "plain", "password": CANARY}, "kafka.username is missing"),
        (
            {"security": "sasl_ssl", "sasl": "plain", "username": "anna"},
            "the password is missing: set STREAM_HC_KAFKA_PASSWORD, or name a file with kafka.password_file",
        ),
        (
            {"security": "sasl_ssl", **SIGNED_IN, "password_file": "secret"},
            "kafka.password and kafka.password_file are both set: leave one of them out",
        ),
        ({"security": "sasl_ssl", "sasl": "oauthbearer"}, "kafka.token_file is missing"),
        (
            {"ca": "ca.pem"},
            "kafka.ca is for TLS, and kafka.security is plaintext: set that to ssl, or leave ca out",
        ),
        (
            {"security": "ssl", "key": "key.pem"},
            "kafka.key: key.pem: cannot be read (No such file or directory)",
        ),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(table, line):
    config = KafkaConfig(**table)
    with pytest.raises(KafkaProblem) as error:
        client_settings(config)
    assert str(error.value).startswith(line)
    assert "\n" not in str(error.value)
    assert CANARY not in str(error.value)


def test_all_problems_are_found_at_once():
    config = KafkaConfig(bootstrap="nowhere", security="sasl_plaintext", sasl="plain")
    assert len(problems_of(config)) == 4


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "cannot be read (No such file or directory): name a file that can"),
        (b"", "the first line is empty: write the secret there"),
        (b"\nsecond", "the first line is empty"),
        (b"\xff\xfe", "this is not text: is that the right file?"),
        (b"x" * (2**20 + 1), "larger than 1 MiB: is that the right file?"),
    ],
)
def test_a_file_without_a_password_is_refused(tmp_path, content, line):
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    table = {"security": "sasl_ssl", "sasl": "plain", "username": "anna", "password_file": str(path)}
    with pytest.raises(KafkaProblem) as error:
        client_settings(KafkaConfig(**table))
    assert str(error.value).startswith(f"kafka.password_file: {path}: {line}")


def test_a_password_may_have_blanks_and_ends_with_the_line(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b" a b \r\nmore")
    table = {"security": "sasl_ssl", "sasl": "plain", "username": "anna", "password_file": str(path)}
    assert client_settings(KafkaConfig(**table))["sasl_plain_password"] == " a b "


def test_the_token_is_read_anew_every_time(tmp_path):
    path = tmp_path / "token"
    config = KafkaConfig(security="sasl_ssl", sasl="oauthbearer", token_file=str(path))
    for wrong in ("", "two words", "naïve"):
        path.write_text(wrong)
        assert problems_of(config)[0].startswith(f"kafka.token_file: {path}: "), wrong
    path.write_text("first\n")
    provider = client_settings(config)["sasl_oauth_token_provider"]
    assert provider.token() == "first"
    path.write_text(CANARY)
    assert f"{provider.token()}" == CANARY, "it is sent, so it must not hide itself"
    assert CANARY not in repr(provider)
    path.unlink()
    with pytest.raises(KafkaProblem, match="cannot be read"):
        FileToken(str(path)).token()


def test_certificates_that_cannot_be_used_are_named(authority, tmp_path):
    one, other = authority.sign("one"), authority.sign("other")
    locked = str(encrypted(one.key, CANARY))
    empty = tmp_path / "empty.pem"
    empty.touch()

    def problem(**table):
        found = problems_of(KafkaConfig(security="ssl", **{key: str(path) for key, path in table.items()}))
        assert len(found) <= 1
        return found[0] if found else None

    assert problem(certificate=one.certificate, key=one.key, ca=authority.certificate) is None
    assert problem(ca=empty).startswith(f"kafka.ca: {empty}: holds no certificate")
    assert problem(ca=tmp_path).startswith(f"kafka.ca: {tmp_path}: cannot be read (Is a directory)")
    assert problem(key=one.key) == "kafka.key is of no use without kafka.certificate: name both files"
    alone = problem(certificate=one.certificate)
    assert alone.endswith("holds no certificate with its key: name the key with kafka.key")
    mixed = problem(certificate=one.certificate, key=other.key)
    assert (
        mixed
        == f"kafka.key: {other.key}: belongs to another certificate than {one.certificate}: name its own"
    )
    assert "have to be PEM files" in problem(certificate=one.certificate, key=empty)
    shut = problem(certificate=one.certificate, key=locked)
    assert shut.endswith(
        "is encrypted, and cannot be opened: set STREAM_HC_KAFKA_KEY_PASSWORD to its password"
    )
    assert problem(certificate=one.certificate, key=locked, key_password="wrong") == shut
    assert problem(certificate=one.certificate, key=locked, key_password=CANARY) is None
    both = tmp_path / "both.pem"
    both.write_bytes(one.certificate.read_bytes() + one.key.read_bytes())
    assert problem(certificate=both) is None


def test_what_works_and_should_not_stay_so_is_a_warning(secret_file):
    assert warnings_of(KafkaConfig()) == []
    fine = {"security": "sasl_ssl", "sasl": "plain", "username": "anna", "password_file": secret_file}
    assert warnings_of(KafkaConfig(**fine)) == []
    (open_to_all,) = warnings_of(KafkaConfig(**fine | {"password_file": __file__}))
    assert (
        open_to_all
        == f"kafka.password_file: everybody on this machine can read {__file__}: chmod o-r {__file__}"
    )
    in_clear = KafkaConfig(**fine | {"security": "sasl_plaintext", "allow_plain_text": True})
    assert client_settings(in_clear)["security_protocol"] == "SASL_PLAINTEXT"
    (heard,) = warnings_of(in_clear)
    assert heard.startswith("kafka.allow_plain_text: the password crosses the network for all to read")
    (idle,) = warnings_of(KafkaConfig(username="anna", password=CANARY))
    assert idle == "kafka.username is set, but kafka.security is plaintext: nobody signs in"


def test_secrets_show_themselves_to_the_client_only(caplog):
    config = KafkaConfig(security="sasl_ssl", **SIGNED_IN)
    settings = client_settings(config)
    assert CANARY not in f"{settings} {config} {copy.deepcopy(settings)}"
    secret = copy.deepcopy(settings)["sasl_plain_password"]
    assert isinstance(secret, Secret)
    assert (secret, secret.encode(), "\0".join([secret])) == (CANARY, CANARY.encode(), CANARY)
    caplog.set_level(logging.DEBUG)
    for name in ("kafka.net.connection", "kafka.protocol.parser"):
        logger = logging.getLogger(name)
        logger.debug("%s Request: %s", name, SaslAuthenticateRequest(CANARY.encode()))
        logger.warning("%s says something", name)
    logging.getLogger("kafka.protocol.parser").debug("Send: %r", CANARY.encode())
    assert caplog.messages == ["kafka.net.connection says something", "kafka.protocol.parser says something"]


def verification(code, message):
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, message
    return error


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (KafkaProblem("as it is: do this"), "as it is: do this"),
        (
            errors.TopicAuthorizationFailedError({"documents"}),
            "anna may not read topic documents: kafka-acls --add --allow-principal User:anna "
            "--operation Read --topic documents",
        ),
        (errors.TopicAuthorizationFailedError("predictions"), "anna may not write topic predictions: "),
        (
            errors.TopicAuthorizationFailedError(),
            "anna may not use one of the topics: see stream-hc doctor --kafka",
        ),
        (
            errors.GroupAuthorizationFailedError("stream-hc"),
            "anna may not read group stream-hc: kafka-acls --add --allow-principal User:anna "
            "--operation Read --group stream-hc",
        ),
        (
            errors.TransactionalIdAuthorizationFailedError(),
            "anna may not write transactional id stream-hc: kafka-acls --add --allow-principal User:anna "
            "--operation Write --transactional-id stream-hc",
        ),
        (
            errors.ClusterAuthorizationFailedError("to create"),
            "anna may not do this (ClusterAuthorizationFailed",
        ),
        (
            errors.UnknownTopicOrPartitionError("labels"),
            "labels: there is no such topic or partition at broker:1",
        ),
        (
            errors.MessageSizeTooLargeError("to predictions"),
            "a record is larger than predictions takes: raise",
        ),
        (
            errors.ProducerFencedError(),
            "another process has taken over the work of stream-hc: if it should not",
        ),
        (
            errors.KafkaError("Cannot execute transactional method: [Error 90] ProducerFencedError: x"),
            "another process has taken over the work of stream-hc",
        ),
        (
            errors.InvalidReplicationFactorError("3 > 1"),
            "not so many brokers (InvalidReplicationFactorError: 3 > 1)",
        ),
        (
            errors.InvalidTransactionTimeoutError(),
            "the brokers refuse a transaction of 60 seconds: lower kafka.tr",
        ),
        (
            errors.InvalidSessionTimeoutError(),
            "the brokers refuse a session of 45 seconds: change kafka.session_",
        ),
        (
            errors.NotEnoughReplicasError(),
            "fewer replicas are in step than min.insync.replicas: start the brokers",
        ),
        (errors.IncompatibleBrokerVersion("old"), "broker:1 is too old, or no broker but a controller ("),
        (
            errors.UnsupportedSaslMechanismError(),
            "broker:1 has no scram-sha-256 to sign in: set kafka.sasl to what",
        ),
        (
            errors.NodeNotReadyError(1),
            "no broker answers at broker:1 (NodeNotReadyError: 1): is it up, and is kafka.",
        ),
        (
            verification(10, "certificate has expired"),
            "the certificate of broker:1 is out of date (certificate has",
        ),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER]"), "no TLS with broker:1 ("),
        (RuntimeError("some\nthing"), "RuntimeError: some thing"),
        (errors.CorruptRecordError(f"with {CANARY}"), "CorruptRecordError: with ***"),
        (errors.KafkaError(), "KafkaError"),
    ],
)
def test_an_error_is_one_line_with_a_remedy(error, line):
    config = KafkaConfig(bootstrap="broker:1", security="sasl_ssl", **SIGNED_IN)
    told = explained(error, config)
    assert told.startswith(line)
    assert "\n" not in told


def test_an_error_of_one_broker_names_that_one():
    error = errors.KafkaConnectionError("111 ECONNREFUSED")
    error.add_note("inner:9092")
    told = explained(error, KafkaConfig(bootstrap="outer:1"))
    assert told.startswith(
        "no broker answers at inner:9092 (111 ECONNREFUSED): is it up, and are advertised."
    )
