"""What Kafka says, as one line that names what is wrong and what to do."""

import ssl
from collections.abc import Callable

from kafka import errors

from consumers.causes import KafkaProblem, causes_of, may_not, plain, topics_in, who
from stream_hc.runtime.config.kafka import KafkaConfig

__all__ = ["KafkaProblem", "causes_of", "explained", "may_not", "who"]

NAME, ADDRESS = 62, 64  # codes of OpenSSL: the certificate is for another name, or another address
NOT_YET, EXPIRED = 9, 10
BEGINNING = "Unable to bootstrap"  # so kafka-python begins when no address was of any use


def explained(error: BaseException, config: KafkaConfig) -> str:
    """Return an error as one line that names what is wrong and what to do; no secret is in it.

    >>> explained(errors.MessageSizeTooLargeError("predictions"), KafkaConfig())
    'a record is larger than predictions takes: raise max.message.bytes of the topic'
    """
    causes = list(causes_of(error))
    where = next((cause.__notes__[0] for cause in causes if hasattr(cause, "__notes__")), config.bootstrap)
    for kinds, told in EXPLANATIONS:
        for cause in causes:
            if isinstance(cause, kinds):
                return _one_line(told(cause, where, config), config)
    return _one_line(plain(error), config)


def _sign_in(error: BaseException, where: str, config: KafkaConfig) -> str:
    if config.sasl == "oauthbearer":
        return f"{where} does not accept the token in {config.token_file}: has it expired?"
    source = "STREAM_HC_KAFKA_PASSWORD" if config.password_file is None else config.password_file
    checked = f"check kafka.username and the password in {source}"
    return f"{where} does not let {config.username} in ({config.sasl}): {checked}"


def _mechanism(error: BaseException, where: str, config: KafkaConfig) -> str:
    return f"{where} has no {config.sasl} to sign in: set kafka.sasl to what it offers"


def _no_sign_in(error: BaseException, where: str, config: KafkaConfig) -> str:
    other = config.security.removeprefix("sasl_")
    return f"{where} lets nobody sign in: set kafka.security to {other}, or name the port for sasl"


def _certificate(error: BaseException, where: str, config: KafkaConfig) -> str:
    code, reason = getattr(error, "verify_code", 0), getattr(error, "verify_message", "")
    if code in (NAME, ADDRESS):
        remedy = "write the name that it has into kafka.bootstrap, or have it made for this one"
        return f"the certificate of {where} is for another name ({reason}): {remedy}"
    if code in (NOT_YET, EXPIRED):
        return f"the certificate of {where} is out of date ({reason}): renew it, and look at the clocks"
    remedy = f"{config.ca} has to hold the certificate of who signed it"
    if config.ca is None:
        remedy = "set kafka.ca to a PEM file with the certificate of who signed it"
    return f"the certificate of {where} is not to be trusted ({reason}): {remedy}"


def _tls(error: BaseException, where: str, config: KafkaConfig) -> str:
    reason = str(getattr(error, "reason", None) or error).replace("_", " ").lower()
    if "alert" in reason and ("certificate" in reason or "unknown ca" in reason):
        if config.certificate is None:
            return f"{where} wants to see a certificate ({reason}): set kafka.certificate and kafka.key"
        return f"{where} does not accept {config.certificate} ({reason}): show one that it trusts"
    other = config.security.replace("ssl", "plaintext")
    return f"no TLS with {where} ({reason}): is that the port for it? If not, set kafka.security to {other}"


def _topic(error: BaseException, where: str, config: KafkaConfig) -> str:
    named = topics_in(error, config)
    if not named:
        return f"{who(config)} may not use one of the topics: see stream-hc doctor --kafka"
    reads = {config.documents, config.labels}
    return "; ".join(may_not("Read" if name in reads else "Write", "topic", name, config) for name in named)


def _missing(error: BaseException, where: str, config: KafkaConfig) -> str:
    topics = ", ".join(topics_in(error, config)) or "a topic"
    remedy = "make it, or let it be made: --create-topics, or kafka.create_topics = true"
    return f"{topics}: there is no such topic or partition at {where}: {remedy}"


def _too_large(error: BaseException, where: str, config: KafkaConfig) -> str:
    topic = ", ".join(topics_in(error, config)) or "its topic"
    return f"a record is larger than {topic} takes: raise max.message.bytes of the topic"


