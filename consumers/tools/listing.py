"""The work behind `stream-hc kafka dlq list`."""

import base64
import sys
from collections import Counter, deque
from collections.abc import Collection, Iterable
from typing import Any

import msgspec
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from consumers.clients import explaining, partitions_of, reader
from consumers.tools.letters import Letter, committed_offsets, letters_topic, place_group, shown
from consumers.tools.reading import Reading
from stream_hc.cli.console import clean, out, say
from stream_hc.cli.errors import Code
from stream_hc.runtime.config import KafkaConfig

__all__ = ["list_letters"]

USUAL_LIMIT = 50
BEGINNING = 60  # characters of a value or a detail


def list_letters(config: KafkaConfig, reasons: Collection[str], limit: int | None, as_json: bool) -> int:
    """Show the letters and return the exit code."""
    topic = letters_topic(config)
    counts: Counter[str] = Counter()
    kept: deque[Letter] = deque(maxlen=limit if limit or as_json else USUAL_LIMIT)
    streams = as_json and limit is None  # each as it is read: there may be many
    with explaining(config), reader(config) as consumer:
        partitions = partitions_of(consumer, [topic])
        handled = committed_offsets(config, place_group(config.group))
        reading = Reading(consumer, dict(consumer.beginning_offsets(partitions)), config.request_timeout)
        for records in reading.to_end():
            for letter in map(Letter.of, records):
                if reasons and letter.reason not in reasons:
                    continue
                counts[letter.reason] += 1
                if streams:
                    sys.stdout.write(_as_json(letter))
                else:
                    kept.append(letter if as_json else letter._replace(value=_beginning(letter)))
    places = {
        partition.partition: offset for partition, offset in handled.items() if partition.topic == topic
    }
    if as_json:
        sys.stdout.writelines(map(_as_json, kept))
    elif kept:
        ordered = sorted(kept, key=lambda letter: (letter.timestamp, letter.partition, letter.offset))
        out().print(_table(ordered, len(partitions) > 1, places))
    say(_summary(counts, len(kept), topic, streams))
    return Code.FINE


def _table(letters: Iterable[Letter], several: bool, places: dict[int, int]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("offset", justify="right", overflow="fold")
    for name in ("when", "reason", "detail", "from", "value"):
        table.add_column(name, overflow="fold")
    for letter in letters:
        waits = letter.offset >= places.get(letter.partition, 0)
        where = f"{letter.partition}:{letter.offset}" if several else f"{letter.offset}"
        origin = f"{letter.topic}:{letter.origin}"
        texts = (_cut(letter.detail), origin, _cut(shown(letter.value)))
        cells = ("+" if waits else "", where, letter.when, letter.reason, *texts)
        table.add_row(*(Text(clean(cell)) for cell in cells))
    return table


def _beginning(letter: Letter) -> bytes:
    return (letter.value or b"")[: 4 * BEGINNING]  # a character has four bytes at most


def _cut(text: str) -> str:
    return text if len(text) <= BEGINNING else f"{text[: BEGINNING - 1]}…"


def _as_json(letter: Letter) -> str:
    found: dict[str, Any] = letter._asdict()
    for name in ("key", "value"):
        data = found[name]
        found[name] = None if data is None else shown(data)
        if data is not None and found[name].encode() != data:  # then the text does not tell all
            found[f"{name}_base64"] = base64.b64encode(data).decode()
    return msgspec.json.encode(found).decode() + "\n"


def _summary(counts: Counter[str], n_kept: int, topic: str, streams: bool) -> str:
    total = counts.total()
    if not total:
        return f"no dead letters in {topic}"
    told = ", ".join(f"{count:,} {reason}" for reason, count in counts.most_common())
    part = "" if streams or n_kept == total else f"; the newest {n_kept:,} are shown"
    return f"{total:,} dead letters in {topic}: {told}{part}"
