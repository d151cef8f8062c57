"""What came out of the processor -> records for the topics."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec

from consumers.daemon.transactions import MAX_REQUEST, Message
from stream_hc.runtime.answers import Answers
from stream_hc.runtime.config import KafkaConfig
from stream_hc.runtime.events import Event, Standing
from stream_hc.runtime.log import encode_line
from stream_hc.runtime.outcome import Outcome
from stream_hc.runtime.records import RecordError

__all__ = ["MessageMaker", "letter_headers"]

ROOM = 2_000  # bytes of a letter that headers and framing may take
CUT = "truncated"  # header of a letter that did not fit into its topic


class MessageMaker:
    """Writes messages for the topics of a job.

    The key of a prediction is the id of its document. Among several partitions it goes where the key leads,
    as Kafka's own clients do it: documents with the same keys, in as many partitions, lie beside it.

    Parameters
    ----------
    config
        Names the topics.
    partitions
        How many each topic has.
    largest_letter
        Bytes that the topic of dead letters takes.
    letters_about
        Topics whose records may become dead letters; others are told of by somebody else. All if not given.
    """

    def __init__(
        self,
        config: KafkaConfig,
        partitions: dict[str, int],
        largest_letter: int,
        letters_about: Collection[str] | None = None,
    ) -> None:
        self._config = config
        self._letters_about = letters_about
        self._partitions = partitions
        self._largest = max(0, min(largest_letter, MAX_REQUEST) - ROOM)
        self._encode = msgspec.json.Encoder().encode

    def of_outcome(self, outcome: Outcome, records: Sequence[Any]) -> list[Message]:
        """Return the messages about some records; a rejected line has the place of its record as number."""
        messages = self.of_answers(outcome.answers)
        letters, requests = self._config.dead_letters, self._config.requests
        if letters is not None:
            rejected = [(records[line.number], error) for line, error in outcome.rejects]
            about = self._letters_about
            messages += [
                self._letter(letters, record, error)
                for record, error in rejected
                if about is None or record.topic in about
            ]
        if requests is not None:
            messages += [
                Message(requests, self._encode(request), request.id.encode(errors="surrogatepass"))
                for request in outcome.requests
            ]
        return messages + self.of_log(outcome.log)

    def of_log(self, log: Sequence[Event | Standing]) -> list[Message]:
        """Return what happened as messages."""
        topic = self._config.events
        return [] if topic is None else [Message(topic, encode_line(line)[:-1]) for line in log]

    def of_answers(self, parts: Iterable[Answers]) -> list[Message]:
        """Return predictions as messages; none where nobody wants to hear of them."""
        topic = self._config.predictions
        if topic is None:
            return []
        partition = 0 if self._partitions[topic] == 1 else None  # which the client works out from the key
        return [
            Message(topic, line, name.encode(errors="surrogatepass"), partition)
            for answers in parts
            # Behind the last line there is nothing.
            for name, line in zip(answers.ids, answers.json_lines().split(b"\n"), strict=False)
        ]

    def _letter(self, topic: str, record: Any, error: RecordError) -> Message:
        value, key, headers = record.value, record.key, letter_headers(record, error.reason, error.detail)
        if len(value or b"") + len(key or b"") > self._largest:
            headers.append((CUT, str(len(value or b"")).encode()))
            key = None if key is None else key[: self._largest]
            value = None if value is None else value[: self._largest - len(key or b"")]
        return Message(topic, b"" if value is None and key is None else value, key, 0, headers)


def letter_headers(record: Any, reason: str, detail: str) -> list[tuple[str, bytes]]:
    """Return what stands beside the bytes of a dead letter."""
    told = {
        "reason": reason,
        "detail": detail[:500],
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
    }
    return [(name, text.encode(errors="backslashreplace")) for name, text in told.items()]
