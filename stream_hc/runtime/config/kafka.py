"""The table [kafka]: names and limits only; what they mean to a client is decided in `consumers`."""

from typing import Annotated, Literal

from msgspec import Meta

from stream_hc.runtime.config.table import Path, Seconds, Table

__all__ = ["KafkaConfig"]

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
Text = Annotated[str, Meta(min_length=1, max_length=4096)]


class KafkaConfig(Table, frozen=True):
    """The brokers and topics of `stream-hc kafka consume`; other commands need none of it.

    Attributes
    ----------
    bootstrap
        Brokers to begin with: host:port, several with commas between.
    documents
        Topic that is read; labels may stand in it, too.
    labels
        Topic of labels that come later.
    predictions
        Topic of predictions; "none" only learns.
    dead_letters
        Topic of records that cannot be used, as they came, with the reason in headers.
    requests
        Topic of documents worth a label.
    events
        Topic of what happens to the models, and of their running H-loss.
    models
        Topic of models: written after every snapshot, followed by predictors. `train` and `predict` call it
        models if it has no other name.
    model_store
        Folder for models, or an address that fsspec can reach, such as s3://bucket/models; the topic has
        only pointers then.
    group
        Name of the job among those that read these topics, and of its transactions.
    instance
        Name of this process in the group: it keeps its place through a restart.
    start
        Where a group that is new begins.
    transactions
        Publish predictions and progress in one transaction; without, a crash may publish predictions twice.
    batch
        Records in a transaction at most.
    linger
        Seconds that a record waits for others at most.
    create_topics
        Make the topics that are missing.
    partitions
        Of topics that are made.
    replication
        Of topics that are made; 0 leaves it to the broker.
    security
        How to talk to the brokers.
    ca
        PEM file with the certificates to trust; "none" trusts those of the system.
    certificate
        PEM file that shows who this is.
    key
        PEM file with the key of the certificate.
    key_password
        Of that file; better in the environment than here.
    sasl
        How to sign in.
    username
        To sign in with.
    password
        To sign in with; better in the environment or in `password_file`.
    password_file
        File whose first line is the password.
    token_file
        File with the token for oauthbearer; it is read again for every connection.
    allow_plain_text
        Send a password without TLS.
    request_timeout
        Seconds to wait for an answer of a broker.
    session_timeout
        Seconds without a sign of life after which another process takes over.
    transaction_timeout
        Seconds after which the broker gives up a transaction.
    stuck_after
        Seconds after which a process that makes no progress ends itself, to be started again.
    """

    bootstrap: Text = "127.0.0.1:9092"
    documents: Name = "documents"
    labels: Name | None = "labels"
    predictions: Name | None = "predictions"
    dead_letters: Name | None = "dead-letters"
    requests: Name | None = None
    events: Name | None = "model-events"
    models: Name | None = None
    model_store: Text | None = None
    group: Name = "stream-hc"
    instance: Name | None = None
    start: Literal["earliest", "latest"] = "earliest"
    transactions: bool = True
    batch: Annotated[int, Meta(ge=1, le=100_000)] = 5_000
    linger: Annotated[float, Meta(ge=0, le=60)] = 0.05
    create_topics: bool = False
    partitions: Annotated[int, Meta(ge=1, le=10_000)] = 1
    replication: Annotated[int, Meta(ge=0, le=100)] = 0
    security: Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"] = "plaintext"
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    key_password: Text | None = None
    sasl: Literal["plain", "scram-sha-256", "scram-sha-512", "oauthbearer"] | None = None
    username: Text | None = None
    password: Text | None = None
    password_file: Path | None = None
    token_file: Path | None = None
    allow_plain_text: bool = False
    request_timeout: Seconds = 30.0
    session_timeout: Seconds = 45.0
    transaction_timeout: Seconds = 60.0
    stuck_after: Seconds = 300.0
