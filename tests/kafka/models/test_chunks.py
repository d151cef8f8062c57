"""Versions as records: whole or not at all, whatever happens to the records on the way."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.models.chunks import (
    Assembler,
    Broken,
    Complete,
    Record,
    chunks_of,
    count_chunks,
    digest_of,
    digests_of,
)
from consumers.models.manifest import ChunkKey, Manifest, ShardKey

WHOLE = ShardKey(0, 1)


def manifest_of(data, chunk, slot=0, version="v1", **more):
    return Manifest(
        version=version,
        job="j",
        snapshot=1,
        records=5,
        learned=3,
        model="h-arow",
        saved=1.0,
        size=len(data),
        chunk=chunk,
        sha256=digest_of(digests_of(data, chunk)),
        slot=slot,
        chunks=count_chunks(len(data), chunk),
        **more,
    )


def records_of(data, chunk=4, shard=WHOLE, **options):
    manifest = manifest_of(data, chunk, **options)
    return [
        *chunks_of(shard, manifest, data, digests_of(data, chunk)),
        Record(str(shard), manifest.encode()),
    ]


def read(records):
    """Return the bytes of each version that comes to its end, or what is wrong with it."""
    assembler, found = Assembler(), []
    for record in records:
        try:
            complete = assembler.add(record)
            if complete is not None:
                found.append((str(complete.shard), complete.data()))
        except Broken as problem:
            found.append(str(problem))
    return found


@given(st.binary(max_size=40), st.integers(1, 50))
def test_what_was_cut_is_put_together(data, chunk):
    records = records_of(data, chunk)
    assert all(len(record.value) <= chunk for record in records[:-1])
    assert read(records) == [("0-of-1", data)]
    # What others write is passed over.
    strange = [Record("hello", b"x"), Record("0-of-1/2/000000", b"x"), Record("2-of-1", b"{}")]
    assert read([*strange, *records, *strange]) == [("0-of-1", data)]


@given(st.binary(min_size=1, max_size=40), st.integers(1, 9), st.data())
def test_a_version_is_whole_or_refused(data, chunk, draw):
    """Any record lost, damaged or exchanged: never other bytes than those that were published."""
    records = records_of(data, chunk)
    place = draw.draw(st.integers(0, len(records) - 2))
    kind = draw.draw(st.sampled_from(["lost", "bit", "cut", "swapped", "stranger", "header", "tombstone"]))
    victim = records[place]
    if kind == "lost":
        records.pop(place)
    elif kind == "bit":
        at = draw.draw(st.integers(0, len(victim.value) - 1))
        flipped = bytes(byte ^ (1 << 3) if i == at else byte for i, byte in enumerate(victim.value))
        records[place] = victim._replace(value=flipped)
    elif kind == "cut":
        records[place] = victim._replace(value=victim.value[:-1])
    elif kind == "swapped":
        records[place] = victim._replace(key=str(ChunkKey(WHOLE, 0, place + 1)))
    elif kind == "stranger":
        records[place] = victim._replace(headers=[("version", b"v0"), *victim.headers[1:]])
    elif kind == "header":
        records[place] = victim._replace(headers=())
    else:
        records[place] = victim._replace(value=None)
    [told] = read(records)
    assert isinstance(told, str)
    assert "chunk" in told or "bytes" in told


def test_the_manifest_comes_last():
    *chunks, end = records_of(b"0123456789")
    assert read(chunks) == []
    assert read([end, *chunks]) == ["chunk 0 of 3 is missing"]
    late = Record("0-of-1", manifest_of(b"0123456789", 4, version="v2").encode())
    assert read([*chunks[:2], end, chunks[2], late]) == ["chunk 2 of 3 is missing", "chunk 0 of 3 is missing"]
    assert read([*chunks, end, end]) == [("0-of-1", b"0123456789")] * 2


def test_two_slots_take_turns_and_the_complete_one_stays():
    one, two = records_of(b"a" * 10, slot=0), records_of(b"b" * 12, slot=1, version="v2")
    assert read([*one, *two]) == [("0-of-1", b"a" * 10), ("0-of-1", b"b" * 12)]
    # After compaction, with the third version half written into slot 0: the second is still whole.
    three = records_of(b"c" * 10, slot=0, version="v3")
    assert read([*two[:-1], two[-1], three[0], one[1]]) == [("0-of-1", b"b" * 12)]
    # A shorter version in a slot where longer ones were.
    long, short = records_of(b"a" * 20), records_of(b"b" * 3, version="v2")
    assert read([*long[:-1], *short]) == [("0-of-1", b"b" * 3)]


def test_shards_do_not_mix():
    one, two = (records_of(bytes([n] * 9), shard=ShardKey(n, 2), version=f"v{n}") for n in range(2))
    mixed = [record for pair in zip(one, two, strict=True) for record in pair]
    assert read(mixed) == [("0-of-2", bytes([0] * 9)), ("1-of-2", bytes([1] * 9))]


def test_memory_is_given_back():
    assembler = Assembler()
    *chunks, end = map(Assembler.add.__get__(assembler), records_of(b"x" * 100))
    assert chunks == [None] * 25
    assert isinstance(end, Complete)
    assert assembler.nbytes == 100, "it may be told of once more"
    assembler.forget_chunks()
    assert assembler.nbytes == 0
    assembler.add(records_of(b"x" * 100)[0])
    assert assembler.nbytes == 4


@pytest.mark.parametrize("value", [b"", b"{}", b"[1]", b"\xff", b'{"version": ""}'])
def test_manifests_that_are_none(value):
    assert "the manifest of 0-of-1 cannot be read" in read([Record("0-of-1", value)])[0]
    assert read([Record("0-of-1", None)]) == [], "it was taken back"


def test_what_a_manifest_must_say():
    good = manifest_of(b"abc", 2)
    assert Manifest.of(good.encode()) == good
    for change in ({"size": -1}, {"sha256": "0"}, {"slot": 2}, {"chunks": -1}, {"version": "x" * 65}):
        with pytest.raises(msgspec.ValidationError):
            Manifest.of(msgspec.json.encode(msgspec.structs.replace(good, **change)))
    lied = manifest_of(b"abc", 4)
    lied = msgspec.structs.replace(lied, size=4)
    assert read([*records_of(b"abc")[:-1], Record("0-of-1", lied.encode())]) == ["3 bytes, not 4"]
