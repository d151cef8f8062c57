"""The states of all shards of a stream, brought from one plan to another while nobody is at work."""

from stream_hc.runtime.resharding.folders import reshard_folders
from stream_hc.runtime.resharding.parts import reshard

__all__ = ["reshard", "reshard_folders"]
