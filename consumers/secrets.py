"""Passwords and tokens: read from files, handed to the client, and kept out of everything that is shown."""

import logging
import os
import stat

from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslBytesRequest

from consumers.errors import KafkaProblem

__all__ = ["FileToken", "Secret", "first_line", "guard_logs", "others_can_read", "whole_text"]

MOST = 2**20  # bytes of a file with a secret: a larger one is something else


class Secret(str):
    """Text that shows itself as ***, also inside the settings of a client, which may end in a log.

    >>> Secret("tulip"), f"{Secret('tulip')}", "".join([Secret("tulip")])
    ('***', '***', 'tulip')
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"

    def __str__(self) -> str:
        return "***"


class FileToken(AbstractTokenProvider):  # type: ignore[misc]
    """Reads the token for every connection: whoever renews the file need not tell anybody."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def __repr__(self) -> str:
        return f"FileToken({self.path!r})"

    def token(self) -> str:
        """Return what the file holds now, as plain text: the client formats it."""
        return whole_text(self.path, "kafka.token_file")


def first_line(path: str, key: str) -> Secret:
    """Return the first line of a file, or raise `KafkaProblem` that names the key."""
    lines = _read(path, key).splitlines()
    if not lines or not lines[0]:
        raise KafkaProblem(f"{key}: {path}: the first line is empty: write the secret there")
    return Secret(lines[0])


def whole_text(path: str, key: str) -> str:
    """Return the text of a file without the blanks around it, or raise `KafkaProblem` that names the key."""
    text = _read(path, key).strip()
    if not text:
        raise KafkaProblem(f"{key}: {path}: the file is empty: write the token there")
    if not text.isascii() or any(c.isspace() or not c.isprintable() for c in text):
        raise KafkaProblem(f"{key}: {path}: this is no token: there are blanks or strange signs in it")
    return text


def _read(path: str, key: str) -> str:
    try:
        with open(path, "rb") as stream:
            data = stream.read(MOST + 1)
        if len(data) > MOST:
            raise KafkaProblem(f"{key}: {path}: larger than {MOST >> 20} MiB: is that the right file?")
        return data.decode()
    except OSError as error:
        problem = error.strerror or str(error)
        raise KafkaProblem(f"{key}: {path}: cannot be read ({problem}): name a file that can") from None
    except UnicodeDecodeError:
        raise KafkaProblem(f"{key}: {path}: this is not text: is that the right file?") from None


def others_can_read(path: str) -> bool:
    """Whether every user of the machine can read a file."""
    try:
        return bool(os.stat(path).st_mode & stat.S_IROTH)
    except OSError:
        return False


class _NoSignIn(logging.Filter):
    """Drops what shows the bytes that sign in."""

    def filter(self, record: logging.LogRecord) -> bool:
        shown = record.args if isinstance(record.args, tuple) else ()
        return not any(isinstance(arg, SaslAuthenticateRequest | SaslBytesRequest) for arg in shown)


class _NoBytes(logging.Filter):
    """Drops everything for debugging: there, all bytes sent are shown as they are."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno > logging.DEBUG


FILTERS = {"kafka.net.connection": _NoSignIn(), "kafka.protocol.parser": _NoBytes()}
_nowhere = logging.NullHandler()


def guard_logs() -> None:
    """Keep secrets out of the client's logs, and these off the terminal where nobody asked for logs.

    To do it again changes nothing.
    """
    for name, kept_out in FILTERS.items():
        logging.getLogger(name).addFilter(kept_out)
    logging.getLogger("kafka").addHandler(_nowhere)
