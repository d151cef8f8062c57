"""What can be read over HTTP: numbers for Prometheus, JSON for the page, signs of life, the page itself."""

from importlib.resources import files
from typing import Any

import msgspec
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from stream_hc.runtime.config import HttpConfig
from stream_hc.runtime.http.guard import Guard, allowed_hosts, read_token
from stream_hc.runtime.telemetry import Telemetry, node_detail, node_rows, series, status

__all__ = ["make_app"]

PAGE = files("stream_hc.runtime.http") / "page"
KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

_encoder = msgspec.json.Encoder()


def make_app(telemetry: Telemetry, config: HttpConfig) -> ASGIApp:
    """Return everything, behind its guard; `TokenError` if there should be a token and is none."""

    # Not `async`: what takes a while runs in a thread of its own, and signs of life are not held up.
    def metrics(request: Request) -> Response:
        encode, kind = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(telemetry.registry), media_type=kind)

    async def healthz(request: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def readyz(request: Request) -> Response:
        return PlainTextResponse("ready\n") if telemetry.is_ready else PlainTextResponse("not yet\n", 503)

    def get_status(request: Request) -> Response:
        return _json(status(telemetry))

    def get_nodes(request: Request) -> Response:
        return _json(node_rows(telemetry))

    def get_node(request: Request) -> Response:
        found = node_detail(telemetry, request.query_params.get("name", ""))
        return _json({"error": "there is no such node"}, 404) if found is None else _json(found)

    def get_series(request: Request) -> Response:
        return _json(series(telemetry))

    routes = [
        Route("/metrics", metrics),
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        Route("/api/status", get_status),
        Route("/api/nodes", get_nodes),
        Route("/api/node", get_node),
        Route("/api/series", get_series),
        *_page_routes(),
    ]
    token = None if config.token_file is None else read_token(config.token_file)
    return Guard(Starlette(routes=routes), allowed_hosts(config), token)


def _json(value: dict[str, Any], code: int = 200) -> Response:
    return Response(_encoder.encode(value), code, media_type="application/json")


def _page_routes() -> list[Route]:
    """Return a route for each file of the page; a fixed list, so that no path leads anywhere else."""
    routes = []
    for file in sorted(PAGE.iterdir(), key=lambda file: file.name):
        kind = KINDS.get(file.name.rpartition(".")[2])
        if kind is not None:
            path = "/" if file.name == "index.html" else f"/{file.name}"
            routes.append(Route(path, _serve(file.read_bytes(), kind)))
    return routes


def _serve(content: bytes, kind: str) -> Any:
    async def serve(request: Request) -> Response:
        return Response(content, headers={"content-type": kind})

    return serve
