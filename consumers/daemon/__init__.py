"""The process that reads topics, learns, and publishes predictions exactly once."""

from consumers.daemon.daemon import Daemon, Topics
from consumers.daemon.job import KafkaJob
from consumers.daemon.membership import Fenced
from consumers.daemon.watchdog import STUCK

__all__ = ["STUCK", "Daemon", "Fenced", "KafkaJob", "Topics"]