def _fenced(error: BaseException, where: str, config: KafkaConfig) -> str:
    name = config.group if config.instance is None else f"{config.group}, {config.instance}"
    return f"another process has taken over the work of {name}: if it should not have, end that one first"


def _version(error: BaseException, where: str, config: KafkaConfig) -> str:
    return f"{where} is too old, or no broker but a controller ({plain(error)}): Kafka 2.5 or newer is needed"


def _unreachable(error: BaseException, where: str, config: KafkaConfig) -> str:
    deepest = list(causes_of(error))[-1]
    reason = plain(deepest)
    if deepest is error and reason.startswith(BEGINNING):  # and no connection failed
        return f"what answers at {where} is no broker for clients: is that the port of a controller?"
    if plain(error).startswith(BEGINNING):
        where = config.bootstrap
    if "disconnected" in reason or isinstance(deepest, errors.InvalidReceiveError):
        hint = f"kafka.security is {config.security}: is that the port for it?"
        return f"{where} does not understand us ({reason}): {hint}"
    if "update metadata" in reason:  # so a producer says that it has never heard of a topic
        return f"{where} knows nothing of a topic ({reason}): is it there? See stream-hc doctor --kafka"
    hint = "is kafka.bootstrap right?" if where in config.bootstrap else "are advertised.listeners right?"
    return f"no broker answers at {where} ({reason}): is it up, and {hint}"


def _one_line(text: str, config: KafkaConfig) -> str:
    for secret in (config.password, config.key_password):
        if secret is not None and len(secret) > 3:  # a shorter one is part of other words
            text = text.replace(secret, "***")
    return " ".join(text.split())


Told = Callable[[BaseException, str, KafkaConfig], str]
Kinds = type[BaseException] | tuple[type[BaseException], ...]


def _saying(text: str) -> Told:
    """Return what says the text, with keys of the configuration in braces."""

    def told(error: BaseException, where: str, config: KafkaConfig) -> str:
        return text.format(where=where, error=plain(error), config=config, who=who(config))

    return told


def _denying(operation: str, kind: str) -> Told:
    return lambda error, where, config: may_not(operation, kind, config.group, config)


# The first that fits one of the causes; whether somebody can be reached at all comes last.
EXPLANATIONS: list[tuple[Kinds, Told]] = [
    (KafkaProblem, lambda error, where, config: str(error)),
    (errors.SaslAuthenticationFailedError, _sign_in),
    (errors.UnsupportedSaslMechanismError, _mechanism),
    (errors.IllegalSaslStateError, _no_sign_in),
    (ssl.SSLCertVerificationError, _certificate),
    (ssl.SSLError, _tls),
    (errors.TopicAuthorizationFailedError, _topic),
    (errors.GroupAuthorizationFailedError, _denying("Read", "group")),
    (errors.TransactionalIdAuthorizationFailedError, _denying("Write", "transactional-id")),
    (errors.AuthorizationError, _saying("{who} may not do this ({error}): allow it with kafka-acls")),
    (
        (
            errors.FencedInstanceIdError,
            errors.InvalidProducerEpochError,
            errors.ProducerFencedError,
            errors.TransactionCoordinatorFencedError,
        ),
        _fenced,
    ),
    ((errors.MessageSizeTooLargeError, errors.RecordListTooLargeError), _too_large),
    (
        errors.InvalidReplicationFactorError,
        _saying("not so many brokers ({error}): lower kafka.replication, or start more of them"),
    ),
    (
        errors.InvalidTransactionTimeoutError,
        _saying(
            "the brokers refuse a transaction of {config.transaction_timeout:g} seconds: lower "
            "kafka.transaction_timeout, or raise their transaction.max.timeout.ms"
        ),
    ),
    (
        errors.InvalidSessionTimeoutError,
        _saying(
            "the brokers refuse a session of {config.session_timeout:g} seconds: change "
            "kafka.session_timeout, or their group.min.session.timeout.ms and group.max.session.timeout.ms"
        ),
    ),
    (
        (errors.NotEnoughReplicasError, errors.NotEnoughReplicasAfterAppendError),
        _saying("fewer replicas are in step than min.insync.replicas: start the brokers that are down"),
    ),
    (errors.UnknownTopicOrPartitionError, _missing),
    ((errors.UnsupportedVersionError, errors.UnrecognizedBrokerVersion), _version),
    (
        (
            errors.InvalidReceiveError,
            errors.KafkaConnectionError,
            errors.KafkaTimeoutError,
            errors.NodeNotReadyError,
        ),
        _unreachable,
    ),
]
