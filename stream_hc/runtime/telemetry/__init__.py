"""What Prometheus and people are told of a stream at work."""

from stream_hc.runtime.telemetry.families import PREFIX
from stream_hc.runtime.telemetry.status import node_detail, node_rows, series, status
from stream_hc.runtime.telemetry.watching import Telemetry

__all__ = ["PREFIX", "Telemetry", "node_detail", "node_rows", "series", "status"]
