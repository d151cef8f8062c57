"""Taxonomy files: lines `child<TAB>parent` (an empty parent marks a root) or a JSON object.

The JSON form is `{"nodes": [{"name": "sport", "parents": []}, ...]}` and takes any name; a TSV file
cannot hold a name with a tab or a line break.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from stream_hc.taxonomy.graph import Edge, TaxonomyError

__all__ = ["from_json", "read_edges", "to_json", "write_edges"]


class _Node(msgspec.Struct):
    name: str
    parents: list[str] = []


class _File(msgspec.Struct):
    nodes: list[_Node]


def read_edges(path: Path) -> list[Edge]:
    """Return the edges in a file; an error names the file and the line."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TaxonomyError(f"{path}: cannot read the taxonomy: {error.strerror}") from error
    if path.suffix != ".json":
        return _from_tsv(path, data)
    try:
        return from_json(data)
    except TaxonomyError as error:
        raise TaxonomyError(f"{path}: {error}") from None


def write_edges(path: Path, edges: Sequence[Edge]) -> None:
    """Write the edges in the form the name of the file asks for."""
    if path.suffix == ".json":
        path.write_bytes(msgspec.json.format(to_json(edges), indent=1) + b"\n")
        return
    for child, _ in edges:
        if any(mark in child for mark in "\t\n\r") or child.startswith("\ufeff"):
            raise TaxonomyError(f"a TSV file cannot hold the name {child!r}: write a .json file")
    path.write_bytes("".join(f"{child}\t{parent or ''}\n" for child, parent in edges).encode())


def to_json(edges: Sequence[Edge]) -> bytes:
    """Return the JSON form of the edges, the same bytes for the same edges."""
    parents: dict[str, list[str]] = {}
    for child, parent in edges:
        parents.setdefault(child, []).extend([] if parent is None else [parent])
    return msgspec.json.encode(_File([_Node(name, above) for name, above in parents.items()]))


def from_json(data: bytes | str) -> list[Edge]:
    """Return the edges in JSON form."""
    try:
        file = msgspec.json.decode(data, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        shape = '{"nodes": [{"name": ..., "parents": [...]}, ...]}'
        raise TaxonomyError(f"expected a taxonomy as {shape}: {error}") from None
    edges: list[Edge] = []
    for node in file.nodes:
        edges += [(node.name, parent) for parent in node.parents] if node.parents else [(node.name, None)]
    return edges


def _from_tsv(path: Path, data: bytes) -> list[Edge]:
    edges: list[Edge] = []
    for number, raw in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        try:
            line = raw.removesuffix(b"\r").decode()
        except UnicodeDecodeError:
            raise TaxonomyError(f"{path}, line {number}: not UTF-8: save the file as UTF-8") from None
        if not line:
            continue
        fields = line.split("\t")
        if len(fields) > 2 or not fields[0].strip():
            raise TaxonomyError(
                f"{path}, line {number}: expected child<TAB>parent (nothing after the tab for a root), "
                f"found {line[:80]!r}"
            )
        edges.append((fields[0], fields[1] or None if len(fields) == 2 else None))
    return edges
