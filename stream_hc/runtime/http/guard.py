"""Who may read what: the right host, the right token; and headers that keep browsers out of trouble."""

import hmac
from collections.abc import Sequence
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stream_hc.runtime.config import HttpConfig
from stream_hc.runtime.config.http import is_loopback

__all__ = ["Guard", "TokenError", "allowed_hosts", "read_token"]

GUARDED = ("/api/", "/metrics")  # the rest tells nothing about anybody's documents
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
LEAST_TOKEN = 16  # characters
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class TokenError(ValueError):
    """A token that cannot be read or is too easily guessed."""


def read_token(path: str) -> bytes:
    """Return the first line of a file, or raise `TokenError`; nobody is told what is in it."""
    try:
        token = Path(path).read_bytes().partition(b"\n")[0].strip()
    except OSError as error:
        raise TokenError(f"{path}: cannot read the token: {error.strerror}") from None
    if len(token) < LEAST_TOKEN or not token.isascii():
        rule = f"at least {LEAST_TOKEN} ASCII characters"
        raise TokenError(f"{path}: a token has {rule}: try head -c 24 /dev/urandom | base64")
    return token


def allowed_hosts(config: HttpConfig) -> Sequence[str] | None:
    """Return the names by which the server may be called; None for any.

    A page from elsewhere can have its own name lead to this machine, and would then read what is for this
    machine alone. Where a token or a certificate is asked for, it gets no further.
    """
    if config.hosts is not None:
        return [host.lower() for host in config.hosts]
    return LOOPBACK_NAMES if is_loopback(config.host) else None


class Guard:
    """Stands before an application.

    Parameters
    ----------
    app
        What is guarded.
    hosts
        Names by which it may be called; None for any.
    token
        To be sent along for everything but the page itself and the signs of life; None if nobody needs one.
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str] | None, token: bytes | None) -> None:
        self._app, self._hosts, self._token = app, hosts, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let through what may pass."""
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refusal(scope)
        app = self._app if refusal is None else refusal
        await app(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("read only\n", 405, {"allow": "GET, HEAD"})
        if self._hosts is not None and _name(headers.get("host", "")) not in self._hosts:
            return PlainTextResponse("not known by this name: see http.hosts\n", 421)
        if self._token is not None and scope["path"].startswith(GUARDED):
            kind, _, given = headers.get("authorization", "").partition(" ")
            is_right = hmac.compare_digest(given.strip().encode("utf-8", "replace"), self._token)
            if kind.lower() != "bearer" or not is_right:
                challenge = {"www-authenticate": 'Bearer realm="stream-hc"'}
                return PlainTextResponse("a token is needed\n", 401, challenge)
        return None


def _name(host: str) -> str:
    """Return a host without its port.

    >>> _name("LocalHost:9464"), _name("[::1]:9464"), _name("[::1]")
    ('localhost', '[::1]', '[::1]')
    """
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdecimal() and not port.endswith("]") else host.lower()
