"""The live page and what Prometheus reads: HTTP beside the stream, read-only."""

from stream_hc.runtime.http.guard import TokenError
from stream_hc.runtime.http.server import HttpError, HttpServer

__all__ = ["HttpError", "HttpServer", "TokenError"]
