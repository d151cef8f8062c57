"""Sends the news from a thread of its own, at a steady pace."""

import threading
import time

from kafka.errors import KafkaError

from consumers.clients import writer
from deploy.cluster_demo.job import DemoError, Stage, partition_of

__all__ = ["Feed"]


class Feed:
    """The stream on its way to the topics.

    Parameters
    ----------
    stage
        Has the records.
    rate
        Documents a second; each brings its labels later.

    Attributes
    ----------
    sent
        Documents so far.
    is_done
        Whether all documents and labels have arrived.
    seconds
        That it took.
    """

    def __init__(self, stage: Stage, rate: float) -> None:
        self._stage, self.rate = stage, rate
        self.sent, self.is_done, self.seconds = 0, False, 0.0
        self._problem: Exception | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    @property
    def share(self) -> float:
        """How much of the stream is sent."""
        return self.sent / len(self._stage.news)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def check(self) -> None:
        """Raise what went wrong."""
        if self._problem is not None:
            raise DemoError(f"the news cannot be sent: {self._problem}")

    def close(self) -> None:
        """End it, wherever it is."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5.0)

    def _run(self) -> None:
        try:
            self._send()
        except KafkaError as error:
            self._problem = error

    def _send(self) -> None:
        kafka = self._stage.config.kafka
        began = time.monotonic()
        with writer(kafka) as producer:
            futures = []
            for is_document, place, value in self._stage.records():
                if is_document:
                    early = began + self.sent / self.rate - time.monotonic()
                    if early > 0.02:  # a few at a time
                        self._stop.wait(early)
                if self._stop.is_set():
                    return
                topic = kafka.documents if is_document else kafka.labels
                key = self._stage.news.ids[place].encode()
                futures.append(producer.send(topic, value, key, partition=partition_of(place)))
                self.sent += is_document
            for future in futures:
                future.get(kafka.request_timeout)
        self.seconds, self.is_done = time.monotonic() - began, True
