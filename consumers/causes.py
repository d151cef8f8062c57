"""What is behind an error of kafka-python, and words that errors and findings share."""

import re
from collections.abc import Iterator

from kafka import errors

from stream_hc.runtime.config.kafka import KafkaConfig

__all__ = ["KafkaProblem", "causes_of", "may_not", "plain", "topics_in", "who"]


class KafkaProblem(ValueError):  # noqa: N818 (it says what is the matter)
    """Something that the user can put right: one line, with the remedy."""


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """Return an error and what is behind it: kafka-python wraps some errors, and names others in texts."""
    yield error
    behind = [each for each in error.args if isinstance(each, BaseException)]
    if error.__cause__ is not None:
        behind.append(error.__cause__)
    if type(error) is errors.KafkaError:
        for name in re.findall(r"\b[A-Z]\w+Error\b", " ".join(map(str, error.args))):
            kind = getattr(errors, name, errors.KafkaError)
            if kind is not errors.KafkaError:
                behind.append(kind(*error.args))
    for each in behind:
        if each is not error:
            yield from causes_of(each)


def plain(error: BaseException) -> str:
    """Return the class and the text, without what kafka-python puts around them."""
    text = ", ".join(str(arg) for arg in error.args if not isinstance(arg, BaseException))
    kind = type(error).__name__
    if isinstance(error, OSError):
        return str(error)
    if isinstance(error, errors.KafkaConnectionError | errors.KafkaTimeoutError | KafkaProblem) and text:
        return text.replace(f"{kind}: ", "")
    return f"{kind}: {text}" if text else kind


def topics_in(error: BaseException, config: KafkaConfig) -> list[str]:
    """Return the topics of the configuration that the text of an error names."""
    topics = (config.documents, config.labels, config.predictions, config.dead_letters)
    text = " ".join(map(str, error.args))
    found = re.findall(r"[A-Za-z0-9._-]+", text)
    others = (config.requests, config.events, config.models)
    return [name for name in (*topics, *others) if name is not None and name in found]


def who(config: KafkaConfig) -> str:
    """Return who signs in, as far as that is known here."""
    if config.security.startswith("sasl_"):
        return f"the owner of {config.token_file}" if config.sasl == "oauthbearer" else f"{config.username}"
    return "the owner of kafka.certificate" if config.certificate is not None else "this client"


def may_not(operation: str, kind: str, name: str, config: KafkaConfig) -> str:
    """Say what is not allowed, and the command that allows it."""
    named = config.security.startswith("sasl_") and config.sasl != "oauthbearer"
    principal = f"User:{config.username}" if named else "..."
    remedy = f"kafka-acls --add --allow-principal {principal} --operation {operation} --{kind} {name}"
    return f"{who(config)} may not {operation.lower()} {kind.replace('-', ' ')} {name}: {remedy}"
