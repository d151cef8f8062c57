"""Everything that is wrong with a taxonomy file, with the lines where it stands."""

import re
from pathlib import Path

from stream_hc.cli.console import clean
from stream_hc.taxonomy import Edge, Taxonomy, TaxonomyError, find_problems
from stream_hc.taxonomy.files import read_edges

__all__ = ["describe", "problems"]

SHOWN_LINES = 3
# How `find_problems` begins: the number of an edge, or (somewhere) the first node as Python writes a str.
EDGE = re.compile(r"edge (\d+) ")
NODE = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")


def problems(name: str) -> list[str]:
    """Return one line for each problem; none if the file is fine."""
    path = Path(name)
    try:
        data = path.read_bytes()
        edges, lines, found = ([], [], []) if path.suffix == ".json" else _scan(data)
        if path.suffix == ".json":
            edges = read_edges(path)
    except OSError as error:
        raise TaxonomyError(f"{name}: cannot read the taxonomy: {error.strerror}") from None
    except TaxonomyError as error:
        return [clean(str(error))]
    report = [(line, f", line {line}: {problem}") for line, problem in found]
    for problem in find_problems(edges):
        at = _lines_of(problem, edges, lines)
        where = f", line{'s' if len(at) > 1 else ''} {_listed(at)}" if at else ""
        report.append((at[0] if at else 0, f"{where}: {problem}"))
    if not edges and not report:
        report.append((0, ": the taxonomy has no nodes: write a line for each"))
    return [clean(f"{name}{text}") for _, text in sorted(report, key=lambda entry: entry[0])]


def describe(name: str) -> str:
    """Return one line about a sound file."""
    taxonomy = Taxonomy.read(name)
    shape = "forest" if taxonomy.is_tree else "DAG"
    levels = int(taxonomy.depth.max()) + 1
    counts = (
        f"{len(taxonomy)} nodes, {taxonomy.roots.size} roots, {taxonomy.leaves.size} leaves, {levels} levels"
    )
    return clean(f"{name}: fine: a {shape} of {counts}")


def _scan(data: bytes) -> tuple[list[Edge], list[int], list[tuple[int, str]]]:
    """Read lines `child<TAB>parent`; return the edges, their lines, and the lines that are none."""
    edges: list[Edge] = []
    lines: list[int] = []
    found: list[tuple[int, str]] = []
    for number, raw in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        try:
            line = raw.removesuffix(b"\r").decode()
        except UnicodeDecodeError:
            found.append((number, "not UTF-8: save the file as UTF-8"))
            continue
        fields = line.split("\t")
        if not line:
            continue
        if len(fields) > 2 or not fields[0].strip():
            found.append((number, f"expected child<TAB>parent, found {line[:80]!r}"))
            continue
        edges.append((fields[0], (fields[1] or None) if len(fields) == 2 else None))
        lines.append(number)
    return edges, lines, found


def _lines_of(problem: str, edges: list[Edge], lines: list[int]) -> list[int]:
    """Return the lines a problem is about, as far as its wording tells."""
    if not lines:
        return []
    edge, node = EDGE.match(problem), NODE.search(problem)
    if edge:
        return [lines[int(edge[1]) - 1]]
    if node is None:
        return []
    named = [
        (parent, line) for (child, parent), line in zip(edges, lines, strict=True) if repr(child) == node[0]
    ]
    # A node may stand under several parents: only the one complained about counts, if there is one.
    complained = [
        line for parent, line in named if parent is not None and f"{parent!r}" in problem[node.end() :]
    ]
    return complained if complained and "as a root" not in problem else [line for _, line in named]


def _listed(lines: list[int]) -> str:
    more = f" and {len(lines) - SHOWN_LINES} more" if len(lines) > SHOWN_LINES else ""
    return ", ".join(map(str, lines[:SHOWN_LINES])) + more
