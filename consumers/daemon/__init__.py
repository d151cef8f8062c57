"""The process that reads topics, learns, and publishes predictions exactly once."""

from consumers.daemon.daemon import Daemon
from consumers.daemon.job import KafkaJob
from consumers.daemon.membership import Fenced

__all__ = ["Daemon", "Fenced", "KafkaJob"]
