"""What a job is told: its keys, their values from a file, the environment and options, and what is wrong."""

from stream_hc.runtime.config.configured import ConfigError, Configured
from stream_hc.runtime.config.files import file_problems
from stream_hc.runtime.config.http import HttpConfig
from stream_hc.runtime.config.kafka import KafkaConfig
from stream_hc.runtime.config.keys import KEYS, TABLES, Key, flag_of, summary_of
from stream_hc.runtime.config.learners import REFITTED
from stream_hc.runtime.config.loading import load_config
from stream_hc.runtime.config.structs import (
    Config,
    JudgeConfig,
    LabelsConfig,
    ModelConfig,
    RefitConfig,
    StateConfig,
    StreamConfig,
)
from stream_hc.runtime.config.table import Table, hidden

__all__ = [
    "KEYS",
    "REFITTED",
    "TABLES",
    "Config",
    "ConfigError",
    "Configured",
    "HttpConfig",
    "JudgeConfig",
    "KafkaConfig",
    "Key",
    "LabelsConfig",
    "ModelConfig",
    "RefitConfig",
    "StateConfig",
    "StreamConfig",
    "Table",
    "file_problems",
    "flag_of",
    "hidden",
    "load_config",
    "summary_of",
]
