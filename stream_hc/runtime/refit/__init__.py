"""Fits of H-M³ in another process, bounded in time and memory, while the stream goes on."""

from stream_hc.runtime.refit.outcome import Finished
from stream_hc.runtime.refit.refitter import WORKER, Refitter

__all__ = ["WORKER", "Finished", "Refitter"]
