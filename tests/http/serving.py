"""A server on loopback for the tests, and how to ask it."""

import json
import ssl
import urllib.error
import urllib.request
from http.client import HTTPMessage
from typing import NamedTuple

__all__ = ["Answer", "ask"]


class Answer(NamedTuple):
    code: int
    headers: HTTPMessage
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


def ask(url: str, method: str = "GET", context: ssl.SSLContext | None = None, **headers: str) -> Answer:
    """Ask, without any proxy; a refusal is an answer, too."""
    handlers = [urllib.request.ProxyHandler({})]
    if context is not None:
        handlers.append(urllib.request.HTTPSHandler(context=context))
    request = urllib.request.Request(url, method=method, headers=headers)
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=20) as answer:
            return Answer(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as refusal:
        with refusal:
            return Answer(refusal.code, refusal.headers, refusal.read())
