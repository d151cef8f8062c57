"""Lines to records: which topic a line belongs to, under which key, and labels taken out to follow later."""

from typing import NamedTuple

import msgspec

from stream_hc.runtime.records import parse_record

__all__ = ["Parted", "part"]


class _Head(msgspec.Struct, frozen=True, gc=False):
    """As much of a record as decides where it goes."""

    id: str
    text: msgspec.Raw = msgspec.Raw()
    features: msgspec.Raw = msgspec.Raw()
    vector: msgspec.Raw = msgspec.Raw()
    labels: msgspec.Raw = msgspec.Raw()


_heads = msgspec.json.Decoder(_Head)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode
NOTHING = (b"", b"null")


class Parted(NamedTuple):
    """A record, whether it is labels alone, and the labels that were taken out of it."""

    key: bytes | None
    value: bytes
    is_label: bool = False
    labels: bytes | None = None


def part(line: bytes, apart: bool, strict: bool = False) -> Parted:
    """Return the record of a line; with `apart` its labels are taken out.

    A line that is no record goes as it is, without a key; with `strict` it raises `RecordError`.

    >>> found = part(b'{"id": "7", "text": "rates rise", "labels": ["markets"]}', apart=True)
    >>> found.key, found.value, found.labels
    (b'7', b'{"id":"7","text":"rates rise"}', b'{"id":"7","labels":["markets"]}')
    >>> part(b"rates rise", apart=True)
    Parted(key=None, value=b'rates rise', is_label=False, labels=None)
    """
    if strict:
        parse_record(line)
    try:
        line.decode()  # the JSON decoder does not look at fields that are not asked for
        head = _heads.decode(line)
        key = head.id.encode()
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return Parted(None, line)
    has_content = any(bytes(each) not in NOTHING for each in (head.text, head.features, head.vector))
    if bytes(head.labels) in NOTHING or not has_content:
        return Parted(key, line, is_label=not has_content and bytes(head.labels) not in NOTHING)
    if not apart:
        return Parted(key, line)
    fields = _fields.decode(line)
    labels = _encode({"id": fields["id"], "labels": fields.pop("labels")})
    return Parted(key, _encode(fields), labels=labels)
